"""What a fusion found: labels, how far to trust them, and why this method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from consilience._errors import InputTypeError
from consilience._optional import optional_import
from consilience._values import counted
from consilience.core.completion import complete_labels
from consilience.diagnostics import ClusterCount, Diagnostics, diagnose
from consilience.diagnostics.counts import JointRows, joint_rows
from consilience.diagnostics.summary import _instance_warnings, _missing_warnings
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


class ViewUse(NamedTuple):
    """How a view was read, what was used of it, and how far it agrees with the clusters."""

    name: str
    kind: str  # "counts", "measurements" or "links"
    looks: tuple[str, ...]  # scalings of its features
    n_rows: int  # that were used
    n_empty: int  # rows without any entry, which count as absent
    agreement: float  # of its neighbours with the clusters: 0 as by chance, 1 always; NaN if it was not used
    weight: float

    @property
    def agrees(self) -> str:
        """The agreement as it is shown."""
        return "-" if np.isnan(self.agreement) else f"{self.agreement:.2f}"


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

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max()) + 1

    @property
    def index(self) -> np.ndarray | None:
        """Ids of the instances, in the order of `labels`; None where they are known by position only."""
        return self.partitions.index

    @cached_property
    def rows(self) -> JointRows:
        """The distinct rows of base labels and consensus label, which all diagnostics read."""
        return joint_rows(self.partitions, self.labels)

    @property
    def by_views(self) -> bool:
        """Whether the model clustered views itself and says what it read and used of each, as PSE does."""
        return hasattr(self.model, "view_readings_")

    @property
    def views(self) -> list[ViewUse]:
        """What was read and used of every view; empty where base clusterings were merged."""
        if not self.by_views:
            return []
        model = self.model
        found = zip(model.view_readings_.items(), model.view_agreement_, model.view_weights_, strict=True)
        return [
            ViewUse(name, read.kind, read.looks, read.n_rows, read.n_empty, float(agreement), float(weight))
            for (name, read), agreement, weight in found
        ]

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """See :func:`consilience.diagnostics.diagnose`. Of views, the model says how sure it is."""
        found = diagnose(self.partitions, self.rows)
        if not self.by_views:
            return found
        sure = self.model.confidence_
        sentences = [
            *self.model.findings_,
            *_missing_warnings(found.missing),
            *_instance_warnings(sure, self.labels, self.partitions.counts),
        ]
        return replace(found, confidence=sure, warnings=sentences)

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
        if self.by_views:
            return np.asarray(self.model.predict(new, mask=mask))
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

        ``alternative`` is the cluster that an instance supports next, -1 if there is none. A frame of the
        kind that was given; a pandas frame where the labels came as an array.
        """
        found = self.diagnostics
        columns = {
            "label": self.labels,
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
        """What was found, in words: method, clusters, views or base clusterings, warnings."""
        found = self.diagnostics
        lines = [f"{self._what()}.", f"Method: {self.method}. {self.reason}"]
        if self.cluster_count is not None:
            sure = "" if self.cluster_count.reliable else ", but not reliably: look at cluster_count.curve"
            lines.append(f"The number of clusters was found{sure}.")
        unsure = np.average(found.confidence < 0.5, weights=found.counts)
        line = f"Mean confidence {found.mean_confidence:.2f}; {unsure:.0%} of the instances are below .5."
        if not self.by_views:
            line += (
                f" Effective number of base clusterings: {found.bases.effective_number:.1f} (1: all say the "
                "same)."
            )
        lines += [line, "", "cluster  instances  confidence  consensus  with next"]
        for c, (size, mean, own, between, nearest) in enumerate(self._clusters()):
            other = f"{between:.2f} ({nearest})" if nearest >= 0 else "-"
            lines.append(f"{c:7d} {size:10d} {mean:11.2f} {own:10.2f}  {other}")
        lines += ["", *(self._view_lines() if self.by_views else self._base_lines())]
        lines += ["", *(f"Warning: {sentence}" for sentence in found.warnings)] if found.warnings else []
        return "\n".join(lines)

    def _what(self) -> str:
        """How many clusters of what, from what."""
        found = self.diagnostics
        start = f"{counted(self.n_clusters, 'cluster')} of {counted(found.n_instances, 'instance')} from "
        if self.by_views:
            absent = 1.0 - self.model.observed_.mean()
            return start + f"{counted(len(self.model.view_names_), 'view')}, {absent:.0%} of the rows absent"
        bases = counted(found.n_partitions, "base clustering")
        return start + f"{bases}, {found.missing_share:.0%} of the labels missing"

    def _view_lines(self) -> list[str]:
        """A table of the views: how each was read, how far it agrees with the clusters, what it counts."""
        rows = self.views
        width = max(4, *(len(row.name) for row in rows))
        lines = [f"{'view':{width}s}  {'read as':12s}      rows     empty  agreement  weight"]
        for row in rows:
            lines.append(
                f"{row.name:{width}s}  {row.kind:12s} {row.n_rows:9d} {row.n_empty:9d} {row.agrees:>10s} "
                f"{row.weight:7.2f}"
            )
        if any(row.n_empty for row in rows):
            lines.append("Empty rows have no entry at all: they say nothing and count as absent.")
        return lines

    def _base_lines(self) -> list[str]:
        bases = self.diagnostics.bases
        width = max(15, *map(len, bases.names[:_LISTED]))
        lines = [f"{'base clustering':{width}s}  clusters      seen  agreement  weight"]
        rows = zip(bases.names, bases.n_clusters, bases.n_seen, bases.agreement, bases.weights, strict=True)
        for name, k, n, agreement, weight in islice(rows, _LISTED):
            lines.append(f"{name:{width}s} {k:9d} {n:9d} {agreement:10.2f} {weight:7.2f}")
        if len(bases.names) > _LISTED:
            low, high = bases.agreement[_LISTED:].min(), bases.agreement[_LISTED:].max()
            lines.append(f"and {len(bases.names) - _LISTED} others, agreement {low:.2f} to {high:.2f}")
        return lines

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
        if self.by_views:
            used = _html_table(
                ("view", "read as", "rows", "empty", "agreement", "weight"),
                [
                    (
                        row.name,
                        row.kind,
                        str(row.n_rows),
                        str(row.n_empty),
                        row.agrees,
                        f"{row.weight:.2f}",
                    )
                    for row in self.views
                ],
            )
        else:
            used = _html_table(
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
        what, _, where = self._what().partition(" from ")
        return (
            f"<div><p><b>{what}</b> from {where}. Mean confidence {found.mean_confidence:.2f}.</p>"
            f"<p>Method: {escape(self.method)}. {escape(self.reason)}</p>"
            f"<div style='display:flex;gap:2em;align-items:flex-start'>{clusters}{used}</div>"
            + (f"<p>Warnings:</p><ul>{sentences}</ul>" if sentences else "")
            + "</div>"
        )


def _html_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[:100]
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
