"""How many clusters a feature table speaks for: how often pairs agree when subsamples are clustered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import xlogy
from sklearn.utils import check_array

from consilience._support.errors import InputError
from consilience._support.sklearn import Interval, StrOptions, check_parameter, random_source
from consilience.core.coassociation import coassociation
from consilience.core.tables import indicator
from consilience.generate import base_partitions
from consilience.inference.counts import Tabulated

_AMBIGUOUS = (0.1, 0.9)  # co-associations between which a pair is undecided
_SIGNIFICANT = 0.05
_LEAST_ENTROPY = 1e-4  # all pairs decided: the logarithm of zero would make any difference infinite


@dataclass(frozen=True, repr=False, eq=False)
class ResampledCurve(Tabulated):
    """One entry per number of clusters tried."""

    k: np.ndarray
    area: np.ndarray  # under the distribution function of the co-association
    delta_area: np.ndarray  # its relative growth from the k before
    pac: np.ndarray  # share of pairs that are undecided
    entropy: np.ndarray  # mean entropy of a pair, in nats
    rcsi: np.ndarray  # mean log entropy of the null minus log entropy; NaN without a null
    p_value: np.ndarray  # of an entropy this low under the null; NaN without a null
    cdf: np.ndarray  # (numbers, 101): share of pairs with co-association at most 0, 0.01, ..., 1

    def __repr__(self) -> str:
        return f"ResampledCurve(k = {self.k[0]} to {self.k[-1]})"


@dataclass(frozen=True, repr=False, eq=False)
class ResampledCount(Tabulated):
    """What `resample_n_clusters` returns."""

    n_clusters: int
    reliable: bool  # chosen against a null
    curve: ResampledCurve

    def __repr__(self) -> str:
        return f"ResampledCount(n_clusters={self.n_clusters}, {'' if self.reliable else 'not '}reliable)"


class _Distribution(NamedTuple):
    area: float
    pac: float
    entropy: float
    cdf: np.ndarray


def resample_n_clusters(
    X: Any,
    ks: Sequence[int] = tuple(range(2, 11)),
    *,
    n_resamples: int = 50,
    subsample: float = 0.8,
    null: Literal["none", "gaussian"] = "none",
    n_null: int = 25,
    max_instances: int = 1_000,
    method: Any = "kmeans",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> ResampledCount:
    r"""The number of clusters at which clusterings of subsamples agree most, compared with one normal cloud.

    For every k the table is clustered `n_resamples` times, each time a share of the instances. A good k
    leaves few pairs of instances that are together in some of these clusterings and apart in others. The
    measures are those of consensus clustering [1]_ (distribution function, area, relative growth of the
    area), the share of undecided pairs PAC [2]_, and the mean entropy of a pair. All of them favour some k
    even where there are no clusters. With a null they are compared, in the manner of M3C [3]_, with
    `n_null` tables of one normal cloud that has the covariance of X:

    .. math:: \mathrm{RCSI}(k) = \frac1B \sum_b \log e_b(k) - \log e(k), \qquad
        p(k) = \frac{1 + \#\{b : e_b(k) \le e(k)\}}{B + 1}

    and the answer is the k of largest RCSI among those with p < 0.05, or one cluster if there is none.

    Symbols: e -> curve.entropy; e_b -> the same of null table b; B -> n_null.
    Cost: n_resamples x numbers of clusters runs of `method`, with a null 1 + n_null times as many; memory
    max_instances^2 numbers.

    Parameters
    ----------
    X : (n_instances, n_features) array or frame
        The table, without missing values.
    ks : sequence of int, default=2..10
        The numbers of clusters to try.
    n_resamples : int, default=50
        Clusterings per number.
    subsample : float, default=0.8
        The share of instances that each of them sees.
    null : {"none", "gaussian"}, default="none"
        Whether to compare with normal clouds. Without, the k of least PAC is returned, which is biased
        towards large k and never says one.
    n_null : int, default=25
        Normal clouds; below 20 no p-value can be under 0.05.
    max_instances : int, default=1_000
        Pairs are counted among at most this many instances, drawn at random; all are clustered.
    method : {"kmeans", "spectral"} or scikit-learn clusterer, default="kmeans"
        As in `consilience.generate.base_partitions`.
    n_jobs : int, default=None
        Clusterings made at once.
    random_state : int, RandomState or None, default=None
        One seed gives one answer.

    Returns
    -------
    count : ResampledCount
        ``n_clusters`` and the ``curve``.

    References
    ----------
    .. [1] S. Monti, P. Tamayo, J. Mesirov and T. Golub, "Consensus clustering", Machine Learning 52, 2003.
    .. [2] Y. Senbabaoglu, G. Michailidis and J. Z. Li, "Critical limitations of consensus clustering in class
       discovery", Scientific Reports 4, 2014.
    .. [3] C. R. John et al., "M3C: Monte Carlo reference-based consensus clustering", Scientific Reports 10,
       2020.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from consilience.diagnostics import resample_n_clusters
    >>> X, _ = make_blobs(200, centers=3, n_features=4, random_state=1)
    >>> resample_n_clusters(X, (2, 3, 4), n_resamples=20, random_state=0)
    ResampledCount(n_clusters=3, not reliable)
    """
    name = "resample_n_clusters"
    positive = Interval(Integral, 1, None, closed="left")
    check_parameter("n_resamples", n_resamples, Interval(Integral, 2, None, closed="left"), name)
    check_parameter("subsample", subsample, Interval(Real, 0, 1, closed="neither"), name)
    check_parameter("null", null, StrOptions({"none", "gaussian"}), name)
    check_parameter("n_null", n_null, positive, name)
    check_parameter("max_instances", max_instances, Interval(Integral, 2, None, closed="left"), name)
    numbers = _check_numbers(ks)
    X = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=3, input_name="X")
    rng = random_source(random_state)
    rows = np.arange(len(X))
    if len(X) > max_instances:
        rows = np.sort(rng.choice(len(X), max_instances, replace=False))
    options = {
        "n_partitions": n_resamples,
        "subsample": subsample,
        "method": method,
        "n_jobs": n_jobs,
        # Unlike an ensemble, this wants each clustering as good as it gets: bad starts would count as doubt.
        "init": "k-means++",
        "max_iter": 100,
    }

    def measure(table: np.ndarray) -> list[_Distribution]:
        return [
            _distribution(base_partitions(table, int(k), random_state=rng, **options)[rows]) for k in numbers
        ]

    real = measure(X)
    log_entropy = np.log(np.maximum([one.entropy for one in real], _LEAST_ENTROPY))
    rcsi = p_value = np.full(len(numbers), np.nan)
    if null == "gaussian":
        clouds = [[one.entropy for one in measure(cloud)] for cloud in _normal_clouds(X, n_null, rng)]
        log_null = np.log(np.maximum(clouds, _LEAST_ENTROPY))
        rcsi = log_null.mean(axis=0) - log_entropy
        p_value = (1.0 + (log_null <= log_entropy).sum(axis=0)) / (n_null + 1.0)
    area = np.array([one.area for one in real])
    curve = ResampledCurve(
        k=numbers,
        area=area,
        delta_area=np.concatenate([area[:1], np.diff(area) / np.maximum(area[:-1], 1e-12)]),
        pac=np.array([one.pac for one in real]),
        entropy=np.array([one.entropy for one in real]),
        rcsi=rcsi,
        p_value=p_value,
        cdf=np.array([one.cdf for one in real]),
    )
    return ResampledCount(_choice(curve, null), null == "gaussian", curve)


def _check_numbers(ks: Sequence[int]) -> np.ndarray:
    numbers = np.asarray(ks)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers) or numbers.min() < 2:
        raise InputError(
            "The 'ks' parameter of resample_n_clusters must be a sequence of integers of at least 2. Got "
            f"{ks!r} instead.",
            hint="range(2, 11) tries 2 to 10 clusters.",
        )
    return np.unique(numbers)


def _distribution(labels: np.ndarray) -> _Distribution:
    """Co-association of all pairs that were seen together at least once."""
    offsets = np.concatenate([[0], np.cumsum(labels.max(axis=0) + 1)])
    shares = coassociation(indicator(labels, offsets), labels >= 0, normalize="pairs")
    pairs = shares[np.triu_indices(len(shares), 1)]
    pairs = np.sort(pairs[~np.isnan(pairs)])
    # Half a step above the grid: shares are fractions, and a rounded 0.3 must count as 0.3.
    cdf = np.searchsorted(pairs, np.arange(101) / 100 + 1e-9, side="right") / len(pairs)
    low, high = np.searchsorted(pairs, _AMBIGUOUS, side="right")
    entropy = -(xlogy(pairs, pairs) + xlogy(1.0 - pairs, 1.0 - pairs)).mean()
    # The area under a distribution function on 0..1 is one minus the mean.
    return _Distribution(float(1.0 - pairs.mean()), float(high - low) / len(pairs), float(entropy), cdf)


def _normal_clouds(X: np.ndarray, n_null: int, rng: np.random.RandomState) -> Iterator[np.ndarray]:
    """Normal tables with the covariance of X, in the coordinates of its principal components.

    k-means sees distances alone, and a rotation back would not change them.
    """
    spread = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) / np.sqrt(len(X) - 1)
    spread = spread[spread > 1e-12 * spread[0]] if spread[0] > 0 else spread[:1]
    for _ in range(n_null):
        yield rng.standard_normal((len(X), len(spread))) * spread


def _choice(curve: ResampledCurve, null: str) -> int:
    if null == "none":
        return int(curve.k[curve.pac.argmin()])
    significant = np.flatnonzero(curve.p_value < _SIGNIFICANT)
    return int(curve.k[significant[curve.rcsi[significant].argmax()]]) if len(significant) else 1
