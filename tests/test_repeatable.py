"""The same input and the same seed give the same answer: for every method, in every process, on any threads.

All fits run in two processes that know nothing of each other, one with one thread, where every fit runs
twice, and one with two. Both call this file as a module and print digests of what was found.
"""

import hashlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

import consilience
from consilience import Partitions, consensus, features, fuse, fuse_views
from consilience.core.spectral import left_singular_vectors
from consilience.diagnostics import choose_n_clusters
from tests.instances import INSTANCES
from tests.planted import planted

LISTED = [(name, settings) for name, settings, _ in INSTANCES]
# Those that find eigenvectors of large tables by iteration, and of them those that cost little for large base
# clusterings.
BY_ITERATION = ["CSPA", "HBGF", "HGPA", "LWGP", "PCE", "USENC"]
THROUGH_ROWS = ["CSPA", "HBGF", "HGPA", "USENC"]
# All that an answer consists of; a method has some of them.
ANSWERS = ["labels_", "confidence_", "objective_", "base_weights_", "view_weights_", "embedding_", "n_iter_"]


def noisy():
    return 3, planted(90, 5, 3, noise=0.3, missing=0.2, seed=0)[1]


def copies():
    """Four times one clustering in three, and one in two: rank 4, and five clusters are asked for."""
    rng = np.random.default_rng(1)
    return 5, np.column_stack([np.tile(rng.integers(0, 3, 80)[:, None], 4), rng.integers(0, 2, 80)])


def ties():
    """Six kinds of rows, which a renaming of labels and instances turns into each other."""
    kinds = np.array([(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1)])
    return 2, kinds[np.arange(60) % 6]


def large():
    """2700 base clusters of 2600 different rows, every base clustering three times."""
    return 4, np.repeat(planted(2600, 20, 45, noise=0.2, missing=0.1, seed=0)[1], 3, axis=1)


def alone():
    """5200 base clusters of two equal instances: eigenvalues are equal, an iteration has nowhere to go."""
    return 4, np.repeat(np.column_stack([np.arange(2600), np.arange(2600)]), 2, axis=0)


def points(n=60, width=4, n_clusters=3, noise=1.5):
    rng = np.random.default_rng(2)
    centers = rng.normal(scale=3.0, size=(n_clusters, width))
    return centers[np.arange(n) % n_clusters] + noise * rng.standard_normal((n, width))


def features_noisy():
    return 3, points()


def features_copies():
    return 5, np.tile(points(width=2), 3)


def features_ties():
    """The corners of a square, each as often as the others."""
    return 2, np.array([(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)])[np.arange(60) % 4]


def features_large():
    return 4, points(2600, noise=3.0)


def with_gaps(views):
    rng = np.random.default_rng(3)
    absent = rng.random((len(views[0]), len(views))) < 0.2
    absent[absent.all(axis=1)] = False
    return [np.where(absent[:, [v]], np.nan, view) for v, view in enumerate(views)]


def views_noisy():
    return 3, with_gaps([points(), points(width=6)])


def views_copies():
    x = points(width=3)
    return 4, with_gaps([np.tile(x, 2), np.tile(x, 3)])


def views_ties():
    x = features_ties()[1]
    return 2, with_gaps([x, x[:, ::-1] + x])


def views_large():
    return 4, with_gaps([points(400, 5, 4), points(400, 6, 4)])


def cases():
    """Name of a case -> a function and its arguments."""
    found = {}
    for name, settings in LISTED:
        if name in consensus.__all__:
            tables = [noisy, copies, ties]
            tables += [large] * (name in BY_ITERATION and not settings) + [alone] * (name in THROUGH_ROWS)
        elif name in features.__all__:
            tables = [features_noisy, features_copies, features_ties]
            tables += [features_large] * ("filter" in settings)  # sparse and spectral: by iteration
        else:
            tables = [views_noisy, views_copies, views_ties, views_large]
        for table in tables:
            found[f"{name} {settings or ''} {table.__name__}"] = (fitted, name, settings, table)
    for table in (noisy, copies, ties):
        found[f"fuse {table.__name__}"] = (fused, fuse, table)
        found[f"choose_n_clusters {table.__name__}"] = (counted, table)
    found["left_singular_vectors alone"] = (embedded, alone)
    for table in (views_noisy, views_large):
        found[f"fuse_views {table.__name__}"] = (fused, fuse_views, table)
    return found


def embedded(table):
    codes = table()[1]
    offsets = np.concatenate([[0], np.cumsum(codes.max(axis=0) + 1)])
    return {"embedding": left_singular_vectors(codes, offsets, np.ones(len(codes)), 4)}


def fitted(name, settings, table):
    n_clusters, data = table()
    model = getattr(consilience, name)(n_clusters, random_state=0, **settings).fit(data)
    return {key: getattr(model, key) for key in ANSWERS if hasattr(model, key)}


def fused(function, table):
    n_clusters, data = table()
    found = function(data, n_clusters, random_state=0)
    return {"labels": found.labels, "confidence": found.confidence}


def counted(table):
    found = choose_n_clusters(Partitions.of(table()[1]), random_state=0)
    return {"n_clusters": found.n_clusters, **vars(found.curve)}


def digest(value):
    value = np.asarray(value)
    return hashlib.sha256(f"{value.shape} {value.dtype}".encode() + value.tobytes()).hexdigest()[:16]


def answers():
    found = {}
    for case, (function, *arguments) in cases().items():
        found[case] = {key: digest(value) for key, value in function(*arguments).items()}
    return found


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


def started(n_threads, n_passes):
    environment = {**os.environ, **dict.fromkeys(THREADS, str(n_threads))}
    environment.pop("PYTHONHASHSEED", None)  # so that no answer depends on the order of a set
    return subprocess.Popen(
        [sys.executable, "-m", "tests.test_repeatable", str(n_passes)],
        cwd=Path(__file__).parents[1],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_same_answer_in_one_process_and_in_another_with_other_threads():
    # One test, so that workers which share the cases do not each start the processes.
    processes = [started(1, 2), started(2, 1)]
    printed = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    first, again, elsewhere = (found for text in printed for found in json.loads(text))
    assert first.keys() == again.keys() == elsewhere.keys() == cases().keys()
    assert [case for case in first if again[case] != first[case]] == [], "in the same process"
    assert [case for case in first if elsewhere[case] != first[case]] == [], "in another process"


def test_every_method_is_here():
    assert {name for _, name, *_ in cases().values() if isinstance(name, str)} == {name for name, _ in LISTED}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    json.dump([answers() for _ in range(int(sys.argv[1]))], sys.stdout)
