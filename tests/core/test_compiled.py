"""Machine code and Python give the same numbers; where nothing can be cached, loops still run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import consilience
from consilience import fuse
from consilience.core import certainty, compiled, hot, linkage
from consilience.core.canonical import Rows
from consilience.core.grouping import group
from tests.core.tables import OFFSETS, random_codes


@pytest.fixture
def both(monkeypatch):
    """What a call gives as machine code, and as Python runs it."""

    def run(call):
        answers = []
        for few in (0, 10**6):
            monkeypatch.setattr(compiled, "FEW", few)
            answers.append(call())
        return answers

    return run


def loops():
    """Calls that return what a loop has written, for all loops that may not reorder their sums."""
    rng = np.random.default_rng(0)
    codes = random_codes(57, missing=0.3, dtype=np.int8)
    n_rows = len(codes)
    weights, table = rng.random(n_rows), rng.standard_normal((14, 5))
    values, labels = rng.standard_normal((n_rows, 5)), rng.integers(-1, 3, n_rows)
    square = rng.standard_normal((14, 14))
    similarity = rng.random((n_rows, n_rows))
    similarity += similarity.T
    left, right = (part.astype(np.int32) for part in np.triu_indices(n_rows, 1))
    s = np.maximum(rng.random(len(left)) - 0.5, 0.0)
    ends = np.append(OFFSETS, 17)
    certainties = rng.random(14)

    def written(loop, *arguments, **outputs):
        def call():
            out = {name: array.copy() for name, array in outputs.items()}
            returned = loop(*arguments, *out.values())
            return [*out.values(), returned]

        return call

    ones, zeros = np.ones(n_rows), np.zeros(n_rows)
    linked = {
        "starts": np.zeros(n_rows + 1, dtype=np.int64),
        "others": right,
        "weights": s,
        "diagonal": zeros,
    }
    links = written(hot.link, left, right, s, ones, ones, **linked)()
    bits = np.packbits(codes >= 0, axis=1, bitorder="little")
    agree = rng.integers(0, 16, (len(left), 1)).astype(np.uint8)
    rows = Rows(codes, OFFSETS, ones)
    return {
        "gather_sum": written(hot.gather_sum, codes, OFFSETS, table, out=values),
        "scatter_sum": written(hot.scatter_sum, codes, OFFSETS, weights, values, out=table),
        "contingency": written(hot.contingency, codes, OFFSETS, weights, out=square),
        "quadratic": written(hot.quadratic, codes, OFFSETS, square + square.T, out=weights),
        "cross": written(hot.cross, codes, OFFSETS, labels, weights, out=table),
        "elect": written(hot.elect, codes, OFFSETS, table, np.zeros(5), out=labels),
        "complete": written(hot.complete, codes, labels % 3, ends, rng.random((17, 14)), out=codes),
        "sum_bits": written(hot.sum_bits, left, right, agree, bits, rng.random((1, 256)), a=s, b=s),
        "link": written(hot.link, left, right, s, ones, ones, **linked),
        "multiply": written(hot.multiply, links[1], links[2], links[0], links[3], values, out=values),
        "join": written(hot.join, left, right, s, parent=np.arange(n_rows, dtype=np.int32)),
        "smallest": written(hot.smallest, similarity, weights, out=np.zeros((n_rows, 4), dtype=np.int64)),
        "largest": written(hot.largest, similarity, OFFSETS, out=np.zeros((n_rows, 4), dtype=np.int64)),
        "certain_coassociation": lambda: [certainty.certain_coassociation(rows, certainties)],
        "average_linkage": lambda: [linkage.average_linkage(similarity.copy(), ones)],
        "single_linkage": lambda: [linkage.single_linkage(similarity.copy(), ones)],
    }


@pytest.mark.parametrize("name", loops())
def test_both_give_the_same_numbers_to_the_last_bit(name, both):
    compiled_answer, interpreted = both(loops()[name])
    for one, other in zip(compiled_answer, interpreted, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(5))
def test_small_tables_have_one_answer(seed, both):
    rng = np.random.default_rng(seed)
    truth = np.arange(20) % 3
    table = np.where(rng.random((20, 5)) < 0.8, truth[:, None], rng.integers(0, 3, (20, 5)))
    table = np.where(rng.random(table.shape) < 0.2, -1, table)
    table[(table < 0).all(axis=1)] = 0
    one, other = both(lambda: fuse(table, n_clusters=3, random_state=seed))
    assert one.method == other.method
    assert_array_equal(one.labels, other.labels)
    assert_allclose(one.confidence, other.confidence, atol=1e-9)


def test_few_keys_are_grouped_like_many():
    keys = np.random.default_rng(0).integers(-5, 5, compiled.FEW)
    few, many = group(keys), group(np.tile(keys, 1_000))
    assert_array_equal(few.values, many.values)
    assert_array_equal(few.counts * 1_000, many.counts)
    assert_array_equal(few.inverse, many.inverse[: len(keys)])


def test_a_small_table_is_fused_without_the_compiler_and_methods_it_does_not_need():
    code = (
        "import sys; from consilience import fuse;"
        "fuse([[0, 0], [0, 0], [1, 1], [1, None]], n_clusters=2, random_state=0);"
        "print([name for name in ('numba', 'consilience.consensus.rsec') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_loops_run_where_machine_code_cannot_be_kept(tmp_path):
    # Folders that nobody can make, not even the superuser: a file is in their place.
    source = Path(consilience.__file__).parent
    shutil.copytree(source, tmp_path / "consilience", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (tmp_path / "consilience").rglob("*/"):
        (folder / "__pycache__").touch()
    (tmp_path / "home").touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG", "NUMBA"))}
    environment |= {"HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path)}
    code = (
        "import numpy as np; from consilience.core import compiled, hot, tables;"
        "codes = np.tile(np.array([[0, 1], [1, -1]], dtype=np.int8), (compiled.FEW, 1));"
        "print(hot.__file__);"
        "print(tables.contingency(codes, np.array([0, 2, 4]), np.ones(len(codes))).astype(int).tolist())"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    n = compiled.FEW
    assert shown.stdout.splitlines() == [
        str(tmp_path / "consilience" / "core" / "hot.py"),
        str([[n, 0, 0, n], [0, n, 0, 0], [0, 0, 0, 0], [n, 0, 0, n]]),
    ]
