"""Dense representation ensemble clustering (DREC): every label row as a mixture of the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.consensus.base import LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.cuts import cut_embedding, graph_embedding
from consilience.core.lowrank import angular_affinity
from consilience.core.parameters import Count, Positive, parameters
from consilience.core.tables import indicator
from consilience.registry import About

# The authors' program makes exactly so many sweeps.
_SWEEPS = 5
# A row that is represented without error would get an infinite weight.
_LEAST_ERROR = 1e-12


class DRECResult(NamedTuple):
    """What `drec` found, on distinct rows."""

    labels: np.ndarray  # per row
    representation: np.ndarray  # Z, (rows, rows)


def drec(
    rows: Rows,
    n_clusters: int,
    *,
    regularization: float,
    n_init: int,
    rng: np.random.RandomState,
) -> DRECResult:
    r"""Dense self-representation of the distinct label rows, then a normalised cut.

    .. math:: \min_Z \; \|X - X Z\|_{2,1} + \lambda \|Z\|_F^2

    Columns of X are the stacked one-hot labels of the distinct rows. The cut is that of the sharpened cosines
    between rows in the column space of Z.

    Symbols: X^T -> rows.codes (-1 = missing); Z -> representation; lambda -> regularization.
    Cost: three decompositions of a dense matrix of rows x rows.
    """
    n_rows, m = rows.codes.shape
    observed = (rows.codes >= 0).sum(axis=1)
    # A row with few labels would be short, and so seem well represented whatever Z.
    scale = np.sqrt(m / observed)
    x = indicator(rows.codes, rows.offsets)
    gram = (x @ x.T).toarray() * scale * scale[:, None]
    z = _represent(gram, regularization)
    ones = np.ones(n_rows)
    h = graph_embedding(angular_affinity(z), ones, n_clusters)
    labels, _ = cut_embedding(h, ones, n_clusters, n_init=n_init, rng=rng)
    return DRECResult(labels, z)


def _represent(gram: np.ndarray, regularization: float) -> np.ndarray:
    """Reweighted least squares: (G + t_j I) z_j = g_j, t_j = 2 lambda |x_j - X z_j|, from t_j = lambda.

    One eigendecomposition of G serves all columns and sweeps. The errors follow from G as well.
    """
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)[:, None]
    target = vectors.T * values  # Q^T G
    ridge = np.full(len(gram), regularization)
    for sweep in range(_SWEEPS):
        if sweep:
            # x_j - X z_j in the basis of eigenvectors: each part shrinks by t_j / (l + t_j).
            left = np.sqrt(values) * vectors.T * (ridge / (values + ridge))
            error = np.sqrt(np.einsum("ij,ij->j", left, left))
            ridge = 2.0 * regularization * np.maximum(error, _LEAST_ERROR)
        solution = target / (values + ridge)
    return vectors @ solution


@parameters
class DREC(LabelMethod):
    """Dense representation ensemble clustering: label rows that the same others explain belong together.

    Every distinct label row is written as a mixture of all others, with an error that a few odd rows may have
    (the norm is not squared) and a penalty on large coefficients; the similarity of the coefficients is then
    cut. Use it for up to some thousand distinct label rows from base clusterings with various numbers of
    clusters. It counts distinct rows, not instances, so prefer another method where a few label rows hold
    most instances, and :class:`LWGP` or :class:`DAL` for large tables.

    Parameters
    ----------
    regularization : float, default=10.0
        Price of large coefficients, lambda of the paper.
    n_init : int, default=100
        Starts of k-means; the best is kept.

    Attributes
    ----------
    row_representation_ : ndarray of shape (n_distinct, n_distinct)
        Column j: the coefficients of distinct label row j.

    Notes
    -----
    As in the paper, the representation is of distinct label rows, and how many instances share a row does not
    enter. Where this differs: labels may be missing, and a row with few of them is scaled up to the length of
    a complete one; the default of `regularization`, which the paper
    tunes with true classes over 1e-3 to 1e3, is the value with the best mean over seven pools (the page of
    the method has the table).

    Tables with more than 5000 distinct label rows are refused.

    References
    ----------
    J. Zhou, H. Zheng, L. Pan: Ensemble clustering based on dense representation. Neurocomputing, 2019.

    Examples
    --------
    >>> from consilience import DREC
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = DREC(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="various numbers of clusters",
        avoid="few rows hold most instances",
        cost="rows^3",
        paper="Zhou, Zheng, Pan: Ensemble clustering based on dense representation. Neurocomputing, 2019.",
    )

    max_rows = 5_000  # three decompositions of rows x rows: minutes at the limit

    regularization: Positive = 10.0
    n_init: Count = 100

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> DRECResult:
        return drec(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: DRECResult, problem: Problem) -> None:
        self.row_representation_ = result.representation
