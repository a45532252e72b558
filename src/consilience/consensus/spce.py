"""Self-paced clustering ensemble (SPCE): learn a co-association that falls apart, easy pairs first."""

from __future__ import annotations

from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from consilience._support.sklearn import Interval
from consilience._support.warnings import warn
from consilience.consensus.base import LabelMethod, Problem
from consilience.core import hot
from consilience.core.blocks import map_blocks
from consilience.core.canonical import Rows
from consilience.core.discretize import fill_empty_clusters, spectral_rotation
from consilience.core.eigen import leading_eigenpairs
from consilience.core.laplacian import Embedding, components, embed
from consilience.core.pairs import Pairs, agreeing_pairs, byte_sums, per_base, sum_over_bases
from consilience.core.parameters import Count, Verbose, parameters
from consilience.core.sweeps import Progress
from consilience.core.tables import contingency, scatter
from consilience.registry import About

# A pair on which this share of the base clusterings agrees counts fully; five stages, easy to hard.
_STAGES = (0.9, 0.8, 0.7, 0.6, 0.5)
_STEPS_A_STAGE = 5
# A base clustering equal to the consensus has distance zero, and its weight 1 / alpha would be infinite.
_LEAST_ALPHA = 1e-6
_PAIRS_A_BLOCK = 2**15


class SPCEResult(NamedTuple):
    """What `spce` learned, on distinct rows."""

    components: np.ndarray  # connected component of S, per row
    n_components: int
    s: np.ndarray  # S, per agreeing pair of rows; one on the diagonal, zero elsewhere
    pairs: Pairs
    alpha: np.ndarray  # per base
    rho: float
    objective: np.ndarray
    n_iter: int
    margin: float
    labels: np.ndarray | None = None  # per row, once there are exactly as many clusters as wanted


def spce(
    rows: Rows,
    n_clusters: int,
    *,
    theta: float,
    weighting: str,
    max_iter: int,
    progress: Progress | None = None,
) -> SPCEResult:
    r"""Learned co-association, pace of pairs and base weights by block coordinate descent.

    .. math::
        \min \; \sum_i \frac{1}{\alpha_i} \|(S - S^{(i)}) \circ W\|_F^2 - \lambda \|W\|_1 + \gamma \|S\|_0
        + \rho \, tr(F^T L_S F) \qquad (10)

    over S in 0..1 that keeps unanimous pairs, W in 0..1, alpha on the simplex and F with orthonormal columns.
    :math:`\lambda` grows from stage to stage; :math:`\rho` doubles while S has fewer than c connected
    components and halves while it has more. Row p stands for ``counts[p]`` instances. A base clustering
    enters a pair only if it saw both; a pair that none saw together has no term but those that pull S to
    zero.

    Symbols: S^(i) -> rows.codes[:, i] (-1 = missing); S -> s, on pairs; W -> pace; F -> z; c -> n_clusters;
    gamma = (theta m)^2. `weighting` "fixed" keeps the first W (SPCE-fixW), "none" is W = 1 (SPCE-W).
    `max_iter` limits the steps of the last stage; the others have five.

    Cost: a step is a pass over agreeing pairs of distinct rows, pairs x (c + m / 8), and, where S has fewer
    than c components, about ten products of S with c vectors.
    """
    w = rows.weights
    n, m = w.sum(), rows.codes.shape[1]
    pairs = agreeing_pairs(rows.codes)
    both = 2.0 * w[pairs.left] * w[pairs.right]  # instance pairs, in both orders
    s = np.divide(*sum_over_bases(pairs, np.ones(m)))
    alpha, rho, margin = np.full(m, 1.0 / m), 1.0, np.inf
    parts = components(pairs.left, pairs.right, s, len(w))
    z = embed(pairs.left, pairs.right, s, w, parts, n_clusters)
    pace = np.ones(len(s))
    objective: list[float] = []
    for stage in _STAGES:
        age = 2.0 * stage * (1.0 - stage) * m**2  # Eq. (23)
        if weighting == "self_paced" or (weighting == "fixed" and stage == _STAGES[0]):
            pace = _update_pace(pairs, s, alpha, age)
        held_back = float(both @ (1.0 - pace))
        for step in range(max_iter if stage == _STAGES[-1] else min(_STEPS_A_STAGE, max_iter)):
            s, distances, nonzero = _update_pairs(pairs, z, w, pace, alpha, rho, theta * m)
            parts = components(pairs.left, pairs.right, s, len(w))
            # With more components than clusters, the embedding before the last one is kept.
            if parts.n_components <= n_clusters:
                z = embed(pairs.left, pairs.right, s, w, parts, n_clusters, start=z.h)
                margin = min(margin, z.margin)
            alpha = _update_alpha(distances)
            fit = float(np.sum(distances / alpha))
            objective.append(
                fit - age * float(n**2 - held_back) + (theta * m) ** 2 * (float(w @ w) + nonzero)
            )
            if progress:
                progress(len(objective), objective[-1])
            if parts.n_components < n_clusters:
                rho *= 2.0
            elif parts.n_components > n_clusters:
                rho /= 2.0
            elif step:
                break
    return SPCEResult(
        parts.labels, parts.n_components, s, pairs, alpha, rho, np.array(objective), len(objective), margin
    )


def _update_pace(pairs: Pairs, s: np.ndarray, alpha: np.ndarray, age: float) -> np.ndarray:
    """Eq. (13): W = min(lambda / (2 B), 1), B = sum_i (S - S^(i))^2 / alpha_i."""
    agreeing, together = sum_over_bases(pairs, 1.0 / alpha)
    twice = 2.0 * (s * s * together - 2.0 * s * agreeing + agreeing)
    return np.where(twice > age, age / np.maximum(twice, age), 1.0)


def _update_pairs(
    pairs: Pairs,
    z: Embedding,
    w: np.ndarray,
    pace: np.ndarray,
    alpha: np.ndarray,
    rho: float,
    threshold: float,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Eq. (17): S, with ||(S - S^(i)) o W||^2 for every base and the number of nonzeros off the diagonal."""
    table = byte_sums(1.0 / alpha)
    s = np.empty(len(pace))

    def one(block: slice) -> tuple[np.ndarray, float]:
        by_agree, by_seen = np.zeros_like(table), np.zeros_like(table)
        nonzero = hot.learn_pairs(
            pairs.left[block], pairs.right[block], pairs.agree[block], pairs.seen, pairs.certain[block],
            table, z.h, z.spread, w, pace[block], rho, threshold, s[block], by_agree, by_seen,
        )  # fmt: skip
        return by_agree + by_seen, nonzero

    sums, nonzero = np.zeros_like(table), 0.0
    for part in map_blocks(one, len(s), block_rows=_PAIRS_A_BLOCK):
        sums += part[0]
        nonzero += part[1]
    return s, np.maximum(per_base(sums, len(alpha)), 0.0), nonzero


def _update_alpha(distances: np.ndarray) -> np.ndarray:
    """Eq. (21): alpha_i proportional to ||(S - S^(i)) o W||; equal where S is every base clustering."""
    alpha = np.sqrt(distances)
    if not alpha.any():
        alpha = np.ones_like(alpha)
    alpha = np.maximum(alpha, _LEAST_ALPHA * alpha.mean())
    return alpha / alpha.sum()


def _finish(result: SPCEResult, rows: Rows, n_clusters: int, rng: np.random.RandomState) -> np.ndarray:
    """Exactly `n_clusters` clusters: the components of S, or a normalised cut where they are too many or few.

    Too many: components are the nodes of a graph of their mean co-association. Too few: S is the graph.
    """
    if result.n_components == n_clusters:
        return result.components
    if result.n_components > n_clusters:
        graph, sizes = _between_components(result, rows)
        return _cut(graph, sizes, n_clusters, rng)[result.components]
    w = rows.weights
    graph = coassociation(result, len(w)).toarray()
    return _cut(graph * np.outer(w, w), w, n_clusters, rng)


def _between_components(result: SPCEResult, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Mean co-association of two components, over the times both were seen, times their sizes; the sizes."""
    w = rows.weights
    members = np.zeros((len(w), result.n_components))
    members[np.arange(len(w)), result.components] = 1.0
    shared = scatter(rows.codes, rows.offsets, w, members)
    seen = (w[:, None] * (rows.codes >= 0)).T @ members
    together = seen.T @ seen
    sizes = w @ members
    mean = np.divide(shared.T @ shared, together, out=np.zeros_like(together), where=together > 0)
    return mean * np.outer(sizes, sizes), sizes


def _cut(graph: np.ndarray, sizes: np.ndarray, n_clusters: int, rng: np.random.RandomState) -> np.ndarray:
    """Normalised cut by spectral rotation."""
    root = np.sqrt(graph.sum(axis=1))
    _, h = leading_eigenpairs(graph / np.outer(root, root), n_clusters)
    found = spectral_rotation(h, sizes, n_init=10, rng=rng)
    return fill_empty_clusters(
        found.labels, (h @ found.rotation)[np.arange(len(h)), found.labels], n_clusters
    )


def coassociation(result: SPCEResult, n_rows: int) -> sp.csr_array:
    """S as a symmetric sparse matrix of distinct rows."""
    left, right, s = (part[result.s > 0] for part in (result.pairs.left, result.pairs.right, result.s))
    diagonal = np.arange(n_rows, dtype=np.int32)
    places = (np.concatenate([left, right, diagonal]), np.concatenate([right, left, diagonal]))
    return sp.csr_array((np.concatenate([s, s, np.ones(n_rows)]), places), shape=(n_rows, n_rows))


def _warn_giant(rows: Rows, labels: np.ndarray, n_clusters: int) -> None:
    """With gaps, a cluster may swallow nearly everything, as pairs seen together a few times form chains.

    The sign: more than nine tenths of the instances in one cluster, and an answer that is less than half as
    near to the base clusterings as they are to each other. Complete tables have no such chains and are not
    judged.
    """
    m = rows.codes.shape[1]
    if n_clusters == 1 or m == 1 or (rows.codes >= 0).all():
        return
    share = np.bincount(labels, rows.counts).max() / rows.counts.sum()
    nearness = _adjusted_rand(
        np.column_stack([rows.codes, labels]).astype(rows.codes.dtype),
        np.append(rows.offsets, rows.offsets[-1] + n_clusters),
        rows.weights,
    )
    to_bases = nearness[-1, :-1].mean()
    among_bases = nearness[:-1, :-1][np.triu_indices(m, 1)].mean()
    if share > 0.9 and to_bases < 0.5 * among_bases:
        warn(
            f"SPCE put {share:.0%} of the instances into one cluster, against the base clusterings: the "
            f"mean adjusted Rand index of the answer with them is {to_bases:.2f}, theirs with each other "
            f"{among_bases:.2f}. Where labels are missing, pairs that were seen together a few times only "
            "can chain everything together.",
            ConvergenceWarning,
            hint="use PCE, DAL or fuse for tables with gaps.",
        )


def _adjusted_rand(codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Adjusted Rand index of every two columns over the instances that both saw; zero where undefined."""
    starts = offsets[:-1]
    shared = contingency(codes, offsets, weights)
    sizes = np.add.reduceat(shared, starts, axis=1)  # members of a cluster that the other column saw
    in_both = np.add.reduceat(np.add.reduceat(_pairs_among(shared), starts, axis=0), starts, axis=1)
    in_one = np.add.reduceat(_pairs_among(sizes), starts, axis=0)
    in_all = _pairs_among(np.add.reduceat(sizes, starts, axis=0))
    chance = np.divide(in_one * in_one.T, in_all, out=np.zeros_like(in_all), where=in_all > 0)
    most = (in_one + in_one.T) / 2.0
    return np.divide(in_both - chance, most - chance, out=np.zeros_like(most), where=most > chance)


def _pairs_among(members: np.ndarray) -> np.ndarray:
    return members * (members - 1.0) / 2.0


@parameters
class SPCE(LabelMethod):
    """Self-paced clustering ensemble: a learned co-association graph whose components are the clusters.

    It starts from how often two instances share a cluster, keeps the pairs on which all bases agree, and
    cuts or keeps the others, clear pairs before doubtful ones, until the graph falls into `n_clusters`
    connected components. Base clusterings near the learned graph count more. Use it for ensembles of
    moderate size whose clusters may have very unequal sizes and unequal numbers in the base clusterings.
    Prefer :class:`PCE` when clusters are many and the base clusterings uncertain (the components then tend
    to be one giant and crumbs), when labels are missing, and above some thousand distinct label rows.

    Parameters
    ----------
    theta : float, default=0.15
        Sparsity of the learned graph: roughly the co-association below which a link is cut. Above 0.25, links
        cut in the first stage never return and the graph may fall into more than `n_clusters` components.
    weighting : {"self_paced", "fixed", "none"}, default="self_paced"
        Weigh pairs by how clear they are, with more patience from stage to stage; by how clear they were at
        the start (SPCE-fixW); or not at all (SPCE-W).
    max_iter : int, default=20
        Limit of steps in the last stage; the four stages before have at most five.
    verbose : int, default=0
        Say the objective of every step, on stderr or by logging.
    random_state : int, RandomState instance or None, default=None
        Draws the starts of the spectral rotation, which is only used where the learned graph does not have
        `n_clusters` components. Everything else is deterministic.

    Attributes
    ----------
    base_weights_ : ndarray of shape (n_partitions,)
        How much each base clustering counts in the fit, 1 / alpha of the paper, scaled to sum to one: the
        nearer to the learned graph, the more. 0 for a column without labels.
    n_components_ : int
        Connected components of the learned graph. Where it is `n_clusters`, they are the clusters; otherwise
        the clusters are a normalised cut of the graph.
    exactness_margin_ : float
        Positive: working on distinct rows was exactly the method on all instances, in every step. Else an
        eigenvector between equal instances was cut in two by the number of clusters, and they got equal
        shares.
    row_coassociation_ : sparse array of shape (n_distinct, n_distinct)
        The learned graph on distinct label rows; see :meth:`coassociation` for instances.
    objective_ : ndarray of shape (n_iter,)
        The objective without its rank term after every step. Not monotone: age and rho change on the way.
    n_iter_ : int
        Number of steps over all stages.

    Notes
    -----
    Where this differs from the paper: it runs on distinct label rows with counts, which is exact (see
    ``exactness_margin_``); connected components decide the rank test instead of an eigenvalue tolerance;
    alpha has a floor, since a base clustering equal to the consensus would have infinite weight; exactly
    `n_clusters` clusters come out; missing labels are allowed: a base clustering has an opinion about a
    pair only if it saw both, and a pair that none saw together is undetermined.

    With missing labels, a :class:`~sklearn.exceptions.ConvergenceWarning` says so where one cluster took more
    than nine tenths of the instances and the answer is less than half as near to the base clusterings as
    they are to each other (mean adjusted Rand index).

    Tables with more than 10000 distinct label rows are refused: all pairs of them that agree somewhere are
    held in memory.

    References
    ----------
    P. Zhou, L. Du, X. Liu, Y.-D. Shen, M. Fan, X. Li: Self-Paced Clustering Ensemble. IEEE TNNLS, 2021.

    Examples
    --------
    >>> from consilience import SPCE
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "y", "v"], ["b", None, "v"]]
    >>> model = SPCE(n_clusters=2).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.n_components_
    2
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="very unequal sizes, opinions mostly agree",
        avoid="large and uncertain ensembles, missing labels (it warns)",
        cost="rows^2 a step",
        paper="Zhou, Du, Liu, Shen, Fan, Li: Self-Paced Clustering Ensemble. IEEE TNNLS, 2021.",
        featured=True,
    )
    weighs_bases = True

    max_rows = 10_000  # pairs of rows are held, some eighty bytes each: 2 GB and a minute or two a fit here

    theta: Annotated[float, Interval(Real, 0, 1, closed="left")] = 0.15
    weighting: Literal["self_paced", "fixed", "none"] = "self_paced"
    max_iter: Count = 20
    verbose: Verbose = 0

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> SPCEResult:
        rows, c = problem.rows, problem.n_clusters
        result = spce(rows, c, **self._settings)
        labels = _finish(result, rows, c, rng)
        _warn_giant(rows, labels, c)
        return result._replace(labels=labels)

    def _learn(self, result: SPCEResult, problem: Problem) -> None:
        self.base_weights_ = problem.per_base((1.0 / result.alpha) / np.sum(1.0 / result.alpha))
        self.n_components_ = result.n_components
        self.exactness_margin_ = result.margin
        self.row_coassociation_ = coassociation(result, len(problem.rows.counts))

    def coassociation(self, instances: Any) -> np.ndarray:
        """The learned co-association between some instances, dense; zero for those that nobody saw.

        Parameters
        ----------
        instances : array of int or bool
            Positions of instances in the table that was fitted, or a mask.
        """
        check_is_fitted(self)
        rows = self.row_of_instance_[np.asarray(instances)]
        dense = self.row_coassociation_[np.maximum(rows, 0)][:, np.maximum(rows, 0)].toarray()
        dense[rows < 0], dense[:, rows < 0] = 0.0, 0.0
        return dense
