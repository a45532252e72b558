"""What every label method does around its mathematics: read the table, check its limits, number clusters."""

from __future__ import annotations

from dataclasses import field, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from consilience._support.errors import Hint, InputError, Phrase
from consilience._support.sklearn import Clusterer, fit_context, random_source
from consilience._support.talk import tell
from consilience._support.threads import one_thread
from consilience._support.warnings import warn
from consilience.core.canonical import Rows
from consilience.core.grouping import largest_first
from consilience.core.parameters import Count, Seed, parameters
from consilience.diagnostics import choose_n_clusters, confidence
from consilience.evidence.partitions import Partitions, Unknown
from consilience.inference.counts import joint_rows
from consilience.inference.placement import Placement
from consilience.inference.posterior import (
    Evidence,
    FittedRows,
    fitted_rows,
    gather_evidence,
)
from consilience.metrics import ensemble_agreement
from consilience.registry import About, methods

# Tables of all pairs of base clusters beyond this many would not fit in memory, and no clustering has them.
MAX_BASE_CLUSTERS = 10_000
_MOST_COPIES = 20  # of one base clustering
# Attributes with an entry per instance, besides `confidence_`.
_PER_INSTANCE = ("labels_", "row_of_instance_", "reliability_", "embedding_", "membership_", "association_")


class Problem(NamedTuple):
    """A table of labels as a solver reads it, and the way back from what it learned to the user's table.

    Solvers see `rows`: distinct rows, in an order of rows, base clusterings and clusters that depends neither
    on names nor on the order in which they were given.
    """

    table: Partitions  # as it was read
    known: Partitions  # the instances of it that somebody saw, by the base clusterings that count
    n_clusters: int
    rows: Rows  # what the solver reads
    copies: np.ndarray  # of each base clustering, in its order
    numbers: np.ndarray | None = None  # by size, once clusters were found: the new number of each

    @classmethod
    def of(cls, table: Partitions, known: Partitions, n_clusters: int, copies: np.ndarray | None) -> Problem:
        """The problem with the base clusterings as they are, or so often each, in the order of `known`."""
        form = known.canonical
        if copies is None:
            return cls(table, known, n_clusters, form.rows, np.ones(len(form.bases), dtype=np.intp))
        copies = copies[form.bases]
        return cls(table, known, n_clusters, form.rows.copied(copies), copies)

    @property
    def columns(self) -> np.ndarray:
        """Which column of the user's table each base clustering is that the solver reads."""
        return np.repeat(np.array(self.known.columns)[self.known.canonical.bases], self.copies)

    @property
    def places(self) -> np.ndarray:
        """Where each cluster of the known table is among those that the solver reads; its first copy."""
        first = np.cumsum(self.copies) - self.copies
        starts, k = self.rows.offsets[first], np.diff(self.known.canonical.rows.offsets)
        of_solver = np.concatenate([start + np.arange(n) for start, n in zip(starts, k, strict=True)])
        return of_solver[np.argsort(self.known.canonical.clusters)]

    @property
    def order(self) -> np.ndarray:
        """The solver's numbers of the clusters, largest cluster first."""
        assert self.numbers is not None
        return np.argsort(self.numbers)

    def per_instance(self, values: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
        """Values of the rows for every row of the user's table; `otherwise` for those that nobody saw."""
        seen = self.table.seen
        spread = values[self.known.inverse]
        if seen.all():
            return spread
        out = np.full((len(seen), *values.shape[1:]), otherwise, dtype=values.dtype)
        out[seen] = spread
        return out

    def per_base(self, values: np.ndarray) -> np.ndarray:
        """Values of the base clusterings for every column of the user's table; zero without any label."""
        out = np.zeros(self.table.n_columns)
        out[self.columns] = values
        return out

    def per_cluster(self, values: np.ndarray) -> list[np.ndarray]:
        """Values of the stacked clusters by base clustering, in the order of ``partitions_.categories``.

        Zeros for a base clustering of weight 0.
        """
        found = np.split(values[self.places], self.known.offsets[1:-1])
        parts = dict(zip(self.known.columns, found, strict=True))
        table = zip(self.table.columns, self.table.n_clusters_per_partition, strict=True)
        return [
            parts[column] if column in parts else np.zeros_like(values, shape=(k, *values.shape[1:]))
            for column, k in table
        ]


class Answer:
    """A cluster for every observed instance, and what follows from it when it is asked for."""

    def __init__(self, known: Partitions, labels: np.ndarray) -> None:
        self.known = known
        self.labels = labels

    @cached_property
    def evidence(self) -> Evidence:
        """What base labels say about the clusters."""
        return gather_evidence(self.known, self.labels)

    @cached_property
    def confidence(self) -> np.ndarray:
        """How sure the cluster of every observed instance is."""
        return confidence(self.known, self.labels, evidence=self.evidence)

    @cached_property
    def fitted(self) -> FittedRows:
        """The rows that were clustered, by which others are known again."""
        return fitted_rows(joint_rows(self.known, self.labels))


@parameters
class LabelMethod(Clusterer):
    """Base of estimators whose ``X`` is a table of labels: instances in rows, base clusterings in columns.

    A method writes its mathematics as a function of :class:`~consilience.core.canonical.Rows`, calls it in
    ``_solve`` and says in class attributes what it is. Its parameters are annotated names with defaults, see
    :func:`~consilience.core.parameters.parameters`. If it learns more than labels, ``_learn`` keeps that.

    Parameters
    ----------
    n_clusters : int or "auto"
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    unobserved : {"error", "noise", "largest"}
        An instance that no base clustering saw: refuse, give it the label -1, or that of the largest cluster.
    random_state : int, RandomState instance or None
        Draws the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster. Clusters of one size come in an order that
        depends neither on names nor on the order of rows and columns.
    confidence_ : ndarray of shape (n_instances,)
        How sure it is, from its labels, that the instance belongs to its cluster; see
        :func:`consilience.diagnostics.confidence`. 0 for an unobserved instance. Computed when asked for.
    n_clusters_ : int
        Number of clusters found; below `n_clusters` only where there are fewer distinct label rows.
    cluster_count_ : ClusterCount
        How the number of clusters was found; only where `n_clusters` is "auto".
    row_of_instance_ : ndarray of shape (n_instances,)
        Which of the distinct label rows an instance has; -1 for an unobserved one. Attributes whose names
        begin with ``row_`` have one entry per distinct label row.
    partitions_ : Partitions
        The table as it was read.
    n_features_in_ : int
        Number of base clusterings.
    feature_names_in_ : ndarray of str
        Names of the base clusterings, where a frame was given.
    """

    about: ClassVar[About]
    max_rows: ClassVar[float] = np.inf  # the most distinct label rows that it takes
    max_base_clusters: ClassVar[float] = np.inf  # the most clusters of all base clusterings together
    weighs_bases: ClassVar[bool] = False  # whether it learns how much each base clustering counts
    any_weights: ClassVar[bool] = False  # whether it reads `Rows.base_weights`; otherwise it gets copies

    n_clusters: Count | Literal["auto"] = field(default=8, kw_only=False)
    unobserved: Literal["error", "noise", "largest"] = "error"
    random_state: Seed = None

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> Any:
        """A result with ``labels``, a cluster from 0 for each of ``problem.rows``.

        Its fields ``objective``, ``n_iter`` and ``converged`` are kept or looked at if there are such.
        """
        raise TypeError(f"{type(self).__name__} does not say how it is solved")

    def _learn(self, result: Any, problem: Problem) -> None:
        """Keep what `result` has besides labels, in the user's terms."""

    def _prepare(self, known: Partitions, rng: np.random.RandomState) -> Partitions:
        """What is solved instead of the table."""
        return known

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Merge the base clusterings.

        Parameters
        ----------
        X : array, nested list, frame, dict or list of series, or Partitions
            The table of base labels; see :meth:`consilience.Partitions.of`.
        y : ignored
            There for scikit-learn's interface.
        """
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)  # of an earlier fit
        table = self._read_labels(X)
        rng = random_source(self.random_state)
        seen = table.take_seen()
        known = self._prepare(seen.counting, rng)
        copies = self._copies(known)
        self._check_base_clusters(known, copies)
        self._check_rows(known.distinct.n_rows, self.max_rows)
        problem = Problem.of(table, known, self._feasible_clusters(known, rng), copies)
        with one_thread():  # the same answer whatever the threads
            result = self._solve(problem, rng)
        if not getattr(result, "converged", True):
            warn(
                f"{type(self).__name__} did not converge in max_iter={self.get_params()['max_iter']} "
                "iterations.",
                ConvergenceWarning,
                hint=f"raise max_iter{' or tol' if hasattr(self, 'tol') else ''}.",
            )
        sizes = np.bincount(result.labels, problem.rows.counts, problem.n_clusters)
        # Rows are in canonical order.
        numbers = np.argsort(largest_first(result.labels, problem.n_clusters, problem.rows.counts))
        problem = problem._replace(numbers=numbers)
        self.partitions_ = table
        self.n_clusters_ = int(np.count_nonzero(sizes))
        if self.n_clusters_ < problem.n_clusters:
            warn(
                f"{type(self).__name__} found {self.n_clusters_} clusters, fewer than the "
                f"{problem.n_clusters} that were asked for.",
                ConvergenceWarning,
                hint=Hint("lower {n_clusters}, or try another method."),
            )
        self.labels_ = problem.per_instance(numbers[result.labels], {"largest": 0}.get(self.unobserved, -1))
        rows = np.arange(len(result.labels))
        self.row_of_instance_ = known.inverse if table.seen.all() else problem.per_instance(rows, -1)
        # New instances come with all base clusterings, also those of weight 0.
        self._answer = Answer(known if seen.counting is seen else seen, self.labels_[table.seen])
        if hasattr(result, "objective"):
            self.objective_ = result.objective
        if hasattr(result, "n_iter"):
            self.n_iter_ = result.n_iter
        self._learn(result, problem)
        return self

    def _spread(self, table: Partitions, row_of: np.ndarray) -> None:
        """Say of every instance of `table` what was found for the row that it is in, -1 for none."""
        nobody = {"labels_": 0 if self.unobserved == "largest" else -1, "row_of_instance_": -1}
        for name in _PER_INSTANCE:
            if hasattr(self, name):
                values = getattr(self, name)
                last = np.full_like(values, nobody.get(name, 0), shape=(1, *values.shape[1:]))
                setattr(self, name, np.concatenate([values, last])[row_of])
        vars(self).pop("confidence_", None)
        self.partitions_ = table
        self._answer = Answer(table.take_seen(), self.labels_[table.seen])

    @cached_property
    def confidence_(self) -> np.ndarray:
        """How sure the cluster of every instance is; see the attributes."""
        check_is_fitted(self)
        seen = self.partitions_.seen
        if seen.all():
            return self._answer.confidence
        out = np.zeros(len(seen))
        out[seen] = self._answer.confidence
        return out

    def predict(self, X: Any, *, unknown: Unknown = "error") -> np.ndarray:
        """Clusters of new instances from whatever base labels they have.

        An instance whose labels are all those of one that was fitted is put where that one is, so fitted rows
        keep their clusters. Others by naive Bayes: each base label speaks for the consensus clusters by the
        shares in which its members ended up there. A row without any label gets -1, or the largest cluster
        with ``unobserved="largest"``.

        Parameters
        ----------
        X : table of labels
            The base labels of the new instances, in the names that were fitted; missing entries allowed.
            Frames and dicts are matched by column name and may leave base clusterings out.
        unknown : {"error", "missing"}, default="error"
            What to do with a label that was not fitted: refuse it, or read it as missing and warn.
        """
        return self._placement.labels(self._encode_labels(X, unknown))

    def predict_confidence(self, X: Any, *, unknown: Unknown = "error") -> np.ndarray:
        """How sure the cluster is that `predict` gives a new instance; see `confidence_`.

        Parameters
        ----------
        X : table of labels
            As in `predict`.
        unknown : {"error", "missing"}, default="error"
            As in `predict`.
        """
        return self._placement.place(self._encode_labels(X, unknown)).confidence

    def predict_proba(self, X: Any, *, unknown: Unknown = "error") -> np.ndarray:
        """The chance of every cluster for new instances, (n_new, n_clusters); rows sum to one.

        That of the cluster which `predict` gives is `predict_confidence`. A row without any label has the
        shares of the clusters.

        Parameters
        ----------
        X : table of labels
            As in `predict`.
        unknown : {"error", "missing"}, default="error"
            As in `predict`.
        """
        return self._placement.chances(self._encode_labels(X, unknown))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean agreement (NMI) of the clusters that `predict` gives with the base labels of these instances.

        Needs no classes, so that scikit-learn's searches run. It favours more clusters, so compare settings
        of one `n_clusters` by it; :func:`consilience.diagnostics.choose_n_clusters` finds the number.

        Parameters
        ----------
        X : table of labels
            As in `predict`; labels that were not fitted are read as missing, with a warning.
        y : ignored
            There for scikit-learn's interface.

        Returns
        -------
        agreement : float
            Between 0 and 1; see :func:`consilience.metrics.ensemble_agreement`.
        """
        codes = self._encode_labels(X, "missing")
        return ensemble_agreement(np.maximum(self._placement.labels(codes), 0), codes)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    def _read_labels(self, X: Any) -> Partitions:
        if X is None:
            raise InputError(
                f"{type(self).__name__} needs a table of labels, got None.",
                hint="fit(labels), one row per instance and one column per base clustering.",
            )
        table = Partitions.of(X, unobserved="error" if self.unobserved == "error" else "keep").compact()
        if hasattr(X, "shape"):
            validate_data(self, X, skip_check_array=True, reset=True)
        self.n_features_in_ = table.n_columns
        _warn_unlinked(table)
        if self.n_clusters != "auto":
            n_seen = int(table.counts[table.seen].sum())
            if self.n_clusters > n_seen:
                raise InputError(
                    Phrase("n_samples={n} should be >= {n_clusters=}.", n=n_seen, n_clusters=self.n_clusters),
                    hint=Hint("lower {n_clusters}, or check that instances are rows."),
                )
        return table

    @property
    def _placement(self) -> Placement:
        check_is_fitted(self)
        unseen = 0 if self.unobserved == "largest" else -1
        return Placement(self._answer.evidence, self._answer.fitted, unseen)

    def _encode_labels(self, X: Any, unknown: Unknown) -> np.ndarray:
        """Codes of new instances."""
        check_is_fitted(self)
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) == 2 and not hasattr(X, "columns") and shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input.",
                hint=(
                    "keep a column for every base clustering and mark what is unknown as missing, or pass "
                    "a frame or dict with the columns that there are."
                ),
            )
        return self.partitions_.encode(X, unknown=unknown)

    def _copies(self, known: Partitions) -> np.ndarray | None:
        """How often each base clustering is copied in place of its weight, where the solver reads none."""
        if known.opinion_weights is None:
            return None
        if self.weighs_bases:
            what = "groups" if known.base_weights is None else "weights"
            raise InputError(
                f"{type(self).__name__} does not take {what} of base clusterings: it learns how much each "
                "counts.",
                hint=f"these do: {', '.join(taking_weights())}.",
            )
        return None if self._reads_weights else whole_weights(known, type(self).__name__)

    @property
    def _reads_weights(self) -> bool:
        """Whether the solver, with these parameters, reads weights of base clusterings."""
        return self.any_weights

    def _feasible_clusters(self, known: Partitions, rng: np.random.RandomState) -> int:
        """The number of clusters that was asked for or found, at most that of distinct rows."""
        if self.n_clusters == "auto":
            # Base clusterings count once each: heavy ones would vouch for themselves.
            self.cluster_count_ = count = choose_n_clusters(known.weighted(None), random_state=rng)
            if not count.reliable:
                why = " ".join(found.text for found in count.warnings)
                why = why or "there may be more than were looked for."
                warn(
                    Phrase(
                        "{n_clusters=auto} found {k} clusters, but not reliably: {why}",
                        k=count.n_clusters,
                        why=why,
                    ),
                    hint=Hint(
                        "look at cluster_count_.curve, or give {n_clusters}.", command="give {n_clusters}."
                    ),
                )
            return min(count.n_clusters, known.distinct.n_rows)
        n_distinct = known.distinct.n_rows
        if self.n_clusters > n_distinct:
            warn(
                Phrase(
                    "only {n} distinct label rows for {n_clusters=}: {n} clusters are returned.",
                    n=n_distinct,
                    n_clusters=self.n_clusters,
                ),
                ConvergenceWarning,
                hint=Hint(
                    "instances with the same labels everywhere cannot be told apart; lower {n_clusters} or "
                    "add base clusterings."
                ),
            )
        return min(self.n_clusters, n_distinct)

    def _check_base_clusters(self, table: Partitions, copies: np.ndarray | None = None) -> None:
        """Refuse tables with more base clusters than a table of their pairs can hold."""
        ks = table.n_clusters_per_partition * (1 if copies is None else copies)
        if ks.sum() > self.max_base_clusters:
            most = int(ks.argmax())
            raise InputError(
                f"the base clusterings have {ks.sum()} clusters in all, {type(self).__name__} takes at "
                f"most {self.max_base_clusters}; {table.names[most]!r} alone has {ks[most]}.",
                hint=(
                    "leave out columns that are ids rather than labels, and read noise labels as missing "
                    "if there are many."
                ),
            )

    def _check_rows(self, n_rows: int, most: float) -> None:
        """Refuse tables whose pairs of distinct label rows a method cannot hold."""
        if n_rows > most:
            raise InputError(
                f"the table has {n_rows} distinct label rows, {type(self).__name__} compares all pairs of "
                f"them and takes at most {most}.",
                hint="use LWGP or DAL, whose cost is linear in them, or fewer or coarser base clusterings.",
            )

    @property
    def _settings(self) -> dict[str, Any]:
        """What is the method's own among parameters, which its solver takes; `progress` for `verbose`."""
        common = {f.name for f in fields(LabelMethod)}
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in common}
        if own.pop("verbose", False):
            own["progress"] = self._progress
        return own

    def _progress(self, iteration: int, objective: float) -> None:
        tell(f"{type(self).__name__} iteration {iteration}: objective {objective:.6g}")


def whole_weights(table: Partitions, method: str) -> np.ndarray:
    """Weights as numbers of copies: as they are if whole, else the smallest whole numbers in their ratio."""
    weights = table.opinion_weights
    assert weights is not None
    for scale in (1.0, *(np.arange(1, 11) / weights.min())):
        times = np.round(weights * scale)
        whole = np.allclose(times, weights * scale, rtol=0, atol=1e-6 * scale)
        if whole and times.min() >= 1 and times.max() <= _MOST_COPIES:
            return times.astype(np.intp)
    any_weights = [name for name, made in _label_methods() if made.any_weights]
    raise InputError(
        f"{method} counts a base clustering of weight 3 three times, so its weights must be in the ratio "
        f"of whole numbers up to {_MOST_COPIES}.",
        hint=f"use such weights; any weights are taken by {', '.join(any_weights)}.",
    )


def _label_methods() -> list[tuple[str, Any]]:
    return [(made.__name__, made) for made in methods("consilience.consensus")]


def taking_weights() -> list[str]:
    """Names of the methods that take weights of base clusterings."""
    return [name for name, made in _label_methods() if not made.weighs_bases]


def _warn_unlinked(partitions: Partitions) -> None:
    groups = partitions.base_groups
    if len(groups) > 1:
        names = " | ".join(", ".join(map(repr, group[:5])) + ", ..." * (len(group) > 5) for group in groups)
        warn(
            f"the base clusterings fall into {len(groups)} groups that share no instance: {names}. Their "
            "clusters are matched without evidence.",
            hint=(
                "add a base clustering that saw instances of several groups, or merge each group on its own."
            ),
        )
