"""One seed, one answer: by `fuse`, by `compare`, by the method itself, and among what "auto" tries."""

import numpy as np
import pytest
from benchmarks.record.design import SLOW
from sklearn.metrics import adjusted_rand_score

import consilience
from consilience import compare, consensus, fuse
from tests.planted import planted

SEED = 7
# Labels that are hardly better than guesses: starts decide, so another seed is another answer.
_, BASE = planted(90, 6, 4, noise=0.75, missing=0.2, seed=5)
QUICK = [name for name in consensus.__all__ if name not in SLOW]


def same(a, b):
    return adjusted_rand_score(a, b) == 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", QUICK)
def test_whoever_asks_for_a_method(name):
    by_fuse = fuse(BASE, 4, method=name, random_state=SEED).labels
    by_compare = compare(BASE, 4, methods=[name], n_resamples=0, random_state=SEED).fusions[name].labels
    model = getattr(consilience, name)(4)
    if "random_state" in model.get_params():
        model.set_params(random_state=SEED)
    np.testing.assert_array_equal(by_fuse, by_compare)
    assert same(by_fuse, model.fit(BASE).labels_)


def test_the_table_is_one_on_which_seeds_matter():
    assert any(
        not same(
            fuse(BASE, 4, method=name, random_state=SEED).labels,
            fuse(BASE, 4, method=name, random_state=8).labels,
        )
        for name in ("PCE", "MixtureConsensus", "DAL")
    )


def test_what_auto_tries_is_what_compare_shows():
    tried = {one.name: one.agreement for one in fuse(BASE, 4, random_state=SEED).candidates}
    shown = compare(BASE, 4, n_resamples=0, random_state=SEED).rows
    assert set(tried) >= {row.method for row in shown}
    for row in shown:
        assert row.agreement == tried[row.method]


def test_what_auto_takes_is_what_the_name_gives():
    found = fuse(BASE, 2, random_state=SEED)
    assert found.method in ("DAL", "LWEA", "MixtureConsensus")
    named = fuse(BASE, 2, method=found.method, random_state=SEED)
    np.testing.assert_array_equal(found.labels, named.labels)


def test_a_number_that_is_found_gives_what_the_same_number_gives_when_given():
    _, base = planted(120, 8, 3, noise=0.2, missing=0.3, seed=1)
    found = fuse(base, "auto", random_state=SEED)
    given = fuse(base, found.n_clusters, random_state=SEED)
    np.testing.assert_array_equal(found.labels, given.labels)
    both = compare(base, "auto", methods=["auto"], n_resamples=0, random_state=SEED)
    np.testing.assert_array_equal(next(iter(both.fusions.values())).labels, found.labels)


def test_a_generator_is_drawn_from_and_moves_on():
    rng = np.random.RandomState(0)
    first, second = (fuse(BASE, 4, method="PCE", random_state=rng).model.random_state for _ in range(2))
    assert first != second
    assert fuse(BASE, 4, method="PCE", random_state=np.random.RandomState(0)).model.random_state == first
