"""Remove entries on purpose: the protocols of the papers and the mechanisms of the statisticians.

One pipeline for labels and for views: a mask of what is there, a mask of what is kept, a repair so that
no instance disappears altogether.
"""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from consilience._support.errors import InputError
from consilience._support.sklearn import Interval, StrOptions, check_parameter, random_source
from consilience._support.values import is_missing
from consilience.evidence.partitions import MISSING, Partitions

__all__ = ["drop_labels", "drop_views"]

Mask = NDArray[np.bool_]


def drop_labels(
    labels: Any,
    ratio: float,
    *,
    mechanism: Literal["per_base", "mcar", "mar", "mnar"] = "per_base",
    strength: float = 2.0,
    keep_seen: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> Any:
    """Hide a share of the labels of a table of base clusterings.

    Parameters
    ----------
    labels : whatever `fuse` takes
        A row per instance and a column per base clustering. Missing already: a negative number, NaN,
        None or NA. It is not changed.
    ratio : float in [0, 1)
        Share of the entries that are there to remove.
    mechanism : {"per_base", "mcar", "mar", "mnar"}, default="per_base"
        Which entries go.

        - "per_base": from each base clustering exactly ``round(ratio * n)`` entries (halves up; n is
          the number it has), drawn at random. The protocol of PCE [1]_.
        - "mcar", missing completely at random: every entry on its own, with chance `ratio`.
        - "mar", missing at random: the chance in one base clustering depends on what another one,
          still visible, says. The base clusterings are taken in a random order. The first loses
          entries with chance `ratio`. Each next one looks at the one before it: where that label is
          still there its cluster sets the chance, elsewhere the chance is `ratio`.
        - "mnar", missing not at random: the chance depends on the label itself, so some clusters of a
          base clustering are seen less than others.
    strength : float, default=2.0
        For "mar" and "mnar": how far apart, in log odds of going missing, the cluster that loses most
        is from the one that loses least. The clusters are spread evenly between, in random order, and
        the average chance stays `ratio`. 0 makes both the same as "mcar".
    keep_seen : bool, default=True
        Leave every instance that has a label with at least one. See Notes.
    random_state : int, RandomState instance or None, default=None
        A number gives the same answer every time. None draws afresh, without touching NumPy's global
        state.

    Returns
    -------
    labels : ndarray or data frame of shape (n_instances, n_partitions)
        A new table in which every missing entry reads the same. Integers come back as signed integers
        with -1, floats with NaN, strings and objects as objects with None, a frame as the same kind
        of frame with nulls (an integer column of NumPy type in a pandas frame as floats with NaN, the
        way pandas does it). What is neither an array nor a frame comes back as :class:`Partitions`.

    Notes
    -----
    How `keep_seen` repairs: an instance that would lose all its labels gets one of them back. For
    "per_base" an entry of the same base clustering then goes from an instance that has another one
    left, so the number missing per base clustering stays exact. In a complete table that always works
    as long as it can, that is up to a ratio of (m - 1) / m. Beyond it, and in a table with holes where
    no entry is found to trade, fewer are missing than asked for. The other mechanisms only give back:
    with m base clusterings about ``ratio ** m`` of the instances get one label more.

    The repair leaves "mar" missing at random: an instance needs it only if no label of it was visible.

    PCE's authors remove instances first and cluster the rest; to have base clusterings that never saw
    the removed instances, make them on subsamples instead.

    References
    ----------
    .. [1] P. Zhou, L. Du, X. Liu, Z. Ling, X. Ji, X. Li and Y.-D. Shen, "Partial Clustering Ensemble",
       IEEE Transactions on Knowledge and Data Engineering.
    .. [2] D. B. Rubin, "Inference and missing data", Biometrika 63, 1976 (mcar, mar, mnar).

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.missing import drop_labels
    >>> labels = np.array([[0, 1, 1], [0, 1, 1], [1, 0, 1], [1, 0, 0]])
    >>> partial = drop_labels(labels, 0.5, random_state=0)
    >>> (partial < 0).sum(axis=0)
    array([2, 2, 2])
    >>> (partial >= 0).any(axis=1)
    array([ True,  True,  True,  True])
    """
    check_parameter("ratio", ratio, _SHARE, "drop_labels")
    check_parameter("mechanism", mechanism, StrOptions(_MECHANISMS.keys()), "drop_labels")
    check_parameter("strength", strength, _NOT_NEGATIVE, "drop_labels")
    rng = random_source(random_state)
    if _is_joined(labels):
        labels = Partitions.of(labels, unobserved="keep")
    columns = list(labels.codes.T) if isinstance(labels, Partitions) else _read_columns(labels)
    observed = np.column_stack([~_is_missing(column) for column in columns])
    if mechanism == "mar" and len(columns) < 2:
        raise InputError(
            "mechanism 'mar' of drop_labels needs at least 2 base clusterings, got 1.",
            hint="with a single column use 'mcar' or 'mnar'.",
        )
    kept = _MECHANISMS[mechanism](columns, observed, ratio, strength, rng)
    if keep_seen:
        kept = _restore_seen(observed, kept, rng, keep_counts=mechanism == "per_base")
    if isinstance(labels, Partitions):
        return labels.fill(np.where(kept, labels.codes, MISSING))
    return _write_labels(labels, kept)


def drop_views(
    observed: ArrayLike | tuple[int, int],
    ratio: float,
    *,
    protocol: Literal["per_view", "mcar", "stratified", "one_lost", "some_lost", "mar", "mnar"] = "per_view",
    y: ArrayLike | None = None,
    n_lost: int | None = None,
    strength: float = 2.0,
    keep_seen: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> Mask:
    """Choose which instances are absent from which views.

    Parameters
    ----------
    observed : tuple (n, n_views), or boolean array of that shape
        The shape of complete data, or what is there (True) before anything is removed. It is not
        changed.
    ratio : float in [0, 1)
        A share of rows or a share of instances, as the protocol says.
    protocol : {"per_view", "mcar", "stratified", "one_lost", "some_lost", "mar", "mnar"}, default="per_view"
        Shares of rows of a view:

        - "per_view": each view loses exactly ``round(ratio * n)`` of its rows (halves up), drawn at
          random and independently of the other views. The same number from every view, as in MIC [1]_.
        - "mcar": each row of each view is lost on its own, with chance `ratio`.
        - "mar": as "mcar", but the chance grows with `y`, in the same way in every view. Let `y` be
          something the analyst sees, such as a date or a site.
        - "mnar": as "mcar", but the chance depends on the group in `y`, in every view on another one.
          Let `y` be what the analyst is looking for, such as the classes.

        Shares of instances:

        - "stratified": in each class of `y`, ``round(ratio * size)`` instances (halves up) become
          incomplete, and each of them loses `n_lost` random views; the others stay complete. The masks
          of EE-IMVC [2]_, MKKM-IK [3]_ and LF-IMVC [4]_.
        - "one_lost": ``round(ratio * n)`` instances lose exactly one view each, and the losses are
          spread evenly over the views. The partial data ratio of APMC [5]_ and the partial example
          ratio of PVC [6]_, where with two views an incomplete instance also keeps exactly one.
        - "some_lost": ``round(ratio * n)`` instances become incomplete. Each of them loses 1 to all but one
          of its views: every number is equally likely, and so is every choice of so many views. The missing
          rate of many recent papers, such as COMPLETER [7]_ for two views.
    y : array-like of shape (n_instances,), default=None
        What "stratified", "mar" and "mnar" depend on; the others do not read it.
    n_lost : int, default=None
        For "stratified": how many views an incomplete instance loses. None is half of the views,
        rounded down (at least 1).
    strength : float, default=2.0
        For "mar" and "mnar": how far apart, in log odds of being absent, the value of `y` that loses
        most is from the one that loses least. The distinct values are spread evenly between and the
        average chance stays `ratio`. 0 makes both the same as "mcar".
    keep_seen : bool, default=True
        Leave every instance that has a view with at least one. See Notes.
    random_state : int, RandomState instance or None, default=None
        A number gives the same answer every time. None draws afresh, without touching NumPy's global
        state.

    Returns
    -------
    observed : ndarray of bool of shape (n, n_views)
        True where the instance is present in the view.

    Notes
    -----
    How `keep_seen` repairs is told in :func:`drop_labels`: "per_view" trades places so that the number
    of absent rows per view stays exact (in complete data up to a ratio of (n_views - 1) / n_views);
    "mcar", "mar" and "mnar" only give one view back. "stratified", "one_lost" and "some_lost" take views
    only from instances that have enough of them; "some_lost" leaves one in any case.

    A ratio does not mean the same in all papers. With 12 views of which 8 are lost, a ratio of .9 in
    "stratified" makes 60 % of all entries absent; in "one_lost" it makes 7.5 % absent, in "some_lost" 45 %.
    APMC's text asks for the same number of deletions in all views and for every instance to be seen, at
    ratios up to .9 with two views: possible only if the ratio is a share of instances, as it is here. With
    more than two views the paper does not say how many an incomplete instance loses; here it is one. EE-
    IMVC's authors used 3 of 7 and 6 or 8 of 12 views besides half of them: set `n_lost`.

    References
    ----------
    .. [1] W. Shao, L. He and P. S. Yu, "Multiple incomplete views clustering via weighted nonnegative
       matrix factorization with L2,1 regularization", ECML PKDD 2015.
    .. [2] X. Liu et al., "Efficient and effective regularized incomplete multi-view clustering", IEEE
       Transactions on Pattern Analysis and Machine Intelligence.
    .. [3] X. Liu et al., "Multiple kernel k-means with incomplete kernels", AAAI 2017.
    .. [4] X. Liu et al., "Late fusion incomplete multi-view clustering", IEEE Transactions on Pattern
       Analysis and Machine Intelligence 41, 2019.
    .. [5] J. Guo and J. Ye, "Anchors bring ease: an embarrassingly simple approach to partial
       multi-view clustering", AAAI 2019.
    .. [6] S.-Y. Li, Y. Jiang and Z.-H. Zhou, "Partial multi-view clustering", AAAI 2014.
    .. [7] Y. Lin, Y. Gou, Z. Liu, B. Li, J. Lv and X. Peng, "COMPLETER: incomplete multi-view clustering
       via contrastive prediction", CVPR 2021.

    Examples
    --------
    >>> from consilience.missing import drop_views
    >>> observed = drop_views((10, 2), 0.4, protocol="one_lost", random_state=0)
    >>> observed.sum(axis=0)
    array([8, 8])
    >>> observed.sum(axis=1).min()
    np.int64(1)
    """
    check_parameter("ratio", ratio, _SHARE, "drop_views")
    check_parameter("protocol", protocol, StrOptions(_PROTOCOLS), "drop_views")
    check_parameter("strength", strength, _NOT_NEGATIVE, "drop_views")
    if n_lost is not None:
        check_parameter("n_lost", n_lost, Interval(Integral, 1, None, closed="left"), "drop_views")
    rng = random_source(random_state)
    present = _read_observed(observed)
    if protocol in ("stratified", "mar", "mnar"):
        y = _read_y(y, len(present), protocol)

    if protocol == "per_view":
        kept = _lose_exact_share(present, ratio, rng)
    elif protocol == "mcar":
        kept = _lose_independently(present, ratio, rng)
    elif protocol in ("mar", "mnar"):
        kept = _lose_views_by_group(present, ratio, y, strength, rng, shuffle=protocol == "mnar")
    elif protocol == "stratified":
        n_lost = n_lost or max(1, present.shape[1] // 2)
        _check_n_lost(n_lost, present.shape[1], keep_seen)
        incomplete = _choose_instances(present, ratio, y, n_lost, keep_seen, rng)
        kept = _lose_random_views(present, incomplete, n_lost, rng)
    elif protocol == "some_lost":
        incomplete = _choose_instances(present, ratio, np.zeros(len(present)), 1, True, rng)
        kept = _lose_random_views(present, incomplete, rng.randint(1, present[incomplete].sum(axis=1)), rng)
    else:
        incomplete = _choose_instances(present, ratio, np.zeros(len(present)), 1, keep_seen, rng)
        kept = _lose_one_view_evenly(present, incomplete, rng)

    if keep_seen:
        kept = _restore_seen(present, kept, rng, keep_counts=protocol == "per_view")
    return kept


# --------------------------------------------------------------------------------------------------
# What goes. Each function takes a mask of what is there and returns a new mask of what is kept.


def _lose_exact_share(observed: Mask, ratio: float, rng: np.random.RandomState) -> Mask:
    """The same share of every column, to the entry."""
    kept = observed.copy()
    for column in range(kept.shape[1]):
        rows = np.flatnonzero(observed[:, column])
        kept[rng.permutation(rows)[: _count(ratio, len(rows))], column] = False
    return kept


def _lose_independently(observed: Mask, chance: Any, rng: np.random.RandomState) -> Mask:
    return observed & (rng.random_sample(observed.shape) >= chance)


def _lose_by_another_base(
    columns: list[NDArray[Any]],
    observed: Mask,
    ratio: float,
    strength: float,
    rng: np.random.RandomState,
) -> Mask:
    # One base after another: what a base looks at is settled, and either visible in the end or not
    # used. Looking at labels that are hidden later would make this missing not at random.
    order = rng.permutation(len(columns))
    kept = observed.copy()
    for position, column in enumerate(order):
        chance = np.full(len(observed), float(ratio))
        if position > 0:
            before = order[position - 1]
            rows = np.flatnonzero(observed[:, column] & kept[:, before])
            chance[rows] = _chance_by_group(columns[before][rows], ratio, strength, rng)
        kept[:, column] = _lose_independently(observed[:, column], chance, rng)
    return kept


def _lose_by_own_label(
    columns: list[NDArray[Any]],
    observed: Mask,
    ratio: float,
    strength: float,
    rng: np.random.RandomState,
) -> Mask:
    chance = np.zeros(observed.shape)
    for column, values in enumerate(columns):
        rows = np.flatnonzero(observed[:, column])
        chance[rows, column] = _chance_by_group(values[rows], ratio, strength, rng)
    return _lose_independently(observed, chance, rng)


def _lose_views_by_group(
    observed: Mask, ratio: float, y: Any, strength: float, rng: np.random.RandomState, *, shuffle: bool
) -> Mask:
    chance = np.zeros(observed.shape)
    for view in range(observed.shape[1]):
        rows = np.flatnonzero(observed[:, view])
        chance[rows, view] = _chance_by_group(y[rows], ratio, strength, rng if shuffle else None)
    return _lose_independently(observed, chance, rng)


def _lose_random_views(
    observed: Mask, rows: NDArray[np.intp], n: int | NDArray[np.intp], rng: np.random.RandomState
) -> Mask:
    """From each of the rows `n` random views that it has: the same number, or one for every row."""
    kept = observed.copy()
    draw = np.where(observed[rows], rng.random_sample((len(rows), observed.shape[1])), 2.0)
    rank = draw.argsort(axis=1).argsort(axis=1)
    kept[rows] &= rank >= np.reshape(n, (-1, 1))
    return kept


def _lose_one_view_evenly(observed: Mask, rows: NDArray[np.intp], rng: np.random.RandomState) -> Mask:
    kept = observed.copy()
    n_views = observed.shape[1]
    view = rng.permutation(n_views)[np.arange(len(rows)) % n_views]
    view = rng.permutation(view)
    # In data with holes the turn may fall on a view the instance does not have: any other one then.
    absent = np.flatnonzero(~observed[rows, view])
    view[absent] = _random_column(observed[rows[absent]], rng)
    kept[rows, view] = False
    return kept


_MECHANISMS: dict[str, Callable[..., Mask]] = {
    "per_base": lambda columns, observed, ratio, strength, rng: _lose_exact_share(observed, ratio, rng),
    "mcar": lambda columns, observed, ratio, strength, rng: _lose_independently(observed, ratio, rng),
    "mar": _lose_by_another_base,
    "mnar": _lose_by_own_label,
}
# Keys rather than sets: an error then lists the choices in the same order every time.
_PROTOCOLS = dict.fromkeys(["per_view", "mcar", "stratified", "one_lost", "some_lost", "mar", "mnar"]).keys()


def _choose_instances(
    observed: Mask, ratio: float, classes: Any, n_lost: int, keep_seen: bool, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """The same share of every class, among the instances that can lose so many views."""
    needed = n_lost + 1 if keep_seen else n_lost
    able = observed.sum(axis=1) >= needed
    group, sizes = _groups(classes)
    chosen = []
    for number, size in enumerate(sizes):
        rows, count = np.flatnonzero(able & (group == number)), _count(ratio, size)
        if count > len(rows):
            raise InputError(
                f"'ratio' asks {count} of the {size} instances of a class to lose {n_lost} of their views, "
                f"but only {len(rows)} have the {needed} views it takes.",
                hint="lower ratio or n_lost, or use protocol='per_view'.",
            )
        chosen.append(rng.permutation(rows)[:count])
    return np.concatenate(chosen)


def _chance_by_group(
    values: NDArray[Any], ratio: float, strength: float, rng: np.random.RandomState | None
) -> NDArray[np.float64]:
    """Chance of going missing for every entry: set by its group, `ratio` on average.

    The groups lie evenly on a scale of log odds `strength` long: shuffled, or in the order of their
    values if there is no `rng`.
    """
    if ratio == 0 or len(values) == 0:
        return np.zeros(len(values))
    group, sizes = _groups(values)
    tilt = strength * np.linspace(-0.5, 0.5, len(sizes))
    if rng is not None:
        tilt = rng.permutation(tilt)
    shares = sizes / sizes.sum()
    # Within `strength` of the log odds of `ratio`; one more, so that the ends never coincide.
    reach = strength + 1.0
    middle = brentq(
        lambda shift: shares @ expit(shift + tilt) - ratio, logit(ratio) - reach, logit(ratio) + reach
    )
    return np.asarray(expit(middle + tilt))[group]


def _groups(values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The group of every entry, numbered in the order of the values, and the sizes of the groups."""
    if values.dtype == object:
        values = np.asarray(values.tolist())  # numbers sort as numbers; a mixture sorts as text
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return group, sizes


def _count(ratio: float, n: int) -> int:
    """``round(ratio * n)`` with halves up, as in the authors' programs (Python rounds them to even)."""
    return int(ratio * n + 0.5)


# --------------------------------------------------------------------------------------------------
# No instance disappears


def _restore_seen(observed: Mask, kept: Mask, rng: np.random.RandomState, *, keep_counts: bool) -> Mask:
    """Give one entry back to every row that had some and kept none."""
    kept = kept.copy()
    lost = rng.permutation(np.flatnonzero(observed.any(axis=1) & ~kept.any(axis=1)))
    if keep_counts:
        lost = _trade_entries(observed, kept, lost, rng)
    kept[lost, _random_column(observed[lost], rng)] = True
    return kept


def _trade_entries(
    observed: Mask, kept: Mask, lost: NDArray[np.intp], rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Move entries, each within its column, from rows with several to lost rows. Changes `kept`.

    Returns the rows for which there was nothing to trade.
    """
    if len(lost) == 0:
        return lost
    # One random entry of every row is safe; all others may be given away, in any number.
    spare = kept.copy()
    spare[np.arange(len(kept)), _random_column(kept, rng)] = False
    givers, column = np.divmod(rng.permutation(np.flatnonzero(spare)), kept.shape[1])
    # As many random entries as there are lost rows come first, so that no column is preferred. In a
    # complete table they are enough; with holes some fit no lost row, and the rest gets a turn.
    for turn in (slice(len(lost)), slice(len(lost), None)):
        if len(lost) == 0:
            break
        for number in range(kept.shape[1]):
            giving = givers[turn][column[turn] == number]
            taking = np.flatnonzero(observed[lost, number])[: len(giving)]
            kept[giving[: len(taking)], number] = False
            kept[lost[taking], number] = True
            lost = np.delete(lost, taking)
    return lost


def _random_column(mask: Mask, rng: np.random.RandomState) -> NDArray[np.intp]:
    """For every row one random column in which `mask` is True, if there is one."""
    return np.where(mask, rng.random_sample(mask.shape), 2.0).argmin(axis=1)


# --------------------------------------------------------------------------------------------------
# In and out


def _is_joined(labels: Any) -> bool:
    """Whether it is columns that `Partitions.of` joins, or was read already; no array and no frame."""
    if isinstance(labels, list | tuple):
        return any(hasattr(each, "index") and hasattr(each, "dtype") for each in labels)  # series by id
    return isinstance(labels, Mapping | Partitions) or hasattr(labels, "sources")


def _read_columns(labels: Any) -> list[NDArray[Any]]:
    frame = nw.from_native(labels, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        shape, columns = frame.shape, [series.to_numpy() for series in frame.iter_columns()]
    else:
        table = _as_table(labels)
        shape, columns = table.shape, list(table.T) if table.ndim == 2 else []
    if len(shape) != 2 or 0 in shape:
        raise InputError(
            "labels must be a table with a row per instance and a column per base clustering, got shape "
            f"{shape}.",
            hint="stack label vectors with numpy.column_stack; collect a lazy frame.",
        )
    return columns


def _as_table(labels: Any) -> NDArray[Any]:
    table = np.asarray(labels)
    if table.dtype.kind in "US" and not isinstance(labels, np.ndarray):
        # In a list, NumPy turns NaN beside strings into the string "nan".
        return np.asarray(labels, dtype=object)
    return table


def _write_labels(labels: Any, kept: Mask) -> Any:
    """A copy of the user's table, in its own kind, with what is not kept marked as missing."""
    frame = nw.from_native(labels, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame.with_columns(
            *(
                nw.when(nw.new_series(name, mask, nw.Boolean(), backend=frame.implementation))
                .then(nw.col(name))
                .alias(name)
                for name, mask in zip(frame.columns, kept.T.copy(), strict=True)
            )
        ).to_native()
    table = _as_table(labels)
    if table.dtype.kind in "bu":  # no place for -1: the next signed type
        signed: Any = np.int64 if table.dtype.itemsize == 8 else np.promote_types(table.dtype, np.int8)
        table = table.astype(signed)
    elif table.dtype.kind not in "if":
        table = table.astype(object)
    blank = {"i": -1, "f": np.nan}.get(table.dtype.kind)
    partial = table.copy()
    partial[~kept] = blank
    return partial


def _is_missing(values: NDArray[Any]) -> Mask:
    kind = values.dtype.kind
    if kind in "biuf":
        return ~(values >= 0)  # NaN is not either
    if kind in "US":
        return np.zeros(len(values), dtype=bool)
    return np.fromiter(map(_is_missing_entry, values.tolist()), dtype=bool, count=len(values))


def _is_missing_entry(entry: Any) -> bool:
    return is_missing(entry) or (isinstance(entry, Real) and float(entry) < 0)


def _read_observed(observed: Any) -> Mask:
    if isinstance(observed, tuple) and len(observed) == 2 and all(isinstance(n, Integral) for n in observed):
        if min(observed) < 1:
            raise InputError(
                f"observed must have at least one instance and one view, got shape {observed}.",
                hint="pass (number of instances, number of views).",
            )
        return np.ones(observed, dtype=bool)
    mask = np.asarray(observed)
    if mask.ndim != 2 or 0 in mask.shape:
        raise InputError(
            f"observed must have a row per instance and a column per view, got shape {mask.shape}.",
            hint="for complete data pass the tuple (number of instances, number of views).",
        )
    if mask.dtype != bool and not np.isin(mask, (0, 1)).all():
        raise InputError(
            f"observed must be True or False in every entry, got an array of {mask.dtype}.",
            hint="pass the mask of what is present, not the data.",
        )
    return mask.astype(bool)


def _read_y(y: Any, n: int, protocol: str) -> NDArray[Any]:
    if y is None:
        raise InputError(
            f"protocol {protocol!r} of drop_views needs y, the class or value of every instance.",
            hint="pass y=..., or use protocol='per_view' or 'mcar', which do not need it.",
        )
    values = np.asarray(y)
    if values.shape != (n,):
        raise InputError(
            f"y must have one entry for each of the {n} instances, got shape {values.shape}.",
            hint="pass one class or value per row of observed.",
        )
    # In y a negative number is a value like any other.
    unknown = np.array([is_missing(entry) for entry in values.tolist()])
    if unknown.any():
        raise InputError(
            f"y is missing for row {int(unknown.argmax())}.",
            hint="give the instances without a class a class of their own.",
        )
    return values


# --------------------------------------------------------------------------------------------------
# Parameters

_SHARE = Interval(Real, 0, 1, closed="left")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


def _check_n_lost(n_lost: int, n_views: int, keep_seen: bool) -> None:
    most = n_views - 1 if keep_seen else n_views
    if n_lost > most:
        raise InputError(
            f"The 'n_lost' parameter of drop_views must be at most {most} with {n_views} views and "
            f"keep_seen={keep_seen}. Got {n_lost} instead.",
            hint="every instance keeps at least one view unless keep_seen=False.",
        )
