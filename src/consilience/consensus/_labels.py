"""What every label method does at its door: read the table, keep scikit-learn's books, number clusters."""

from __future__ import annotations

import sys
import warnings
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from consilience._sklearn import Interval, StrOptions
from consilience.diagnostics import (
    base_groups,
    choose_n_clusters,
    confidence,
    gather_evidence,
    predict_confidence,
    predict_labels,
)
from consilience.partitions import Partitions

# What `n_clusters` of a label method may be.
N_CLUSTERS = [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})]


class LabelsMixin(ClusterMixin):
    """For estimators whose ``X`` is a table of labels: instances in rows, base clusterings in columns."""

    n_clusters: int | Literal["auto"]
    unobserved: str
    n_features_in_: int

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    def _read_labels(self, X: Any, unobserved: str) -> Partitions:
        if X is None:
            raise ValueError(
                f"{type(self).__name__} needs a table of labels, got None. Hint: fit(labels), one row per "
                "instance and one column per base clustering."
            )
        partitions = Partitions.of(X, unobserved="error" if unobserved == "error" else "keep").compact()
        if hasattr(X, "shape"):
            validate_data(self, X, skip_check_array=True, reset=True)
        self.n_features_in_ = partitions.n_columns
        _warn_unlinked(partitions)
        n_seen = int(partitions.seen.sum())
        if self.n_clusters != "auto" and self.n_clusters > n_seen:
            rows = partitions.distinct  # in a table of distinct rows, each stands for several instances
            n_seen = int(rows.counts[(rows.codes >= 0).any(axis=1)].sum())
        if self.n_clusters != "auto" and self.n_clusters > n_seen:
            raise ValueError(
                f"n_samples={n_seen} should be >= n_clusters={self.n_clusters}. "
                "Hint: lower n_clusters, or check that instances are rows."
            )
        return partitions

    def _encode_labels(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Codes of new instances, and the rows that no base clustering saw."""
        check_is_fitted(self)
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) == 2 and not hasattr(X, "columns") and shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input. Hint: keep a column for every base clustering and mark what is unknown "
                "as missing, or pass a frame or dict with the columns that there are."
            )
        codes = self.partitions_.encode(X)
        unseen = np.flatnonzero((codes < 0).all(axis=1))
        if len(unseen) and self.unobserved == "error" and self.partitions_.negative == "missing":
            raise ValueError(
                f"no base clustering saw row {unseen[0]} of the new instances ({len(unseen)} in all). "
                "Hint: remove them, or set 'unobserved' to 'noise' or 'largest'."
            )
        return codes, unseen

    def _feasible_clusters(self, known: Partitions, random_state: Any) -> int:
        """The number of clusters that was asked for or found, at most that of distinct rows."""
        n_distinct = len(known.distinct.counts)
        if self.n_clusters == "auto":
            return min(self._count_clusters(known, random_state), n_distinct)
        if self.n_clusters > n_distinct:
            warnings.warn(
                f"only {n_distinct} distinct label rows for n_clusters={self.n_clusters}: {n_distinct} "
                "clusters are returned. Hint: instances with the same labels everywhere cannot be told "
                "apart; lower n_clusters or add base clusterings.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return min(self.n_clusters, n_distinct)

    def _count_clusters(self, known: Partitions, random_state: Any) -> int:
        self.cluster_count_ = count = choose_n_clusters(known, random_state=random_state)
        if not count.reliable:
            why = " ".join(count.warnings) or "no number of clusters stands out."
            warnings.warn(
                f"n_clusters='auto' found {count.n_clusters} clusters, but not reliably: {why} "
                "Hint: look at cluster_count_.curve, or give n_clusters.",
                UserWarning,
                stacklevel=4,
            )
        return count.n_clusters

    def _answer(self, partitions: Partitions, known: Partitions, labels: np.ndarray, n_clusters: int) -> None:
        """Store what every label method reports, given a cluster for each distinct observed row."""
        found = labels[known.distinct.inverse]
        self._evidence = gather_evidence(known, found)
        self.partitions_ = partitions
        self.n_clusters_ = n_clusters
        self.labels_ = self._spread(found, {"largest": 0}.get(self.unobserved, -1))
        self.confidence_ = self._spread(confidence(known, found, evidence=self._evidence), 0.0)

    def _spread(self, values: np.ndarray, otherwise: float) -> np.ndarray:
        """Values of the observed instances, with `otherwise` for those that no base clustering saw."""
        seen = self.partitions_.seen
        if seen.all():
            return values
        out = np.full((len(seen), *values.shape[1:]), otherwise, dtype=values.dtype)
        out[seen] = values
        return out

    def predict(self, X: Any) -> np.ndarray:
        """Clusters of new instances from whatever base labels they have.

        Naive Bayes: each base label speaks for the consensus clusters by the shares in which its members
        ended up there. A row that is all noise gets -1 where noise was read as such.

        Parameters
        ----------
        X : table of labels
            The base labels of the new instances, in the names that were fitted; missing entries allowed.
            Frames and dicts are matched by column name and may leave base clusterings out.
        """
        codes, unseen = self._encode_labels(X)
        labels = predict_labels(self._evidence, codes)
        labels[unseen] = 0 if self.unobserved == "largest" else -1
        return labels

    def predict_confidence(self, X: Any) -> np.ndarray:
        """How sure the cluster is that `predict` gives a new instance; see `confidence_`.

        Parameters
        ----------
        X : table of labels
            As in `predict`.
        """
        codes, unseen = self._encode_labels(X)
        sure = predict_confidence(self._evidence, codes, predict_labels(self._evidence, codes))
        sure[unseen] = 0.0
        return sure

    def _progress(self, iteration: int, objective: float) -> None:
        print(f"{type(self).__name__} iteration {iteration}: objective {objective:.6g}", file=sys.stderr)


def _warn_unlinked(partitions: Partitions) -> None:
    groups = base_groups(partitions)
    if len(groups) > 1:
        names = " | ".join(", ".join(map(repr, group[:5])) + ", ..." * (len(group) > 5) for group in groups)
        warnings.warn(
            f"the base clusterings fall into {len(groups)} groups that share no instance: {names}. Their "
            "clusters are matched without evidence. Hint: add a base clustering that saw instances of "
            "several groups, or merge each group on its own.",
            UserWarning,
            stacklevel=4,
        )


def by_size(labels: np.ndarray, counts: np.ndarray, n_clusters: int) -> np.ndarray:
    """Old numbers of the clusters in the order of their new ones: 0 is the largest cluster."""
    return np.argsort(-np.bincount(labels, weights=counts, minlength=n_clusters), kind="stable")


def per_column(partitions: Partitions, values: np.ndarray) -> np.ndarray:
    """Values of the base clusterings, with zero for the columns of the table that have no label."""
    out = np.zeros(partitions.n_columns)
    out[list(partitions.columns)] = values
    return out


def check_rows(n_rows: int, most: int, method: str) -> None:
    """Refuse tables whose pairs of distinct label rows a method cannot hold."""
    if n_rows > most:
        raise ValueError(
            f"the table has {n_rows} distinct label rows, {method} compares all pairs of them and takes at "
            f"most {most}. Hint: use LWGP or DAL, whose cost is linear in them, or fewer or coarser base "
            "clusterings."
        )
