"""Labels and views fitted together, and what can be said of every source and instance afterwards."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import euclidean_distances

from consilience._support.threads import one_thread
from consilience._support.values import counted
from consilience.core.grouping import largest_first, row_keys
from consilience.evidence.partitions import Partitions
from consilience.evidence.views import TableReading, Views
from consilience.inference.counts import Finding
from consilience.multiview.mixed import MixedResult, in_order, mix, tau_of
from consilience.multiview.neighbours import InView, mean_support, support_of_clusters
from consilience.multiview.pse import PSE, View, embed_view, neighbourhoods_of_new, rank_of
from consilience.multiview.reading import ViewReading, says_something, stored
from consilience.multiview.rows import canonical_order, equal_instances, equal_rows

# Labels and views that are related less than this say unrelated things.
_UNRELATED = 0.1
# An answer that agrees more with one column of labels repeats it.
_REPEATED = 0.95
# Sources that count less are named, as noise up to the second trust.
_NAMED, _SAYS_SOMETHING = 0.5, 0.2
SIDES = ("both", "labels", "views", "neither")


class LabelsAndViews:
    """Labels and views of the same instances, merged by PSE with columns of labels among its views.

    Made by :func:`consilience.fuse` with `views`. Whatever is said by source has columns of labels first, in
    their order, and then views.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest. -1 where nothing is known, unless that was put in the
        largest.
    source_names_ : tuple of str
        Columns of labels, then views.
    trust_ : ndarray of shape (n_sources,)
        How far a source says what all share: 0 like noise, near .5 where nothing is known of it. NaN for one
        that tells no two instances apart, or has weight 0.
    relation_ : ndarray of shape (n_sources, n_sources)
        How far any two are related: 0 as by chance, 1 as to itself; NaN where they share too little.
    count_ : ndarray of shape (n_sources,)
        How far each counts, 0 to 1, or what was given.
    weights_ : ndarray of shape (n_sources,)
        The weight of its places: `count_`, of columns of labels half of that; 0 where it was not used.
    decided_by_ : ndarray of str of shape (n_instances,)
        Whether "both" sides, "labels", "views" or "neither" speak for the cluster of an instance.
    embedding_ : ndarray
        Rows of length one, on which k-means ran.
    """

    def __init__(self, n_clusters: int, *, unobserved: str = "noise", n_init: int = 10):
        self.n_clusters = n_clusters
        self.unobserved = unobserved
        self.n_init = n_init

    def fit(
        self,
        table: Partitions,
        views: Views,
        given: np.ndarray,
        rng: np.random.RandomState,
        by_labels: Callable[[np.ndarray], np.ndarray | None],
    ) -> LabelsAndViews:
        """Cluster the instances, which both have in one order.

        Parameters
        ----------
        table : Partitions
            The labels; a row per instance.
        views : Views
            Their features.
        given : ndarray of shape (n_sources,)
            What sources count, columns of labels first; NaN where their relations decide, 0 where they are
            left out.
        rng : RandomState
            Draws the starts of k-means.
        by_labels : callable
            What the named columns of labels say alone, -1 where they say nothing; None where nothing links
            them.
        """
        with one_thread():
            self._fit(table, views, given, rng, by_labels)
        return self

    def _fit(self, table: Partitions, views: Views, given: np.ndarray, rng: Any, by_labels: Any) -> None:
        m, v_n, k = table.n_partitions, views.n_views, self.n_clusters
        self.label_names_, self.view_names_ = table.names, views.names
        self.observed_, self._layout = views.observed, views.layout
        kinds = PSE()._kinds(views)
        self.given_ = given
        arrays = [stored(x, kind) for x, kind in zip(views.arrays, kinds, strict=True)]
        said = [says_something(x, kind) for x, kind in zip(arrays, kinds, strict=True)]
        present = views.observed & np.column_stack(said)
        telling = [j for j in range(m) if given[j] != 0 and table.n_clusters_per_partition[j] > 1]

        numbering = table.canonical.numbering
        chosen = [i for i, j in enumerate(numbering.bases.tolist()) if j in telling]
        bases = numbering.bases[chosen]
        codes, sizes = numbering.recode(table.codes)[:, chosen], np.diff(numbering.offsets)[chosen]
        first, view_order = canonical_order(arrays, present, beside=row_keys(codes, sizes))
        ordered = in_order(codes, sizes.tolist(), first, present.any(axis=1))
        back = np.argsort(ordered.instances)
        embedded: list[View | None] = [None] * v_n
        for v in view_order.tolist():
            if given[m + v] != 0:
                x, here = arrays[v][ordered.instances], present[ordered.instances, v]
                embedded[v] = embed_view(x, here, kinds[v], rank_of(k), views.scaling(v))
        used = [v for v in view_order.tolist() if embedded[v] is not None]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        sources = np.concatenate([m + np.array(used, dtype=np.intp), bases])
        result = mix(
            [view for v in used if (view := embedded[v]) is not None],
            ordered.codes,
            offsets,
            k,
            given=given[sources],
            by_labels=lambda: _taken(by_labels(np.sort(bases)), ordered.instances),
            n_init=self.n_init,
            rng=rng,
        )
        self._views = [view and view._replace(rows=ordered.instances[view.rows]) for view in embedded]
        self._learn(result, back, sources, m + v_n)
        n_empty = views.observed.sum(axis=0) - present.sum(axis=0)
        self.view_readings_ = {
            name: ViewReading(
                kinds[v],
                () if (view := self._views[v]) is None else view.reading.looks,
                0 if view is None else len(view.rows),
                int(n_empty[v]),
            )
            for v, name in enumerate(views.names)
        }
        self._describe(table)

    def _learn(self, result: MixedResult, back: np.ndarray, sources: np.ndarray, n_sources: int) -> None:
        """Keep the result in the order of instances and sources as they were given."""
        k = self.n_clusters
        order = largest_first(result.labels, k)
        self.labels_ = np.argsort(order)[result.labels][back]
        self.embedding_, self._centers = result.embedding[back], result.centers[order]
        self._directions = result.directions
        self.by_profiles_, self.labels_alone_ = result.by_profiles, result.labels_alone
        views_speak, labels_speak = result.speaks[back].T
        sides = [views_speak & labels_speak, labels_speak, views_speak]
        self.decided_by_ = np.select(sides, SIDES[:3], SIDES[3])
        self.trust_, self.count_, self.weights_ = np.full((3, n_sources), np.nan)
        self.trust_[sources], self.count_[sources] = result.trust, result.heard
        self.weights_[sources] = result.weights
        self.count_, self.weights_ = np.nan_to_num(self.count_), np.nan_to_num(self.weights_)
        self.relation_ = np.full((n_sources, n_sources), np.nan)
        self.relation_[np.ix_(sources, sources)] = result.relations.value
        self.informed_ = result.speaks[back].any(axis=1) | self.embedding_.any(axis=1)
        self.labels_[~self.informed_] = 0 if self.unobserved == "largest" else -1

    def _describe(self, table: Partitions) -> None:
        """What each source has to do with the answer."""
        m, k = table.n_partitions, self.n_clusters
        self.view_support_ = np.array(
            [
                np.full(k, np.nan) if view is None else support_of_clusters(view, self.labels_, k)
                for view in self._views
            ]
        )
        self.view_agreement_ = mean_support(self.view_support_)
        self.label_weights_, self.view_weights_ = self.weights_[:m], self.weights_[m:]
        known = ~np.isnan(self.relation_)
        closest = np.where(known, self.relation_, -np.inf).max(axis=1, initial=-np.inf)
        self.view_relations_ = np.where(known.any(axis=1), closest, np.nan)[m:]
        labelled, featured = (table.codes >= 0).any(axis=1), self.observed_.any(axis=1)
        self.n_both_ = int((labelled & featured).sum())
        self.n_only_labels_ = int((labelled & ~featured).sum())
        self.n_only_views_ = int((~labelled & featured).sum())
        self._n_labels = (table.codes[:, self.label_weights_ > 0] >= 0).sum(axis=1)
        self.findings_ = [
            *_unused(self, table),
            *_doubted(self),
            *_sides_apart(self, m),
            *_repeated(self, table),
        ]

    @property
    def source_names_(self) -> tuple[str, ...]:
        """Columns of labels, then views."""
        return (*self.label_names_, *self.view_names_)

    def closest(self, source: int) -> str:
        """The source that one is most related to, and how far, such as "'rna' (0.41)"; empty if unknown.

        Parameters
        ----------
        source : int
            Its position among `source_names_`.
        """
        row = self.relation_[source]
        if np.isnan(row).all():
            return ""
        other = int(np.nanargmax(row))
        return f"{self.source_names_[other]!r} ({row[other]:.2f})"

    @cached_property
    def borders_(self) -> tuple[np.ndarray, np.ndarray]:
        """How far instances are from the border of their cluster, as in PSE, and the cluster behind it."""
        n, some = len(self.labels_), self.embedding_.any(axis=1) & (self.labels_ >= 0)
        margin, behind = (self.labels_ >= 0) * 0.5, np.full(n, -1)
        there = np.flatnonzero(self._centers.any(axis=1))
        if len(there) > 1 and some.any():
            d = np.full((int(some.sum()), self.n_clusters), np.inf)
            d[:, there] = euclidean_distances(self.embedding_[some], self._centers[there], squared=True)
            place, z = np.arange(len(d)), self.labels_[some]
            own = d[place, z]
            d[place, z] = np.inf
            behind[some] = d.argmin(axis=1)
            margin[some] = d.min(axis=1) / np.maximum(d.min(axis=1) + own, 1e-300)
        return margin, behind

    def confidence_from(self, by_sources: np.ndarray) -> np.ndarray:
        r"""The chance that an instance is in the right cluster, as far as its sources and its place can tell.

        .. math:: logit \, p_i = 0.5 \, logit \, q_i + 1.4 (m_i - \bar m) + 3.6 \bar m + 7.3 b - 8.5

        is what held on sets of known classes. Where labels alone decided, q itself.

        Symbols: q -> `by_sources`, what labels and neighbours say by naive Bayes; m_i -> twice the margin of
        `borders_` less one; b -> how even the clusters are, the exponential of the entropy of their shares
        over their number.

        Parameters
        ----------
        by_sources : ndarray of shape (n_instances,)
            The confidence of labels and of clusters of neighbours as those of one table.
        """
        placed = self.labels_ >= 0
        if self.labels_alone_ or not placed.any() or self.labels_.max() == 0:
            return np.where(placed, by_sources, 0.0)
        shares = np.bincount(self.labels_[placed]) / placed.sum()
        even = np.exp(-(shares * np.log(np.maximum(shares, 1e-300))).sum()) / self.n_clusters
        m, q = 2.0 * self.borders_[0] - 1.0, np.clip(by_sources, 0.02, 0.98)
        mean = m[placed].mean()
        score = 0.5 * np.log(q / (1.0 - q)) + 1.4 * (m - mean) + 3.6 * mean + 7.3 * even - 8.5
        return np.where(placed, 1.0 / (1.0 + np.exp(-score)), 0.0)

    @property
    def confidence_reading_(self) -> str:
        """One sentence that says how to read the confidence."""
        return (
            "Confidence was fitted to labels and views of known classes: on new ones it ranks instances, and "
            "as a chance it is rough."
        )

    def in_view(self, v: int) -> InView | None:
        """The instances that a view was used for and the weights of their neighbours; None if it was not."""
        view = self._views[v]
        return None if view is None else InView(view.rows, view.graph, self._group[view.rows])

    @cached_property
    def _group(self) -> np.ndarray:
        views = (view for view in self._views if view is not None)
        rows = ((view.rows, equal_rows(view.looks[0].rows)) for view in views)
        return equal_instances(rows, len(self.labels_))

    @property
    def view_tables_(self) -> dict[str, TableReading]:
        """How tables were read that were more than complete numbers, by view."""
        return self._layout.special

    def read_new(self, X: Any, *, mask: Any = None, on: str | None = None) -> Views:
        """New instances with all views in their order; a view that was not given has no rows.

        Parameters
        ----------
        X, mask
            As in `PSE.predict`.
        on : str, optional
            The column of every frame that holds the ids.
        """
        return self._layout.match(X, mask, method="fuse", on=on, unobserved="keep")

    def neighbours_say(self, views: Views) -> np.ndarray:
        """For new instances the cluster of most neighbours in each view, (n_new, n_views); -1 for none.

        Parameters
        ----------
        views : Views
            From `read_new`.
        """
        out = np.full((views.n_instances, views.n_views), -1)
        inside = np.eye(self.n_clusters + 1)[:, : self.n_clusters]
        with one_thread():
            for v, view in enumerate(self._views):
                if view is None or not views.observed[:, v].any():
                    continue
                x = stored(views.arrays[v], view.reading.kind)
                rows = np.flatnonzero(views.observed[:, v] & says_something(x, view.reading.kind))
                looks = zip(view.looks, view.reading.apply(x[rows]), strict=True)
                of_rows = inside[self.labels_[view.rows]]
                votes = sum(neighbourhoods_of_new(look, new) @ of_rows for look, new in looks)
                out[rows, v] = np.asarray(votes).argmax(axis=1)
        return out


def _taken(labels: np.ndarray | None, instances: np.ndarray) -> np.ndarray | None:
    return None if labels is None else labels[instances]


# --- what makes an answer doubtful, in words ----------------------------------------------------------------

_WEIGHTS = "weights= in Python, --weights at the shell"


def _unused(model: LabelsAndViews, table: Partitions) -> list[Finding]:
    constant = [name for name, k in zip(table.names, table.n_clusters_per_partition, strict=True) if k < 2]
    constant += [name for name, reading in model.view_readings_.items() if not reading.n_rows]
    given_up = set(np.array(model.source_names_, dtype=object)[model.weights_ == 0].tolist())
    return [
        Finding(
            f"{name!r} tells no two instances apart: it was not used.",
            hint="leave it out, or check what it holds.",
        )
        for name in constant
        if name in given_up
    ]


def _doubted(model: LabelsAndViews) -> list[Finding]:
    out = []
    for name, a, counts, given in zip(
        model.source_names_, model.trust_, model.count_, model.given_, strict=True
    ):
        if np.isnan(a) or not np.isnan(given) or counts >= _NAMED or not model.count_.any():
            continue
        said = "shares next to nothing with other sources"
        if a >= _SAYS_SOMETHING:
            said = "says much less of what all share than the labels do"
        out.append(
            Finding(
                f"{name!r} {said} (trust {a:.2f}): it counts {counts:.2f}.",
                hint=f"leave it out, or give it a weight if you know that it is right: {_WEIGHTS}.",
            )
        )
    return out


def _sides_apart(model: LabelsAndViews, m: int) -> list[Finding]:
    if model.labels_alone_:
        return [
            Finding(
                "no view says what the labels share: labels alone decided, and instances without labels "
                "went with their neighbours.",
                hint=f"check the tables, or give a view a weight: {_WEIGHTS}.",
            )
        ]
    between = model.relation_[:m, m:]
    if np.isnan(between).all():
        return [
            Finding(
                f"only {counted(model.n_both_, 'instance')} with both labels and features: clusters of the "
                "two sides are matched by these alone.",
                hint="add labels or rows for instances that have only the other.",
            )
        ]
    if np.nanmax(between) < _UNRELATED:
        return [
            Finding(
                f"labels and features say unrelated things (relation {max(np.nanmax(between), 0.0):.2f}): "
                "which to trust, data cannot tell.",
                hint="compare with the answers of fuse without views, and of fuse_views, and keep one side.",
            )
        ]
    return []


def _repeated(model: LabelsAndViews, table: Partitions) -> list[Finding]:
    """Columns of labels that are the answer, among other sources that count."""
    if np.count_nonzero(model.weights_) < 2:
        return []
    out = []
    for j, name in enumerate(table.names):
        both = (table.codes[:, j] >= 0) & (model.labels_ >= 0)
        if model.label_weights_[j] == 0 or not both.any():
            continue
        shared = np.zeros((model.n_clusters, len(table.categories[j])))
        np.add.at(shared, (model.labels_[both], table.codes[both, j]), 1.0)
        agreement = tau_of(shared)[0]  # how far the cluster says the label
        if agreement > _REPEATED:
            out.append(
                Finding(
                    f"the answer repeats {name!r} (agreement {agreement:.2f}). If that is an attribute, not "
                    "an opinion about the clusters, it has replaced them.",
                    hint=f"leave it out and compare, or give it a lower weight: {_WEIGHTS}.",
                )
            )
    return out
