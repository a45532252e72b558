"""What a user says of views and of their columns: which kind each is."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from consilience._support.errors import Hint, UsageError
from consilience._support.values import did_you_mean
from consilience.io.features import cell_text, level_text

ColumnKind = Literal["number", "yes/no", "ordered", "category", "date", "left out"]
KINDS: tuple[ColumnKind, ...] = ("number", "yes/no", "ordered", "category", "date", "left out")
# What may be said of a column: its kind, and how its text is meant.
SAID = (*KINDS, "number:point", "number:comma", "date:day-first", "date:month-first")
_ALIASES = {"left-out": "left out", "yes-no": "yes/no", "numbers": "number", "categories": "category"}


class SaidKind(NamedTuple):
    """What the user says of a column."""

    kind: ColumnKind
    form: str = ""
    levels: tuple[str, ...] | None = None


def said_of(names: Sequence[str], kinds: Mapping[str, Any] | str | None, name: str) -> dict[str, SaidKind]:
    if kinds is None:
        return {}
    if isinstance(kinds, str):
        return dict.fromkeys(names, kind_of(kinds))
    unknown = next((str(key) for key in kinds if str(key) not in names), None)
    if unknown is not None:
        raise UsageError(f"view {name!r} has no column {unknown!r}.", did_you_mean(unknown, names))
    return {str(key): kind_of(value) for key, value in kinds.items()}


def is_column_kind(value: Any) -> bool:
    """Whether it is something that can be said of a column."""
    if isinstance(value, str):
        return _ALIASES.get(value, value) in SAID or "<" in value
    return isinstance(value, Sequence) and all(
        not isinstance(level, Sequence) or isinstance(level, str) for level in value
    )


def kind_of(value: Any) -> SaidKind:
    if isinstance(value, str) and "<" in value:
        value = [level.strip() for level in value.split("<")]
    if isinstance(value, str):
        value = _ALIASES.get(value, value)
        if value not in SAID:
            raise UsageError(f"there is no kind {value!r} of a column.", did_you_mean(value, SAID))
        kind, _, form = value.partition(":")
        return SaidKind(kind, form)
    if not is_column_kind(value):
        raise UsageError(f"the kind of a column cannot be {value!r}.", f"there are {', '.join(SAID)}.")
    levels = tuple(level_text(cell_text(level).strip()) for level in value)
    if len(levels) < 2 or len(set(levels)) < len(levels):
        raise UsageError(
            f"an order needs two or more different levels. Got {', '.join(levels)}.",
            hint="name every level once, from low to high.",
        )
    return SaidKind("ordered", levels=levels)


def split_kinds(
    kind: Any, views: Mapping[str, Sequence[str]], view_kinds: Collection[str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Divide what a user says of views and of columns.

    Parameters
    ----------
    kind : str, or dict, or None
        A kind of every view; or by the name of a view a kind, or a dict of the kinds of its columns; or by
        ``"view.column"`` the kind of a column. The name of a column alone will do where one view has it.
    views : dict of view name to the names of its columns
        What there is.
    view_kinds : collection of str
        What may be said of whole views, such as "counts". Kinds of columns may be said of a view too: then
        they hold for all of its columns.

    Returns
    -------
    of_views : dict of view name to kind
        What was said of whole views.
    of_columns : dict of view name to (dict of column name to kind, or kind)
        The `kinds` of `read_columns`, of views about which something was said.

    Examples
    --------
    >>> from consilience.evidence.kinds import split_kinds
    >>> views = {"clinic": ["age", "stage"], "notes": ["0", "1"]}
    >>> split_kinds({"notes": "counts", "clinic.stage": "category"}, views, ["auto", "counts"])
    ({'notes': 'counts'}, {'clinic': {'stage': 'category'}})
    """
    of_views: dict[str, str] = {}
    of_columns: dict[str, Any] = {}
    if kind is None:
        return of_views, of_columns
    if not isinstance(kind, Mapping):
        kind = dict.fromkeys(views, kind)
    # Views first: what is said of one column overrules what is said of all.
    found = [(_place(str(key), views), value) for key, value in kind.items()]
    for (view, column), value in sorted(found, key=lambda one: one[0][1] is not None):
        if column is not None:
            _check_kind(f"{view}.{column}", value, ())
            if not isinstance(of_columns.get(view, {}), dict):
                of_columns[view] = dict.fromkeys(views[view], of_columns[view])
            of_columns.setdefault(view, {})[column] = value
        elif isinstance(value, Mapping):
            for own, each in value.items():
                if str(own) not in views[view]:
                    raise UsageError(
                        f"view {view!r} has no column {str(own)!r}.", did_you_mean(str(own), views[view])
                    )
                _check_kind(f"{view}.{own}", each, ())
            of_columns[view] = {str(own): each for own, each in value.items()}
        elif isinstance(value, str) and value in view_kinds:
            of_views[view] = value
        else:
            _check_kind(view, value, view_kinds)
            of_columns[view] = value
    return of_views, of_columns


def _check_kind(key: str, value: Any, view_kinds: Collection[str]) -> None:
    if not is_column_kind(value):
        known = [*view_kinds, *SAID]
        raise UsageError(
            f"the kind of {key!r} cannot be {value!r}.",
            did_you_mean(value, known) if isinstance(value, str) else f"there are {', '.join(known)}.",
        )


def _place(key: str, views: Mapping[str, Sequence[str]]) -> tuple[str, str | None]:
    """The view, and the column of it, that a name means; the longest name of a view counts."""
    if key in views:
        return key, None
    for view in sorted(views, key=len, reverse=True):
        if key.startswith(f"{view}.") and key[len(view) + 1 :] in views[view]:
            return view, key[len(view) + 1 :]
    having = [view for view, columns in views.items() if key in columns]
    if len(having) == 1:
        return having[0], key
    if having:
        raise UsageError(
            f"the views {' and '.join(map(repr, having[:2]))} both have a column {key!r}.",
            hint=f"say which, as in {having[0]}.{key}.",
        )
    known = [*views, *(f"{view}.{column}" for view, columns in views.items() for column in columns)]
    raise UsageError(f"there is neither a view nor a column {key!r}.", did_you_mean(key, known))


def overruling(view: str, column: str, kind: str, text: str, **values: Any) -> Hint:
    """A hint that says how to overrule a kind; `{it}` stands for the way."""
    said = f"{view}.{column}"
    return Hint(
        text.replace("{it}", "kind={python}"),
        command=text.replace("{it}", "--kind {shell}"),
        python=repr({said: kind}),
        shell=shlex.quote(f"{said}={kind}"),
        **values,
    )
