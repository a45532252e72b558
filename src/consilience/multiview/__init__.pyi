# Written by docs/lists.py.
from consilience.multiview.apmc import APMC as APMC
from consilience.multiview.base import ViewMethod as ViewMethod
from consilience.multiview.daimc import DAIMC as DAIMC
from consilience.multiview.eeimvc import EEIMVC as EEIMVC
from consilience.multiview.img import IMG as IMG
from consilience.multiview.lfimvc import LFIMVC as LFIMVC
from consilience.multiview.mic import MIC as MIC
from consilience.multiview.mkkm import MKKM as MKKM
from consilience.multiview.mkkmik import MKKMIK as MKKMIK
from consilience.multiview.multinmf import MultiNMF as MultiNMF
from consilience.multiview.nemo import NEMO as NEMO
from consilience.multiview.oslfimvc import OSLFIMVC as OSLFIMVC
from consilience.multiview.pse import PSE as PSE
from consilience.multiview.pvc import PVC as PVC
from consilience.multiview.snf import SNF as SNF
from consilience.multiview.spectral import SpectralAverage as SpectralAverage
from consilience.multiview.spectral import SpectralConcat as SpectralConcat

__all__: list[str]
