"""Annotators who use the same names: `fuse(..., same_names=True)` beside votes, `fuse` and Dawid-Skene.

    python -m benchmarks.quality_annotators           about two minutes; crowd-kit is compared if installed

Planted: 600 instances of six classes. An annotator is right in 40 to 80 %, or in 70 to 95 % ("good"), and
else says another class by confusions of their own. Accuracy, means of three draws; of `fuse` without names
that of the best matching of clusters to classes.
"""

import time
import warnings

import numpy as np

from consilience import fuse
from consilience.metrics import matched_accuracy_score

N, K, DRAWS = 600, 6, 3
# Annotators, labels an instance, and the range of their accuracy.
CROWDS = {
    "5 annotators, 3 labels an instance": (5, 3, 0.4, 0.8),
    "20, 3": (20, 3, 0.4, 0.8),
    "60, 5": (60, 5, 0.4, 0.8),
    "60, 2": (60, 2, 0.4, 0.8),
    "20 good ones, 3": (20, 3, 0.7, 0.95),
    "4 who share no instance": (4, 1, 0.4, 0.8),
}


def crowd(m, labels_each, low, high, seed):
    rng = np.random.default_rng([seed, m, labels_each, int(100 * high)])
    y = rng.integers(0, K, N)
    accuracy, other = rng.uniform(low, high, m), rng.dirichlet(np.full(K, 0.5), (m, K))
    table = np.full((N, m), -1)
    for i in range(N):
        for j in rng.choice(m, labels_each, replace=False):
            table[i, j] = y[i] if rng.random() < accuracy[j] else rng.choice(K, p=other[j, y[i]])
    return y, table


def votes(table, seed):
    counts = np.array([(table == z).sum(axis=1) for z in range(K)]).T
    return (counts + 1e-3 * np.random.default_rng(seed).random(counts.shape)).argmax(axis=1)


def dawid_skene(table):
    """Expectation and maximisation as Dawid and Skene have it, confusions counted without any prior."""
    q = np.array([(table == z).sum(axis=1) for z in range(K)], dtype=float).T
    q /= q.sum(axis=1, keepdims=True)
    for _ in range(100):
        score = np.tile(np.log(q.mean(axis=0) + 1e-10), (len(table), 1))
        for column in table.T:
            rows = np.flatnonzero(column >= 0)
            theta = q[rows].T @ np.eye(K)[column[rows]]
            theta /= np.maximum(theta.sum(axis=1, keepdims=True), 1e-10)
            score[rows] += np.log(theta[:, column[rows]].T + 1e-10)
        q = np.exp(score - score.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    return q.argmax(axis=1)


def crowd_kit(table):
    """Dawid-Skene of crowd-kit, or None."""
    try:
        import pandas as pd
        from crowdkit.aggregation import DawidSkene
    except ImportError:
        return None
    task, worker = np.nonzero(table >= 0)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": table[task, worker]})
    return DawidSkene(n_iter=100).fit_predict(frame).sort_index().to_numpy()


def main():
    warnings.simplefilter("ignore")
    names = ("fuse", "votes", "Dawid-Skene", "that of crowd-kit", "same_names", "seconds")
    print(f"{'':36s}" + "  ".join(names))
    for what, (m, labels_each, low, high) in CROWDS.items():
        rows = []
        for seed in range(DRAWS):
            y, table = crowd(m, labels_each, low, high, seed)
            try:
                plain = matched_accuracy_score(y, fuse(table, K, random_state=0).labels)
            except ValueError:  # nothing links them
                plain = np.nan
            start = time.perf_counter()
            fusion = fuse(table, K, same_names=True)
            took = time.perf_counter() - start
            said = np.array(fusion.names)[fusion.labels].astype(int)
            other = crowd_kit(table)
            rows.append(
                (
                    plain,
                    np.mean(votes(table, seed) == y),
                    np.mean(dawid_skene(table) == y),
                    np.nan if other is None else np.mean(other == y),
                    np.mean(said == y),
                    took,
                )
            )
        print(f"{what:36s}" + "  ".join(f"{value:.3f}" for value in np.mean(rows, axis=0)), flush=True)


if __name__ == "__main__":
    main()
