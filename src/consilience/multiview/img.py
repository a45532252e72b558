"""Incomplete multi-modal grouping (IMG): a common factor for two views and a graph learned on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from consilience.core.parameters import Count, NonNegative, Positive, Verbose, parameters
from consilience.core.sweeps import Progress, Sweeps
from consilience.evidence.views import Views
from consilience.multiview._affinity import GraphMethod, normalized_embedding, squared_distances
from consilience.multiview._factors import nonnegative_views, squared_error, squared_norm
from consilience.multiview.pvc import start_pvc
from consilience.multiview.rows import cluster_rows, unit_rows
from consilience.multiview.scaling import Matrix
from consilience.registry import About


class IMGResult(NamedTuple):
    """What `img` learned."""

    embedding: np.ndarray  # P, instances x clusters
    components: list[np.ndarray]  # U_v, clusters x features
    affinity: np.ndarray  # A, rows on the simplex
    objective: np.ndarray
    n_iter: int
    converged: bool


def img(
    arrays: Sequence[Matrix],
    observed: np.ndarray,
    factor: np.ndarray,
    *,
    ridge: float,
    smoothness: float,
    n_neighbors: int,
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
) -> IMGResult:
    r"""A factor of all instances that explains both views and is smooth on a graph learned with it.

    .. math::
        \min_{P, U_v, A} \sum_v \|X_v - P_v U_v\|_F^2 + \lambda \|U_v\|_F^2
        + \beta \, tr(P^T L_A P) + \sum_i \gamma_i \|a_i\|^2 \quad s.t. \; A \ge 0, A 1 = 1, A_{ii} = 0

    L_A is the Laplacian of (A + A^T) / 2, P_v the rows of the instances that view v has. Each of the three
    blocks is minimised exactly in turn, so the objective never rises. gamma_i is set at the start, such that
    every instance then has `n_neighbors` neighbours.

    Symbols: X_v -> arrays[v], absent rows zero; P -> factor, the start, and embedding; U_v -> bases[v];
    A -> affinity; lambda -> ridge; beta -> smoothness.
    Cost: all pairs of instances x clusters for each product with the graph, some tens a sweep.
    """
    p = factor
    seen = observed.astype(float)
    gamma = _spread(p, smoothness, n_neighbors)
    energy = sum(squared_norm(x) for x in arrays)
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        us = [_update_basis(x, p * seen[:, [v]], ridge) for v, x in enumerate(arrays)]
        a = _update_graph(p, smoothness / (4.0 * gamma))
        p = _update_factor(arrays, seen, p, us, a, smoothness)
        before, now = sweeps.add(_objective(arrays, seen, p, us, a, ridge, smoothness, gamma))
        sweeps.converged = before - now <= tol * energy
    return IMGResult(p, us, a, *sweeps.outcome)


def _spread(p: np.ndarray, smoothness: float, n_neighbors: int) -> np.ndarray:
    """gamma_i at which the graph of `p` has `n_neighbors` neighbours for instance i."""
    k = min(n_neighbors, len(p) - 2)
    if k < 1:
        return np.ones(len(p))
    ordered = np.sort(squared_distances(p), axis=1)[:, 1:]
    gamma = 0.25 * smoothness * (k * ordered[:, k] - ordered[:, :k].sum(axis=1))
    # Among copies of one instance any graph is as good: an even one then.
    return np.maximum(gamma, 1e-10 * (gamma.max() or 1.0))


def _update_basis(x: Matrix, p: np.ndarray, ridge: float) -> np.ndarray:
    gram = p.T @ p + ridge * np.eye(p.shape[1])
    return np.linalg.solve(gram, np.asarray(p.T @ x))


def _update_graph(p: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Every row: the projection of -scale * squared distances on the simplex, without itself."""
    target = -scale[:, None] * squared_distances(p)
    n = len(target)
    if n == 1:
        return np.zeros((1, 1))
    np.fill_diagonal(target, -np.inf)
    ordered = -np.sort(-target, axis=1)[:, : n - 1]
    level = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, n)
    # The largest number of entries that all stay above the level that makes them sum to one.
    count = (ordered > level).sum(axis=1)
    return np.maximum(target - level[np.arange(n), count - 1][:, None], 0.0)


def _update_factor(
    arrays: Sequence[Matrix],
    seen: np.ndarray,
    p: np.ndarray,
    us: Sequence[np.ndarray],
    a: np.ndarray,
    smoothness: float,
) -> np.ndarray:
    """Solve ``beta L P + P_i G_i = R`` for all rows by conjugate gradients, G_i the Gram of i's own views."""
    n, k = p.shape
    weights = 0.5 * (a + a.T)
    degrees = weights.sum(axis=1)
    grams = [u @ u.T for u in us]
    right = np.sum([x @ u.T for x, u in zip(arrays, us, strict=True)], axis=0)

    def apply(flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(n, k)
        out = smoothness * (degrees[:, None] * x - weights @ x)
        for v, gram in enumerate(grams):
            out += seen[:, [v]] * (x @ gram)
        return out.ravel()

    # Each instance on its own: exact where the graph is weak.
    blocks = smoothness * degrees[:, None, None] * np.eye(k) + np.tensordot(seen, np.array(grams), axes=1)
    inverses = np.linalg.inv(blocks + 1e-10 * np.eye(k))

    def alone(flat: np.ndarray) -> np.ndarray:
        return np.einsum("pd,pde->pe", flat.reshape(n, k), inverses).ravel()

    shape = (n * k, n * k)
    solution, _ = cg(
        LinearOperator(shape, matvec=apply, dtype=float),
        right.ravel(),
        x0=p.ravel(),
        rtol=1e-8,
        maxiter=200,
        M=LinearOperator(shape, matvec=alone, dtype=float),
    )
    return solution.reshape(n, k)


def _objective(
    arrays: Sequence[Matrix],
    seen: np.ndarray,
    p: np.ndarray,
    us: Sequence[np.ndarray],
    a: np.ndarray,
    ridge: float,
    smoothness: float,
    gamma: np.ndarray,
) -> float:
    total = float(gamma @ np.square(a).sum(axis=1)) + 0.5 * smoothness * float(
        np.vdot(a, squared_distances(p))
    )
    for v, (x, u) in enumerate(zip(arrays, us, strict=True)):
        total += squared_error(x, p * seen[:, [v]], u.T) + ridge * squared_norm(u)
    return total


@parameters
class IMG(GraphMethod):
    """Incomplete multi-modal grouping, for two views with rows absent in either.

    Learns a common factor of the instances and a graph on it together, so that instances of different views
    are linked by where the factor puts them; the clusters are a normalised cut of the graph. Use it for two
    views of up to some thousand instances. Prefer :class:`APMC` for more views, more instances and new ones.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of columns of the factor.
    ridge : float, default=0.1
        Weight of the size of the bases.
    smoothness : float, default=0.3
        Weight of the smoothness of the factor on the graph.
    n_neighbors : int or "auto", default="auto"
        Neighbours of an instance in the graph at the start. "auto" is half of the instances for each cluster.
    max_iter : int, default=200
        Limit of sweeps over the blocks.
    tol : float, default=1e-4
        Change of the objective at which to stop, relative to the sum of squares of the views.
    verbose : int, default=0
        Say the objective of every sweep, on stderr or by logging.
    random_state : int, RandomState instance or None, default=None
        Draws the starts of the factors and of k-means.

    Attributes
    ----------
    affinity_ : ndarray of shape (n_instances, n_instances)
        The learned graph, rows of sum one.
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The common factor.
    objective_ : ndarray of shape (n_iter,)
        The objective after every sweep; it never rises.

    Notes
    -----
    Features are rescaled to 0..1 in each view. Where this differs from the authors' program: the objective
    is minimised block by block instead of by a splitting method with a growing penalty; the graph is exactly
    on the simplex, where theirs is clipped once, and its evenness is set by a number of neighbours instead of
    a weight that depends on the scale of the data (at their value most instances have a single neighbour);
    bases use all instances of a view, not only the common ones; an instance is not its own neighbour, which
    would be free. One view alone is allowed.

    References
    ----------
    H. Zhao, H. Liu, Y. Fu: Incomplete Multi-modal Visual Data Grouping. IJCAI, 2016.

    Examples
    --------
    >>> from consilience import IMG
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(missing=0.3, random_state=0)
    >>> model = IMG(n_clusters=2, random_state=0).fit(data.views)
    >>> model.affinity_.shape
    (200, 200)
    """

    about = About(
        use="two views, the graph itself is of interest",
        avoid="three views",
        cost="some tens of products of all pairs a sweep",
        paper="Zhao, Liu, Fu: Incomplete Multi-modal Visual Data Grouping. IJCAI, 2016.",
    )

    max_views = 2

    ridge: Positive = 0.1
    smoothness: Positive = 0.3
    n_neighbors: Count | Literal["auto"] = "auto"
    max_iter: Count = 200
    tol: NonNegative = 1e-4
    verbose: Verbose = 0

    def _solve(self, views: Views, rng: np.random.RandomState) -> IMGResult:
        arrays = nonnegative_views(views, unit_rows=False)
        half = max(3, round(0.5 * views.n_instances / self.n_clusters))
        return img(
            arrays,
            views.observed,
            start_pvc(arrays, views.observed, self.n_clusters, rng)[0],
            ridge=self.ridge,
            smoothness=self.smoothness,
            n_neighbors=half if isinstance(self.n_neighbors, str) else int(self.n_neighbors),
            **self._sweeping,
        )

    def _cluster(self, result: IMGResult, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        _, vectors = normalized_embedding(0.5 * (result.affinity + result.affinity.T), self.n_clusters)
        return cluster_rows(unit_rows(vectors), self.n_clusters, n_init=self.n_init, rng=rng)
