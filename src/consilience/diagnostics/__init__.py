"""How far a consensus can be trusted: from small count tables, never from all pairs of instances."""

from consilience.diagnostics.bases import Bases, base_table
from consilience.diagnostics.counting import ClusterCount, CountCurve, choose_n_clusters
from consilience.diagnostics.links import (
    Identifiability,
    MissingNotAtRandom,
    WeakLink,
    identifiability,
    missing_not_at_random,
    require_linked,
)
from consilience.diagnostics.neighbours import ClusterConsensus, Support, support
from consilience.diagnostics.overview import (
    BaseAgreement,
    ConsensusDistribution,
    ConsensusMap,
    Membership,
    MissingPatterns,
    base_agreement,
    cluster_flow,
    consensus_distribution,
    consensus_map,
    membership,
    missing_patterns,
)
from consilience.diagnostics.posterior import (
    Evidence,
    confidence,
    gather_evidence,
    predict_confidence,
    predict_labels,
)
from consilience.diagnostics.resampling import ResampledCount, ResampledCurve, resample_n_clusters
from consilience.diagnostics.summary import Diagnostics, diagnose

__all__ = [
    "BaseAgreement",
    "Bases",
    "ClusterConsensus",
    "ClusterCount",
    "ConsensusDistribution",
    "ConsensusMap",
    "CountCurve",
    "Diagnostics",
    "Evidence",
    "Identifiability",
    "Membership",
    "MissingNotAtRandom",
    "MissingPatterns",
    "ResampledCount",
    "ResampledCurve",
    "Support",
    "WeakLink",
    "base_agreement",
    "base_table",
    "choose_n_clusters",
    "cluster_flow",
    "confidence",
    "consensus_distribution",
    "consensus_map",
    "diagnose",
    "gather_evidence",
    "identifiability",
    "membership",
    "missing_not_at_random",
    "missing_patterns",
    "predict_confidence",
    "predict_labels",
    "require_linked",
    "resample_n_clusters",
    "support",
]
