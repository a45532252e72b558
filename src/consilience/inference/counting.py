"""How many clusters a table of base clusterings speaks for: by a gap in its spectrum, or by modularity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import diags_array
from scipy.sparse.linalg import LinearOperator

from consilience._support.shown import Table, as_html
from consilience._support.sklearn import Interval, StrOptions, check_parameter, random_source
from consilience._support.threads import one_thread
from consilience.core.canonical import Rows, evenly
from consilience.core.discretize import spectral_rotation
from consilience.core.eigen import leading_eigenpairs
from consilience.core.tables import contingency, gather, indicator, scatter
from consilience.evidence.partitions import Partitions
from consilience.generate import base_partitions
from consilience.inference.chance import ChanceTest, compare_with_chance
from consilience.inference.copies import one_of_each
from consilience.inference.counts import Finding, JointRows, Tabulated, silent
from consilience.inference.hierarchy import Cuts, agreement_of_halves, judge_cuts
from consilience.inference.neighbours import score_rows

# Up to this many labels are permuted; beyond, tables of pairs of clusters are drawn, if they are small.
_PERMUTED, _MAX_DRAWN = 100_000, 3_000
# Up to this many base clusters their table of pairs is built; beyond, products go through the labels.
_MAX_TABLE = 1_000
# The count silhouette and the unimodal reference look at no more rows than this.
_SAMPLE = 5_000
# A null level must be passed by this many standard deviations as well as by all draws: with 20 draws the
# maximum alone would be passed by chance once in 21 times.
_DEVIATIONS = 4.0
_DOMINANCE = 3.0  # the best score over the next best that is not its neighbour's
_GOOD = 0.95  # share of the highest modularity that is about as good
_FEWEST_IN_HALVES = 6  # base clusterings from which on two halves of them say something of a given number
_REPEATABLE, _CLOUD = 0.7, 0.55  # agreement of halves from which on, and below which at any number
_MAX_LINKED = 3_000  # base clusters up to which all pairs of them are held for the tree
_WEAK = 0.5  # a null level from which on chance explains so much that clusters may hide behind it
_MIXED = 3.0  # largest over smallest number of base clusters from which on the answer is not to be trusted
_MOST_CLUSTERS, _N_NULL = 30, 20
_N_REFERENCES, _REFERENCE_FEATURES, _REFERENCE_STEPS = 8, 10, 15


@dataclass(frozen=True, repr=False, eq=False)
class CountCurve(Tabulated):
    """One entry per number of clusters k = 1, 2, ...; NaN where there is none."""

    k: np.ndarray
    eigenvalue: np.ndarray  # the k-th of the bipartite graph of instances and base clusters
    null: np.ndarray  # what it must pass to count: the level of base clusterings that agree by chance
    gap: np.ndarray  # to the next eigenvalue, both as shares of the way from the null level to 1
    score: np.ndarray  # k times the gap
    silhouette: np.ndarray  # of a cut into k clusters, from shares of agreement; NaN for k = 1
    modularity: np.ndarray  # of DAL's similarity, its tree cut into k clusters
    walk: np.ndarray  # of the same clusters: how far three steps of a walk stay inside, beyond chance
    stability: np.ndarray  # mean adjusted Rand index of the answers of two halves of the bases
    smallest: np.ndarray  # share of the instances in the smallest cluster

    def __repr__(self) -> str:
        return f"CountCurve(k = 1 to {self.k[-1]})"


@dataclass(frozen=True)
class CountCandidate(Tabulated):
    """A number of clusters that something speaks for."""

    n_clusters: int
    role: Literal["coarse", "chosen", "fine"]  # beside the one that was chosen
    found_by: tuple[str, ...]  # "spectrum", "modularity", "walk"; none of them where nothing beat chance
    modularity: float
    stability: float
    smallest: float


@dataclass(frozen=True, repr=False, eq=False)
class ClusterCount(Tabulated):
    """What `choose_n_clusters` returns.

    Attributes
    ----------
    n_clusters : int
        The number of clusters that the labels support. It is not a count of classes.
    low, high : int
        The numbers from and to which the modularity is at least .95 of its maximum; `n_clusters` included.
    rule : {"chance", "spectrum", "modularity"}
        What decided: nothing beyond chance, a gap that stands out, or the highest modularity.
    reliable : bool
        The spectrum is clear and nothing warns; never where the modularity decided.
    repeatable : bool
        Two halves of the base clusterings give nearly the same `n_clusters` clusters: a mean adjusted Rand
        index of at least .7.
    may_be_one_cloud : bool
        The halves agree on no number (nowhere .55), and no gap stands out: base clusterings that cut one
        cloud of points here and there are like this.
    candidates : tuple of CountCandidate
        Coarse, chosen and fine numbers, in ascending order, and what speaks for each.
    bases_have : int or None
        The number of clusters of every base clustering, where it is the same for all.
    n_significant : int
        Eigenvalues beyond chance: an upper bound.
    curve : CountCurve
        All that was looked at, for every number.
    warnings : tuple of str
        In words, each with a hint.
    beyond_chance : bool or None
        Whether the base clusterings agree more than by chance; None where that cannot be told.
    p_chance : float
        How often unrelated base clusterings would agree as much; see :func:`beyond_chance`.
    """

    n_clusters: int
    low: int
    high: int
    rule: Literal["chance", "spectrum", "modularity"]
    reliable: bool
    repeatable: bool
    may_be_one_cloud: bool
    candidates: tuple[CountCandidate, ...]
    bases_have: int | None
    n_significant: int
    curve: CountCurve
    warnings: tuple[Finding, ...]
    beyond_chance: bool | None = None
    p_chance: float = float("nan")

    def __repr__(self) -> str:
        about = f", {self.low} to {self.high}" if self.rule == "modularity" else ""
        return f"ClusterCount(n_clusters={self.n_clusters}{about}, {'' if self.reliable else 'not '}reliable)"

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words, what it rests on, and what it is not."""
        k, curve = self.n_clusters, self.curve
        if len(curve.k) == 1:
            return ("The labels support no number of clusters: there is no agreement to look at.",)
        if self.rule == "chance":
            by_chance = self.n_significant == 1 and not self.beyond_chance
            like = "chance" if by_chance else "those of one cloud of points would"
            return (
                f"The labels support one cluster: the base clusterings agree no more than {like}; this is "
                "not a count of classes.",
            )
        ranged = f"{self.low} to {self.high}" + " or more" * bool(self.high == curve.k[-1] > k)
        if self.n_significant > 1 and _stands_out(curve.score, k):
            out = [
                f"The labels support {k} clusters, after which a gap stands out in the spectrum of the base "
                "clusterings; this is not a count of classes."
            ]
            if self.low < self.high:
                out.append(f"By modularity {ranged} are about as good.")
        else:
            why = (
                "similar instances lie most inside clusters (modularity)"
                if self.rule == "modularity"
                else "the gap is largest"
            )
            out = [
                f"The labels support about {k} clusters ({ranged}); this is not a count of classes.",
                "No gap stands out in the spectrum of the base clusterings, so this is the number at which "
                f"{why}: not reliable.",
            ]
        halves = curve.stability[k - 1]
        if np.isfinite(halves):
            out.append(_repeatability(float(halves), k))
        if self.bases_have is not None:
            out.append(f"All base clusterings have {self.bases_have} clusters.")
        return tuple(out)

    def summary(self) -> str:
        """The `sentences`, and a table of the candidates."""
        lines = [*self.sentences]
        if self.rule != "chance":
            lines += ["", "clusters            modularity  halves agree  smallest cluster  found by"]
            for c in self.candidates:
                numbers = f"{c.modularity:10.2f}  {c.stability:12.2f}  {c.smallest:16.1%}"
                by = ", ".join(c.found_by)
                lines.append(f"{c.n_clusters:8d}  {c.role:8s}  {numbers}  {by}".replace("nan", "  -"))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (
                str(c.n_clusters),
                c.role,
                *(f"{value:.2f}".replace("nan", "-") for value in (c.modularity, c.stability)),
                f"{c.smallest:.1%}".replace("nan%", "-"),
                ", ".join(c.found_by),
            )
            for c in self.candidates
        ]
        head = ("clusters", "", "modularity", "halves agree", "smallest cluster", "found by")
        table = Table(head, rows) if self.rule != "chance" else Table((), [])
        return as_html(self.sentences, table, warnings=self.warnings)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, with the `sentences`."""
        return {**super().as_dict(), "sentences": list(self.sentences)}


def choose_n_clusters(
    partitions: Any,
    *,
    max_clusters: int = _MOST_CLUSTERS,
    n_null: int = _N_NULL,
    reference: Literal["permutation", "unimodal"] = "permutation",
    random_state: Any = None,
) -> ClusterCount:
    r"""The number of clusters that the base labels support, with a range; it is not a count of classes.

    1. One, if the base clusterings agree no more than chance: by their pairs (:func:`beyond_chance`), and by
       the second eigenvalue :math:`\mu_2` of :math:`D^{-1/2} B^T M^{-1} B D^{-1/2}`, the normalised graph of
       instances and base clusters, which is not above that of base clusterings whose labels are permuted
       among the instances they saw.
    2. The number with the largest gap after it in the spectrum, if it stands out: a score of three times
       that of any other number but its neighbours,

       .. math:: s_k = k \, (\tilde\mu_k - \tilde\mu_{k+1}), \qquad
           \tilde\mu = \frac{\mu - \bar\nu}{1 - \bar\nu}

       with :math:`\nu` the second eigenvalues of the permuted labels.
    3. Otherwise the number of highest modularity,

       .. math:: Q_k = \sum_c \frac{M_{cc}}{t} - \sum_c \Bigl( \frac{\sum_d M_{cd}}{t} \Bigr)^2, \qquad
           M_{cd} = \sum_{i \in c, j \in d, i \ne j} S_{ij}

       of the similarity S of :class:`consilience.DAL`, whose tree is cut into k clusters; t is the sum of M.

    Symbols: B -> stacked one-hot labels; M in 1 -> labels per instance; D -> members per base cluster;
    mu -> ``curve.eigenvalue``; s -> ``curve.score``; Q -> ``curve.modularity``.
    Cost: one pass over the distinct rows, an eigenproblem of the size of all base clusters, and the linkage
    of at most 5000 instances; the null permutes up to 100 000 labels `n_null` times, and beyond that draws
    the small tables directly.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
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
        ``n_clusters``, the range ``low`` to ``high``, ``candidates`` with what speaks for each, ``reliable``,
        ``repeatable``, ``may_be_one_cloud``, ``sentences`` and ``warnings`` in words, and the ``curve``.

    Notes
    -----
    It finds planted clusters. Base clusterings of different numbers of clusters on real data do not tell
    their classes, by this rule or any other that we tried: step 3 was chosen because merging at its number
    loses about nothing against merging at the number of classes. See the page on the number of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import choose_n_clusters
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 4, 400)
    >>> wrong = rng.random((400, 8)) < 0.3
    >>> base = np.where(wrong, rng.integers(0, 4, (400, 8)), truth[:, None])
    >>> count = choose_n_clusters(Partitions.of(base), random_state=0)
    >>> count.n_clusters, count.rule, count.reliable
    (4, 'spectrum', True)
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    name = "choose_n_clusters"
    check_parameter("max_clusters", max_clusters, Interval(Integral, 2, None, closed="left"), name)
    check_parameter("n_null", n_null, Interval(Integral, 2, None, closed="left"), name)
    check_parameter("reference", reference, StrOptions({"permutation", "unimodal"}), name)
    rng = random_source(random_state)
    rows = _speaking(one_of_each(partitions))
    # Two bases of k clusters have 2 k - 1 eigenvalues at most, and each k needs the one after it.
    k_max = min(max_clusters, int(rows.offsets[-1]) - 2, int(rows.counts.sum()) - 1)
    if len(rows.offsets) <= 2 or k_max < 2:
        return _single(rows)
    test = compare_with_chance(partitions)
    with one_thread("blas"):
        values, vectors = _spectrum(rows, k_max + 1)
        null = _null_levels(rows, n_null, rng)
        level = _level(null)
        n_significant = 1 + int(np.cumprod(values[1:] > level).sum())
        gap = -np.diff(_above_chance(values, null.mean()))
        score = gap * np.arange(1, k_max + 1)
        last = min(n_significant, k_max)
        if last < 2 and test.beyond:  # pairs agree, and no direction shows it: what there is of gaps
            last = k_max
        by_spectrum = 1 if last < 2 else 2 + int(score[1:last].argmax())
        if by_spectrum > 1 and reference == "unimodal" and _is_unimodal(rows, gap[:last], null.mean(), rng):
            by_spectrum = 1
        silhouette = _silhouettes(rows, vectors, k_max, rng)
        cuts, halves = Cuts(*np.full((3, k_max), np.nan)), np.full(k_max, np.nan)
        if rows.offsets[-1] <= _MAX_LINKED:
            cuts = judge_cuts(rows, k_max)
            halves = agreement_of_halves(rows, k_max, rng)
    k = np.arange(1, k_max + 1)
    level_of_all = np.full(k_max, level)
    curve = CountCurve(k, values[:-1], level_of_all, gap, score, silhouette, *cuts[:2], halves, cuts.smallest)
    if test.beyond is not None or n_significant > 1:
        test = replace(test, beyond=bool(test.beyond) or n_significant > 1)
    return _conclude(rows, curve, by_spectrum, n_significant, test)


def beyond_chance(partitions: Any, *, n_null: int = _N_NULL, random_state: Any = 0) -> ChanceTest:
    """Whether base clusterings agree more than those that have nothing to do with each other would.

    It depends on no method and no number of clusters. They do if Pearson's chi-square of their pairs says so
    (a p-value below .01), or, where it does not, if the graph of instances and base clusters holds together
    better than with permuted labels, as in :func:`choose_n_clusters`.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings. Those of weight 0 have no say. Those of a group, and those that were made of one
        view, are one source: they are not compared with each other.
    n_null : int, default=20
        Draws of permuted labels, where they are needed.
    random_state : int, RandomState or None, default=0
        The seed of these draws.

    Returns
    -------
    test : ChanceTest
        ``beyond``, ``p_value``, and ``p_values`` of each source against the others; ``unrelated`` names the
        sources that have nothing to do with the others.

    Notes
    -----
    It cannot see noise that sources share: copies of a random clustering agree beyond chance.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.diagnostics import beyond_chance
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.integers(0, 4, (300, 5))
    >>> beyond_chance(noise).beyond
    False
    >>> truth = rng.integers(0, 4, 300)
    >>> noise[:, :4] = np.where(rng.random((300, 4)) < 0.5, truth[:, None], noise[:, :4])
    >>> test = beyond_chance({name: column for name, column in zip("abcde", noise.T)})
    >>> test.beyond, test.unrelated
    (True, ('e',))
    """
    table = Partitions.of(partitions, unobserved="keep").counting
    check_parameter("n_null", n_null, Interval(Integral, 2, None, closed="left"), "beyond_chance")
    found = compare_with_chance(table)
    if found.beyond is not False or table.views is not None:
        return found
    rows = _speaking(one_of_each(table))
    with one_thread("blas"):
        second = _spectrum(rows, 2)[0][1]
        return replace(
            found, beyond=bool(second > _level(_null_levels(rows, n_null, random_source(random_state))))
        )


class Caution(NamedTuple):
    """What is to be said of a number of clusters that was given."""

    repeatability: str = ""  # whether two halves of the base clusterings find these clusters, in a sentence
    warnings: tuple[Finding, ...] = ()


def caution(partitions: Partitions, n_clusters: int) -> Caution:
    """What `choose_n_clusters` would say of a number beside the number itself.

    Nothing for one cluster, more than thirty, fewer than six base clusterings that say something (a half of
    which is one or two of them, who say little about all), or very many base clusters.

    Cost: ten trees of at most 1000 rows; where two halves agree nowhere, also a spectrum and its null.
    """
    rows = _speaking(one_of_each(partitions.counting))
    k_max = min(_MOST_CLUSTERS, int(rows.offsets[-1]) - 2, int(rows.counts.sum()) - 1)
    few = len(rows.offsets) - 1 < _FEWEST_IN_HALVES
    if few or not 2 <= n_clusters <= k_max or rows.offsets[-1] > _MAX_TABLE:
        return Caution()
    rng = random_source(0)
    with one_thread("blas"):
        halves = agreement_of_halves(rows, k_max, rng)
        known = halves[np.isfinite(halves)]
        cloudy = len(known) > 0 and bool(known.max() < _CLOUD) and not _has_clear_gap(rows, k_max, rng)
    at = float(halves[n_clusters - 1])
    return Caution(
        _repeatability(at, n_clusters) if np.isfinite(at) else "", (_cloud_warning(),) if cloudy else ()
    )


def _has_clear_gap(rows: Rows, k_max: int, rng: np.random.RandomState) -> bool:
    values, null = _spectrum(rows, k_max + 1)[0], _null_levels(rows, _N_NULL, rng)
    n_significant = 1 + int(np.cumprod(values[1:] > _level(null)).sum())
    if n_significant < 2:
        return False
    score = -np.diff(_above_chance(values, null.mean())) * np.arange(1, k_max + 1)
    return _stands_out(score, 2 + int(score[1 : min(n_significant, k_max)].argmax()))


def _repeatability(halves: float, k: int) -> str:
    return (
        f"{'Repeatable' if halves >= _REPEATABLE else 'Not repeatable'}: two halves of the base clusterings "
        f"agree to {halves:.2f} on {k} clusters (adjusted Rand index; 1 is the same)."
    )


def _level(null: np.ndarray) -> float:
    """What an eigenvalue must pass."""
    return float(min(max(null.max(), null.mean() + _DEVIATIONS * null.std(ddof=1)), 1.0))


def _conclude(
    rows: Rows, curve: CountCurve, by_spectrum: int, n_significant: int, test: ChanceTest
) -> ClusterCount:
    """From the curve to the answer."""
    found = {"spectrum": by_spectrum}
    for name in ("modularity", "walk"):
        values = getattr(curve, name)[1:]
        if np.isfinite(values).any():
            found[name] = 2 + int(np.nanargmax(values))
    clear = min(by_spectrum, n_significant) > 1 and _stands_out(curve.score, by_spectrum)
    rule: Literal["chance", "spectrum", "modularity"] = "modularity"
    if by_spectrum == 1:
        rule, found = "chance", {}
    elif clear or "modularity" not in found:
        rule = "spectrum"
    n_clusters = found.get(rule, 1)
    low = high = n_clusters
    if "modularity" in found:
        good = np.flatnonzero(curve.modularity >= _GOOD * np.nanmax(curve.modularity)) + 1
        low, high = min(low, int(good[0])), max(high, int(good[-1]))
    stable = curve.stability[np.isfinite(curve.stability)]
    cloudy = rule != "chance" and not clear and len(stable) > 0 and bool(stable.max() < _CLOUD)
    warnings = _warnings(rows, n_clusters, low, high, clear, cloudy, float(curve.null[0]))
    ks = np.diff(rows.offsets)
    return ClusterCount(
        n_clusters=n_clusters,
        low=low,
        high=high,
        rule=rule,
        reliable=bool(n_significant < len(curve.k) and (clear or n_clusters == 1) and not warnings),
        repeatable=bool(curve.stability[n_clusters - 1] >= _REPEATABLE),
        may_be_one_cloud=cloudy,
        candidates=_candidates(curve, n_clusters, found),
        bases_have=int(ks[0]) if (ks == ks[0]).all() else None,
        n_significant=n_significant,
        curve=curve,
        warnings=warnings,
        beyond_chance=test.beyond,
        p_chance=test.p_value,
    )


def _candidates(curve: CountCurve, n_clusters: int, found: dict[str, int]) -> tuple[CountCandidate, ...]:
    out = []
    for k in sorted({n_clusters, *found.values()}):
        role: Literal["coarse", "chosen", "fine"] = "chosen"
        if k != n_clusters:
            role = "coarse" if k < n_clusters else "fine"
        by = tuple(name for name, number in found.items() if number == k)
        values = (curve.modularity, curve.stability, curve.smallest)
        out.append(CountCandidate(k, role, by, *(float(each[k - 1]) for each in values)))
    return tuple(out)


def _speaking(partitions: Partitions) -> Rows:
    """Rows of the base clusterings that say something; every row has a label, every cluster a member."""
    form = partitions.canonical
    rows = form.rows
    keep = np.flatnonzero(~silent(partitions)[form.bases])
    codes = rows.codes[:, keep]
    seen = (codes >= 0).any(axis=1)
    codes = codes[seen]
    sizes = []
    for j in range(len(keep)):
        observed = codes[:, j] >= 0
        used, codes[observed, j] = np.unique(codes[observed, j], return_inverse=True)
        sizes.append(len(used))
    return Rows(codes, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), rows.counts[seen])


def _single(rows: Rows) -> ClusterCount:
    """With fewer than two bases that say something there is no agreement to look at."""
    one, unknown = np.ones(1), np.full(1, np.nan)
    rest = (unknown, 0 * one, unknown, unknown, one)  # modularity is 0, and the smallest cluster has all
    curve = CountCurve(np.ones(1, dtype=np.int64), one, one, 0 * one, 0 * one, *rest)
    n_bases = len(rows.offsets) - 1
    sentence = Finding(
        f"{n_bases or 'no'} base clustering{'s' * (n_bases != 1)} with something to say: the number of "
        "clusters needs the agreement of at least two.",
        hint="give n_clusters, or add base clusterings.",
    )
    return ClusterCount(
        n_clusters=1,
        low=1,
        high=1,
        rule="chance",
        reliable=False,
        repeatable=False,
        may_be_one_cloud=False,
        candidates=_candidates(curve, 1, {}),
        bases_have=None,
        n_significant=1,
        curve=curve,
        warnings=(sentence,),
    )


def _operator(rows: Rows) -> tuple[np.ndarray | LinearOperator, np.ndarray]:
    """``D^(-1/2) B^T M^(-1) B D^(-1/2)``, as a table or, with many base clusters, as a product; and D."""
    codes, offsets = rows.codes, rows.offsets
    weights = rows.counts / (codes >= 0).sum(axis=1)
    sizes = scatter(codes, offsets, rows.counts.astype(float), np.ones((len(codes), 1)))[:, 0]
    scale = 1.0 / np.sqrt(sizes)
    if len(scale) <= _MAX_TABLE:
        return contingency(codes, offsets, weights) * scale * scale[:, None], sizes
    incidence = diags_array(np.sqrt(weights)) @ indicator(codes, offsets) @ diags_array(scale)
    transposed = incidence.T.tocsr()
    shape = (len(scale), len(scale))

    def product(x: np.ndarray) -> np.ndarray:
        return transposed @ (incidence @ x)

    return LinearOperator(shape, matvec=product, matmat=product, dtype=float), sizes


def _spectrum(rows: Rows, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenvalues, and the embedding of the base clusters."""
    matrix, sizes = _operator(rows)
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


def _null_levels(rows: Rows, n_null: int, rng: np.random.RandomState) -> np.ndarray:
    """Second eigenvalues of ensembles whose bases have the same sizes and gaps but nothing in common."""
    n_labels = int(rows.counts @ (rows.codes >= 0).sum(axis=1))
    drawn = n_labels > _PERMUTED and rows.offsets[-1] <= min(_MAX_DRAWN, np.sqrt(n_labels))
    return np.array(list((_drawn_levels if drawn else _permuted_levels)(rows, n_null, rng)))


def _permuted_levels(rows: Rows, n_null: int, rng: np.random.RandomState) -> Iterator[float]:
    codes = np.repeat(rows.codes, rows.counts, axis=0)
    ones = np.ones(len(codes), dtype=np.int64)
    for _ in range(n_null):
        for j in range(codes.shape[1]):
            seen = np.flatnonzero(codes[:, j] >= 0)
            codes[seen, j] = rng.permutation(codes[seen, j])
        yield _second(*_operator(Rows(codes, rows.offsets, ones)))


def _drawn_levels(rows: Rows, n_null: int, rng: np.random.RandomState) -> Iterator[float]:
    r"""The same without instances: the mean of the table of pairs of clusters, and normal noise.

    For clusters a, b of bases j, j' with shares p, the permuted table has mean :math:`W_{jj'} p_a p_b` and
    about the variance :math:`V_{jj'} p_a (1 - p_a) p_b (1 - p_b)`, W and V the sums of :math:`1/m_i` and
    :math:`1/m_i^2` over the instances that both saw. Inside a base only the diagonal is not zero.

    Noise of independent entries lifts the largest eigenvalue from :math:`\mu` to :math:`\mu (1 + 2x)`, that
    of a table of products, which this is, to :math:`\mu (1 + x)^2`; the difference is added.
    """
    observed = (rows.codes >= 0).astype(float)
    m_i = observed.sum(axis=1)
    n = rows.counts @ observed
    scale = np.sqrt(np.outer(n, n))
    w = (observed * (rows.counts / m_i)[:, None]).T @ observed / scale
    v = (observed * (rows.counts / m_i**2)[:, None]).T @ observed / scale
    base = np.repeat(np.arange(len(n)), np.diff(rows.offsets))
    sizes = scatter(rows.codes, rows.offsets, rows.counts.astype(float), np.ones((len(m_i), 1)))[:, 0]
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


def _silhouettes(rows: Rows, vectors: np.ndarray, k_max: int, rng: np.random.RandomState) -> np.ndarray:
    """Mean of (own - second) / (1 - second), own and second the shares of agreement of a row with its own and
    the next cluster, for cuts into 2, ..., k_max clusters."""
    codes, counts = _sample(rows)
    n_seen = (codes >= 0).sum(axis=1, keepdims=True)
    out = np.full(k_max, np.nan)
    for k in range(2, k_max + 1):
        h = gather(codes, rows.offsets, vectors[:, :k]) / n_seen
        labels = spectral_rotation(h, counts.astype(float), n_init=1, rng=rng).labels
        found = score_rows(JointRows(codes, counts, labels, np.arange(len(codes)), k), rows.offsets)
        spread = 1.0 - np.minimum(found.own, found.second)
        gain = np.divide(found.own - found.second, spread, out=np.zeros_like(spread), where=spread > 0)
        out[k - 1] = np.average(gain, weights=counts)
    return out


def _sample(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Rows with counts: all of them, or those of evenly spaced instances if they are many."""
    places, counts = evenly(rows.counts, _SAMPLE)
    return rows.codes[places], counts


def _stands_out(score: np.ndarray, n_clusters: int) -> bool:
    k = np.arange(1, len(score) + 1)
    others = score[(np.abs(k - n_clusters) > 1) & (k > 1)]
    return bool(score[n_clusters - 1] >= _DOMINANCE * others.max(initial=0.0))


def _is_unimodal(rows: Rows, gap: np.ndarray, chance: float, rng: np.random.RandomState) -> bool:
    """Whether k-means on one normal cloud has gaps as large: the largest excess over eight such ensembles, in
    their standard deviations, against that of each of them over the other seven."""
    codes, counts = _sample(rows)
    seen = np.repeat(codes >= 0, counts, axis=0)
    if len(seen) > _SAMPLE:
        seen = seen[rng.choice(len(seen), _SAMPLE, replace=False)]
    k = np.minimum(np.diff(rows.offsets), seen.sum(axis=0))
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
    part = Rows(codes[some], offsets, np.ones(int(some.sum()), dtype=np.int64))
    n_values = min(n_gaps + 1, int(offsets[-1]))
    values = np.zeros(n_gaps + 1)
    values[:n_values] = _spectrum(part, n_values)[0]
    return -np.diff(_above_chance(values, chance))


def _above_chance(values: np.ndarray, chance: float) -> np.ndarray:
    """Eigenvalues as shares of the way from the null level to 1."""
    # A null that reaches 1, where bases hardly overlap, leaves nothing above it.
    return np.clip((values - chance) / max(1.0 - chance, 1e-9), 0.0, 1.0)


def _warnings(
    rows: Rows, n_clusters: int, low: int, high: int, clear: bool, cloudy: bool, level: float
) -> tuple[Finding, ...]:
    k = np.diff(rows.offsets)
    out = []
    if level > _WEAK:
        mean = float(rows.counts @ (rows.codes >= 0).sum(axis=1) / rows.counts.sum())
        out.append(
            Finding(
                f"with {mean:.1f} labels per instance, agreement by chance alone reaches {level:.2f} of 1: "
                "clusters may hide behind it.",
                hint="more base clusterings, or base clusterings of fewer clusters.",
            )
        )
    if n_clusters == 1:
        return tuple(out)
    if cloudy:
        out.append(_cloud_warning())
    if not clear:
        out.append(
            Finding(
                "no number of clusters stands out"
                + (f"; {low} to {high} are about as good as {n_clusters}." if low < high else "."),
                hint="compare a few of these numbers, or give the one you need.",
            )
        )
    elif k.max() >= _MIXED * k.min():
        out.append(
            Finding(
                f"the base clusterings have between {k.min()} and {k.max()} clusters: the number found "
                f"({n_clusters}) is that of the structure they share, which need not be that of the classes "
                "one has in mind.",
                hint="look at the curve and compare a few values, or base clusterings of similar sizes.",
            )
        )
    return tuple(out)


def _cloud_warning() -> Finding:
    return Finding(
        "this may be one cloud of points that is cut here and there: two halves of the base clusterings "
        "agree on no number of clusters.",
        hint=(
            "do not report clusters without other evidence; in Python, "
            "choose_n_clusters(..., reference='unimodal') compares with one cloud."
        ),
    )
