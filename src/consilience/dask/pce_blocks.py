"""The iteration of PCE on blocks of rows: two passes an iteration, each with one small sum over blocks.

Every function here that takes a state is the work of one block; every function that takes an engine is the
work of the driver, which never sees a row. The steps on rows and the steps on small tables are those of
:mod:`consilience.consensus.pce`: there is one algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np

from consilience._support.errors import Hint, InputError, Phrase
from consilience.consensus.pce import (
    GROWTH,
    N_GROWTHS,
    age_of,
    align_bases,
    impute,
    is_certified,
    quadratic,
    residuals,
    set_target,
    settled,
    start_scale,
    update_reliability,
    update_rotations,
    update_weights,
)
from consilience.core.canonical import Numbering
from consilience.core.discretize import (
    MAX_SWEEPS,
    SAMPLE_ROWS,
    assign,
    best_start,
    fill_empty_clusters,
    label_sums,
    spectral_rotation,
)
from consilience.core.spectral import singular_map
from consilience.core.stiefel import polar_factor
from consilience.core.tables import cluster_sizes, contingency, cross, gather, scatter
from consilience.dask.aggregate import Terms, block_rows
from consilience.dask.engine import Engine, add, stack
from consilience.dask.moments import STEPS, land, leap, moments
from consilience.dask.moments import Terms as Polynomial
from consilience.dask.places import locate, rows_of
from consilience.inference.counts import JointRows
from consilience.inference.posterior import Evidence, learn

# Limit of steps of an embedding update, as in `consensus.pce`.
_MAX_STEPS = 100


class State(NamedTuple):
    """What a block carries from pass to pass; one entry per distinct label row of the block."""

    codes: np.ndarray  # -1 = missing
    filled: np.ndarray  # the same with missing entries filled in; -1 before the first iteration
    w: np.ndarray  # instances that have the row
    y: np.ndarray  # cluster
    v: np.ndarray  # reliability
    h: np.ndarray  # embedding


class Settings(NamedTuple):
    """What the user asked for; the paper's letters as in `pce`."""

    n_clusters: int
    init: str
    gamma: float
    n_init: int
    self_paced: bool
    diversity: bool
    joint: bool
    max_iter: int
    tol: float
    max_distinct: int

    @property
    def pull(self) -> float:
        """gamma, or zero where labels come after the iteration."""
        return self.gamma if self.joint else 0.0


class Model(NamedTuple):
    """All that the driver knows after an iteration: with the states of the blocks, enough to go on."""

    table: np.ndarray  # the stacked R^(i)
    alpha: np.ndarray
    rotation: np.ndarray
    lam: float
    growths_left: int
    objective: np.ndarray  # of the iterations so far; the last lacks the term of Y until the next pass
    certified: bool
    n_iter: int


class Job(NamedTuple):
    """What is to be solved, by what, and how."""

    engine: Engine
    offsets: np.ndarray
    n: float  # instances that somebody saw
    settings: Settings
    rng: np.random.RandomState


class Solution(NamedTuple):
    """The end of the iteration."""

    model: Model
    states: list[Any]
    converged: bool


def of_rows(work: Callable[..., Any]) -> Callable[..., Any]:
    """The work of a block on its rows: None without any, which adds nothing."""

    @wraps(work)
    def of_block(state: State, *given: Any) -> Any:
        return work(state, *given) if len(state.w) else None

    return of_block


# --- the start ----------------------------------------------------------------------------------------------


def open_block(
    piece: Any, number: int, terms: Terms, offsets: np.ndarray, normalized: bool
) -> tuple[State, tuple[np.ndarray, np.ndarray] | None]:
    """The state of a block before anything is known; weighted counts of cluster pairs and cluster sizes."""
    rows = block_rows(piece, number, terms)
    seen = (rows.codes >= 0).any(axis=1)
    codes, w = np.ascontiguousarray(rows.codes[seen]), rows.counts[seen].astype(float)
    n = len(codes)
    weights = w / (codes >= 0).sum(axis=1) if normalized else w
    state = State(codes, codes, w, np.zeros(n, np.int32), np.ones(n), np.empty((n, 0)))
    return state, (contingency(codes, offsets, weights), cluster_sizes(codes, offsets, w)) if n else None


def embed(
    state: State, number: int, offsets: np.ndarray, table: np.ndarray, normalized: bool
) -> tuple[State, tuple[np.ndarray, np.ndarray] | None]:
    """The start of H; B^T W B and B^T W H."""
    h = gather(state.codes, offsets, table)
    if normalized:
        h /= np.sqrt((state.codes >= 0).sum(axis=1))[:, None]
    given = (state.codes, offsets, state.w)
    return state._replace(h=h), (contingency(*given), scatter(*given, h)) if len(h) else None


def start(job: Job, parts: Any, terms: Terms) -> tuple[Model, list[Any]]:
    """The first embedding, rotation, base rotations and age."""
    engine, offsets, n, settings, _ = job
    c, normalized = settings.n_clusters, settings.init == "normalized"
    states, (gram, sizes) = engine.update(
        "counting", open_block, add, parts, terms, offsets, normalized, version=0
    )
    scale = start_scale(sizes, n, c) if normalized else np.ones(len(sizes))
    table = singular_map(gram, c, scale)
    if table.shape[1] < c:
        raise InputError(
            Phrase(
                "the base clusterings span {n} directions, too few for {n_clusters=} on the block path.",
                n=table.shape[1],
                n_clusters=c,
            ),
            hint=Hint(
                "lower {n_clusters}, or raise max_distinct so that the distinct rows are solved in memory.",
                command="lower {n_clusters}.",
            ),
        )
    states, (moments_, sums) = engine.update(
        "embedding", embed, add, states, offsets, table, normalized, version=1
    )
    rotation = rotate_blocks(job, states)
    m = len(offsets) - 1
    alpha = np.full(m, 1.0 / m)
    table = align_bases(moments_, sums, offsets, alpha, settings.diversity)
    model = Model(table, alpha, rotation, 0.0, 0, np.empty(0), True, 0)
    if settings.self_paced:
        task = Task(offsets, settings, model)
        place = np.array([max(int(n) // 10, 1) - 0.5])
        lam = 2.0 * float(locate(engine, "age", states, _loss, task, place).values[0])
        model = model._replace(lam=age_of(lam), growths_left=N_GROWTHS)
    return model, states


def _loss(state: State, task: Task) -> tuple[np.ndarray, np.ndarray]:
    return task.residuals(state)[1], state.w


# --- the rotation -------------------------------------------------------------------------------------------


def _norms(state: State, given: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.sqrt(np.einsum("pd,pd->p", state.h, state.h)), state.w


def rotate_blocks(job: Job, states: list[Any]) -> np.ndarray:
    """`spectral_rotation` of an embedding in blocks: starts on a sample of rows, then all rows.

    The rows are those that the function in memory draws: by their places in the order of norms. All of them,
    where there are few; there are more than `max_distinct`.
    """
    engine, _, n, settings, rng = job
    n_init, n_sampled = settings.n_init, max(SAMPLE_ROWS, 50 * settings.n_clusters)
    if settings.max_distinct < n_sampled:
        few = engine.reduce("rotation", _few_rows, partial(_merge_few, most=n_sampled), states, n_sampled)
        if few is not None:
            return spectral_rotation(few[2], few[1], n_init=n_init, rng=rng).rotation
    places = np.append(rng.random_sample(n_init) * n, (np.arange(n_sampled) + 0.5) / n_sampled * n)
    found = locate(engine, "rotation", states, _norms, None, places)
    h = rows_of(engine, "rotation", states, _norms, None, found.values)
    unit = h / np.maximum(found.values, 1e-12 * found.highest)[:, None]
    rotation = best_start(unit[n_init:], np.ones(n_sampled), unit[:n_init]).rotation
    before = None
    for sweeps in range(MAX_SWEEPS + 1):
        sums, moved = engine.reduce("rotation", sweep, add, states, before, rotation, found.highest)
        if sweeps == MAX_SWEEPS or (before is not None and not moved):
            break
        before, rotation = rotation, polar_factor(sums.T)
    return rotation


@of_rows
def sweep(
    state: State, number: int, before: np.ndarray | None, rotation: np.ndarray, highest: float
) -> tuple[np.ndarray, float]:
    """Y^T W H of the unit rows under a rotation, and the weight of rows that it moved."""
    unit = state.h / np.maximum(_norms(state, None)[0], 1e-12 * highest)[:, None]
    old = np.full(len(unit), -1, dtype=np.int32)
    if before is not None:
        old = assign(unit, before, state.w, old)[0]
    y, moved, _ = assign(unit, rotation, state.w, old)
    return label_sums(unit, state.w, y, len(rotation)), moved


def _few_rows(state: State, number: int, most: int) -> Any:
    """Codes, weights and embedding of a block of at most `most` rows; None of a larger one."""
    return None if len(state.w) > most else (state.codes, state.w, state.h)


def _merge_few(parts: Sequence[Any], most: int) -> Any:
    if any(part is None for part in parts):
        return None
    codes, w, h = stack(parts)
    codes, first, inverse = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return None if len(codes) > most else (codes, np.bincount(inverse.ravel(), w), h[first])


# --- one iteration ------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """What the blocks are told for a pass."""

    offsets: np.ndarray
    settings: Settings
    model: Model
    ages: tuple[float, ...] = ()  # what lambda may become, once it is known how many rows moved
    leaps: tuple[Polynomial, ...] = ()  # steps of H so far

    def residuals(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Where the base clusterings place every row, and how far that is from H."""
        model = self.model
        return residuals(
            state.filled, self.offsets, model.table, model.alpha, state.h, self.settings.diversity
        )


class Survey(NamedTuple):
    """What round A tells the driver."""

    moved: float
    fit: float
    moments: np.ndarray  # per age
    largest_shift: np.ndarray  # per age


@of_rows
def survey(state: State, number: int, task: Task) -> Survey:
    """Round A: labels under the new rotation, then S, v and C, and the moments that the steps of H need."""
    y, moved, fit = _labels(state, task)
    c = task.settings.n_clusters
    found, largest = np.zeros((len(task.ages), 2 * STEPS + 1, 2 * c, 2 * c)), np.zeros(len(task.ages))
    for a, lam in enumerate(task.ages):
        h, linear, shift, _ = _linear(state, task, y, lam)
        found[a], largest[a] = moments(h, linear, shift, state.w), shift.max()
    return Survey(moved, fit, found, largest)


def merge_surveys(parts: Sequence[Survey | None]) -> Survey | None:
    """Several blocks as one."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    moved, fit, found = add([part[:3] for part in known])
    return Survey(moved, fit, found, np.max([part.largest_shift for part in known], axis=0))


def _labels(state: State, task: Task) -> tuple[np.ndarray, float, float]:
    if not task.settings.joint:
        return state.y, 0.0, 0.0
    return assign(state.h, task.model.rotation, state.w, state.y)


def _linear(
    state: State, task: Task, y: np.ndarray, lam: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """H after the steps so far, C, the shift 1 - v^2, and v."""
    settings = task.settings
    s, loss = task.residuals(state)
    v = update_reliability(loss, lam) if settings.self_paced else np.ones(len(loss))
    shift = set_target(s, v, y, task.model.rotation, settings.pull)
    h = state.h
    for terms in task.leaps:
        h = land(terms, h, s, shift)
    return h, s, shift, v


def advance(state: State, number: int, task: Task) -> tuple[State, Any]:
    """Round B: H, the imputed labels, and the tables that weights and rotations follow from."""
    offsets, settings, model = task[:3]
    y = _labels(state, task)[0]
    h, _, _, v = _linear(state, task, y, model.lam)
    filled, w = state.filled.copy(), state.w
    found = impute(filled, state.codes < 0, offsets, model.table, model.alpha, h, v, w, settings.diversity)
    new = State(state.codes, filled, w, y, v, h)
    return new, (*found, float(w @ v), label_sums(h, w, y, settings.n_clusters)) if len(w) else None


def solve(job: Job, states: list[Any], model: Model, save: Callable[[Model, list[Any]], None]) -> Solution:
    """Iterate from a model and its states until nothing changes, as `pce` does.

    Round A of an iteration ends the one before: it is there that labels move under the rotation which that
    one found. `save` is called after every round B.
    """
    engine, offsets, n, settings, _ = job
    while True:
        last, growths = model.n_iter == settings.max_iter, _growths(model)
        ages = () if last else tuple(model.lam * GROWTH**growth for growth in growths)
        task = Task(offsets, settings, model, ages)
        found = engine.reduce("round A", survey, merge_surveys, states, task)
        if model.n_iter:
            objective = model.objective.copy()
            objective[-1] += settings.pull * (n + settings.n_clusters - 2.0 * found.fit)
            model = model._replace(objective=objective)
            still = found.moved <= 0.1 * settings.tol * n
            converged = model.growths_left == 0 and still and settled(objective.tolist(), settings.tol)
            if converged or last:
                return Solution(model, states, converged)
        # The choice of `pce`: all the growth that is left once the labels are at rest.
        at = 0 if settings.joint and found.moved < 0.1 * settings.tol * n else -1
        model = model._replace(lam=ages[at], growths_left=model.growths_left - growths[at])
        task = task._replace(model=model, ages=(model.lam,))
        leaps, certified = _embedding_steps(engine, states, task, found, at)
        states, model = _round_b(engine, states, task._replace(leaps=leaps), certified)
        save(model, states)


def _growths(model: Model) -> tuple[int, ...]:
    """How often lambda may grow next: as often as is left, or once; not at all before the first iteration."""
    left = model.growths_left if model.n_iter else 0
    return (left, 1) if left > 1 else (left,)


def _embedding_steps(
    engine: Engine, states: list[Any], task: Task, found: Survey, at: int
) -> tuple[tuple[Polynomial, ...], bool]:
    """Eq. (7) on the moments; another round where one has too few of them."""
    tol = max(0.01 * task.settings.tol, 1e-7)
    leaps: tuple[Polynomial, ...] = ()
    while True:
        step = leap(found.moments[at], float(found.largest_shift[at]), tol)
        leaps = (*leaps, step.terms)
        if step.done or len(leaps) * STEPS >= _MAX_STEPS:
            return leaps, is_certified(step.slack)
        at = 0
        found = engine.reduce("round A", survey, merge_surveys, states, task._replace(leaps=leaps))


def _round_b(engine: Engine, states: list[Any], task: Task, certified: bool) -> tuple[list[Any], Model]:
    offsets, settings, model = task[:3]
    states, (cooccur, sums, energy, paced, of_labels) = engine.update(
        "round B", advance, add, states, task, version=model.n_iter
    )
    alpha = update_weights(cooccur, sums, offsets, model.table, settings.diversity)
    table = update_rotations(cooccur, sums, offsets, model.table, alpha, settings.diversity)
    objective = energy + quadratic(cooccur, sums, offsets, table, alpha, settings.diversity)
    return states, model._replace(
        table=table,
        alpha=alpha,
        rotation=polar_factor(of_labels.T) if settings.joint else model.rotation,
        objective=np.append(model.objective, objective - model.lam * paced),
        certified=model.certified and certified,
        n_iter=model.n_iter + 1,
    )


# --- the end ------------------------------------------------------------------------------------------------


class Closing(NamedTuple):
    """How the state of a block becomes labels."""

    rotation: np.ndarray
    moved: np.ndarray  # label rows that went to a cluster which had none
    moved_to: np.ndarray
    number: np.ndarray  # new numbers of the clusters: 0 is the largest


def final_labels(state: State, closing: Closing) -> np.ndarray:
    """The cluster of every row of a block."""
    y = assign(state.h, closing.rotation, state.w, state.y)[0]
    for row, label in zip(closing.moved, closing.moved_to, strict=True):
        y[(state.codes == row).all(axis=1)] = label
    return closing.number[y]


def close(
    engine: Engine, states: list[Any], rotation: np.ndarray, offsets: np.ndarray
) -> tuple[Closing, Evidence]:
    """Labels of every cluster, numbered by size, and the counts that confidence and predictions rest on."""
    c, m = len(rotation), len(offsets) - 1
    closing = Closing(rotation, np.empty((0, m), dtype=np.int64), np.empty(0, dtype=np.int64), np.arange(c))
    sizes, together = engine.reduce("closing", census, add, states, offsets, closing)
    empty = int((sizes == 0).sum())
    if empty:
        codes, labels, fit = engine.reduce(
            "closing", worst_rows, partial(_merge_worst, n_each=empty + 1), states, closing, empty + 1
        )
        filled = fill_empty_clusters(labels, fit, c)
        changed = filled != labels
        closing = closing._replace(moved=codes[changed], moved_to=filled[changed])
        sizes, together = engine.reduce("closing", census, add, states, offsets, closing)
    place = np.arange(c)
    if len(np.unique(sizes)) < c:  # of clusters of one size, the one comes first whose first row does
        _, labels = engine.reduce("closing", first_rows, _merge_first, states, closing)
        place[labels] = np.arange(len(labels))
    order = np.lexsort((place, -sizes))
    closing = closing._replace(number=np.argsort(order))

    def sums(function: Any, *given: Any) -> Any:
        return engine.reduce("closing", labelled, add, states, closing, function, *given)

    return closing, learn(sizes[order], together[:, order], Numbering.as_given(offsets), sums)


@of_rows
def census(state: State, number: int, offsets: np.ndarray, closing: Closing) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of the clusters, and how many members of every base cluster are in each."""
    c, y = len(closing.number), final_labels(state, closing)
    return np.bincount(y, state.w, c), cross(state.codes, offsets, y, state.w, c)


@of_rows
def labelled(state: State, number: int, closing: Closing, function: Callable[..., Any], *given: Any) -> Any:
    """What a function of rows with their final labels returns."""
    y = final_labels(state, closing)
    rows = JointRows(state.codes, state.w, y, np.arange(len(y)), len(closing.number))
    return function(rows, *given)


def worst_rows(state: State, number: int, closing: Closing, n_each: int) -> Any:
    """The rows of every cluster that fit it worst: enough of them to fill the empty clusters from."""
    y = final_labels(state, closing)
    fit = (state.h @ closing.rotation)[np.arange(len(y)), y]
    return _worst(state.codes, y, fit, n_each)


def first_rows(state: State, number: int, closing: Closing) -> Any:
    """The first row of every cluster, and the cluster; in the order of the rows."""
    return _merge_first([(state.codes, final_labels(state, closing))])


def _merge_first(parts: Sequence[Any]) -> Any:
    codes, labels = stack(parts)
    order = np.lexsort(codes.T[::-1])
    _, first = np.unique(labels[order], return_index=True)
    order = order[np.sort(first)]
    return codes[order], labels[order]


def _merge_worst(parts: Sequence[Any], n_each: int) -> Any:
    codes, labels, fit = stack(parts)
    _, first = np.unique(codes, axis=0, return_index=True)
    return _worst(codes[first], labels[first], fit[first], n_each)


def _worst(codes: np.ndarray, labels: np.ndarray, fit: np.ndarray, n_each: int) -> Any:
    order = np.lexsort((fit, labels))
    labels = labels[order]
    rank = np.arange(len(labels)) - np.searchsorted(labels, labels)
    kept = order[rank < n_each]
    return codes[kept], np.sort(labels[rank < n_each]), fit[kept]
