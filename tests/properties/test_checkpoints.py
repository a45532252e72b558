"""Checkpoints that were damaged, mixed up or edited: the answer of an undisturbed run, or one sentence."""

import json
import os
import pickle
import shutil
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import consilience.dask as blockwise
from consilience._support.errors import InputError
from consilience.dask import checkpoint
from tests.planted import planted
from tests.properties.sentences import ours
from tests.properties.test_files import damaged, damages
from tests.properties.test_saved import Payload, at, places, plain

MANIFEST = "manifest.json"
BLOCKS = np.array_split(planted(90, 6, 3, noise=0.4, missing=0.2, seed=1)[1], 3)


def fitted(folder):
    """Labels and confidence of all rows."""
    options = {"random_state": 3, "max_distinct": 10, "max_iter": 4, "tol": 0.0, "unobserved": "noise"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = blockwise.PCE(3, checkpoint=folder, **options).fit(BLOCKS)
        return np.asarray(model.labels_), np.asarray(model.confidence_)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A checkpoint after two of four iterations, and what an undisturbed run finds."""
    folder, plain_save = tmp_path_factory.mktemp("checkpoint"), checkpoint.Checkpoint.save
    with pytest.MonkeyPatch.context() as patch:

        def save(self, run, model, states):
            plain_save(self, run, model, states)
            if model.n_iter == 2:
                raise KeyboardInterrupt

        patch.setattr(checkpoint.Checkpoint, "save", save)
        with pytest.raises(KeyboardInterrupt):
            fitted(folder)
    return folder, fitted(None)


def right_or_a_sentence(folder, expected):
    """Whether it was right; every row has its label either way."""
    with ours() as outcome:
        found = fitted(folder)
    if outcome.error is not None:
        assert isinstance(outcome.error, InputError)
        return False
    for mine, theirs in zip(found, expected, strict=True):
        assert_array_equal(mine, theirs)
    return True


def copied(folder, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return sorted(os.listdir(target))


def test_a_whole_one_goes_on(interrupted, tmp_path):
    folder, expected = interrupted
    copied(folder, tmp_path / "run")
    assert right_or_a_sentence(tmp_path / "run", expected)


@given(which=st.integers(0, 99), damage=damages())
def test_damaged_files(interrupted, tmp_path, which, damage):
    (folder, expected), here = interrupted, tmp_path / "run"
    names = copied(folder, here)
    path = here / names[which % len(names)]
    path.write_bytes(damaged(path.read_bytes(), damage))
    right_or_a_sentence(here, expected)


def _remove(path, other, marker):
    path.unlink()


def _swap(path, other, marker):
    one, two = path.read_bytes(), other.read_bytes()
    path.write_bytes(two)
    other.write_bytes(one)


def _empty(path, other, marker):
    path.write_bytes(b"")


def _folder(path, other, marker):
    path.unlink()
    path.mkdir()


def _array(path, other, marker):
    with open(path, "wb") as file:
        np.save(file, np.arange(3))


def _pickle(path, other, marker):
    path.write_bytes(pickle.dumps(Payload(str(marker))))


def _pickles(path, other, marker):
    with open(path, "wb") as file:
        np.savez(file, h=np.array([Payload(str(marker))], dtype=object))


def _changed(path, other, marker):
    """One array less, one more, or one of another shape."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            held = dict(arrays)
        name = sorted(held)[len(held) // 2]
        held[name] = np.zeros((2, 2))
        with open(path, "wb") as file:
            np.savez(file, **held)


FATES = [_remove, _swap, _empty, _folder, _array, _pickle, _pickles, _changed]


@given(
    which=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.sampled_from(FATES)), max_size=3),
    extra=st.booleans(),
)
def test_lost_and_mixed_up_files(interrupted, tmp_path, which, extra):
    (folder, expected), here, marker = interrupted, tmp_path / "run", tmp_path / "ran"
    names, met = copied(folder, here), set()
    for one, two, fate in which:
        path, other = here / names[one % len(names)], here / names[two % len(names)]
        if not met & {path, other}:  # a file meets one fate
            met |= {path, other}
            fate(path, other, marker)
    if extra:
        (here / "state-0-7.npz").write_bytes(b"of another run")
    right = right_or_a_sentence(here, expected)
    assert right or which
    assert not marker.exists()


@settings(max_examples=2 * settings().max_examples)
@given(data=st.data(), digest=st.booleans())
def test_edited_manifests(interrupted, tmp_path, data, digest):
    (folder, expected), here = interrupted, tmp_path / "run"
    copied(folder, here)
    manifest = json.loads((here / MANIFEST).read_text())
    for _ in range(data.draw(st.integers(1, 2))):
        ways = [way for way in places(manifest) if way]
        way = ways[data.draw(st.integers(0, len(ways) - 1))]
        parent = at(manifest, way[:-1])
        if data.draw(st.booleans()):
            parent[way[-1]] = data.draw(plain)
        else:
            del parent[way[-1]]
    if digest and isinstance(manifest, dict):
        manifest.pop("digest", None)
        manifest["digest"] = checkpoint._digest_of(manifest)
    (here / MANIFEST).write_text(json.dumps(manifest))
    right_or_a_sentence(here, expected)
