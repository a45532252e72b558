"""Merge partial labels: the method that agrees best with them, or the one that was asked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from consilience import consensus
from consilience._support.errors import Hint, InputError, Phrase
from consilience._support.sklearn import Interval, seed_from
from consilience._support.talk import Progress, tell, watched
from consilience._support.values import counted
from consilience._support.warnings import warn
from consilience.consensus import LabelMethod
from consilience.consensus.base import taking_weights
from consilience.core.grouping import group, largest_first
from consilience.diagnostics import ClusterCount, choose_n_clusters, require_linked
from consilience.evidence.partitions import Partitions
from consilience.inference.sharing import sharing
from consilience.metrics import ensemble_agreement
from consilience.multiview.pse import PSE
from consilience.registry import resolve
from consilience.results import selection, together
from consilience.results._names import base_named
from consilience.results.fusion import Candidate, Fusion, GivenViews
from consilience.results.linking import keep_apart, linked_groups, read_links, require_consistent
from consilience.results.preparing import merge_rows, read_weights
from consilience.results.same_names import fuse_same_names


class Choice(NamedTuple):
    """A fitted model, and why it was chosen."""

    model: Any
    method: str
    reason: str
    candidates: tuple[Candidate, ...] = ()


def fuse(
    labels: Any,
    n_clusters: int | Literal["auto"] | tuple[int, int],
    *,
    views: Any = None,
    mask: Any = None,
    method: Any = "auto",
    negative: Literal["missing", "noise"] | None = None,
    index: Any = None,
    unobserved: Literal["error", "noise", "largest"] = "error",
    like: Any = None,
    weights: Any = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    must_link: Any = None,
    cannot_link: Any = None,
    named_after: str | None = None,
    same_names: bool = False,
    random_state: Any = None,
    verbose: int = 0,
    progress: Progress | bool | None = None,
) -> Fusion:
    """Merge base clusterings that each saw only some of the instances into one clustering of all of them.

    Parameters
    ----------
    labels : array, nested list, frame, dict or list of series, or Partitions
        The table of base labels, a row per instance and a column per base clustering; see
        :meth:`consilience.Partitions.of`.
    n_clusters : int, "auto" or (int, int)
        The number of clusters, or "auto" to find it; see
        :func:`consilience.diagnostics.choose_n_clusters`. It warns where the answer cannot be relied on.
    views : list or dict of arrays, sparse matrices or frames, optional
        Tables of features, as :func:`fuse_views` takes them, that are merged together with the labels. Both
        are joined by id, or by position where one side has none; an instance may be in either alone.
    mask : array-like of bool of shape (n_instances, n_views), optional
        True where an instance is present in a view. (5, 8)
        takes the best from 5 to 8: the number that "auto" finds if it is among them, else that of the
        highest modularity.
    method : str or estimator, default="auto"
        "auto" tries the methods that suit the table, see below; or the name of a label method in
        :mod:`consilience.consensus`; or an estimator, which is cloned and gets `n_clusters` and
        `random_state` where it has them. With `views`, "auto" or a :class:`PSE`, whose `kind` says how they
        are read.
    negative : {"missing", "noise"}, default="missing"
        What a negative number means: never seen, or seen and in no cluster (the -1 of HDBSCAN).
    index : str or sequence, optional
        Ids of the instances: a column of the frame (and of `views`, where they have it), or the ids
        themselves.
    unobserved : {"error", "noise", "largest"}, default="error"
        What to do with instances that no base clustering saw, nor a view: refuse, label them -1, or put them
        in the largest cluster.
    like : Fusion, dict or series of labels by id, or frame of id and label, optional
        An earlier result whose numbers the clusters shall keep; see :meth:`Fusion.like`.
    weights : dict of base clustering to number, or one number for each, optional
        How much each base clustering counts: one of weight 3 counts like three that say the same, one of
        weight 0 is left out. Not for methods that learn weights themselves; some take only weights in the
        ratio of small whole numbers. Confidence, diagnostics and an `n_clusters` that is to be found count
        all base clusterings once, but for those of weight 0, which have no say in `n_clusters`. With `views`,
        a dict of names of both kinds: a source that is named counts as given, others as far as they have to
        do with the rest.
    groups : dict of group to names of base clusterings, optional
        Base clusterings that are near copies of each other, such as one program at several resolutions, as in
        ``{"leiden": ["r0.5", "r1", "r2"]}``. A group counts like one base clustering: each of g members by
        1/g of its weight in merging, and in confidence and `n_clusters` as one opinion. Not for methods that
        learn weights themselves.
    must_link : pairs or groups of ids, table, or path of a CSV file, optional
        Instances that belong in the same cluster, by id, or by position where there are no ids. A table or
        file has a pair or group a row, or a column "group" beside that of the ids. Rows of such instances
        are merged beforehand: each base clustering says of all what it says of most.
    cannot_link : pairs or groups of ids, table, or path of a CSV file, optional
        Instances no two of which may be in one cluster, given in the same way. After merging, those concerned
        are placed one after another, each in the likeliest cluster that is left to it.
    named_after : str, optional
        The base clustering whose labels name the clusters; see :meth:`Fusion.named_after`.
    same_names : bool, default=False
        Whether all base clusterings use one set of names, as annotators do: a name is then a cluster, and
        `n_clusters` their number, or "auto". What each source confuses with what is learned, and they need
        not share any instance. Never guessed; a source whose names mean something else is refused. See the
        page on annotators.
    random_state : int, RandomState or None, default=None
        One seed, one answer.
    verbose : int, default=0
        Whether to say which methods were tried: a line on stderr each, or a record of the logger
        "consilience" where logging is set up.
    progress : bool or callable, optional
        True shows a bar in a notebook or a terminal; a function is called as ``progress(step, done, total)``
        after every step, with what was done in words.

    Returns
    -------
    fusion : Fusion
        Labels, confidence, diagnostics, and the fitted model.

    Notes
    -----
    "auto" looks at how far the base clusterings follow from each other, and at their numbers of clusters:

    - Sources of their own (people, views, columns; one in eight follows from the others by at most .55):
      :class:`HBGF`, improved by the mixture, or :class:`MixtureConsensus`, whichever makes the labels most
      likely; or, where more than 1.25 times as many clusters are wanted than they have on average,
      :class:`LWEA`, improved by the mixture.
    - Runs of one program with about `n_clusters` clusters: of :class:`DAL`, :class:`LWGP`, :class:`PCE`,
      :class:`MixtureConsensus` and, on small tables, :class:`LWEA` and :class:`SPCE`, each also improved by
      the mixture, the answer with the highest mean normalised mutual information with the base labels.
    - Runs of one program with other numbers: DAL, unless LWEA agrees better by 20 %.

    No true classes are ever used. What the rule was measured on: the page on `fuse` in the documentation.

    Base clusterings that fall into groups which share no instance are refused: nothing could match their
    clusters.

    With `views`, every source first shows what it has in common with the others, on the instances that both
    saw: ``fusion.sources`` says what each counted, ``fusion.decided_by`` which side speaks for the cluster of
    an instance. The labels should be opinions about the clusters that are wanted, not other attributes of the
    instances. See the page on labels and tables together.

    Examples
    --------
    >>> from consilience import fuse
    >>> bank_a = {"ann": "gold", "bob": "basic", "cleo": "gold", "dan": "basic"}
    >>> bank_b = {"ann": "spender", "bob": "saver", "eve": "saver"}
    >>> bank_c = {"cleo": "high", "dan": "low", "eve": "low", "fay": "high"}
    >>> fusion = fuse({"a": bank_a, "b": bank_b, "c": bank_c}, 2, random_state=0)
    >>> [str(name) for name in fusion.index[fusion.labels == fusion.labels[0]]]
    ['ann', 'cleo', 'fay']
    >>> fusion.imputed[0].tolist()
    ['gold', 'spender', 'high']

    Labels of some, features of others:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat([0, 1, 2], 40)
    >>> expert = np.where(rng.random(120) < 0.7, kind, rng.integers(0, 3, 120))
    >>> expert[:30] = -1  # never looked at
    >>> lengths = rng.normal(4 * rng.normal(size=(3, 4))[kind])
    >>> lengths[100:] = np.nan  # not measured
    >>> fusion = fuse({"expert": expert}, 3, views={"lengths": lengths}, random_state=0)
    >>> bool(np.mean(fusion.labels[30:100] == fusion.predict(None, views={"lengths": lengths[30:100]})) > 0.9)
    True
    """
    check_n_clusters(n_clusters, "fuse", ranges=views is None)
    _check_unobserved(unobserved)
    if views is not None:
        if cannot_link is not None:
            raise InputError(
                "cannot_link parts instances by their labels, and there are views.",
                hint="leave out cannot_link.",
            )
        if same_names:
            raise InputError(
                Phrase("{same_names} is of labels alone: beside views, these link the sources already."),
                hint=Hint("leave out {same_names}; it would add little."),
            )
        if must_link is not None:
            raise InputError(
                "must_link merges rows of labels, and there are views, whose rows it cannot merge.",
                hint="leave out must_link, or merge the rows of these instances in both beforehand.",
            )
        if groups is not None or (isinstance(labels, Partitions) and labels.groups is not None):
            raise InputError(
                Phrase("{groups} are of base clusterings that are merged alone, and there are views."),
                hint=Hint(
                    "merge the labels of a group beforehand, or give each of them a part of {weights}."
                ),
            )
        table = Partitions.of(labels, negative=negative, index=index, unobserved="keep")
        if named_after is not None:
            base_named(table, named_after)
        fusion = fuse_together(
            table, views, mask, n_clusters, method, index, unobserved, weights, random_state
        )
        fusion = fusion if like is None else fusion.like(like)
        return fusion if named_after is None else fusion.named_after(named_after)
    if same_names:
        given_too = {"weights": weights, "groups": groups, "must_link": must_link, "cannot_link": cannot_link}
        given_too["method"] = None if isinstance(method, str) and method.lower() == "auto" else method
        other = next((name for name, value in given_too.items() if value is not None), None)
        if other is not None:
            raise InputError(
                f"same_names learns how far to trust each source, and knows no {other}.",
                hint=f"leave out same_names or {other}.",
            )
        keep: Literal["error", "keep"] = "error" if unobserved == "error" else "keep"
        table = Partitions.of(labels, negative=negative, index=index, unobserved=keep)
        fusion = fuse_same_names(table, n_clusters, unobserved, seed_from(random_state))
        fusion = fusion if like is None else fusion.like(like)
        return fusion if named_after is None else fusion.named_after(named_after)
    if mask is not None:
        raise InputError("mask says which rows views have, and there are no views.", hint="leave it out.")
    partitions = Partitions.of(
        labels, negative=negative, index=index, unobserved="error" if unobserved == "error" else "keep"
    )
    if groups is not None:
        partitions = partitions.grouped(groups)
    if named_after is not None:
        base_named(partitions, named_after)  # an unknown one is an error before anything is fitted
    seed = seed_from(random_state)
    given = partitions.base_weights if weights is None else read_weights(weights, partitions.names)
    table, row_of = partitions, None
    if given is not None:
        partitions, table = partitions.weighted(None), partitions.weighted(given)
        if unobserved == "error":
            Partitions.of(table)  # an instance that only base clusterings of weight 0 saw is an error
    linked = [] if must_link is None else read_links(must_link, partitions, "must_link")
    apart = [] if cannot_link is None else read_links(cannot_link, partitions, "cannot_link")
    if apart:
        require_consistent(partitions, linked, apart)
    if must_link is not None:
        row_of = linked_groups(partitions.n_rows, linked)
        table = merge_rows(table, row_of)
    with watched(progress) as told:
        fusion = fuse_partitions(table, n_clusters, method, unobserved, seed, verbose, None, told)
    if isinstance(fusion.model, LabelMethod) and not (row_of is None and table.seen.all()):
        fitted = np.where(table.seen, np.cumsum(table.seen) - 1, -1)  # the model saw no others
        fusion.model._spread(partitions.weighted(given), fitted if row_of is None else fitted[row_of])
    if table is not partitions:
        labels = fusion.labels if row_of is None else fusion.labels[row_of]
        given_weights = None if given is None else tuple(given.tolist())
        fusion = replace(
            fusion, labels=labels, partitions=partitions, given_weights=given_weights, linked=row_of
        )
    if apart:
        fusion = _parted(fusion, apart)
    fusion = fusion if like is None else fusion.like(like)
    return fusion if named_after is None else fusion.named_after(named_after)


def _parted(fusion: Fusion, apart: list[tuple[int, ...]]) -> Fusion:
    """The result with instances apart that may not be together."""
    group = np.arange(len(fusion.labels)) if fusion.linked is None else fusion.linked
    labels = keep_apart(fusion.partitions, fusion.labels, fusion.chances, group, apart)
    moved = int(fusion.partitions.counts[labels != fusion.labels].sum())
    told = f"{fusion.reason} {counted(moved, 'instance')} moved because of cannot-links." if moved else ""
    return replace(fusion, labels=labels, reason=told or fusion.reason, apart=tuple(apart))


def fuse_together(
    table: Partitions,
    views: Any,
    mask: Any,
    n_clusters: Any,
    method: Any,
    index: Any,
    unobserved: str,
    weights: Any,
    random_state: Any,
) -> Fusion:
    """`fuse` of labels that were read, and views; where one side has no weight, that of the other alone."""
    kind = method.kind if isinstance(method, PSE) else None
    read = together.read_views(views, mask, index, kind)
    given = together.read_source_weights(weights, table.names, read.names)
    joined = together.join(table, read)
    m, seed = table.n_partitions, seed_from(random_state)
    together.check_sources(joined, given)
    lost = together.unknown_instances(joined, given, unobserved)
    if not given[m:].any():  # NaN is a weight that is to be found
        return fuse(
            joined.table,
            n_clusters,
            method=method,
            unobserved=cast(Any, unobserved),
            weights=_named_weights(table.names, given[:m]),
            random_state=seed,
        )
    if not given[:m].any():
        from consilience.results.views import fuse_views  # which needs this module

        seen = joined.views.observed[:, given[m:] != 0].any(axis=1)
        return fuse_views(
            joined.views.part(np.flatnonzero(seen)),
            n_clusters,
            method=method,
            view_weights=_named_weights(read.names, given[m:]),
            random_state=seed,
        )
    model = together.model_for(method, n_clusters, unobserved)
    k = model.n_clusters
    if k > joined.table.n_rows:
        raise InputError(
            Phrase("n_samples={n} should be >= {n_clusters=}.", n=joined.table.n_rows, n_clusters=k),
            hint=Hint("lower {n_clusters}, or check that instances are rows."),
        )

    def by_labels(columns: np.ndarray) -> np.ndarray | None:
        part = joined.table.choose(columns)
        try:
            alone = fuse_partitions(part, k, "auto", "noise", seed, 0, None)
        except InputError:  # nothing links them: views are the only link there is
            return None
        return alone.labels

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(joined.table, joined.views, given, np.random.RandomState(seed), by_labels)
    labels = model.labels_.copy()
    labels[lost] = 0 if unobserved == "largest" else -1
    return Fusion(
        labels,
        joined.table,
        "labels" if model.labels_alone_ else "PSE with labels",
        together.reason_of(model),
        model,
        given_weights=None if weights is None else tuple(np.where(np.isnan(given), 1.0, given).tolist()),
        view_diagnostics=model,
        seed=seed,
        given_views=GivenViews(joined.views, None, None),
    )


def _named_weights(names: Sequence[str], given: np.ndarray) -> dict[str, float] | None:
    """Weights as `fuse` and `fuse_views` take them; None where all are to be found."""
    if np.isnan(given).all():
        return None
    return {name: 1.0 if np.isnan(w) else float(w) for name, w in zip(names, given, strict=True)}


def fuse_partitions(
    partitions: Partitions,
    n_clusters: int | str | tuple[int, int],
    method: Any,
    unobserved: str,
    seed: int,
    verbose: int,
    by: selection.Rule | None,
    progress: Progress | None = None,
) -> Fusion:
    """`fuse` on a table that was read; `by` says how "auto" compares methods, None leaves it to the table.

    A row of the table may stand for many instances: the answer then has one label for each row.
    """
    known = partitions.take_seen()
    counting = known.counting
    require_linked(counting)
    # Base clusterings count once each: heavy ones would vouch for themselves.
    count, why = None, ""
    if n_clusters == "auto":
        count = count_clusters(counting.weighted(None), seed)
        k = count.n_clusters
    elif isinstance(n_clusters, tuple):
        k, count, why = _best_within(counting.weighted(None), *n_clusters, seed)
    else:
        k = int(n_clusters)
    k = feasible_clusters(k, counting)
    if isinstance(method, str) and method.lower() == "auto":
        choice = _choose(known, k, by, unobserved, seed, verbose, progress)
    else:
        model = named_method(method, k, unobserved, seed)
        if known.opinion_weights is not None and not isinstance(model, LabelMethod):
            raise InputError(
                f"{type(model).__name__} does not take weights or groups of base clusterings.",
                hint=f"these do: {', '.join(taking_weights())}, and 'auto'.",
            )
        if not isinstance(model, LabelMethod) and known.n_rows < known.n_instances:
            raise InputError(
                f"{type(model).__name__} does not work on distinct rows with counts.",
                hint="use a method of consilience.consensus, or fuse on a table in memory.",
            )
        given = known if isinstance(model, LabelMethod) else known.codes
        choice = Choice(model.fit(given), type(model).__name__, "It was asked for.")
    labels = np.full(partitions.n_rows, 0 if unobserved == "largest" else -1)
    labels[partitions.seen] = numbered_by_size(choice.model.labels_, known.counts, counting.inverse)
    reason = f"{why} {choice.reason}" if why else choice.reason
    made = (choice.method, reason, choice.model, choice.candidates, count)
    return Fusion(labels, partitions, *made, seed=seed)


def numbered_by_size(
    labels: Any, counts: np.ndarray | None = None, place: np.ndarray | None = None
) -> np.ndarray:
    """The same clusters, numbered from the largest; see `largest_first`."""
    found = group(np.asarray(labels, dtype=np.int64))
    return np.asarray(
        np.argsort(largest_first(found.inverse, len(found.values), counts, place))[found.inverse]
    )


def _choose(
    table: Partitions,
    k: int,
    by: selection.Rule | None,
    unobserved: str,
    seed: int,
    verbose: int,
    progress: Progress | None,
) -> Choice:
    """Fit the candidates and take the one that `selection` decides on.

    They are fitted to a sample of instances if there are many distinct rows, and the best then to all.
    """
    features, tried = features_of(table, k), table
    if features.n_rows > selection.SAMPLE:
        tried = table.counting.sample(selection.SAMPLE, np.random.RandomState(seed))
    if by is None:
        features = features._replace(shared=sharing(tried.counting))
    plan = selection.plan(features, limits_for(table), by)
    models: dict[Candidate, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for candidate, model in candidates(tried, k, plan.methods, unobserved, seed, polish=plan.polish):
            models[candidate] = model
            if verbose:
                tell(f"fuse: {candidate.name}, agreement {candidate.agreement:.3f}")
            if progress is not None:
                progress(f"tried {candidate.name}", len(models), plan.n_steps)
        best, reason, ranked = selection.decide(plan, list(models))
        model = _again(table, k, best, unobserved, seed) if plan.sampled else models[best]
        if progress is not None:
            progress(f"merged by {best.name}", plan.n_steps, plan.n_steps)
    return Choice(model, best.name, reason, ranked)


def features_of(table: Partitions, k: int) -> selection.Features:
    """What the rule of "auto" looks at first; base clusterings of weight 0 have no say."""
    table = table.counting
    ks, n_rows = table.n_clusters_per_partition, table.distinct.n_rows
    return selection.Features(k, ks, n_rows, base_weights=table.opinion_weights)


def limits_for(table: Partitions) -> dict[str, float]:
    """The most base clusters of each candidate; with weights, without those that learn weights themselves."""
    made = {name: getattr(consensus, name) for name in {*selection.CANDIDATES, *selection.LIKELY}}
    weighted = table.opinion_weights is not None
    return {
        name: each.max_base_clusters for name, each in made.items() if not (weighted and each.weighs_bases)
    }


def candidates(
    table: Partitions, k: int, names: Sequence[str], unobserved: str, seed: int, *, polish: bool = True
) -> Iterator[tuple[Candidate, Any]]:
    """Every candidate with its fitted model, each followed by what the mixture makes of it."""
    for name in names:
        model = named_method(name, k, unobserved, seed).fit(table)
        by_mixture = name == "MixtureConsensus"
        yield _candidate(name, model, table, by_mixture, polished=False), model
        if polish and not by_mixture:
            model = _polished(table, model, unobserved)
            yield _candidate(name, model, table, True, polished=True), model


def _candidate(name: str, model: Any, table: Partitions, by_mixture: bool, *, polished: bool) -> Candidate:
    surprise = float(model.objective_[-1]) / table.n_instances if by_mixture else None
    return Candidate(name, ensemble_agreement(model.labels_, table), polished, surprise)


def _again(table: Partitions, k: int, candidate: Candidate, unobserved: str, seed: int) -> Any:
    """The winner of the sample on the whole table."""
    model = named_method(candidate.method, k, unobserved, seed).fit(table)
    return _polished(table, model, unobserved) if candidate.polished else model


def _polished(table: Partitions, model: Any, unobserved: Any) -> Any:
    return consensus.MixtureConsensus(model.n_clusters_, init=model.labels_, unobserved=unobserved).fit(table)


def _best_within(table: Partitions, low: int, high: int, seed: int) -> tuple[int, ClusterCount | None, str]:
    """The best number of a range: what "auto" finds, if it is in there; else that of highest modularity."""
    count = choose_n_clusters(table, max_clusters=max(30, high), random_state=seed)
    if low <= count.n_clusters <= high:
        return count.n_clusters, count, ""
    known = dict(zip(count.curve.k.tolist(), np.nan_to_num(count.curve.modularity).tolist(), strict=True))
    best = max(range(low, high + 1), key=lambda k: (known.get(k, 0.0), -k))
    told = f"Of {low} to {high} clusters, {best} have the highest modularity; without this range"
    return best, None, f"{told} there would be {count.n_clusters}."


def count_clusters(table: Partitions, random_state: Any) -> ClusterCount:
    count = choose_n_clusters(table, random_state=random_state)
    if not count.reliable:
        why = " ".join(found.text for found in count.warnings) or "there may be more than were looked for."
        warn(
            f"{counted(count.n_clusters, 'cluster')} found, but not reliably: {why}",
            hint=Hint(
                "look at cluster_count.curve, or give {n_clusters}.",
                command="look at the page (--report), or give {n_clusters}.",
            ),
        )
    return count


def feasible_clusters(k: int, table: Partitions) -> int:
    """The number of clusters that was asked for, at most that of distinct rows."""
    n_rows, n = table.distinct.n_rows, table.n_instances
    if k > n:
        raise InputError(
            Phrase("n_samples={n} should be >= {n_clusters=}.", n=n, n_clusters=k),
            hint=Hint("lower {n_clusters}, or check that instances are rows."),
        )
    if k > n_rows:
        warn(
            Phrase(
                "only {n} distinct label rows for {n_clusters=}: {n} clusters are returned.",
                n=n_rows,
                n_clusters=k,
            ),
            ConvergenceWarning,
            hint=Hint(
                "instances with the same labels everywhere cannot be told apart; lower {n_clusters} or add "
                "base clusterings."
            ),
        )
    return min(k, n_rows)


def named_method(method: Any, k: int, unobserved: str, seed: int, *, of: str = "fuse") -> Any:
    """An estimator by its name, or a clone of the given one, set up for this table."""
    if isinstance(method, str):
        model = resolve(method, ["labels"], of=of)()
    elif not isinstance(method, type) and hasattr(method, "fit") and hasattr(method, "get_params"):
        model = clone(method)
    else:
        raise InputError(
            f"The 'method' parameter of {of} must be 'auto', an estimator or the name of a method for "
            f"labels. Got {method!r} instead.",
            hint="an instance is written with brackets, as in PCE(8).",
        )
    wanted = {"n_clusters": k, "unobserved": unobserved, "random_state": seed}
    return model.set_params(**{name: value for name, value in wanted.items() if name in model.get_params()})


def check_n_clusters(n_clusters: Any, function: str, *, ranges: bool = False) -> None:
    """Refuse what is neither a number of clusters, nor "auto", nor a range of numbers where it may be one."""
    number = Interval(Integral, 1, None, closed="left")
    if number.is_satisfied_by(n_clusters) or (isinstance(n_clusters, str) and n_clusters == "auto"):
        return
    if ranges and isinstance(n_clusters, tuple):
        if (
            len(n_clusters) == 2
            and all(map(number.is_satisfied_by, n_clusters))
            and n_clusters[0] <= n_clusters[1]
        ):
            return
        raise InputError(
            f"A range for the 'n_clusters' parameter of {function} is two numbers from 1, the smaller first. "
            f"Got {n_clusters!r} instead.",
            hint="as in (5, 8).",
        )
    raise InputError(
        f"The 'n_clusters' parameter of {function} must be an int in the range [1, inf) or 'auto'. Got "
        f"{n_clusters!r} instead.",
        hint="'auto' looks for a number of clusters.",
    )


def _check_unobserved(unobserved: Any) -> None:
    if unobserved not in ("error", "noise", "largest"):
        raise InputError(
            "The 'unobserved' parameter of fuse must be a str among {'error', 'largest', 'noise'}. "
            f"Got {unobserved!r} instead.",
            hint="'noise' gives instances that no base clustering saw the label -1.",
        )
