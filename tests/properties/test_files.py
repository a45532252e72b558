"""Files as they should be, and damaged on purpose: an answer or one line, and nothing half written."""

import io
import os
import random
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from consilience import fuse
from consilience.cli.main import run
from tests.properties.sentences import ours
from tests.properties.test_labels import same_partition, tables

KINDS = {
    "csv": lambda table, path: _write_text(table, path),
    "parquet": lambda table, path: pq.write_table(table, path),
    "plain.arrow": lambda table, path: feather.write_feather(table, path, "uncompressed"),
    "packed.arrow": lambda table, path: feather.write_feather(table, path, "lz4"),
    "coded.arrow": lambda table, path: feather.write_feather(_coded(table), path, "uncompressed"),
}


def _write_text(table, path):
    rows = [
        ",".join("" if value is None else str(value) for value in row.values()) for row in table.to_pylist()
    ]
    with open(path, "w") as file:
        file.write("\n".join([",".join(table.column_names), *rows]) + "\n")


def _coded(table):
    return pa.table({name: table[name].cast(pa.string()).dictionary_encode() for name in table.column_names})


def labels():
    """A table of labels, numbers and words, with gaps and ids."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    words = np.array(["red", "green", "blue"])[truth]
    gap = rng.random(40) < 0.2
    return pa.table(
        {
            "id": [f"i{p}" for p in range(40)],
            "a": pa.array(truth, mask=gap),
            "b": pa.array(words, mask=rng.random(40) < 0.2),
            "c": pa.array(truth % 2),
        }
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of every kind of file, and of a saved result."""
    folder = tmp_path_factory.mktemp("whole")
    found = {}
    for kind, write in KINDS.items():
        write(labels(), folder / f"labels.{kind}")
        found[kind] = (folder / f"labels.{kind}").read_bytes()
    code, out, _ = command(["fuse", str(folder / "labels.csv"), "--id", "id", "-k", "3", "-q", "--json"])
    assert code == 0
    return {**found, "json": out}


def command(arguments):
    """Exit code and what was written to the two standard streams."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = streams
    try:
        code = run(arguments)
    finally:
        sys.stdout, sys.stderr = before
    out, err = (stream.buffer.getvalue() for stream in streams)
    return code, out, err.decode()


@st.composite
def damages(draw):
    """Something that happens to files."""
    what = draw(st.sampled_from(["flip", "cut", "drop", "insert", "zero", "swap"]))
    return what, draw(st.integers(0, 2**32)), draw(st.integers(1, 40))


def damaged(content, damage):
    what, seed, size = damage
    rng, content = random.Random(seed), bytearray(content)  # noqa: S311 - a place in a file, no secret
    at = rng.randrange(len(content))
    if what == "flip":
        for _ in range(min(size, 4)):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif what == "cut":
        del content[at:]
    elif what == "drop":
        del content[at : at + size]
    elif what == "insert":
        content[at:at] = rng.randbytes(size)
    elif what == "zero":
        content[at : at + size] = bytes(len(content[at : at + size]))
    else:
        other = rng.randrange(len(content))
        content[at], content[other] = content[other], content[at]
    return bytes(content)


def check(code, out, err, wrote):
    assert code in (0, 1, 2)
    if code == 0:
        assert wrote
    else:
        assert not wrote
        assert out == b""
        last = err.rstrip("\n").split("\n")[-1]
        assert last.startswith("Error: ")
        assert "Hint: " in last


@pytest.mark.parametrize("kind", KINDS)
@given(damage=damages())
def test_a_damaged_table_is_read_or_named(whole, tmp_path, kind, damage):
    path, output = tmp_path / f"labels.{kind}", tmp_path / "out.csv"
    path.write_bytes(damaged(whole[kind], damage))
    output.unlink(missing_ok=True)
    given_ = ["simulate", str(path), "--id", "id", "-o", str(output)]
    check(*command(given_), output.exists())
    assert set(os.listdir(tmp_path)) <= {path.name, output.name}


@given(damage=damages())
def test_a_damaged_result_is_drawn_or_named(whole, tmp_path, damage):
    path, output = tmp_path / "result.json", tmp_path / "page.html"
    path.write_bytes(damaged(whole["json"], damage))
    output.unlink(missing_ok=True)
    check(*command(["report", str(path), "-o", str(output)]), output.exists())
    assert set(os.listdir(tmp_path)) <= {path.name, output.name}


@settings(max_examples=max(3, settings().max_examples // 10))
@given(table=tables(max_rows=12), k=st.integers(1, 3), data=st.data())
def test_a_file_gives_a_line_an_instance_whatever_the_order_and_the_names(tmp_path, table, k, data):
    k, n = min(k, len(table)), len(table)
    order = np.array(data.draw(st.permutations(range(n))))
    bases = data.draw(st.permutations(range(table.shape[1])))
    found = []
    for rows, columns, name in ((np.arange(n), range(table.shape[1]), "w{}"), (order, bases, "{}-x")):
        path, output = tmp_path / "labels.csv", tmp_path / "out.csv"
        given_ = {"id": [f"i{p}" for p in rows]}
        for j in columns:
            given_[f"b{j}"] = [name.format(c) if c >= 0 else None for c in table[rows, j].tolist()]
        _write_text(pa.table(given_), path)
        before = path.read_bytes()
        output.unlink(missing_ok=True)
        options = ["--id", "id", "-k", str(k), "-m", "KCC", "--seed", "0", "-q", "-o", str(output)]
        code, out, err = command(["fuse", str(path), *options])
        check(code, out, err, output.exists())
        assert path.read_bytes() == before
        assert set(os.listdir(tmp_path)) <= {path.name, output.name}
        if code != 0:
            return
        lines = [line.split(",") for line in output.read_text().splitlines()]
        at = [lines[0].index(word) for word in ("id", "label", "confidence")]
        ids, labels_, confidence = zip(*([line[i] for i in at] for line in lines[1:]), strict=True)
        assert list(ids) == given_["id"]
        found.append((np.array(labels_, dtype=int), np.array(confidence, dtype=float)))
    (labels_, confidence), (labels_again, confidence_again) = found
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert same_partition(labels_again, labels_[order])
    assert_allclose(confidence_again, confidence[order], atol=1e-4)
    with ours():
        assert_array_equal(labels_, fuse(table, k, method="KCC", random_state=0).labels)
