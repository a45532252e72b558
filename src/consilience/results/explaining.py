"""Why an instance is where it is: who said what, what that speaks for, who is like it, what would turn it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience._support.shown import Table, as_html
from consilience._support.values import counted, did_you_mean
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import JointRows, Tabulated, label_counts
from consilience.inference.posterior import Evidence, is_tie, predict_labels
from consilience.io.labels import plain

_NEAREST = 5  # instances that are shown as alike
_TURNS = 5  # changes that are shown
_BLOCK = 64  # rows whose likeness with all others is held at once


class Said(NamedTuple):
    """What one source said of an instance: a base clustering, or all those of a view."""

    source: str
    label: Any  # None where it never saw the instance; of a view, in how many base clusterings it is
    shares: tuple[float, ...]  # of those with that label, the share in every cluster

    @property
    def seen(self) -> bool:
        """Whether it saw the instance."""
        return bool(self.shares)


class Alike(NamedTuple):
    """Instances with the same labels, and how many of the labels they share with the one explained."""

    id: Any  # of the first of them
    n_instances: int
    label: int
    n_agreeing: int
    n_both: int  # sources that saw both


class Turn(NamedTuple):
    """A change that would put the instance elsewhere: another label of a source, or none."""

    source: str
    instead: Any  # None: had it not seen the instance
    label: int


@dataclass(frozen=True, repr=False, eq=False)
class Explanation(Tabulated):
    """Why an instance is in its cluster; ``print`` it for a sentence and tables.

    Attributes
    ----------
    id : object
        The instance: its id, or its position.
    label, alternative : int
        Its cluster, and the one that it supports next; -1 for none.
    confidence, margin : float
        As in the fusion.
    said : tuple of Said
        What every source said, and how those with that label are spread over the clusters.
    support : tuple of float
        For every cluster, the mean of these shares over the sources that saw the instance; a group is one.
    by_labels : int
        The cluster that its labels alone speak for most.
    n_twins : int
        Other instances with exactly these labels.
    alike : tuple of Alike
        The instances most like it, twins left out.
    turns : tuple of Turn
        Single changes of what was said that would put it elsewhere.
    cluster_names : tuple of str or None
        Names of the clusters, where the fusion has some.
    given_weights : tuple of float or None
        How much each source counts, where the user said so.
    groups : tuple of tuple of str
        Sources that count as one, where the user said so.
    """

    id: Any
    label: int
    confidence: float
    margin: float
    alternative: int
    said: tuple[Said, ...]
    support: tuple[float, ...]
    by_labels: int
    n_twins: int
    alike: tuple[Alike, ...]
    turns: tuple[Turn, ...]
    cluster_names: tuple[str, ...] | None = None
    given_weights: tuple[float, ...] | None = None
    groups: tuple[tuple[str, ...], ...] = ()

    def _cluster(self, number: int) -> str:
        name = str(number) if self.cluster_names is None else self.cluster_names[number]
        return name if name == str(number) else f"{number} ({name})"

    @property
    def likelier(self) -> int:
        """The cluster that is more likely than its own, -1 for none."""
        return self.alternative if self.label >= 0 and self.margin < 0.5 - 1e-9 else -1

    @property
    def sentences(self) -> tuple[str, ...]:
        """Why it is there, in words."""
        if self.label < 0:
            return (f"{self.id!r} is in no cluster: no source saw it.",)
        seen = [said for said in self.said if said.seen]
        if not seen:
            where = self._cluster(self.label)
            return (
                f"no source saw {self.id!r}; it was put in cluster {where}, the largest, as was asked for.",
            )
        pro = [said.source for said in seen if int(np.argmax(said.shares)) == self.label]
        against: dict[int, list[str]] = {}
        for said in seen:
            if said.source not in pro:
                against.setdefault(int(np.argmax(said.shares)), []).append(said.source)
        first = f"{self.id!r} is in cluster {self._cluster(self.label)}, confidence {self.confidence:.2f}"
        reasons = [f"{_named(pro)} for it"] if pro else []
        reasons += [f"{_named(sources)} for {self._cluster(c)}" for c, sources in sorted(against.items())]
        lines = [f"{first}: {', '.join(reasons)}." if reasons else f"{first}."]
        if self.given_weights is not None:
            pairs = zip(self.said, self.given_weights, strict=True)
            told = [f"{said.source!r} counts {w:g}" for said, w in pairs if said.seen and w != 1]
            lines += [f"By the weights that were given, {', '.join(told)}."] if told else []
        spoken = [[name for name in own if any(said.source == name for said in seen)] for own in self.groups]
        lines += [f"{_listed(own)} count as one." for own in spoken if len(own) > 1]
        if self.likelier >= 0:
            where = self._cluster(self.likelier)
            how = "about as likely" if is_tie(self.margin) else "more likely"
            weighed = self.given_weights is not None and self.by_labels == self.label
            lines.append(
                f"With every source counted once, cluster {where} is {how}; the weights put it here."
                if weighed
                else f"By what its sources say, cluster {where} is {how}; it was grouped with instances that "
                f"are like it or linked to it in {self._cluster(self.label)}."
            )
        if self.n_twins:
            lines.append(f"{counted(self.n_twins, 'other instance')} got exactly these labels.")
        for turn in self.turns:
            had = "had not seen it" if turn.instead is None else f"had said {turn.instead!r}"
            lines.append(f"If {turn.source!r} {had}, it would be in cluster {self._cluster(turn.label)}.")
        if not self.turns and len(seen) > 1 and self.by_labels == self.label and self.likelier < 0:
            lines.append("No single source could have changed that.")
        return tuple(lines)

    def as_dict(self) -> dict[str, Any]:
        """Numbers, strings, lists and dicts only, and the sentences."""
        return {**super().as_dict(), "sentences": list(self.sentences)}

    def __str__(self) -> str:
        lines = list(self.sentences)
        shown = [c for c in np.argsort(self.support)[::-1][:6].tolist() if self.support[c] > 0]
        if shown:
            width = max(6, *(len(said.source) for said in self.said))
            said_width = max(4, *(len(_text(said.label)) for said in self.said))
            heads = [f"in {c if self.cluster_names is None else self.cluster_names[c]}" for c in shown]
            wide = [max(8, len(head) + 2) for head in heads]
            head = "".join(f"{head:>{w}s}" for head, w in zip(heads, wide, strict=True))
            lines += ["", f"{'source':{width}s}  {'said':{said_width}s}{head}"]
            for said in self.said:
                cells = _percents(said.shares, shown, wide) if said.seen else ""
                lines.append(f"{said.source:{width}s}  {_text(said.label):{said_width}s}{cells}")
            lines.append(f"{'mean':{width}s}  {'':{said_width}s}{_percents(self.support, shown, wide)}")
        if self.alike:
            wide_where = max(7, *(len(self._cluster(alike.label)) for alike in self.alike))
            lines += ["", f"{'most like it':28s} {'cluster':>{wide_where}s}  labels in common"]
            for alike in self.alike:
                more = f" and {alike.n_instances - 1} more" if alike.n_instances > 1 else ""
                who, where = f"{alike.id}{more}", self._cluster(alike.label)
                lines.append(f"{who:28s} {where:>{wide_where}s}  {alike.n_agreeing} of {alike.n_both}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = [c for c in np.argsort(self.support)[::-1][:6].tolist() if self.support[c] > 0]
        shares = [[f"{said.shares[c]:.0%}" if said.seen else "" for c in shown] for said in self.said]
        said = [(one.source, _text(one.label), *cells) for one, cells in zip(self.said, shares, strict=True)]
        said.append(("mean", "", *(f"{self.support[c]:.0%}" for c in shown)))
        alike = [
            (str(one.id), str(one.n_instances), str(one.label), f"{one.n_agreeing} of {one.n_both}")
            for one in self.alike
        ]
        return as_html(
            self.sentences,
            Table(("source", "said", *(f"in {c}" for c in shown)), said) if shown else Table((), []),
            Table(("most like it", "instances", "cluster", "labels in common"), alike),
        )


def explain(
    partitions: Partitions,
    rows: JointRows,
    evidence: Evidence,
    row: int,
    *,
    confidence: float,
    margin: float,
    alternative: int,
    cluster_names: tuple[str, ...] | None = None,
    given_weights: Sequence[float] | None = None,
) -> Explanation:
    """Explain the instance in this row of the table."""
    codes, label = rows.codes[rows.inverse[row]], int(rows.labels[rows.inverse[row]])
    counts = label_counts(rows, partitions.offsets)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    seen = np.flatnonzero(codes >= 0)
    of_base = {j: shares[partitions.offsets[j] + codes[j]] for j in seen.tolist()}
    weights = None if given_weights is None else np.asarray(given_weights)
    by_labels = int(predict_labels(evidence, codes[None], weights)[0]) if len(seen) else -1
    return Explanation(
        id=row if partitions.index is None else plain(partitions.index[row]),
        label=label,
        confidence=confidence,
        margin=margin,
        alternative=alternative,
        said=_said(partitions, codes, of_base),
        support=_support(partitions, of_base, rows.n_clusters),
        by_labels=by_labels,
        n_twins=_n_twins(rows, codes),
        alike=_most_alike(partitions, rows, codes),
        turns=turns_of(partitions, evidence, codes[None], np.array([label]), np.array([by_labels]), weights)[
            0
        ],
        cluster_names=cluster_names,
        given_weights=None if given_weights is None else tuple(given_weights),
        groups=tuple(tuple(partitions.names[j] for j in own) for own in partitions.members_of_groups),
    )


def _support(partitions: Partitions, of_base: dict[int, np.ndarray], n_clusters: int) -> tuple[float, ...]:
    """The mean share of each cluster, over the opinions that there are."""
    if not of_base:
        return (0.0,) * n_clusters
    group_of = {j: i for i, own in enumerate(partitions.members_of_groups) for j in own.tolist()}
    opinions = [group_of.get(j, -1 - j) for j in of_base]
    weights = [1.0 / opinions.count(opinion) for opinion in opinions]
    return tuple(np.average([*of_base.values()], axis=0, weights=weights).tolist())


def find_instance(partitions: Partitions, wanted: Any) -> int:
    """The row of an instance, by its id (also as text), or by its position where there are no ids."""
    ids = partitions.index
    if ids is None:
        if isinstance(wanted, str) and wanted.isdigit():
            wanted = int(wanted)
        if isinstance(wanted, int | np.integer) and 0 <= wanted < partitions.n_rows:
            return int(wanted)
        raise InputError(
            f"there is no instance {wanted!r}.", hint=f"give a position from 0 to {partitions.n_rows - 1}."
        )
    found = [i for i, known in enumerate(ids.tolist()) if known == wanted]
    found = found or [i for i, known in enumerate(ids.tolist()) if str(known) == str(wanted)]
    if not found:
        raise InputError(
            f"there is no instance {wanted!r}.",
            hint=did_you_mean(str(wanted), map(str, ids[:10_000].tolist())),
        )
    return found[0]


def _said(partitions: Partitions, codes: np.ndarray, of_base: dict[int, np.ndarray]) -> tuple[Said, ...]:
    if partitions.views is None:
        return tuple(
            Said(name, plain(partitions.categories[j][codes[j]]), tuple(of_base[j].tolist()))
            if j in of_base
            else Said(name, None, ())
            for j, name in enumerate(partitions.names)
        )
    said = []
    for view in dict.fromkeys(partitions.views):
        known = [of_base[j] for j, other in enumerate(partitions.views) if other == view and j in of_base]
        mean = tuple(np.mean(known, axis=0).tolist()) if known else ()
        said.append(Said(view, counted(len(known), "base clustering") if known else None, mean))
    return tuple(said)


def _n_twins(rows: JointRows, codes: np.ndarray) -> int:
    return int(rows.counts[(rows.codes == codes).all(axis=1)].sum()) - 1


class Nearest(NamedTuple):
    """A distinct row, and how many labels it shares with another."""

    row: int
    n_agreeing: int
    n_both: int


def nearest_rows(rows: JointRows, codes: np.ndarray, among: np.ndarray | None = None) -> list[list[Nearest]]:
    """For every row of `codes`, the distinct rows (of `among`) that share most labels, twins left out.

    The share is that of the sources that saw either; of equals, the row of most instances comes first.
    """
    among = np.arange(len(rows.codes)) if among is None else among
    among = among[np.argsort(-rows.counts[among], kind="stable")]
    others = rows.codes[among]
    seen = (others >= 0).astype(np.float32)
    found = []
    for start in range(0, len(codes), _BLOCK):
        block = codes[start : start + _BLOCK]
        here = (block >= 0).astype(np.float32)
        agreeing = np.zeros((len(block), len(others)), dtype=np.int16)
        for own, other in zip(block.T, others.T, strict=True):
            agreeing += (own[:, None] == other) & (own[:, None] >= 0)
        both = here @ seen.T
        either = here.sum(axis=1)[:, None] + seen.sum(axis=1) - both
        likeness = agreeing / np.maximum(either, 1)
        likeness[agreeing == either] = 0.0  # twins are counted elsewhere
        for near, same, seen_by_both in zip(likeness, agreeing, both, strict=True):
            least = np.partition(near, -_NEAREST)[-_NEAREST] if len(near) > _NEAREST else 0.0
            close = np.flatnonzero((near >= least) & (near > 0))
            close = close[np.argsort(-near[close], kind="stable")][:_NEAREST]
            found.append([Nearest(int(among[r]), int(same[r]), int(seen_by_both[r])) for r in close.tolist()])
    return found


def _most_alike(partitions: Partitions, rows: JointRows, codes: np.ndarray) -> tuple[Alike, ...]:
    return tuple(
        Alike(_first_id(partitions, rows, r), int(rows.counts[r]), int(rows.labels[r]), agreeing, both)
        for r, agreeing, both in nearest_rows(rows, codes[None])[0]
    )


def _first_id(partitions: Partitions, rows: JointRows, r: int) -> Any:
    row = int(np.argmax(rows.inverse == r))
    return row if partitions.index is None else plain(partitions.index[row])


def n_changes(partitions: Partitions) -> int:
    """The most single changes of a row that `turns_of` tries."""
    if partitions.views is not None:
        return len(set(partitions.views))
    return int(partitions.n_clusters_per_partition.sum())


def turns_of(
    partitions: Partitions,
    evidence: Evidence,
    codes: np.ndarray,
    labels: np.ndarray,
    by_labels: np.ndarray,
    weights: np.ndarray | None = None,
) -> list[tuple[Turn, ...]]:
    """Of every row, single changes of what was said, placed like new rows; one a source and cluster that it
    leads to. None of a row that is not where its labels put it: what it said did not decide."""
    changed: list[tuple[int, str, Any]] = []
    table: list[np.ndarray] = []
    for number, row in enumerate(codes):
        if labels[number] < 0 or labels[number] != by_labels[number]:
            continue
        for source, instead, other in _changes(partitions, row):
            if (other >= 0).any():
                changed.append((number, source, instead))
                table.append(other)
    turns: list[dict[tuple[str, int], Turn]] = [{} for _ in codes]
    placed = predict_labels(evidence, np.array(table), weights).tolist() if table else []
    for (number, source, instead), cluster in zip(changed, placed, strict=True):
        if cluster != by_labels[number]:
            turns[number].setdefault((source, cluster), Turn(source, instead, cluster))
    return [tuple(found.values())[:_TURNS] for found in turns]


def _changes(partitions: Partitions, codes: np.ndarray) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Single changes of a row: the source, what it says instead, and the row with it."""
    if partitions.views is not None:
        for view in dict.fromkeys(partitions.views):
            yield view, None, np.where(np.array(partitions.views) == view, -1, codes)
        return
    for j in np.flatnonzero(codes >= 0).tolist():
        for code in (-1, *(c for c in range(len(partitions.categories[j])) if c != codes[j])):
            other = codes.copy()
            other[j] = code
            yield partitions.names[j], None if code < 0 else plain(partitions.categories[j][code]), other


def _named(sources: list[str]) -> str:
    if len(sources) > 4:
        return f"{len(sources)} sources speak"
    return f"{_listed(sources)} speak" + "s" * (len(sources) == 1)


def _listed(sources: Sequence[str]) -> str:
    *most, last = map(repr, sources)
    return f"{', '.join(most)} and {last}" if most else last


def _percents(shares: tuple[float, ...], shown: list[int], wide: list[int]) -> str:
    return "".join(f"{shares[c]:{w}.0%}" for c, w in zip(shown, wide, strict=True))


def _text(label: Any) -> str:
    return "-" if label is None else str(label)
