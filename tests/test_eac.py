"""EAC against SciPy on all instances, published figures, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import EAC, LWEA, Partitions
from consilience.core.linkage import cut
from consilience.metrics import normalized_mutual_info_score
from tests.oracles.consensus import plain_eac, plain_shares
from tests.planted import planted
from tests.pools import first_ten, nmi
from tests.test_lwea import without_ties


@pytest.mark.data
@pytest.mark.parametrize(
    ("pool", "expected"),
    [("LWEA_VS", 0.146), ("LWEA_Semeion", 0.599), ("Zhou_Lung", 0.599), ("RCE_Yale", 0.428)],
)
def test_quality_on_pools(data_folder, pool, expected):
    table, y = first_ten(pool)
    k = len(np.unique(y))
    # The reference is SciPy's answer for the rows as they are stored. Votes are few numbers, so there are
    # ties, and SciPy breaks them by row number: shuffled rows move VS from .146 to .131 - .135.
    distance = squareform(1.0 - Partitions.of(table).coassociation(), checks=False)
    stored = fcluster(linkage(distance, "average"), k, "maxclust")
    assert abs(normalized_mutual_info_score(y, stored, normalization="max") - expected) < 0.005
    assert abs(nmi(EAC(k), table, y) - expected) < 0.03


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_average_linkage_equals_plain_version(missing, seed):
    # Shares of agreement are few numbers, and ties would allow several answers: many bases make them rarer.
    base = np.column_stack([without_ties(60, 40, missing=missing, seed=s) for s in (seed, seed + 10)])
    for k in (2, 4):
        assert adjusted_rand_score(EAC(k).fit_predict(base), plain_eac(base, k, "average")) == 1.0


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_single_linkage_merges_at_the_heights_of_scipy(missing, seed):
    _, base = planted(60, 8, 4, noise=0.25, missing=missing, seed=seed)
    base = np.unique(base, axis=0)
    found = EAC(4, linkage="single").fit(base).row_merges_
    reference = linkage(squareform(10.0 - plain_shares(base), checks=False), "single")
    assert_allclose(found[:, 2], 10.0 - reference[:, 2], atol=1e-10)


def test_single_linkage_follows_chains():
    base = np.array([[0, 0], [0, 1], [1, 1], [1, 2], [2, 2], [5, 5], [5, 5]])
    assert_array_equal(EAC(2, linkage="single").fit_predict(base), [0, 0, 0, 0, 0, 1, 1])


@pytest.mark.parametrize("seed", range(3))
def test_counts_equal_repeated_rows(seed):
    base = np.column_stack([without_ties(40, 40, missing=0.2, seed=s) for s in (seed, seed + 10)])
    copies = np.repeat(np.arange(40), np.random.default_rng(seed).integers(1, 6, 40))
    assert adjusted_rand_score(EAC(4).fit_predict(base[copies]), plain_eac(base[copies], 4, "average")) == 1.0


@pytest.mark.parametrize("kind", ["average", "single"])
@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(kind, seed):
    _, base = planted(150, 7, 4, noise=0.15, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(150), rng.permutation(7), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = EAC(4, linkage=kind)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_is_lwea_with_clusters_that_all_count_alike(missing):
    _, base = planted(120, 7, 3, noise=0.3, missing=missing, seed=3)
    assert_array_equal(EAC(3).fit(base).row_merges_, LWEA(3, theta=1e30).fit(base).row_merges_)


def test_first_merge_has_the_highest_share_of_agreement():
    _, base = planted(120, 7, 3, noise=0.3, missing=0.0, seed=3)
    rows = Partitions.of(base).distinct
    s = Partitions.of(rows.codes).coassociation()
    np.fill_diagonal(s, 0.0)
    assert_allclose(EAC(3).fit(base).row_merges_[0, 2], s.max(), atol=1e-10)


@pytest.mark.parametrize("kind", ["average", "single"])
def test_merges_give_every_number_of_clusters(kind):
    _, base = planted(120, 6, 4, noise=0.3, missing=0.2, seed=0)
    model = EAC(4, linkage=kind).fit(base)
    for k in (2, 4, 7):
        labels = EAC(k, linkage=kind).fit_predict(base)
        assert adjusted_rand_score(cut(model.row_merges_, k)[model.row_of_instance_], labels) == 1.0
    assert model.row_merges_[-1, 3] == 120
    assert (np.diff(model.row_merges_[:, 2]) <= 1e-10).all()


def test_too_many_distinct_rows_are_refused(monkeypatch):
    monkeypatch.setattr(EAC, "max_rows", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"EAC compares all pairs of them and takes at most 10\. Hint"):
        EAC(3).fit(base)


@pytest.mark.parametrize("kind", ["average", "single"])
def test_one_row_or_one_cluster(kind):
    assert_array_equal(EAC(1, linkage=kind).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(EAC(1, linkage=kind).fit_predict([["a"], ["b"]]), [0, 0])
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows for n_clusters=2"):
        assert_array_equal(EAC(2, linkage=kind).fit_predict([["a"], ["a"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert EAC(2, unobserved="noise").fit(base).labels_[3] == -1
    assert EAC(2, unobserved="largest").fit(base).labels_[3] == 0
