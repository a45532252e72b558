"""One call over all methods: partial labels or views in, one clustering that says how sure it is out."""

from consilience.fusion.comparison import Compared, Comparison, compare
from consilience.fusion.labels import fuse
from consilience.fusion.result import Candidate, Fusion
from consilience.fusion.saving import load, save
from consilience.fusion.views import fuse_views

__all__ = ["Candidate", "Compared", "Comparison", "Fusion", "compare", "fuse", "fuse_views", "load", "save"]
