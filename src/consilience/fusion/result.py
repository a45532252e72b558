"""What a fusion found: labels, how far to trust them, and why this method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from consilience._errors import InputTypeError
from consilience._optional import optional_import
from consilience._values import counted, object_array
from consilience.core.completion import complete_labels
from consilience.diagnostics import ClusterCount, Diagnostics, diagnose, typical_labels
from consilience.diagnostics.counts import JointRows, joint_rows
from consilience.fusion._names import base_named, given_names, names_after
from consilience.fusion._neighbours import ViewNeighbours
from consilience.partitions import Partitions

_LISTED = 20  # base clusterings in a summary; `diagnostics.bases` has all


class Candidate(NamedTuple):
    """A method that was tried, and the mean NMI (sqrt) of its answer with the base clusterings."""

    method: str
    agreement: float
    polished: bool = False  # whether the mixture improved what it found

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.method}, polished" if self.polished else self.method


@dataclass(frozen=True, repr=False, eq=False)
class Fusion:
    """One clustering of all instances; what `fuse` and `fuse_views` return.

    Attributes
    ----------
    labels : ndarray of shape (n_instances,)
        Consensus cluster of every instance, in input order; 0 is the largest. -1 for an instance that no
        base clustering saw, where that was allowed.
    partitions : Partitions
        The base clusterings as they were read.
    method, reason : str
        The method that made the labels, and why it was taken.
    model : estimator
        The fitted estimator.
    candidates : tuple of Candidate
        The methods that were compared, best first; empty where one was asked for.
    cluster_count : ClusterCount or None
        How the number of clusters was found, where it was not given.
    neighbours : object or None
        What places new instances by their features, where `fuse_views` merged views.
    cluster_names : tuple of str or None
        Names of the clusters, where they have any; see `names`.
    diagnostics : Diagnostics
        Everything that can be said about how far to trust the labels; computed when first asked for.
    """

    labels: np.ndarray
    partitions: Partitions
    method: str
    reason: str
    model: Any
    candidates: tuple[Candidate, ...] = ()
    cluster_count: ClusterCount | None = None
    neighbours: ViewNeighbours | None = None
    cluster_names: tuple[str, ...] | None = None

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max()) + 1

    @property
    def index(self) -> np.ndarray | None:
        """Ids of the instances, in the order of `labels`; None where they are known by position only."""
        return self.partitions.index

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the clusters: their numbers, unless `fuse(named_after=...)` or `rename` gave others."""
        return self.cluster_names or tuple(map(str, range(self.n_clusters)))

    def named_after(self, base: str) -> Fusion:
        """The same with clusters named after the labels of a base clustering.

        Each label names at most one cluster, such that as many instances as possible are in the cluster that
        has the name of their label. Clusters that are left over keep their number.
        """
        return self._with_names(names_after(self.partitions, self.rows, base_named(self.partitions, base)))

    def rename(self, names: Mapping[int, str] | Sequence[str]) -> Fusion:
        """The same with other names of clusters: one for each, or a dict such as ``{0: "loyal"}``."""
        return self._with_names(given_names(names, self.names))

    def _with_names(self, names: tuple[str, ...]) -> Fusion:
        other = copy(self)  # keeps what was computed already: no number depends on names
        object.__setattr__(other, "cluster_names", names)
        return other

    @cached_property
    def rows(self) -> JointRows:
        """The distinct rows of base labels and consensus label, which all diagnostics read."""
        return joint_rows(self.partitions, self.labels)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """See :func:`consilience.diagnostics.diagnose`."""
        return diagnose(self.partitions, self.rows)

    @property
    def confidence(self) -> np.ndarray:
        """Per instance, the estimated probability that its label is right; 0 for an unassigned one."""
        return self.diagnostics.confidence

    @property
    def margin(self) -> np.ndarray:
        """Per instance, support for its cluster over support for that and the next best; .5 is a tie."""
        return self.diagnostics.margin

    @property
    def coverage(self) -> np.ndarray:
        """Per instance, the share of the base clusterings that saw it."""
        return self.diagnostics.coverage

    @property
    def weights(self) -> np.ndarray:
        """Per base clustering, how far to trust it: its squared agreement, scaled to mean one."""
        return self.diagnostics.bases.weights

    @property
    def agreement(self) -> np.ndarray:
        """Per base clustering, its adjusted mutual information with the labels, on the instances it saw."""
        return self.diagnostics.bases.agreement

    @cached_property
    def imputed(self) -> Any:
        """The label table with every missing entry filled in by the label it would most likely have had.

        In the user's own label names and kind of table. Rows of instances that nobody saw stay empty.
        """
        return self.partitions.decode(self.completed.codes)

    @cached_property
    def completed(self) -> Partitions:
        """The same as `imputed`, as :class:`Partitions`."""
        rows = self.rows
        seen = (rows.codes >= 0).any(axis=1)
        codes = rows.codes.copy()
        codes[seen] = complete_labels(
            rows.codes[seen], rows.counts[seen], self.partitions.offsets, rows.labels[seen], rows.n_clusters
        )
        return self.partitions.fill(codes[rows.inverse])

    def predict(self, new: Any, *, mask: Any = None) -> np.ndarray:
        """Clusters of new instances, in the numbers of `labels`.

        Parameters
        ----------
        new : table of base labels, or views
            What `fuse` or `fuse_views` got, of other instances: their labels by the same base clusterings,
            or any of the same views. Of views, each instance joins its nearest neighbours, as in
            `fuse_views`, or the method that was asked for decides.
        mask : array of bool of shape (n_new, n_views), optional
            True where a new instance is present in a view.
        """
        if self.neighbours is not None:
            return self.neighbours.place(new, self.labels, mask)
        if not hasattr(self.model, "predict"):
            raise InputTypeError(
                f"{self.method} cannot place new instances.", hint="use another method, or fuse them all."
            )
        found = np.asarray(self.model.predict(new) if mask is None else self.model.predict(new, mask=mask))
        numbers = np.full(int(self.model.labels_.max()) + 2, -1)  # the last is that of -1
        numbers[self.model.labels_] = self.labels[self.partitions.seen]
        return numbers[found]

    def to_frame(self) -> Any:
        """A table with a row per instance: id, label, confidence, margin, coverage, alternative.

        With a column ``name`` where clusters have names, empty for an unassigned instance. ``alternative``
        is the cluster that an instance supports next, -1 if there is none. A frame of the kind that was
        given; a pandas frame where the labels came as an array.
        """
        found = self.diagnostics
        names = {} if self.cluster_names is None else {"name": object_array([*self.names, None])[self.labels]}
        columns = {
            "label": self.labels,
            **names,
            "confidence": found.confidence,
            "margin": found.margin,
            "coverage": found.coverage,
            "alternative": found.alternative,
        }
        if self.partitions.backend is not None:
            return self.partitions.frame(columns)
        pandas = optional_import(
            "pandas", needed_for="to_frame() of labels that came as an array", extra="frames"
        )
        return pandas.DataFrame(columns, index=self.partitions.index)

    def summary(self) -> str:
        """What was found, in words: method, clusters, base clusterings, warnings."""
        found = self.diagnostics
        lines = [
            f"{counted(self.n_clusters, 'cluster')} of {counted(found.n_instances, 'instance')} from "
            f"{counted(found.n_partitions, 'base clustering')}, {found.missing_share:.0%} of the labels "
            "missing.",
            f"Method: {self.method}. {self.reason}",
        ]
        if self.cluster_count is not None:
            sure = "" if self.cluster_count.reliable else ", but not reliably: look at cluster_count.curve"
            lines.append(f"The number of clusters was found{sure}.")
        unsure = np.average(found.confidence < 0.5, weights=found.counts)
        lines.append(
            f"Mean confidence {found.mean_confidence:.2f}; {unsure:.0%} of the instances are below .5. "
            f"Effective number of base clusterings: {found.bases.effective_number:.1f} (1: all say the "
            "same)."
        )
        lines += ["", "cluster  instances  confidence  consensus  with next"]
        for c, (size, mean, own, between, nearest) in enumerate(self._clusters()):
            other = f"{between:.2f} ({nearest})" if nearest >= 0 else "-"
            lines.append(f"{c:7d} {size:10d} {mean:11.2f} {own:10.2f}  {other}")
        lines += self._typical()
        bases = found.bases
        width = max(map(len, bases.names[:_LISTED]))
        lines += ["", f"{'base clustering':{max(width, 15)}s}  clusters      seen  agreement  weight"]
        rows = zip(bases.names, bases.n_clusters, bases.n_seen, bases.agreement, bases.weights, strict=True)
        for name, k, n, agreement, weight in islice(rows, _LISTED):
            lines.append(f"{name:{max(width, 15)}s} {k:9d} {n:9d} {agreement:10.2f} {weight:7.2f}")
        if len(bases.names) > _LISTED:
            low, high = bases.agreement[_LISTED:].min(), bases.agreement[_LISTED:].max()
            lines.append(f"and {len(bases.names) - _LISTED} others, agreement {low:.2f} to {high:.2f}")
        lines += ["", *(f"Warning: {sentence}" for sentence in found.warnings)] if found.warnings else []
        return "\n".join(lines)

    def _typical(self) -> Iterator[str]:
        """What clusters are called, and the labels that are typical of them, where those mean something."""
        named, labelled = self.cluster_names is not None, self.partitions.views is None
        if not (named or labelled):
            return
        width = max(len(name) for name in ("name", *self.names)) if named else 0
        found = typical_labels(self.partitions, self.rows)
        yield from ("", "cluster" + f"  {'name':{width}s}" * named + "  typical labels" * labelled)
        for c, name in enumerate(self.names):
            said = ", ".join(found.most(c)) or "-"
            yield f"{c:7d}" + f"  {name:{width}s}" * named + f"  {said}" * labelled

    def _clusters(self) -> Iterator[tuple[int, float, float, float, int]]:
        """Size, mean confidence, consensus, and that with the nearest cluster."""
        table, placed = self.diagnostics.clusters, self.labels >= 0
        sure = np.bincount(self.labels[placed], (self.partitions.counts * self.confidence)[placed])
        return zip(table.size, sure / table.size, table.own, table.between, table.nearest, strict=True)

    def __repr__(self) -> str:
        clusters = counted(self.n_clusters, "cluster")
        return f"Fusion({counted(len(self.labels), 'instance')} in {clusters} by {self.method})"

    def _repr_html_(self) -> str:
        found = self.diagnostics
        sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in found.warnings)
        clusters = _html_table(
            ("cluster", "instances", "confidence", "consensus"),
            [
                (str(c), str(size), f"{mean:.2f}", f"{own:.2f}")
                for c, (size, mean, own, _, _) in enumerate(self._clusters())
            ],
        )
        bases = _html_table(
            ("base clustering", "clusters", "seen", "agreement", "weight"),
            [
                (name, str(k), str(n), f"{agreement:.2f}", f"{weight:.2f}")
                for name, k, n, agreement, weight in zip(
                    found.bases.names,
                    found.bases.n_clusters,
                    found.bases.n_seen,
                    found.bases.agreement,
                    found.bases.weights,
                    strict=True,
                )
            ],
        )
        return (
            f"<div><p><b>{counted(self.n_clusters, 'cluster')} of {counted(found.n_instances, 'instance')}"
            f"</b> from {counted(found.n_partitions, 'base clustering')}, {found.missing_share:.0%} of "
            f"the labels missing. Mean confidence {found.mean_confidence:.2f}.</p>"
            f"<p>Method: {escape(self.method)}. {escape(self.reason)}</p>"
            f"<div style='display:flex;gap:2em;align-items:flex-start'>{clusters}{bases}</div>"
            + (f"<p>Warnings:</p><ul>{sentences}</ul>" if sentences else "")
            + "</div>"
        )


def _html_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[:100]
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
