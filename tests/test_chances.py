"""The chance of every cluster: against loops, its laws, and where it meets confidence."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience import APMC, EEIMVC, PSE, Partitions, fuse, fuse_views
from consilience.cli.main import run
from consilience.consensus import PCE
from consilience.diagnostics import chances, confidence
from consilience.multiview import OSLFIMVC
from tests.oracles.diagnostics import plain_judgement
from tests.planted import planted


@pytest.fixture(params=[0.0, 0.5])
def noisy(request):
    """Base labels with gaps, and consensus labels that are sometimes wrong and differ within equal rows."""
    rng = np.random.default_rng(5)
    truth, base = planted(80, 5, 4, noise=0.3, missing=request.param, seed=4)
    labels = np.where(rng.random(80) < 0.2, rng.integers(0, 4, 80), truth)
    if request.param:
        base[[20, 21]] = -1
    return base, labels


def read(base):
    return Partitions.of(base, unobserved="keep")


def check_laws(found, labels, sure):
    assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    assert (found >= 0.0).all()
    assert_array_equal(found[np.arange(len(labels)), labels], sure)


class TestLabels:
    def test_are_those_of_loops(self, noisy):
        base, labels = noisy
        assert_allclose(chances(read(base), labels), plain_judgement(base, labels)[3], atol=1e-12)

    def test_the_own_one_is_the_confidence(self, noisy):
        base, labels = noisy
        check_laws(chances(read(base), labels), labels, confidence(read(base), labels))

    def test_the_order_of_rows_columns_and_clusters_changes_nothing(self, noisy):
        base, labels = noisy
        rng = np.random.default_rng(0)
        rows, columns, numbers = rng.permutation(80), rng.permutation(5), rng.permutation(4)
        moved = chances(read(base[rows][:, columns]), numbers[labels[rows]])
        assert_allclose(moved[:, numbers], chances(read(base), labels)[rows], atol=1e-9)

    def test_unobserved_instances_have_the_shares_of_the_clusters(self):
        _, base = planted(80, 5, 4, noise=0.2, missing=0.4, seed=1)
        base[7] = -1
        for unobserved in ("noise", "largest"):
            fusion = fuse(base, 4, unobserved=unobserved, random_state=0)
            seen = fusion.labels[np.arange(80) != 7]
            shares = np.bincount(fusion.labels[fusion.labels >= 0]) / np.count_nonzero(fusion.labels >= 0)
            assert_allclose(fusion.chances[7], shares)
            assert len(seen) == 79
            assert_allclose(fusion.place([[None] * 5]).chances[0], shares)

    def test_an_unassigned_instance_with_labels_has_chances_too(self, noisy):
        base, labels = noisy
        labels = labels.copy()
        labels[3] = -1
        found = chances(read(base), labels)
        assert_allclose(found[3].sum(), 1.0)
        assert found[3].max() > 0.5

    def test_one_cluster_has_all(self):
        assert_array_equal(
            chances(read(np.zeros((5, 2), dtype=int)), np.zeros(5, dtype=int)), np.ones((5, 1))
        )

    def test_margin_and_alternative_are_read_from_them(self, noisy):
        base, _ = noisy
        fusion = fuse(base, 4, unobserved="noise", random_state=0)
        known = (fusion.labels >= 0) & (fusion.diagnostics.alternative >= 0)
        found, place = fusion.chances[known], np.arange(known.sum())
        own = found[place, fusion.labels[known]]
        following = found[place, fusion.diagnostics.alternative[known]]
        assert_allclose(fusion.margin[known], own / (own + following))

    def test_numbers_with_gaps_have_empty_columns(self):
        truth, base = planted(120, 5, 3, noise=0.1, missing=0.2, seed=3)
        fusion = fuse(base, 3, random_state=0).like(truth * 2)
        assert fusion.chances.shape == (120, 5)
        assert fusion.chances[:, [1, 3]].max() < 1e-9
        check_laws(fusion.chances, fusion.labels, fusion.confidence)

    def test_newcomers(self):
        _, base = planted(300, 5, 3, noise=0.2, missing=0.3, seed=1)
        fusion = fuse(base[:200], 3, random_state=0)
        placed = fusion.place(base[200:])
        check_laws(placed.chances, placed.labels, placed.confidence)
        labels, sure, behind = placed
        assert_array_equal(labels, placed.labels)
        assert_array_equal(sure, placed.confidence)
        assert_array_equal(behind, placed.alternative)
        assert_array_equal(pickle.loads(pickle.dumps(placed)).chances, placed.chances)

    def test_of_some_rows(self, noisy):
        fusion = fuse(noisy[0], 4, unobserved="noise", random_state=0)
        assert_array_equal(fusion.chances_of(slice(3, 9)), fusion.chances[3:9])
        assert_array_equal(fusion.chances_of(np.array([5, 5, 0])), fusion.chances[[5, 5, 0]])

    def test_predict_proba(self):
        _, base = planted(300, 5, 3, noise=0.2, missing=0.3, seed=1)
        model = PCE(3, random_state=0).fit(base[:200])
        found = model.predict_proba(base[200:])
        check_laws(found, model.predict(base[200:]), model.predict_confidence(base[200:]))


class TestShell:
    @pytest.fixture
    def banks(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        _, base = planted(90, 4, 3, noise=0.2, missing=0.2, seed=2)
        frame = pd.DataFrame(np.array(["x", "y", "z", None], dtype=object)[base], columns=list("abcd"))
        frame = frame[frame.notna().any(axis=1)]
        frame.insert(0, "id", [f"i{n}" for n in range(len(frame))])
        frame.to_csv("banks.csv", index=False)
        return fuse(frame.set_index("id"), 3, named_after="a", random_state=0)

    @pytest.mark.parametrize("engine", ["memory", "blocks"])
    def test_fuse(self, banks, engine):
        asked = "fuse banks.csv --id id -k 3 --name-after a --seed 0 --chances chances.csv -o merged.csv -q"
        assert run([*asked.split(), "--engine", engine]) == 0
        found = pd.read_csv("chances.csv")
        assert found.columns.tolist() == ["id", *banks.names]
        assert found["id"].tolist() == banks.index.tolist()
        assert_allclose(found[list(banks.names)], banks.chances, atol=1e-4)

    def test_predict(self, banks, capfd):
        banks.save("banks.consilience")
        asked = "predict banks.consilience banks.csv --id id --chances chances.csv -o placed.csv"
        assert run(asked.split()) == 0
        assert banks.diagnostics.reading in capfd.readouterr().err
        table = pd.read_csv("banks.csv").set_index("id").astype(object)
        placed = banks.place(table.where(table.notna(), None))
        assert_allclose(pd.read_csv("chances.csv")[list(banks.names)], placed.chances, atol=1e-4)
        assert pd.read_csv("placed.csv").columns.tolist() == [
            "id",
            "label",
            "name",
            "confidence",
            "alternative",
        ]


@pytest.fixture(scope="module")
def views():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 150)
    tables = [rng.normal(size=(150, 5)) + 2.0 * truth[:, None], rng.normal(size=(150, 4)) - truth[:, None]]
    mask = rng.random((150, 2)) > 0.2
    mask[~mask.any(axis=1), 0] = True
    return tables, mask


@pytest.mark.parametrize("method", ["PSE", "APMC", "labels"])
def test_views(views, method):
    tables, mask = views
    fusion = fuse_views(tables, 3, mask=mask, method=method, random_state=0)
    check_laws(fusion.chances, fusion.labels, fusion.confidence)
    placed = fusion.place([table[:30] for table in tables], mask=mask[:30])
    check_laws(placed.chances, placed.labels, placed.confidence)


def test_views_under_other_numbers(views):
    tables, mask = views
    fusion = fuse_views(tables, 3, mask=mask, random_state=0)
    moved = fusion.like(np.array([2, 0, 3])[fusion.labels])
    assert_array_equal(moved.chances[:, [2, 0, 3]], fusion.chances)
    check_laws(moved.chances, moved.labels, moved.confidence)
    placed = moved.place([table[:30] for table in tables])
    check_laws(placed.chances, placed.labels, placed.confidence)


def test_the_rest_goes_by_squared_distances(views):
    tables, mask = views
    model = PSE(3, random_state=0).fit(tables, mask=mask)
    near = 1.0 / ((model.embedding_[:, None] - model._centers) ** 2).sum(axis=2)
    place = np.arange(150)
    near[place, model.labels_] = 0.0
    expected = near / near.sum(axis=1, keepdims=True) * (1.0 - model.confidence_)[:, None]
    expected[place, model.labels_] = model.confidence_
    assert_allclose(model.chances_, expected, rtol=1e-6)
    check_laws(model.predict_proba(tables), model.predict(tables), model.predict_confidence(tables))


@pytest.mark.parametrize("method", [APMC, EEIMVC, OSLFIMVC])
def test_methods_with_centres_rank_clusters(views, method):
    tables, mask = views
    model = method(3, random_state=0).fit(tables, mask=mask)
    found = model.predict_proba(tables, mask=mask)
    assert found.shape == (150, 3)
    assert_allclose(found.sum(axis=1), 1.0)
    assert_array_equal(found.argmax(axis=1), model.predict(tables, mask=mask))


def test_dask_collections_have_them_lazily():
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    from consilience import dask as blockwise

    _, base = planted(300, 5, 3, noise=0.2, missing=0.3, seed=1)
    frame = pd.DataFrame(base, columns=list("abcde"))
    model = blockwise.PCE(3, random_state=0).fit([base[:100], base[100:]])
    expected = PCE(3, random_state=0).fit(base).predict_proba(base)
    found = model.predict_proba(da.from_array(base, chunks=(100, 5)))
    assert found.shape == (300, 3)
    assert_allclose(found.compute(), expected, rtol=1e-9, atol=1e-12)
    model = blockwise.PCE(3, random_state=0).fit(dd.from_pandas(frame, npartitions=3))
    found = model.predict_proba(dd.from_pandas(frame, npartitions=3))
    assert list(found.columns) == [0, 1, 2]
    assert_allclose(found.compute(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["PSE", "APMC"])
def test_margins_of_views_follow_the_chances(method):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 160)
    views = {name: rng.normal(rng.normal(size=(4, 6))[y]) for name in "ab"}
    _margins_follow(fuse_views(views, 4, method=method, random_state=0))


def test_margins_of_labels_beside_views_follow_the_chances():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 160)
    labels = {name: np.where(rng.random(160) < 0.4, rng.integers(0, 4, 160), y) for name in "cd"}
    _margins_follow(fuse(labels, 4, views={"a": rng.normal(rng.normal(size=(4, 6))[y])}, random_state=0))


def _margins_follow(fusion):
    chances, place = fusion.chances, np.arange(len(fusion.labels))
    own = chances[place, fusion.labels]
    assert_allclose(own, fusion.confidence)
    chances[place, fusion.labels] = -1.0
    behind = fusion.diagnostics.alternative
    some = behind >= 0  # all neighbours of some are in their cluster
    assert_array_equal(behind[some], chances.argmax(axis=1)[some])
    assert_allclose(fusion.margin[some], (own / (own + chances.max(axis=1)))[some])
    assert fusion.headline.n_likelier == (fusion.margin < 0.5).sum()
