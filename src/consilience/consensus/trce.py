"""Tri-level robust clustering ensemble (TRCE): doubtful instances, pairs and base clusterings count less."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.metrics import euclidean_distances

from consilience.consensus.base import LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.certainty import certain_coassociation
from consilience.core.components import clusters_of_graph, component_embedding
from consilience.core.parameters import Count, Positive, parameters
from consilience.core.simplex import project_rows
from consilience.core.tables import cluster_sizes, indicator, scatter
from consilience.registry import About

# Difficulties below this are rounding: all base clusterings agree with the learned graph about the row.
_EASY = 1e-12
_EPS = float(np.finfo(float).eps)
# A base clustering equal to the learned graph would get an infinite weight.
_LEAST_DISTANCE = 1e-6


class TRCEResult(NamedTuple):
    """What `trce` learned, on distinct rows."""

    labels: np.ndarray  # per row
    n_components: int  # of the graph
    graph: np.ndarray  # S between instances of two rows
    pace: np.ndarray  # w, per row
    weights: np.ndarray  # reciprocals of a, per base
    n_iter: int


def trce(
    rows: Rows,
    n_clusters: int,
    *,
    gamma: float,
    max_iter: int,
    n_init: int,
    rng: np.random.RandomState,
) -> TRCEResult:
    r"""A graph near to the transition matrices of the bases that falls into `n_clusters` components.

    .. math::
        \min \; \sum_k \frac{1}{a_k} \sum_i w_i^2 \, KL(A^{(k)}_{i \cdot} \| B_{i \cdot}) - \lambda \|w\|_1
        + \gamma \|S - B\|_F^2 + \rho \, tr(F^T L_S F)

    Rows of B and S are probabilities, a is on the simplex, w in 0..1. :math:`A^{(k)}` goes from an instance
    to any of its cluster in base k with equal probability. Row p stands for ``counts[p]`` instances: entries
    are those between instances, so sums over instances are sums over rows with counts.

    Symbols: A^(k) -> rows.codes[:, k] (-1 = missing); B -> b; S -> graph; F -> f; w -> pace;
    1 / a -> weights; lambda -> age, which grows from the tenth of instances that is easiest.
    Cost: a step is rows^3, and rows^2 x bases.
    """
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    m = codes.shape[1]
    # A row that few bases saw: those stand for the others.
    share = m / (codes >= 0).sum(axis=1)
    sizes = cluster_sizes(codes, offsets, w)
    marks = indicator(codes, offsets)
    seen = w @ (codes >= 0)
    b = (marks.multiply(1.0 / sizes).tocsr() @ marks.T).toarray() * share[:, None] / m
    b = s = 0.5 * (b + b.T)
    f, _ = component_embedding(s, w, n_clusters)
    a, rho, age = np.full(m, 1.0 / m), 1.0, 0.0
    kl = _divergence(rows, sizes, b)
    for step in range(max_iter):
        difficulty = np.maximum(kl @ (1.0 / a) * share, 0.0)
        age = 1.1 * age if step else 2.0 * _easiest(difficulty, w)
        pace = np.where(2.0 * difficulty <= age, 1.0, age / np.maximum(2.0 * difficulty, _EPS))
        distance = euclidean_distances(f, squared=True)
        each = 1.0 / (sizes * np.repeat(a, np.diff(offsets)))
        h = (marks.multiply(each).tocsr() @ marks.T).toarray() * (pace**2 * share)[:, None]
        b = _update_b(h, rho * distance, w)
        s = project_rows(b - rho / (2.0 * gamma) * distance, w)
        s = 0.5 * (s + s.T)
        kl = _divergence(rows, sizes, b)
        a = _update_distances(kl, pace, w, w.sum() / seen)
        embedding, factor = component_embedding(s, w, n_clusters)
        rho *= factor
        if factor >= 1.0:  # with more components than clusters, the last embedding is kept
            f = embedding
        if step and factor == 1.0:
            break
    alike = certain_coassociation(rows)
    labels, n_components = clusters_of_graph(s, alike, w, n_clusters, n_init=n_init, rng=rng)
    return TRCEResult(labels, n_components, s, pace, 1.0 / a / np.sum(1.0 / a), step + 1)


def _divergence(rows: Rows, sizes: np.ndarray, b: np.ndarray) -> np.ndarray:
    """KL(A_i || B_i) for every row and base; zero where the base did not see the row."""
    # All entries of A_i are one over the size of its cluster, so the divergence is a mean of logarithms.
    logs = np.ascontiguousarray(np.log(np.maximum(b, _EPS)).T)
    sums = scatter(rows.codes, rows.offsets, rows.weights, logs)
    place = np.maximum(rows.codes, 0) + rows.offsets[:-1]
    found = -np.log(sizes[place]) - sums[place, np.arange(len(b))[:, None]] / sizes[place]
    return np.where(rows.codes >= 0, found, 0.0)


def _easiest(difficulty: np.ndarray, w: np.ndarray) -> float:
    """Difficulty that a tenth of the instances does not exceed; if it is zero, the least that is not."""
    order = np.argsort(difficulty, kind="stable")
    rank = max(np.floor(w.sum() / 10.0), 1.0)
    found = difficulty[order[np.searchsorted(np.cumsum(w[order]), rank)]]
    return float(found) if found > _EASY else float(difficulty[difficulty > _EASY].min(initial=1.0))


def _update_b(h: np.ndarray, penalty: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Rows b_j = h_j / (penalty_j + t), with the t at which they sum to one over all instances.

    The reciprocal of the sum rises with t and is concave, so Newton's steps from below never overshoot.
    """
    mass = h * w
    t = np.maximum(mass[np.diag_indices_from(mass)], _EPS)  # no penalty on itself: the root is not below
    for _ in range(100):
        parts = mass / (penalty + t[:, None])
        total = parts.sum(axis=1)
        slope = (parts / (penalty + t[:, None])).sum(axis=1)
        step = total * (total - 1.0) / slope
        t = np.maximum(t + step, _EPS)
        if np.all(np.abs(step) <= 1e-14 * t):
            break
    return h / (penalty + t[:, None])


def _update_distances(kl: np.ndarray, pace: np.ndarray, w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """a_k proportional to the root of its weighted divergence, as if every base had seen all instances."""
    a = np.sqrt(np.maximum((w * pace**2) @ kl * scale, 0.0))
    a = np.maximum(a, _LEAST_DISTANCE * a.mean()) if a.any() else np.ones_like(a)
    return a / a.sum()


@parameters
class TRCE(LabelMethod):
    """Tri-level robust clustering ensemble: a learned graph whose components are the clusters.

    Every base clustering is a random walk inside its clusters. A common walk is learned that stays near to
    them and falls apart into `n_clusters` pieces. Instances on which the base clusterings disagree enter
    late, and base clusterings far from the result count less. Use it for ensembles of moderate size, as an
    alternative to :class:`SPCE`. Prefer :class:`LWGP` or :class:`DAL` above some thousand distinct label
    rows.

    Parameters
    ----------
    gamma : float, default=1.0
        How closely the graph that falls apart must follow the common walk (lambda of the paper). Large
        values need many steps to fall apart; small ones leave clusters of very unequal sizes.
    max_iter : int, default=20
        Greatest number of steps.
    n_init : int, default=10
        Starts of the normalised cut, which is only used where the graph does not have `n_clusters`
        components.

    Attributes
    ----------
    base_weights_ : ndarray of shape (n_partitions,)
        How much each base clustering counts, scaled to sum to one. 0 for a column without labels.
    reliability_ : ndarray of shape (n_instances,)
        How much every instance counts, 0 to 1; 0 for an unobserved instance.
    row_graph_ : ndarray of shape (n_distinct, n_distinct)
        The learned graph, between instances of two distinct label rows.
    n_components_ : int
        Connected components of the graph. Where it is `n_clusters`, they are the clusters; otherwise the
        clusters are a normalised cut.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    Where this differs from the authors' program: the difficulty of an instance sums over all base
    clusterings, as the paper says (the program reads the last one only, by a wrong index); where the graph
    does not have `n_clusters` components after the last step, a normalised cut gives so many clusters; 20
    steps instead of 10. It runs on distinct label rows with counts, which is exact as long as the
    eigenvectors that are used are equal on equal instances. Missing labels are allowed: the base
    clusterings that saw an instance stand for the others, and distances of base clusterings are scaled to
    all instances.

    The paper tunes `gamma` with true classes over 1e-5 to 1e5, for every run; the default is the best mean
    over six pools and a grid of five values.

    Tables with more than 3000 distinct label rows are refused.

    References
    ----------
    P. Zhou, L. Du, Y.-D. Shen, X. Li: Tri-level Robust Clustering Ensemble with Multiple Graph Learning. AAAI
    Conference on Artificial Intelligence, 2021.

    Examples
    --------
    >>> from consilience import TRCE
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = TRCE(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="alternative to SPCE",
        avoid="more is expected of it than of LWGP with labels missing",
        cost="rows^3 a step",
        paper="Zhou et al.: Tri-level Robust Clustering Ensemble with Multiple Graph Learning. AAAI, 2021.",
    )
    weighs_bases = True
    # An eigenproblem of rows x rows a step: minutes at the limit.
    max_rows = 3_000

    gamma: Positive = 1.0
    max_iter: Count = 20
    n_init: Count = 10

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> TRCEResult:
        return trce(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: TRCEResult, problem: Problem) -> None:
        self.base_weights_ = problem.per_base(result.weights)
        self.reliability_ = problem.per_instance(result.pace)
        self.row_graph_ = result.graph
        self.n_components_ = result.n_components
