"""Keep a result in one file, and have it back: arrays and JSON in a zip, nothing that can be executed.

The file is a zip with a ``manifest.json`` and one ``.npy`` per array. The manifest says which version wrote
it and holds the result as a tree: plain values are themselves, all else is ``{"$": kind, ...}``. Objects of
this package are kept by the name of their class and their attributes; no other class can be in a file, so
loading one runs no code but ours, and no pickle. The manifest lists the checksums of the arrays and ends in a
digest, so that parts of other files, or edits, are found.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from consilience import __version__
from consilience._support.errors import InputError, InputTypeError
from consilience._support.files import whole_file
from consilience._support.memory import free_memory
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import Finding

__all__ = ["load", "save"]

# Raised with every change that an older version could not read; older numbers stay readable.
VERSION = 1
_MANIFEST = "manifest.json"
# Where the classes are that a file may name.
_METHODS = ("consensus", "features", "multiview")
_SUBPACKAGES = (*_METHODS, "core", "diagnostics", "evidence", "inference", "results")
# Where the modules of older files are now.
_MOVED: Mapping[str, str] = {
    "fusion.result": "results.fusion",
    "fusion._neighbours": "multiview.neighbours",
    "results._neighbours": "multiview.neighbours",
    **{f"fusion.{name}": f"results.{name}" for name in ("comparison", "following")},
    **{
        f"diagnostics.{name}": f"inference.{name}"
        for name in ("counting", "counts", "neighbours", "posterior", "skill")
    },
    "partitions": "evidence.partitions",
    "views": "evidence.views",
}
_TEXT: dict[str, tuple[type, Callable[[str], Any]]] = {  # values that are their text
    "datetime": (datetime, datetime.fromisoformat),  # a datetime is a date too, so it stands first
    "date": (date, date.fromisoformat),
    "decimal": (Decimal, Decimal),
}

# How much larger a manifest can be in memory than its text: an empty list is two letters.
_PARSED = 25
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_SPARSE = {f"{f}_{kind}": getattr(sp, f"{f}_{kind}") for f in ("csr", "csc") for kind in ("array", "matrix")}


def save(result: Any, path: str | os.PathLike[str]) -> None:
    """Write a result to a file that any later version reads.

    Parameters
    ----------
    result : Fusion or fitted method
        What :func:`consilience.fuse` or :func:`consilience.fuse_views` returned, or a fitted method of
        :mod:`consilience.consensus` or :mod:`consilience.multiview`.
    path : path
        Where to write. The file is there completely or not at all.

    See Also
    --------
    load : Read it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience
    >>> fusion = consilience.fuse([["a", "x"], ["a", "x"], ["b", None], ["b", "y"]], 2, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fusion.save(Path(folder) / "segments.consilience")
    ...     again = consilience.load(Path(folder) / "segments.consilience")
    >>> again.labels.tolist() == fusion.labels.tolist()
    True
    >>> again.predict([["b", None]])
    array([1])
    """
    if not _is_result(result):
        raise InputTypeError(
            f"cannot save {type(result).__name__}.", hint="save what fuse returned, or a method after fit."
        )
    with whole_file(path, private=True) as file:
        write_result(result, file)


def write_result(result: Any, file: IO[bytes]) -> None:
    """Write a result to a file that is open."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        writer = _Writer(archive)
        tree = writer.encode(result, type(result).__name__)
        manifest = {"format": "consilience", "version": VERSION, "written_by": __version__, "result": tree}
        manifest["arrays"] = _checksums(archive)
        manifest["digest"] = _digest(manifest)
        archive.writestr(_MANIFEST, json.dumps(manifest, allow_nan=False))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a result that :func:`save` wrote.

    Nothing in the file is executed: it holds numbers, text, and names of classes of this package.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    result : Fusion or fitted method
        As it was saved: the same labels, confidence and predictions.

    See Also
    --------
    save : Write it, with an example.
    """
    with open(path, "rb") as file:
        return _read_result(file, os.fspath(path))


def _read_result(file: IO[bytes], name: str | bytes) -> Any:
    try:
        with zipfile.ZipFile(file) as archive:
            _require_memory(archive, name)
            manifest = json.loads(_content(archive, _MANIFEST))
            if manifest["format"] != "consilience":
                raise KeyError("format")
            if manifest["version"] > VERSION:
                raise InputError(
                    f"{name!r} was written by version {manifest['written_by']}, which is newer "
                    f"than this one ({__version__}).",
                    hint="update consilience.",
                )
            if "digest" in manifest:  # the first files have none
                _check_whole(manifest, archive)
            return _checked(_Reader(archive).decode(manifest["result"]))
    except InputError:
        raise
    except Exception as error:  # whatever a damaged file makes of zip, JSON, NumPy and the checks
        raise InputError(
            f"{name!r} is not a saved result, or it is damaged ({type(error).__name__}: {error}).",
            hint="save it again, or check how it was copied.",
        ) from error


def _checksums(archive: zipfile.ZipFile) -> dict[str, int]:
    """Those of the arrays, which zip compares when it reads them."""
    return {member.filename: member.CRC for member in archive.infolist() if member.filename != _MANIFEST}


def _digest(manifest: Mapping[str, Any]) -> str:
    held = {name: value for name, value in manifest.items() if name != "digest"}
    return hashlib.blake2b(json.dumps(held, sort_keys=True).encode(), digest_size=16).hexdigest()


def _check_whole(manifest: dict[str, Any], archive: zipfile.ZipFile) -> None:
    """Refuse a manifest that was edited, and arrays that are not those it was written with."""
    if manifest["digest"] != _digest(manifest):
        raise ValueError(f"{_MANIFEST} is not what was written")
    if manifest["arrays"] != _checksums(archive) or len(archive.infolist()) != len(manifest["arrays"]) + 1:
        raise ValueError("the arrays are not those that were written")


def _require_memory(archive: zipfile.ZipFile, name: str | bytes) -> None:
    """Refuse what would not fit: a small file can hold very much that is all alike."""
    held = archive.infolist()
    needed = sum(member.file_size * (_PARSED if member.filename == _MANIFEST else 1) for member in held)
    free = free_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{name!r} takes some {needed / 1e9:.3g} GB of memory, and {free / 1e9:.3g} GB are free.",
            hint="CONSILIENCE_MEMORY=64G says how much may be used.",
        )


def _content(archive: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of a member, no more than it says that it has."""
    size = archive.getinfo(name).file_size
    with archive.open(name) as file:
        content = file.read(size + 1)  # without a number, zip unpacks first and counts then
    if len(content) != size:
        raise ValueError(f"{name} is not as long as it says")
    return content


def _is_result(value: Any) -> bool:
    """Whether it is what `fuse` returned, or a fitted method."""
    fitted = {"results": "labels", **dict.fromkeys(_METHODS, "labels_")}
    return hasattr(value, fitted.get(_home(type(value)), " "))


def _home(cls: type) -> str:
    """The subpackage that a class is in; empty where it is not ours."""
    package, _, rest = cls.__module__.partition(".")
    return rest.partition(".")[0] if package == "consilience" else ""


class _Writer:
    """Turns values into the tree of a manifest, and writes arrays on the way."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._n_arrays = 0
        self._known: dict[int, int] = {}  # numbers of objects that were written already, by their identity
        self._alive: list[Any] = []  # keeps those objects, whose identities must not be given away meanwhile

    def encode(self, value: Any, where: str) -> Any:
        """The node of a value; `where` names it in errors."""
        if isinstance(value, Finding):
            return {"$": "finding", "text": value.text, "hint": value.hint}
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.generic) and value.dtype.kind in "biufmM":
            return {"$": "scalar", "array": self._array(np.asarray(value))}
        if isinstance(value, int):
            return value if abs(value) < 2**53 else {"$": "int", "text": str(value)}
        if isinstance(value, float):
            return value if np.isfinite(value) else {"$": "float", "text": str(value)}
        if isinstance(value, np.dtype):
            return {"$": "dtype", "text": value.str}
        for kind, (cls, _) in _TEXT.items():
            if type(value) is cls:
                return {"$": kind, "text": value.isoformat() if isinstance(value, date) else str(value)}
        if id(value) in self._known:
            return {"$": "again", "number": self._known[id(value)]}
        number = len(self._alive)
        self._alive.append(value)
        node = {**self._encode_whole(value, where), "number": number}
        self._known[id(value)] = number
        return node

    def _encode_whole(self, value: Any, where: str) -> dict[str, Any]:
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            kind = "text" if isinstance(value.dtype, np.dtypes.StringDType) else "object"
            content = self._objects(value.ravel(), where)
            return {"$": "objects", "dtype": kind, "shape": list(value.shape), **content}
        if isinstance(value, np.ndarray):
            return {"$": "array", "array": self._array(value)}
        if sp.issparse(value):
            held = value if value.format in ("csr", "csc") else value.tocsr()
            parts = {name: self._array(getattr(held, name)) for name in ("data", "indices", "indptr")}
            kind = f"{held.format}_{'array' if isinstance(held, sp.sparray) else 'matrix'}"
            return {"$": "sparse", "shape": list(held.shape), "kind": kind, **parts}
        if isinstance(value, np.random.RandomState):
            return {"$": "random_state", "state": self.encode(value.get_state(legacy=False), where)}
        ours = bool(_home(type(value)))
        if isinstance(value, tuple) and hasattr(value, "_fields") and ours:
            fields = {f: self.encode(getattr(value, f), f"{where}.{f}") for f in value._fields}
            return {"$": "named", "class": _name(type(value)), "fields": fields}
        if isinstance(value, list | tuple):
            items = [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return {"$": type(value).__name__, "items": items}
        if isinstance(value, Mapping):
            items = [[self.encode(k, where), self.encode(v, f"{where}[{k!r}]")] for k, v in value.items()]
            return {"$": "dict", "items": items}
        if ours and hasattr(value, "__dict__") and not isinstance(value, type):
            state = {k: v for k, v in _state(value).items() if not _is_derived(type(value), k)}
            return {
                "$": "object",
                "class": _name(type(value)),
                "state": {k: self.encode(v, f"{where}.{k}") for k, v in state.items()},
            }
        raise InputTypeError(
            f"{where} is a {type(value).__name__}, which cannot be saved.",
            hint="use numbers, text or arrays for parameters; functions and objects of other libraries have "
            "no place in a file that executes nothing.",
        )

    def _objects(self, values: np.ndarray, where: str) -> dict[str, Any]:
        """An array of text as bytes and their ends, of other things one by one."""
        if all(type(v) is str for v in values):
            encoded = [v.encode("utf-8", "surrogatepass") for v in values]
            ends = np.cumsum([len(v) for v in encoded], dtype=np.int64)
            text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
            return {"text": self._array(text), "ends": self._array(ends)}
        return {"items": [self.encode(v, f"{where}[{i}]") for i, v in enumerate(values)]}

    def _array(self, values: np.ndarray) -> str:
        name = f"arrays/{self._n_arrays}.npy"
        self._n_arrays += 1
        with self._archive.open(name, "w", force_zip64=True) as file:
            np.lib.format.write_array(file, np.asanyarray(values), allow_pickle=False)
        return name


class _Reader:
    """Turns the tree of a manifest into what was saved."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._known: dict[int, Any] = {}

    def decode(self, node: Any) -> Any:
        """The value of a node."""
        if not isinstance(node, dict):
            return node
        value = self._decode(node["$"], node)
        if "number" in node and node["$"] != "again":
            self._known[node["number"]] = value
        return value

    def _decode(self, kind: str, node: dict[str, Any]) -> Any:
        if kind == "again":
            return self._known[node["number"]]
        if kind in _TEXT:
            return _TEXT[kind][1](node["text"])
        if kind in ("int", "float"):
            return (int if kind == "int" else float)(node["text"])
        if kind == "dtype":
            return np.dtype(node["text"])
        if kind == "finding":
            return Finding(node["text"], node["hint"])
        if kind == "scalar":
            return self._array(node["array"])[()]
        if kind == "array":
            return self._array(node["array"])
        if kind == "objects":
            return self._objects(node)
        if kind == "sparse":
            parts = (self._array(node[name]) for name in ("data", "indices", "indptr"))
            made = _SPARSE[node["kind"]](tuple(parts), shape=tuple(node["shape"]))
            made.check_format(full_check=True)
            return made
        if kind == "random_state":
            generator = np.random.RandomState()
            generator.set_state(self.decode(node["state"]))
            return generator
        if kind in ("list", "tuple"):
            items = [self.decode(item) for item in node["items"]]
            return items if kind == "list" else tuple(items)
        if kind == "named":  # by name: a field that a later version adds has a default
            cls = _class(node["class"])
            if not issubclass(cls, tuple):
                raise ValueError(f"{node['class']!r} is no record")
            return cls(**{f: self.decode(v) for f, v in node["fields"].items()})
        if kind == "dict":
            return {self.decode(k): self.decode(v) for k, v in node["items"]}
        if kind == "object":
            return self._object(node)
        raise ValueError(f"unknown kind {kind!r}")

    def _object(self, node: dict[str, Any]) -> Any:
        cls = _class(node["class"])
        if derived := [name for name in node["state"] if _is_derived(cls, name)]:
            raise ValueError(f"{derived[0]!r} of {node['class']!r} is computed, not kept")
        made = object.__new__(cls)
        state = {name: self.decode(value) for name, value in node["state"].items()}
        if _says_itself(cls, "__setstate__"):
            made.__setstate__(state)
        else:
            made.__dict__.update(state)
        if isinstance(made, Partitions):
            _check_table(made)
        return made

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        if "text" in node:
            text = self._array(node["text"]).tobytes()
            ends = self._array(node["ends"]).tolist()
            values = [
                text[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *ends[:-1]], ends, strict=True)
            ]
        else:
            values = [self.decode(item) for item in node["items"]]
        out = np.empty(len(values), dtype=np.dtypes.StringDType() if node["dtype"] == "text" else object)
        out[:] = values
        return out.reshape(node["shape"])

    def _array(self, name: str) -> np.ndarray:
        size = self._archive.getinfo(name).file_size
        with self._archive.open(name) as file:
            _check_length(file, size)  # before memory is taken for what the header says
            file.seek(0)
            array = np.lib.format.read_array(file, allow_pickle=False)
            file.read(1)  # at the end zip compares its checksum
        return array


def _check_length(file: IO[bytes], size: int) -> None:
    """Refuse a ``.npy`` file whose header asks for other entries than there are."""
    shape, _, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError("an array is not as long as it says")


def _name(cls: type) -> str:
    return f"{cls.__module__.removeprefix('consilience.')}:{cls.__qualname__}"


def _class(name: str) -> Any:
    """The class of this name, which is one of ours."""
    module, _, qualified = name.partition(":")
    module = _MOVED.get(module, module)
    if module.partition(".")[0] not in _SUBPACKAGES:
        raise ValueError(f"no class {name!r} can be in a saved result")
    found = getattr(import_module(f"consilience.{module}"), qualified)
    if not isinstance(found, type) or not _home(found) or issubclass(found, BaseException):
        raise ValueError(f"no class {name!r} can be in a saved result")
    return found


def _state(value: Any) -> dict[str, Any]:
    """The attributes of an object; those that it says are worth keeping, if it says so itself."""
    return dict(value.__getstate__() if _says_itself(type(value), "__getstate__") else vars(value))


def _says_itself(cls: type, method: str) -> bool:
    """Whether a class of ours, and not of a library below it, says how it is kept."""
    return any(_home(base) and method in vars(base) for base in cls.__mro__)


def _is_derived(cls: type, name: str) -> bool:
    """Whether an attribute is computed when it is asked for, or not worth keeping."""
    return name in getattr(cls, "UNSAVED", ()) or any(
        isinstance(vars(base).get(name), cached_property) for base in cls.__mro__
    )


def _checked(result: Any) -> Any:
    """A result, if it is one and has a label for every instance."""
    if not _is_result(result):
        raise ValueError("it holds no result")
    if isinstance(table := getattr(result, "partitions", None), Partitions):
        labels = result.labels
        if labels.dtype.kind != "i" or labels.shape != (table.n_rows,):
            raise ValueError("the labels are not those of the instances")
        if len(labels) and not -1 <= labels.min() <= labels.max() < len(labels):
            raise ValueError("there are labels of no cluster")
    return result


def _check_table(table: Partitions) -> None:
    """Compiled loops trust the codes of a table."""
    codes, counts = table.codes, table.counts
    if codes.ndim != 2 or codes.dtype.kind != "i" or counts.shape != codes.shape[:1]:
        raise ValueError("a table of labels has the wrong shape")
    if len(table.names) != codes.shape[1] or len(table.categories) != codes.shape[1]:
        raise ValueError("a table of labels lacks names")
    if table.index is not None and len(table.index) != len(codes):
        raise ValueError("a table of labels lacks ids")
    for column, names in zip(codes.T, table.categories, strict=True):
        if len(column) and (column.min() < -1 or column.max() >= len(names)):
            raise ValueError("a table of labels has labels without names")
