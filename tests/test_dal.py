import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import DAL, datasets
from consilience.core.certainty import certainty
from consilience.core.diffusion import counting_share, diffuse, significant_cut, similarity
from consilience.core.linkage import average_linkage
from consilience.metrics import normalized_mutual_info_score
from consilience.missing import drop_labels
from tests.oracles import dal as oracle
from tests.planted import planted
from tests.rows import distinct_rows


def noisy(seed, n=45, m=6, missing=0.3):
    """Base clusterings of mixed numbers of clusters that disagree, so that no similarities tie."""
    rng = np.random.default_rng(seed)
    truth, base = planted(n, m, 4, noise=0.25, missing=0.0, seed=seed)
    for j in range(0, m, 2):  # every other base splits its clusters
        base[:, j] = 2 * base[:, j] + rng.integers(0, 2, n)
    base[rng.random((n, m)) < missing] = -1
    base[(base < 0).all(axis=1), 0] = 0
    return truth, np.column_stack([np.unique(c, return_inverse=True)[1] - int(c.min() < 0) for c in base.T])


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
def test_similarity_is_the_diffusion_kernel(missing):
    _, base = noisy(3, missing=missing)
    rows, inverse = distinct_rows(base)
    s = similarity(diffuse(rows, certainty(rows, 0.4)))
    assert_allclose(s[np.ix_(inverse, inverse)], oracle.similarity(base, 0.4), atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_plain_version(seed, missing):
    _, base = noisy(seed, missing=missing)
    similarity = oracle.similarity(base, 0.4)
    stages = oracle.link(similarity)
    for k, min_share in ((4, 0.1), (7, 0.5), (2, 0.0)):
        expected = oracle.assign(similarity, oracle.choose(stages, len(base), k, min_share))
        assert adjusted_rand_score(expected, DAL(k, min_share=min_share).fit_predict(base)) == 1.0


@pytest.mark.parametrize(
    ("n_bases", "n_labels", "share"), [(10, 5, 0.2), (10, 6, 0.1), (4, 3, 0.1), (5, 3, 0.2), (3, 3, 0.1)]
)
def test_more_of_an_even_share_is_asked_for_where_labels_are_few(n_bases, n_labels, share):
    rng = np.random.default_rng(0)
    base = rng.integers(0, 3, (200, n_bases))
    for row in base:
        row[rng.permutation(n_bases)[n_labels:]] = -1
    assert counting_share(distinct_rows(base)[0]) == share
    usual, asked = DAL(4).fit(base), DAL(4, min_share=share).fit(base)
    assert_array_equal(usual.labels_, asked.labels_)


def test_instances_that_share_no_base_are_linked_through_overlap():
    # Rows 0..3 and 4..7 are never seen together; the clusters of base 1 overlap with both.
    base = [[0, 0, -1], [0, 0, -1], [1, 1, -1], [1, 1, -1], [-1, 0, 0], [-1, 0, 0], [-1, 1, 1], [-1, 1, 1]]
    alone = [[0, -1, -1], [1, -1, -1], [-1, -1, 0], [-1, -1, 1]]
    labels = DAL(2).fit_predict(base + alone)
    assert_array_equal(labels[[8, 9]], labels[[0, 2]])
    assert_array_equal(labels[[10, 11]], labels[[4, 6]])
    assert labels[8] == labels[10]


class TestSignificantCut:
    # Two groups of three and two outliers: linkage joins the outliers last.
    points = np.array([0.0, 0.1, 0.2, 5.0, 5.1, 5.2, 20.0, 40.0])

    def merges(self, weights):
        return average_linkage(-np.abs(self.points[:, None] - self.points), weights)

    def test_outliers_take_no_cluster(self):
        weights = np.ones(8)
        labels = significant_cut(self.merges(weights), weights, 2, 0.5)
        assert_array_equal(labels[6:], -1)
        assert_array_equal(labels[:6], np.repeat(labels[[0, 3]], 3))
        assert set(labels[:6]) == {0, 1}

    def test_every_cluster_counts_where_none_need_be_large(self):
        weights = np.ones(8)
        labels = significant_cut(self.merges(weights), weights, 2, 0.0)
        assert_array_equal(labels, [0] * 7 + [1])

    def test_weight_makes_an_outlier_count(self):
        weights = np.array([1, 1, 1, 1, 1, 1, 1, 9.0])
        labels = significant_cut(self.merges(weights), weights, 2, 0.5)
        assert labels[7] == 0
        assert set(labels[:6]) == {1}

    def test_largest_are_kept_where_no_cut_has_just_enough(self):
        # Four equal pairs that merge into two: two or four clusters count, never three.
        points = np.array([0.0, 0.1, 1.0, 1.1, 10.0, 10.1, 11.0, 11.1])
        weights = np.ones(8)
        merges = average_linkage(-np.abs(points[:, None] - points), weights)
        # After the pairs, one of the two joins comes first: three clusters, all count.
        assert set(significant_cut(merges, weights, 3, 0.3)) == {0, 1, 2}
        labels = significant_cut(merges, weights, 3, 0.9)
        assert (labels >= 0).any()
        assert labels.max() == 2

    def test_plain_cut_where_too_few_ever_count(self):
        weights = np.ones(8)
        labels = significant_cut(self.merges(weights), weights, 5, 1.0)
        assert_array_equal(np.unique(labels), np.arange(5))


def test_exact_form_is_deterministic_and_needs_no_seed():
    _, base = noisy(1)
    first = DAL(4, random_state=0).fit(base)
    assert first.solver_ == "exact"
    assert_array_equal(first.labels_, DAL(4, random_state=1).fit_predict(base))


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_scalable_form_finds_what_the_exact_one_finds(missing):
    truth, base = planted(3000, 8, 5, noise=0.2, missing=missing, seed=5)
    exact = DAL(5, solver="exact").fit_predict(base)
    scalable = DAL(5, solver="scalable", random_state=0).fit(base)
    assert scalable.solver_ == "scalable"
    assert adjusted_rand_score(exact, scalable.labels_) > 0.97
    assert adjusted_rand_score(truth, scalable.labels_) > 0.9 - 0.3 * missing


def test_auto_takes_the_scalable_form_for_many_distinct_rows():
    truth, base = planted(20_000, 12, 6, noise=0.2, missing=0.3, seed=6)
    model = DAL(6, random_state=0).fit(base)
    assert model.solver_ == "scalable"
    assert adjusted_rand_score(truth, model.labels_) > 0.95


def test_exact_form_refuses_too_many_rows_with_a_hint():
    _, base = planted(25_000, 12, 6, noise=0.3, missing=0.3, seed=6)
    with pytest.raises(ValueError, match=r"at most 20000. Hint: use solver='scalable'"):
        DAL(6, solver="exact").fit(base)


def test_certainty_is_one_where_no_other_base_splits_a_cluster():
    base = np.array([[0, 0], [0, 0], [1, 0], [1, 1], [2, 1]])
    model = DAL(2).fit(base)
    assert [len(part) for part in model.certainty_] == [3, 2]
    assert model.certainty_[0][0] == model.certainty_[0][2] == 1.0
    assert model.certainty_[0][1] < 1.0


@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_as_many_clusters_as_asked_for(n_clusters):
    _, base = noisy(8)
    assert_array_equal(np.unique(DAL(n_clusters).fit_predict(base)), np.arange(n_clusters))


def test_one_base_clustering_with_too_few_clusters_says_so():
    with pytest.warns(UserWarning, match="only 2 distinct label rows"):
        assert len(np.unique(DAL(3).fit_predict([[0], [0], [1], [1]]))) == 2


@pytest.mark.data
@pytest.mark.usefixtures("data_folder")
def test_few_labels_cost_little():
    """On average over draws of this pool .65, and .61 with 70 % missing."""
    pool = datasets.load("pool_LWEA_Semeion")
    scores = []
    for draw in range(5):
        columns = np.random.default_rng(draw).permutation(100)[:10]
        table = pool.labels[:, columns]
        whole = DAL(10).fit_predict(table)
        few = drop_labels(table, 0.7, random_state=draw)
        found = (whole, DAL(10).fit_predict(few))
        scores.append([normalized_mutual_info_score(pool.y, x, normalization="max") for x in found])
    whole, partial = np.mean(scores, axis=0)
    assert whole > 0.62
    assert partial > 0.57


def test_scalable_form_of_base_clusterings_that_say_nothing():
    base = [[0, 0], [0, -1], [0, 0], [-1, 0]]
    assert len(np.unique(DAL(2, solver="scalable", random_state=0).fit_predict(base))) == 2


def test_a_table_of_all_pairs_of_base_clusters_is_never_too_large_for_memory(monkeypatch):
    monkeypatch.setattr(DAL, "max_base_clusters", 10)
    with pytest.raises(
        ValueError, match=r"12 clusters in all, DAL takes at most 10; '0' alone has 10\. Hint: "
    ):
        DAL(2).fit(np.column_stack([np.arange(20) // 2, np.arange(20) % 2]))
    monkeypatch.undo()
    households = np.arange(24_000) // 2
    with pytest.raises(ValueError, match="DAL takes at most 10000; '0' alone has 12000"):
        DAL(2).fit(np.column_stack([households, households % 2]))


def test_warnings_of_a_fit_point_at_the_line_of_the_user():
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows") as caught:
        DAL(2).fit([[0, 0], [0, 0]])
    assert [warning.filename for warning in caught] == [__file__]
