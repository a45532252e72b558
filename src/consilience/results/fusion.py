"""What a fusion found: labels, how far to trust them, and why this method."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from consilience._support.errors import InputError, InputTypeError
from consilience._support.optional import optional_import
from consilience._support.talk import Progress
from consilience._support.values import counted, object_array
from consilience.core.completion import complete_labels
from consilience.diagnostics import ChanceTest, ClusterCount, Diagnostics, beyond_chance, diagnose
from consilience.diagnostics.summary import instance_warnings, missing_warnings
from consilience.evidence.partitions import MISSING, Partitions, Unknown
from consilience.evidence.views import TableReading, Views
from consilience.inference.adapting import place_adapted
from consilience.inference.annotators import NamedPlacement
from consilience.inference.chance import compare_with_chance
from consilience.inference.chances import chances_of_rows
from consilience.inference.counting import Caution, caution
from consilience.inference.counts import Finding, JointRows, joint_rows
from consilience.inference.placement import Placed, Placement
from consilience.inference.posterior import Evidence, fitted_rows, gather_evidence
from consilience.multiview.neighbours import ViewDiagnostics, ViewNeighbours, shares_in_view
from consilience.multiview.together import LabelsAndViews
from consilience.results._names import base_named, given_names, names_after
from consilience.results.drift import Drift, drift, require_labels
from consilience.results.explaining import Explanation, explain, find_instance
from consilience.results.following import Changes, compare_labels, follow, read_earlier
from consilience.results.headline import Headline, SourceUse, headline_of
from consilience.results.levels import Levels, merge_clusters, split_cluster
from consilience.results.preparing import merge_rows
from consilience.results.saving import save
from consilience.results.telling import as_html, as_text
from consilience.results.together import newcomers, said_by_sources, with_own
from consilience.results.update import Update, update

if TYPE_CHECKING:
    from consilience.results.stability import Stability


class Candidate(NamedTuple):
    """A method that was tried, and the mean NMI (sqrt) of its answer with the base clusterings."""

    method: str
    agreement: float
    polished: bool = False  # whether the mixture improved what it found
    surprise: float | None = (
        None  # negative log-likelihood of an instance's labels, where the mixture made it
    )

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.method}, polished" if self.polished else self.method


class GivenViews(NamedTuple):
    """What `fuse_views` was given, of which its result keeps no more than it needs."""

    table: Views
    clusterer: Any
    n_partitions: int | None


class ViewUse(NamedTuple):
    """How a view was read, what was used of it, and how far it agrees with the clusters."""

    name: str
    kind: str  # see `kind` of PSE
    looks: tuple[str, ...]  # scalings of its features
    n_rows: int  # that were used
    n_empty: int  # rows of counts without any entry, which count as absent
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
        The base clusterings as they were read. Without any column where a method clustered views itself: no
        labels were made, and what needs labels (`imputed`, `named_after`, ...) raises an error that says so.
    method, reason : str
        The method that made the labels, and why it was taken.
    model : estimator
        The fitted estimator.
    candidates : tuple of Candidate
        The methods that were compared, by agreement; empty where one was asked for.
    cluster_count : ClusterCount or None
        How the number of clusters was found, where it was not given.
    neighbours : object or None
        What places new instances by their features, where `fuse_views` merged views.
    changes : Changes or None
        What became of the clusters of an earlier result, where they were followed; see :meth:`like`.
    cluster_names : tuple of str or None
        Names of the clusters, where they have any; see `names`.
    given_weights : sequence of float or None
        The weights of the sources that the user gave, in their order.
    view_diagnostics : ViewDiagnostics or None
        What the method knows of the views that it clustered; None where base clusterings were merged.
    seed : int or None
        The `random_state` that was given, or the number drawn in its place, with which `fuse` gives the same
        answer. None for views where no number was given.
    linked : ndarray of shape (n_instances,) or None
        A number for every instance, the same for those that had to be in the same cluster.
    apart : tuple of tuples of int or None
        Positions of instances no two of which may be in one cluster, where there were such.
    updated : Update or None
        What the last update did, where there was one; see :meth:`update`.
    given_views : GivenViews or None
        The tables that `fuse_views` was given. A saved file does not hold them.
    settled : int or None
        How many instances `settle` moved; None where it was not asked for.
    headline : Headline
        The figures that summary, notebook and report all say: see :class:`Headline`.
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
    changes: Changes | None = None
    cluster_names: tuple[str, ...] | None = None
    given_weights: Sequence[float] | None = None
    view_diagnostics: ViewDiagnostics | LabelsAndViews | None = None
    seed: int | None = None
    linked: np.ndarray | None = None
    given_views: GivenViews | None = None
    updated: Update | None = None
    settled: int | None = None
    apart: tuple[tuple[int, ...], ...] | None = None

    UNSAVED: ClassVar[tuple[str, ...]] = ("given_views",)

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "view_diagnostics" not in state and hasattr(state.get("model"), "view_readings_"):
            # A file of an earlier version, which also holds base clusterings that were made up from views.
            state["view_diagnostics"] = state["model"]
            state["partitions"] = without_labels(state["partitions"])
        self.__dict__.update(state)

    @property
    def n_instances(self) -> int:
        """Number of instances; a row of a counted table stands for several."""
        return self.partitions.n_instances

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(np.unique(self.labels[self.labels >= 0]))

    @property
    def n_numbers(self) -> int:
        """One more than the largest number of a cluster: more than there are where some are not used."""
        return int(self.labels.max()) + 1

    @property
    def previous(self) -> np.ndarray | None:
        """Per instance, its cluster in the earlier result that was followed, -1 where it was in none; None
        where none was followed. ``changes.to_frame()`` also has those that are gone."""
        moves = None if self.changes is None else self.changes.moves
        return None if moves is None else moves.before[: moves.n_here]

    @property
    def index(self) -> np.ndarray | None:
        """Ids of the instances, in the order of `labels`; None where they are known by position only."""
        return self.partitions.index

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the clusters: their numbers, unless `fuse(named_after=...)` or `rename` gave others."""
        return self.cluster_names or tuple(map(str, range(self.n_numbers)))

    def named_after(self, base: str) -> Fusion:
        """The same with clusters named after the labels of a base clustering.

        Each label names at most one cluster, such that as many instances as possible are in the cluster that
        has the name of their label. Clusters that are left over keep their number.
        """
        self._require_labels("naming clusters after a base clustering")
        return self._with_names(
            names_after(self.partitions, self.label_rows, base_named(self.partitions, base))
        )

    def rename(self, names: Mapping[int, str] | Sequence[str]) -> Fusion:
        """The same with other names of clusters: one for each, or a dict such as ``{0: "loyal"}``."""
        return self._with_names(given_names(names, self.names))

    def _with_names(self, names: tuple[str, ...]) -> Fusion:
        other = copy(self)  # keeps what was computed already: no number depends on names
        object.__setattr__(other, "cluster_names", names)
        return other

    @cached_property
    def opinions(self) -> Partitions:
        """What each source says of every instance, which all diagnostics read.

        The base clusterings; and, where a method clustered views itself, a column for each view: the cluster
        that most neighbours of an instance in that view are in.
        """
        told = self.view_diagnostics
        if told is None:
            return self.partitions
        k, numbers = int(told.labels_.max()) + 1, self._numbers
        codes = np.full((len(self.labels), len(told.view_names_)), MISSING, dtype=np.int32)
        for v, column in enumerate(codes.T):
            view = told.in_view(v)
            if view is None:  # it tells no two instances apart
                column[told.observed_[:, v]] = 0
                continue
            shares = shares_in_view(view, told.labels_, k)
            column[view.rows] = np.where(
                shares.any(axis=1), numbers[shares.argmax(axis=1)], self.labels[view.rows]
            )
        table, own = self.partitions, [np.arange(self.n_numbers)] * codes.shape[1]
        found = Partitions.of_rows(
            np.hstack([table.codes, codes]),
            [*table.categories, *own],
            [*table.names, *told.view_names_],
            counts=table.counts,
            index=table.index,
        )
        return replace(found, backend=table.backend, index_name=table.index_name).compact()

    @cached_property
    def rows(self) -> JointRows:
        """The distinct rows of opinions and consensus label, which all diagnostics read."""
        return joint_rows(self.opinions, self.labels)

    @cached_property
    def label_rows(self) -> JointRows:
        """The distinct rows of base labels and consensus label."""
        return joint_rows(self.partitions, self.labels) if self.mixed is not None else self.rows

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Sources that count as one, by the name of their group; empty where none were given."""
        found: dict[str, tuple[str, ...]] = {}
        for name, group in zip(self.partitions.names, self.partitions.groups or (), strict=False):
            if group is not None:
                found[group] = (*found.get(group, ()), name)
        return found

    @property
    def by_views(self) -> bool:
        """Whether a method clustered views itself; if not, labels were merged."""
        return self.view_diagnostics is not None

    @property
    def mixed(self) -> LabelsAndViews | None:
        """What is known of labels and views that were merged together; None where one side was merged."""
        return self.model if isinstance(self.model, LabelsAndViews) else None

    @property
    def decided_by(self) -> np.ndarray:
        """Which side speaks for the cluster of an instance: "both", "labels", "views" or "neither"."""
        if self.mixed is not None:
            return self.mixed.decided_by_
        of_views = self.by_views or self.partitions.views is not None
        return np.where(self.labels >= 0, "views" if of_views else "labels", "neither")

    @property
    def views(self) -> list[ViewUse]:
        """What was read and used of every view; empty where base clusterings were merged."""
        told = self.view_diagnostics
        if told is None:
            return []
        found = zip(told.view_readings_.items(), told.view_agreement_, told.view_weights_, strict=True)
        return [
            ViewUse(name, read.kind, read.looks, read.n_rows, read.n_empty, float(agreement), float(weight))
            for (name, read), agreement, weight in found
        ]

    @property
    def tables(self) -> Mapping[str, TableReading]:
        """How tables of features were read that were more than complete numbers, by view.

        ``tables["clinic"].line`` says it in words, ``tables["clinic"].columns`` column by column.
        """
        if self.view_diagnostics is not None:
            return self.view_diagnostics.view_tables_
        return {} if self.neighbours is None else self.neighbours.table.layout.special

    @property
    def view_support(self) -> np.ndarray:
        """How strongly each view supports each cluster, (n_views, n_numbers); NaN where it cannot tell."""
        told = self.view_diagnostics
        if told is None:
            return np.empty((0, self.n_numbers))
        found = np.full((len(told.view_names_), self.n_numbers), np.nan)
        for own in np.unique(told.labels_[told.labels_ >= 0]):
            found[:, self._numbers[own]] = told.view_support_[:, own]
        return found

    @property
    def _numbers(self) -> np.ndarray:
        """Numbers of the clusters that the method of views numbers otherwise; the last is that of -1."""
        assert self.view_diagnostics is not None
        own = self.view_diagnostics.labels_
        numbers = np.full(int(own.max()) + 2, -1)
        numbers[own] = self.labels
        numbers[-1] = -1
        return numbers

    def _require_labels(self, what: str) -> None:
        if not self.partitions.n_partitions:
            raise InputTypeError(
                f"{what} needs labels, and there are none: {self.method} clustered the views themselves.",
                hint='fuse_views(..., method="labels") clusters each view and merges the labels.',
            )

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """See :func:`consilience.diagnostics.diagnose`. Of views, the method says how sure it is."""
        found = diagnose(self.opinions, self.rows, evidence=self.evidence, chance_test=self.chance_test)
        told = self.view_diagnostics
        if told is None:
            return found
        m, mixed = self.partitions.n_partitions, self.mixed
        if isinstance(told, LabelsAndViews):
            sure = told.confidence_from(found.confidence)
        else:
            sure = told.confidence_
        if isinstance(told, LabelsAndViews) and told.labels_alone_:  # it has no places, only what sources say
            margin, behind = found.margin, found.alternative
        else:
            margin, behind = self._borders(sure)
        bases = replace(
            found.bases,
            agreement=np.concatenate([found.bases.agreement[:m], told.view_agreement_]),
            weights=told.view_weights_ if mixed is None else mixed.weights_,
        )
        noun = "view" if mixed is None else "source"
        sentences = [
            *told.findings_,
            *missing_warnings(found.missing, noun),
            *instance_warnings(sure, self.labels, found.counts, f"{noun}s"),
        ]
        observed = np.hstack([self.partitions.observed, told.observed_])
        return replace(
            found,
            missing_share=float(1.0 - observed.mean()),
            confidence=sure,
            margin=margin,
            alternative=behind,
            bases=bases,
            warnings=sentences,
            reading_of_views=told.confidence_reading_,
        )

    @cached_property
    def chance_test(self) -> ChanceTest:
        """Whether the sources agree more than by chance; see :func:`consilience.diagnostics.beyond_chance`.

        Sources of weight 0 have no say, and instances that had to be in the same cluster count once. Unknown
        where a method clustered views itself: what these say of an instance was read from the answer.
        """
        if self.by_views:
            return ChanceTest.unknown(self.opinions.names)
        table, count = self._independent, self.cluster_count
        if self.linked is None and count is not None and count.beyond_chance is not None:
            return replace(compare_with_chance(table), beyond=count.beyond_chance)
        return beyond_chance(table)

    @cached_property
    def caution(self) -> Caution:
        """What is to be said of a number of clusters that was given: one that was found has `cluster_count`.

        Whether two halves of the base clusterings find these clusters, and whether there may be none. Nothing
        where a method clustered views itself, and where the sources agree no more than by chance.
        """
        if self.by_views or self.cluster_count is not None or self.chance_test.by_chance:
            return Caution()
        return caution(self._independent, self.n_clusters)

    @property
    def _independent(self) -> Partitions:
        """The base clusterings with their weights, and a row for instances that belong together."""
        table = self.partitions
        table = table if self.given_weights is None else table.weighted(self.given_weights)
        if self.linked is None:
            return table
        repeated = (table.counts > 1).any()  # rows that stand for many instances keep their counts
        table = merge_rows(table, self.linked)
        return table if repeated else replace(table, counts=np.ones_like(table.counts))

    @cached_property
    def headline(self) -> Headline:
        """The figures that are said in more than one place, counted in instances."""
        return headline_of(self)

    @property
    def sources(self) -> tuple[SourceUse, ...]:
        """What each source, a base clustering or a view, has to do with the answer."""
        return self.headline.sources

    @property
    def confidence(self) -> np.ndarray:
        """Per instance, how sure its label is, 0 to 1: see ``diagnostics.reading`` for how to read it."""
        return self.diagnostics.confidence

    @property
    def chances(self) -> np.ndarray:
        """The chance of every cluster for every instance, (n_instances, n_numbers); rows sum to one.

        That of an instance's own cluster is its confidence, and they are to be read as it is: see
        ``diagnostics.reading``. An instance of which nothing is known has the shares of the clusters. A table
        of all instances and clusters: made anew each time it is asked for.

        Examples
        --------
        >>> from consilience import fuse
        >>> said = {"a": ["x", "x", "x", "y", "y", "y"], "b": ["p", "p", "q", "q", "q", "q"]}
        >>> fusion = fuse(said, 2, random_state=0)
        >>> fusion.chances[[0, 5]].round(2)
        array([[0.02, 0.98],
               [0.98, 0.02]])
        """
        return self.chances_of(slice(None))

    def chances_of(self, rows: Any) -> np.ndarray:
        """Some rows of `chances`: a slice, or positions of instances."""
        return np.asarray(self._row_chances[rows if self.by_views else self.rows.inverse[rows]])

    @cached_property
    def _row_chances(self) -> np.ndarray:
        """The chances of every distinct row; of views, of every instance."""
        told = self.view_diagnostics
        if told is None:
            return chances_of_rows(self.evidence, self.rows.codes, self.rows.labels, leave_out=True)
        return self._chances_with(self.confidence)

    def _chances_with(self, sure: np.ndarray) -> np.ndarray:
        """The chances of every instance by views, or by labels and views, that of its own cluster given."""
        told, rows = self.view_diagnostics, self.rows
        assert told is not None
        if isinstance(told, LabelsAndViews):
            found = chances_of_rows(self.evidence, rows.codes, rows.labels, leave_out=True)
            return with_own(found[rows.inverse], self.labels, sure)
        return self._renumbered(told.chances_)

    def _borders(self, sure: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margin and next cluster of every instance by its chances, which they do not contradict."""
        assert self.view_diagnostics is not None
        margin, behind = self.view_diagnostics.borders_
        known = np.flatnonzero((behind >= 0) & (self.labels >= 0) & (sure > 0.0))  # of others, as they are
        others, margin, place = self._chances_with(sure)[known], margin.copy(), np.arange(len(known))
        others[place, self.labels[known]] = 0.0
        behind = self._numbers[behind]
        behind[known] = others.argmax(axis=1)
        margin[known] = sure[known] / (sure[known] + others.max(axis=1))
        return margin, behind

    def _renumbered(self, chances: np.ndarray) -> np.ndarray:
        """Columns in the numbers of this result, where the method of views numbers clusters otherwise."""
        found = np.zeros((len(chances), self.n_numbers))
        found[:, self._numbers[: chances.shape[1]]] = chances
        return found

    @property
    def margin(self) -> np.ndarray:
        """Per instance, the chance of its cluster over that and the chance of the next best; .5 is a tie."""
        return self.diagnostics.margin

    @property
    def coverage(self) -> np.ndarray:
        """Per instance, the share of the base clusterings or views that saw it."""
        return self.diagnostics.coverage

    @property
    def weights(self) -> np.ndarray:
        """Per source, how far to trust it: of a base clustering its squared agreement, scaled to mean one;
        of a view, how much it counted."""
        return self.diagnostics.bases.weights

    @property
    def agreement(self) -> np.ndarray:
        """Per source, its agreement with the labels: of a base clustering its adjusted mutual information on
        the instances it saw; of a view, how far neighbours share a cluster."""
        return self.diagnostics.bases.agreement

    @property
    def warnings(self) -> list[Finding]:
        """About the number of clusters, and about the labels."""
        count = (self.caution if self.cluster_count is None else self.cluster_count).warnings
        found = self.diagnostics.warnings
        first = int(self.chance_test.by_chance)  # says it, and comes before all others
        return [*found[:first], *count, *found[first:]]

    @cached_property
    def imputed(self) -> Any:
        """The label table with every missing entry filled in by the label it would most likely have had.

        In the user's own label names and kind of table. Rows of instances that nobody saw stay empty.
        """
        return self.partitions.decode(self.completed.codes)

    @cached_property
    def completed(self) -> Partitions:
        """The same as `imputed`, as :class:`Partitions`."""
        self._require_labels("imputing")
        rows = self.label_rows
        seen = (rows.codes >= 0).any(axis=1)
        codes = rows.codes.copy()
        codes[seen] = complete_labels(
            rows.codes[seen], rows.counts[seen], self.partitions.offsets, rows.labels[seen], rows.n_clusters
        )
        return self.partitions.fill(codes[rows.inverse])

    @cached_property
    def evidence(self) -> Evidence:
        """What base labels say about the clusters, which places new instances."""
        return gather_evidence(self.opinions, self.rows)

    @cached_property
    def placement(self) -> Placement | NamedPlacement:
        """What places rows of base labels among the clusters, as ``partitions.encode`` gives them."""
        own = getattr(self.model, "placement_", None)
        if isinstance(own, NamedPlacement) and np.array_equal(
            self.labels[self.partitions.seen], self.model.labels_[self.partitions.seen]
        ):  # it does not know of other numbers, see `like`
            return own
        asked = getattr(self.model, "unobserved", "noise")
        largest = self._largest if asked == "largest" else -1
        return Placement(self.evidence, fitted_rows(self.rows), largest)

    def predict(
        self,
        new: Any,
        *,
        views: Any = None,
        mask: Any = None,
        on: str | None = None,
        unknown: Unknown = "error",
    ) -> np.ndarray:
        """Clusters of new instances, in the numbers of `labels`.

        One with the base labels of an instance that was there gets its cluster.

        Parameters
        ----------
        new : table of base labels, or views
            What `fuse` or `fuse_views` got, of other instances: their labels by the same base clusterings,
            or any of the same views. Cells of views may be missing, and so may columns of frames.
        views : list or dict of tables, optional
            Where labels and views were merged together: any of the same views of the new instances, joined
            with their labels as in `fuse`. `new` is None where there are no labels.
        mask : array of bool of shape (n_new, n_views), optional
            True where a new instance is present in a view.
        on : str, optional
            Column of ids by which new frames of views are joined: every id once, in the order in which they
            first appear.
        unknown : {"error", "missing"}, default="error"
            What to do with a base label that was not fitted: refuse it, or read it as missing and warn.
        """
        return self.place(new, views=views, mask=mask, on=on, unknown=unknown).labels

    def place(
        self,
        new: Any,
        *,
        views: Any = None,
        mask: Any = None,
        on: str | None = None,
        unknown: Unknown = "error",
        adapt: bool = False,
    ) -> Placed:
        """Clusters of new instances, how sure they are, and which would be next.

        Parameters
        ----------
        new, views, mask, on, unknown
            As in `predict`.
        adapt : bool, default=False
            Whether the new instances may change what labels mean, and how frequent clusters are: what was
            merged counts as 100 members of every cluster. Better where a source broke or the mix changed,
            else about as good. Instances are then placed together, not each on its own. Not for views.

        Returns
        -------
        placed : Placed
            ``labels``, ``confidence`` and ``alternative`` of every new instance, and its ``chances``, which
            are computed when they are asked for. An instance of which nothing is known has the label -1, or
            the largest cluster with ``unobserved="largest"``, as in ``fusion.model.predict``.
        """
        if adapt:
            require_labels(self, "adapt")
            return self.place_codes(self.partitions.encode(new, unknown=unknown), adapt=True)
        told = self.view_diagnostics
        if isinstance(told, LabelsAndViews):
            codes = newcomers(self.partitions, told, new, views, mask, on, unknown)
            m = self.partitions.n_partitions
            return self.place_codes(said_by_sources(self.opinions, codes, self._numbers, m))
        if views is not None:
            raise InputTypeError(
                "views go beside labels where both were merged together; this result has one side.",
                hint="give labels or views alone, as they were merged.",
            )
        if told is not None:
            if on is not None:
                new, mask = told.read_new(new, mask=mask, on=on), None
            numbers, method = self._numbers, told
            labels, sure, behind = method.place(new, mask=mask)
            return Placed.of(
                *(numbers[labels], sure, numbers[behind]),
                chances=lambda: self._renumbered(method.predict_proba(new, mask=mask)),
            )
        if self.neighbours is not None:
            if on is not None:
                new, mask = self.neighbours.read_new(new, mask=mask, on=on), None
            found = self.neighbours.place(new, self.labels, mask)
            return Placed.of(*found, chances=partial(self.neighbours.chances, new, self.labels, mask))
        return self.place_codes(self.partitions.encode(new, unknown=unknown))

    def place_codes(self, codes: np.ndarray, *, adapt: bool = False) -> Placed:
        """`place` of rows of base labels as ``partitions.encode`` gives them."""
        if adapt:
            return place_adapted(self.evidence, codes, self.placement.unseen)
        return self.placement.place(codes)

    @property
    def _largest(self) -> int:
        placed = self.labels >= 0
        return int(np.bincount(self.labels[placed], self.partitions.counts[placed]).argmax())

    def drift(self, new: Any) -> Drift:
        """Whether new instances are like those that were merged: what labels mean, which there are, the mix.

        Each label of a new instance is compared with what its other labels let one expect, by the tables of
        this result, and the surprise with that of the merged instances. Small differences show from some
        hundred instances on; fifty show swapped labels.

        Parameters
        ----------
        new : table of base labels
            As in `predict`. Labels that were not fitted are counted, not refused.

        Returns
        -------
        drift : Drift
            ``p_meaning``, ``p_labels``, ``p_shares``, the ``source`` that stands out, and ``sentences``. Not
            for results of views, whose new instances have no labels.

        Examples
        --------
        >>> import numpy as np
        >>> from consilience import fuse
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 3, 800)
        >>> teams = {name: np.where(rng.random(800) < 0.1, rng.integers(0, 3, 800), truth) for name in "abcd"}
        >>> fusion = fuse({name: said[:600] for name, said in teams.items()}, 3, random_state=0)
        >>> later = {name: said[600:] for name, said in teams.items()}
        >>> fusion.drift(later).found
        False
        >>> fusion.drift({**later, "c": (later["c"] + 1) % 3}).source
        'c'
        """
        return drift(self, new)

    def update(self, table: Any, *, index: Any = None, pin: Any = None) -> Fusion:
        """The same clusters with other evidence: instances that were there, new ones, new sources.

        Instances are known again by their ids. A label of the new table replaces the one that was there, a
        blank does not, and instances that it lacks stay. From the clusters that they are in, instances move
        to the nearest one until none does, as :class:`DAL` ends; new ones join. Clusters keep their numbers
        and names, and there are no others. It is fast, and it is no new merge: that may find other clusters,
        and is the better choice where the table has doubled, a source has changed, or another number of
        clusters is wanted (``fuse(..., like=fusion)``).

        Parameters
        ----------
        table : table of base labels
            As in `fuse`, with ids. Columns may be left out or be new.
        index : str or sequence, optional
            Ids of the instances, as in `fuse`. Left out, the column that is called as the ids are.
        pin : True or list of ids, optional
            Instances that stay where they are: all, or these. The others move or are placed.

        Returns
        -------
        fusion : Fusion
            Its ``updated`` say how many instances are old, new and moved, and whether to merge anew; its
            ``changes`` who moved. Not for results of views.

        Examples
        --------
        >>> from consilience import fuse
        >>> a = {"ann": "gold", "bob": "basic", "cleo": "gold", "dan": "basic"}
        >>> b = {"ann": "spender", "bob": "saver", "cleo": "spender", "dan": "saver"}
        >>> march = fuse({"a": a, "b": b}, 2, random_state=0)
        >>> april = march.update({"b": {"eve": "saver"}, "c": {"eve": "low", "bob": "low", "ann": "high"}})
        >>> dict(zip(april.index.tolist(), april.labels.tolist()))
        {'ann': 1, 'bob': 0, 'cleo': 1, 'dan': 0, 'eve': 0}
        >>> april.updated.n_new, april.updated.n_moved, april.updated.new_sources
        (1, 0, ('c',))
        """
        return update(self, table, index=index, pin=pin)

    def levels(self, k_max: int | None = None) -> Levels:
        """Coarser and finer clusters of this result, nested, and what speaks for each split.

        Parameters
        ----------
        k_max : int, optional
            The finest level to look for. None goes no further than the clusters of the result.

        Returns
        -------
        levels : Levels
            ``cut(k)`` are the clusters of a level, ``splits`` what speaks for each, and ``stop(error=0.1)``
            the finest level at which the cluster of an instance is sure enough. ``print`` it for a line a
            split. Not for results of views.

        Examples
        --------
        >>> import numpy as np
        >>> from consilience import fuse
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 4, 400)
        >>> teams = {name: np.where(rng.random(400) < 0.1, rng.integers(0, 4, 400), truth) for name in "abc"}
        >>> teams |= {name: np.array(["left", "right"])[truth // 2] for name in "de"}
        >>> levels = fuse(teams, 4, random_state=0).levels(k_max=5)
        >>> [split.supported for split in levels.splits]
        [True, True, True, False]
        >>> len(np.unique(levels.cut(2))), (levels.cut(4) == levels.fusion.labels).all().item()
        (2, True)
        """
        return Levels(self, k_max)

    def split(self, cluster: int | str) -> Fusion:
        """The same with one cluster, by its number or name, in two; the larger part keeps its number."""
        return split_cluster(self, cluster)

    def merge(self, *clusters: int | str) -> Fusion:
        """The same with two or more clusters, by numbers or names, in one, under the number of the first."""
        return merge_clusters(self, clusters)

    def explain(self, instance: Any) -> Explanation:
        """Why an instance is in its cluster: who said what, who is like it, what would change it.

        Parameters
        ----------
        instance : object
            Its id, or its position where instances have no ids.

        Examples
        --------
        >>> from consilience import fuse
        >>> said = {"a": ["x", "x", "x", "y", "y", "y"], "b": ["p", "p", "q", "q", "q", "q"],
        ...         "c": ["s", "s", "t", "t", "t", None]}
        >>> for sentence in fuse(said, 2, random_state=0).explain(2).sentences[1:]:
        ...     print(sentence)
        If 'b' had said 'p', it would be in cluster 1.
        If 'c' had said 's', it would be in cluster 1.
        """
        row = find_instance(self.partitions, instance)
        found = self.diagnostics
        return explain(
            self.opinions,
            self.rows,
            self.evidence,
            row,
            confidence=float(found.confidence[row]),
            margin=float(found.margin[row]),
            alternative=int(found.alternative[row]),
            cluster_names=self.cluster_names,
            given_weights=self.given_weights,
        )

    def rosetta(self, first: str | None = None, second: str | None = None) -> Any:
        """What each source calls the clusters; or how the labels of two sources correspond.

        Only what is at least .8 sure is said. Errors of the sources are taken out by their skills, and labels
        that no instance has both of are matched through the consensus.

        Parameters
        ----------
        first, second : str, optional
            Two sources. None for a table of all of them against the clusters.

        Returns
        -------
        table : frame
            Of the kind that was given; of pandas where the labels came in no frame. Without sources, a row
            per cluster and a column per source: ``= gold`` is that label, ``< basic`` is part of it,
            ``> a, b`` consists of these, ``~ x`` overlaps with it, ``?`` is undecided, ``-`` was not seen. Of
            two sources, a row per pair of labels: ``relation`` ("same", "finer": the first is part of the
            second, "coarser", "overlapping" or "undecided"), its ``chance``, how many instances have both
            (``shared``) of those with each label that both sources saw (``of_a``, ``of_b``), and whether that
            is known ``through`` these "instances" or, where they are fewer than ten, the "consensus".
            Unrelated pairs are not listed: labels of which nothing is known could be called so by mistake.

        Examples
        --------
        >>> import numpy as np
        >>> from consilience import fuse
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 4, 400)
        >>> said = {"a": np.array(["gold", "silver", "basic", "new"])[truth],
        ...         "b": np.array(["rich", "rich", "poor", "poor"])[truth],
        ...         "c": np.array(list("pqrs"))[truth]}
        >>> fusion = fuse(said, 4, named_after="a", random_state=0)
        >>> print(fusion.rosetta().set_index("cluster").loc["gold"].to_dict())
        {'a': '= gold', 'b': '< rich', 'c': '= p'}
        >>> found = fusion.rosetta("a", "b").set_index("a")
        >>> print(found.loc["gold", ["relation", "b", "through"]].tolist())
        ['finer', 'rich', 'instances']
        """
        from consilience.results.rosetta import as_frame, rosetta, translate  # which read results

        self._require_labels("a table of what sources call clusters")
        if first is None and second is None:
            return as_frame(self, rosetta(self).columns())
        if first is None or second is None:
            raise InputTypeError("one source was named.", hint="name two, or none: rosetta('a', 'b').")
        return as_frame(self, translate(self, first, second).columns())

    def stability(
        self,
        views: Any = None,
        *,
        mask: Any = None,
        on: str | None = None,
        n_resamples: int = 20,
        share: float = 0.8,
        leave_out: bool | None = None,
        random_state: Any = None,
        progress: Progress | bool | None = None,
    ) -> Stability:
        """How far the answer changes with other instances and sources, and which source drives it.

        The same method with the same settings is fitted again to random parts of the instances, to random
        parts of the sources, and to all sources but one, each in turn. A number of clusters that was found
        is looked for again. Every answer is compared with this one on the instances that both have.

        Parameters
        ----------
        views : list or dict of tables, optional
            What `fuse_views` got. Only for a result of views that was saved: the file does not hold them.
        mask, on
            As in :func:`consilience.fuse_views`, with `views`.
        n_resamples : int, default=20
            Random parts of the instances, and as many of the sources. 0 leaves both out. A part of fewer than
            ten sources is all of them but one, so these are not drawn beside those that are left out.
        share : float, default=0.8
            The share of the instances, or of the sources, in a part.
        leave_out : bool, optional
            Whether to leave each source out in turn. None does so for 30 sources or fewer.
        random_state : int, RandomState or None, default=None
            Draws the parts, and is the seed of every fit. None is the seed of the fusion, where it had one.
        progress : bool or callable, optional
            As in :func:`consilience.fuse`.

        Returns
        -------
        stability : Stability
            ``print`` it for sentences and tables.

        Examples
        --------
        >>> import numpy as np
        >>> from consilience import fuse
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 3, 300)
        >>> teams = {name: np.where(rng.random(300) < 0.1, rng.integers(0, 3, 300), truth) for name in "abcd"}
        >>> found = fuse(teams, 3, random_state=0).stability(n_resamples=5)
        >>> [cluster.verdict for cluster in found.clusters]
        ['stable', 'stable', 'stable']
        >>> round(min(left.ari for left in found.left_out), 1)
        0.9
        """
        from consilience.results.stability import stability  # which fits results itself

        return stability(
            self,
            views,
            mask=mask,
            on=on,
            n_resamples=n_resamples,
            share=share,
            leave_out=leave_out,
            random_state=random_state,
            progress=progress,
        )

    def settle(self) -> Fusion:
        """The same with every instance in its most likely cluster, where sources err independently.

        Chances follow labels, so it is done up to eight times over; a step that would lose a cluster is not
        taken, and cluster numbers stay. Where sources repeat each other (``diagnostics.dependence`` above .1)
        nothing moves: chances then only rank. Follow an earlier result (:meth:`like`) afterwards.

        Returns
        -------
        fusion : Fusion
            Its ``settled`` says how many instances were moved.

        Notes
        -----
        For sources that err on their own, as people, banks or registers do. Labels that programs made of the
        features of the same instances are more often worse afterwards: what it was measured on is on the page
        on `fuse` in the documentation.

        Examples
        --------
        >>> import numpy as np
        >>> from consilience import fuse
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 4, 500)
        >>> teams = {t: np.where(rng.random(500) < 0.4, rng.integers(0, 4, 500), truth) for t in "abcd"}
        >>> fusion = fuse(teams, 4, method="DAL", random_state=0)
        >>> fusion.headline.n_likelier > 0, fusion.settle().headline.n_likelier
        (True, 0)
        """
        from consilience.results.settling import settled  # which reads results

        if self.apart is not None:
            raise InputError(
                "settle would move instances that cannot_link parts.", hint="merge without cannot_link."
            )
        return settled(self)

    def like(self, earlier: Any) -> Fusion:
        """The same clusters under the numbers of the earlier ones that they overlap most.

        Parameters
        ----------
        earlier : Fusion, dict or series of labels by id, frame of id and label, or array
            The earlier result. Instances are known again by their ids, or by position where neither has ids.

        Returns
        -------
        fusion : Fusion
            Its ``changes`` say what stayed, split, merged, appeared and vanished. A number of a cluster that
            is gone is not used again, so numbers may have gaps.

        Examples
        --------
        >>> from consilience import fuse
        >>> march = fuse([["a", "x"], ["a", "x"], ["b", "y"], ["b", "y"], ["b", "y"]], 2, random_state=0)
        >>> april = fuse([["a", "x"], ["a", "x"], ["a", "x"], ["b", "y"], ["b", "y"]], 2, random_state=0)
        >>> march.labels, april.labels
        (array([1, 1, 0, 0, 0]), array([0, 0, 0, 1, 1]))
        >>> april.like(march).labels
        array([1, 1, 1, 0, 0])
        >>> april.like(march).changes.n_moved
        1
        """
        read = read_earlier(earlier, self.partitions.index_name)
        labels, changes = follow(self.labels, self.partitions, read)
        found = replace(self, labels=labels, changes=changes, cluster_names=None)
        return found.rename({c: read.names[c] for c in changes.stayed}) if read.names else found

    def compared_with(self, earlier: Fusion) -> Fusion:
        """The same under its own numbers, with ``changes`` since an earlier result that has the same ones."""
        changes = compare_labels(self.labels, self.partitions, read_earlier(earlier))
        return replace(self, changes=changes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the result in a file; :func:`consilience.load` has it back.

        Parameters
        ----------
        path : path
            Where to write. The file is there completely or not at all, and loading it executes nothing.
        """
        save(self, path)

    def to_frame(self) -> Any:
        """A table with a row per instance: id, label, confidence, margin, coverage, alternative.

        With a column ``name`` where clusters have names, empty for an unassigned instance, and a column
        ``previous`` where an earlier result was followed, ``decided_by`` where labels and views were merged
        together. ``alternative`` is the next best cluster for an instance, -1 if there is none. A frame of
        the kind that was given; a pandas frame where the labels came in no frame.
        """
        found = self.diagnostics
        names = {} if self.cluster_names is None else {"name": object_array([*self.names, None])[self.labels]}
        followed = {} if self.previous is None else {"previous": self.previous}
        sides = {} if self.mixed is None else {"decided_by": object_array(self.decided_by.tolist())}
        columns = {
            "label": self.labels,
            **names,
            **followed,
            "confidence": found.confidence,
            "margin": found.margin,
            "coverage": found.coverage,
            "alternative": found.alternative,
            **sides,
        }
        if self.partitions.backend is not None:
            return self.partitions.frame(columns)
        pandas = optional_import(
            "pandas", needed_for="to_frame() of labels that came in no frame", extra="frames"
        )
        return pandas.DataFrame(columns, index=self.partitions.index)

    def summary(self) -> str:
        """What was found, in words: method, clusters, views or base clusterings, warnings."""
        return as_text(self)

    def __repr__(self) -> str:
        clusters = counted(self.n_clusters, "cluster")
        return f"Fusion({counted(self.n_instances, 'instance')} in {clusters} by {self.method})"

    def _repr_html_(self) -> str:
        return as_html(self)


def seed_of(random_state: Any) -> int | None:
    """A seed that can be kept."""
    return int(random_state) if isinstance(random_state, Integral) else None


def without_labels(table: Partitions) -> Partitions:
    """The instances of a table without its base clusterings."""
    empty = Partitions.of_rows(
        np.empty((table.n_rows, 0), dtype=np.int32), (), (), counts=table.counts, index=table.index, views=()
    )
    return replace(empty, backend=table.backend, index_name=table.index_name)
