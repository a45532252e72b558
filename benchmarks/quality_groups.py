"""Near copies among few sources: what it gives to say so, and what is made of them where nobody says so.

    python -m benchmarks.quality_groups             about six minutes on one core
    python -m benchmarks.quality_groups --tables 6  a quick look

Four kinds of tables with near copies: digits with five resolutions and an annotation; planted ones, where two
to six sources repeat one opinion with up to 12 % of changes, some merge or split its clusters, and one to
three others err on their own; and both halves of family C of the record, several resolutions of one
clustering and one or two independent sources (C1 needs its data sets, C2 the view sets). Beside them tables
without copies, of `quality_confidence`: sources that err on their own, one that knows nothing, and pools of
runs of one program, where nothing must be found. A vote takes the last source, which is no copy, for the one
that others are matched to.

"Right" is by the best matching of clusters to classes. Thresholds were chosen on C1 and C2 (draws 0 and 1),
planted tables of even seeds, and other tables of `quality_confidence`; shown are draws from 10, odd seeds,
and columns 50 and up of the pools.
"""

import argparse
import copy
import warnings
from collections import defaultdict

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks import quality_confidence
from benchmarks.quality_confidence import calibration_error, ranking, right
from benchmarks.quality_pce import show
from benchmarks.record import few
from benchmarks.record.design import FEW, FEW_MISSING, Table
from benchmarks.record.tables import seed_of
from consilience import Partitions, fuse
from consilience.datasets import load_digits
from consilience.diagnostics import confidence
from consilience.generate import base_partitions
from consilience.inference.copies import near_copies

FIRST_DRAW = 10
ROWS = 600


def planted(seed):
    """Classes, base labels, and how many of the first columns are near copies."""
    rng = np.random.default_rng((4711, seed))
    k, n = int(rng.integers(3, 11)), int(500 * 4 ** rng.random())
    y = np.unique(rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0))), return_inverse=True)[1]
    k = int(y.max()) + 1

    def noisy(labels, share):
        return np.where(rng.random(n) < share, rng.integers(0, k, n), labels)

    n_copies, n_others = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    one, part = noisy(y, rng.uniform(0.1, 0.6)), rng.integers(0, 2, n)
    columns = [few._seen_through(noisy(one, rng.uniform(0.0, 0.12)), part, k, rng) for _ in range(n_copies)]
    for _ in range(n_others):
        columns.append(few._seen_through(noisy(y, rng.uniform(0.1, 0.6)), rng.integers(0, 2, n), k, rng))
    base = np.column_stack(columns)
    hidden = rng.random(base.shape) < rng.uniform(0, 0.5) * (rng.random() < 0.5)
    hidden[hidden.all(axis=1)] = False
    return y, np.where(hidden, -1, base), n_copies


def resolutions(group, draw):
    """The same of family C."""
    for place, data in enumerate(FEW[group]):
        missing = FEW_MISSING[(place + draw) % len(FEW_MISSING)]
        n_sources = 4 + (place + draw) % 5
        table = Table("few sources", group, data, "own shares", missing, n_sources, 1.0, ROWS, draw)
        rng = np.random.default_rng(seed_of("groups", group, data, draw))
        for _ in range(few.ATTEMPTS):
            n_others = int(copy.deepcopy(rng).integers(1, 3))  # what `_resolutions` will draw first
            y, base = few._resolutions(table, rng)
            seen = (base >= 0).any(axis=1)
            y, base = y[seen], base[seen]
            told = all(len(np.unique(column[column >= 0])) > 1 for column in base.T)
            if told and len(Partitions.of(base).base_groups) == 1:
                yield y, base, n_sources - n_others
                break


def annotated(seed):
    """Digits: noisy pictures clustered by a graph at five resolutions, and an annotation, 15 % guessed."""
    rng, digits = np.random.default_rng(seed), load_digits()
    y = np.unique(digits.y, return_inverse=True)[1]
    X = digits.X + rng.normal(0.0, 1.2 * digits.X.std(), digits.X.shape)
    columns = [
        base_partitions(X, k, 1, method="graph", max_iter=100, random_state=int(rng.integers(2**31)))[:, 0]
        for k in (5, 8, 10, 14, 20)
    ]
    columns.append(np.where(rng.random(len(y)) < 0.15, rng.integers(0, 10, len(y)), y))
    return y, np.column_stack(columns), 5


def vote(base):
    """The cluster of the last source that most vote for, each label for the one it shares most with."""
    last = base[:, -1]
    votes = np.zeros((len(base), last.max() + 1))
    for column in base.T:
        both, seen = (column >= 0) & (last >= 0), np.flatnonzero(column >= 0)
        shared = np.zeros((column.max() + 1, votes.shape[1]))
        np.add.at(shared, (column[both], last[both]), 1)
        votes[seen, shared.argmax(axis=1)[column[seen]]] += 1
    return votes.argmax(axis=1)


def tables(n_tables):
    """The family of a table, classes, base labels, and the number of near copies."""
    for seed in range(5):
        yield "five resolutions and an annotation", *annotated(seed)
    for seed in range(n_tables):
        yield "planted copies", *planted(2 * seed + 1)
    for group in ("C1", "C2"):
        for draw in range(FIRST_DRAW, FIRST_DRAW + max(n_tables // 10, 1)):
            for y, base, n_copies in resolutions(group, draw):
                yield f"resolutions {group}", y, base, n_copies
    for m in (3, 5, 8):
        for seed in range(n_tables // 2):
            yield "on their own, 3 to 8", *quality_confidence.planted(m, seed)[:2], 0
    for seed in range(n_tables // 2):
        yield (
            "and one that knows nothing",
            *quality_confidence.planted(3 + seed % 6, seed, random_source=True)[:2],
            0,
        )
    for (name,), y, base in quality_confidence.pools(1):
        if name == "pools, 0% missing" and len(y) <= 4000:
            yield "pools of ten runs", y, base, 0


def evaluate(n_tables):
    """Scores by family and by what is said of the copies; and how often some were found."""
    scores, found = defaultdict(list), defaultdict(list)
    for family, y, base, n_copies in tables(n_tables):
        known = (base >= 0).any(axis=1)
        y, base = np.unique(y[known], return_inverse=True)[1], base[known]
        k, silent = int(y.max()) + 1, Partitions.of(base)
        if len(silent.base_groups) > 1:
            continue
        apart = silent.grouped({"itself": [silent.names[0]]})  # a group of one: nothing is looked for
        says = {"not said, not looked for": apart, "not said": silent}
        if n_copies > 1:
            says["said"] = silent.grouped({"copies": silent.names[:n_copies]})
        found[family].append(bool(near_copies(silent)))
        labels = fuse(silent, k, random_state=0).labels
        for name, table in says.items():
            answer = fuse(table, k, random_state=0).labels if name == "said" else labels
            ok, sure = right(y, answer), confidence(table, answer)
            scores[family, name].append(
                (
                    ok.mean(),
                    sure.mean(),
                    calibration_error(sure, ok),
                    ranking(sure, ok),
                    np.mean((sure - ok) ** 2),
                    adjusted_rand_score(y, answer),
                    adjusted_rand_score(y, vote(base)),
                )
            )
    return scores, found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=40)
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores, found = evaluate(parser.parse_args().tables)
    rows = []
    for (family, name), values in scores.items():
        means = np.nanmean(np.array(values), axis=0)
        titles = ("right", "mean confidence", "ECE", "AUC", "Brier", "ARI", "ARI of a vote")
        row = {"tables": family, "n": len(values), "that they are copies is": name}
        row |= {title: f"{value:.3f}" for title, value in zip(titles, means, strict=True)}
        rows.append(row | {"found": f"{np.mean(found[family]):.0%}"})
    show("Near copies: what is right and what confidence says of it, means over tables", rows)


if __name__ == "__main__":
    main()
