"""Consensus by nonnegative matrix factorisation (NMFC): soft clusters that rebuild the consensus matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.consensus.kc import kc
from consilience.core.canonical import Rows
from consilience.core.discretize import fill_empty_clusters
from consilience.core.parameters import Count, NonNegative, parameters
from consilience.core.sweeps import Sweeps
from consilience.core.tables import contingency, gather, scatter
from consilience.registry import About

# What a start gives to the clusters that a row is not in: zeros would stay for ever.
_ELSEWHERE = 0.2
# Denominators of the multiplicative steps are sums of products that may all vanish.
_TINY = 1e-12


Times = Callable[[np.ndarray], np.ndarray]


class NMFCResult(NamedTuple):
    """What `nmfc` learned."""

    labels: np.ndarray  # per row
    membership: np.ndarray  # Q S^(1/2), per row and cluster
    error: np.ndarray  # relative squared error after every step
    n_iter: int
    converged: bool


def nmfc(
    rows: Rows,
    n_clusters: int,
    *,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
) -> NMFCResult:
    r"""Nonnegative factors of the consensus matrix.

    .. math::
        \min_{Q, S \ge 0} \|W^{1/2} (M - Q S Q^T) W^{1/2}\|^2 \quad s.t. \; Q^T W Q = I, S \text{ diagonal}

    .. math:: M_{pr} = \frac{1}{\sqrt{m_p m_r}} \sum_i [c_i(p) = c_i(r)]

    :math:`m_p` is the number of labels of row p, :math:`W` the counts: row p stands for ``counts[p]`` equal
    rows. M is the product of a scaled indicator with itself and is never built. The multiplicative steps keep
    the constraint only in the limit, so the error need not fall at each of them.

    Symbols: c_i(p) -> rows.codes[p, i] (-1 = missing); Q S^(1/2) -> membership.
    Cost: rows x bases x n_clusters a step, and one k-means on the consensus matrix for the start.
    """
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    scale = 1.0 / np.sqrt(rows.weigh_bases(codes >= 0))

    def times(values: np.ndarray) -> np.ndarray:  # M W values
        sums = rows.weigh_clusters(scatter(codes, offsets, w * scale, values))
        return scale[:, None] * gather(codes, offsets, sums)

    q = np.eye(n_clusters)[kc(rows, n_clusters, n_init=n_init, rng=rng).labels] + _ELSEWHERE
    q /= np.sqrt(w @ q**2)
    s = np.einsum("p,pc,pc->c", w, q, times(q))
    overlap = contingency(codes, offsets, w * scale**2) ** 2
    total = float(np.sum(rows.weigh_clusters(rows.weigh_clusters(overlap).T)))
    sweeps = Sweeps(max_iter)
    for _ in sweeps:
        q = _update_memberships(q, s, w, times)
        s, square = _update_sizes(q, s, w, times)
        before, now = sweeps.add((total + square) / total)
        sweeps.converged = abs(before - now) <= tol * now
    membership = q * np.sqrt(s)
    fit = membership.max(axis=1) / np.maximum(membership.sum(axis=1), _TINY)
    labels = fill_empty_clusters(membership.argmax(axis=1), fit, n_clusters)
    return NMFCResult(labels, membership, *sweeps.outcome)


def _update_memberships(q: np.ndarray, s: np.ndarray, w: np.ndarray, times: Times) -> np.ndarray:
    """Q <- Q o (M W Q S / Q Q^T W M W Q S)^(1/2)."""
    pull = times(q) * s
    return q * np.sqrt(pull / np.maximum(q @ ((w[:, None] * q).T @ pull), _TINY))


def _update_sizes(q: np.ndarray, s: np.ndarray, w: np.ndarray, times: Times) -> tuple[np.ndarray, float]:
    """S <- S o (Q^T W M W Q / Q^T W Q S Q^T W Q)^(1/2) on the diagonal, and the error less ||M||^2."""
    weighted = w[:, None] * q
    gram = weighted.T @ q
    pull = np.einsum("pc,pc->c", weighted, times(q))
    s = s * np.sqrt(pull / np.maximum(np.einsum("cd,d,dc->c", gram, s, gram), _TINY))
    return s, float(np.einsum("cd,d,dc,c->", gram, s, gram, s) - 2.0 * pull @ s)


@parameters
class NMFC(LabelMethod):
    """Consensus by nonnegative matrix factorisation: soft clusters that rebuild the consensus matrix.

    How often two instances share a cluster is explained by what clusters both belong to, and how much. Use it
    when you want memberships without a probability model, at any number of instances. Prefer
    :class:`MixtureConsensus` for memberships that are probabilities, and :class:`HBGF` where half of the
    labels or more are missing.

    Parameters
    ----------
    n_init : int, default=10
        Starts of the k-means that the factors start from.
    max_iter : int, default=200
        Limit of steps.
    tol : float, default=1e-6
        Stop when the error changes by less than this share of itself.

    Attributes
    ----------
    membership_ : ndarray of shape (n_instances, n_clusters)
        How much the instance belongs to every cluster, shares that sum to one; 0 for an unobserved instance.
    reconstruction_error_ : ndarray of shape (n_iter,)
        Share of the consensus matrix, squared, that the factors leave unexplained, after every step.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    Where this differs from the paper: it starts at k-means on the consensus matrix instead of at random,
    which left no larger error on most tables tried; it runs on distinct label rows with counts, which is
    exact; and it never builds the matrix. With missing labels two instances are as alike as the number of
    clusters they share over the geometric mean of their numbers of labels. The steps are those of the paper
    and do not lower the error at every step.

    References
    ----------
    T. Li, C. Ding, M. I. Jordan: Solving Consensus and Semi-supervised Clustering Problems Using Nonnegative
    Matrix Factorization. ICDM, 2007.

    Examples
    --------
    >>> from consilience import NMFC
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = NMFC(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    """

    about = About(
        use="soft clusters without a probability model",
        avoid="half of the labels missing",
        cost="rows x bases x clusters a step",
        paper="Li, Ding, Jordan: Solving Consensus and Semi-supervised Clustering Problems Using Nonnegative "
        "Matrix Factorization. ICDM, 2007.",
        linear=True,
    )
    any_weights = True
    max_base_clusters = MAX_BASE_CLUSTERS

    n_init: Count = 10
    max_iter: Count = 200
    tol: NonNegative = 1e-6

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> NMFCResult:
        return nmfc(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: NMFCResult, problem: Problem) -> None:
        shares = result.membership[:, problem.order]
        shares = shares / np.maximum(shares.sum(axis=1), _TINY)[:, None]
        self.membership_ = problem.per_instance(shares)
        self.reconstruction_error_ = result.error
