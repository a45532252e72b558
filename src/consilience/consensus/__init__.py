"""Labels in, one partition out. One method is one file; ``__all__`` is the registry.

A method's file is loaded when the method is first used: a call needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consilience.consensus.acmk import ACMK
    from consilience.consensus.bce import BCE
    from consilience.consensus.ceshl import CESHL
    from consilience.consensus.cspa import CSPA
    from consilience.consensus.dal import DAL
    from consilience.consensus.drec import DREC
    from consilience.consensus.eac import EAC
    from consilience.consensus.eccms import ECCMS
    from consilience.consensus.ecpcs import ECPCS
    from consilience.consensus.hbgf import HBGF
    from consilience.consensus.hgpa import HGPA
    from consilience.consensus.kc import KC
    from consilience.consensus.kcc import KCC
    from consilience.consensus.lwea import LWEA
    from consilience.consensus.lwgp import LWGP
    from consilience.consensus.m2vec import M2VEC
    from consilience.consensus.mcla import MCLA
    from consilience.consensus.mixture import MixtureConsensus
    from consilience.consensus.mvec import MVEC
    from consilience.consensus.nmfc import NMFC
    from consilience.consensus.pce import PCE
    from consilience.consensus.pta import PTA
    from consilience.consensus.ptgp import PTGP
    from consilience.consensus.rce import RCE
    from consilience.consensus.rsec import RSEC
    from consilience.consensus.sccbg import SCCBG
    from consilience.consensus.sec import SEC
    from consilience.consensus.spce import SPCE
    from consilience.consensus.trce import TRCE
    from consilience.consensus.usenc import USENC

__all__ = [
    "ACMK",
    "BCE",
    "CESHL",
    "CSPA",
    "DAL",
    "DREC",
    "EAC",
    "ECCMS",
    "ECPCS",
    "HBGF",
    "HGPA",
    "KC",
    "KCC",
    "LWEA",
    "LWGP",
    "M2VEC",
    "MCLA",
    "MVEC",
    "NMFC",
    "PCE",
    "PTA",
    "PTGP",
    "RCE",
    "RSEC",
    "SCCBG",
    "SEC",
    "SPCE",
    "TRCE",
    "USENC",
    "MixtureConsensus",
]

# Files that have not the name of their method.
_FILES = {"MixtureConsensus": "mixture"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.{_FILES.get(name, name.lower())}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
