"""The files of the experiments: where each is from, what it holds, and whether it is there.

The project does not hand data on. It says what each file is, so that anyone can make it from its source and
see that it is the same.
"""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from consilience import datasets
from consilience.bench.experiment import Experiment
from consilience.bench.samples import BUILT_IN

State = Literal["here", "here, repacked", "different", "absent"]

CONVERT = """\
How to make a file: read the source, and write numpy.savez_compressed("NAME.npz", ...) with the arrays
that "holds" names. Rows stay in the order of the source; y is 0, 1, ... in the order of the sorted
classes. A sparse matrix X is stored in the four parts X_data, X_indices, X_indptr and X_shape of a CSR
matrix. Whole numbers are kept as they are, other numbers are rounded to single precision, except
kernels. Base labels (pool) are those of the source, -1 is missing."""


class DataFile(NamedTuple):
    """A benchmark file."""

    name: str
    holds: str  # its arrays, with shape and type
    source: str
    licence: str  # as far as the source states one
    size: int  # bytes
    sha256: str  # of the file
    content: str  # `content_digest`, which does not depend on how the file was packed
    note: str = ""


@cache
def data_files() -> dict[str, DataFile]:
    """Every benchmark file, by name."""
    text = (resources.files("consilience.bench") / "data.toml").read_text(encoding="utf-8")
    return {name: DataFile(name, **row) for name, row in tomllib.loads(text).items()}


def needed(experiment: Experiment) -> list[str]:
    """Names of the files that an experiment reads."""
    read = [name for data in experiment.data for name in (data.file, data.patterns)]
    return [name for name in dict.fromkeys(read) if name is not None and name not in BUILT_IN]


def require_data(experiment: Experiment) -> None:
    """An error that names the files that an experiment lacks."""
    absent = [name for name in needed(experiment) if datasets.find(name) is None]
    if absent:
        files = ", ".join(f"{name}.npz" for name in absent)
        raise FileNotFoundError(
            f"{experiment.name} needs files that are not there: {files}. Hint: consilience bench data "
            f"{experiment.name} says where they are from and where to put them."
        )


def state(file: DataFile) -> State:
    """Whether a file is there, and whether it is the one that the experiments were run on."""
    path = datasets.find(file.name)
    if path is None:
        return "absent"
    if not file.sha256 or hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256:
        return "here"  # of a file of the user's own, nothing else is known
    try:
        return "here, repacked" if content_digest(path) == file.content else "different"
    except Exception:  # whatever is wrong with it, it is not that file
        return "different"


def content_digest(path: Path | str) -> str:
    """The SHA-256 of the arrays of an .npz file: names, shapes and values, whatever they are stored as."""
    digest = hashlib.sha256()
    # NumPy leaves a damaged file open, if it opens it itself.
    with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
        for name in sorted(file.files):
            array = file[name]
            kind = array.dtype.kind
            wide = array.astype("<i8") if kind in "biu" else array.astype("<f8") if kind == "f" else array
            text = "\n".join(map(str, array.ravel().tolist())) if wide is array else ""
            digest.update(f"{name}{array.shape}{text}".encode())
            digest.update(b"" if wide is array else np.ascontiguousarray(wide).tobytes())
    return digest.hexdigest()
