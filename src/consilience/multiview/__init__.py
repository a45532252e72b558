"""Views in, one partition out. One method is one file; ``__all__`` is the registry."""

from consilience.multiview.eeimvc import EEIMVC
from consilience.multiview.lfimvc import LFIMVC
from consilience.multiview.mkkm import MKKM
from consilience.multiview.mkkmik import MKKMIK
from consilience.multiview.oslfimvc import OSLFIMVC

__all__ = [
    "EEIMVC",
    "LFIMVC",
    "MKKM",
    "MKKMIK",
    "OSLFIMVC",
]
