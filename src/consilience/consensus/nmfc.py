"""Consensus by nonnegative matrix factorisation (NMFC): soft clusters that rebuild the consensus matrix."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size
from consilience.consensus.kc import kc
from consilience.consensus.lwgp import check_base_clusters
from consilience.core.discretize import fill_empty_clusters
from consilience.core.tables import contingency, gather, scatter

# What a start gives to the clusters that a row is not in: zeros would stay for ever.
_ELSEWHERE = 0.2
# Denominators of the multiplicative steps are sums of products that may all vanish.
_TINY = 1e-12


class NMFCResult(NamedTuple):
    """What `nmfc` learned."""

    labels: np.ndarray  # per row
    membership: np.ndarray  # Q S^(1/2), per row and cluster
    error: np.ndarray  # relative squared error after every step
    n_iter: int


def nmfc(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
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

    Symbols: c_i(p) -> codes[p, i] (-1 = missing); Q S^(1/2) -> membership.
    Cost: rows x bases x n_clusters a step, and one k-means on the consensus matrix for the start.
    """
    w = counts.astype(float)
    scale = 1.0 / np.sqrt((codes >= 0).sum(axis=1))

    def times(values: np.ndarray) -> np.ndarray:  # M W values
        return scale[:, None] * gather(codes, offsets, scatter(codes, offsets, w * scale, values))

    q = np.eye(n_clusters)[kc(codes, counts, offsets, n_clusters, n_init=n_init, rng=rng).labels] + _ELSEWHERE
    q /= np.sqrt(w @ q**2)
    s = np.einsum("p,pc,pc->c", w, q, times(q))
    total = float(np.sum(contingency(codes, offsets, w * scale**2) ** 2))
    error: list[float] = []
    for _ in range(max_iter):
        q = _update_memberships(q, s, w, times)
        s, square = _update_sizes(q, s, w, times)
        error.append((total + square) / total)
        if len(error) > 1 and abs(error[-2] - error[-1]) <= tol * error[-1]:
            break
    membership = q * np.sqrt(s)
    labels = membership.argmax(axis=1)
    fit = membership[np.arange(len(q)), labels] / np.maximum(membership.sum(axis=1), _TINY)
    return NMFCResult(fill_empty_clusters(labels, fit, n_clusters), membership, np.array(error), len(error))


def _update_memberships(q: np.ndarray, s: np.ndarray, w: np.ndarray, times: Any) -> np.ndarray:
    """Q <- Q o (M W Q S / Q Q^T W M W Q S)^(1/2)."""
    pull = times(q) * s
    return q * np.sqrt(pull / np.maximum(q @ ((w[:, None] * q).T @ pull), _TINY))


def _update_sizes(q: np.ndarray, s: np.ndarray, w: np.ndarray, times: Any) -> tuple[np.ndarray, float]:
    """S <- S o (Q^T W M W Q / Q^T W Q S Q^T W Q)^(1/2) on the diagonal, and the error less ||M||^2."""
    weighted = w[:, None] * q
    gram = weighted.T @ q
    pull = np.einsum("pc,pc->c", weighted, times(q))
    s = s * np.sqrt(pull / np.maximum(np.einsum("cd,d,dc->c", gram, s, gram), _TINY))
    return s, float(np.einsum("cd,d,dc,c->", gram, s, gram, s) - 2.0 * pull @ s)


class NMFC(LabelsMixin, BaseEstimator):
    """Consensus by nonnegative matrix factorisation: soft clusters that rebuild the consensus matrix.

    How often two instances share a cluster is explained by what clusters both belong to, and how much. Use it
    when you want memberships without a probability model, at any number of instances. Prefer
    :class:`MixtureConsensus` for memberships that are probabilities, and :class:`HBGF` where half of the
    labels or more are missing.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    n_init : int, default=10
        Starts of the k-means that the factors start from.
    unobserved : {"error", "noise", "largest"}, default="error"
        An instance that no base clustering saw: refuse, give it the label -1, or that of the largest cluster.
    max_iter : int, default=200
        Limit of steps.
    tol : float, default=1e-6
        Stop when the error changes by less than this share of itself.
    random_state : int, RandomState instance or None, default=None
        Draws the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster.
    confidence_ : ndarray of shape (n_instances,)
        Estimated probability that the instance belongs to its cluster, from its labels; see
        :func:`consilience.diagnostics.confidence`. 0 for an unobserved instance.
    membership_ : ndarray of shape (n_instances, n_clusters)
        How much the instance belongs to every cluster, shares that sum to one; 0 for an unobserved instance.
    error_ : ndarray of shape (n_iter,)
        Share of the consensus matrix, squared, that the factors leave unexplained, after every step.
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
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = NMFC(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": N_CLUSTERS,
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "unobserved": [StrOptions({"error", "noise", "largest"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        n_init: int = 10,
        unobserved: str = "error",
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.unobserved = unobserved
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> NMFC:
        """Merge the base clusterings.

        Parameters
        ----------
        X : array, nested list, frame, dict or list of series, or Partitions
            The table of base labels; see :meth:`consilience.Partitions.of`.
        y : ignored
            There for scikit-learn's interface.
        """
        partitions = self._read_labels(X, self.unobserved)
        check_base_clusters(partitions, "NMFC")
        rng = random_source(self.random_state)
        known = partitions.take_seen()
        rows = known.distinct
        k = self._feasible_clusters(known, rng)
        with threadpool_limits(limits=1):  # the same answer whatever the threads
            result = nmfc(
                rows.codes,
                rows.counts,
                known.offsets,
                k,
                n_init=self.n_init,
                max_iter=self.max_iter,
                tol=self.tol,
                rng=rng,
            )
        order = by_size(result.labels, rows.counts, k)
        self._answer(partitions, known, np.argsort(order)[result.labels], k)
        shares = result.membership[:, order]
        shares = shares / np.maximum(shares.sum(axis=1), _TINY)[:, None]
        self.membership_ = self._spread(shares[rows.inverse], 0.0)
        self.error_ = result.error
        self.n_iter_ = result.n_iter
        return self
