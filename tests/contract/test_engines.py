"""One set of files, read in memory, twice in pieces, by workers and by Python: one table, or one error."""

import io
import re
import shutil
import warnings
import zipfile
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consilience import Partitions, fuse, scan
from consilience.cli.main import run
from consilience.dask import read_parquet
from consilience.dask.engine import engine_for
from consilience.dask.reading import read_on_workers
from consilience.evidence.reading import read_labels

TEXTS = ["gold", "basic", "1", "2", "-1", "2.0", "1_2", "007", "?", "Gold", ""]
KINDS = {
    "numbers": st.sampled_from(["0", "1", "2", "-1", ""]),
    "names": st.sampled_from(["gold", "basic", "x y", "", "-1", "?", "Gold"]),
    "both": st.sampled_from(TEXTS),
    "features": st.sampled_from(["0.5", "1", "2"]),
}


@st.composite
def tables(draw):
    """Labels as text, an id for every row, and where rows are cut into files and row groups."""
    n, m = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    cells = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    columns = {f"b{j}": draw(st.lists(cells, min_size=n, max_size=n)) for j in range(m)}
    ids = [f"c{draw(st.integers(0, 3 * n)) if draw(st.booleans()) else 100 + p}" for p in range(n)]
    cuts = sorted({0, n, *draw(st.lists(st.integers(1, n), max_size=2))})
    return {"who": ids, **columns}, cuts, draw(st.sampled_from(["missing", "noise"])), draw(st.booleans())


def outcome(read):
    """A table in the order of its instances, with what was said; or the error."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = read()
        except (ValueError, TypeError) as error:
            return type(error).__name__, getattr(error, "message", str(error)), None
    labels = found.decode(found.codes)
    ids = None if found.index is None else [str(each) for each in found.index]
    return [str(one.message) for one in said], labels.tolist(), ids, found.names


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=tables())
def test_a_folder_of_csv_files_is_one_table_however_it_is_read(drawn, tmp_path_factory):
    table, cuts, negative, keep = drawn
    folder = tmp_path_factory.mktemp("folder")
    frame = pd.DataFrame(table)
    frame.to_csv(folder / "whole.csv", index=False)
    (folder / "parts").mkdir()
    for number, (a, b) in enumerate(pairwise(cuts)):
        frame[a:b].to_csv(folder / "parts" / f"{number}.csv", index=False)
    unobserved = "keep" if keep else "error"
    how = {"negative": negative, "unobserved": unobserved}

    def of(path, **more):
        return outcome(lambda: read_labels(scan(path, id="who").sources, **how, **more).in_full())

    expected = of(folder / "whole.csv")
    assert of(folder / "whole.csv", again=True) == expected
    by_python = outcome(
        lambda: Partitions.of(scan(folder / "whole.csv", id="who"), negative=negative, unobserved=unobserved)
    )
    assert without_places(by_python) == without_places(expected)
    for more in ({}, {"again": True}):
        assert without_places(of(folder / "parts", **more)) == without_places(expected)


def without_places(found):
    """The name of the file is another one in each."""
    if found[-1] is None:
        said = re.sub(r"(times:|saw|in) lines? .*", r"\1", found[1])
        return found[0], re.sub(r"(line [0-9]+ of )?/\S+|'whole'|'parts'", "", said)
    return found[1:]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=tables())
def test_parquet_by_workers_is_the_table_in_memory(drawn, tmp_path_factory):
    table, cuts, negative, keep = drawn
    path = tmp_path_factory.mktemp("parquet") / "labels.parquet"
    arrow = pa.table({name: [value or None for value in values] for name, values in table.items()})
    with pq.ParquetWriter(path, arrow.schema) as writer:
        for a, b in pairwise(cuts):
            writer.write_table(arrow.slice(a, b - a))
    how = {"negative": negative, "unobserved": "keep" if keep else "error"}
    source = scan(path, id="who").sources[0]
    blocks = read_parquet(path, ids="who", block_rows=1)

    def on_workers():
        return read_on_workers(blocks, source, engine_for("stream"), **how, most=np.inf).in_full()

    def in_memory(**more):
        return outcome(lambda: read_labels([source], **how, **more).in_full())

    assert outcome(on_workers) == in_memory()
    assert in_memory(again=True) == in_memory()


@pytest.fixture
def banks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 300)
    frame = pd.DataFrame({"customer": [f"C{p:03d}" for p in range(300)]})
    for j in range(4):
        noisy = np.where(rng.random(300) < 0.2, rng.integers(0, 3, 300), truth)
        frame[f"bank_{j}"] = np.where(rng.random(300) < 0.3, None, np.array(["a", "b", "c"], object)[noisy])
    frame = frame[frame.iloc[:, 1:].notna().any(axis=1)].reset_index(drop=True)
    frame.to_csv("banks.csv", index=False)
    return frame


def test_python_and_the_shell_give_one_answer(banks):
    assert run(["fuse", "banks.csv", "--id", "customer", "-k", "3", "-q", "-o", "out.csv"]) == 0
    written = pd.read_csv("out.csv")
    fusion = fuse(scan("banks.csv", id="customer"), 3, random_state=0)
    assert written["customer"].tolist() == [str(each) for each in fusion.index]
    assert written["label"].tolist() == fusion.labels.tolist()
    np.testing.assert_allclose(written["confidence"], fusion.confidence, atol=1e-6)
    by_frame = fuse(banks, 3, index="customer", random_state=0)
    assert by_frame.labels.tolist() == fusion.labels.tolist()


ASKED = {
    "report": ["--report", "page.html"],
    "json": ["--json"],
    "save": ["--save", "kept.consilience", "-o", "out.csv"],
    "like": ["--like", "earlier.csv", "-o", "out.csv"],
    "profile": ["--profile", "facts.csv", "-o", "out.csv"],
    "noise": ["--noise", "-o", "out.csv"],
    "weights": ["--weights", "bank_0=2,bank_3=0.5", "-o", "out.csv"],
    "several files": ["-o", "out.csv"],
    "Excel": ["-o", "out.xlsx"],
    "folder": ["-o", "merged", "--name-after", "bank_1"],
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_asked_for_is_the_same_from_every_engine(banks, tmp_path, capfd, monkeypatch, asked):
    banks["bank_4"] = np.where(np.arange(len(banks)) % 7 == 0, -1, np.arange(len(banks)) % 3)
    pd.DataFrame({"customer": banks["customer"][:250], "label": np.arange(250) % 3}).to_csv(
        "earlier.csv", index=False
    )
    pd.DataFrame({"customer": banks["customer"], "age": np.arange(len(banks))}).to_csv(
        "facts.csv", index=False
    )
    tables = ["banks.csv"]
    if asked == "several files":
        tables = ["one.csv", "two.csv"]
        banks[["customer", "bank_0", "bank_1"]].dropna(thresh=2).to_csv("one.csv", index=False)
        banks[["customer", "bank_2", "bank_3"]][::-1].dropna(thresh=2).to_csv("two.csv", index=False)
    else:
        banks.to_csv("banks.csv", index=False)
    monkeypatch.setattr("consilience.cli.results.command", lambda: "the command")
    kept = {path.name for path in tmp_path.iterdir()}
    found = {}
    for engine in ("memory", "blocks", "dask"):
        if asked == "folder" and engine == "memory":
            continue  # where -o names a file
        call = ["fuse", *tables, "--id", "customer", "-k", "3", *ASKED[asked], "--engine", engine]
        assert run(call) == 0, capfd.readouterr().err
        said = capfd.readouterr()
        files = sorted(path for path in tmp_path.rglob("*") if path.is_file() and path.name not in kept)
        found[engine] = said.err, content(said.out), {path.name: content(path.read_bytes()) for path in files}
        for path in files:
            path.unlink()
        shutil.rmtree("merged", ignore_errors=True)
    first, *others = found.values()
    assert first[2] or first[1]
    for other in others:
        assert other == first


def content(written):
    """What was written, without when and in which order a zip was."""
    if isinstance(written, bytes) and written[:2] == b"PK":
        archive = zipfile.ZipFile(io.BytesIO(written))
        return {name: archive.read(name) for name in archive.namelist() if "core.xml" not in name}
    text = written if isinstance(written, str) else written.decode("latin-1")
    return re.sub(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.+]+|[0-9]{2}:[0-9]{2}", "", text)
