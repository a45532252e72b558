"""One call over all methods: partial labels or views in, one clustering that says how sure it is out."""

from consilience.fusion.comparison import Compared, Comparison, compare
from consilience.fusion.explaining import Explanation
from consilience.fusion.following import Changes
from consilience.fusion.labels import fuse
from consilience.fusion.result import Candidate, Fusion, Placed
from consilience.fusion.saving import load, save
from consilience.fusion.views import fuse_views

__all__ = [
    "Candidate",
    "Changes",
    "Compared",
    "Comparison",
    "Explanation",
    "Fusion",
    "Placed",
    "compare",
    "fuse",
    "fuse_views",
    "load",
    "save",
]
