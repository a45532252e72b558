"""The rule of "auto" as a table of cases: features in, what is tried and taken out; nothing is fitted."""

import numpy as np
import pytest

from consilience.results import Candidate
from consilience.results.selection import (
    CANDIDATES,
    LIKELY,
    SAMPLE,
    Features,
    Plan,
    best_of,
    decide,
    plan,
    rule_of,
)

ALL = dict.fromkeys((*CANDIDATES, *LIKELY), np.inf)
EVEN, MIXED = np.full(10, 4), np.arange(2, 12)  # numbers of base clusters where 4 are wanted
ONE_PROGRAM, OWN_WAY = np.full(10, 0.8), np.array([0.8] * 8 + [0.3, 0.5])  # how far they follow
WITHOUT_SPCE = ("DAL", "LWGP", "PCE", "MixtureConsensus", "LWEA")


def sources(*shared, weights=None, numbers=None):
    """Features of sources with other numbers of clusters than the 4 that are wanted."""
    numbers = np.arange(2, 2 + len(shared)) * 3 if numbers is None else np.asarray(numbers)
    return Features(4, numbers, 500, np.array(shared), None if weights is None else np.array(weights))


@pytest.mark.parametrize(
    ("features", "limits", "methods", "rule"),
    [
        (Features(4, EVEN, 500), ALL, tuple(CANDIDATES), "agreement"),
        (Features(4, EVEN, 500, ONE_PROGRAM), ALL, tuple(CANDIDATES), "agreement"),
        (Features(4, EVEN, 500, OWN_WAY), ALL, LIKELY, "likelihood"),  # whatever the numbers are
        (Features(4, EVEN, 1_001), ALL, WITHOUT_SPCE, "agreement"),
        (Features(4, EVEN, 5_001), ALL, ("DAL", "LWGP", "PCE", "MixtureConsensus"), "agreement"),
        (Features(4, MIXED, 500, ONE_PROGRAM), ALL, ("DAL", "LWEA"), "DAL"),
        (Features(4, MIXED, 5_001, ONE_PROGRAM), ALL, ("DAL",), "DAL"),
        (Features(4, MIXED, 500, OWN_WAY), ALL, LIKELY, "likelihood"),
        (Features(4, MIXED, 5_001, OWN_WAY), ALL, LIKELY, "likelihood"),
        # more clusters are wanted than sources have, by more than a quarter of their mean
        (Features(5, EVEN, 500, OWN_WAY), ALL, LIKELY, "likelihood"),
        (Features(6, EVEN, 500, OWN_WAY), ALL, ("LWEA",), "finer"),
        (Features(6, EVEN, 5_001, OWN_WAY), ALL, LIKELY, "likelihood"),  # LWEA is too costly
        (Features(6, EVEN, 500, OWN_WAY), ALL | {"LWEA": 30}, LIKELY, "likelihood"),
        (Features(6, EVEN, 500, ONE_PROGRAM), ALL, ("DAL", "LWEA"), "DAL"),
        (Features(6, np.array([4, 9]), 500, np.full(2, 0.1), np.array([9.0, 1.0])), ALL, ("LWEA",), "finer"),
        (Features(6, np.array([4, 9]), 500, np.full(2, 0.1)), ALL, LIKELY, "likelihood"),
        # nine of ten within a quarter of the wanted number are about right, eight are not
        (Features(4, np.array([5] * 9 + [8]), 500), ALL, tuple(CANDIDATES), "agreement"),
        (Features(4, np.array([5] * 8 + [8, 8]), 500, ONE_PROGRAM), ALL, ("DAL", "LWEA"), "DAL"),
        (Features(4, np.array([6] * 10), 500, ONE_PROGRAM), ALL, ("DAL", "LWEA"), "DAL"),
        # by weight
        (Features(4, np.array([4, 9]), 500, None, np.array([9.0, 1.0])), ALL, tuple(CANDIDATES), "agreement"),
        (Features(4, np.array([4, 9]), 500, np.full(2, 0.9)), ALL, ("DAL", "LWEA"), "DAL"),
        # DAL refuses so many base clusters: the best of the others is taken; without HBGF, the mixture is
        (
            Features(4, MIXED, 5_001, ONE_PROGRAM),
            ALL | {"DAL": 60},
            ("LWGP", "PCE", "MixtureConsensus"),
            "agreement",
        ),
        (Features(4, MIXED, 500, OWN_WAY), ALL | {"HBGF": 60}, ("MixtureConsensus",), "likelihood"),
        # with weights, methods that learn weights are not among the limits
        (Features(4, EVEN, 500), {"DAL": np.inf, "LWEA": np.inf}, ("DAL", "LWEA"), "agreement"),
    ],
)
def test_what_is_tried(features, limits, methods, rule):
    found = plan(features, limits)
    assert found.methods == methods
    assert found.rule == rule


@pytest.mark.parametrize(
    ("features", "rule"),
    [
        (sources(0.9, 0.8, 0.56), "DAL"),
        (sources(0.9, 0.8, 0.55), "likelihood"),
        (sources(0.9, 0.8, 0.55 + 1e-12), "likelihood"),  # up to rounding
        (sources(0.2, 0.2), "likelihood"),
        # one of eight is a source of its own, one of nine a bad run
        (sources(*[0.8] * 7, 0.1), "likelihood"),
        (sources(*[0.8] * 8, 0.1), "DAL"),
        (sources(*[0.8] * 8, 0.1, weights=[1.0] * 8 + [2.0]), "likelihood"),
        (sources(*[0.8] * 7, 0.1, weights=[1.0] * 7 + [0.5]), "DAL"),
        # who says nothing, or shares nobody with another, is not asked
        (sources(0.9, np.nan, 0.3), "likelihood"),
        (sources(*[0.8] * 7, 0.1, np.nan), "likelihood"),
        (sources(np.nan, weights=[2.0]), "DAL"),
        (sources(np.nan), "DAL"),
        (Features(4, MIXED, 500), "DAL"),
    ],
)
def test_who_goes_an_own_way(features, rule):
    assert rule_of(features) == rule


def test_a_given_rule_counts_and_many_rows_are_sampled():
    assert plan(Features(4, MIXED, 500), ALL, "agreement").methods == tuple(CANDIDATES)
    assert not plan(Features(4, EVEN, SAMPLE), ALL).sampled
    assert plan(Features(4, EVEN, SAMPLE + 1), ALL).sampled


@pytest.mark.parametrize(
    ("chosen", "n_steps"),
    [
        (Plan(("DAL", "LWEA"), "DAL"), 2),
        (Plan(LIKELY, "likelihood"), 3),
        (Plan(("LWEA",), "finer"), 2),
        (Plan(LIKELY, "likelihood", sampled=True), 4),
        (Plan(tuple(CANDIDATES), "agreement"), 11),
    ],
)
def test_how_many_fits_there_are(chosen, n_steps):
    assert chosen.n_steps == n_steps


DAL, LWEA, FAR = Candidate("DAL", 0.50), Candidate("LWEA", 0.55), Candidate("LWEA", 0.61)
HBGF, POLISHED = Candidate("HBGF", 0.70), Candidate("HBGF", 0.60, True, 2.5)
MIXTURE, LIKELIER = (
    Candidate("MixtureConsensus", 0.65, surprise=2.6),
    Candidate("MixtureConsensus", 0.4, surprise=2.4),
)
FINER = Candidate("LWEA", 0.5, True, 2.7)
SAME = Candidate("MixtureConsensus", 0.6, surprise=2.5 - 1e-12)


@pytest.mark.parametrize(
    ("features", "tried", "best", "reason"),
    [
        (
            Features(4, EVEN, 500),
            [DAL, LWEA],
            LWEA,
            "It agrees best with the base clusterings (mean NMI 0.550).",
        ),
        (
            Features(4, MIXED, 500, ONE_PROGRAM),
            [DAL, LWEA],
            DAL,
            "follow from each other, as runs of one program do: DAL suits these; LWEA does not agree much",
        ),
        (
            Features(4, MIXED, 500, ONE_PROGRAM),
            [DAL, FAR],
            FAR,
            "agrees better with them than DAL by more than 20%",
        ),
        (Features(4, MIXED, 5_001, ONE_PROGRAM), [DAL], DAL, "DAL suits these."),  # LWEA is too costly
        (
            Features(4, MIXED, 500, OWN_WAY),
            [HBGF, POLISHED, MIXTURE],
            POLISHED,
            "The base clusterings do not all follow from each other, as runs of one program would (one by "
            "30% only); this answer makes their labels most likely.",
        ),
        (
            Features(6, EVEN, 500, OWN_WAY),
            [LWEA, FINER],
            FINER,
            "(one by 30% only), and have fewer clusters than are wanted: LWEA suits these.",
        ),
        (Features(4, MIXED, 500, OWN_WAY), [HBGF, POLISHED, LIKELIER], LIKELIER, "most likely."),
        (Features(4, MIXED, 500, OWN_WAY), [HBGF, POLISHED, SAME], POLISHED, "most likely."),
    ],
)
def test_what_is_taken_and_why(features, tried, best, reason):
    found = decide(plan(features, ALL), tried)
    assert found.best == best
    assert reason in found.reason
    assert sorted(found.ranked, key=tried.index) == tried
    assert [one.agreement for one in found.ranked] == sorted((one.agreement for one in tried), reverse=True)


def test_of_methods_that_find_the_same_clusters_the_first_is_taken():
    # Their agreements and likelihoods differ in the last digit, which the names of labels decide.
    for rule in ("agreement", "likelihood"):
        tried = [
            Candidate(name, 0.3 + ulps * 2**-54, surprise=0.3 - ulps * 2**-54)
            for ulps, name in enumerate("abc")
        ]
        assert len({candidate.agreement for candidate in tried}) > 1
        for order in (tried, tried[::-1]):
            assert best_of(order, rule) is order[0]


@pytest.mark.parametrize("shared", [None, ONE_PROGRAM, OWN_WAY])
def test_a_sample_is_mentioned(shared):
    features = Features(4, EVEN if shared is None else MIXED, SAMPLE + 1, shared)
    tried = [FAR, DAL] if shared is ONE_PROGRAM else [Candidate("MixtureConsensus", 0.5, surprise=1.0)]
    assert f"on {SAMPLE} instances" in decide(plan(features, ALL), tried).reason
