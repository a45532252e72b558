"""Partial clustering ensemble (PCE): merge base clusterings that each saw only some of the instances."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.core import hot
from consilience.core.blocks import map_blocks, run_blocks
from consilience.core.canonical import Rows
from consilience.core.completion import complete_labels
from consilience.core.discretize import assign, fill_empty_clusters, rotate, spectral_rotation
from consilience.core.parameters import Count, NonNegative, Positive, Verbose, parameters
from consilience.core.simplex import minimize_quadratic
from consilience.core.spectral import left_singular_vectors
from consilience.core.stiefel import polar_factor, power_iteration
from consilience.core.sweeps import Progress, Sweeps
from consilience.core.tables import cluster_sizes, contingency, mirror, rows_per_block, scatter
from consilience.evidence.partitions import MISSING, Partitions
from consilience.registry import About

# The age parameter grows by this factor after each of the first iterations, and then stays.
GROWTH, N_GROWTHS = 1.1, 9


class PCEResult(NamedTuple):
    """What `pce` learned; one entry per row where it says so."""

    labels: np.ndarray  # per row
    embedding: np.ndarray  # H, per row
    reliability: np.ndarray  # v, per row
    codes: np.ndarray  # the base labels with missing entries filled in, per row
    weights: np.ndarray  # alpha, per base
    rotations: np.ndarray  # R^(i), stacked: per cluster of all bases
    rotation: np.ndarray  # R
    objective: np.ndarray
    n_iter: int
    converged: bool
    certified: bool


def pce(
    rows: Rows,
    n_clusters: int,
    *,
    init: str,
    gamma: float,
    n_init: int,
    self_paced: bool,
    diversity: bool,
    joint: bool,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    starts: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> PCEResult:
    r"""Consensus embedding, imputation, reliability and base weights by block coordinate descent.

    .. math::
        \min \; \|V (H - \sum_i \alpha_i Y^{(i)} R^{(i)})\|_F^2 - \lambda \|v\|_1 + \gamma \|Y - H R\|_F^2
        \qquad (4)

    over H with orthonormal columns, the missing rows of the one-hot Y^(i), orthogonal R^(i) and R, one-hot Y,
    alpha on the simplex and 0 <= v <= 1. Row p stands for ``counts[p]`` instances: every sum over instances
    is a weighted sum over rows, and the answer is that of the repeated rows.

    Symbols: Y^(i) -> rows.codes[:, i] (-1 = missing); H -> embedding; v -> reliability; alpha -> weights;
    R^(i) -> rotations, stacked, k_i x n_clusters each; R -> rotation; Y -> labels; c -> n_clusters.
    With `diversity` false the cross terms of two bases are dropped (PCE-noDiv); with `self_paced` false v = 1
    (PCE-noSP); with `joint` false the last term is dropped and labels come from a rotation of the final H
    (PCE-post). `starts` are rows at which the first rotation begins; by default `n_init` rows are drawn.

    Cost: a few passes over the rows an iteration, each rows x (bases x c + c^2), plus rows x bases^2 for the
    contingency table and algebra of the size of all clusters of all bases.
    """
    codes, offsets, w = rows.codes.copy(), rows.offsets, rows.weights
    missing = codes < 0
    n, m = w.sum(), codes.shape[1]
    gamma = gamma if joint else 0.0

    h = _start_embedding(rows, n_clusters, init)
    y, rotation, _ = spectral_rotation(h, w, n_init=n_init, rng=rng, starts=starts)
    alpha = np.full(m, 1.0 / m)
    moments, sums = contingency(codes, offsets, w), scatter(codes, offsets, w, h)
    table = align_bases(moments, sums, offsets, alpha, diversity)

    lam, growths_left = None, N_GROWTHS if self_paced else 0
    certified, sweeps = True, Sweeps(max_iter, progress)
    for _ in sweeps:
        s, loss = residuals(codes, offsets, table, alpha, h, diversity)
        if lam is None:
            lam = _start_age(loss, w) if self_paced else 0.0
        v = update_reliability(loss, lam) if self_paced else np.ones(len(loss))
        shift = set_target(s, v, y, rotation, gamma)
        step = power_iteration(h, s, shift, w, tol=max(0.01 * tol, 1e-7), max_iter=100)
        h = step.h
        moments, sums, energy = impute(codes, missing, offsets, table, alpha, h, v, w, diversity)
        alpha = update_weights(moments, sums, offsets, table, diversity)
        table = update_rotations(moments, sums, offsets, table, alpha, diversity)
        moved, fit = 0.0, 0.0
        if joint:
            rotation = rotate(h, w, y, n_clusters)
            y, moved, fit = assign(h, rotation, w, y)
        sweeps.add(
            energy
            + quadratic(moments, sums, offsets, table, alpha, diversity)
            - lam * float(w @ v)
            + gamma * (n + n_clusters - 2.0 * fit)
        )
        certified &= is_certified(step.slack)
        sweeps.converged = growths_left == 0 and moved <= 0.1 * tol * n and settled(sweeps.objective, tol)
        if sweeps.converged:
            break
        # Easy instances come first so that they settle the labels; then there is nothing to wait for.
        growths = growths_left if joint and moved < 0.1 * tol * n else min(growths_left, 1)
        lam *= GROWTH**growths
        growths_left -= growths

    if not joint:
        y, rotation, _ = spectral_rotation(h, w, n_init=n_init, rng=rng, starts=starts)
    y = fill_empty_clusters(y, (h @ rotation)[np.arange(len(y)), y], n_clusters)
    return PCEResult(y, h, v, codes, alpha, table, rotation, *sweeps.outcome, certified)


def _start_embedding(rows: Rows, n_clusters: int, init: str) -> np.ndarray:
    """Leading eigenvectors of the co-association, zero-filled or normalised on both sides.

    Zero-filled, two instances that few bases saw look unlike each other, and patterns of missing entries in
    a large cluster outweigh a small cluster. The normalised form divides rows by the number of bases that
    saw them and columns by the sizes of the clusters, increased by a fifth of an average consensus cluster
    so that tiny clusters, which are often noise, do not take the lead.
    """
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    if init == "coassociation":
        return left_singular_vectors(codes, offsets, w, n_clusters)
    seen = (codes >= 0).sum(axis=1)
    scale = start_scale(cluster_sizes(codes, offsets, w), w.sum(), n_clusters)
    return left_singular_vectors(codes, offsets, w / seen, n_clusters, scale) / np.sqrt(seen)[:, None]


def start_scale(sizes: np.ndarray, n: float, n_clusters: int) -> np.ndarray:
    """What the normalised start multiplies the column of every base cluster by."""
    return 1.0 / np.sqrt(sizes + 0.2 * n / n_clusters)


def align_bases(
    moments: np.ndarray, sums: np.ndarray, offsets: np.ndarray, alpha: np.ndarray, diversity: bool
) -> np.ndarray:
    """The first R^(i), from M = B^T B and N = B^T H.

    Every base is first aligned with H alone: unlike identity matrices, this does not depend on label names.
    """
    table = np.empty_like(sums)
    for lo, hi in pairwise(offsets.tolist()):
        table[lo:hi] = polar_factor(sums[lo:hi])
    return update_rotations(moments, sums, offsets, table, alpha, diversity)


def _start_age(loss: np.ndarray, w: np.ndarray) -> float:
    """lambda such that the most reliable tenth of the instances starts with v = 1."""
    order = np.argsort(loss)
    rank = max(int(w.sum()) // 10, 1)
    lam = 2.0 * loss[order[np.searchsorted(np.cumsum(w[order]), rank)]]
    return age_of(float(lam))


def age_of(lam: float) -> float:
    """The first age. Zero, where that tenth is fitted exactly, would give all instances weight zero."""
    return lam if lam > 1e-12 else 1e-3


def residuals(
    codes: np.ndarray,
    offsets: np.ndarray,
    table: np.ndarray,
    alpha: np.ndarray,
    h: np.ndarray,
    diversity: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """S = sum_i alpha_i Y^(i) R^(i), and the loss ||h_p - s_p||^2 of every row."""
    weighted = table * np.repeat(alpha, np.diff(offsets))[:, None]
    s = np.empty_like(h)
    loss = np.empty(len(h))
    own = np.einsum("qd,qd->q", weighted, weighted)[:, None]

    def one(rows: slice) -> None:
        hot.gather_sum(codes[rows], offsets, weighted, s[rows])
        difference = h[rows] - s[rows]
        loss[rows] = np.einsum("pd,pd->p", difference, difference)
        if not diversity:
            # Without cross terms, ||s||^2 is the sum of the bases' own squared norms.
            alone = np.empty((rows.stop - rows.start, 1))
            hot.gather_sum(codes[rows], offsets, own, alone)
            loss[rows] += alone[:, 0] - np.einsum("pd,pd->p", s[rows], s[rows])

    run_blocks(one, len(h))
    return s, loss


def update_reliability(loss: np.ndarray, lam: float) -> np.ndarray:
    """Eq. (6): v = min(lambda / (2 loss), 1)."""
    return np.where(loss > 0.5 * lam, 0.5 * lam / np.maximum(loss, 0.5 * lam), 1.0)


def set_target(s: np.ndarray, v: np.ndarray, y: np.ndarray, rotation: np.ndarray, gamma: float) -> np.ndarray:
    """Turns S into C of Eq. (7) in place; returns mu I - D for mu = 1 + gamma, the largest that D can be.

    Eq. (7): min tr(H^T D H) - 2 tr(H^T C), D = V^2 + gamma I, C = gamma Y R^T + V^2 S.
    """
    v2 = v * v

    def one(rows: slice) -> None:
        s[rows] *= v2[rows, None]
        if gamma:
            s[rows] += (gamma * rotation.T)[y[rows]]

    run_blocks(one, len(s))
    return 1.0 - v2


def is_certified(slack: float) -> bool:
    """Whether an embedding step is proven to be a global minimum, up to rounding."""
    return slack >= -1e-9


def impute(
    codes: np.ndarray,
    missing: np.ndarray,
    offsets: np.ndarray,
    table: np.ndarray,
    alpha: np.ndarray,
    h: np.ndarray,
    v: np.ndarray,
    w: np.ndarray,
    diversity: bool,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Eq. (11), base after base, and in the same pass over rows what the small problems need.

    A missing entry takes argmin_q alpha_i ||R_q||^2 / 2 + <R_q, sum_{j != i} alpha_j y^(j) R^(j) - h>. The
    common factors alpha_i and v^2 of the paper's E are dropped: at zero they would tie all clusters. The
    first term is constant for k_i <= c, where the rows of R^(i) have norm one. Returns M = B^T V^2 B,
    N = B^T V^2 H and ||V H||^2.
    """
    bias = 0.5 * np.repeat(alpha, np.diff(offsets)) * np.einsum("qd,qd->q", table, table)
    v2w = v * v * w
    size = len(table)

    def one(rows: slice) -> tuple[np.ndarray, np.ndarray, float]:
        block, h_block, weight = codes[rows], h[rows], v2w[rows]
        hot.impute(block, missing[rows], offsets, table, bias, alpha, h_block, diversity)
        moments, sums = np.zeros((size, size)), np.zeros_like(table)
        hot.contingency(block, offsets, weight, moments)
        hot.scatter_sum(block, offsets, weight, h_block, sums)
        return moments, sums, float(weight @ np.einsum("pd,pd->p", h_block, h_block))

    moments, sums, energy = np.zeros((size, size)), np.zeros_like(table), 0.0
    for part in map_blocks(one, len(codes), block_rows=rows_per_block(offsets)):
        moments += part[0]
        sums += part[1]
        energy += part[2]
    return mirror(moments), sums, energy


def update_weights(
    moments: np.ndarray, sums: np.ndarray, offsets: np.ndarray, table: np.ndarray, diversity: bool
) -> np.ndarray:
    """Eq. (12): min alpha^T G alpha - 2 f^T alpha, G_ij = <R_i, M_ij R_j>, f_i = <R_i, N_i>."""
    gram, linear = _small_problem(moments, sums, offsets, table, diversity)
    return minimize_quadratic(gram, linear)


def _small_problem(
    moments: np.ndarray, sums: np.ndarray, offsets: np.ndarray, table: np.ndarray, diversity: bool
) -> tuple[np.ndarray, np.ndarray]:
    starts = offsets[:-1]
    linear = np.add.reduceat(np.einsum("qd,qd->q", table, sums), starts)
    overlap = moments * (table @ table.T)
    gram = np.add.reduceat(np.add.reduceat(overlap, starts, axis=0), starts, axis=1)
    return gram if diversity else np.diag(np.diag(gram)), linear


def update_rotations(
    moments: np.ndarray,
    sums: np.ndarray,
    offsets: np.ndarray,
    table: np.ndarray,
    alpha: np.ndarray,
    diversity: bool,
) -> np.ndarray:
    """Eq. (13), base after base: maximise <R_i, K_i>, K_i = N_i - sum_{j != i} alpha_j M_ij R_j.

    The factor alpha_i is dropped, so that a base of weight zero is still aligned. For k_i > c the quadratic
    term alpha_i tr(R_i^T M_ii R_i) is not constant; a few power iterations take it along, each a descent.
    """
    table = table.copy()
    weighted = table * np.repeat(alpha, np.diff(offsets))[:, None]
    for i, (lo, hi) in enumerate(pairwise(offsets.tolist())):
        block = slice(lo, hi)
        own = np.diag(moments)[block]  # M_ii is diagonal: a row has one label a base
        k = sums[block].copy()
        if diversity:
            k -= moments[block] @ weighted - own[:, None] * weighted[block]
        if len(k) <= k.shape[1]:
            table[block] = polar_factor(k)
        else:
            shift = alpha[i] * (own.max() - own)
            ones = np.ones(len(k))
            table[block] = power_iteration(table[block], k, shift, ones, tol=1e-8, max_iter=10).h
        weighted[block] = alpha[i] * table[block]
    return table


def quadratic(
    moments: np.ndarray,
    sums: np.ndarray,
    offsets: np.ndarray,
    table: np.ndarray,
    alpha: np.ndarray,
    diversity: bool,
) -> float:
    """||V (H - S)||^2 - ||V H||^2 from the small tables."""
    gram, linear = _small_problem(moments, sums, offsets, table, diversity)
    return float(alpha @ gram @ alpha - 2.0 * linear @ alpha)


def settled(objective: list[float], tol: float) -> bool:
    return len(objective) > 1 and abs(objective[-2] - objective[-1]) <= tol * abs(objective[-1])


@parameters
class PCE(LabelMethod):
    """Partial clustering ensemble: one clustering from base clusterings that each saw only some instances.

    It aligns the base clusterings by rotations, fills in the labels they lack, weighs them, and weighs every
    instance by how well the opinions about it agree. Use it when you want labels, confidence, imputed labels
    and predictions from one fit, at any size: the cost follows the number of distinct label rows and is
    linear in them. Prefer another method when the base clusterings differ much in their numbers of
    clusters and only the quality of the final partition counts.

    Parameters
    ----------
    init : {"normalized", "coassociation"}, default="normalized"
        Where the embedding starts: at the leading eigenvectors of the co-association matrix, normalised by
        what was observed and by cluster sizes; or of the plain one in which a missing entry counts as
        disagreement, as in the authors' program. The latter loses small clusters when entries are missing.
    gamma : float, default=1.0
        Weight of the discretisation term. Labels hardly depend on it from 0.1 upwards.
    n_init : int, default=10
        Number of starts of the spectral rotation, of which the best aligned is kept.
    self_paced : bool, default=True
        Weigh instances by reliability, admitting more of them with every iteration (False: PCE-noSP).
    diversity : bool, default=True
        Keep the term that makes the bases complement each other (False: PCE-noDiv).
    imputation : {"learned", "random"}, default="learned"
        Fill missing labels during the optimisation, or at random before it (PCE-filling).
    discretize : {"joint", "post"}, default="joint"
        Learn labels together with the embedding, or from the final embedding (PCE-post).
    max_iter : int, default=100
        Limit of outer iterations.
    tol : float, default=1e-3
        Stop when the objective decreases by less than this share and less than a tenth of this share of the
        instances move.
    verbose : int, default=0
        Say the objective of every iteration, on stderr or by logging.
    random_state : int, RandomState instance or None, default=None
        Draws the rotation starts (and the labels of ``imputation="random"``).

    Attributes
    ----------
    reliability_ : ndarray of shape (n_instances,)
        The self-paced weight v, 0..1. 0 for an unobserved instance.
    base_weights_ : ndarray of shape (n_partitions,)
        The weight alpha of every base clustering in the published objective; they sum to one. Not a measure
        of quality, see Notes.
    imputed_ : table like the input
        The label table with every missing entry replaced by the label which that base clustering would most
        likely have given, judged by the instance's other labels and its consensus cluster; in the user's own
        label names. (With ``imputation="random"``, the random labels.)
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The consensus embedding H, with orthonormal columns.
    rotations_ : list of ndarray, one per base clustering with labels
        The rotation R^(i) of every base clustering, (k_i, n_clusters).
    rotation_ : ndarray of shape (n_clusters, n_clusters)
        The rotation R of the embedding.
    objective_ : ndarray of shape (n_iter,)
        The objective after every iteration.
    certified_ : bool
        Whether every embedding step was proven to be a global minimum of its subproblem.
    n_iter_ : int
        Number of iterations run.

    Notes
    -----
    Where this differs from the paper: H starts at eigenvectors of the co-association (as in the authors'
    program; the start the paper describes is far worse and depends on label names), by default of a
    normalised one, which keeps small clusters when entries are missing; the rotation is warm-started after
    the first iteration, which keeps the objective monotone; the H step is a generalised power iteration,
    which needs no step size; the iteration stops when nothing changes.

    The optimisation moves the initial labels little at gamma >= 0.1. Its by-products mean less than their
    names say: rows of H are much shorter than rows of Y^(i) R^(i), so the term that is to keep the bases
    diverse outweighs the consensus, and rotations, filled-in labels and weights are chosen to make the bases
    disagree. `base_weights_` and `rotations_` are reported as published; ``imputed_``, ``confidence_`` and
    :meth:`predict` are computed from counts of labels that occur together instead, which is measured to be
    right far more often. The method page has the numbers; :func:`consilience.metrics.base_agreement` says
    which base clusterings to trust.

    References
    ----------
    P. Zhou, L. Du, X. Liu, Z. Ling, X. Ji, X. Li, Y.-D. Shen: Partial Clustering Ensemble. IEEE TKDE.

    Examples
    --------
    Three banks that each know some of the customers:

    >>> from consilience import PCE
    >>> labels = [["a", "x", None], ["a", "x", "u"], ["a", None, "u"], ["b", "y", "v"], ["b", None, "v"]]
    >>> model = PCE(n_clusters=2, random_state=0).fit(labels)
    >>> [int(label) for label in model.labels_ == model.labels_[0]]
    [1, 1, 1, 0, 0]
    >>> model.imputed_[0].tolist()
    ['a', 'x', 'u']
    >>> model.predict([[None, None, "v"]])[0] == model.labels_[3]
    np.True_
    """

    about = About(
        use="bases have about the wanted number of clusters; filled-in labels",
        avoid="numbers of clusters differ much",
        cost="rows x bases x (bases + clusters) a step",
        paper="Zhou, Du, Liu, Ling, Ji, Li, Shen: Partial Clustering Ensemble. IEEE TKDE.",
        linear=True,
        featured=True,
        start=True,
    )
    weighs_bases = True
    max_base_clusters = MAX_BASE_CLUSTERS

    init: Literal["normalized", "coassociation"] = "normalized"
    gamma: Positive = 1.0
    n_init: Count = 10
    self_paced: bool = True
    diversity: bool = True
    imputation: Literal["learned", "random"] = "learned"
    discretize: Literal["joint", "post"] = "joint"
    max_iter: Count = 100
    tol: NonNegative = 1e-3
    verbose: Verbose = 0

    def _prepare(self, known: Partitions, rng: np.random.RandomState) -> Partitions:
        if self.imputation == "learned":
            return known
        guesses = rng.randint(0, known.n_clusters_per_partition, size=known.codes.shape)
        return known.fill(np.where(known.observed, known.codes, guesses))

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> PCEResult:
        return pce(
            problem.rows,
            problem.n_clusters,
            init=self.init,
            gamma=self.gamma,
            n_init=self.n_init,
            self_paced=self.self_paced,
            diversity=self.diversity,
            joint=self.discretize == "joint",
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
            progress=self._progress if self.verbose else None,
        )

    def _learn(self, result: PCEResult, problem: Problem) -> None:
        self.reliability_ = problem.per_instance(result.reliability)
        self.base_weights_ = problem.per_base(result.weights)
        self.rotations_ = problem.per_cluster(result.rotations)
        self.rotation_ = result.rotation[:, problem.order]
        self.certified_ = result.certified
        self._problem, self._row_labels, self._row_embedding = problem, result.labels, result.embedding

    @cached_property
    def imputed_(self) -> Any:
        """The completed label table, in the user's own label names and kind of table."""
        check_is_fitted(self)
        rows = self._problem.known.distinct
        codes = complete_labels(rows.codes, rows.counts, rows.offsets, self._row_labels, self.n_clusters_)
        nobody = np.full_like(codes, MISSING, shape=(1, codes.shape[1]))
        return self.partitions_.decode(np.vstack([codes, nobody])[self.row_of_instance_])

    @cached_property
    def embedding_(self) -> np.ndarray:
        """The consensus embedding H, one row per instance."""
        check_is_fitted(self)
        return self._problem.per_instance(self._row_embedding)
