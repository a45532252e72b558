"""A folder from which an interrupted run goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from consilience._errors import InputError
from consilience._files import whole_file
from consilience.dask.engine import Stored
from consilience.dask.pce_blocks import Model, State

_VERSION = 1


class Checkpoint:
    """The model and the states of the blocks after the last complete iteration.

    States of two iterations take turns; ``manifest.json`` is replaced last and says which is
    complete, so that a run which ends at any moment leaves one that is.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)

    def save(self, run: dict[str, Any], model: Model, states: list[Any]) -> None:
        """Remember an iteration of a run; `run` says which input and which parameters."""
        file = f"model-{model.n_iter % 2}.npz"
        _replace(self.folder / file, lambda opened: np.savez(opened, **model._asdict()))
        manifest = {
            "version": _VERSION,
            "run": run,
            "n_iter": model.n_iter,
            "model": file,
            "states": [str(Path(state.path).relative_to(self.folder)) for state in states],
        }
        _replace(self.folder / "manifest.json", lambda opened: opened.write(json.dumps(manifest).encode()))

    def load(self, run: dict[str, Any]) -> tuple[Model, list[Any]] | None:
        """The last iteration of the same run; None if there is none."""
        path = self.folder / "manifest.json"
        if not path.exists():
            return None
        manifest = json.loads(path.read_text())
        if manifest.get("version") != _VERSION:
            raise InputError(
                f"the checkpoint {str(self.folder)!r} has version {manifest.get('version')}, this program "
                f"reads version {_VERSION}.",
                hint="give an empty folder.",
            )
        for name, now in run.items():
            then = manifest["run"].get(name)
            if then != now:
                what = "the input has changed" if name == "input" else f"{name} was {then!r} and is {now!r}"
                raise InputError(
                    f"the checkpoint {str(self.folder)!r} is of another run: {what}.",
                    hint="give an empty folder, or what it was made with.",
                )
        with np.load(self.folder / manifest["model"]) as arrays:
            numbers = {name: array.item() for name, array in arrays.items() if not array.ndim}
            model = Model(**{**arrays, **numbers})
        return model, [Stored(str(self.folder / name), State) for name in manifest["states"]]


def _replace(path: Path, write: Any) -> None:
    """A file that is on the disk, complete, before anything that comes after it."""
    with whole_file(path) as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
