"""HGPA: its free form against HBGF, the partitioner's outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score

from consilience import HBGF, HGPA
from consilience.consensus import partitioners
from tests.oracles.consensus import one_hot
from tests.planted import planted

NO_EXTRA = "mtkahypar, of the extra 'graphs', is not installed"


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_free_form_is_the_bipartite_cut(missing):
    _, base = planted(200, 7, 4, noise=0.2, missing=missing, seed=0)
    assert_array_equal(HGPA(4, random_state=0).fit_predict(base), HBGF(4, random_state=0).fit_predict(base))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_free_form_uses_the_eigenvectors_of_the_hypergraph(missing):
    _, base = planted(120, 7, 3, noise=0.1, missing=missing, seed=0)
    b = one_hot(base)
    root = np.sqrt(b.sum(axis=1))[:, None]
    laplacian = (b / root) @ np.diag(1.0 / b.sum(axis=0)) @ (b / root).T
    h = np.linalg.eigh(laplacian)[1][:, -3:] / root
    h /= np.linalg.norm(h, axis=1, keepdims=True)
    labels = HGPA(3, random_state=0).fit_predict(base)
    same = labels[:, None] == labels
    assert (h @ h.T)[same].mean() > 0.8
    assert (h @ h.T)[~same].mean() < 0.2


def test_without_the_extra_equal_sizes_are_refused(monkeypatch):
    def absent(module, *, needed_for, extra):
        raise ImportError(f"{needed_for} needs {module}. Hint: pip install 'consilience[{extra}]'")

    monkeypatch.setattr(partitioners, "optional_import", absent)
    _, base = planted(100, 6, 3, noise=0.2, missing=0.2, seed=0)
    wanted = r"balance='equal' needs mtkahypar\. Hint: pip install 'consilience\[graphs\]'"
    with pytest.raises(ImportError, match=wanted):
        HGPA(3, balance="equal", random_state=0).fit(base)


def torn(base, labels):
    """In how many parts each base cluster lies, less one, summed."""
    columns = base.T
    return sum(
        len(np.unique(labels[column == label])) - 1
        for column in columns
        for label in np.unique(column[column >= 0])
    )


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["pixraw_miss30", "yale_m10"])
def test_equal_parts_tear_as_little_as_those_of_the_published_program(fixtures_folder, name):
    pytest.importorskip("mtkahypar", reason=NO_EXTRA)
    given = np.load(fixtures_folder / f"hgpa_{name}.npz")
    base, k = given["base"], int(given["n_clusters"])
    model = HGPA(k, balance="equal", random_state=0).fit(base)
    assert model.partitioner_ == "kahypar"
    assert torn(base, model.labels_) <= 1.1 * torn(base, given["labels"])
    assert_array_equal(model.labels_, HGPA(k, balance="equal", random_state=0).fit(base).labels_)


def test_equal_parts_are_nearly_equal_and_right_where_nothing_is_torn():
    pytest.importorskip("mtkahypar", reason=NO_EXTRA)
    truth = np.repeat(np.arange(4), 25)
    base = np.column_stack([truth, truth[::-1], (truth + 1) % 4])
    assert adjusted_rand_score(HGPA(4, balance="equal", random_state=0).fit_predict(base), truth) == 1.0
    _, base = planted(400, 8, 4, noise=0.3, missing=0.2, seed=0)
    sizes = np.bincount(HGPA(4, balance="equal", random_state=0).fit_predict(base))
    assert sizes.max() <= 1.05 * 100


@pytest.mark.parametrize("balance", ["free", "equal"])
def test_one_row_or_one_cluster(balance):
    if balance == "equal":
        pytest.importorskip("mtkahypar", reason=NO_EXTRA)
    assert_array_equal(HGPA(1, balance=balance).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(HGPA(1, balance=balance).fit_predict([["a"], ["b"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert HGPA(2, unobserved="noise").fit(base).labels_[3] == -1
    assert HGPA(2, unobserved="largest").fit(base).labels_[3] == 0
