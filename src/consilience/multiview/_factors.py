"""What the methods that factorise views share: nonnegative features, and a start for the factors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from consilience.multiview._scaling import learn_scalings, unit_norm_rows
from consilience.views import Views

Matrix = Any  # a 2-D float array or a CSR array


def nonnegative_views(views: Views, *, unit_rows: bool) -> list[Matrix]:
    """Text by the frequencies of its words, other features rescaled to 0..1 over the rows of their view.

    Rows of text have norm one, others if asked for. Absent rows are zero.
    """
    out = []
    for v, (x, scaling) in enumerate(zip(views.arrays, learn_scalings(views, "auto"), strict=True)):
        present = views.observed[:, v]
        if scaling.kind == "tfidf":
            x = scaling.apply(x, present)
        else:
            x = x.toarray() if sp.issparse(x) else x
            low, high = x[present].min(axis=0), x[present].max(axis=0)
            span = np.where(high > low, high - low, 1.0)
            x = np.where(present[:, None], (x - low) / span, 0.0)
        out.append(unit_norm_rows(x) if unit_rows else x)
    return out


def start_factors(
    x: Matrix, k: int, start: np.ndarray | None, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Nonnegative factors ``x ~ u @ v.T``, from the instances' factor of another view where there is one.

    So the columns of the factors of all views mean the same.
    """
    init, given = ("nndsvda" if k <= min(x.shape) else "random"), {}
    if start is not None:
        v = np.maximum(np.linalg.lstsq(start, x.toarray() if sp.issparse(x) else x, rcond=None)[0], 1e-6)
        init, given = "custom", {"W": start + 1e-6, "H": v}
    model = NMF(k, init=init, max_iter=200, tol=1e-3, random_state=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start need not be the end
        u = model.fit_transform(x, **given)
    # A zero can never leave zero by multiplication.
    return u + 1e-6, model.components_.T + 1e-6


def start_all(
    arrays: Sequence[Matrix], k: int, rng: np.random.RandomState
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """A start for every view, each seeded by the one before."""
    us: list[np.ndarray] = []
    vs: list[np.ndarray] = []
    for x in arrays:
        u, v = start_factors(x, k, us[-1] if us else None, rng)
        us.append(u)
        vs.append(v)
    return us, vs


def squared_norm(x: Matrix) -> float:
    """Sum of the squared entries."""
    return float((x.multiply(x)).sum()) if sp.issparse(x) else float(np.vdot(x, x))


def squared_error(x: Matrix, u: np.ndarray, v: np.ndarray) -> float:
    """``||x - u v^T||^2`` without building the product where x is sparse."""
    if not sp.issparse(x):
        return squared_norm(x - u @ v.T)
    return squared_norm(x) - 2.0 * float(np.vdot(x @ v, u)) + float(np.vdot(u.T @ u, v.T @ v))
