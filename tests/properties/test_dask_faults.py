"""A Dask worker is killed in any phase, all are gone, the scheduler is gone: the same answer, or a sentence.

The sentence comes in a time that can be set. `make test` has one end of each kind; workers are killed in some
phases in ``tests/test_dask.py``, and in all phases of all methods in `make fuzz`.
"""

import os
import re
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import consilience.dask as blockwise
from consilience._support.errors import ClusterError
from consilience.dask.engine import Cluster
from tests.planted import planted

FUZZ = os.environ.get("CONSILIENCE_PROFILE") == "fuzz"
WAIT = 3  # seconds without a worker until a run fails
LOST = 5  # and until a client gives its scheduler up


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labels in Parquet files of several blocks."""
    base = planted(600, 6, 3, noise=0.4, missing=0.2, seed=5)[1]
    base[(base < 0).all(axis=1), 0] = 0
    folder = tmp_path_factory.mktemp("faults") / "labels"
    folder.mkdir()
    for number, part in enumerate(np.split(base, 4)):
        pd.DataFrame(part, columns=list("abcdef")).to_parquet(folder / f"{number}.parquet", index=False)
    return folder


def views():
    import dask.array as da

    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 400)
    return [da.from_array(rng.normal(4 * rng.normal(size=(3, 3))[kind]), chunks=(100, 3)) for _ in range(2)]


def of_labels(name, **options):
    def answer(folder, target):
        model = getattr(blockwise, name)(3, random_state=0, **options)
        model.fit(blockwise.read_parquet(folder, block_rows=150))
        return np.asarray(model.labels_)

    return answer


def of_views(name, **options):
    def answer(folder, target):
        return getattr(blockwise, name)(3, random_state=0, **options).fit(views()).labels_.compute()

    return answer


def of_checkpoints(folder, target):
    return of_labels("PCE", max_distinct=50, checkpoint=f"{target}-run")(folder, target)


def of_files(folder, target):
    blockwise.fuse_parquet(folder, target, 3, method="PCE", max_distinct=50, block_rows=150, random_state=0)
    return pd.read_parquet(target)["label"].to_numpy()


METHODS = {
    "PCE on blocks": of_labels("PCE", max_distinct=50),
    "PCE with a checkpoint": of_checkpoints,
    "fuse_parquet": of_files,
    "APMC": of_views("APMC"),
    "EEIMVC": of_views("EEIMVC", prior=None),
    **{name: of_labels(name) for name in ("PCE", *blockwise.consensus.MIRRORS)},
}


def quietly(method, *given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return METHODS[method](*given)


def answer_or_error(method, *given):
    try:
        return quietly(method, *given), None
    except ClusterError as error:
        return None, error


@contextmanager
def at_step(number, act):
    """Call `act` at a step, before its tasks are sent (even numbers) or after; gives the names of steps."""
    steps, plain = [], Cluster._map

    def mapped(self, step, function, parts, shared):
        steps.append(step)
        here = len(steps) - 1 == number // 2
        if here and number % 2 == 0:
            act()
        found = plain(self, step, function, parts, shared)
        if here and number % 2 == 1:
            act()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cluster, "_map", mapped)
        yield steps


# --- one of several -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    """A client of two workers in processes of their own, which are replaced when they die."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "silence_logs": "CRITICAL", "dashboard_address": ":0"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with LocalCluster(**options) as made:
            client = Client(made, set_as_default=False)
            client.run(__import__, "consilience.dask")
            yield client
            client.close()


def revive(client):
    """Two workers again, also where the cluster gave up replacing them, as on a busy machine."""
    try:
        client.wait_for_workers(2, timeout=30)
    except TimeoutError:
        client.cluster.scale(0)
        client.cluster.scale(2)
        client.wait_for_workers(2, timeout=300)


def kill_one(client, which):
    pids = sorted(client.run(os.getpid).values())
    os.kill(pids[which % len(pids)], signal.SIGKILL)


def moments(steps):
    """Every step once before its tasks are sent and once after, at the first and at the last of its name."""
    first = {step: place for place, step in reversed(list(enumerate(steps)))}
    last = {step: place for place, step in enumerate(steps)}
    return sorted({2 * place for place in first.values()} | {2 * place + 1 for place in last.values()})


@pytest.mark.skipif(not FUZZ, reason="takes minutes; `make fuzz`, and some phases in tests/test_dask.py")
@pytest.mark.parametrize("method", METHODS)
def test_a_worker_is_killed_in_every_phase(cluster, folder, tmp_path, method):
    import dask

    with cluster.as_current():
        with at_step(-1, None) as steps:
            expected = quietly(method, folder, tmp_path / "whole")
        assert steps
        print(f"{method}: {len(moments(steps))} kills in the steps {sorted(set(steps))}")
        for number in moments(steps):
            revive(cluster)
            with (
                dask.config.set({"consilience.wait-for-workers": 60}),
                at_step(number, partial(kill_one, cluster, number)),
            ):
                found, error = answer_or_error(method, folder, tmp_path / f"out-{number}")
            if error is None:
                assert_array_equal(found, expected)
            else:
                print(f"{method}, step {steps[number // 2]}: {error}")
                assert re.search(r"(several workers died|no worker for \d+ s).* Hint: ", str(error))


# --- all of them --------------------------------------------------------------------------------------------


class Machines:
    """A scheduler and a worker, in processes that nobody replaces."""

    def __init__(self, folder):
        self.file = folder / "scheduler.json"
        options = ["--scheduler-file", str(self.file), "--no-dashboard"]
        self.scheduler = self._started("dask_scheduler", *options, "--port", "0", "--host", "127.0.0.1")
        self.worker = self._started("dask_worker", *options, "--nthreads", "1", "--no-nanny")

    def _started(self, what, *options):
        command = [sys.executable, "-m", f"distributed.cli.{what}", *options]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.file.parent
        )

    def end(self):
        for process in (self.worker, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def machines(tmp_path):
    import dask
    from distributed import Client

    settings = {"consilience.wait-for-workers": WAIT, "distributed.comm.timeouts.connect": f"{LOST}s"}
    with dask.config.set(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Machines(tmp_path)
        try:
            client = Client(scheduler_file=str(made.file), timeout=60, set_as_default=False)
            client.wait_for_workers(1, timeout=60)
            with client.as_current():
                yield made
            client.close(timeout=1)
        finally:
            made.end()


def kill(process, killed):
    process.kill()
    process.wait()
    killed.append(time.monotonic())


SAID = {"worker": r"no worker for \d+ s\. Hint: ", "scheduler": r"scheduler '.*' is gone\. Hint: "}
# Who is killed at which step, in which method; one after the other.
ENDS = (
    [
        (method, [(part, moment)])
        for method in ("PCE on blocks", "PCE with a checkpoint", "fuse_parquet", "APMC", "EEIMVC", "KCC")
        for part in SAID
        for moment in (0, 1, 4, 9)
    ]
    if FUZZ
    else [("fuse_parquet", [("worker", 5), ("scheduler", 1)])]
)


@pytest.mark.parametrize(("method", "ends"), ENDS)
def test_nobody_is_left(machines, folder, tmp_path, method, ends):
    for part, moment in ends:
        killed, process = [], getattr(machines, part)
        with at_step(moment, partial(kill, process, killed)):
            _, error = answer_or_error(method, folder, tmp_path / "out")
        if killed:
            assert re.search(SAID[part], str(error))
            assert time.monotonic() - killed[0] < 60  # of which most is waiting for a processor
            assert not (tmp_path / "out").exists()
        else:  # it has fewer steps
            assert error is None
    assert not list(tmp_path.glob("*.partial"))


def test_a_scheduler_that_is_not_there(folder, tmp_path):
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(ClusterError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'\. Hint: "),
    ):
        blockwise.fuse_parquet(folder, tmp_path / "out", 3, scheduler="tcp://127.0.0.1:9")
    assert not (tmp_path / "out").exists()
