"""Loaders: every kind of file is told apart, nothing is lost, and a missing file says what to do."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits as sklearn_digits
from sklearn.metrics import normalized_mutual_info_score

from consilience.bench import data_files
from consilience.datasets import Dataset, available, cache_folder, load, load_digits, load_digits_views

RNG = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder, and an empty cache folder apart from the user's own."""
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("CONSILIENCE_DATA", str(data))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return data


def in_parts(key, matrix):
    """A CSR matrix as the benchmark files store it."""
    parts = {"data": matrix.data, "indices": matrix.indices.astype("uint16"), "indptr": matrix.indptr}
    return {f"{key}_{name}": part for name, part in parts.items()} | {f"{key}_shape": np.array(matrix.shape)}


# --- built in ----------------------------------------------------------------------------------------


def test_digits_table():
    digits, expected = load_digits(), sklearn_digits()
    assert digits.kind == "table"
    assert np.array_equal(digits.X, expected.data)
    assert np.array_equal(digits.y, expected.target)


def test_digits_views_against_plain_loops():
    digits, images = load_digits_views(), sklearn_digits().images
    views = dict(zip(digits.view_names, digits.views, strict=True))
    assert digits.kind == "views"
    assert digits.observed.shape == (1797, 4)
    assert digits.observed.all()
    assert [view.shape[1] for view in digits.views] == [64, 20, 40, 32]
    for i in (0, 7, 1796):
        image = images[i]
        assert np.array_equal(views["pixels"][i], image.ravel())
        quadrants = [image[r : r + 4, c : c + 4].sum() for r in (0, 4) for c in (0, 4)]
        assert np.allclose(views["projections"][i], [*image.sum(axis=1), *image.sum(axis=0), *quadrants])

        transform = np.fft.fft2(image)
        assert np.allclose(views["fourier"][i].reshape(8, 5), np.abs(transform[:, :5]))

        down, right = np.gradient(image)
        rise = np.zeros((8, 4))
        for r in range(8):
            for c in range(8):
                turns = np.arctan2(down[r, c], right[r, c]) / (2 * np.pi) * 8
                rise[round(turns) % 8, 2 * (r // 4) + c // 4] += np.hypot(down[r, c], right[r, c])
        assert np.allclose(views["gradients"][i].reshape(8, 4), rise)


def test_each_digits_view_knows_something_about_the_digits():
    digits = load_digits_views()
    for view in digits.views:
        found = KMeans(10, n_init=1, random_state=0).fit_predict(view)
        assert normalized_mutual_info_score(digits.y, found) > 0.4


def test_each_call_gives_arrays_of_its_own():
    first = load_digits_views()
    first.views[0][:] = 0
    assert load_digits_views().views[0].any()


# --- the type ----------------------------------------------------------------------------------------


def test_dataset_is_frozen_and_can_be_pickled():
    digits = load_digits()
    with pytest.raises(AttributeError):
        digits.X = None
    again = pickle.loads(pickle.dumps(digits))
    assert np.array_equal(again.X, digits.X)
    assert Dataset("a", "table").extra is not Dataset("b", "table").extra


# --- every kind of file ------------------------------------------------------------------------------


def test_table(folder):
    X, y = RNG.integers(0, 255, (5, 3)).astype("uint8"), np.array([0, 1, 1, 0, 2], "uint8")
    np.savez(folder / "faces.npz", X=X, y=y, note=np.array([1]))
    faces = load("faces")
    assert (faces.name, faces.kind) == ("faces", "table")
    assert faces.X.dtype == np.float64
    assert np.array_equal(faces.X, X)
    assert faces.y.dtype == np.int64
    assert np.array_equal(faces.y, y)
    assert list(faces.extra) == ["note"]
    assert faces.views is faces.labels is faces.kernels is faces.patterns is faces.observed is None
    assert repr(faces) == "Dataset('faces': table 5 x 3, 3 classes)"


def test_sparse_table(folder):
    dense = np.random.default_rng(0).random((6, 60_000))
    X = sparse.csr_array(dense * (dense < 0.001))
    np.savez(folder / "words.npz", **in_parts("X", X), y=np.zeros(6, int))
    words = load("words")
    assert isinstance(words.X, sparse.csr_array)
    assert words.X.indices.dtype == np.int32
    assert (words.X != X).nnz == 0
    assert words.extra == {}
    KMeans(2, n_init=1).fit(words.X)


@pytest.mark.parametrize("lowest", [0, 1, -1])
def test_pool_keeps_labels_and_only_minus_one_is_missing(folder, lowest):
    pool = RNG.integers(lowest, 4, (9, 5)).astype("int16")
    pool[0, 0] = lowest
    np.savez(folder / "pool_a.npz", pool=pool, y=np.zeros(9, "uint8"), ref=np.ones(2))
    loaded = load("pool_a.npz")
    assert loaded.kind == "pool"
    assert loaded.labels.dtype == np.int32
    assert np.array_equal(loaded.labels, pool)
    assert list(loaded.extra) == ["ref"]


def test_views_dense_and_sparse_in_their_order(folder):
    tables = [RNG.random((4, d)).astype("float32") for d in range(1, 13)]  # view10 comes after view9
    stored = {f"view{v}": table for v, table in enumerate(tables)}
    del stored["view3"]
    stored |= in_parts("view3", sparse.csr_array(tables[3]))
    names = np.array([f"n{v}" for v in range(12)])
    np.savez(folder / "mv.npz", **stored, y=np.arange(4), view_names=names)
    loaded = load("mv")
    assert loaded.kind == "views"
    assert loaded.view_names == tuple(f"n{v}" for v in range(12))
    assert loaded.observed.dtype == bool
    assert loaded.observed.all()
    assert loaded.observed.shape == (4, 12)
    for found, table in zip(loaded.views, tables, strict=True):
        assert np.array_equal(found.toarray() if sparse.issparse(found) else found, table)


def test_views_with_a_mask_and_without_names(folder):
    observed = np.array([[True, False], [True, True]])
    np.savez(folder / "mv.npz", view0=np.eye(2), view1=np.eye(2), y=np.arange(2), observed=observed)
    loaded = load("mv")
    assert np.array_equal(loaded.observed, observed)
    assert loaded.view_names == ("view0", "view1")


def test_kernels_and_patterns(folder):
    masks = RNG.random((3, 2, 4, 2)) < 0.5
    ratios = np.array([0.1, 0.2, 0.3])
    np.savez(
        folder / "kern.npz",
        K0=np.eye(4),
        K1=2 * np.eye(4),
        y=np.arange(4),
        observed_patterns=masks,
        ratios=ratios,
    )
    kern = load("kern")
    assert kern.kind == "kernels"
    assert [k[0, 0] for k in kern.kernels] == [1, 2]
    assert kern.view_names == ("K0", "K1")
    assert np.array_equal(kern.patterns[2], masks)
    assert np.array_equal(kern.ratios, ratios)

    np.savez(folder / "miss.npz", observed2=masks, observed5=np.ones((3, 2, 4, 5), bool), ratios=ratios)
    miss = load("miss")
    assert miss.kind == "patterns"
    assert miss.y is None
    assert sorted(miss.patterns) == [2, 5]
    assert np.array_equal(miss.patterns[2][1, 0], masks[1, 0])
    assert repr(miss) == "Dataset('miss': patterns 4 x 2, 4 x 5 at 3 missing ratios)"


# --- finding files -----------------------------------------------------------------------------------


def test_the_variable_comes_before_the_cache(folder):
    assert available() == []
    cache = cache_folder()
    cache.mkdir(parents=True)
    np.savez(cache / "a.npz", X=np.zeros((1, 1)))
    np.savez(cache / "b.npz", X=np.zeros((1, 1)))
    np.savez(folder / "a.npz", X=np.ones((1, 1)))
    (folder / "readme.txt").write_text("no data")
    assert available() == ["a", "b"]
    assert load("a").X == 1
    assert load("b.npz").X == 0


def test_without_the_variable_only_the_cache(folder, monkeypatch):
    monkeypatch.delenv("CONSILIENCE_DATA")
    np.savez(folder / "a.npz", X=np.ones((1, 1)))
    assert available() == []
    with pytest.raises(FileNotFoundError) as caught:
        load("a")
    place = cache_folder() / "a.npz"
    assert f"Hint: put the file at {place}, or set CONSILIENCE_DATA" in str(caught.value)


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", None, ".cache/consilience"),
        ("linux", "XDG_CACHE_HOME", "given/consilience"),
        ("darwin", None, "Library/Caches/consilience"),
        ("win32", None, "AppData/Local/consilience"),
        ("win32", "LOCALAPPDATA", "given/consilience"),
    ],
)
def test_cache_folder(tmp_path, monkeypatch, platform, variable, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "given"))
    assert cache_folder() == tmp_path / expected
    assert not cache_folder().exists()


def test_a_missing_file_says_what_to_put_where(folder):
    with pytest.raises(FileNotFoundError) as caught:
        load("PenDigits")
    text = str(caught.value)
    assert "there is no file 'PenDigits.npz'" in text
    assert f"{cache_folder()} (no such folder)" in text
    assert text.endswith(f"Hint: put the file at {folder / 'PenDigits.npz'}")


def test_a_slip_of_the_pen_gets_a_suggestion(folder):
    np.savez(folder / "PenDigits.npz", X=np.ones((1, 1)))
    with pytest.raises(FileNotFoundError, match=r"Hint: did you mean 'PenDigits'\? If not, put the file at"):
        load("pendigit")


@pytest.mark.parametrize("name", ["", ".npz", "folder/a", "../a"])
def test_a_path_is_no_name(folder, name):
    with pytest.raises(ValueError, match=r"bare name of a file.*Hint"):
        load(name)


def test_unreadable_and_unknown_files(folder):
    (folder / "broken.npz").write_bytes(b"PK not really")
    with pytest.raises(ValueError, match=r"broken\.npz is not a readable \.npz file.*Hint"):
        load("broken")
    (folder / "empty.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"empty\.npz is not a readable"):
        load("empty")
    np.savez(folder / "objects.npz", X=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"objects\.npz is not a readable"):
        load("objects")
    np.savez(folder / "other.npz", points=np.ones(3))
    with pytest.raises(ValueError, match=r"holds none of the names .*\['points'\].*Hint"):
        load("other")


# --- the benchmark files themselves ------------------------------------------------------------------


@pytest.fixture
def benchmark(data_folder, monkeypatch):
    monkeypatch.setenv("CONSILIENCE_DATA", str(data_folder))
    return data_folder


def test_every_benchmark_file_loads_as_its_name_says(benchmark):
    kinds = {"mv": "views", "pool": "pool", "kern": "kernels", "miss": "patterns"}
    names = [path.stem for path in benchmark.glob("*.npz")]
    assert set(names) <= set(available())
    for name in names:
        loaded = load(name)
        assert loaded.kind == kinds.get(name.split("_")[0], "table"), name
        matrices = {
            "table": [loaded.X],
            "pool": [loaded.labels],
            "views": loaded.views,
            "kernels": loaded.kernels,
        }.get(loaded.kind, [])
        assert all(matrix.shape[0] == len(loaded.y) for matrix in matrices), name
        assert not any(key.endswith(("_data", "_indices", "_indptr", "_shape")) for key in loaded.extra), name
        if loaded.y is not None and name in data_files():  # others are as they came
            assert np.array_equal(np.unique(loaded.y), np.arange(loaded.y.max() + 1)), name
        if loaded.kind == "views":
            assert len(loaded.views) == len(loaded.view_names) == loaded.observed.shape[1], name


def test_benchmark_facts(benchmark):
    assert load("PenDigits").X.shape == (10992, 16)
    assert load("k1b").X.shape == (2340, 21839)
    for percent in (10, 30, 50, 70):
        labels = load(f"pool_PCE_pixraw10P_miss{percent}").labels
        assert np.array_equal((labels == -1).sum(axis=0), np.full(100, percent))
    assert load("pool_LWEA_VS").labels.min() == 1
    assert load("pool_RCE_Yale").labels.min() == 0

    stories = load("mv_3Sources416_partial")
    assert stories.view_names == ("BBC", "Guardian", "Reuters")
    assert stories.observed.sum(axis=0).tolist() == [352, 302, 294]
    for v, view in enumerate(stories.views):  # absent stories are empty rows, as the mask says
        assert np.array_equal(np.diff(view.indptr) > 0, stories.observed[:, v])
    whole = stories.observed.all(axis=1)
    for part, view in zip(stories.views, load("mv_3Sources169").views, strict=True):
        assert (part[whole] != view).nnz == 0

    assert load("kern_washington2").patterns[2].shape == (9, 10, 230, 2)
    patterns = load("miss_proteinFold").patterns
    assert {v: masks.shape for v, masks in patterns.items()} == {12: (9, 10, 694, 12), 5: (9, 10, 694, 5)}
    assert patterns[12].any(axis=-1).all()
