"""How many clusters a table of base clusterings speaks for, from one small eigenproblem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import diags_array
from scipy.sparse.linalg import LinearOperator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, check_parameter, random_source
from consilience.core.discretize import spectral_rotation
from consilience.core.eigen import leading_eigenpairs
from consilience.core.tables import contingency, gather, indicator, scatter
from consilience.diagnostics.counts import Finding, JointRows, Tabulated, silent
from consilience.diagnostics.neighbours import score_rows
from consilience.generate import base_partitions
from consilience.partitions import Partitions

# Up to this many labels are permuted; beyond, tables of pairs of clusters are drawn, if they are small.
_PERMUTED, _MAX_DRAWN = 100_000, 3_000
# Up to this many base clusters their table of pairs is built; beyond, products go through the labels.
_MAX_TABLE = 1_000
# The count silhouette and the unimodal reference look at no more rows than this.
_SAMPLE = 5_000
# A null level must be passed by this many standard deviations as well as by all draws: with 20 draws the
# maximum alone would be passed by chance once in 21 times.
_DEVIATIONS = 4.0
_DOMINANCE = 2.0  # the best score over the next best that is not its neighbour's
_WEAK = 0.5  # a null level from which on chance explains so much that clusters may hide behind it
_MIXED = 3.0  # largest over smallest number of base clusters from which on the answer is not to be trusted
_N_REFERENCES, _REFERENCE_FEATURES, _REFERENCE_STEPS = 8, 10, 15


@dataclass(frozen=True, repr=False, eq=False)
class CountCurve(Tabulated):
    """One entry per number of clusters k = 1, 2, ...; the one looked for has a high ``score``."""

    k: np.ndarray
    eigenvalue: np.ndarray  # the k-th of the bipartite graph of instances and base clusters
    null: np.ndarray  # what it must pass to count: the level of base clusterings that agree by chance
    gap: np.ndarray  # to the next eigenvalue, both as shares of the way from the null level to 1
    score: np.ndarray  # k times the gap
    silhouette: np.ndarray  # of a cut into k clusters, from shares of agreement; NaN for k = 1

    def __repr__(self) -> str:
        return f"CountCurve(k = 1 to {self.k[-1]})"


@dataclass(frozen=True, repr=False, eq=False)
class ClusterCount(Tabulated):
    """What `choose_n_clusters` returns."""

    n_clusters: int
    n_significant: int  # an upper bound: eigenvalues beyond chance
    reliable: bool
    curve: CountCurve
    warnings: tuple[Finding, ...]

    def __repr__(self) -> str:
        return f"ClusterCount(n_clusters={self.n_clusters}, {'' if self.reliable else 'not '}reliable)"


class _Ensemble(NamedTuple):
    """Rows of the base clusterings that say something; every row has a label, every cluster a member."""

    codes: np.ndarray
    counts: np.ndarray
    offsets: np.ndarray


def choose_n_clusters(
    partitions: Partitions,
    *,
    max_clusters: int = 30,
    n_null: int = 20,
    reference: Literal["permutation", "unimodal"] = "permutation",
    random_state: Any = None,
) -> ClusterCount:
    r"""The number of clusters with the largest gap after it in the spectrum of the ensemble.

    .. math:: \hat k = \arg\max_k \; k \, (\tilde\mu_k - \tilde\mu_{k+1}), \qquad
        \tilde\mu = \frac{\mu - \bar\nu}{1 - \bar\nu}

    where :math:`\mu_1 = 1 \ge \mu_2 \ge \ldots` are the eigenvalues of
    :math:`D^{-1/2} B^T M^{-1} B D^{-1/2}`, the normalised graph of instances and base clusters, and
    :math:`\nu` is the second eigenvalue when every base clustering's labels are permuted among the instances
    it saw. Only eigenvalues above the null level count; if the second is not, the answer is one cluster.

    Symbols: B -> stacked one-hot labels; M -> labels per instance; D -> members per base cluster;
    nu -> ``curve.null``.
    Cost: one pass over the distinct rows and an eigenproblem of the size of all base clusters; the null
    permutes up to 100 000 labels `n_null` times, and beyond that draws the small tables directly.

    Parameters
    ----------
    partitions : Partitions
        The base clusterings.
    max_clusters : int, default=30
        The largest number considered.
    n_null : int, default=20
        Draws of the null.
    reference : {"permutation", "unimodal"}, default="permutation"
        "permutation" asks whether the bases agree beyond chance. k-means cuts one round cloud of points in
        much the same way every time, so bases made by k-means pass that test with a single cluster too.
        "unimodal" asks in addition whether the gap is larger than that of k-means on one normal cloud, with
        the same numbers of clusters and the same missing labels.
    random_state : int, RandomState or None, default=None
        The seed of the draws.

    Returns
    -------
    count : ClusterCount
        ``n_clusters``, the ``curve`` it was read from, ``n_significant``, ``warnings`` in words, and
        ``reliable``: that the best k stands out (twice the next best score, its neighbours apart), that the
        spectrum ends before `max_clusters`, and that there is no warning. It speaks of the structure that
        the bases share, not of classes.

    Notes
    -----
    It finds planted clusters. It does not find the number of classes when base clusterings of very different
    numbers of clusters come from k-means on real data, and no other rule we know does: look at the curve.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import choose_n_clusters
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 4, 400)
    >>> wrong = rng.random((400, 8)) < 0.3
    >>> base = np.where(wrong, rng.integers(0, 4, (400, 8)), truth[:, None])
    >>> choose_n_clusters(Partitions.of(base), random_state=0)
    ClusterCount(n_clusters=4, reliable)
    """
    name = "choose_n_clusters"
    check_parameter("max_clusters", max_clusters, Interval(Integral, 2, None, closed="left"), name)
    check_parameter("n_null", n_null, Interval(Integral, 2, None, closed="left"), name)
    check_parameter("reference", reference, StrOptions({"permutation", "unimodal"}), name)
    rng = random_source(random_state)
    ensemble = _speaking(partitions)
    # Two bases of k clusters have 2 k - 1 eigenvalues at most, and each k needs the one after it.
    k_max = min(max_clusters, int(ensemble.offsets[-1]) - 2, int(ensemble.counts.sum()) - 1)
    if len(ensemble.offsets) <= 2 or k_max < 2:
        return _single(ensemble)
    with threadpool_limits(limits=1, user_api="blas"):
        values, vectors = _spectrum(ensemble, k_max + 1)
        null = _null_levels(ensemble, n_null, rng)
        level = min(max(null.max(), null.mean() + _DEVIATIONS * null.std(ddof=1)), 1.0)
        n_significant = 1 + int(np.cumprod(values[1:] > level).sum())
        gap = -np.diff(_above_chance(values, null.mean()))
        score = gap * np.arange(1, k_max + 1)
        last = min(n_significant, k_max)
        n_clusters = 1 if last < 2 else 2 + int(score[1:last].argmax())
        if n_clusters > 1 and reference == "unimodal":
            n_clusters = 1 if _is_unimodal(ensemble, gap[:last], null.mean(), rng) else n_clusters
        silhouette = _silhouettes(ensemble, vectors, k_max, rng)
    curve = CountCurve(np.arange(1, k_max + 1), values[:-1], np.full(k_max, level), gap, score, silhouette)
    warnings = _warnings(ensemble, n_clusters, level)
    stands_out = n_clusters == 1 or _stands_out(score, n_clusters)
    reliable = n_significant < k_max and stands_out and not warnings
    return ClusterCount(n_clusters, n_significant, bool(reliable), curve, warnings)


def _speaking(partitions: Partitions) -> _Ensemble:
    form = partitions.canonical
    rows = form.rows
    keep = np.flatnonzero(~silent(partitions)[form.bases])
    codes = rows.codes[:, keep].astype(np.int64)
    seen = (codes >= 0).any(axis=1)
    codes = codes[seen]
    sizes = []
    for j in range(len(keep)):
        observed = codes[:, j] >= 0
        used, codes[observed, j] = np.unique(codes[observed, j], return_inverse=True)
        sizes.append(len(used))
    return _Ensemble(codes, rows.counts[seen], np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def _single(ensemble: _Ensemble) -> ClusterCount:
    """With fewer than two bases that say something there is no agreement to look at."""
    one = np.ones(1)
    curve = CountCurve(np.ones(1, dtype=np.int64), one, one, 0 * one, 0 * one, np.full(1, np.nan))
    n_bases = len(ensemble.offsets) - 1
    sentence = Finding(
        f"{n_bases or 'no'} base clustering{'s' * (n_bases != 1)} with something to say: the number of "
        "clusters needs the agreement of at least two.",
        hint="give n_clusters, or add base clusterings.",
    )
    return ClusterCount(1, 1, False, curve, (sentence,))


def _operator(ensemble: _Ensemble) -> tuple[np.ndarray | LinearOperator, np.ndarray]:
    """``D^(-1/2) B^T M^(-1) B D^(-1/2)``, as a table or, with many base clusters, as a product; and D."""
    codes, offsets = ensemble.codes, ensemble.offsets
    weights = ensemble.counts / (codes >= 0).sum(axis=1)
    sizes = scatter(codes, offsets, ensemble.counts.astype(float), np.ones((len(codes), 1)))[:, 0]
    scale = 1.0 / np.sqrt(sizes)
    if len(scale) <= _MAX_TABLE:
        return contingency(codes, offsets, weights) * scale * scale[:, None], sizes
    incidence = diags_array(np.sqrt(weights)) @ indicator(codes, offsets) @ diags_array(scale)
    transposed = incidence.T.tocsr()
    shape = (len(scale), len(scale))

    def product(x: np.ndarray) -> np.ndarray:
        return transposed @ (incidence @ x)

    return LinearOperator(shape, matvec=product, matmat=product, dtype=float), sizes


def _spectrum(ensemble: _Ensemble, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenvalues, and the embedding of the base clusters."""
    matrix, sizes = _operator(ensemble)
    values, vectors = leading_eigenpairs(matrix, k)
    return np.clip(values, 0.0, 1.0), vectors / np.sqrt(sizes)[:, None]


def _second(matrix: np.ndarray | LinearOperator, sizes: np.ndarray) -> float:
    """Second eigenvalue of a matrix whose first is 1, with the root of the sizes as its eigenvector."""
    trivial = np.sqrt(sizes / sizes.sum())

    def product(x: np.ndarray) -> np.ndarray:
        x = x.reshape(len(trivial), -1)
        return matrix @ x - trivial[:, None] * (trivial @ x)

    deflated = LinearOperator(matrix.shape, matvec=product, matmat=product, dtype=float)
    return float(leading_eigenpairs(deflated, 1, tol=1e-4).values[0])


def _null_levels(ensemble: _Ensemble, n_null: int, rng: np.random.RandomState) -> np.ndarray:
    """Second eigenvalues of ensembles whose bases have the same sizes and gaps but nothing in common."""
    n_labels = int(ensemble.counts @ (ensemble.codes >= 0).sum(axis=1))
    drawn = n_labels > _PERMUTED and ensemble.offsets[-1] <= min(_MAX_DRAWN, np.sqrt(n_labels))
    return np.array(list((_drawn_levels if drawn else _permuted_levels)(ensemble, n_null, rng)))


def _permuted_levels(ensemble: _Ensemble, n_null: int, rng: np.random.RandomState) -> Iterator[float]:
    codes = np.repeat(ensemble.codes, ensemble.counts, axis=0)
    ones = np.ones(len(codes), dtype=np.int64)
    for _ in range(n_null):
        for j in range(codes.shape[1]):
            seen = np.flatnonzero(codes[:, j] >= 0)
            codes[seen, j] = rng.permutation(codes[seen, j])
        yield _second(*_operator(_Ensemble(codes, ones, ensemble.offsets)))


def _drawn_levels(ensemble: _Ensemble, n_null: int, rng: np.random.RandomState) -> Iterator[float]:
    r"""The same without instances: the mean of the table of pairs of clusters, and normal noise.

    For clusters a, b of bases j, j' with shares p, the permuted table has mean :math:`W_{jj'} p_a p_b` and
    about the variance :math:`V_{jj'} p_a (1 - p_a) p_b (1 - p_b)`, W and V the sums of :math:`1/m_i` and
    :math:`1/m_i^2` over the instances that both saw. Inside a base only the diagonal is not zero.

    Noise of independent entries lifts the largest eigenvalue from :math:`\mu` to :math:`\mu (1 + 2x)`, that
    of a table of products, which this is, to :math:`\mu (1 + x)^2`; the difference is added.
    """
    observed = (ensemble.codes >= 0).astype(float)
    m_i = observed.sum(axis=1)
    n = ensemble.counts @ observed
    scale = np.sqrt(np.outer(n, n))
    w = (observed * (ensemble.counts / m_i)[:, None]).T @ observed / scale
    v = (observed * (ensemble.counts / m_i**2)[:, None]).T @ observed / scale
    base = np.repeat(np.arange(len(n)), np.diff(ensemble.offsets))
    sizes = scatter(ensemble.codes, ensemble.offsets, ensemble.counts.astype(float), np.ones((len(m_i), 1)))[
        :, 0
    ]
    root = np.zeros((len(base), len(n)))
    root[np.arange(len(base)), base] = np.sqrt(sizes / n[base])
    inside = base[:, None] == base
    mean = np.where(inside, np.diag(np.diag(w)[base]), root @ w @ root.T)
    deviation = np.where(inside, 0.0, np.sqrt(v / scale)[np.ix_(base, base)])
    own = np.sqrt(np.maximum(np.diag(v) - np.diag(w) ** 2, 0.0)[base] / sizes)
    level = _second(mean, sizes)
    for _ in range(n_null):
        noise = np.triu(rng.standard_normal(mean.shape) * deviation, 1)
        noise += noise.T
        # Cluster sizes are fixed, so a row of pairs of two bases has no noise in sum.
        noise -= root @ (root.T @ noise)
        noise -= (noise @ root) @ root.T
        noise[inside] = 0.0
        noise[np.diag_indices(len(noise))] = own * rng.standard_normal(len(own))
        lifted = _second(mean + noise, sizes)
        yield lifted + (lifted - level) ** 2 / (4.0 * level)


def _silhouettes(
    ensemble: _Ensemble, vectors: np.ndarray, k_max: int, rng: np.random.RandomState
) -> np.ndarray:
    """Mean of (own - second) / (1 - second), own and second the shares of agreement of a row with its own and
    the next cluster, for cuts into 2, ..., k_max clusters."""
    codes, counts = _sample(ensemble)
    n_seen = (codes >= 0).sum(axis=1, keepdims=True)
    out = np.full(k_max, np.nan)
    for k in range(2, k_max + 1):
        h = gather(codes, ensemble.offsets, vectors[:, :k]) / n_seen
        labels = spectral_rotation(h, counts.astype(float), n_init=1, rng=rng).labels
        rows = JointRows(codes, counts, labels, np.arange(len(codes)), k)
        found = score_rows(rows, ensemble.offsets)
        spread = 1.0 - np.minimum(found.own, found.second)
        gain = np.divide(found.own - found.second, spread, out=np.zeros_like(spread), where=spread > 0)
        out[k - 1] = np.average(gain, weights=counts)
    return out


def _sample(ensemble: _Ensemble) -> tuple[np.ndarray, np.ndarray]:
    """Rows with counts: all of them, or evenly spaced instances if they are many."""
    if len(ensemble.codes) <= _SAMPLE:
        return ensemble.codes, ensemble.counts
    reach = np.cumsum(ensemble.counts)
    places = (np.arange(_SAMPLE) + 0.5) / _SAMPLE * reach[-1]
    return ensemble.codes[np.searchsorted(reach, places, side="right")], np.ones(_SAMPLE, dtype=np.int64)


def _stands_out(score: np.ndarray, n_clusters: int) -> bool:
    k = np.arange(1, len(score) + 1)
    others = score[(np.abs(k - n_clusters) > 1) & (k > 1)]
    return bool(score[n_clusters - 1] >= _DOMINANCE * others.max(initial=0.0))


def _is_unimodal(ensemble: _Ensemble, gap: np.ndarray, chance: float, rng: np.random.RandomState) -> bool:
    """Whether k-means on one normal cloud has gaps as large: the largest excess over eight such ensembles, in
    their standard deviations, against that of each of them over the other seven."""
    codes, counts = _sample(ensemble)
    seen = np.repeat(codes >= 0, counts, axis=0)
    if len(seen) > _SAMPLE:
        seen = seen[rng.choice(len(seen), _SAMPLE, replace=False)]
    k = np.minimum(np.diff(ensemble.offsets), seen.sum(axis=0))
    gaps = np.array([_unimodal_gap(seen, k, len(gap), chance, rng) for _ in range(_N_REFERENCES)])

    def excess(one: np.ndarray, others: np.ndarray) -> float:
        # The constant keeps a gap of which all references agree from counting without end.
        return float(((one - others.mean(axis=0)) / (others.std(axis=0, ddof=1) + 0.01))[1:].max())

    usual = max(excess(gaps[r], np.delete(gaps, r, axis=0)) for r in range(_N_REFERENCES))
    return excess(gap, gaps) <= usual


def _unimodal_gap(
    seen: np.ndarray, k: np.ndarray, n_gaps: int, chance: float, rng: np.random.RandomState
) -> np.ndarray:
    cloud = rng.standard_normal((len(seen), _REFERENCE_FEATURES))
    codes = np.full(seen.shape, -1, dtype=np.int64)
    sizes = []
    for j, clusters in enumerate(k.tolist()):
        found = base_partitions(cloud[seen[:, j]], clusters, 1, max_iter=_REFERENCE_STEPS, random_state=rng)
        codes[seen[:, j], j] = found[:, 0]
        sizes.append(int(found.max()) + 1)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    some = seen.any(axis=1)
    ensemble = _Ensemble(codes[some], np.ones(int(some.sum()), dtype=np.int64), offsets)
    n_values = min(n_gaps + 1, int(offsets[-1]))
    values = np.zeros(n_gaps + 1)
    values[:n_values] = _spectrum(ensemble, n_values)[0]
    return -np.diff(_above_chance(values, chance))


def _above_chance(values: np.ndarray, chance: float) -> np.ndarray:
    """Eigenvalues as shares of the way from the null level to 1."""
    # A null that reaches 1, where bases hardly overlap, leaves nothing above it.
    return np.clip((values - chance) / max(1.0 - chance, 1e-9), 0.0, 1.0)


def _warnings(ensemble: _Ensemble, n_clusters: int, level: float) -> tuple[Finding, ...]:
    k = np.diff(ensemble.offsets)
    out = []
    if level > _WEAK:
        mean = float(ensemble.counts @ (ensemble.codes >= 0).sum(axis=1) / ensemble.counts.sum())
        out.append(
            Finding(
                f"with {mean:.1f} labels per instance, agreement by chance alone reaches {level:.2f} of 1: "
                "clusters may hide behind it.",
                hint="more base clusterings, or base clusterings of fewer clusters.",
            )
        )
    if n_clusters > 1 and k.max() >= _MIXED * k.min():
        out.append(
            Finding(
                f"the base clusterings have between {k.min()} and {k.max()} clusters: the number found "
                f"({n_clusters}) is that of the structure they share, often finer than the classes one has "
                "in mind.",
                hint="look at the curve and compare a few values, or base clusterings of similar sizes.",
            )
        )
    return tuple(out)
