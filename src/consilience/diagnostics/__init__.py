"""How far a consensus can be trusted: from small count tables, never from all pairs of instances."""

from consilience.diagnostics.bases import base_table
from consilience.diagnostics.columns import Profile, profile
from consilience.diagnostics.links import identifiability, missing_not_at_random, require_linked
from consilience.diagnostics.overview import (
    cluster_flow,
    consensus_distribution,
    consensus_map,
    membership,
    missing_patterns,
    pairwise_agreement,
)
from consilience.diagnostics.summary import Diagnostics, diagnose
from consilience.diagnostics.typical import TypicalLabels, typical_labels
from consilience.inference.chance import ChanceTest
from consilience.inference.chances import chances
from consilience.inference.counting import ClusterCount, beyond_chance, choose_n_clusters
from consilience.inference.neighbours import support
from consilience.inference.posterior import confidence
from consilience.inference.resampling import resample_n_clusters

__all__ = [
    "ChanceTest",
    "ClusterCount",
    "Diagnostics",
    "Profile",
    "TypicalLabels",
    "base_table",
    "beyond_chance",
    "chances",
    "choose_n_clusters",
    "cluster_flow",
    "confidence",
    "consensus_distribution",
    "consensus_map",
    "diagnose",
    "identifiability",
    "membership",
    "missing_not_at_random",
    "missing_patterns",
    "pairwise_agreement",
    "profile",
    "require_linked",
    "resample_n_clusters",
    "support",
    "typical_labels",
]
