"""Clustering from incomplete evidence: many partial opinions in, one clustering with a confidence out.

Names are loaded when they are first used, so that ``import consilience`` costs next to nothing.
"""

from importlib import import_module
from typing import Any

from consilience.registry import SUBPACKAGES, method, methods

__version__ = "0.1.0"

_HOME = {
    "Comparison": "results",
    "Fusion": "results",
    "Partitions": "evidence",
    "Views": "evidence",
    "check_views": "evidence",
    "compare": "results",
    "compare_views": "results",
    "fuse": "results",
    "fuse_views": "results",
    "load": "results",
    "save": "results",
    "scan": "io",
}
_SUBPACKAGES = (
    "bench",
    "consensus",
    "dask",
    "datasets",
    "diagnostics",
    "evidence",
    "features",
    "federated",
    "generate",
    "io",
    "metrics",
    "missing",
    "multiview",
    "plotting",
    "report",
    "results",
    "scverse",
)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    return method(name, *(f"{__name__}.{subpackage}" for subpackage in SUBPACKAGES))


def __dir__() -> list[str]:
    names = [cls.__name__ for subpackage in SUBPACKAGES for cls in methods(f"{__name__}.{subpackage}")]
    return sorted([*names, *_HOME, *_SUBPACKAGES, "__version__"])
