"""Self-paced consensus on a bipartite graph (SCCBG): sure memberships first, doubtful ones later."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.coassociation import pair_shares
from consilience.core.compiled import compiled
from consilience.core.components import clusters_of_graph
from consilience.core.eigen import leading_eigenpairs
from consilience.core.parameters import Count, Positive, parameters
from consilience.core.tables import contingency, indicator
from consilience.registry import About

# How far sums of eigenvalues may be from whole numbers, as in the authors' program.
_CONNECTED = 1e-7
# Memberships below this are none, as in the authors' program.
_MEMBER = 1e-4
_FIRST_AGE, _FIRST_STRUCTURE = 0.5, 1.0
# Steps inside a step. The pace starts at a saddle, which takes many to leave.
_PACE_STEPS, _PACE_CHANGE = 1_000, 1e-6
_SWEEPS, _SWEEP_CHANGE = 1_000, 1e-9
_EPS = 1e-12


class SCCBGResult(NamedTuple):
    """What `sccbg` learned, on distinct rows."""

    labels: np.ndarray  # per row
    n_components: int  # of the graph
    memberships: np.ndarray  # S, (rows, base clusters)
    pace: np.ndarray  # W, (rows, base clusters)
    n_iter: int


def sccbg(
    rows: Rows,
    n_clusters: int,
    *,
    smoothness: float,
    max_iter: int,
    n_init: int,
    rng: np.random.RandomState,
) -> SCCBGResult:
    r"""Memberships near to those in the base clusters whose bipartite graph falls into `n_clusters` parts.

    .. math::
        \min_{W, S \in [0, 1]} \; \|W \circ (S - S_0)\|_F^2 + \gamma \sum_i \sum_{jk} A_{jk} W_{ij} W_{ik}
        (S_{ij} - S_{ik})^2 - \lambda \|W\|_1 + \mu \, tr(F^T \tilde L_S F)

    :math:`S_0` marks the members of the base clusters, :math:`A = S_0^T S_0 / n` their overlaps,
    :math:`\tilde L_S` is the normalised Laplacian of the graph of instances and base clusters. lambda doubles
    in every step; mu doubles while the graph has fewer than `n_clusters` components and halves while it has
    more. A base that did not see an instance puts no price on its memberships there. Row p stands for
    ``counts[p]`` instances, which have the same problem and so the same solution.

    Symbols: S_0 -> rows.codes (-1 = missing); S -> memberships; W -> pace; gamma -> smoothness;
    lambda -> age; mu -> structure.
    Cost: a step is up to 1000 passes over rows x base clusters^2, and an eigenproblem of all base clusters.
    """
    codes, offsets, c = rows.codes, rows.offsets, rows.weights
    first = indicator(codes, offsets).toarray()
    charged = np.repeat(codes >= 0, np.diff(offsets), axis=1).astype(float)
    overlap = smoothness * contingency(codes, offsets, c) / c.sum()
    np.fill_diagonal(overlap, 0.0)
    s, w = first, np.zeros_like(first)
    age, structure = _FIRST_AGE, _FIRST_STRUCTURE
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        if w.min() < 1.0:
            w = update_pace(w, s, charged * (s - first) ** 2, overlap, age)
        distance, values = _embed(s, c, n_clusters)
        if values[:n_clusters].sum() < n_clusters - _CONNECTED:
            structure *= 2.0
        elif values.sum() > n_clusters + 1 - _CONNECTED:
            structure /= 2.0
        else:
            break
        s = update_memberships(s, first, w, charged * w**2, overlap, 0.5 * structure * distance)
        s[s < _MEMBER] = 0.0
        age *= 2.0
    graph = (s * _reciprocal(c @ s)) @ s.T
    share = np.nan_to_num(pair_shares(rows))
    labels, n_components = clusters_of_graph(graph, share, c, n_clusters, n_init=n_init, rng=rng)
    return SCCBGResult(labels, n_components, s, w, n_iter)


def update_pace(w: np.ndarray, s: np.ndarray, own: np.ndarray, overlap: np.ndarray, age: float) -> np.ndarray:
    r"""Lower :math:`w^T M w - \lambda 1^T w` in 0..1, for every row with its own M, from the last w.

    M has the prices `own` on the diagonal and :math:`A_{jk} (s_j - s_k)^2` beside it; it is not definite, so
    this is a descent, not a solution. No entry of M is negative, so the row sums of M on a diagonal bound it
    from above; the minimum of that bound lies lower than w and treats all clusters alike.
    """
    w = w.copy()
    moving = np.arange(len(w))
    # Nothing against it: jump to one.
    bound = np.maximum(_pace_product(np.ones_like(w), s, own, overlap), _EPS)
    for _ in range(_PACE_STEPS):
        x = w[moving]
        slope = _pace_product(x, s[moving], own[moving], overlap) - 0.5 * age
        moved = np.clip(x - slope / bound[moving], 0.0, 1.0)
        w[moving] = moved
        moving = moving[np.abs(moved - x).max(axis=1) > _PACE_CHANGE]
        if not len(moving):
            break
    return w


def _pace_product(x: np.ndarray, s: np.ndarray, own: np.ndarray, overlap: np.ndarray) -> np.ndarray:
    """M x of every row."""
    return own * x + s**2 * (x @ overlap) + (s**2 * x) @ overlap - 2.0 * s * ((s * x) @ overlap)


def update_memberships(
    s: np.ndarray, first: np.ndarray, w: np.ndarray, own: np.ndarray, overlap: np.ndarray, pull: np.ndarray
) -> np.ndarray:
    r"""Rows of S: :math:`\min_{[0, 1]} \sum_j own_j (s_j - s_{0j})^2 + \sum_{jk} A_{jk} w_j w_k (s_j - s_k)^2
    + 2 \, pull \cdot s`, by coordinate descent."""
    found = s.copy()
    _descend(found, first, w, own, overlap, w @ overlap, pull)
    return found


@compiled(interpret=False)
def _descend(s, first, w, own, overlap, weight, pull):  # type: ignore[no-untyped-def]
    n_rows, width = s.shape
    for p in range(n_rows):
        near = np.zeros(width)  # sum_k A_jk w_k s_k
        for k in range(width):
            if w[p, k] * s[p, k] > 0.0:
                near += w[p, k] * s[p, k] * overlap[k]
        for _ in range(_SWEEPS):
            change = 0.0
            for j in range(width):
                stiff = own[p, j] + 2.0 * w[p, j] * weight[p, j]
                target = own[p, j] * first[p, j] + 2.0 * w[p, j] * near[j] - pull[p, j]
                best = min(target / stiff, 1.0) if target > 0.0 else 0.0
                step = best - s[p, j]
                if step != 0.0:
                    s[p, j] = best
                    near += w[p, j] * step * overlap[j]
                    change = max(change, abs(step))
            if change < _SWEEP_CHANGE:
                break


def _embed(s: np.ndarray, c: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances of rows and base clusters in the leading eigenvectors, and one eigenvalue more."""
    rows, columns = _reciprocal(s.sum(axis=1)), np.sqrt(_reciprocal(c @ s))
    scaled = s * columns
    gram = (scaled * (c * rows)[:, None]).T @ scaled
    values, vectors = leading_eigenpairs(gram, min(n_clusters + 1, len(gram)))
    v = vectors[:, :n_clusters]
    root = np.sqrt(np.maximum(values[:n_clusters], _EPS))  # a direction without weight is none of the graph
    u = rows[:, None] * (scaled @ v) / root
    v = columns[:, None] * v
    squares = np.einsum("pd,pd->p", u, u)[:, None] + np.einsum("jd,jd->j", v, v)
    return np.maximum(0.5 * (squares - 2.0 * u @ v.T), 0.0), values


def _reciprocal(x: np.ndarray) -> np.ndarray:
    """One over each entry; zero for a row or base cluster that lost all memberships."""
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0.0)


@parameters
class SCCBG(LabelMethod):
    """Self-paced ensemble on a bipartite graph: memberships that are sure count first, doubtful ones later.

    Instances and base clusters are the two sides of a graph. Its links, the memberships, are changed as
    little as possible until the graph falls into `n_clusters` parts; links that fit badly to those of
    overlapping base clusters get a low weight at first. Use it on ensembles of moderate size in which single
    memberships are doubtful, as an alternative to :class:`CESHL`, which edits the same memberships by another
    search. Prefer :class:`LWGP`, which cuts a graph of the same kind in one step, for anything large, and
    :class:`DAL` where so many labels are missing that some instances share no base cluster with others.

    Parameters
    ----------
    smoothness : float, default=1.0
        How alike the memberships of an instance in overlapping base clusters become. It is gamma of the
        paper times the number of instances, so that it means the same for small and large tables.
    max_iter : int, default=20
        Greatest number of steps.
    n_init : int, default=10
        Starts of the normalised cut, which is only used where the graph does not have `n_clusters`
        components.

    Attributes
    ----------
    row_memberships_ : ndarray of shape (n_distinct, n_base_clusters)
        The learned memberships of distinct label rows in all base clusters, 0 to 1; clusters of one base
        clustering after those of the other.
    row_pace_ : ndarray of shape (n_distinct, n_base_clusters)
        How much every membership counted in the end, 0 to 1.
    n_components_ : int
        Connected components of the learned graph. Where it is `n_clusters`, they are the clusters; otherwise
        the clusters are a normalised cut.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    Where this differs from the authors' program: it runs on distinct label rows with counts, which is exact;
    the weights of memberships are a problem that is not convex, solved here by a descent that treats all
    base clusters alike, so that neither their order nor their names matter; where the graph does not have
    `n_clusters` components after the last step, a normalised cut gives so many clusters; missing labels are
    allowed, and a base clustering that did not see an instance puts no price on its memberships there.

    Tables with more than 3000 distinct label rows are refused.

    References
    ----------
    P. Zhou, L. Du, X. Li: Self-paced Consensus Clustering with Bipartite Graph. International Joint
    Conference on Artificial Intelligence, 2020.

    Examples
    --------
    >>> from consilience import SCCBG
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = SCCBG(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="doubtful single memberships",
        avoid="gaps that leave islands",
        cost="rows x base clusters^2",
        paper="Zhou, Du, Li: Self-paced Consensus Clustering with Bipartite Graph. IJCAI, 2020.",
    )
    # A quadratic program of the size of all base clusters for every row and step: minutes at the limit.
    max_rows = 3_000
    max_base_clusters = MAX_BASE_CLUSTERS

    smoothness: Positive = 1.0
    max_iter: Count = 20
    n_init: Count = 10

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> SCCBGResult:
        return sccbg(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: SCCBGResult, problem: Problem) -> None:
        given = problem.places
        self.row_memberships_ = result.memberships[:, given]
        self.row_pace_ = result.pace[:, given]
        self.n_components_ = result.n_components
