"""Saved results: the same after loading, nothing executed, and one sentence for whatever is not a result."""

import json
import pickle
import warnings
import zipfile
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import consilience
from consilience import consensus, fuse, fuse_views, load, multiview, save
from consilience.results import saving
from tests.planted import planted


@pytest.fixture(scope="module")
def table():
    _, base = planted(90, 5, 3, noise=0.2, missing=0.2, seed=3)
    names = np.array(["ann", "böb", "日本", None], dtype=object)
    return pd.DataFrame(names[base], index=[f"id {i}" for i in range(90)], columns=list("vwxyz"))


@pytest.fixture(scope="module")
def views():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 30)
    tables = {name: rng.normal(6 * rng.normal(size=(3, 4))[kind]) for name in ("lengths", "colours")}
    tables["lengths"][:10] = np.nan
    return tables


def again(result, tmp_path):
    save(result, tmp_path / "saved.consilience")
    return load(tmp_path / "saved.consilience")


@pytest.mark.parametrize("name", consensus.__all__)
def test_a_label_method_is_the_same_after_loading(name, table, tmp_path):
    model = getattr(consensus, name)(3, random_state=0).fit(table)
    loaded = again(model, tmp_path)
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert_array_equal(loaded.labels_, model.labels_)
    assert_array_equal(loaded.confidence_, model.confidence_)
    some = table[["v", "x"]].dropna(how="all")
    assert_array_equal(loaded.predict(some), model.predict(some))
    assert_array_equal(loaded.predict_confidence(table), model.predict_confidence(table))
    assert loaded.partitions_.names == model.partitions_.names
    lazy = {"confidence_"}
    assert set(vars(loaded)) | lazy == set(vars(model)) | lazy


@pytest.mark.parametrize("name", multiview.__all__)
def test_a_view_method_is_the_same_after_loading(name, views, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence
        model = getattr(multiview, name)(3, random_state=0).fit(views)
    loaded = again(model, tmp_path)
    assert_array_equal(loaded.labels_, model.labels_)
    if hasattr(model, "predict"):
        assert_array_equal(loaded.predict(views), model.predict(views))


@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_a_fusion_of_labels_is_the_same_after_loading(n_clusters, table, tmp_path):
    fusion = fuse(table, n_clusters, random_state=0)
    fusion.save(tmp_path / "saved.consilience")
    loaded = load(tmp_path / "saved.consilience")
    assert loaded.summary() == fusion.summary()
    pd.testing.assert_frame_equal(loaded.to_frame(), fusion.to_frame())
    pd.testing.assert_frame_equal(loaded.imputed, fusion.imputed)
    assert_array_equal(loaded.predict(table[["w"]].dropna()), fusion.predict(table[["w"]].dropna()))


@pytest.mark.parametrize("method", ["auto", "labels", "APMC"])
def test_a_fusion_of_views_is_the_same_after_loading(method, views, tmp_path):
    fusion = fuse_views(views, 3, method=method, random_state=0)
    loaded = again(fusion, tmp_path)
    assert loaded.summary() == fusion.summary()
    assert_array_equal(loaded.confidence, fusion.confidence)
    assert_array_equal(
        loaded.predict({"colours": views["colours"]}), fusion.predict({"colours": views["colours"]})
    )


@pytest.mark.parametrize("n_exact", [None, 10])
def test_neighbours_of_many_rows_and_of_texts_are_found_again(n_exact, tmp_path, monkeypatch):
    if n_exact is not None:
        monkeypatch.setattr("consilience.core.neighbours.EXACT_ROWS", n_exact)
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 400)
    words = rng.poisson(rng.gamma(0.1, 5.0, size=(3, 60))[kind]).astype(float)
    words[:, 0] += 1
    sizes = rng.normal(4 * rng.normal(size=(3, 20))[kind])
    fusion = fuse_views({"words": sp.csr_array(words), "sizes": sizes}, 3, random_state=0)
    new = {"words": words[::7], "sizes": sizes[::7]}
    assert_array_equal(again(fusion, tmp_path).predict(new), fusion.predict(new))


def test_labels_of_every_kind_come_back(tmp_path):
    columns = {
        "numbers": [1, 2, 1, 2],
        "large": [2**60, 5, 2**60, 5],
        "dates": [date(2026, 1, 1), date(2026, 2, 1), date(2026, 1, 1), None],
        "money": [Decimal("1"), Decimal("2"), Decimal("1"), Decimal("2")],
        "truth": [True, False, True, False],
        "mixed": ["a", 7, "a", 7],
    }
    model = consilience.EAC(2).fit(pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in columns.items()}))
    loaded = again(model, tmp_path)
    for mine, theirs in zip(loaded.partitions_.categories, model.partitions_.categories, strict=True):
        assert mine.dtype == theirs.dtype
        assert [(type(v), v) for v in mine.tolist()] == [(type(v), v) for v in theirs.tolist()]


def test_a_random_state_goes_on_where_it_was(table, tmp_path):
    model = consilience.KC(3, random_state=np.random.RandomState(5)).fit(table)
    expected = pickle.loads(pickle.dumps(model.random_state)).rand(3)
    assert_array_equal(again(model, tmp_path).random_state.rand(3), expected)


def test_what_is_no_result_is_refused(tmp_path):
    for value in (3, {"a": 1}, consilience.PCE(3), np.eye(2)):
        with pytest.raises(TypeError, match=r"cannot save .* Hint: save what fuse returned"):
            save(value, tmp_path / "x")
    views = [np.arange(12.0).reshape(6, 2) ** 2, np.arange(12.0).reshape(6, 2)]
    model = consilience.EEIMVC(2, kernel=lambda a, b: a @ b.T, random_state=0).fit(views)
    with pytest.raises(TypeError, match=r"EEIMVC\.kernel is a function, which cannot be saved"):
        save(model, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_one_sentence(table, tmp_path):
    path = tmp_path / "saved.consilience"
    save(fuse(table, 3, random_state=0), path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(whole)
        if rng.random() < 0.3:
            del damaged[rng.integers(len(whole)) :]
        for place in rng.integers(0, len(damaged), 20) if damaged else []:
            damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is not a saved result, or it is damaged .* Hint: "):
            load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


def rewritten(path, change):
    """The file with its manifest changed, checksums and all."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    manifest["digest"] = saving._digest(manifest)
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_newer_files_say_so(table, tmp_path):
    path = tmp_path / "saved.consilience"
    save(fuse(table, 3, random_state=0), path)
    rewritten(path, lambda manifest: manifest.update(version=saving.VERSION + 1, written_by="9.0"))
    with pytest.raises(ValueError, match=r"written by version 9\.0, which is newer .* Hint: update"):
        load(path)


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "__main__:main",
        "cli.main:main",
        "_errors:InputError",
        "fusion.saving:os",
        "fusion.result:np",
        "partitions:InputError",
        "fusion.labels:fuse",
    ],
)
def test_a_file_can_name_no_other_class(name, table, tmp_path):
    path = tmp_path / "saved.consilience"
    save(fuse(table, 3, random_state=0), path)
    rewritten(path, lambda manifest: manifest["result"].update({"class": name}))
    with pytest.raises(ValueError, match=r"damaged \((ValueError: no class|AttributeError)"):
        load(path)


def test_codes_that_no_table_has_are_refused(table, tmp_path):
    path = tmp_path / "saved.consilience"
    fusion = fuse(table, 3, random_state=0)
    codes = fusion.partitions.codes.copy()
    codes[0, 0] = 100  # compiled loops would read what is not there
    fusion.partitions.__dict__["codes"] = codes
    save(fusion, path)
    with pytest.raises(ValueError, match="labels without names"):
        load(path)
