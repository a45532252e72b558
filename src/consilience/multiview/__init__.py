"""Views in, one partition out. One method is one file; ``__all__`` is the registry.

A method's file is loaded when the method is first used: a call needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consilience.multiview.apmc import APMC
    from consilience.multiview.daimc import DAIMC
    from consilience.multiview.eeimvc import EEIMVC
    from consilience.multiview.img import IMG
    from consilience.multiview.lfimvc import LFIMVC
    from consilience.multiview.mic import MIC
    from consilience.multiview.mkkm import MKKM
    from consilience.multiview.mkkmik import MKKMIK
    from consilience.multiview.multinmf import MultiNMF
    from consilience.multiview.nemo import NEMO
    from consilience.multiview.oslfimvc import OSLFIMVC
    from consilience.multiview.pvc import PVC
    from consilience.multiview.snf import SNF
    from consilience.multiview.spectral import SpectralAverage, SpectralConcat

__all__ = [
    "APMC",
    "DAIMC",
    "EEIMVC",
    "IMG",
    "LFIMVC",
    "MIC",
    "MKKM",
    "MKKMIK",
    "NEMO",
    "OSLFIMVC",
    "PVC",
    "SNF",
    "MultiNMF",
    "SpectralAverage",
    "SpectralConcat",
]

# Files that have not the name of their method.
_FILES = {"SpectralAverage": "spectral", "SpectralConcat": "spectral"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.{_FILES.get(name, name.lower())}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
