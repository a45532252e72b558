"""Multi-view ensemble clustering (MVEC): one low-rank graph near to the co-associations of all views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from sklearn.metrics import euclidean_distances

from consilience._support.errors import InputError
from consilience.consensus.base import LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.coassociation import coassociation
from consilience.core.cuts import cut_embedding
from consilience.core.eigen import leading_eigenpairs
from consilience.core.lowrank import shrink_singular_values
from consilience.core.parameters import Count, NonNegative, Positive, parameters
from consilience.core.simplex import project_rows
from consilience.core.tables import indicator
from consilience.registry import About

# The penalty of the multipliers: first value and growth. Well below one, the distances in H outweigh all else
# and each row keeps itself alone.
_FIRST_MU, _GROWTH = 1.0, 1.1
# What is left of the constraints, relative to the largest entry of the common graph.
_TOL = 1e-5


class MVECResult(NamedTuple):
    """What `mvec` found, on distinct rows."""

    labels: np.ndarray  # per row
    graph: np.ndarray  # Z, between instances of two rows
    errors: np.ndarray  # E, (views, rows, rows)
    n_iter: int
    converged: bool


def mvec(
    rows: Rows,
    n_clusters: int,
    *,
    views: np.ndarray,
    rank: float,
    noise: float,
    max_iter: int,
    n_init: int,
    rng: np.random.RandomState,
) -> MVECResult:
    r"""A stochastic matrix of low rank near to the transition matrices of all views up to sparse errors.

    .. math::
        \min_{Z, E, H} \; tr(H^T L_Z H) + \lambda_1 \|Z\|_* + \lambda_2 \sum_v \|E_v\|_1
        \quad s.t. \; S_v = Z + E_v, \; Z \ge 0, \; Z 1 = 1, \; H^T H = I

    Rows of :math:`S_v` are the co-association of view v scaled to sum one; then :math:`L_Z = I - (Z + Z^T) /
    2`. A pair that no base of a view saw together has a free entry in its error; the others of its row then
    sum to the share of instances that are left. Row p stands for ``counts[p]`` instances.

    Symbols: v -> views, per base; S_v -> co-association of rows.codes (-1 = missing), scaled; Z -> graph;
    E_v -> errors[v]; lambda_1 -> rank; lambda_2 -> noise over the number of instances.
    Cost: a step is two eigenproblems of dense matrices of rows x rows, memory is four such a view.
    """
    w = rows.weights
    shares = shares_of_views(rows, views)
    free, known = np.isnan(shares), np.nan_to_num(shares)
    mass = known @ w
    left = (~free @ w) / w.sum()
    s = known * np.divide(left, mass, out=np.zeros_like(mass), where=mass > 0.0)[:, :, None]
    return common_graph(
        s, free, w, n_clusters, rank=rank, noise=noise, max_iter=max_iter, n_init=n_init, rng=rng
    )


def common_graph(
    s: np.ndarray,
    free: np.ndarray,
    w: np.ndarray,
    n_clusters: int,
    *,
    rank: float,
    noise: float,
    max_iter: int,
    n_init: int,
    rng: np.random.RandomState,
    move: Callable[[np.ndarray, np.ndarray, float], np.ndarray] | None = None,
) -> MVECResult:
    """Alternating steps with multipliers. With `move`, the matrices of the views move too, from Z + E and Y.

    All matrices are equal on equal instances; times the roots of both counts they have the singular values
    and eigenvalues of the matrices of all instances.
    """
    root = np.sqrt(w)
    scale = root * root[:, None]
    price = noise / w.sum()
    z, y_j = np.zeros_like(scale), np.zeros_like(scale)
    e, y = np.zeros_like(s), np.zeros_like(s)
    apart = np.zeros_like(scale)
    mu, n_iter, converged = _FIRST_MU, 0, False
    while n_iter < max_iter and not converged:
        n_iter += 1
        if move is not None:
            s = move(z + e, y, mu)
        j = shrink_singular_values((z + y_j / mu) * scale, rank / mu) / scale
        rest = s - z + y / mu
        e = np.where(free, rest, np.sign(rest) * np.maximum(np.abs(rest) - price / mu, 0.0))
        z = _update_graph(s - e + y / mu, j - y_j / mu, apart, mu, w)
        h, apart = _embed(z, scale, root, n_clusters)
        gaps = s - z - e
        y, y_j = y + mu * gaps, y_j + mu * (z - j)
        mu *= _GROWTH
        converged = max(np.abs(gaps).max(), np.abs(z - j).max()) < _TOL * z.max()
    labels, _ = cut_embedding(h, w, n_clusters, n_init=n_init, rng=rng)
    return MVECResult(labels, z, e, n_iter, converged)


def _update_graph(
    parts: np.ndarray, low_rank: np.ndarray, apart: np.ndarray, mu: float, w: np.ndarray
) -> np.ndarray:
    """The mean of what views and rank ask for, less where H sets instances apart, on the simplex."""
    n_parts = len(parts) + 1
    return project_rows((parts.sum(axis=0) + low_rank - apart / (2.0 * mu)) / n_parts, w)


def _embed(
    z: np.ndarray, scale: np.ndarray, root: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """H, the leading eigenvectors of (Z + Z^T) / 2, and |h_i - h_j|^2."""
    _, vectors = leading_eigenpairs(0.5 * (z + z.T) * scale, n_clusters)
    h = vectors / root[:, None]
    return h, euclidean_distances(h, squared=True)


def shares_of_views(rows: Rows, views: np.ndarray) -> np.ndarray:
    """Co-association of the base clusterings of each view, (views, rows, rows); NaN for pairs none saw."""
    marks = indicator(rows.codes, rows.offsets).tocsc()
    of_cluster = np.repeat(views, np.diff(rows.offsets))
    return np.array(
        [
            coassociation(marks[:, of_cluster == v], rows.codes[:, views == v] >= 0, normalize="pairs")
            for v in range(views.max() + 1)
        ]
    )


def read_views(views: Sequence[Any] | None, problem: Problem) -> np.ndarray:
    """The number of its view for every base clustering that the solver reads."""
    columns = problem.columns
    if views is None:
        return np.zeros(len(columns), dtype=np.intp)
    if len(views) != problem.table.n_columns:
        raise InputError(
            f"'views' names the view of {len(views)} base clusterings, the table has "
            f"{problem.table.n_columns}.",
            hint="give one entry per column of the table, equal for columns of the same view.",
        )
    mine = [views[column] for column in columns]
    numbers = {view: number for number, view in enumerate(dict.fromkeys(mine))}
    return np.array([numbers[view] for view in mine])


@parameters
class MVEC(LabelMethod):
    """Multi-view ensemble clustering (experimental): one low-rank graph near to those of all views.

    Base clusterings come from several views of the instances (several tables of features, several sources),
    many of each. Every view has its co-association; a common graph of low rank is found from which each
    view differs in few entries. It is here to compare with the literature, and a reconstruction: the paper's
    data term was not certain to us. Prefer :class:`LWGP` or :class:`DAL` for work.

    Parameters
    ----------
    views : sequence or None, default=None
        The view of every base clustering, one entry per column of the table, equal for columns of the same
        view. None: all base clusterings make one view.
    rank : float, default=1.0
        Price of the rank, lambda_1 of the paper.
    noise : float, default=10.0
        Price of errors of a view: lambda_2 of the paper times the number of instances, so that it means the
        same for small and large tables.
    max_iter : int, default=400
        Greatest number of steps.
    n_init : int, default=20
        Starts of k-means; the best is kept.

    Attributes
    ----------
    row_graph_ : ndarray of shape (n_distinct, n_distinct)
        The common graph between instances of two distinct label rows. Its rows, each entry times the number
        of instances of its column, sum to one.
    n_views_ : int
        Number of views with labels.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    A reconstruction. The paper was not at hand; its objective follows from descriptions of it and from
    programs of its successors. It is not certain that views differ from the common graph by errors (as here)
    and not from their products with it. Where this certainly differs from them: rows of a co-association
    are scaled to sum one, without which the constraint on the common graph contradicts them; it runs on
    distinct label rows with counts, which is exact; missing labels are allowed, and a pair that no base
    clustering of a view saw together is left free in that view. Prices were tuned with true classes in the
    papers of this family, and the window of useful ones is narrow: where errors are cheap they take
    everything, where they are dear the answer is that of a plain cut.

    Tables with more than 1000 distinct label rows are refused.

    References
    ----------
    Z. Tao, H. Liu, S. Li, Z. Ding, Y. Fu: From Ensemble Clustering to Multi-View Clustering. International
    Joint Conference on Artificial Intelligence, 2017.

    Examples
    --------
    >>> from consilience import MVEC
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = MVEC(n_clusters=2, views=["shop", "shop", "bank"], random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="to compare with papers",
        avoid="for work",
        cost="rows^3 a step",
        paper="Tao, Liu, Li, Ding, Fu: From Ensemble Clustering to Multi-View Clustering. IJCAI, 2017.",
        experimental=True,
    )
    # Two eigenproblems of rows x rows a step, some hundred steps: minutes at the limit.
    max_rows = 1_000

    views: Annotated[Any, "array-like"] | None = None
    rank: NonNegative = 1.0
    noise: Positive = 10.0
    max_iter: Count = 400
    n_init: Count = 20

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> MVECResult:
        return mvec(problem.rows, problem.n_clusters, rng=rng, **self._read(problem))

    def _read(self, problem: Problem) -> dict[str, Any]:
        """What the solver takes, with views by number."""
        return self._settings | {"views": read_views(self.views, problem)}

    def _learn(self, result: MVECResult, problem: Problem) -> None:
        self.row_graph_ = result.graph
        self.n_views_ = len(result.errors)
