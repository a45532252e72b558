"""Robust clustering ensemble (RCE): a common co-association from which sparse errors are taken off."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.consensus.base import LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.coassociation import agreement, coobservation
from consilience.core.cuts import cut_embedding, graph_embedding
from consilience.core.parameters import Count, NonNegative, Positive, parameters
from consilience.core.tables import indicator
from consilience.registry import About

# Rounds, and steps of the update in each, of the authors' program.
_ROUNDS, _STEPS = 20, 20
# Keeps the matrix that stands for the rank away from singular.
_RIDGE = 1e-3
_EPS = float(np.finfo(float).eps)


class RCEResult(NamedTuple):
    """What `rce` found, on distinct rows."""

    labels: np.ndarray  # per row
    similarity: np.ndarray  # (A* + A*^T) / 2, between instances of two rows


def rce(
    rows: Rows,
    n_clusters: int,
    *,
    sparsity: float,
    rank: float,
    n_init: int,
    rng: np.random.RandomState,
) -> RCEResult:
    r"""A common co-association near to all connective matrices up to sparse errors, then a normalised cut.

    .. math:: \min_{A^*, E} \; \sum_i KL(A^* \| A_i - E_i) + \lambda_1 \sum_i \|E_i\|_1 + \lambda_2 \|A^*\|_*

    :math:`A_i` has a one for every pair that base i keeps together. The error of a pair depends on this one
    or zero and on :math:`A^*` alone, so counts of agreement replace the m matrices. Row p stands for
    ``counts[p]`` instances; entries are those between instances, and inside a row all bases agree. A base
    enters a pair only if it saw both; a pair that none saw together keeps the average share of agreement.

    Symbols: A_i -> rows.codes[:, i] (-1 = missing); A^* -> similarity; lambda_1 -> sparsity;
    lambda_2 -> rank.
    Cost: 800 products of dense matrices of rows x rows.
    """
    w = rows.weights
    agreed = agreement(indicator(rows.codes, rows.offsets)).toarray()
    together = coobservation(rows.codes >= 0).astype(float)
    average = (w @ agreed @ w) / (w @ together @ w)
    s = np.divide(agreed, together, out=np.full_like(agreed, average), where=together > 0.0)
    still = (s == 0.0) | (s == 1.0) | (together == 0.0)
    plus, minus = np.zeros_like(s), np.zeros_like(s)
    for _ in range(_ROUNDS):
        c = _evidence(s, agreed, together, sparsity)
        s = _update(s, c, together, plus, minus, still)
        plus, minus = _rank_terms(s, w, rank)
    similarity = 0.5 * (s + s.T)
    h = graph_embedding(similarity, w, n_clusters)
    labels, _ = cut_embedding(h, w, n_clusters, discretize="rotation", n_init=n_init, rng=rng)
    return RCEResult(labels, similarity)


def _evidence(s: np.ndarray, agreed: np.ndarray, together: np.ndarray, sparsity: float) -> np.ndarray:
    """C = sum_i log((1 - (A_i - E_i)) / (A_i - E_i)), with the best errors for agreement and disagreement."""
    t = 2.0 * sparsity * (s + s.T)
    # The roots of the two quadratic equations of an error, for A_i = 1 and for A_i = 0.
    lower = (1.0 + sparsity - np.sqrt((1.0 - sparsity) ** 2 + t)) / (2.0 * sparsity)
    higher = (np.sqrt(np.maximum((1.0 + sparsity) ** 2 - t, 0.0)) - 1.0 - sparsity) / (2.0 * sparsity)
    lower = np.where((lower > 0.0) & (lower <= 1.0), lower, 0.0)
    higher = np.where((higher < 0.0) & (higher >= -1.0), higher, 0.0)
    return agreed * _log_odds(1.0 - lower) + (together - agreed) * _log_odds(-higher)


def _log_odds(a: np.ndarray) -> np.ndarray:
    """Of not being linked."""
    return np.log(np.maximum((1.0 - a) / np.maximum(a, _EPS), _EPS))


def _update(
    s: np.ndarray,
    c: np.ndarray,
    together: np.ndarray,
    plus: np.ndarray,
    minus: np.ndarray,
    still: np.ndarray,
) -> np.ndarray:
    """Multiplicative steps of A*: the positive root of a quadratic, entry by entry."""
    v = np.maximum(together, _EPS)
    for _ in range(_STEPS):
        inside, outside = np.maximum(s, _EPS), np.maximum(1.0 - s, _EPS)
        a = 2.0 * v / inside + 2.0 * v / outside + (np.maximum(c, 0.0) + 2.0 * (plus @ s)) / inside
        b = v * np.log(inside / outside) - 2.0 * v / outside
        d = (np.maximum(-c, 0.0) + 2.0 * (minus @ s)) * s
        s = np.where(still, s, np.minimum((np.sqrt(b * b + 4.0 * a * d) - b) / (2.0 * a), 1.0))
    return s


def _rank_terms(s: np.ndarray, w: np.ndarray, rank: float) -> tuple[np.ndarray, np.ndarray]:
    """Positive and negative parts of lambda_2 (A* A*^T + .001 I)^(-1/2), to be multiplied with A*.

    On vectors that are equal on equal instances it is a matrix of rows; on those inside a row it is a number.
    Signs are those of the entries between instances, of which one of a row with itself is different.
    """
    root = np.sqrt(w)
    scaled = s * root * root[:, None]
    values, vectors = np.linalg.eigh(scaled @ scaled.T + _RIDGE * np.eye(len(w)))
    inside = _RIDGE**-0.5
    power = (vectors / np.sqrt(values)) @ vectors.T
    power[np.diag_indices_from(power)] -= inside
    entries = rank * power / root / root[:, None]
    own = np.diag(entries) + rank * inside

    def part(sign: float) -> np.ndarray:
        found = np.maximum(sign * entries, 0.0) * w
        others = (w - 1.0) * np.maximum(sign * np.diag(entries), 0.0)
        np.fill_diagonal(found, others + np.maximum(sign * own, 0.0))
        return found

    return part(1.0), part(-1.0)


@parameters
class RCE(LabelMethod):
    """Robust clustering ensemble: errors of single base clusterings are found and taken off.

    A common co-association is learned together with sparse errors of every base clustering and a penalty on
    its rank, and then cut. Use it on small ensembles with unreliable base clusterings. Prefer :class:`TRCE`,
    which has the same aim and is faster, or :class:`LWGP` above a thousand distinct label rows.

    Parameters
    ----------
    sparsity : float, default=0.01
        Price of an error of a base clustering (lambda_1 of the paper).
    rank : float, default=0.01
        Price of the rank of the common co-association (lambda_2).
    n_init : int, default=10
        Starts of the rotation that makes clusters of eigenvectors; the best is kept.

    Attributes
    ----------
    row_similarity_ : ndarray of shape (n_distinct, n_distinct)
        The common co-association, between instances of two distinct label rows; the mean of both halves of
        what was learned.

    Notes
    -----
    Where this differs from the paper: it runs on distinct label rows with counts, which is exact; counts of
    agreement replace one matrix a base clustering; the term that makes the matrix symmetric has weight zero,
    as in the authors' program; the best of several rotations is kept instead of the mean over ten; missing
    labels are allowed. The paper takes the best of 81 settings for every data set. The defaults are one of
    the settings at which the authors' program was compared, not tuned.

    Tables with more than 1500 distinct label rows are refused.

    References
    ----------
    P. Zhou, L. Du, H. Wang, L. Shi, Y.-D. Shen: Learning a Robust Consensus Matrix for Clustering Ensemble
    via Kullback-Leibler Divergence Minimization. International Joint Conference on Artificial Intelligence,
    2015.

    Examples
    --------
    >>> from consilience import RCE
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = RCE(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="to compare with papers",
        avoid="above some hundred rows",
        cost="800 products of rows^2",
        paper="Zhou et al.: Learning a Robust Consensus Matrix for Clustering Ensemble. IJCAI, 2015.",
    )
    # 800 products of rows x rows a fit: some minutes at the limit.
    max_rows = 1_500

    sparsity: Positive = 0.01
    rank: NonNegative = 0.01
    n_init: Count = 10

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> RCEResult:
        return rce(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: RCEResult, problem: Problem) -> None:
        self.row_similarity_ = result.similarity
