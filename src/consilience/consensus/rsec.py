"""Robust spectral ensemble clustering (RSEC): the co-association represented by itself at low rank, cut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.consensus.base import LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.coassociation import pair_shares
from consilience.core.cuts import cut_embedding
from consilience.core.eigen import leading_eigenpairs
from consilience.core.lowrank import angular_affinity, shrink_singular_values
from consilience.core.parameters import Count, NonNegative, Positive, parameters
from consilience.registry import About

# The penalty of the multipliers: first value (over the greatest column sum), growth, and greatest value.
_FIRST_MU, _GROWTH, _LAST_MU = 1.5, 1.1, 1e10
# Largest entry of what is left of the two constraints.
_TOL = 1e-7


class RSECResult(NamedTuple):
    """What `rsec` found, on distinct rows."""

    labels: np.ndarray  # per row
    representation: np.ndarray  # Z, between instances of two rows
    error: np.ndarray  # E, between instances of two rows
    n_iter: int
    converged: bool


def rsec(
    rows: Rows,
    n_clusters: int,
    *,
    rank: float,
    noise: float,
    max_iter: int,
    n_init: int,
    rng: np.random.RandomState,
) -> RSECResult:
    r"""The co-association represented by itself at low rank up to errors in few columns, and a cut of that.

    .. math::
        \min_{H, Z, E} \; tr(H^T L_Z H) + \lambda_1 \|Z\|_* + \lambda_2 \|E\|_{2,1}
        \quad s.t. \; S = S Z + E, \; H^T H = I

    by alternating steps with multipliers. :math:`L_Z` is the normalised Laplacian of the sharpened cosines
    between rows of :math:`(Z + Z^T) / 2 + H H^T`. Row p stands for ``counts[p]`` instances. All matrices are
    equal on equal instances; times the roots of both counts they multiply, and have singular values, as the
    matrices of all instances. A pair that no base saw together has a free entry in E.

    Symbols: S -> co-association of rows.codes (-1 = missing); Z -> representation; E -> error;
    lambda_1 -> rank; lambda_2 -> noise over the sum of the column norms of S.
    Cost: a step is three decompositions of a dense matrix of rows x rows.
    """
    w = rows.weights
    root = np.sqrt(w)
    scale = root * root[:, None]
    share = pair_shares(rows)
    free, known = np.isnan(share), np.nan_to_num(share)
    s = known * scale
    norms = np.linalg.norm(s, axis=0)
    price = noise / (root @ norms)  # a column of S stands for w columns of length |s| / sqrt(w)
    values, vectors = np.linalg.eigh(s)
    inverse = (vectors / (values**2 + 1.0)) @ vectors.T
    square = s @ s
    z, e, y1, y2, pull = (np.zeros_like(s) for _ in range(5))
    h = np.zeros((len(w), n_clusters))
    mu = _FIRST_MU / (w @ known).max()
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        n_iter += 1
        j = shrink_singular_values(z + y2 / mu, rank / mu)
        z = inverse @ (square + j - s @ e + (s @ y1 - y2 + pull) / mu)
        e = _errors(s - s @ z + y1 / mu, root, free, price / mu)
        h, pull = _embed(0.5 * (z + z.T), h, w, n_clusters)
        gaps = (s - s @ z - e, z - j)
        y1, y2 = y1 + mu * gaps[0], y2 + mu * gaps[1]
        mu = min(_GROWTH * mu, _LAST_MU)
        converged = all(np.abs(gap / scale).max() < _TOL for gap in gaps)
    labels, _ = cut_embedding(h / root[:, None], w, n_clusters, n_init=n_init, rng=rng)
    return RSECResult(labels, z / scale, e / scale, n_iter, converged)


def _errors(q: np.ndarray, root: np.ndarray, free: np.ndarray, price: float) -> np.ndarray:
    """Columns shorter by `price`, or gone; what nobody saw is error at no price."""
    seen = np.where(free, 0.0, q)
    norms = np.linalg.norm(seen, axis=0) / root
    kept = np.maximum(1.0 - price / np.maximum(norms, np.finfo(float).tiny), 0.0)
    return np.where(free, q, seen * kept)


def _embed(z: np.ndarray, h: np.ndarray, w: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """H = D^-1/2 V, and D^-1/2 H H^T D^-1/2, which pulls on Z. The last H is part of the graph."""
    root = np.sqrt(w)
    affinity = angular_affinity(z + h @ h.T, symmetric=True)
    degrees = affinity @ w  # not below the count: every row is like itself
    scale = root / np.sqrt(degrees)
    _, v = leading_eigenpairs(affinity * scale * scale[:, None], n_clusters)
    h = v / np.sqrt(degrees)[:, None]
    scaled = h / np.sqrt(degrees)[:, None]
    return h, scaled @ scaled.T


@parameters
class RSEC(LabelMethod):
    """Robust spectral ensemble clustering (experimental): the co-association cleaned of odd columns, and cut.

    The co-association is written as a mixture of its own columns, at low rank and up to errors in few
    columns; graph, errors and the cut are found together. It is here to compare with the literature. There
    is no setting that is safe on all tables: the better prices differ from table to table by factors of a
    hundred, and the answer with them. Prefer :class:`LWGP` or :class:`DAL` for work.

    Parameters
    ----------
    rank : float, default=0.1
        Price of the rank, lambda_1 of the paper.
    noise : float, default=3.0
        Price of errors, relative to the co-association: errors as large as all of it cost so much. It is
        lambda_2 of the paper times the sum of the column norms of the co-association, so that it means the
        same for small and large tables.
    max_iter : int, default=500
        Greatest number of steps.
    n_init : int, default=20
        Starts of k-means; the best is kept.

    Attributes
    ----------
    row_representation_ : ndarray of shape (n_distinct, n_distinct)
        Coefficients between instances of two distinct label rows, Z of the paper.
    row_error_ : ndarray of shape (n_distinct, n_distinct)
        What the co-association lost, E of the paper.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    Where this differs from the paper: the graph that is cut holds sharpened cosines of the coefficients, as
    programs of the method do and without which they do not settle; it runs on distinct label rows with
    counts, which is exact; k-means runs on the directions of the eigenvectors; missing labels are allowed,
    and a pair that no base clustering saw together is left free. The steps need not lower the objective.

    Tables with more than 1000 distinct label rows are refused.

    References
    ----------
    Z. Tao, H. Liu, S. Li, Y. Fu: Robust Spectral Ensemble Clustering. ACM International Conference on
    Information and Knowledge Management, 2016.

    Examples
    --------
    >>> from consilience import RSEC
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = RSEC(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="to compare with papers",
        avoid="for work",
        cost="rows^3 a step",
        paper="Tao, Liu, Li, Fu: Robust Spectral Ensemble Clustering. CIKM, 2016.",
        experimental=True,
    )
    any_weights = True
    # Two decompositions of rows x rows a step, more than a hundred steps: minutes at the limit.
    max_rows = 1_000

    rank: NonNegative = 0.1
    noise: Positive = 3.0
    max_iter: Count = 500
    n_init: Count = 20

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> RSECResult:
        return rsec(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: RSECResult, problem: Problem) -> None:
        self.row_representation_ = result.representation
        self.row_error_ = result.error
