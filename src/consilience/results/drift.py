"""Drift: whether sources still mean by their labels what they meant, and whether the mix is another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import binom

from consilience._support.errors import InputError, InputTypeError
from consilience._support.shown import Table, as_html
from consilience._support.values import counted
from consilience.inference.counts import Tabulated
from consilience.inference.surprise import Monitor, Sums

if TYPE_CHECKING:
    from consilience.results.fusion import Fusion

ALARM = 0.01  # p-values below it are told as drift
ENOUGH = 50  # newcomers from which on commands look for drift by themselves
_DEPENDENT = 0.1  # from here on sources repeat each other, and alarms are too frequent
_SHOWN = 5  # labels in a sentence


class SourceDrift(NamedTuple):
    """What became of a source."""

    name: str
    n_labels: int  # of the new instances, those that were known before
    n_unknown: int  # labels that did not exist before
    surprise: float  # of its labels given the others', in standard errors: above 0, it contradicts them more


class ShareDrift(NamedTuple):
    """How frequent a cluster was and is."""

    cluster: int
    before: float
    now: float


@dataclass(frozen=True, repr=False, eq=False)
class Drift(Tabulated):
    """Whether new instances are like those of a result; see :meth:`consilience.Fusion.drift`.

    Attributes
    ----------
    n_new : int
        New instances of which some label was known.
    p_meaning : float
        How often so much would be found if labels went together as they did. Small: a source has changed what
        it means, or errs more.
    p_labels : float
        The same for labels that did not exist, by how often labels occurred once only. Small: a source has
        another scheme.
    p_shares : float
        The same for how frequent the clusters are. Small: the mix is another one, which need not be wrong.
    source : str or None
        The source that stands out most, where meaning or labels changed (p below .01).
    sources : tuple of SourceDrift
        Every source.
    shares : tuple of ShareDrift
        Every cluster.
    dependence : float
        How far the sources repeat each other: above .1, alarms are too frequent.
    """

    n_new: int
    p_meaning: float
    p_labels: float
    p_shares: float
    source: str | None
    sources: tuple[SourceDrift, ...]
    shares: tuple[ShareDrift, ...]
    dependence: float
    unknown: tuple[tuple[str, str], ...] = ()  # source and label, the most frequent first
    names: tuple[str, ...] = ()  # of the clusters

    @property
    def p(self) -> float:
        """The smallest of the three."""
        return min(self.p_meaning, self.p_labels, self.p_shares)

    @property
    def found(self) -> bool:
        """Whether one of the p-values is below .01."""
        return self.p < ALARM

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in words."""
        said = []
        if self.p_labels < ALARM:
            new = next(one for one in self.sources if one.name == self.source)
            shown = [repr(label) for name, label in self.unknown if name == new.name]
            more = f" and {len(shown) - _SHOWN} others" if len(shown) > _SHOWN else ""
            said.append(
                f"{new.name!r} uses labels that did not exist: {new.n_unknown} of its "
                f"{counted(new.n_labels + new.n_unknown, 'label')} (p {_p(self.p_labels)}): "
                f"{', '.join(shown[:_SHOWN])}{more}."
            )
        if self.p_meaning < ALARM:
            most = max(self.sources, key=lambda one: abs(one.surprise))
            how = "contradicts the other sources more" if most.surprise > 0 else "agrees with the others more"
            said.append(
                f"Labels no longer go together as they did (p {_p(self.p_meaning)}): {most.name!r} {how} "
                f"than it did ({most.surprise:+.1f} standard errors)."
            )
        if self.p_shares < ALARM:
            moved = max(self.shares, key=lambda one: abs(one.now - one.before))
            said.append(
                f"The mix is another one (p {_p(self.p_shares)}): cluster {self.names[moved.cluster]} has "
                f"{moved.now:.0%} of the new instances and had {moved.before:.0%}."
            )
        if not said:
            return (
                f"No drift in {counted(self.n_new, 'new instance')}: labels go together as they did "
                f"(p {_p(self.p_meaning)}), clusters are as frequent as they were (p {_p(self.p_shares)}).",
            )
        said[0] = f"Drift in {counted(self.n_new, 'new instance')}. {said[0]}"
        if self.dependence > _DEPENDENT:
            said.append(
                f"Sources repeat each other (dependence {self.dependence:.2f}), where such alarms are too "
                "frequent: look at the source first."
            )
        if min(self.p_meaning, self.p_labels) < ALARM:
            said.append("If that is meant, merge anew and follow the clusters (like).")
        return tuple(said)

    def as_dict(self) -> dict[str, Any]:
        """Numbers, strings, lists and dicts only, and the sentences."""
        return {**super().as_dict(), "sentences": list(self.sentences)}

    def __repr__(self) -> str:
        return f"Drift({' '.join(self.sentences)})"

    def __str__(self) -> str:
        return "\n".join([*self.sentences, "", *self._table().lines()])

    def _table(self) -> Table:
        rows = [
            (one.name, str(one.n_labels), str(one.n_unknown), f"{one.surprise:+.1f}") for one in self.sources
        ]
        return Table(("source", "labels", "unknown", "surprise"), rows, ("source",))

    def _repr_html_(self) -> str:
        return as_html(self.sentences, self._table())


class Watch:
    """Compares newcomers with the instances of a result, piece by piece."""

    def __init__(self, fusion: Fusion) -> None:
        require_labels(fusion, "drift")
        self._fusion = fusion
        self._monitor: Monitor | None = None
        self._sums: Sums | None = None
        self._waiting: list[np.ndarray] = []  # pieces, until there are enough to make the reference worth it
        self._n = 0
        self._unknown: Counter[tuple[int, str]] = Counter()

    def add(self, codes: np.ndarray, unknown: Mapping[tuple[int, Any], Any]) -> None:
        """A piece: rows as ``partitions.encode`` gives them, and the rows of labels that are not known."""
        for (j, label), rows in unknown.items():
            self._unknown[j, str(label)] += len(rows)
        self._n += int((codes >= 0).any(axis=1).sum())
        self._waiting.append(codes)
        if self._n >= ENOUGH:
            self._count()

    def _count(self) -> None:
        fusion = self._fusion
        if self._monitor is None:
            self._monitor = Monitor(fusion.rows, fusion.evidence)
        for codes in self._waiting:
            if (codes >= 0).any():
                new = self._monitor.sums(codes)
                self._sums = new if self._sums is None else self._sums.plus(new)
        self._waiting = []

    @property
    def enough(self) -> bool:
        """Whether there are so many that a command looks for drift by itself; strange labels count, too."""
        return self._n + self._unknown.total() >= ENOUGH

    def found(self) -> Drift:
        """What the newcomers show."""
        self._count()
        fusion, table = self._fusion, self._fusion.partitions
        m, k = table.n_partitions, fusion.n_numbers
        strange = np.zeros(m, dtype=np.int64)
        for (j, _), n in self._unknown.items():
            strange[j] += n
        labels, z, p_meaning, p_shares = np.zeros(m, dtype=np.int64), np.zeros(m), 1.0, 1.0
        before = after = np.full(k, np.nan)
        if self._sums is not None:
            assert self._monitor is not None
            tested = self._monitor.test(self._sums)
            bases = fusion.evidence.numbering.bases
            labels[bases] = np.rint(self._sums.n_labels).astype(np.int64)
            p_meaning, p_shares, z = tested.p_meaning, tested.p_shares, tested.z
            before, after = self._monitor.shares, tested.shares
        p_each = _strangeness(fusion, labels, strange)
        p_labels = min(1.0, float(p_each.min()) * m)
        source = None
        if p_labels < ALARM:
            source = table.names[int(np.lexsort((-strange, p_each))[0])]
        elif p_meaning < ALARM:
            source = table.names[int(np.abs(z).argmax())]
        used = np.flatnonzero(np.bincount(fusion.labels[fusion.labels >= 0], minlength=k))
        return Drift(
            n_new=self._n,
            p_meaning=p_meaning,
            p_labels=p_labels,
            p_shares=p_shares,
            source=source,
            sources=tuple(
                SourceDrift(name, int(labels[j]), int(strange[j]), float(z[j]))
                for j, name in enumerate(table.names)
            ),
            shares=tuple(ShareDrift(int(c), float(before[c]), float(after[c])) for c in used),
            dependence=float(fusion.evidence.dependence),
            unknown=tuple((table.names[j], label) for (j, label), _ in self._unknown.most_common()),
            names=fusion.names,
        )


def _strangeness(fusion: Fusion, known: np.ndarray, strange: np.ndarray) -> np.ndarray:
    """Per base, how often so many labels would be new if labels came as they did.

    The chance that the next label is new is, by Good and Turing, the share of labels that occurred once.
    """
    table = fusion.partitions
    p = np.ones(table.n_partitions)
    for j, column in enumerate(table.codes.T):
        seen = column >= 0
        sizes = np.bincount(column[seen], table.counts[seen])
        rate = ((sizes == 1).sum() + 1) / (sizes.sum() + 1)
        if strange[j]:
            p[j] = binom.sf(strange[j] - 1, known[j] + strange[j], min(float(rate), 1.0))
    return p


def require_labels(fusion: Fusion, what: str) -> None:
    """Refuse results of views, in one sentence that says what is possible."""
    if fusion.by_views or fusion.neighbours is not None or fusion.partitions.views is not None:
        raise InputTypeError(
            f"{what} needs labels of every instance, and views made this result.",
            hint="place newcomers with predict; cluster the views again, followed by like, where they are "
            "many or another number of clusters is wanted.",
        )


def drift(fusion: Fusion, new: Any) -> Drift:
    """See :meth:`consilience.Fusion.drift`."""
    watch = Watch(fusion)
    codes, strange = fusion.partitions.encode_known(new)
    watch.add(codes, strange)
    if not (codes >= 0).any() and not strange:
        raise InputError(
            "no new instance has a label.", hint="give their labels by the same base clusterings."
        )
    return watch.found()


def _p(value: float) -> str:
    return (
        "< .001"
        if value < 0.001
        else f"{value:.3f}".lstrip("0")
        if value < 0.1
        else f"{value:.2f}".lstrip("0")
    )
