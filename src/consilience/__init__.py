"""Clustering from incomplete evidence: many partial opinions in, one clustering with a confidence out.

Names are loaded when they are first used, so that ``import consilience`` costs next to nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "fuse": "fusion",
    "fuse_views": "fusion",
    "compare": "fusion",
    "Comparison": "fusion",
    "Fusion": "fusion",
    "Partitions": "partitions",
    "Views": "views",
    "check_views": "views",
    "IMG": "multiview",
    "PVC": "multiview",
    "MultiNMF": "multiview",
    "MIC": "multiview",
    "DAIMC": "multiview",
    "SpectralAverage": "multiview",
    "SpectralConcat": "multiview",
    "SNF": "multiview",
    "NEMO": "multiview",
    "APMC": "multiview",
    "EEIMVC": "multiview",
    "LFIMVC": "multiview",
    "MKKM": "multiview",
    "MKKMIK": "multiview",
    "OSLFIMVC": "multiview",
    "DAL": "consensus",
    "ACMK": "consensus",
    "PCE": "consensus",
    "SPCE": "consensus",
    "LWEA": "consensus",
    "LWGP": "consensus",
    "RCE": "consensus",
    "CESHL": "consensus",
    "SCCBG": "consensus",
    "RSEC": "consensus",
    "MVEC": "consensus",
    "M2VEC": "consensus",
    "TRCE": "consensus",
    "ECPCS": "consensus",
    "PTGP": "consensus",
    "PTA": "consensus",
    "DREC": "consensus",
    "ECCMS": "consensus",
    "EAC": "consensus",
    "HBGF": "consensus",
    "CSPA": "consensus",
    "MCLA": "consensus",
    "KC": "consensus",
    "NMFC": "consensus",
    "KCC": "consensus",
    "SEC": "consensus",
    "HGPA": "consensus",
    "USENC": "consensus",
    "BCE": "consensus",
    "MixtureConsensus": "consensus",
}
_ROOMS = (
    "bench",
    "consensus",
    "dask",
    "datasets",
    "diagnostics",
    "fusion",
    "generate",
    "metrics",
    "missing",
    "multiview",
    "partitions",
    "plotting",
    "report",
    "views",
)

__all__ = [*_HOME, *_ROOMS, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'consilience' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
