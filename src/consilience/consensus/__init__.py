"""Labels in, one partition out. One method is one file; ``__all__`` is the registry."""

from consilience.consensus.acmk import ACMK
from consilience.consensus.dal import DAL
from consilience.consensus.lwea import LWEA
from consilience.consensus.lwgp import LWGP
from consilience.consensus.mixture import MixtureConsensus
from consilience.consensus.pce import PCE
from consilience.consensus.spce import SPCE

__all__ = [
    "ACMK",
    "DAL",
    "LWEA",
    "LWGP",
    "PCE",
    "SPCE",
    "MixtureConsensus",
]
