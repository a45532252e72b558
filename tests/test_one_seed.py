"""One seed, one answer: by `fuse`, by `compare`, by the method itself, and among what "auto" tries."""

import numpy as np
import pytest
from benchmarks.record.design import SLOW
from sklearn.metrics import adjusted_rand_score

import consilience
from consilience import PCE, MixtureConsensus, compare, consensus, fuse, fuse_views
from consilience.results.calling import call_of
from tests.planted import planted

SEED = 7
# Labels that are hardly better than guesses: starts decide, so another seed is another answer.
_, BASE = planted(90, 6, 4, noise=0.75, missing=0.2, seed=5)
QUICK = [name for name in consensus.__all__ if name not in SLOW]


def run(call, names):
    return eval(call, names)  # noqa: S307 - what the page tells people to type


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
    shown = {row.method: row.agreement for row in compare(BASE, 4, n_resamples=0, random_state=SEED).rows}
    both = set(tried) & set(shown)
    assert both == {name for name in tried if not name.endswith("polished")}
    assert {name: tried[name] for name in both} == {name: shown[name] for name in both}


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


@pytest.mark.parametrize(
    ("how", "call"),
    [
        ({}, "fuse(labels, 4, random_state=7)"),
        ({"method": "DAL"}, "fuse(labels, 4, method='DAL', random_state=7)"),
        (
            {"method": PCE(9, gamma=0.5), "unobserved": "noise"},
            "fuse(labels, 4, method=PCE(gamma=0.5), unobserved='noise', random_state=7)",
        ),
        (
            {"method": MixtureConsensus(), "weights": {"a": 2, "b": 1, "c": 0, "d": 1, "e": 1, "f": 1}},
            "fuse(labels, 4, method='MixtureConsensus', weights={'a': 2.0, 'b': 1.0, 'c': 0.0, 'd': 1.0, "
            "'e': 1.0, 'f': 1.0}, random_state=7)",
        ),
        ({"must_link": [(0, 1), (5, 8)]}, "fuse(labels, 4, must_link=pairs, random_state=7)"),
    ],
)
def test_the_call_on_the_page_gives_the_same_again(how, call):
    labels = dict(zip("abcdef", BASE.T, strict=True))
    fusion = fuse(labels, 4, **how, random_state=SEED)
    assert call_of(fusion) == call
    names = {"fuse": fuse, "labels": labels, "pairs": how.get("must_link"), "PCE": PCE}
    np.testing.assert_array_equal(run(call, names).labels, fusion.labels)


def test_without_a_seed_the_drawn_one_gives_the_same_again():
    fusion = fuse(BASE, "auto", method="PCE")
    call = call_of(fusion)
    assert call == f"fuse(labels, 'auto', method='PCE', random_state={fusion.seed})"
    np.testing.assert_array_equal(run(call, {"fuse": fuse, "labels": BASE}).labels, fusion.labels)


@pytest.mark.parametrize("how", [{"method": "PSE"}, {"method": "labels", "n_partitions": 4}])
def test_calls_of_views(how):
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 20)
    views = {name: rng.normal(4 * rng.normal(size=(3, 3))[kind]) for name in "ab"}
    fusion = fuse_views(views, 3, **how, random_state=SEED)
    call = call_of(fusion)
    said = "".join(f", {name}={value!r}" for name, value in how.items())
    assert call == f"fuse_views(views, 3{said}, random_state=7)"
    np.testing.assert_array_equal(run(call, {"fuse_views": fuse_views, "views": views}).labels, fusion.labels)


def test_results_of_a_comparison_know_their_seed():
    found = compare(BASE, 4, methods=["PCE"], n_resamples=0, random_state=SEED).fusions["PCE"]
    assert call_of(found) == "fuse(labels, 4, method='PCE', random_state=7)"
