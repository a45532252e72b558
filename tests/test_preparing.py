"""What a user knows beyond the labels: weights of sources, and instances that belong together."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from consilience import Partitions, consensus, fuse
from consilience.results.linking import linked_groups, read_links
from consilience.results.preparing import merge_rows
from tests.planted import planted


@pytest.fixture(scope="module")
def frame():
    _, base = planted(120, 4, 3, noise=0.3, missing=0.2, seed=4)
    base = base[(base >= 0).any(axis=1)]
    return pd.DataFrame(base, columns=list("abcd"), index=[f"i{n}" for n in range(len(base))])


def test_a_weight_counts_like_so_many_copies(frame):
    copies = pd.concat([frame, frame[["b", "b"]].set_axis(["b2", "b3"], axis=1)], axis=1)
    for method in ("DAL", "EAC", "KCC"):
        weighted = fuse(frame, 3, method=method, weights={"b": 3}, random_state=0)
        assert_array_equal(weighted.labels, fuse(copies, 3, method=method, random_state=0).labels)
        assert weighted.partitions.names == ("a", "b", "c", "d")
        assert len(weighted.agreement) == 4
        assert weighted.given_weights == (1, 3, 1, 1)
        assert weighted.model.partitions_.names == ("a", "b", "c", "d")
        assert weighted.model.n_features_in_ == 4
        assert_array_equal(weighted.model.predict(frame), weighted.labels)
        assert_array_equal(weighted.predict(frame), weighted.labels)


def test_a_source_of_large_weight_has_its_way(frame):
    heavy = fuse(frame, 3, weights={"c": 20}, random_state=0)
    seen = frame["c"].to_numpy() >= 0
    assert len({*zip(frame["c"][seen], heavy.labels[seen], strict=True)}) == 3
    light = fuse(frame, 3, random_state=0)
    assert len({*zip(frame["c"][seen], light.labels[seen], strict=True)}) > 3


def test_weight_zero_leaves_a_source_out(frame):
    without = fuse(frame.drop(columns="d"), 3, unobserved="noise", random_state=0)
    zero = fuse(frame, 3, weights={"d": 0}, unobserved="noise", random_state=0)
    assert_array_equal(zero.labels, without.labels)


def test_auto_leaves_out_methods_that_weigh_bases_themselves(frame):
    alike = dict(zip("abcd", planted(120, 4, 3, noise=0.02, missing=0.0, seed=4)[1].T, strict=True))
    assert {"PCE", "SPCE"} <= {candidate.method for candidate in fuse(alike, 3, random_state=0).candidates}
    tried = {candidate.method for candidate in fuse(alike, 3, weights={"a": 2}, random_state=0).candidates}
    assert "DAL" in tried
    assert not tried & {"PCE", "SPCE"}
    with pytest.warns(UserWarning, match="not reliably"):
        assert fuse(frame, "auto", weights={"a": 2}, random_state=0).cluster_count is not None
    with pytest.raises(
        ValueError, match=r"PCE does not take weights of base clusterings: .* Hint: these do: .*DAL"
    ):
        fuse(frame, 3, method="PCE", weights={"a": 2})
    weighing = {name for name in consensus.__all__ if getattr(consensus, name).weighs_bases}
    fitted = {name for name in weighing if hasattr(getattr(consensus, name)(3).fit(frame), "base_weights_")}
    assert weighing == fitted == {"PCE", "SPCE", "TRCE"}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"aa": 2}, "unknown base clustering 'aa' in weights. Hint: did you mean 'a'"),
        ([1, 2], "there are 2 weights for 4 base clusterings"),
        ({"a": -1}, "the weight of 'a' must be a number from 0. Got -1"),
        ({"a": "much"}, "weights must be numbers"),
        ([0, 0, 0, 0], "every weight is 0"),
    ],
)
def test_weights_that_make_no_sense_are_named(frame, weights, message):
    with pytest.raises(ValueError, match=message):
        fuse(frame, 3, weights=weights)


def plain_merge(codes, groups):
    """One row a group: the label that most have, -1 for a tie or none."""
    out = []
    for members in groups:
        row = []
        for column in codes[members].T:
            values, votes = np.unique(column[column >= 0], return_counts=True)
            best = values[votes == votes.max()] if len(values) else []
            row.append(best[0] if len(best) == 1 else -1)
        out.append(row)
    return np.array(out)


@pytest.mark.parametrize("seed", range(5))
def test_merged_rows_have_the_labels_of_most(frame, seed):
    rng = np.random.default_rng(seed)
    partitions = Partitions.of(frame)
    pairs = rng.integers(0, partitions.n_rows, (60, 2))
    links = read_links([(f"i{a}", f"i{b}") for a, b in pairs], partitions, "must_link")
    group = linked_groups(partitions.n_rows, links)
    merged = merge_rows(partitions, group)
    groups = [np.flatnonzero(group == g) for g in range(group.max() + 1)]
    assert_array_equal(merged.codes, plain_merge(partitions.codes, groups))
    assert_array_equal(merged.counts, [len(members) for members in groups])
    for a, b in pairs:
        assert group[a] == group[b]


def test_linked_instances_are_in_one_cluster(frame):
    pairs = [("i0", "i1"), ("i1", "i2"), ("i10", "i50")]
    fusion = fuse(frame, 3, must_link=pairs, random_state=0)
    label = dict(zip(fusion.index, fusion.labels, strict=True))
    assert label["i0"] == label["i1"] == label["i2"]
    assert label["i10"] == label["i50"]
    assert len(fusion.labels) == len(frame)
    assert_array_equal(
        fuse(frame, 3, must_link=[], random_state=0).labels, fuse(frame, 3, random_state=0).labels
    )
    for method in ("auto", "PCE", "MCLA", "LWGP", "MixtureConsensus"):
        fusion = fuse(frame, 3, must_link=pairs, method=method, weights=None, random_state=0)
        model = fusion.model
        assert_array_equal(model.labels_, fusion.labels)
        assert len(model.row_of_instance_) == len(model.confidence_) == len(frame)
        assert model.partitions_.index.tolist() == frame.index.tolist()
        for name in ("embedding_", "membership_", "reliability_", "association_"):
            assert len(getattr(model, name, model.labels_)) == len(frame)
    unseen = pd.DataFrame([[None] * 4], columns=frame.columns, index=["nobody"])
    for how, label in (("noise", -1), ("largest", 0)):
        fusion = fuse(pd.concat([frame, unseen]), 3, unobserved=how, method="PCE", random_state=0)
        assert_array_equal(fusion.model.labels_, fusion.labels)
        assert fusion.labels[-1] == label
        assert fusion.model.confidence_[-1] == 0
        assert fusion.model.imputed_.iloc[-1].isna().all()
    assert fuse(frame, 3, must_link=pairs, method="PCE", random_state=0).model.imputed_.shape == frame.shape
    with pytest.raises(ValueError, match="there is no instance 'nobody'"):
        fuse(frame, 3, must_link=[("i0", "nobody")])
    with pytest.raises(ValueError, match=r"entry 1 of must_link is 'i', not a pair"):
        fuse(frame, 3, must_link=[("i0", "i1"), "i"])
