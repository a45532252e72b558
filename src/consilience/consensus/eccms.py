"""Co-association matrix self-enhancement (ECCMS): what is sure about pairs spreads to the unsure ones."""

from __future__ import annotations

from numbers import Real
from typing import Annotated, NamedTuple

import numpy as np
from scipy import linalg

from consilience._support.sklearn import Interval
from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.certainty import certain_coassociation, certainty
from consilience.core.coassociation import agreement, coobservation
from consilience.core.linkage import average_linkage, cut
from consilience.core.parameters import Count, NonNegative, Positive, parameters
from consilience.core.tables import indicator
from consilience.registry import About

# Relative change at which the authors' program stops.
_TOL = 1e-2
# A share of agreement equals `alpha` up to this much rounding.
_ROUNDING = 1e-10


class ECCMSResult(NamedTuple):
    """What `eccms` learned, on distinct rows."""

    labels: np.ndarray  # per row
    merges: np.ndarray  # two clusters, their mean similarity, weight of both; most similar first
    similarity: np.ndarray  # C, (rows, rows + 1); see `eccms`
    n_iter: int
    converged: bool


def eccms(
    rows: Rows,
    n_clusters: int,
    *,
    theta: float,
    alpha: float,
    noise: float,
    max_iter: int,
) -> ECCMSResult:
    r"""Enhanced co-association by ADMM, then average linkage on it, cut at `n_clusters`.

    .. math::
        \min_{C, E} \; tr(C^T \Phi C) + \frac{\lambda}{2} \|E\|_F^2 \quad s.t. \;
        A = C + E, \; E_{ij} = 0 \text{ where } \bar H_{ij} > 0, \; C = C^T, \; 0 \le C \le 1

    A is the locally weighted co-association, :math:`\bar H` the plain one where it reaches `alpha` (zero
    elsewhere and on the diagonal), :math:`\Phi` the Laplacian of :math:`\bar H`. Row p stands for
    ``counts[p]`` instances. Every matrix treats equal instances alike: its entry depends on the two rows and
    on whether the two instances are one. So matrices are kept as (rows, rows + 1): entry (p, r) is that of
    two instances of rows p and r, the last column that of an instance with itself. This is exact.

    Symbols: A -> a; bar H -> sure; Phi -> in `_system`; lambda -> noise; Y_1, Y_2 -> y1, y2.
    Cost: rows^3 once and rows^3 a step, rows^2 memory.
    """
    w = rows.weights
    q = certainty(rows, theta)
    a = _with_own(certain_coassociation(rows, q, diagonal=None), 1.0)
    share = _cautious_share(rows)
    sure = _with_own(np.where(share >= alpha - _ROUNDING, share, 0.0), 0.0)
    inverse, apart = _system(sure, w)
    c, e, f, y2 = (np.zeros_like(a) for _ in range(4))
    y1 = a  # the authors start this multiplier at A, not at zero
    floor = 1e-3 * _norm(a, w)  # what goes to zero never settles relative to itself
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        n_iter += 1
        old = (c, e, f, y1, y2)
        c = _solve(inverse, apart, a - e + y1 + f - y2, w)
        e = np.where(sure > 0.0, 0.0, (a - c + y1) / (noise + 1.0))
        f = np.clip(_symmetric(c + y2), 0.0, 1.0)
        y1 = y1 + a - c - e
        y2 = y2 + c - f
        steps = zip((c, e, f, y1, y2), old, strict=True)
        converged = all(
            _norm(after - before, w) <= _TOL * max(_norm(before, w), floor) for after, before in steps
        )
    # C is symmetric only at convergence. The mean of both halves does not depend on the order of rows.
    merges = average_linkage(_symmetric(c)[:, :-1].copy(), w)
    return ECCMSResult(cut(merges, n_clusters), merges, c, n_iter, converged)


def _cautious_share(rows: Rows) -> np.ndarray:
    """Share of agreement among all bases, where those that did not see both agree as often as the average.

    A pair seen together a few times is then not sure, however well it agreed: pairs that are sure by luck
    would join clusters, and the smoothing would spread it.
    """
    m, w = rows.codes.shape[1], rows.weights
    agreed = agreement(indicator(rows.codes, rows.offsets)).toarray()
    together = coobservation(rows.codes >= 0).astype(float)
    average = (w @ agreed @ w) / (w @ together @ w)
    return (agreed + (m - together) * average) / m


def _with_own(between: np.ndarray, own: float) -> np.ndarray:
    return np.column_stack([between, np.full(len(between), own)])


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    between = matrix[:, :-1]
    return np.column_stack([0.5 * (between + between.T), matrix[:, -1]])


def _norm(matrix: np.ndarray, w: np.ndarray) -> float:
    """Frobenius norm of the matrix of all instances."""
    square = matrix**2
    between = w @ square[:, :-1] @ w - w @ np.diag(square)
    return float(np.sqrt(max(between + w @ square[:, -1], 0.0)))


def _system(sure: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverse of 2 Phi + 2 I on vectors that are equal on equal rows, and its eigenvalues on the others.

    The others are vectors inside one row that sum to zero. The first kind is scaled to be symmetric.
    """
    root = np.sqrt(w)
    within = np.diag(sure[:, :-1]).copy()
    degrees = sure[:, :-1] @ w - within
    laplacian = -root[:, None] * sure[:, :-1] * root
    laplacian[np.diag_indices_from(laplacian)] += degrees + within
    factor = linalg.cho_factor(2.0 * laplacian + 2.0 * np.eye(len(w)))
    return linalg.cho_solve(factor, np.eye(len(w))), 2.0 * (degrees + within) + 2.0


def _solve(inverse: np.ndarray, apart: np.ndarray, right: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(2 Phi + 2 I)^-1 times a matrix of all instances."""
    root = np.sqrt(w)
    inside = right[:, -1] - np.diag(right)  # its eigenvalues on the vectors inside a row
    scaled = root[:, None] * right[:, :-1] * root
    scaled[np.diag_indices_from(scaled)] += inside
    inside = inside / apart
    found = inverse @ scaled
    found[np.diag_indices_from(found)] -= inside
    found /= root[:, None] * root
    return np.column_stack([found, np.diag(found) + inside])


@parameters
class ECCMS(LabelMethod):
    """Co-association self-enhancement: pairs that nearly all keep together teach the others.

    Pairs of instances that at least a share `alpha` of the base clusterings keep together are taken as sure.
    The similarity of all pairs is then smoothed along the sure ones, and average linkage merges what is most
    alike. Use it for a few thousand distinct label rows from base clusterings of many different numbers of
    clusters, where a hierarchy or an answer without random starts is wanted. Prefer :class:`LWEA`, which
    starts from the same similarity and is much faster, or :class:`LWGP` above some thousand distinct rows.

    Parameters
    ----------
    theta : float, default=0.4
        How fast a base cluster loses weight as others split it: one bit of entropy on average divides its
        weight by ``exp(1 / theta)``.
    alpha : float, default=0.75
        Share of agreement from which a pair is sure. Lower it where few pairs agree so much.
    noise : float, default=0.01
        Price of changing the similarity of an unsure pair (the paper's lambda).
    max_iter : int, default=300
        Greatest number of steps.
    random_state : int, RandomState instance or None, default=None
        Seed of the search for the number of clusters, where it is "auto"; the rest is deterministic.

    Attributes
    ----------
    row_similarity_ : ndarray of shape (n_distinct, n_distinct)
        Enhanced similarity of instances of two distinct label rows; on the diagonal, that of two instances of
        the same row.
    row_merges_ : ndarray of shape (n_distinct - 1, 4)
        The hierarchy of distinct label rows: two clusters, their mean similarity and the number of instances
        of both, most similar first; numbered like SciPy's linkage.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    Where this differs from the paper: it runs on distinct label rows with counts, which is exact, and equal
    rows are never separated. The similarity is not quite symmetric when the steps stop; the linkage reads the
    mean of both halves, the authors' program one of them. With missing labels the similarity
    starts from that of :class:`LWEA`, and a pair is sure only if its share would reach `alpha` with all bases
    that did not see both agreeing like the average. Where most labels are missing few pairs are sure, and the
    answer is nearly that of LWEA.

    Tables with more than 5000 distinct label rows are refused: a step costs their number to the third power.

    References
    ----------
    Y. Jia, S. Tao, R. Wang, Y. Wang: Ensemble Clustering via Co-association Matrix Self-enhancement. IEEE
    Transactions on Neural Networks and Learning Systems, 2023.

    Examples
    --------
    >>> from consilience import ECCMS
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = ECCMS(n_clusters=2).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="a few more steps after LWEA",
        avoid="few pairs agree on three quarters",
        cost="rows^3 a step",
        paper="Jia et al.: Ensemble Clustering via Co-association Matrix Self-enhancement. IEEE TNNLS, 2023.",
    )

    # Ten dense matrices of rows x rows (2 GB), and a product of two a step: many minutes a fit at the limit.
    max_rows = 5_000
    max_base_clusters = MAX_BASE_CLUSTERS

    theta: Positive = 0.4
    alpha: Annotated[float, Interval(Real, 0, 1, closed="right")] = 0.75
    noise: NonNegative = 0.01
    max_iter: Count = 300

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> ECCMSResult:
        return eccms(problem.rows, problem.n_clusters, **self._settings)

    def _learn(self, result: ECCMSResult, problem: Problem) -> None:
        self.row_similarity_ = result.similarity[:, :-1]
        self.row_merges_ = result.merges
