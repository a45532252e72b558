"""One type for every kind of data set."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["table", "pool", "views", "kernels", "patterns"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set. `kind` says which of the attributes it has; the others are None.

    Attributes
    ----------
    name : str
    kind : {"table", "pool", "views", "kernels", "patterns"}
    y : (n,) int64 array
        The true classes, 0, 1, ... (every kind but "patterns").
    X : (n, d) float64 array or CSR array
        The features ("table").
    labels : (n, m) int32 array
        Base clusterings in columns, named as in the source; only -1 means missing ("pool").
    views : tuple of (n, d_v) float64 arrays or CSR arrays
        One table per view ("views").
    kernels : tuple of (n, n) float64 arrays
        One similarity matrix per view ("kernels").
    view_names : tuple of str
        ("views" and "kernels").
    observed : (n, n_views) bool array
        Which instance is present in which view ("views").
    patterns : dict of int to (n_ratios, n_draws, n, n_views) bool array
        Published masks of what is observed, by the number of views ("patterns" and "kernels"):
        ``patterns[v][r, t]`` is draw t at the missing ratio ``ratios[r]``.
    ratios : (n_ratios,) float64 array
        The missing ratios of `patterns`.
    extra : dict of str to array
        Whatever else the file holds, under its name there.
    """

    name: str
    kind: Kind
    # Which of these is set depends on `kind`; Any spares typed callers an assertion at every use.
    y: Any = None
    X: Any = None
    labels: Any = None
    views: Any = None
    kernels: Any = None
    view_names: tuple[str, ...] | None = None
    observed: Any = None
    patterns: Any = None
    ratios: Any = None
    extra: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}: {self._contents()})"

    def _contents(self) -> str:
        classes = "" if self.y is None else f", {len(np.unique(self.y))} classes"
        match self.kind:
            case "table":
                return f"table {_size(self.X)}{classes}"
            case "pool":
                return f"pool {_size(self.labels)}{classes}, {(self.labels == -1).mean():.0%} missing"
            case "views" | "kernels":
                tables = zip(self.view_names or (), self.views or self.kernels, strict=True)
                return f"{self.kind} {', '.join(f'{name} {_size(table)}' for name, table in tables)}{classes}"
            case "patterns":
                sizes = ", ".join(f"{masks.shape[2]} x {v}" for v, masks in self.patterns.items())
                return f"patterns {sizes} at {len(self.ratios)} missing ratios"


def _size(matrix: Any) -> str:
    return " x ".join(map(str, matrix.shape))
