"""Typical labels of clusters against loops over instances, and their laws."""

import json
from collections import Counter
from datetime import date

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from consilience import Partitions
from consilience.diagnostics import typical_labels
from tests.planted import planted


@pytest.fixture(params=[0.0, 0.4])
def noisy(request):
    """Base labels with gaps; consensus labels with a cluster of one, an unused number and unassigned ones."""
    rng = np.random.default_rng(3)
    truth, base = planted(70, 5, 3, noise=0.3, missing=request.param, seed=2)
    labels = np.where(rng.random(70) < 0.2, rng.integers(0, 3, 70), truth)
    labels[labels == 2] = 3
    labels[[4, 11]] = -1
    labels[7] = 4
    return base, labels


def rows_of(found):
    return {
        (c, base, label): (n, share, lift)
        for c, base, label, n, share, lift in zip(
            found.cluster, found.base, found.label, found.count, found.share, found.lift, strict=True
        )
    }


def plain(base, labels):
    out = {}
    for j, column in enumerate(base.T):
        seen = [(c, label) for c, label in zip(labels, column, strict=True) if c >= 0 and label >= 0]
        together = Counter(seen)
        of_label, of_cluster = Counter(label for _, label in seen), Counter(c for c, _ in seen)
        for (c, label), n in together.items():
            share = n / of_cluster[c]
            out[c, str(j), label] = n, share, share / (of_label[label] / len(seen))
    return out


def test_equal_loops(noisy):
    base, labels = noisy
    found, expected = rows_of(typical_labels(Partitions.of(base), labels)), plain(base, labels)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert_allclose(found[key], values, atol=1e-12)
    assert {c for c, _, _ in found} == {0, 1, 3, 4}


def test_lifts_of_a_label_average_to_one(noisy):
    base, labels = noisy
    found = pd.DataFrame(typical_labels(Partitions.of(base), labels).as_dict())
    size = (found["count"] / found["share"]).groupby([found["base"], found["cluster"]]).transform("first")
    of_base = found.groupby("base")["count"].transform("sum")
    mean = (found["lift"] * size / of_base).groupby([found["base"], found["label"]]).sum()
    assert_allclose(mean, 1.0)


def test_the_most_typical_come_first(noisy):
    base, labels = noisy
    found = typical_labels(Partitions.of(base), labels)
    amount = found.share * np.log(found.lift)
    for c in (0, 1, 3, 4):
        assert (np.diff(amount[found.cluster == c]) <= 1e-9).all()
    assert (np.diff(found.cluster) >= 0).all()


def test_names_and_order_change_nothing_but_names(noisy):
    base, labels = noisy
    order = np.random.default_rng(0).permutation(70)
    moved = typical_labels(Partitions.of(np.where(base >= 0, base + 10, -1)[order]), labels[order])
    found = typical_labels(Partitions.of(base), labels)
    assert rows_of(moved) == {(c, j, label + 10): values for (c, j, label), values in rows_of(found).items()}


def test_unanimous_base_clusterings_are_typical_in_full():
    teams = Partitions.of({"a": ["x", "x", "y", None], "b": ["p", "p", None, "q"]})
    found = typical_labels(teams, [0, 0, 1, 1])
    assert found.most(0) == ["b: p 100% (x1.5)", "a: x 100% (x1.5)"][::-1]
    assert found.most(1, 1) == ["a: y 100% (x3.0)"]
    assert found.most(2) == []


def test_what_is_as_frequent_elsewhere_is_not_typical():
    found = typical_labels(Partitions.of({"a": [0, 0, 0, 0], "b": [0, 1, 0, 1]}), [0, 0, 1, 1])
    assert found.most(0) == found.most(1) == []


def test_is_plain_and_a_frame():
    teams = Partitions.of({"a": [date(2024, 1, 1), date(2025, 1, 1), None], "b": [True, False, True]})
    found = typical_labels(teams, [0, 1, 1])
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert "2024-01-01" in plain["label"]
    assert len(pd.DataFrame(plain)) == len(found.label)
    assert repr(found) == "TypicalLabels(5 labels of 2 clusters)"
