"""Base of the methods that factorise views: nonnegative features, and a start for the factors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from consilience.core.parameters import Count, NonNegative, Verbose, parameters
from consilience.evidence.views import Views
from consilience.multiview.base import ViewMethod
from consilience.multiview.scaling import Matrix, fill_with_mean, learn_scalings, unit_norm_rows


@parameters
class FactorMethod(ViewMethod):
    """Base of the methods whose results have a factor of the instances, the embedding, and of every view.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, and of columns of the factors.
    max_iter : int
        Limit of sweeps.
    tol : float
        Relative change of the objective at which to stop.
    verbose : int
        Say the objective of every sweep, on stderr or by logging.
    random_state : int, RandomState instance or None
        Draws the starts of the factors and of k-means.

    Attributes
    ----------
    components_ : list of ndarray of shape (n_clusters, n_features)
        The basis of every view.
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The common factor.
    n_iter_ : int
        Number of sweeps.
    """

    max_iter: Count = 100
    tol: NonNegative = 1e-4
    verbose: Verbose = 0

    def _learn(self, result: Any, views: Views, order: np.ndarray) -> None:
        self.embedding_ = result.embedding
        self.components_ = result.components


class Factors(NamedTuple):
    """A factor of all instances and those of every view."""

    embedding: np.ndarray  # the consensus
    factors: list[np.ndarray]  # instances x clusters, per view
    bases: list[np.ndarray]  # features x clusters, per view
    objective: np.ndarray  # after every round
    n_iter: int
    converged: bool

    @property
    def components(self) -> list[np.ndarray]:
        """The bases as scikit-learn has them: clusters x features."""
        return [basis.T for basis in self.bases]


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


def filled_views(views: Views) -> list[Matrix]:
    """Nonnegative views with rows of norm one, absent ones at the mean of their view."""
    arrays = nonnegative_views(views, unit_rows=True)
    return [fill_with_mean(x, present) for x, present in zip(arrays, views.observed.T, strict=True)]


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
