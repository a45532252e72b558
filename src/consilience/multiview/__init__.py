"""Views in, one partition out. One method is one file; ``__all__`` is the registry."""

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
