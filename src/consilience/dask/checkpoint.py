"""A folder from which an interrupted run goes on."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from consilience._support.errors import InputError
from consilience._support.files import whole_file
from consilience.dask.engine import Stored, digest
from consilience.dask.pce_blocks import Model, State

_VERSION = 2


class Checkpoint:
    """The model and the states of the blocks after the last complete iteration.

    States of two iterations take turns; ``manifest.json`` is replaced last and says which is
    complete, so that a run which ends at any moment leaves one that is.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)

    def save(self, run: dict[str, Any], model: Model, states: list[Stored]) -> None:
        """Remember an iteration of a run; `run` says which input and which parameters."""
        file = f"model-{model.n_iter % 2}.npz"
        _replace(self.folder / file, lambda opened: np.savez(opened, **model._asdict()))
        manifest = {
            "version": _VERSION,
            "run": run,
            "n_iter": model.n_iter,
            "model": [file, digest(model)],
            "states": [
                [str(Path(state.path).relative_to(self.folder)), state.rows, state.digest] for state in states
            ],
        }
        manifest["digest"] = _digest_of(manifest)
        _replace(self.folder / "manifest.json", lambda opened: opened.write(json.dumps(manifest).encode()))

    def load(self, run: dict[str, Any], n_blocks: int) -> tuple[Model, list[Any]] | None:
        """The last iteration of the same run; None if there is none."""
        for path in self.folder.glob("*.npz"):
            if path.is_dir():  # where a file will be written, if not now then in the next iteration
                raise self._damaged(f"{path.name} is a folder")
        path = self.folder / "manifest.json"
        if not path.exists():
            return None
        manifest = self._read_manifest(path)
        for name, now in run.items():
            then = manifest["run"].get(name)
            if then != now:
                what = "the input has changed" if name == "input" else f"{name} was {then!r} and is {now!r}"
                raise InputError(
                    f"the checkpoint {str(self.folder)!r} is of another run: {what}.",
                    hint="give an empty folder, or what it was made with.",
                )
        if len(manifest["states"]) != n_blocks:
            raise self._damaged(f"it has {len(manifest['states'])} parts for {n_blocks} blocks")
        states = [
            Stored(str(self.folder / name), State, rows, content, checked=False)
            for name, rows, content in manifest["states"]
        ]
        for state in states:  # what they hold is checked where they are read
            if not Path(state.path).is_file():
                raise self._damaged(f"its part {state.path!r} is missing")
        return self._read_model(*manifest["model"]), states

    def _read_manifest(self, path: Path) -> dict[str, Any]:
        try:
            manifest = json.loads(path.read_bytes())
            version = manifest.get("version")
        except Exception as error:  # whatever there is in its place
            raise self._damaged(f"{path.name} is not what was written ({error})") from error
        if version != _VERSION:
            raise InputError(
                f"the checkpoint {str(self.folder)!r} has version {version}, this program reads version "
                f"{_VERSION}.",
                hint="give an empty folder.",
            )
        if manifest.pop("digest", None) != _digest_of(manifest) or not _is_sound(manifest):
            raise self._damaged(f"{path.name} is not what was written")
        return dict(manifest)

    def _read_model(self, name: str, wanted: str) -> Model:
        try:
            with open(self.folder / name, "rb") as file, np.load(file) as arrays:
                numbers = {name: array.item() for name, array in arrays.items() if not array.ndim}
                model = Model(**{**arrays, **numbers})
        except Exception as error:  # whatever a damaged file makes of zip and NumPy
            raise self._damaged(f"{name} cannot be read ({error})") from error
        if digest(model) != wanted:
            raise self._damaged(f"{name} is not what was written")
        return model

    def _damaged(self, how: str) -> InputError:
        return InputError(
            f"the checkpoint {str(self.folder)!r} is damaged: {how}.",
            hint="give an empty folder, and the run starts anew.",
        )


def _is_sound(manifest: dict[str, Any]) -> bool:
    """Whether it names a model and states in this folder, whatever it says of them."""
    match manifest:
        case {"run": dict(), "model": [str(model), str()], "states": list(states)}:
            return Path(model).name == model and all(map(_is_state, states))
    return False


def _is_state(state: Any) -> bool:
    match state:
        case [str(name), int(), str()]:
            return Path(name).name == name
    return False


def _digest_of(manifest: dict[str, Any]) -> str:
    text = json.dumps(manifest, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _replace(path: Path, write: Any) -> None:
    """A file that is on the disk, complete, before anything that comes after it."""
    with whole_file(path) as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
