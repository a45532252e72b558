"""What cannot fit in memory is refused before it is read."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from consilience._support.memory import free_memory
from consilience.cli import job
from consilience.cli.main import run
from consilience.io import files

N, M = 20_000, 5


@pytest.fixture
def path(request, tmp_path, monkeypatch):
    """A table of labels in a file of some kind."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pa.table({f"b{j}": rng.integers(0, j + 2, N) for j in range(M)})
    name = f"labels.{request.param}"
    lines = [
        "b0,b1,b2,b3,b4",
        *(",".join(map(str, row)) for row in zip(*table.to_pydict().values(), strict=True)),
    ]
    text = "\n".join(lines).encode()
    if request.param == "parquet":
        pq.write_table(table, name)
    elif request.param == "arrow":
        feather.write_feather(table, name)
    else:
        (tmp_path / name).write_bytes(gzip.compress(text, 1) if name.endswith("gz") else text)
    return name


kinds = pytest.mark.parametrize("path", ["csv", "csv.gz", "parquet", "arrow"], indirect=True)


@kinds
def test_the_size_of_a_table_is_known_before_it_is_read(path):
    rows, columns = job._size(path, files.Source())
    assert columns == M
    if path.endswith(("parquet", "arrow")):
        assert rows == N
    else:
        assert N / 4 < rows < 4 * N  # of compressed text it is a guess
    assert job._size(path, files.Source(columns=("b0", "b1")))[1] == 2


@kinds
@pytest.mark.parametrize("command", ["fuse", "compare", "simulate", "cluster"])
def test_more_than_there_is_is_refused(path, command, monkeypatch, capfd):
    monkeypatch.setattr(files, "pieces", lambda *_, **__: pytest.fail("it was read"))
    monkeypatch.setenv("CONSILIENCE_MEMORY", "100K")
    assert run([command, path, *(["--engine", "memory"] if command == "fuse" else [])]) == 2
    err = capfd.readouterr().err
    assert "rows of 5 columns take some" in err
    assert "GB are free. Hint: " in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("path", ["parquet"], indirect=True)
def test_enough_is_enough(path, monkeypatch, capfd):
    for size in ("1G", "1.5 GB", "2GiB", "2000000000"):
        monkeypatch.setenv("CONSILIENCE_MEMORY", size)
        assert run(["simulate", path, "-q", "-o", "left.parquet"]) == 0
    monkeypatch.setenv("CONSILIENCE_MEMORY", "much")
    assert run(["simulate", path]) == 2
    assert "CONSILIENCE_MEMORY is 'much', not a size. Hint: as in 16G." in capfd.readouterr().err


def test_the_machine_says_how_much_is_free(monkeypatch):
    monkeypatch.delenv("CONSILIENCE_MEMORY", raising=False)
    free = free_memory()
    assert free is None or 1e6 < free < 1e15
