"""One call over all methods: partial labels or views in, one clustering that says how sure it is out."""

from consilience.inference.placement import Placed
from consilience.results.comparison import Compared, Comparison, compare
from consilience.results.drift import Drift
from consilience.results.explaining import Explanation
from consilience.results.following import Changes
from consilience.results.fusion import Candidate, Fusion
from consilience.results.headline import Headline, SourceUse
from consilience.results.labels import fuse
from consilience.results.levels import Levels
from consilience.results.saving import load, save
from consilience.results.stability import Stability
from consilience.results.update import Update
from consilience.results.view_comparison import compare_views
from consilience.results.views import fuse_views

__all__ = [
    "Candidate",
    "Changes",
    "Compared",
    "Comparison",
    "Drift",
    "Explanation",
    "Fusion",
    "Headline",
    "Levels",
    "Placed",
    "SourceUse",
    "Stability",
    "Update",
    "compare",
    "compare_views",
    "fuse",
    "fuse_views",
    "load",
    "save",
]
