"""Structured hypergraph learning (CESHL): members of base clusters change until they fall into groups."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size, check_rows
from consilience.consensus.lwgp import check_base_clusters
from consilience.core.coassociation import coassociation
from consilience.core.components import clusters_of_graph
from consilience.core.eigen import smallest_eigenpairs
from consilience.core.simplex import minimize_in_box
from consilience.core.tables import contingency, indicator, scatter

# An eigenproblem of rows x rows a step, and a table of rows x base clusters with its history.
_MAX_ROWS = 3_000
# Eigenvalue sums that count as zero, as in the authors' program: of the first c, and of the first c + 1.
_ZERO, _STILL_ZERO = 1e-9, 1e-11
_FIRST_RHO = 100.0
_SEARCH = {"maxcor": 5, "maxiter": 20, "gtol": 1e-3, "ftol": 0.0}
# A hyperedge, or an instance, that lost all members is divided by this.
_EPS = float(np.finfo(float).eps)


class CESHLResult(NamedTuple):
    """What `ceshl` learned, on distinct rows."""

    hyperedges: np.ndarray  # H, (rows, base clusters)
    weights: np.ndarray  # w, per base cluster
    graph: np.ndarray  # between instances of two rows
    evidence: np.ndarray  # co-association, between rows
    n_iter: int


def ceshl(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    smoothness: float,
    max_iter: int,
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

    Symbols: H_0 -> codes (-1 = missing); H -> hyperedges; w -> weights; lambda -> smoothness.
    Cost: a step is rows^3 and 20 passes over rows x base clusters x n_clusters.
    """
    c = counts.astype(float)
    first = indicator(codes, offsets).toarray()
    share = np.nan_to_num(coassociation(indicator(codes, offsets), codes >= 0, normalize="pairs"))
    w = cluster_weights(codes, offsets, c, share, smoothness)
    root = np.sqrt(c)[:, None]
    h, rho = first, _FIRST_RHO
    y, _ = _embed(_graph(h, w, c), h @ w, c, n_clusters)
    bounds = [(0.0, top) for top in np.repeat(root[:, 0], first.shape[1])]
    for step in range(max_iter):
        found = minimize(
            _objective, (root * h).ravel(), (first, w, c, y, rho), "L-BFGS-B", jac=True, bounds=bounds,
            options=_SEARCH,
        )  # fmt: skip
        h = np.clip(found.x.reshape(first.shape) / root, 0.0, 1.0)
        previous = y
        graph = _graph(h, w, c)
        y, values = _embed(graph, h @ w, c, n_clusters)
        if values[:n_clusters].sum() > _ZERO:
            rho *= 2.0
        elif len(values) > n_clusters and values.sum() < _STILL_ZERO:
            rho /= 2.0
            y = previous
        elif step:
            break
    return CESHLResult(h, w, graph, share, step + 1)


def cluster_weights(
    codes: np.ndarray, offsets: np.ndarray, c: np.ndarray, share: np.ndarray, smoothness: float
) -> np.ndarray:
    """w: smooth over clusters that overlap, near the mean co-association of their members."""
    overlaps = contingency(codes, offsets, c)
    sizes = np.diag(overlaps)
    inside = scatter(codes, offsets, c, share)  # per cluster and row, the sum of its members' shares
    quality = np.einsum("cp,pc,p->c", inside, indicator(codes, offsets).toarray(), c) / sizes**2
    root = np.sqrt(overlaps.sum(axis=1))
    laplacian = np.eye(len(sizes)) - overlaps / root / root[:, None]
    return minimize_in_box(laplacian + smoothness * np.eye(len(sizes)), smoothness * quality)


def _graph(h: np.ndarray, w: np.ndarray, c: np.ndarray) -> np.ndarray:
    """H W D_e^-1 H^T, between instances."""
    return (h * (w / np.maximum(c @ h, _EPS))) @ h.T


def _embed(
    graph: np.ndarray, degrees: np.ndarray, c: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors of the smallest Laplacian eigenvalues, equal on equal rows, and one eigenvalue more."""
    root = np.sqrt(c)
    laplacian = np.diag(degrees) - graph * root * root[:, None]
    values, vectors = smallest_eigenpairs(laplacian, n_clusters + 1)
    return vectors[:, :n_clusters] / root[:, None], values


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


class CESHL(LabelsMixin, BaseEstimator):
    """Structured hypergraph learning: base clusters lose and gain members until they fall into groups.

    Every base cluster is a hyperedge, weighted by how much its members belong together and by the clusters
    it overlaps with. Memberships are changed as little as possible so that the hypergraph falls into
    `n_clusters` components. Use it for small ensembles with few clusters, where editing single doubtful
    memberships matters. Prefer :class:`LWGP`, which cuts a similar graph in one step, for anything large, and
    any other method where many labels are missing.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    smoothness : float, default=10.0
        How near the weight of a base cluster stays to the mean co-association of its members (lambda of the
        paper); small values make the weights of overlapping clusters equal. The default had about the best
        mean over six pools in a grid of five values.
    max_iter : int, default=100
        Greatest number of steps.
    n_init : int, default=10
        Starts of the normalised cut, which is only used where the hypergraph does not have `n_clusters`
        components.
    unobserved : {"error", "noise", "largest"}, default="error"
        An instance that no base clustering saw: refuse, give it the label -1, or that of the largest cluster.
    random_state : int, RandomState instance or None, default=None
        Draws the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster.
    confidence_ : ndarray of shape (n_instances,)
        Estimated probability that the instance belongs to its cluster, from its labels; see
        :func:`consilience.diagnostics.confidence`. 0 for an unobserved instance.
    cluster_weights_ : list of ndarray, one per base clustering with labels
        Weight of each of its clusters, 0 to 1, in the order of ``partitions_.categories``.
    memberships_ : ndarray of shape (n_distinct, n_base_clusters)
        The learned memberships of distinct label rows in all base clusters, 0 to 1.
    n_components_ : int
        Connected components of the learned hypergraph. Where it is `n_clusters`, they are the clusters;
        otherwise the clusters are a normalised cut.
    n_iter_ : int
        Number of steps.
    n_clusters_ : int
        Number of clusters found; below `n_clusters` only where there are fewer distinct label rows.
    cluster_count_ : ClusterCount
        How the number of clusters was found; only where `n_clusters` is "auto".
    partitions_ : Partitions
        The table as it was read.
    n_features_in_ : int
        Number of base clusterings.
    feature_names_in_ : ndarray of str
        Names of the base clusterings, where a frame was given.

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
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = CESHL(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": N_CLUSTERS,
        "smoothness": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "unobserved": [StrOptions({"error", "noise", "largest"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        smoothness: float = 10.0,
        max_iter: int = 100,
        n_init: int = 10,
        unobserved: str = "error",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.smoothness = smoothness
        self.max_iter = max_iter
        self.n_init = n_init
        self.unobserved = unobserved
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> CESHL:
        """Merge the base clusterings.

        Parameters
        ----------
        X : array, nested list, frame, dict or list of series, or Partitions
            The table of base labels; see :meth:`consilience.Partitions.of`.
        y : ignored
            There for scikit-learn's interface.
        """
        partitions = self._read_labels(X, self.unobserved)
        check_base_clusters(partitions, "CESHL")
        rng = random_source(self.random_state)
        known = partitions.take_seen()
        rows = known.distinct
        check_rows(len(rows.counts), _MAX_ROWS, "CESHL")
        k = self._feasible_clusters(known, rng)
        with threadpool_limits(limits=1, user_api="blas"):  # the same answer whatever the threads
            result = ceshl(
                rows.codes,
                rows.counts,
                known.offsets,
                k,
                smoothness=self.smoothness,
                max_iter=self.max_iter,
            )
            found, self.n_components_ = clusters_of_graph(
                result.graph, result.evidence, rows.counts.astype(float), k, n_init=self.n_init, rng=rng
            )
        labels = np.argsort(by_size(found, rows.counts, k))[found]
        self._answer(partitions, known, labels, k)
        self.cluster_weights_ = np.split(result.weights, known.offsets[1:-1])
        self.memberships_ = result.hyperedges
        self.n_iter_ = result.n_iter
        return self
