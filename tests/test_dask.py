"""Tables in blocks: the answer is that of the method in memory, whatever the blocks and whatever fails."""

import json
import os
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import consilience
import consilience.dask as blockwise
from consilience import Partitions
from consilience._support.errors import ClusterError
from consilience.core.discretize import fill_empty_clusters
from consilience.core.stiefel import power_iteration
from consilience.dask import checkpoint, pce_blocks
from consilience.dask.checkpoint import Checkpoint
from consilience.dask.engine import Engine, merged
from consilience.dask.moments import land, leap, moments
from consilience.dask.places import locate
from consilience.inference.posterior import predict_labels
from tests.planted import planted
from tests.pools import first_ten

C = 4
FEW = 100  # distinct rows, so that the block path is taken


@pytest.fixture(scope="module")
def table():
    """More distinct rows than the rotation samples."""
    return planted(9_000, 7, C, noise=0.4, missing=0.3, seed=5)[1]


@pytest.fixture(scope="module")
def in_memory(table):
    return consilience.PCE(C, random_state=3).fit(table)


def assert_same(model, reference, *, slow=False):
    """`slow`: steps of H converge slowly, and end a little earlier or later."""
    assert_array_equal(np.asarray(model.labels_), reference.labels_)
    assert_allclose(np.asarray(model.confidence_), reference.confidence_, rtol=1e-9)
    assert_allclose(np.asarray(model.reliability_), reference.reliability_, rtol=1e-2 if slow else 1e-6)
    assert_allclose(model.base_weights_, reference.base_weights_, atol=1e-4 if slow else 1e-9)
    assert_allclose(model.objective_, reference.objective_, rtol=1e-5 if slow else 1e-9)
    assert_allclose(np.abs(model.rotation_), np.abs(reference.rotation_), atol=1e-3 if slow else 1e-6)
    assert model.n_iter_ == reference.n_iter_
    assert model.certified_ == reference.certified_


def named(table, index=None):
    names = np.array([f"group {q}" for q in range(table.max() + 1)], dtype=object)
    columns = {f"base {i}": np.where(column < 0, None, names[column]) for i, column in enumerate(table.T)}
    return pd.DataFrame(columns, index=index)


def write_parquet(folder, frame, n_files=3, row_group_size=700):
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[part].to_parquet(folder / f"{number}.parquet", row_group_size=row_group_size, index=False)
    return folder


# --- the same answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_blocks", [1, 3, 20])
@pytest.mark.parametrize(("max_distinct", "path"), [(10**6, "distinct rows"), (FEW, "blocks")])
def test_both_paths_give_the_labels_of_the_estimator_in_memory(
    table, in_memory, n_blocks, max_distinct, path
):
    model = blockwise.PCE(C, random_state=3, max_distinct=max_distinct)
    model.fit(np.array_split(table, n_blocks))
    assert model.path_ == path
    assert str(max_distinct) in model.path_reason_
    assert_same(model, in_memory)
    assert_allclose(np.abs(np.asarray(model.embedding_)), np.abs(in_memory.embedding_), atol=1e-8)
    new = table[::50].copy()
    new[:, 0] = -1
    new = new[(new >= 0).any(axis=1)]
    assert_array_equal(model.predict(new), in_memory.predict(new))
    assert_allclose(model.predict_confidence(new), in_memory.predict_confidence(new), rtol=1e-9)
    assert_allclose(model.predict_proba(new), in_memory.predict_proba(new), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("max_distinct", [10**6, FEW])
def test_the_order_of_rows_and_blocks_does_not_matter(table, in_memory, max_distinct):
    order = np.random.default_rng(0).permutation(len(table))
    blocks = np.array_split(table[order], [100, 150, 5_000])
    model = blockwise.PCE(C, random_state=3, max_distinct=max_distinct).fit(blocks)
    assert_array_equal(np.asarray(model.labels_), in_memory.labels_[order])


@pytest.mark.parametrize(
    "options",
    [
        {"tol": 0.0, "max_iter": 8},
        {"self_paced": False},
        {"diversity": False},
        {"gamma": 0.01, "tol": 0.0, "max_iter": 6},
        {"init": "coassociation"},
        {"discretize": "post", "max_iter": 6},
    ],
)
def test_ablations_on_blocks_equal_those_in_memory(options):
    _, table = planted(800, 6, 5, noise=0.25, missing=0.5, seed=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = consilience.PCE(5, random_state=1, **options).fit(table)
        model = blockwise.PCE(5, random_state=1, max_distinct=FEW, **options)
        slow = "gamma" in options or "discretize" in options
        assert_same(model.fit(np.array_split(table, 3)), reference, slow=slow)


def test_a_real_pool_gives_the_same_labels_on_blocks(data_folder):
    base, _ = first_ten("LWEA_USPS", missing=0.3)
    reference = consilience.PCE(10, random_state=0).fit(base)
    model = blockwise.PCE(10, random_state=0, max_distinct=10).fit(np.array_split(base, 4))
    assert_array_equal(np.asarray(model.labels_), reference.labels_)


LINEAR = [name for name in consilience.consensus.__all__ if getattr(consilience, name).about.linear]


@pytest.mark.parametrize("method", LINEAR)
def test_linear_methods_give_the_labels_of_the_estimator_in_memory(method):
    _, table = planted(400, 5, C, noise=0.3, missing=0.3, seed=2)
    reference = getattr(consilience, method)(C, random_state=0).fit(table)
    model = getattr(blockwise, method)(C, random_state=0).fit(np.array_split(table, 4))
    assert_array_equal(np.asarray(model.labels_), reference.labels_)
    assert_allclose(np.asarray(model.confidence_), reference.confidence_)
    assert_array_equal(model.predict(table), reference.predict(table))
    if hasattr(reference, "transform"):
        assert_allclose(model.transform(table), reference.transform(table), atol=1e-9)
    assert model.get_params().keys() - {"checkpoint"} == {*reference.get_params(), "max_distinct"}
    again = clone(model.set_params(max_distinct=7))
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert repr(again) == f"{method}(max_distinct=7, n_clusters={C}, random_state=0)"


def test_a_method_that_needs_all_distinct_rows_says_when_they_are_too_many():
    model = blockwise.KCC(2, max_distinct=2)
    with pytest.raises(ValueError, match=r"more than 2 distinct label rows.*consilience\.dask\.PCE"):
        model.fit([np.arange(10).reshape(5, 2)])


def test_n_clusters_is_found_on_distinct_rows_and_refused_on_blocks():
    _, table = planted(600, 8, 3, noise=0.2, missing=0.1, seed=1)
    blocks = np.array_split(table, 3)
    assert blockwise.PCE("auto", random_state=0).fit(blocks).n_clusters_ == 3
    with pytest.raises(ValueError, match="n_clusters='auto' needs the distinct label rows in memory"):
        blockwise.PCE("auto", random_state=0, max_distinct=5).fit(blocks)


def test_random_imputation_is_refused(tmp_path):
    with pytest.raises(ValueError, match="imputation='random'"):
        blockwise.PCE(2, imputation="random").fit([[[0], [1]]])
    pd.DataFrame({"a": [0, 1, 2, 0], "b": [0, 1, 1, 0]}).to_parquet(tmp_path / "labels.parquet")
    method = consilience.PCE(imputation="random")
    with pytest.raises(ValueError, match="imputation='random'"):
        blockwise.fuse_parquet(
            tmp_path / "labels.parquet", tmp_path / "out", 2, method=method, max_distinct=1
        )


def test_more_clusters_than_directions_are_refused_on_blocks():
    _, table = planted(300, 2, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match="too few for n_clusters=7"):
        blockwise.PCE(7, random_state=0, max_distinct=2).fit([table])


# --- any blocks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_distinct", [10**6, 20])
def test_labels_may_be_names_and_blocks_need_not_hold_all_of_them(max_distinct):
    _, table = planted(600, 4, 3, noise=0.2, missing=0.2, seed=4)
    frame = named(table[np.argsort(table[:, 1], kind="stable")])
    reference = consilience.PCE(3, random_state=0).fit(frame)
    blocks = [frame.iloc[:250], frame.iloc[:0], frame.iloc[250:]]
    model = blockwise.PCE(3, random_state=0, max_distinct=max_distinct).fit(blocks)
    assert_array_equal(np.asarray(model.labels_), reference.labels_)
    assert list(model.feature_names_in_) == list(frame.columns)


def test_a_function_that_starts_an_iterator_is_gone_through_in_every_pass():
    _, table = planted(600, 4, 3, noise=0.2, missing=0.2, seed=4)
    starts = []

    def stream():
        starts.append(1)
        return iter(np.array_split(table, 5))

    model = blockwise.PCE(3, random_state=0, max_distinct=20).fit(stream)
    reference = consilience.PCE(3, random_state=0).fit(table)
    assert_array_equal(np.concatenate(list(model.labels_)), reference.labels_)
    assert len(starts) == 4  # reading, telling clusters of equal sizes apart, the start, the labels


def test_integers_and_floats_with_nan_are_the_same_labels():
    first, second = np.array([[0, 1], [1, 0]]), np.array([[0.0, np.nan], [1.0, 0.0]])
    model = blockwise.PCE(2, random_state=0).fit([first, second])
    assert [labels.tolist() for labels in model.partitions_.categories] == [[0, 1], [0, 1]]
    labels = np.asarray(model.labels_)
    assert labels.dtype == np.int64
    assert labels[[0, 1]].tolist() == labels[[2, 3]].tolist() != labels[[1, 0]].tolist()


def test_a_column_without_labels_is_ignored_with_a_warning():
    _, table = planted(300, 3, 3, noise=0.1, missing=0.1, seed=4)
    wide = np.column_stack([table[:, :1], np.full(300, -1), table[:, 1:]])
    with pytest.warns(UserWarning, match=r"'1' \(column 1\) has no labels"):
        model = blockwise.PCE(3, random_state=0).fit(np.array_split(wide, 2))
    assert model.base_weights_[1] == 0.0
    assert_array_equal(np.asarray(model.labels_), consilience.PCE(3, random_state=0).fit(table).labels_)


def test_marks_that_rather_say_missing_are_named():
    blocks = [np.array([["a", "?"], ["b", "x"]], dtype=object), np.array([["b", "?"]], dtype=object)]
    with pytest.warns(UserWarning, match=r"^'\?' in column '1' \(2 rows\) counts as a cluster"):
        blockwise.PCE(2, random_state=0).fit(blocks)


@pytest.mark.parametrize("max_distinct", [10**6, 10])
def test_unobserved_rows_are_refused_by_block_and_row_or_labelled(max_distinct):
    _, table = planted(300, 3, 3, noise=0.1, missing=0.1, seed=4)
    table[170] = -1
    blocks = np.array_split(table, 3)
    with pytest.raises(ValueError, match=r"no base clustering saw row 70 of block 1\."):
        blockwise.PCE(3, max_distinct=max_distinct).fit(blocks)
    for unobserved, label in (("noise", -1), ("largest", 0)):
        options = {"unobserved": unobserved, "random_state": 0}
        model = blockwise.PCE(3, max_distinct=max_distinct, **options).fit(blocks)
        assert_array_equal(np.asarray(model.labels_), consilience.PCE(3, **options).fit(table).labels_)
        assert np.asarray(model.labels_)[170] == label
        assert np.asarray(model.confidence_)[170] == 0.0


def test_errors_in_a_block_name_it():
    with pytest.raises(ValueError, match=r"'0' has the value 0\.5 in row 0 of block 1"):
        blockwise.PCE(2).fit([np.array([[0], [1]]), np.array([[0.5], [1.0]])])
    with pytest.raises(ValueError, match="different columns"):
        blockwise.PCE(2).fit([np.array([[0, 1]]), np.array([[0]])])


@pytest.mark.parametrize("given", [iter([np.zeros((2, 2))]), 3, np.zeros(3)])
def test_what_cannot_be_gone_through_again_is_refused(given):
    with pytest.raises(TypeError, match=r"cannot read blocks of rows.*Hint"):
        blockwise.PCE(2).fit(given)


def test_blocks_in_this_process_need_no_dask():
    code = (
        "import sys, numpy as np, consilience.dask as d\n"
        "m = d.PCE(2, random_state=0, max_distinct=1).fit([np.array([[0, 0], [1, 1]]), np.array([[0, 0]])])\n"
        "assert np.asarray(m.labels_).tolist() == [0, 1, 0]\n"
        "assert not {'dask', 'distributed'} & set(sys.modules), 'imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- Parquet ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_distinct", [10**6, FEW])
def test_labels_from_parquet_to_parquet_keep_ids_and_order(tmp_path, max_distinct):
    _, table = planted(3_000, 6, C, noise=0.3, missing=0.2, seed=6)
    frame = named(table)
    frame.insert(0, "who", [f"p{i}" for i in range(len(frame))])
    source = blockwise.read_parquet(write_parquet(tmp_path / "in", frame), ids="who", block_rows=800)
    model = blockwise.PCE(C, random_state=0, max_distinct=max_distinct).fit(source)
    reference = consilience.PCE(C, random_state=0).fit(table)
    model.write_labels(tmp_path / "out")
    out = pd.read_parquet(tmp_path / "out")
    assert_array_equal(out["who"], frame["who"])
    assert_array_equal(out["label"], reference.labels_)
    assert_allclose(out["confidence"], reference.confidence_, atol=1e-6)
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    with pytest.raises(FileExistsError, match="is there already"):
        model.write_labels(tmp_path / "out")


@pytest.mark.parametrize(
    ("n", "noise", "n_clusters"), [(400, 0.3, C), (400, 1.0, C), (400, 0.3, "auto"), (7_500, 0.6, C)]
)
def test_fuse_parquet_gives_the_labels_of_fuse(tmp_path, n, noise, n_clusters):
    _, table = planted(n, 6, C, noise=noise, missing=0.2, seed=6)
    table[7] = -1
    frame = named(table)
    folder = write_parquet(tmp_path / "in", frame)
    steps = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # whether the number of clusters is reliable
        done = blockwise.fuse_parquet(
            folder, tmp_path / "out", n_clusters, unobserved="noise", random_state=2, block_rows=900,
            progress=lambda *step: steps.append(step),
        )  # fmt: skip
        reference = consilience.fuse(table, n_clusters, unobserved="noise", random_state=2)
    out = pd.read_parquet(tmp_path / "out")
    assert_array_equal(out["label"], reference.labels)
    assert_allclose(out["confidence"], reference.confidence, atol=1e-6)
    assert (done.method, done.path) == (reference.method, "distinct rows")
    assert_array_equal(done.sizes, np.bincount(reference.labels[reference.labels >= 0]))
    if n_clusters == "auto":  # found from counted rows as from all
        assert json.dumps(done.cluster_count.as_dict()) == json.dumps(reference.cluster_count.as_dict())
    else:
        assert done.cluster_count is None
    assert done.chance == reference.headline.chance
    assert bool(done.chance) == (noise == 1.0)
    assert all(0 < step[1] <= step[2] for step in steps)
    assert {"reading", "writing"} <= {step[0] for step in steps}


def test_fuse_parquet_goes_to_blocks_when_distinct_rows_do_not_fit(tmp_path):
    _, table = planted(2_000, 6, C, noise=0.3, missing=0.2, seed=6)
    folder = write_parquet(tmp_path / "in", named(table))
    done = blockwise.fuse_parquet(folder, tmp_path / "out", C, max_distinct=FEW, random_state=0)
    seed = int(np.random.RandomState(0).randint(2**31))
    reference = consilience.PCE(C, random_state=seed).fit(table)
    assert (done.path, done.method, done.n_distinct) == ("blocks", "PCE", None)
    assert_array_equal(pd.read_parquet(tmp_path / "out")["label"], reference.labels_)
    assert_array_equal(done.sizes, np.bincount(reference.labels_))
    with pytest.raises(ValueError, match="only PCE works on blocks"):
        blockwise.fuse_parquet(folder, tmp_path / "other", C, max_distinct=FEW, method="KCC")
    assert not (tmp_path / "other").exists()


def test_an_unreadable_file_is_named(tmp_path):
    _, table = planted(3_000, 4, 3, noise=0.2, missing=0.2, seed=6)
    folder = write_parquet(tmp_path / "in", pd.DataFrame(table, columns=list("abcd")))
    whole = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"file '.*1\.parquet' cannot be read"):
        blockwise.PCE(3).fit(folder)
    start = pq.ParquetFile(folder / "0.parquet").metadata.row_group(1).column(0).data_page_offset
    (folder / "1.parquet").write_bytes(whole[:start] + b"\xff" * 40 + whole[start + 40 :])
    with pytest.raises(ValueError, match=r"file '.*1\.parquet', row group 1 cannot be read"):
        blockwise.PCE(3).fit(blockwise.read_parquet(folder, block_rows=700))


def test_files_must_have_the_same_columns(tmp_path):
    pq.write_table(pa.table({"a": [0, 1], "b": [0, 1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [0, 1], "c": [0, 1]}), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet.*do not have the same columns"):
        blockwise.read_parquet(tmp_path)
    assert blockwise.read_parquet(tmp_path, columns=["a"]).n_blocks == 2
    with pytest.raises(FileNotFoundError, match="no Parquet file"):
        blockwise.read_parquet(tmp_path / "nowhere")


# --- going on after an interruption -------------------------------------------------------------------------


def interrupted(monkeypatch, after):
    """Rounds B that are run, in a list; the one after `after` iterations is interrupted."""
    rounds, plain = [], pce_blocks._round_b

    def counted(engine, states, task, certified):
        if task.model.n_iter == after:
            raise KeyboardInterrupt
        rounds.append(task.model.n_iter)
        return plain(engine, states, task, certified)

    monkeypatch.setattr(pce_blocks, "_round_b", counted)
    return rounds


@pytest.mark.filterwarnings("ignore:PCE did not converge")
def test_an_interrupted_run_goes_on_from_its_last_iteration(tmp_path, monkeypatch, table):
    blocks = np.array_split(table[:4_000], 3)
    options = {"random_state": 3, "max_distinct": FEW, "tol": 0.0, "max_iter": 6}
    undisturbed = blockwise.PCE(C, **options).fit(blocks)
    with monkeypatch.context() as patch:
        interrupted(patch, after=4)
        with pytest.raises(KeyboardInterrupt):
            blockwise.PCE(C, checkpoint=tmp_path / "run", **options).fit(blocks)
    with monkeypatch.context() as patch:
        rounds = interrupted(patch, after=None)
        model = blockwise.PCE(C, checkpoint=tmp_path / "run", **options).fit(blocks)
    assert rounds == [4, 5]
    assert_array_equal(np.asarray(model.labels_), np.asarray(undisturbed.labels_))
    assert_array_equal(model.objective_, undisturbed.objective_)
    assert_array_equal(model.base_weights_, undisturbed.base_weights_)


@pytest.mark.filterwarnings("ignore:PCE did not converge")
def test_a_checkpoint_of_another_run_is_refused(tmp_path, table):
    blocks = np.array_split(table[:1_000], 2)
    options = {"random_state": 3, "max_distinct": FEW, "max_iter": 2, "checkpoint": tmp_path / "run"}
    blockwise.PCE(C, **options).fit(blocks)
    changed = [blocks[0], np.where(blocks[1] == 0, 1, blocks[1])]
    with pytest.raises(ValueError, match="the input has changed"):
        blockwise.PCE(C, **options).fit(changed)
    with pytest.raises(ValueError, match=r"gamma was 1\.0 and is 2\.0"):
        blockwise.PCE(C, gamma=2.0, **options).fit(blocks)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest | {"version": 99}))
    with pytest.raises(ValueError, match="has version 99"):
        blockwise.PCE(C, **options).fit(blocks)


def test_an_interruption_while_states_are_written_leaves_the_last_complete_iteration(
    tmp_path, monkeypatch, table
):
    blocks = np.array_split(table[:4_000], 3)
    options = {"random_state": 3, "max_distinct": FEW, "tol": 0.0, "max_iter": 5}
    undisturbed = blockwise.PCE(C, **options)
    plain_advance, plain_save, calls = pce_blocks.advance, Checkpoint.save, []

    def failing(state, number, task):
        calls.append(number)
        if len(calls) == 8:  # the second block of the third iteration
            raise KeyboardInterrupt
        return plain_advance(state, number, task)

    with monkeypatch.context() as patch:
        patch.setattr(pce_blocks, "advance", failing)
        with pytest.raises(KeyboardInterrupt):
            blockwise.PCE(C, checkpoint=tmp_path / "run", **options).fit(blocks)
    assert plain_save is Checkpoint.save
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = blockwise.PCE(C, checkpoint=tmp_path / "run", **options).fit(blocks)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        undisturbed.fit(blocks)
    assert_array_equal(model.objective_, undisturbed.objective_)
    assert_array_equal(np.asarray(model.labels_), np.asarray(undisturbed.labels_))


def test_files_without_rows_are_files_of_no_rows(tmp_path):
    _, table = planted(300, 4, 3, noise=0.2, missing=0.2, seed=6)
    whole = pa.table(
        {name: [None if v < 0 else str(v) for v in table[:, j]] for j, name in enumerate("abcd")}
    )
    for number, part in enumerate((whole[:0], whole[:200], whole[:0], whole[200:])):
        pq.write_table(part, tmp_path / f"{number}.parquet")
    empty = pa.table({name: pa.nulls(0) for name in "abcd"})
    pq.write_table(empty, tmp_path / "4.parquet")  # not even types
    pq.write_table(empty, tmp_path / "5.parquet", row_group_size=1)
    done = blockwise.fuse_parquet(tmp_path, tmp_path / "out", 3, random_state=0)
    assert done.n_instances == 300
    expected = consilience.fuse(whole, 3, random_state=0)
    assert_array_equal(pd.read_parquet(tmp_path / "out")["label"], expected.labels)


def test_ids_among_the_labels_are_refused_by_name(tmp_path):
    frame = pd.DataFrame({"who": np.arange(3_000), "a": np.arange(3_000) % 3, "b": np.arange(3_000) % 2})
    folder = write_parquet(tmp_path / "in", frame)
    wanted = r"'who' has a different label in every row\. Hint: if it holds ids, name it by ids="
    with pytest.raises(ValueError, match=wanted):
        blockwise.fuse_parquet(folder, tmp_path / "out", 3)
    with pytest.raises(ValueError, match=wanted):
        blockwise.fuse_parquet(folder, tmp_path / "out", 3, max_distinct=100, block_rows=500)
    assert not (tmp_path / "out").exists()


# --- the parts ----------------------------------------------------------------------------------------------


def test_steps_on_moments_are_the_steps_of_the_power_iteration():
    rng = np.random.default_rng(0)
    n, c = 900, 5
    w = rng.integers(1, 5, n).astype(float)
    h = np.linalg.qr(rng.normal(size=(n, c)))[0] / np.sqrt(w)[:, None]
    linear, shift = rng.normal(size=(n, c)), rng.random(n)
    expected = power_iteration(h, linear, shift, w, tol=1e-10, max_iter=100)
    done = False
    while not done:
        found = sum(
            moments(h[rows], linear[rows], shift[rows], w[rows]) for rows in np.array_split(np.arange(n), 4)
        )
        step = leap(found, float(shift.max()), 1e-7)
        h, done = land(step.terms, h, linear, shift), step.done
    assert_allclose(h, expected.h, atol=1e-7)
    assert_allclose((h * w[:, None]).T @ h, np.eye(c), atol=1e-10)
    assert step.slack == pytest.approx(expected.slack, rel=1e-6)


def of_state(state, given):
    return state.v, state.w


@pytest.mark.parametrize("kind", ["normal", "ties", "tiny"])
def test_places_are_those_of_the_sorted_values(kind):
    rng = np.random.default_rng(1)
    values = rng.normal(size=5_000)
    values = {"normal": values, "ties": np.round(values, 1), "tiny": 1.0 + 1e-12 * values}[kind]
    w = rng.integers(1, 4, len(values)).astype(float)
    places = np.append(rng.random(200) * w.sum(), [0.0, w.sum() - 0.5])
    order = np.argsort(values, kind="stable")
    expected = values[order][np.searchsorted(np.cumsum(w[order]), places, side="right")]
    blank = np.empty(0)
    states = [
        pce_blocks.State(blank, blank, w[rows], blank, values[rows], blank)
        for rows in np.array_split(np.arange(len(values)), 7)
    ]
    found = locate(Engine(), "test", states, of_state, None, places)
    assert_array_equal(found.values, expected)
    assert found.highest == values.max()


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 65, 100])
def test_parts_are_merged_in_order_and_once(n):
    sizes = []

    def merge(parts):
        sizes.append(len(parts))
        return [one for part in parts for one in part]

    assert merged(merge, ([part] for part in range(n))) == list(range(n))
    assert max(sizes, default=0) <= 8


@pytest.mark.parametrize(("max_distinct", "passes"), [(20, 3), (10_000, 1)])
def test_a_block_that_changes_between_passes_is_refused(max_distinct, passes):
    _, table = planted(600, 4, 3, noise=0.2, missing=0.2, seed=4)
    versions = iter([*[table] * passes, table[::-1], np.where(table == 0, 1, table)])
    model = blockwise.PCE(3, random_state=0, max_distinct=max_distinct)
    model.fit(lambda: iter([next(versions)]))
    assert len(np.asarray(model.labels_)) == 600  # another order of the rows is no change
    with pytest.raises(ValueError, match="changed since it was fitted"):
        np.asarray(model.labels_)


def test_an_empty_cluster_takes_the_row_that_it_takes_in_memory():
    _, table = planted(400, 5, 3, noise=0.3, missing=0.2, seed=4)
    partitions = Partitions.of(table)
    rng = np.random.default_rng(0)
    h, rows = rng.normal(size=(len(partitions.distinct.counts), 4)), partitions.distinct
    h[:, 3] = -10.0 - rng.random(len(h))  # nobody is in the last cluster
    expected = fill_empty_clusters(h.argmax(axis=1), h.max(axis=1), 4)
    w = rows.counts.astype(float)
    cut = np.array_split(np.arange(len(w)), 3)
    cut[1] = np.append(cut[1], cut[0][:20])  # rows that two blocks have
    states = [
        pce_blocks.State(rows.codes[p], rows.codes[p], w[p], np.zeros(len(p), np.int32), w[p], h[p])
        for p in cut
    ]
    closing, evidence = pce_blocks.close(Engine(), states, np.eye(4), partitions.offsets)
    assert len(closing.moved) == 1
    found = pce_blocks.final_labels(
        pce_blocks.State(rows.codes, rows.codes, w, np.zeros(len(w), np.int32), w, h), closing
    )
    assert_array_equal(found, closing.number[expected])
    assert evidence.prior.min() > 0


# --- views --------------------------------------------------------------------------------------------------


def views_of(n, k, n_views, width, missing, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    present = rng.random((n, n_views)) >= missing
    present[~present.any(axis=1), 0] = True
    views = []
    for v in range(n_views):
        x = 2.0 * rng.normal(size=(k, width))[truth] + rng.normal(size=(n, width))
        views.append(np.where(present[:, [v]], x, np.nan))
    return views


def in_blocks(views, n_blocks):
    return [list(block) for block in zip(*(np.array_split(view, n_blocks) for view in views), strict=True)]


@pytest.mark.parametrize("prior", ["average", None])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_eeimvc_on_moments_equals_eeimvc_in_memory(prior, missing):
    views = [view / 30.0 for view in views_of(900, 4, 3, 4, missing)]
    reference = consilience.EEIMVC(4, kernel="embedding", prior=prior, random_state=0).fit(views)
    for n_blocks in (1, 5):
        model = blockwise.EEIMVC(4, prior=prior, random_state=0).fit(in_blocks(views, n_blocks))
        assert_array_equal(np.asarray(model.labels_), reference.labels_)
        assert_allclose(model.objective_, reference.objective_, rtol=1e-9)
        assert_allclose(model.view_weights_, reference.view_weights_, atol=1e-9)
        assert_allclose(np.abs(np.asarray(model.embedding_)), np.abs(reference.embedding_), atol=1e-8)
        assert_array_equal(model.predict(views), reference.predict(views))


def test_eeimvc_fills_fewer_rows_than_clusters_as_in_memory():
    views = [view / 30.0 for view in views_of(300, 4, 3, 4, 0.0)]
    views[1][[3, 200]] = np.nan
    reference = consilience.EEIMVC(4, kernel="embedding", prior=None, random_state=0).fit(views)
    model = blockwise.EEIMVC(4, prior=None, random_state=0).fit(in_blocks(views, 3))
    assert_allclose(model.objective_, reference.objective_, rtol=1e-9)
    assert_array_equal(np.asarray(model.labels_), reference.labels_)


def test_eeimvc_on_blocks_says_what_it_cannot_do():
    with pytest.raises(ValueError, match="takes kernel='embedding'"):
        blockwise.EEIMVC(2, kernel="rbf").fit([[np.eye(2)]])
    with pytest.raises(ValueError, match=r"block 0: view '0' has 3 columns"):
        blockwise.EEIMVC(2).fit([[np.eye(3)]])
    with pytest.raises(ValueError, match="row 1 of view '0' is not finite"):
        blockwise.EEIMVC(2).fit([[np.array([[0.0, 1.0], [np.nan, 1.0]])]])
    with pytest.raises(ValueError, match=r"view '0' holds something that is no number.*Hint: .*in memory"):
        blockwise.EEIMVC(2).fit([[np.array([["a", 1.0], ["b", 2.0]], dtype=object)]])
    with pytest.raises(ValueError, match="row 0 is in no view"):
        blockwise.EEIMVC(2).fit([[np.array([[np.nan, np.nan], [0.0, 1.0]])]])
    with pytest.raises(TypeError, match="cannot read views in blocks"):
        blockwise.EEIMVC(2).fit(np.eye(2))


@pytest.mark.parametrize("n_views", [1, 2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"bandwidth": "mean_distance", "n_anchors": 80}, {"normalize": "l2", "n_neighbors": 4}]
)
def test_apmc_on_blocks_equals_apmc_in_memory(n_views, options):
    views = views_of(700, 3, n_views, 5, 0.4 if n_views > 1 else 0.0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the similarity graph has")
        reference = consilience.APMC(3, random_state=0, **options).fit(views)
        model = blockwise.APMC(3, random_state=0, **options).fit(in_blocks(views, 4))
    assert_array_equal(np.asarray(model.labels_), reference.labels_)
    assert_allclose(model.eigenvalues_, reference.eigenvalues_, atol=1e-9)
    assert model.n_components_ == reference.n_components_
    assert_array_equal(model.predict(views), reference.predict(views))
    assert_allclose(model.transform(views), np.asarray(model.embedding_), atol=1e-9)


def test_a_block_of_views_may_be_empty():
    views = [view / 30.0 for view in views_of(300, 3, 2, 3, 0.2)]
    blocks = in_blocks(views, 3)
    blocks.insert(1, [view[:0] for view in views])
    for model, reference in [
        (blockwise.APMC(3, random_state=0), consilience.APMC(3, random_state=0)),
        (
            blockwise.EEIMVC(3, prior=None, random_state=0),
            consilience.EEIMVC(3, kernel="embedding", prior=None, random_state=0),
        ),
    ]:
        labels = model.fit(blocks).labels_
        assert [len(block) for block in labels] == [100, 0, 100, 100]
        assert_array_equal(np.asarray(labels), reference.fit(views).labels_)


def test_views_in_a_dict_are_known_by_name():
    views = views_of(300, 3, 2, 3, 0.0)
    named = dict(zip("ab", views, strict=True))
    blocks = [dict(zip("ab", block, strict=True)) for block in in_blocks(views, 3)]
    model = blockwise.APMC(3, random_state=0).fit(blocks)
    turned = blockwise.APMC(3, random_state=0).fit(
        [blocks[0], *(dict(reversed(b.items())) for b in blocks[1:])]
    )
    assert_array_equal(np.asarray(turned.labels_), np.asarray(model.labels_))
    assert_array_equal(model.predict(dict(reversed(named.items()))), model.predict(views))
    alone = model.predict({"b": views[1]})
    assert_array_equal(alone, model.predict([None, views[1]]))
    assert_array_equal(alone, model.predict([np.full_like(views[0], np.nan), views[1]]))
    assert_array_equal(alone, model.predict(views, mask=np.tile([False, True], (300, 1))))
    with pytest.raises(ValueError, match="there is no view 'c'"):
        model.predict({"c": views[0]})
    with pytest.raises(ValueError, match="block 1 has no table for some of the views"):
        blockwise.APMC(3).fit([blocks[0], {"a": views[0]}])


def test_apmc_on_blocks_refuses_views_with_few_common_rows():
    views = views_of(100, 3, 2, 4, 0.0)
    views[0][20:] = np.nan
    with pytest.raises(ValueError, match="have 20 instances in common, APMC on blocks needs 24"):
        blockwise.APMC(3).fit([views])


# --- on a cluster -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "1GB", "dashboard_address": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(silence_logs=50, **options) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.mark.parametrize(("max_distinct", "path"), [(10**6, "distinct rows"), (FEW, "blocks")])
def test_dask_collections_give_the_labels_of_the_estimator_in_memory(
    client, table, in_memory, max_distinct, path
):
    import dask.array as da
    import dask.dataframe as dd

    placed = in_memory.predict(table)
    if path == "blocks":  # where fitted rows are not kept, all are placed as new ones are
        placed = predict_labels(in_memory._answer.evidence, Partitions.of(table).codes)
    index = pd.Index(np.arange(len(table)) + 1_000, name="id")
    frame = dd.from_pandas(pd.DataFrame(np.where(table < 0, np.nan, table), index=index), npartitions=5)
    model = blockwise.PCE(C, random_state=3, max_distinct=max_distinct).fit(frame)
    assert model.path_ == path
    labels = model.labels_
    assert labels.npartitions == frame.npartitions
    assert labels.divisions == frame.divisions
    found = labels.compute()
    assert_array_equal(found.index, index)
    assert_array_equal(found, in_memory.labels_)
    assert_allclose(model.confidence_.compute(), in_memory.confidence_, rtol=1e-9)
    assert_allclose(model.base_weights_, in_memory.base_weights_, atol=1e-9)
    assert_array_equal(model.predict(frame).compute(), placed)

    array = da.from_array(table, chunks=(2_000, 3))
    model = blockwise.PCE(C, random_state=3, max_distinct=max_distinct).fit(array)
    assert model.labels_.chunks[0] == array.chunks[0]
    assert_array_equal(model.labels_.compute(), in_memory.labels_)
    assert model.embedding_.shape == (len(table), C)
    assert_array_equal(model.predict(array).compute(), placed)


def test_without_a_client_dask_collections_are_worked_on_in_this_process(table, in_memory):
    import dask.array as da

    model = blockwise.PCE(C, random_state=3).fit(da.from_array(table, chunks=(2_500, 7)))
    assert_array_equal(model.labels_.compute(scheduler="synchronous"), in_memory.labels_)


def test_workers_and_this_process_give_the_same_to_the_last_digit(client, tmp_path, table):
    frame = pd.DataFrame(table[:4_000], columns=list("abcdefg"))
    folder = write_parquet(tmp_path / "in", frame)
    source = blockwise.read_parquet(folder, block_rows=700)
    options = {"random_state": 3, "max_distinct": FEW}
    there = blockwise.PCE(C, **options).fit(source)
    there.write_labels(tmp_path / "out")
    here = blockwise.PCE(C, **options).fit([frame.iloc[p] for p in np.split(np.arange(4_000), ends(source))])
    assert_array_equal(there.objective_, here.objective_)
    assert_array_equal(there.base_weights_, here.base_weights_)
    assert_array_equal(pd.read_parquet(tmp_path / "out")["label"], np.asarray(here.labels_))


def ends(source):
    sizes = [
        sum(pq.ParquetFile(piece.path).metadata.row_group(group).num_rows for group in piece.groups)
        for piece in source
    ]
    return np.cumsum(sizes)[:-1]


def deadly(block, marker):
    """A block whose first reader dies."""
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_worker_that_dies_while_it_reads_costs_no_more_than_the_block(client, tmp_path, table, in_memory):
    import dask.array as da
    from dask import delayed

    blocks = np.array_split(table, 6)
    parts = [delayed(block) for block in blocks]
    parts[2] = delayed(deadly)(blocks[2], str(tmp_path / "died"))
    array = da.concatenate(
        [da.from_delayed(p, shape=b.shape, dtype=b.dtype) for p, b in zip(parts, blocks, strict=True)]
    )
    model = blockwise.PCE(C, random_state=3).fit(array)
    assert (tmp_path / "died").exists()
    assert_array_equal(model.labels_.compute(), in_memory.labels_)


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_a_worker_that_dies_between_rounds_does_not_change_the_answer(
    client, tmp_path, monkeypatch, table, in_memory, with_checkpoint
):
    frame = pd.DataFrame(table, columns=list("abcdefg"))
    source = blockwise.read_parquet(write_parquet(tmp_path / "in", frame), block_rows=1_500)
    plain, killed = pce_blocks._round_b, []

    def kill_first(engine, states, task, certified):
        if task.model.n_iter == 1 and not killed:
            killed.append(min(client.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)
        return plain(engine, states, task, certified)

    monkeypatch.setattr(pce_blocks, "_round_b", kill_first)
    checkpoint = tmp_path / "run" if with_checkpoint else None
    model = blockwise.PCE(C, random_state=3, max_distinct=FEW, checkpoint=checkpoint).fit(source)
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    assert_array_equal(np.asarray(model.labels_), in_memory.labels_)
    assert_allclose(model.objective_, in_memory.objective_, rtol=1e-9)


def test_an_unreadable_file_is_named_also_by_a_worker(client, tmp_path):
    _, table = planted(3_000, 4, 3, noise=0.2, missing=0.2, seed=6)
    folder = write_parquet(tmp_path / "in", pd.DataFrame(table, columns=list("abcd")))
    start = pq.ParquetFile(folder / "1.parquet").metadata.row_group(1).column(0).data_page_offset
    whole = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(whole[:start] + b"\xff" * 40 + whole[start + 40 :])
    with pytest.raises(ValueError, match=r"file '.*1\.parquet', row group 1 cannot be read"):
        blockwise.PCE(3).fit(blockwise.read_parquet(folder, block_rows=700))


def test_fuse_parquet_finds_the_scheduler_by_its_address(client, tmp_path):
    _, table = planted(1_500, 5, C, noise=0.3, missing=0.2, seed=6)
    folder = write_parquet(tmp_path / "in", named(table))
    steps = []
    blockwise.fuse_parquet(
        folder, tmp_path / "out", C, method="KCC", scheduler=client.scheduler.address, random_state=0,
        progress=lambda *step: steps.append(step),
    )  # fmt: skip
    reference = consilience.fuse(table, C, method="KCC", random_state=0)
    assert_array_equal(pd.read_parquet(tmp_path / "out")["label"], reference.labels)
    assert ("reading", 3, 3) in steps


def test_views_on_a_cluster_give_the_labels_of_the_estimators_in_memory(client):
    import dask.array as da

    views = views_of(800, 3, 2, 3, 0.3)
    lazy = {
        "left": da.from_array(views[0], chunks=(300, 2)),
        "right": da.from_array(views[1], chunks=(200, 3)),
    }
    reference = consilience.APMC(3, random_state=0).fit(dict(zip(lazy, views, strict=True)))
    model = blockwise.APMC(3, random_state=0).fit(lazy)
    assert_array_equal(model.labels_.compute(), reference.labels_)
    assert model.labels_.chunks == ((300, 300, 200),)
    assert model.linkage_ == reference.linkage_
    reference = consilience.EEIMVC(3, kernel="embedding", prior=None, random_state=0).fit(views)
    model = blockwise.EEIMVC(3, prior=None, random_state=0).fit(list(lazy.values()))
    assert_array_equal(model.labels_.compute(), reference.labels_)
    assert model.embedding_.compute().shape == (800, 3)


@pytest.fixture
def empty_cluster(monkeypatch):
    """A cluster without workers, and a client of it; waits are short."""
    import dask
    from distributed import Client, LocalCluster

    from consilience.dask import engine

    monkeypatch.setattr(engine, "_WARN_AFTER", 0.5)
    monkeypatch.setattr(engine, "_LOOK_EVERY", 0.2)
    with (
        dask.config.set({"consilience.wait-for-workers": 2, "distributed.comm.timeouts.connect": "3s"}),
        LocalCluster(
            n_workers=0, processes=False, dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "localhost:0"}, silence_logs="CRITICAL",
        ) as cluster,
        Client(cluster) as connected,
    ):  # fmt: skip
        yield cluster, connected


def test_a_cluster_without_workers_is_an_error_after_a_while(empty_cluster, tmp_path):
    _, table = planted(300, 4, 3, noise=0.2, missing=0.2, seed=6)
    folder = write_parquet(tmp_path / "in", named(table))
    wanted = r"no worker for \d+ s\. Hint: start workers; .*consilience\.wait-for-workers"
    with (
        pytest.warns(UserWarning, match=r"no worker for \d+ s; waiting 2 s in all\. Hint: "),
        pytest.raises(ClusterError, match=wanted),
    ):
        blockwise.fuse_parquet(folder, tmp_path / "out", 3, random_state=0)
    assert not (tmp_path / "out").exists()


def test_workers_that_come_late_are_waited_for(empty_cluster, tmp_path):
    import dask

    cluster, _ = empty_cluster
    _, table = planted(300, 4, 3, noise=0.2, missing=0.2, seed=6)
    folder = write_parquet(tmp_path / "in", named(table))
    late = threading.Timer(1.5, cluster.scale, [1])
    late.start()
    with (
        dask.config.set({"consilience.wait-for-workers": 120}),
        pytest.warns(UserWarning, match="no worker for"),
    ):
        blockwise.fuse_parquet(folder, tmp_path / "out", 3, random_state=0)
    late.join()
    expected = consilience.fuse(table, 3, random_state=0)
    assert_array_equal(pd.read_parquet(tmp_path / "out")["label"], expected.labels)


class TestDamagedCheckpoints:
    @pytest.fixture
    def run(self, tmp_path, table):
        """What goes on from a checkpoint of three blocks and two iterations, and its folder."""
        blocks = np.array_split(table[:1_000], 3)
        options = {"random_state": 3, "max_distinct": FEW, "max_iter": 2, "checkpoint": tmp_path / "run"}

        def call():
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="PCE did not converge")
                model = blockwise.PCE(C, **options).fit(blocks)
                return np.asarray(model.labels_)

        self.expected = call()
        return call, tmp_path / "run"

    def refused(self, run, how):
        call, _ = run
        with pytest.raises(
            ValueError, match=rf"checkpoint .*is damaged: .*{how}.*Hint: give an empty folder"
        ):
            call()

    def manifest(self, folder, change):
        path = folder / "manifest.json"
        found = json.loads(path.read_text())
        change(found)
        path.write_text(json.dumps(found))

    def test_whole_ones_go_on(self, run):
        assert_array_equal(run[0](), self.expected)

    def test_a_manifest_that_lost_a_part(self, run):
        self.manifest(run[1], lambda found: found["states"].pop())
        self.refused(run, "manifest.json is not what was written")

    def test_a_manifest_that_says_another_iteration(self, run):
        self.manifest(run[1], lambda found: found.update(n_iter=7))
        self.refused(run, "manifest.json is not what was written")

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe"])
    def test_a_manifest_that_is_none(self, run, content):
        (run[1] / "manifest.json").write_bytes(content)
        self.refused(run, "manifest.json is not what was written")

    def test_fewer_parts_than_blocks(self, run):
        def change(found):
            found["states"].pop()
            del found["digest"]
            found["digest"] = checkpoint._digest_of(found)

        self.manifest(run[1], change)
        self.refused(run, "it has 2 parts for 3 blocks")

    def part(self, run):
        return run[1] / json.loads((run[1] / "manifest.json").read_text())["states"][1][0]

    def test_a_part_that_is_missing(self, run):
        self.part(run).unlink()
        self.refused(run, "is missing")

    def test_a_part_that_was_cut_off(self, run):
        content = self.part(run).read_bytes()
        self.part(run).write_bytes(content[: len(content) // 2])
        self.refused(run, "it cannot be read")

    def test_a_part_with_a_changed_byte(self, run):
        content = bytearray(self.part(run).read_bytes())
        content[len(content) // 2] ^= 1
        self.part(run).write_bytes(content)
        self.refused(run, "")

    def test_parts_that_changed_places(self, run):
        first, second, _ = (
            run[1] / name for name, *_ in json.loads((run[1] / "manifest.json").read_text())["states"]
        )
        one, other = first.read_bytes(), second.read_bytes()
        first.write_bytes(other)
        second.write_bytes(one)
        self.refused(run, "(rows instead of|its content has changed)")

    def test_a_damaged_model(self, run):
        name = json.loads((run[1] / "manifest.json").read_text())["model"][0]
        (run[1] / name).write_bytes(b"PK")
        self.refused(run, "cannot be read")
