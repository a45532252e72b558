"""Labels and views in one call: join both sides by id, merge them, and place newcomers by either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from consilience._support.errors import Hint, InputError, InputTypeError, Phrase
from consilience._support.values import counted, did_you_mean, id_array
from consilience.evidence.partitions import MISSING, Partitions
from consilience.evidence.views import Views, check_views
from consilience.multiview.pse import PSE
from consilience.multiview.together import LabelsAndViews

_REASON = "Columns of labels and views were placed side by side, each as far as it has to do with the others."
_PROFILES = " Then each instance went where most of its labels and neighbours speak for."
_LABELS_ALONE = "No view says what the labels share."


class Joined(NamedTuple):
    """Labels and views with a row for every instance that either of them has."""

    table: Partitions
    views: Views


def join(labels: Partitions, views: Views) -> Joined:
    """Both sides with the same instances: joined by id, or by position where one of them has no ids.

    Instances come in the order of the labels, those that only views have after them.
    """
    if labels.index is None or views.index is None:
        if labels.n_rows != views.n_instances:
            lacking = "labels" if labels.index is None else "views"
            both = labels.index is None and views.index is None
            raise InputError(
                f"the labels have {counted(labels.n_rows, 'row')} and the views {views.n_instances}, and "
                f"{'neither has' if both else f'the {lacking} have no'} ids to match them by.",
                hint=Hint(
                    "give both with ids: {index=} names their column in frames, and pandas frames have them "
                    "in their index.",
                    command="name the column of ids with --id.",
                ),
            )
        index = labels.index if views.index is None else views.index
        return Joined(replace(labels, index=index), replace(views, index=index))
    place = {value: row for row, value in enumerate(labels.index.tolist())}
    n_labels, shared = len(place), 0
    at = np.empty(views.n_instances, dtype=np.intp)
    for row, value in enumerate(views.index.tolist()):
        shared += value in place
        at[row] = place.setdefault(value, len(place))
    if not shared:
        raise InputError(
            f"labels and views share no id: the labels start with {labels.index.tolist()[0]!r}, the views "
            f"with {views.index.tolist()[0]!r}.",
            hint="use the same ids, of the same type, on both sides.",
        )
    n, index = len(place), id_array(list(place))
    codes = np.full((n, labels.n_partitions), MISSING, dtype=labels.codes.dtype, order="F")
    codes[:n_labels] = labels.codes
    observed = np.zeros((n, views.n_views), dtype=bool)
    observed[at] = views.observed
    arrays = tuple(_spread(x, at, n) for x in views.arrays)
    return Joined(
        replace(labels, codes=codes, index=index, counts=None),
        replace(views, arrays=arrays, observed=observed, index=index),
    )


def _spread(x: Any, at: np.ndarray, n: int) -> Any:
    """The rows at their places among n, zero elsewhere."""
    if sp.issparse(x):
        where = sp.csr_array((np.ones(len(at)), (at, np.arange(len(at)))), shape=(n, len(at)))
        return sp.csr_array(where @ x)
    out = np.zeros((n, x.shape[1]), dtype=x.dtype)
    out[at] = x
    return out


def read_views(views: Any, mask: Any, index: Any, kind: Any = None) -> Views:
    """The views beside labels: an instance may be absent from all of them."""
    tables = list(views.values()) if isinstance(views, Mapping) else views
    tables = tables if isinstance(tables, list | tuple) else [tables]
    on = None
    if isinstance(index, str) and all(
        nw.dependencies.is_into_dataframe(t) and index in nw.from_native(t).columns for t in tables
    ):
        on = index
    return check_views(views, mask=mask, on=on, kind=None if kind == "auto" else kind, unobserved="keep")


def read_source_weights(weights: Any, labels: Sequence[str], views: Sequence[str]) -> np.ndarray:
    """What sources count: NaN for those that were not named, whose relations decide."""
    names = [*labels, *views]
    out = np.full(len(names), np.nan)
    if weights is None:
        return out
    if not isinstance(weights, Mapping):
        raise InputTypeError(
            Phrase("{weights} of labels and views must be by name. Got {given}.", given=repr(weights)),
            hint=f"as in {{{names[0]!r}: 2, {names[-1]!r}: 0.5}}.",
        )
    for name, value in weights.items():
        if str(name) not in names:
            raise InputError(
                f"unknown base clustering or view {name!r} in weights.", did_you_mean(str(name), names)
            )
        try:
            out[names.index(str(name))] = weight = float(value)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the weight of {name!r} must be a number. Got {value!r}.", hint="as in {'team_a': 2}."
            ) from error
        if not (np.isfinite(weight) and weight >= 0):
            raise InputError(
                f"the weight of {name!r} must be a number from 0. Got {value}.", hint="0 leaves it out."
            )
    if not np.isnan(out).any() and not out.any():
        raise InputError("every weight is 0.", hint="give some source a weight above 0.")
    return out


def check_sources(joined: Joined, given: np.ndarray) -> None:
    """Refuse names that two sources have, and sources that no instance links to the rest."""
    table, views = joined
    twice = next((name for name in views.names if name in table.names), None)
    if twice is not None:
        raise InputError(
            f"a view and a base clustering are both called {twice!r}.",
            hint="give every source its own name.",
        )
    names = np.array([*table.names, *views.names], dtype=object)
    used = given != 0
    seen = np.column_stack([table.observed, views.observed])[:, used].astype(float)
    n_groups, group = connected_components(seen.T @ seen > 0, directed=False)
    if n_groups > 1:
        first, other = (", ".join(map(repr, names[used][(group == 0) == here])) for here in (True, False))
        raise InputError(
            f"no instance links {first} to {other}: their clusters cannot be matched.",
            hint="add labels or rows for instances of both, or cluster each on its own.",
        )


def unknown_instances(joined: Joined, given: np.ndarray, unobserved: str) -> np.ndarray:
    """Instances that no source says anything of; an error where that is not allowed."""
    table, views = joined
    seen = np.column_stack([table.observed, views.observed])[:, given != 0].any(axis=1)
    lost = np.flatnonzero(~seen)
    if len(lost) and unobserved == "error":
        where = f"row {lost[0]}" if table.index is None else repr(table.index.tolist()[lost[0]])
        others = f" and {len(lost) - 1} other" + "s" * (len(lost) > 2) if len(lost) > 1 else ""
        raise InputError(
            f"nothing is known of {where}{others}: no label, and no row in a view.",
            hint=Hint(
                "remove these instances, or keep them with {unobserved=noise} or {unobserved=largest}."
            ),
        )
    return np.asarray(~seen)


def model_for(method: Any, n_clusters: Any, unobserved: str) -> LabelsAndViews:
    """The settings of PSE, where it was asked for."""
    if isinstance(method, str) and method.lower() in ("auto", "pse"):
        method = PSE()
    if not isinstance(method, PSE):
        raise InputError(
            Phrase("labels and views together are merged by PSE, and {method} asks for another method."),
            hint=Hint("leave out {method}, or merge labels and views each on their own."),
        )
    if n_clusters == "auto":
        raise InputError(
            "the number of clusters cannot be found from labels and views together: labels of other numbers "
            "of clusters would pull it their way.",
            hint=Hint(
                "give {n_clusters}; fuse without views, and fuse_views, find one for each side.",
                command="give {n_clusters}; consilience fuse without --views, and consilience cluster, find "
                "one for each side.",
            ),
        )
    return LabelsAndViews(int(n_clusters), unobserved=unobserved, n_init=method.n_init)


def reason_of(model: LabelsAndViews) -> str:
    """Why the answer is as it is."""
    if model.labels_alone_:
        return _LABELS_ALONE
    return _REASON + _PROFILES * model.by_profiles_


# --- newcomers ----------------------------------------------------------------------------------------------


def newcomers(
    table: Partitions, model: LabelsAndViews, labels: Any, views: Any, mask: Any, on: Any, unknown: Any
) -> np.ndarray:
    """What sources say of new instances: codes of their labels, then for each view the cluster of most
    neighbours, in the model's numbers; -1 where one says nothing."""
    if labels is None and views is None:
        raise InputTypeError("there is nothing to place.", hint="give labels, views, or both.")
    by_labels = None if labels is None else table.encode(labels, unknown=unknown)
    by_views = None if views is None else model.read_new(views, mask=mask, on=on)
    if by_views is None:
        assert by_labels is not None
        return np.hstack([by_labels, np.full((len(by_labels), len(model.view_names_)), MISSING)])
    said = model.neighbours_say(by_views)
    if by_labels is None:
        return np.hstack([np.full((len(said), table.n_partitions), MISSING), said])
    ids = Partitions.of(labels, unobserved="keep").index if by_views.index is not None else None
    if ids is not None and by_views.index is not None:
        place = {value: row for row, value in enumerate(by_views.index.tolist())}
        strange = [value for value in ids.tolist() if value not in place]
        if strange or len(place) != len(ids):
            raise InputError(
                "labels and views of the new instances have other ids.",
                hint="give both for the same instances; a row may be empty.",
            )
        said = said[[place[value] for value in ids.tolist()]]
    if len(said) != len(by_labels):
        raise InputError(
            f"there are labels of {counted(len(by_labels), 'new instance')} and features of {len(said)}.",
            hint="give both for the same instances, in one order; a row may be empty.",
        )
    return np.hstack([by_labels, said])


def said_by_sources(opinions: Partitions, codes: np.ndarray, numbers: np.ndarray, m: int) -> np.ndarray:
    """Codes of new instances in the terms of `Fusion.opinions`, whose first m columns are labels.

    `numbers` are those that the clusters of the model have in the result.
    """
    out = codes.copy()
    for j in range(m, opinions.n_partitions):
        known = {int(number): code for code, number in enumerate(opinions.categories[j])}
        code_of = [known.get(int(number), MISSING) for number in numbers[:-1]]
        out[:, j] = np.array([*code_of, MISSING])[codes[:, j]]
    return out


def with_own(chances: np.ndarray, labels: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Chances of clusters in which that of the own cluster is given, and others share the rest as before."""
    out, rows = chances.copy(), np.flatnonzero(labels >= 0)
    out[rows, labels[rows]] = 0.0
    rest = out[rows].sum(axis=1, keepdims=True)
    n_others = max(chances.shape[1] - 1, 1)
    even = np.where(np.arange(chances.shape[1]) == labels[rows][:, None], 0.0, 1.0 / n_others)
    shares = np.where(rest > 0, out[rows] / np.where(rest > 0, rest, 1.0), even)
    out[rows] = shares * (1.0 - own[rows])[:, None]
    out[rows, labels[rows]] += own[rows] if chances.shape[1] > 1 else 1.0
    return out
