"""LWEA against the dense version in `oracles`, the authors' outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import LWEA, Partitions, datasets
from consilience.core.certainty import certain_coassociation
from consilience.core.linkage import cut
from consilience.metrics import normalized_mutual_info_score
from consilience.missing import drop_labels
from tests.oracles.lw import plain_certainty, plain_coassociation, plain_lwea
from tests.planted import planted
from tests.rows import distinct_rows


@pytest.mark.fixtures
def test_equals_authors_outputs(fixtures_folder):
    given = np.load(fixtures_folder / "lwea_ecoli_m20.npz")
    model = LWEA(int(given["n_clusters"]), theta=0.4).fit(given["base"])
    assert adjusted_rand_score(model.labels_, given["labels"]) == 1.0
    q = np.concatenate(model.certainty_)
    assert_allclose(q, given["ECI"], atol=1e-10)
    rows, inverse = distinct_rows(given["base"])
    s = certain_coassociation(rows, q)[np.ix_(inverse, inverse)]
    apart = inverse[:, None] != inverse[None]
    assert_allclose(s[apart], given["LWCA"][apart], atol=1e-7)  # stored in single precision
    exact = plain_coassociation(given["base"], plain_certainty(given["base"], 0.4))
    assert_allclose(exact, given["LWCA"], atol=1e-7)
    assert_allclose(s[apart], exact[apart], atol=1e-10)


@pytest.mark.data
def test_quality_on_the_authors_pool(data_folder):
    pool = datasets.load("pool_LWEA_Semeion")
    found = []
    for draw in range(10):
        columns = np.random.default_rng(draw).permutation(100)[:10]
        labels = LWEA(10).fit_predict(pool.labels[:, columns])
        found.append(normalized_mutual_info_score(pool.y, labels, normalization="max"))
    # Published: .655 over 100 draws, standard deviation .017; the band is three errors of a mean of ten.
    assert abs(np.mean(found) - 0.655) < 0.016


@pytest.mark.data
def test_missing_labels_cost_little(data_folder):
    pool = datasets.load("pool_LWEA_Semeion")
    complete, partial = [], []
    for draw in range(4):
        rng = np.random.default_rng(draw)
        rows, columns = rng.permutation(len(pool.y))[:700], rng.permutation(100)[:10]
        y, table = pool.y[rows], pool.labels[np.ix_(rows, columns)]
        for scores, base in (
            (complete, table),
            (partial, drop_labels(table, 0.7, mechanism="mcar", random_state=draw)),
        ):
            labels = LWEA(10).fit_predict(base)
            scores.append(normalized_mutual_info_score(y, labels, normalization="max"))
    # Counting a missing label as disagreement keeps about .8 of it.
    assert np.mean(partial) > 0.84 * np.mean(complete)


def without_ties(n, m, *, missing, seed):
    """A planted table with one more base of another grain, so that no two similarities are equal.

    Under ties SciPy and we both give a right answer, not always the same.
    """
    _, base = planted(n, m, 4, noise=0.25, missing=missing, seed=seed)
    return np.column_stack([base, np.random.default_rng(seed).integers(0, 30, n)])


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_equals_plain_version(missing, seed):
    base = without_ties(150, 8, missing=missing, seed=seed)
    for k in (2, 4, 9):
        assert adjusted_rand_score(LWEA(k).fit_predict(base), plain_lwea(base, k)) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_counts_equal_repeated_rows(seed):
    base = without_ties(90, 6, missing=0.2, seed=seed)
    copies = np.repeat(np.arange(90), np.random.default_rng(seed).integers(1, 6, 90))
    assert adjusted_rand_score(LWEA(4).fit_predict(base[copies]), plain_lwea(base[copies], 4)) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_neither_order_nor_names_matter_even_with_noise_and_ties(seed):
    _, base = planted(200, 6, 4, noise=0.3, missing=0.3, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(200), rng.permutation(6)
    other = base[np.ix_(rows, columns)]
    names = rng.permutation(4)
    other = np.where(other >= 0, names[other], -1)
    assert adjusted_rand_score(LWEA(4).fit_predict(base)[rows], LWEA(4).fit_predict(other)) == 1.0


def test_equal_rows_share_their_fate_however_uncertain():
    _, base = planted(100, 5, 3, noise=0.6, missing=0.0, seed=0)
    base = np.repeat(base, 4, axis=0)
    labels = LWEA(30).fit_predict(base)
    assert_array_equal(labels, np.repeat(labels[::4], 4))


def test_large_theta_is_evidence_accumulation():
    _, base = planted(120, 7, 3, noise=0.3, missing=0.0, seed=3)
    model = LWEA(3, theta=1e9).fit(base)
    assert_allclose(np.concatenate(model.certainty_), 1.0)
    s = Partitions.of(base).coassociation()
    first, second = (int(row) for row in model.row_merges_[0, :2])
    members = [int(np.flatnonzero(model.row_of_instance_ == row)[0]) for row in (first, second)]
    assert_allclose(model.row_merges_[0, 2], s[members[0], members[1]], atol=1e-8)


def test_merges_give_every_number_of_clusters():
    _, base = planted(120, 6, 4, noise=0.3, missing=0.2, seed=0)
    model = LWEA(4).fit(base)
    for k in (2, 4, 7):
        labels = cut(model.row_merges_, k)[model.row_of_instance_]
        assert adjusted_rand_score(labels, LWEA(k).fit_predict(base)) == 1.0
    assert model.row_merges_[-1, 3] == 120


def test_certainties_are_per_base_and_category():
    base = [["a", "x"], ["a", "x"], ["b", "x"], ["b", "x"]]
    model = LWEA(2).fit(base)
    assert [len(q) for q in model.certainty_] == [2, 1]
    assert_allclose(model.certainty_[1], np.exp(-0.5 / 0.4))


def test_too_many_distinct_rows_are_refused(monkeypatch):
    monkeypatch.setattr(LWEA, "max_rows", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"LWEA compares .* takes at most 10\. Hint: use LWGP"):
        LWEA(3).fit(base)


def test_too_many_base_clusters_are_refused(monkeypatch):
    monkeypatch.setattr(LWEA, "max_base_clusters", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(
        ValueError, match=r"18 clusters in all, LWEA takes at most 10; '0' alone has 3\. Hint"
    ):
        LWEA(3).fit(base)


def test_one_row_or_one_cluster():
    assert_array_equal(LWEA(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(LWEA(1).fit_predict([["a"], ["b"]]), [0, 0])
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows for n_clusters=2"):
        assert_array_equal(LWEA(2).fit_predict([["a"], ["a"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert LWEA(2, unobserved="noise").fit(base).labels_[3] == -1
    assert LWEA(2, unobserved="largest").fit(base).labels_[3] == 0
