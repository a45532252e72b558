"""MCLA against its definition on all instances, the partitioner's outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from consilience import MCLA, Partitions
from consilience.consensus import partitioners
from consilience.consensus.mcla import align, move_nodes, within
from consilience.core.tables import jaccard
from tests.oracles.consensus import plain_association, plain_overlap
from tests.planted import planted
from tests.pools import nmi
from tests.test_hbgf import UNEQUAL


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_unequal_sizes_are_recovered(seed, missing):
    truth, base = planted(1000, 10, 6, noise=0.15, missing=missing, seed=seed, sizes=UNEQUAL)
    model = MCLA(6, random_state=seed).fit(base)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    assert model.partitioner_ == "spectral"


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_overlaps_and_associations_equal_plain_version_on_repeated_rows(missing, seed):
    _, base = planted(60, 6, 4, noise=0.25, missing=missing, seed=seed)
    base = base[np.repeat(np.arange(60), np.random.default_rng(seed).integers(1, 4, 60))]
    table = Partitions.of(base)
    rows = table.distinct
    assert_allclose(jaccard(rows.codes, table.offsets, rows.counts), plain_overlap(base), atol=1e-12)
    model = MCLA(4, random_state=0).fit(base)
    slow = plain_association(base, np.concatenate(model.meta_clusters_), 4)
    assert_allclose(model.association_, slow, atol=1e-12)
    best = slow.max(axis=1)
    assert_allclose(slow[np.arange(len(slow)), model.labels_], best)


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["pixraw_miss30", "yale_m10"])
def test_is_at_least_as_good_as_the_published_program(fixtures_folder, name):
    given = np.load(fixtures_folder / f"mcla_{name}.npz")
    k = int(given["n_clusters"])
    found = [nmi(MCLA(k, random_state=s), given["base"], given["y"].astype(int)) for s in range(3)]
    assert np.mean(found) > given["nmi"] - 0.03


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["pixraw_miss30", "yale_m10"])
def test_equal_numbers_are_as_good_as_the_published_program(fixtures_folder, name):
    pytest.importorskip("pymetis", reason="pymetis, of the extra 'graphs', is not installed")
    given = np.load(fixtures_folder / f"mcla_{name}.npz")
    k = int(given["n_clusters"])
    model = MCLA(k, balance="equal", random_state=0).fit(given["base"])
    assert model.partitioner_ == "metis"
    found = [
        nmi(MCLA(k, balance="equal", random_state=s), given["base"], given["y"].astype(int)) for s in range(5)
    ]
    assert np.mean(found) > given["nmi"] - 0.06


@pytest.mark.parametrize(("n", "noise"), [(600, 0.65), (1000, 0.7)])
def test_seeds_agree_where_there_are_clusters(n, noise):
    agreement = []
    for seed in range(6):
        truth, base = planted(n, 10, 20, noise=noise, missing=0.2, seed=seed)
        first, second = (MCLA(20, random_state=s).fit_predict(base) for s in (1, 2))
        assert adjusted_rand_score(truth, first) > 0.4
        agreement.append(adjusted_rand_score(first, second))
    assert np.mean(agreement) > 0.9  # 0.8 when k-means alone decided


@pytest.mark.parametrize("seed", range(5))
def test_no_single_move_is_left_that_brings_base_clusters_closer(seed):
    table = Partitions.of(planted(80, 5, 4, noise=0.5, missing=0.2, seed=seed)[1])
    j = jaccard(table.distinct.codes, table.offsets, table.distinct.counts.astype(float))
    start = np.random.default_rng(seed).permutation(np.arange(len(j)) % 4)
    found = move_nodes(j, start, 4, np.arange(len(j)))
    best = within(j, found, 4)
    assert best > within(j, start, 4)
    for a in range(len(j)):
        for c in range(4):
            moved = np.where(np.arange(len(j)) == a, c, found)
            if len(np.unique(moved)) == 4:
                assert within(j, moved, 4) <= best + 1e-6


def test_within_is_the_mean_over_the_pairs_of_each_group():
    s = np.array([[1.0, 0.4, 0.1], [0.4, 1.0, 0.2], [0.1, 0.2, 1.0]])
    assert_allclose(within(s, np.array([0, 0, 1]), 3), 2.8 / 2 + 1.0)
    start = np.array([0, 1, 1])
    assert_array_equal(move_nodes(s, start, 2, np.array([1])), [0, 0, 1])
    assert_array_equal(move_nodes(s, start, 2, np.array([0, 2])), start)  # the one that would move may not


def test_groups_are_renumbered_to_match():
    assert_array_equal(align(np.array([2, 2, 0, 0, 1]), np.array([0, 0, 1, 2, 2]), 3), [0, 0, 1, 1, 2])


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(seed):
    _, base = planted(200, 8, 4, noise=0.2, missing=0.3, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(200), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = MCLA(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


def test_meta_clusters_name_the_clusters_of_all_bases():
    _, base = planted(300, 6, 4, noise=0.1, missing=0.1, seed=0)
    model = MCLA(4, random_state=0).fit(base)
    for i, meta in enumerate(model.meta_clusters_):
        assert_array_equal(np.sort(meta), np.arange(4))
        seen = base[:, i] >= 0
        assert np.mean(meta[base[seen, i]] == model.labels_[seen]) > 0.85


def test_without_the_extra_equal_numbers_are_refused(monkeypatch):
    def absent(module, *, needed_for, extra):
        raise ImportError(f"{needed_for} needs {module}. Hint: pip install 'consilience[{extra}]'")

    monkeypatch.setattr(partitioners, "optional_import", absent)
    _, base = planted(100, 6, 3, noise=0.2, missing=0.2, seed=0)
    with pytest.raises(ImportError, match=r"needs pymetis. Hint: pip install 'consilience\[graphs\]'"):
        MCLA(3, balance="equal", random_state=0).fit(base)


def test_ties_go_to_the_more_similar_cluster():
    # The last row has one label for each side; its second base cluster is nearly all of its meta-cluster.
    base = np.array([[0, 0, 0]] * 10 + [[1, 1, 1]] * 10 + [[0, 1, -1]])
    base[:4, 0] = 2
    labels = MCLA(2, random_state=0).fit_predict(base)
    assert labels[-1] == labels[10]


def test_more_clusters_than_base_clusters():
    base = np.array([[a, b, 0] for a in range(3) for b in range(3)] * 3)
    labels = MCLA(8, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(8))
    assert_array_equal(labels[:9], labels[9:18])


@pytest.mark.parametrize("balance", ["free", "equal"])
def test_one_row_or_one_cluster(balance):
    if balance == "equal":
        pytest.importorskip("pymetis", reason="pymetis, of the extra 'graphs', is not installed")
    assert_array_equal(MCLA(1, balance=balance).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(MCLA(1, balance=balance).fit_predict([["a"], ["b"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert MCLA(2, unobserved="noise").fit(base).labels_[3] == -1
    assert MCLA(2, unobserved="largest").fit(base).labels_[3] == 0
