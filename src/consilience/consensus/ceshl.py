"""Structured hypergraph learning (CESHL): members of base clusters change until they fall into groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.coassociation import pair_shares
from consilience.core.components import clusters_of_graph, component_embedding
from consilience.core.parameters import Count, Positive, parameters
from consilience.core.simplex import minimize_in_box
from consilience.core.tables import contingency, indicator, scatter
from consilience.registry import About

_FIRST_RHO = 100.0
_SEARCH = {"maxcor": 5, "maxiter": 20, "gtol": 1e-3, "ftol": 0.0}
# A hyperedge, or an instance, that lost all members is divided by this.
_EPS = float(np.finfo(float).eps)


class CESHLResult(NamedTuple):
    """What `ceshl` learned, on distinct rows."""

    labels: np.ndarray  # per row
    n_components: int  # of the hypergraph
    hyperedges: np.ndarray  # H, (rows, base clusters)
    weights: np.ndarray  # w, per base cluster
    n_iter: int


def ceshl(
    rows: Rows,
    n_clusters: int,
    *,
    smoothness: float,
    max_iter: int,
    n_init: int,
    rng: np.random.RandomState,
) -> CESHLResult:
    r"""A hypergraph near to that of the base clusters whose graph falls into `n_clusters` components.

    .. math::
        \min_{H \in [0, 1]} \; \|(H - H_0) \, diag(w)\|_F^2 - \rho \, tr(Y^T D_v^{-1/2} H W D_e^{-1} H^T
        D_v^{-1/2} Y), \qquad w = \arg\min_{[0, 1]} w^T L_c w + \lambda \|w - q\|^2

    :math:`H_0` marks the members of every base cluster, :math:`L_c` is the normalised Laplacian of their
    overlaps, q the mean co-association inside each. Y are the eigenvectors of the smallest eigenvalues of
    :math:`D_v - H W D_e^{-1} H^T`; rho doubles while there are fewer than `n_clusters` components and
    halves while there are more. A missing label marks no member. Row p stands for ``counts[p]`` instances:
    the search runs in H times the root of the counts, in which its inner products are those of instances.

    Symbols: H_0 -> rows.codes (-1 = missing); H -> hyperedges; w -> weights; lambda -> smoothness.
    Cost: a step is rows^3 and 20 passes over rows x base clusters x n_clusters.
    """
    c = rows.weights
    first = indicator(rows.codes, rows.offsets).toarray()
    share = np.nan_to_num(pair_shares(rows))
    w = cluster_weights(rows, first, share, smoothness)
    root = np.sqrt(c)[:, None]
    h, rho = first, _FIRST_RHO
    y, _ = component_embedding(_graph(h, w, c), c, n_clusters)
    bounds = [(0.0, top) for top in np.repeat(root[:, 0], first.shape[1])]
    for step in range(max_iter):
        found = minimize(
            _objective, (root * h).ravel(), (first, w, c, y, rho), "L-BFGS-B", jac=True, bounds=bounds,
            options=_SEARCH,
        )  # fmt: skip
        h = np.clip(found.x.reshape(first.shape) / root, 0.0, 1.0)
        graph = _graph(h, w, c)
        embedding, factor = component_embedding(graph, c, n_clusters)
        rho *= factor
        if factor >= 1.0:  # with more components than clusters, the last embedding is kept
            y = embedding
        if step and factor == 1.0:
            break
    labels, n_components = clusters_of_graph(graph, share, c, n_clusters, n_init=n_init, rng=rng)
    return CESHLResult(labels, n_components, h, w, step + 1)


def cluster_weights(rows: Rows, first: np.ndarray, share: np.ndarray, smoothness: float) -> np.ndarray:
    """w: smooth over clusters that overlap, near the mean co-association of their members."""
    codes, offsets, c = rows.codes, rows.offsets, rows.weights
    overlaps = contingency(codes, offsets, c)
    sizes = np.diag(overlaps)
    inside = scatter(codes, offsets, c, share)  # per cluster and row, the sum of its members' shares
    quality = np.einsum("cp,pc,p->c", inside, first, c) / sizes**2
    root = np.sqrt(overlaps.sum(axis=1))
    laplacian = np.eye(len(sizes)) - overlaps / root / root[:, None]
    return minimize_in_box(laplacian + smoothness * np.eye(len(sizes)), smoothness * quality)


def _graph(h: np.ndarray, w: np.ndarray, c: np.ndarray) -> np.ndarray:
    """H W D_e^-1 H^T, between instances."""
    return (h * (w / np.maximum(c @ h, _EPS))) @ h.T


def _objective(
    x: np.ndarray, first: np.ndarray, w: np.ndarray, c: np.ndarray, y: np.ndarray, rho: float
) -> tuple[float, np.ndarray]:
    """Value and gradient in H times the root of the counts."""
    root = np.sqrt(c)[:, None]
    h = x.reshape(first.shape) / root
    degrees, sizes = np.maximum(h @ w, _EPS), np.maximum(c @ h, _EPS)
    scaled = y / np.sqrt(degrees)[:, None]  # D_v^-1/2 Y
    mixed = h.T @ (c[:, None] * scaled)
    norms = np.einsum("ek,ek->e", mixed, mixed)
    change = (h - first) * w
    value = float(c @ np.einsum("pe,pe->p", change, change) - rho * (w / sizes) @ norms)
    pull = -2.0 * rho * (w / sizes)[:, None] * mixed
    through_degrees = -0.5 * np.einsum("pk,pk->p", scaled, h @ pull) / degrees
    slope = 2.0 * change * w + scaled @ pull.T + rho * w * norms / sizes**2 + through_degrees[:, None] * w
    return value, (root * slope).ravel()


@parameters
class CESHL(LabelMethod):
    """Structured hypergraph learning: base clusters lose and gain members until they fall into groups.

    Every base cluster is a hyperedge, weighted by how much its members belong together and by the clusters
    it overlaps with. Memberships are changed as little as possible so that the hypergraph falls into
    `n_clusters` components. Use it for small ensembles with few clusters, where editing single doubtful
    memberships matters. Prefer :class:`LWGP`, which cuts a similar graph in one step, for anything large, and
    any other method where many labels are missing.

    Parameters
    ----------
    smoothness : float, default=10.0
        How near the weight of a base cluster stays to the mean co-association of its members (lambda of the
        paper); small values make the weights of overlapping clusters equal. The default had about the best
        mean over six pools in a grid of five values.
    max_iter : int, default=100
        Greatest number of steps.
    n_init : int, default=10
        Starts of the normalised cut, which is only used where the hypergraph does not have `n_clusters`
        components.

    Attributes
    ----------
    cluster_weights_ : list of ndarray, one per base clustering with labels
        Weight of each of its clusters, 0 to 1, in the order of ``partitions_.categories``.
    row_memberships_ : ndarray of shape (n_distinct, n_base_clusters)
        The learned memberships of distinct label rows in all base clusters, 0 to 1; clusters of one base
        clustering after those of the other.
    n_components_ : int
        Connected components of the learned hypergraph. Where it is `n_clusters`, they are the clusters;
        otherwise the clusters are a normalised cut.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    Where this differs from the authors' program: it runs on distinct label rows with counts, in a scaling in
    which the search takes the same steps as on all instances, except that eigenvectors never set equal
    instances apart; where the hypergraph does not have `n_clusters` components after the last step, a
    normalised cut gives so many clusters; missing labels are allowed and mark no member. As in the program,
    the eigenvectors are those of the unnormalised Laplacian, while the search pulls on the normalised one.
    The search stops early by design, so another implementation of it may give other labels.

    Tables with more than 3000 distinct label rows are refused.

    References
    ----------
    P. Zhou, X. Wang, L. Du, X. Li: Clustering Ensemble via Structured Hypergraph Learning. Information
    Fusion, 2022.

    Examples
    --------
    >>> from consilience import CESHL
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = CESHL(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="small ensembles, few clusters",
        avoid="many labels missing",
        cost="rows^3 a step",
        paper="Zhou et al.: Clustering Ensemble via Structured Hypergraph Learning. Inf. Fusion, 2022.",
    )
    # An eigenproblem of rows x rows a step, and a table of rows x base clusters with its history.
    max_rows = 3_000
    max_base_clusters = MAX_BASE_CLUSTERS

    smoothness: Positive = 10.0
    max_iter: Count = 100
    n_init: Count = 10

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> CESHLResult:
        return ceshl(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: CESHLResult, problem: Problem) -> None:
        self.cluster_weights_ = problem.per_cluster(result.weights)
        self.row_memberships_ = result.hyperedges[:, problem.places]
        self.n_components_ = result.n_components
