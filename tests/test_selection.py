"""The rule of "auto" as a table of cases: features in, what is tried and taken out; nothing is fitted."""

import numpy as np
import pytest

from consilience.results import Candidate
from consilience.results.selection import CANDIDATES, SAMPLE, Features, Trials, decide, next_trials, plan

ALL = dict.fromkeys(CANDIDATES, np.inf)
EVEN, MIXED = np.full(10, 4), np.arange(2, 12)  # numbers of base clusters where 4 are wanted


@pytest.mark.parametrize(
    ("features", "limits", "methods", "lead"),
    [
        (Features(4, EVEN, 500, 10.0), ALL, tuple(CANDIDATES), 0.0),
        (Features(4, EVEN, 1_001, 10.0), ALL, ("DAL", "LWGP", "PCE", "MixtureConsensus", "LWEA"), 0.0),
        (Features(4, EVEN, 5_001, 10.0), ALL, ("DAL", "LWGP", "PCE", "MixtureConsensus"), 0.0),
        (Features(4, MIXED, 500, 10.0), ALL, ("DAL", "MixtureConsensus", "LWEA"), 0.2),
        (Features(4, MIXED, 5_001, 10.0), ALL, ("DAL", "MixtureConsensus"), 0.2),
        # nine of ten within a quarter of the wanted number are about right, eight are not
        (Features(4, np.array([5] * 9 + [8]), 500, 10.0), ALL, tuple(CANDIDATES), 0.0),
        (Features(4, np.array([5] * 8 + [8, 8]), 500, 10.0), ALL, ("DAL", "MixtureConsensus", "LWEA"), 0.2),
        (Features(4, np.array([6] * 10), 500, 10.0), ALL, ("DAL", "MixtureConsensus", "LWEA"), 0.2),
        # by weight
        (Features(4, np.array([4, 9]), 500, 2.0, np.array([9.0, 1.0])), ALL, tuple(CANDIDATES), 0.0),
        (Features(4, np.array([4, 9]), 500, 2.0), ALL, ("DAL", "MixtureConsensus", "LWEA"), 0.2),
        # DAL refuses so many base clusters: the best of the others is taken
        (Features(4, MIXED, 5_001, 10.0), ALL | {"DAL": 60}, ("LWGP", "PCE", "MixtureConsensus"), 0.2),
        # with weights, methods that learn weights are not among the limits
        (Features(4, EVEN, 500, 10.0), {"DAL": np.inf, "LWEA": np.inf}, ("DAL", "LWEA"), 0.0),
    ],
)
def test_what_is_tried(features, limits, methods, lead):
    found = plan(features, limits)
    assert found.methods == methods
    assert found.lead == lead


def test_a_given_lead_counts_and_many_rows_are_sampled():
    assert plan(Features(4, MIXED, 500, 10.0), ALL, 0.0).methods == tuple(CANDIDATES)
    assert not plan(Features(4, EVEN, SAMPLE, 10.0), ALL).sampled
    assert plan(Features(4, EVEN, SAMPLE + 1, 10.0), ALL).sampled


DAL, LWEA, MIX = Candidate("DAL", 0.50), Candidate("LWEA", 0.55), Candidate("MixtureConsensus", 0.58)
BETTER, HARDLY = Candidate("DAL", 0.53, polished=True), Candidate("DAL", 0.519, polished=True)
FAR = Candidate("LWEA", 0.61)


@pytest.mark.parametrize(
    ("base_clusters", "labels_each", "tried", "trials"),
    [
        (EVEN, 10.0, [], Trials(tuple(CANDIDATES), polish=True)),
        (EVEN, 10.0, [DAL, BETTER], None),
        (MIXED, 10.0, [], Trials(("DAL",), polish=True)),
        (MIXED, 5.9, [], Trials(("DAL",), polish=False)),  # too few labels to believe the mixture
        (MIXED, 10.0, [DAL, BETTER], Trials(("MixtureConsensus", "LWEA"), polish=True)),
        (MIXED, 10.0, [DAL, HARDLY], Trials(("LWEA",), polish=False)),
        (MIXED, 5.9, [DAL], Trials(("LWEA",), polish=False)),
        (MIXED, 10.0, [DAL, HARDLY, LWEA], None),
        (MIXED, 10.0, [DAL, BETTER, MIX, LWEA], None),
    ],
)
def test_how_it_goes_on(base_clusters, labels_each, tried, trials):
    assert next_trials(plan(Features(4, base_clusters, 500, labels_each), ALL), tried) == trials


@pytest.mark.parametrize(
    ("base_clusters", "tried", "best", "reason"),
    [
        (EVEN, [DAL, LWEA], LWEA, "It agrees best with the base clusterings (mean NMI 0.550)."),
        (MIXED, [DAL, LWEA], DAL, "neither LWEA nor the mixture agrees much better"),
        (MIXED, [DAL, FAR], FAR, "agrees better with them than DAL by more than 20%"),
        (MIXED, [DAL, HARDLY, FAR], FAR, "by more than 20%"),
        (MIXED, [DAL, HARDLY], DAL, "neither LWEA nor the mixture"),
        (MIXED, [DAL, BETTER, FAR, MIX], MIX, "the mixture makes DAL agree better with them by more than 4%"),
        (MIXED, [DAL, BETTER], BETTER, "the mixture makes DAL agree better"),
    ],
)
def test_what_is_taken_and_why(base_clusters, tried, best, reason):
    found = decide(plan(Features(4, base_clusters, 500, 10.0), ALL), tried)
    assert found.best == best
    assert reason in found.reason
    assert sorted(found.ranked) == sorted(tried)
    assert [one.agreement for one in found.ranked] == sorted((one.agreement for one in tried), reverse=True)


def test_a_sample_is_mentioned():
    found = decide(plan(Features(4, EVEN, SAMPLE + 1, 10.0), ALL), [DAL])
    assert f"on {SAMPLE} instances" in found.reason
