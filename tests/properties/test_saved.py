"""Saved results: the same after loading; damaged or forged, one sentence, no code run, little memory."""

import copy
import datetime as dt
import io
import json
import os
import pickle
import tracemalloc
import warnings
import zipfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import consilience
from consilience import fuse, fuse_views
from consilience._support.errors import InputError
from consilience.results import saving
from tests.planted import planted
from tests.properties.sentences import ours
from tests.properties.test_files import damaged, damages
from tests.properties.test_labels import tables

MANIFEST = "manifest.json"
NAMES = {
    "numbers": int,
    "words": "wörd {}".format,
    "dates": lambda code: dt.date(2026, 1, 1 + code),
    "money": Decimal,
    "large": lambda code: 2**62 + code,
    "truth": lambda code: code > 0,
}


def same(found, fusion, new):
    """Whether two results say the same of their instances and of new ones."""
    assert_array_equal(found.labels, fusion.labels)
    assert_array_equal(found.confidence, fusion.confidence)
    assert_array_equal(found.diagnostics.alternative, fusion.diagnostics.alternative)
    for mine, theirs in zip(found.place(new), fusion.place(new), strict=True):
        assert_array_equal(mine, theirs)
    return found.summary() == fusion.summary()


@settings(max_examples=settings().max_examples // 5)
@given(
    table=tables(max_rows=12),
    names=st.lists(st.sampled_from(sorted(NAMES)), min_size=5, max_size=5),
    method=st.sampled_from(["KCC", "EAC", "DAL", "MixtureConsensus", "LWGP"]),
    k=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_result_of_labels_comes_back(tmp_path, table, names, method, k, seed):
    columns = {
        f"b{j}": pd.Series([None if code < 0 else NAMES[kind](code) for code in column], dtype=object)
        for j, (column, kind) in enumerate(zip(table.T.tolist(), names, strict=False))
    }
    frame = pd.DataFrame(columns)
    before = frame.copy(deep=True)
    with ours() as outcome:
        fusion = fuse(frame, min(k, len(table)), method=method, random_state=seed)
        fusion.save(tmp_path / "kept")
    if outcome.error is not None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert same(consilience.load(tmp_path / "kept"), fusion, frame)
    pd.testing.assert_frame_equal(frame, before)


@settings(max_examples=max(2, settings().max_examples // 20))
@given(
    method=st.sampled_from(["APMC", "SNF", "DAIMC", "labels"]),
    seed=st.integers(0, 2**32 - 1),
    absent=st.lists(st.integers(0, 23), max_size=6),
)
def test_a_result_of_views_comes_back(tmp_path, method, seed, absent):
    rng = np.random.default_rng(seed)
    kind = np.repeat([0, 1, 2], 8)
    views = {name: rng.normal(5 * rng.normal(size=(3, 4))[kind]) for name in ("one", "two")}
    views["one"][absent] = np.nan
    with ours() as outcome:
        fusion = fuse_views(views, 3, method=method, random_state=seed)
        fusion.save(tmp_path / "kept")
    if outcome.error is not None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = consilience.load(tmp_path / "kept")
        assert_array_equal(found.labels, fusion.labels)
        assert_array_equal(found.confidence, fusion.confidence)
        if hasattr(fusion.model, "predict") or fusion.neighbours is not None:
            assert_array_equal(found.predict({"two": views["two"]}), fusion.predict({"two": views["two"]}))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A result, what it was made of, and the bytes of its file."""
    _, base = planted(40, 4, 3, noise=0.2, missing=0.2, seed=3)
    names = np.array(["ann", "böb", "日本", None], dtype=object)
    frame = pd.DataFrame(names[base], index=[f"id {i}" for i in range(40)], columns=list("vwxy"))
    fusion = fuse(frame, 3, method="PCE", random_state=0)
    path = tmp_path_factory.mktemp("saved") / "kept"
    fusion.save(path)
    return fusion, frame, path.read_bytes()


@given(damage=damages())
def test_a_damaged_result_is_the_same_or_a_sentence(whole, tmp_path, damage):
    fusion, frame, content = whole
    path = tmp_path / "kept"
    path.write_bytes(damaged(content, damage))
    with ours() as outcome:
        found = consilience.load(path)
    if outcome.error is None:  # what was hit is not used, such as the time of a member
        assert same(found, fusion, frame)
    else:
        assert isinstance(outcome.error, InputError)


# --- forged files -------------------------------------------------------------------------------------------


def unpacked(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members, compression=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def places(node, path=()):
    """The ways to all places of a tree of JSON."""
    yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        yield from places(value, (*path, key)) if isinstance(value, dict | list) else [(*path, key)]


def at(node, path):
    for key in path:
        node = node[key]
    return node


plain = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.sampled_from(["arrays/0.npy", "../../x", "/etc/passwd", "os:system", "views:Views", "<f8"]),
        st.sampled_from([{"$": "again", "number": 0}, {"$": "array", "array": "arrays/1.npy"}, {"$": "int"}]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


class Payload:
    """Runs when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (Path(self.marker),)


def npy(header, content=b""):
    """A ``.npy`` file with any header."""
    text = header.encode("latin1")
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def pickled(marker):
    header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n"
    return npy(header, pickle.dumps(np.array([Payload(marker)], dtype=object)))


headers = st.sampled_from(
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,), }\n",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -8), }\n",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000000000000,), }\n",
        "{'descr': '<U500000000', 'fortran_order': True, 'shape': (7,), }\n",
        "{'descr': [('a', '<f8'), ('b', '|O')], 'fortran_order': False, 'shape': (1,), }\n",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (40,), 'more': 1}\n",
        "__import__('os').system('true')\n",
        "(" * 3000 + "\n",
        "",
    ]
)


EDITS = ["set", "delete", "move", "pickle", "header", "swap", "add", "remove"]


@given(data=st.data(), digest=st.booleans())
def test_an_edited_result_is_a_sentence(whole, tmp_path, data, digest):
    fusion, frame, content = whole
    path, marker = tmp_path / "kept", tmp_path / "ran"
    members = unpacked(content)
    manifest = json.loads(members[MANIFEST])
    arrays = sorted(members.keys() - {MANIFEST})
    for _ in range(data.draw(st.integers(1, 3))):
        what = data.draw(
            st.sampled_from(["set", "delete", "move", "pickle", "header", "swap", "add", "remove"])
        )
        name, other = (data.draw(st.sampled_from(arrays)) for _ in range(2))
        if what in ("set", "delete", "move"):
            ways = [way for way in places(manifest) if way]
            way = ways[data.draw(st.integers(0, len(ways) - 1))]
            parent = at(manifest, way[:-1])
            if what == "set":
                parent[way[-1]] = data.draw(plain)
            elif what == "delete":
                del parent[way[-1]]
            else:
                parent[way[-1]] = copy.deepcopy(at(manifest, ways[data.draw(st.integers(0, len(ways) - 1))]))
        elif what == "pickle":
            members[name] = pickled(str(marker))
        elif what == "header":
            members[name] = npy(data.draw(headers), data.draw(st.binary(max_size=64)))
        elif what == "swap":
            members[name], members[other] = members.get(other, b""), members.get(name, b"")
        elif what == "add":
            added = data.draw(st.sampled_from(["../escaped.npy", "arrays/99.npy", "/x", "a\x00b"]))
            members[added] = b"x"
        else:
            members.pop(name, None)
    members[MANIFEST] = json.dumps(manifest).encode()
    if digest:  # somebody who knows how, and has rights to the file
        known = packed(members)
        with zipfile.ZipFile(io.BytesIO(known)) as archive:
            manifest["arrays"] = saving._checksums(archive)
        manifest["digest"] = saving._digest(manifest)
        members[MANIFEST] = json.dumps(manifest).encode()
    path.write_bytes(packed(members))
    with ours() as outcome:
        found = consilience.load(path)
    assert not marker.exists()
    assert set(os.listdir(tmp_path)) == {"kept"}
    if outcome.error is not None:
        assert isinstance(outcome.error, InputError)
    elif not digest:  # nothing was changed in the end, or the digest was taken away as well
        assert "digest" not in manifest or same(found, fusion, frame)


def bombs(members, size):
    """Files that are small and say that they hold, or do hold, very much."""
    manifest = json.loads(members[MANIFEST])
    first = next(name for name in members if name != MANIFEST)
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({size // 8},), }}\n"
    yield "an array of zeros", packed({**members, first: npy(header, bytes(size))})
    yield "a header that asks for much", packed({**members, first: npy(header)})
    yield "a long manifest", packed({**members, MANIFEST: json.dumps(manifest).encode() + b" " * size})
    yield (
        "many empty lists",
        packed(
            {**members, MANIFEST: b'{"format": "consilience", "result": [' + b"[]," * (size // 3) + b"[]]}"}
        ),
    )
    lying = packed({**members, MANIFEST: json.dumps(manifest).encode() + b" " * size})
    told = len(json.dumps(manifest)) + size
    yield "a manifest that is longer than it says", lying.replace(told.to_bytes(4, "little"), b"\x10\0\0\0")


def test_bombs_take_no_memory(whole, tmp_path, monkeypatch):
    size = 20_000_000
    monkeypatch.setenv("CONSILIENCE_MEMORY", "3M")
    for what, content in bombs(unpacked(whole[2]), size):
        (tmp_path / "kept").write_bytes(content)
        assert len(content) < 1_000_000
        tracemalloc.start()
        try:
            with pytest.raises(InputError, match="Hint: "):
                consilience.load(tmp_path / "kept")
            assert tracemalloc.get_traced_memory()[1] < 5_000_000, what
        finally:
            tracemalloc.stop()
