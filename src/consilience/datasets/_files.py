"""Benchmark files, from a folder of the user's. Nothing is downloaded."""

import os
import re
import sys
import zipfile
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from consilience._support.errors import InputError
from consilience.datasets._dataset import Dataset

_VARIABLE = "CONSILIENCE_DATA"
_ENDING = ".npz"


def load(name: str) -> Dataset:
    """A benchmark data set from a file of your own.

    The file ``<name>.npz`` is looked for in the folder that the environment variable ``CONSILIENCE_DATA``
    names, then in the cache folder of the user (:func:`cache_folder`).

    Parameters
    ----------
    name : str
        The name of the file, with or without ".npz". :func:`available` lists the names there are.

    Returns
    -------
    dataset : Dataset
        What it holds follows from the names in the file:

        ============================== ========= =========================================================
        names in the file              kind      attributes
        ============================== ========= =========================================================
        X                              table     X, y
        pool                           pool      labels (only -1 is missing), y
        view0, view1, ...              views     views, view_names, observed (all True if not there), y
        K0, K1, ...                    kernels   kernels, view_names, patterns, ratios, y
        observed<number of views>      patterns  patterns, ratios
        ============================== ========= =========================================================

        A matrix may be stored in the four parts ``_data``, ``_indices``, ``_indptr`` and ``_shape`` of a CSR
        matrix; it is read as a CSR array. Features and kernels are float64, whatever they are stored as.

    Raises
    ------
    FileNotFoundError
        Saying which file to put where.

    Examples
    --------
    >>> from consilience.datasets import load
    >>> load("no_such_data")
    Traceback (most recent call last):
    ...
    FileNotFoundError: there is no file 'no_such_data.npz' in ...
    """
    path = _find(name)
    try:
        with np.load(path, allow_pickle=False) as file:
            content = {key: file[key] for key in file.files}
    except (zipfile.BadZipFile, ValueError, EOFError, AttributeError) as error:
        raise InputError(
            f"{path} is not a readable .npz file: {error}.", hint="copy it there again"
        ) from error
    return _dataset(path, content)


def find(name: str) -> Path | None:
    """Where :func:`load` would read a data set from; None where there is no such file.

    Parameters
    ----------
    name : str
        As in :func:`load`.

    Examples
    --------
    >>> from consilience.datasets import find
    >>> find("no_such_data") is None
    True
    """
    stem = name.removesuffix(_ENDING)
    if not stem or Path(stem).name != stem:
        raise InputError(
            f"name must be the bare name of a file. Got {name!r} instead.",
            hint=f"set {_VARIABLE} to its folder and give the last part of the path",
        )
    paths = (folder / (stem + _ENDING) for folder in _folders())
    return next((path for path in paths if path.is_file()), None)


def available() -> list[str]:
    """The names that :func:`load` finds now.

    >>> from consilience.datasets import available
    >>> isinstance(available(), list)
    True
    """
    return sorted(
        {path.stem for folder in _folders() if folder.is_dir() for path in folder.glob(f"*{_ENDING}")}
    )


def cache_folder() -> Path:
    """The folder of the user where data are looked for when ``CONSILIENCE_DATA`` has no such file.

    ``%LOCALAPPDATA%\\consilience`` on Windows, ``~/Library/Caches/consilience`` on macOS, elsewhere
    ``$XDG_CACHE_HOME/consilience`` or ``~/.cache/consilience``. It is never created.

    >>> from consilience.datasets import cache_folder
    >>> cache_folder().name
    'consilience'
    """
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "consilience"


# --- finding the file --------------------------------------------------------------------------------


def _folders() -> list[Path]:
    named = os.environ.get(_VARIABLE)
    return [*([Path(named).expanduser()] if named else []), cache_folder()]


def _find(name: str) -> Path:
    path = find(name)
    if path is not None:
        return path
    stem = name.removesuffix(_ENDING)
    looked = " or ".join(f"{folder}{'' if folder.is_dir() else ' (no such folder)'}" for folder in _folders())
    raise FileNotFoundError(f"there is no file {stem + _ENDING!r} in {looked}. Hint: {_hint(stem)}")


def _hint(stem: str) -> str:
    by_lower = {name.lower(): name for name in available()}
    if stem in ("digits", "digits_views"):
        return f"the digits are built in; call load_{stem}()"
    close = get_close_matches(stem.lower(), by_lower, n=1, cutoff=0.7)
    other = f"did you mean {by_lower[close[0]]!r}? If not, " if close else ""
    place = _folders()[0] / (stem + _ENDING)
    variable = "" if os.environ.get(_VARIABLE) else f", or set {_VARIABLE} to the folder that has it"
    return f"{other}put the file at {place}{variable}"


# --- reading the content -----------------------------------------------------------------------------


def _dataset(path: Path, content: dict[str, NDArray[Any]]) -> Dataset:
    """Take from the content what is known by name, and leave the rest as extra."""
    name = path.stem
    y = content.pop("y").astype(np.int64) if "y" in content else None
    if "pool" in content:
        labels = content.pop("pool").astype(np.int32)
        return Dataset(name, "pool", y=y, labels=labels, extra=content)
    if _has(content, "X"):
        return Dataset(name, "table", y=y, X=_take_matrix(content, "X"), extra=content)

    masks: dict[str, Any] = {
        "patterns": _take_patterns(content),
        "ratios": content.pop("ratios", None),
        "extra": content,
    }
    if views := tuple(_take_numbered(content, "view")):
        observed = content.pop("observed", np.ones((views[0].shape[0], len(views)), dtype=bool))
        names = _take_names(content, "view", len(views))
        return Dataset(name, "views", y=y, views=views, view_names=names, observed=observed, **masks)
    if kernels := tuple(_take_numbered(content, "K")):
        names = _take_names(content, "K", len(kernels))
        return Dataset(name, "kernels", y=y, kernels=kernels, view_names=names, **masks)
    if masks["patterns"]:
        return Dataset(name, "patterns", y=y, **masks)
    raise InputError(
        f"{path} holds none of the names X, pool, view0, K0 or observed<number of views>, only "
        f"{sorted(content)}.",
        hint="rename the arrays, as the documentation of load describes",
    )


def _has(content: dict[str, NDArray[Any]], key: str) -> bool:
    return key in content or f"{key}_data" in content


def _take_matrix(content: dict[str, NDArray[Any]], key: str) -> Any:
    if key in content:
        return content.pop(key).astype(np.float64)
    data, indices, indptr, shape = (
        content.pop(f"{key}_{part}") for part in ("data", "indices", "indptr", "shape")
    )
    # indices are stored as small as possible; SciPy's and scikit-learn's routines want int32
    parts = (data.astype(np.float64), indices.astype(np.int32), indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=tuple(shape.tolist()))


def _take_numbered(content: dict[str, NDArray[Any]], stem: str) -> Iterator[Any]:
    number = 0
    while _has(content, f"{stem}{number}"):
        yield _take_matrix(content, f"{stem}{number}")
        number += 1


def _take_names(content: dict[str, NDArray[Any]], stem: str, n_views: int) -> tuple[str, ...]:
    default = np.array([f"{stem}{v}" for v in range(n_views)])
    return tuple(content.pop("view_names", default).tolist())


def _take_patterns(content: dict[str, NDArray[Any]]) -> dict[int, NDArray[np.bool_]] | None:
    """Masks by the number of their views. `observed`, of the file's own views, is not one of them."""
    keys = [key for key in content if re.fullmatch(r"observed(\d+|_patterns)", key)]
    patterns = [content.pop(key) for key in keys]
    return {masks.shape[-1]: masks for masks in patterns} or None
