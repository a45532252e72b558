"""Diagnostics of a consensus against loops over pairs, and their laws."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2_contingency
from sklearn.metrics import adjusted_mutual_info_score

from consilience import Partitions
from consilience.core import blocks
from consilience.diagnostics import (
    base_table,
    confidence,
    diagnose,
    identifiability,
    links,
    missing_not_at_random,
    require_linked,
    support,
)
from consilience.inference import counts as count_tables
from consilience.inference import skill
from consilience.inference.posterior import gather_evidence, predict_confidence
from tests.oracles.diagnostics import (
    plain_components,
    plain_confidence,
    plain_judgement,
    plain_mask_link,
    plain_never_together,
    plain_posterior,
    plain_support,
)
from tests.planted import planted


def patterns(table):
    return table.patterns.observed, table.patterns.counts


PER_INSTANCE = ("confidence", "margin", "item_consensus", "coverage")


def read(base):
    return Partitions.of(base, unobserved="keep")


@pytest.fixture(params=[0.0, 0.4, 0.7])
def noisy(request):
    """Base labels with gaps, and consensus labels that are sometimes wrong or absent and differ within
    equal rows."""
    rng = np.random.default_rng(3)
    truth, base = planted(70, 5, 3, noise=0.3, missing=request.param, seed=2)
    labels = np.where(rng.random(70) < 0.2, rng.integers(0, 3, 70), truth)
    labels[[4, 11]] = -1
    if request.param:
        base[20] = -1
    return base, labels


class TestAgainstLoops:
    def test_confidence(self, noisy):
        base, labels = noisy
        assert_allclose(confidence(read(base), labels), plain_confidence(base, labels), atol=1e-12)

    def test_dependence(self):
        rng = np.random.default_rng(0)
        truth, base = planted(80, 6, 3, noise=0.4, missing=0.2, seed=0)
        base[:, 3:] = np.where(
            rng.random((80, 3)) < 0.8, base[:, :3], base[:, 3:]
        )  # bases that repeat others
        expected = plain_posterior(base, truth)[1]
        assert 0.1 < expected < 0.99
        assert_allclose(gather_evidence(read(base), truth).dependence, expected, atol=1e-12)

    def test_margin_and_alternative(self, noisy):
        base, labels = noisy
        found = diagnose(read(base), labels)
        _, margin, alternative, _ = plain_judgement(base, labels)
        assert_allclose(found.margin, margin, atol=1e-12)
        assert_array_equal(found.alternative, alternative)
        assert (found.alternative != labels)[labels >= 0].all()

    def test_support_and_coverage(self, noisy):
        base, labels = noisy
        found, s = support(read(base), labels), plain_support(base, labels)
        own = np.where(labels >= 0, s[np.arange(70), labels], 0.0)
        assert_allclose(found.item_consensus, own, atol=1e-12)
        s[np.arange(70), labels] = 0.0
        assert_allclose(found.second, np.where(labels >= 0, s.max(axis=1), 0.0), atol=1e-12)
        assert_allclose(found.coverage, (base >= 0).mean(axis=1))

    def test_cluster_consensus(self, noisy):
        base, labels = noisy
        clusters, s = support(read(base), labels).clusters, plain_support(base, labels)
        for c in range(3):
            mean = s[labels == c].mean(axis=0)
            assert clusters.size[c] == (labels == c).sum()
            assert_allclose(clusters.own[c], mean[c])
            mean[c] = -1
            assert_allclose(clusters.between[c], mean.max())
            assert clusters.nearest[c] == mean.argmax()

    def test_never_together_components_and_mask_link(self, noisy):
        base, _ = noisy
        found = identifiability(read(base))
        assert_allclose(found.never_together, plain_never_together(base))
        assert_allclose(found.mask_link, plain_mask_link(base), atol=1e-12)
        parts = plain_components(base)
        assert_array_equal(found.components[:, None] == found.components, parts[:, None] == parts)
        assert_array_equal(
            found.component_sizes, np.sort(np.unique(parts[parts >= 0], return_counts=True)[1])[::-1]
        )

    def test_agreement_of_bases(self):
        truth, base = planted(4000, 4, 3, noise=0.2, missing=0.3, seed=1)
        found = base_table(read(base), truth)
        for j in range(4):
            seen = base[:, j] >= 0
            expected = adjusted_mutual_info_score(base[seen, j], truth[seen])
            assert_allclose(found.agreement[j], expected, atol=0.02)  # what shrinking may change
        pairs = np.eye(4)
        for i, j in np.argwhere(~np.eye(4, dtype=bool)):
            both = (base[:, i] >= 0) & (base[:, j] >= 0)
            pairs[i, j] = adjusted_mutual_info_score(base[both, i], base[both, j])
        assert_allclose(found.effective_number, 16 / pairs.sum(), rtol=1e-4)
        assert_allclose(found.novelty, 1 - (pairs - np.eye(4)).max(axis=1), atol=1e-4)

    def test_many_base_clusters_are_compared_pair_by_pair(self, monkeypatch):
        truth, base = planted(300, 4, 3, noise=0.2, missing=0.3, seed=1)
        whole = base_table(read(base), truth)
        monkeypatch.setattr(count_tables, "_MAX_SIDE", 2)
        assert_allclose(base_table(read(base), truth).novelty, whole.novelty)

    def test_chi_square_of_missing_labels(self):
        truth, base = planted(300, 3, 4, noise=0.2, missing=0.3, seed=1)
        base[(truth == 1) & (np.arange(300) % 3 > 0), 0] = -1
        found = missing_not_at_random(read(base), truth)
        for j in range(3):
            seen = base[:, j] >= 0
            table = [[np.sum(row & (truth == c)) for c in range(4)] for row in (seen, ~seen)]
            expected = chi2_contingency(table, correction=False)
            assert_allclose(found.p_value[j], min(3 * expected.pvalue, 1.0))
        assert found.association.argmax() == 0
        assert found.p_value[0] < 1e-6


class TestLaws:
    def test_instance_values_are_shares(self, noisy):
        base, labels = noisy
        found = diagnose(read(base), labels)
        for name in PER_INSTANCE:
            values = getattr(found, name)
            assert values.min() >= 0
            assert values.max() <= 1
        assert (found.confidence[labels < 0] == 0).all()

    def test_repeated_rows_change_only_what_leaving_one_out_changes(self):
        # Tables are counts: each instance of the tripled table must get what loops over it give.
        truth, base = planted(25, 4, 2, noise=0.3, missing=0.3, seed=0)
        base, truth = np.repeat(base, 3, axis=0), np.repeat(truth, 3)
        assert_allclose(confidence(read(base), truth), plain_confidence(base, truth), atol=1e-12)
        s = plain_support(base, truth)
        assert_allclose(support(read(base), truth).item_consensus, s[np.arange(75), truth], atol=1e-12)
        assert_allclose(identifiability(read(base)).never_together, plain_never_together(base))

    def test_names_and_order_change_nothing(self, noisy):
        base, labels = noisy
        rng = np.random.default_rng(0)
        rows, columns, names = rng.permutation(70), rng.permutation(5), rng.permutation(3)
        other = base[rows][:, columns]
        other = np.where(other >= 0, 7 - 2 * other, -1)
        moved = np.where(labels >= 0, names[labels], -1)[rows]
        found, again = diagnose(read(base), labels), diagnose(read(other), moved)
        for name in PER_INSTANCE:
            assert_allclose(getattr(again, name), getattr(found, name)[rows], atol=1e-12)
        assert_allclose(again.bases.weights, found.bases.weights[columns], atol=1e-12)
        assert_allclose(again.bases.novelty, found.bases.novelty[columns], atol=1e-12)
        assert_allclose(again.clusters.own[names], found.clusters.own, atol=1e-12)
        assert_allclose(again.missing.association, found.missing.association[columns], atol=1e-12)
        for name in ("n_components", "never_together", "bottleneck", "n_patterns"):
            assert getattr(again.links, name) == getattr(found.links, name)
        assert_allclose(again.links.mask_link, found.links.mask_link)

    def test_blocks_and_threads_change_nothing(self, noisy, monkeypatch):
        base, labels = noisy
        found = diagnose(read(base), labels)
        monkeypatch.setattr(blocks, "BLOCK_ROWS", 8)
        monkeypatch.setattr(blocks, "n_threads", lambda: 3)
        again = diagnose(read(base), labels)
        for name in PER_INSTANCE:
            assert_allclose(getattr(again, name), getattr(found, name), atol=1e-12)

    def test_one_label_is_never_trusted_beyond_its_purity(self):
        rng = np.random.default_rng(0)
        truth, base = planted(300, 4, 3, noise=0.3, missing=0.0, seed=0)
        kept = rng.integers(0, 4, 300)
        alone = np.arange(300) % 2 == 0
        base[alone] = np.where(np.arange(4) == kept[alone, None], base[alone], -1)
        # Labels that are seen in one cluster only make the prior of all instances misleading.
        base[(truth == 0) & ~alone, 0] = -1
        sure = confidence(read(base), truth)
        for i in np.flatnonzero(alone):
            alike = base[:, kept[i]] == base[i, kept[i]]
            assert sure[i] <= (truth[alike] == truth[i]).mean() + 1e-12

    def test_no_evidence_leaves_the_share_of_the_cluster(self):
        truth, base = planted(100, 4, 3, noise=0.1, missing=0.0, seed=0)
        base[7] = -1
        assert_allclose(confidence(read(base), truth)[7], np.mean(truth == truth[7]))

    def test_more_independent_bases_make_it_surer(self):
        means = []
        for m in (2, 5, 10):
            truth, base = planted(600, m, 4, noise=0.4, missing=0.0, seed=0)
            means.append(confidence(read(base), truth)[np.arange(600)].mean())
        assert means[0] < means[1] < means[2]

    def test_repeating_a_base_does_not_make_it_sure(self):
        # Ten copies of one base are one opinion.
        truth, base = planted(600, 1, 4, noise=0.4, missing=0.0, seed=0)
        one, ten = confidence(read(base), truth), confidence(read(np.repeat(base, 10, axis=1)), truth)
        assert gather_evidence(read(np.repeat(base, 10, axis=1)), truth).dependence > 0.99
        assert np.abs(one - ten).max() < 0.03

    def test_it_is_calibrated_where_bases_err_independently(self):
        right, sure = [], []
        for seed in range(5):
            truth, base = planted(800, 6, 4, noise=0.5, missing=0.3, seed=seed)
            votes = np.zeros((800, 4))
            names = np.random.default_rng(seed)
            for j in range(6):
                back = np.argsort(names.permutation(4))  # `planted` draws its names first
                seen = base[:, j] >= 0
                votes[np.flatnonzero(seen), back[base[seen, j]]] += 1
            labels = votes.argmax(axis=1)
            sure.append(confidence(read(base), labels))
            right.append(labels == truth)
        sure, right = np.concatenate(sure), np.concatenate(right)
        assert 0.6 < right.mean() < 0.95
        assert abs(sure.mean() - right.mean()) < 0.06
        for low, high in ((0.0, 0.7), (0.7, 0.9), (0.9, 1.01)):
            group = (sure >= low) & (sure < high)
            # A little overconfident between the ends: the labels were chosen to suit the same base labels.
            assert abs(sure[group].mean() - right[group].mean()) < 0.12

    @pytest.mark.parametrize("k", [2, 3, 6])
    def test_a_contradiction_of_two_equal_sources_is_a_coin_toss(self, k):
        rng = np.random.default_rng(k)
        truth = rng.integers(0, k, 900)
        other = (truth + rng.integers(1, k, 900)) % k
        odd, first = rng.random(900) < 0.15, rng.random(900) < 0.5
        base = np.column_stack([np.where(odd & first, other, truth), np.where(odd & ~first, other, truth)])
        for labels in base.T:  # whichever source the consensus follows
            found = diagnose(read(base), labels)
            assert found.confidence[odd].min() > 0.4
            assert found.confidence[odd].max() < 0.6
            assert found.confidence[~odd].min() > 0.97

    def test_a_source_that_knows_nothing_decides_nothing(self):
        rng = np.random.default_rng(1)
        truth = rng.integers(0, 4, 2000)
        other = (truth + rng.integers(1, 4, 2000)) % 4
        odd, first = rng.random(2000) < 0.15, rng.random(2000) < 0.5
        guess = rng.integers(0, 4, 2000)
        base = np.column_stack(
            [np.where(odd & first, other, truth), np.where(odd & ~first, other, truth), guess]
        )
        labels = np.where(odd & (guess == other), other, truth)  # the majority
        assert abs(confidence(read(base), labels)[odd].mean() - 0.5) < 0.06

    def test_margin_and_confidence_do_not_contradict_each_other(self):
        for seed in range(4):
            truth, base = planted(500, 2 + seed, 4, noise=0.5, missing=0.2, seed=seed)
            copies = np.column_stack([base, base[:, :1], base[:, :1]])
            labels = np.where(np.random.default_rng(seed).random(500) < 0.2, truth[::-1], truth)
            for table in (base, copies):
                found = diagnose(read(table), labels)
                assert (found.margin < 0.5).any()
                assert found.confidence[found.margin < 0.5].max() < 0.5

    def test_large_tables_are_sampled_for_skill_by_their_rows_alone(self, monkeypatch):
        truth, base = planted(3000, 4, 3, noise=0.3, missing=0.2, seed=3)
        whole = confidence(read(base), truth)
        monkeypatch.setattr(skill, "_SAMPLE", 600)
        sampled = confidence(read(base), truth)
        assert 0 < np.abs(sampled - whole).max() < 0.1
        order = np.random.default_rng(0).permutation(3000)
        moved = np.where(base[order] >= 0, 5 - base[order], -1)[:, ::-1]
        assert_array_equal(confidence(read(moved), truth[order]), sampled[order])

    def test_new_instances_are_judged_like_old_ones(self):
        truth, base = planted(2000, 6, 3, noise=0.3, missing=0.3, seed=0)
        table = read(base)
        evidence = gather_evidence(table, truth)
        new = predict_confidence(evidence, table.encode(base), truth)
        assert np.abs(new - confidence(table, truth, evidence=evidence)).max() < 0.05
        assert predict_confidence(evidence, table.encode(base)[:1], np.array([-1])) == 0.0
        blank = np.full((1, 6), -1)
        assert_allclose(predict_confidence(evidence, blank, np.array([1])), np.mean(truth == 1))

    def test_weights_have_mean_one_and_noise_has_none(self):
        truth, base = planted(1000, 5, 3, noise=0.2, missing=0.3, seed=0)
        base[:, 4] = np.random.default_rng(99).integers(0, 3, 1000)
        found = base_table(read(base), truth)
        assert_allclose(found.weights.mean(), 1.0)
        assert found.weights[4] < 0.05
        assert found.novelty[4] > 0.99

    def test_a_base_that_saw_little_neither_leads_nor_falls_behind(self):
        truth, base = planted(1000, 6, 3, noise=0.3, missing=0.0, seed=0)
        base[:, 5] = truth
        base[6:, 5] = -1
        found = base_table(read(base), truth)
        assert abs(found.agreement[5] - found.agreement[:5].mean()) < 0.2

    @pytest.mark.parametrize(("copies", "expected"), [(1, 4.0), (3, 4.0)])
    def test_effective_number_counts_copies_once(self, copies, expected):
        base = np.random.default_rng(0).integers(0, 3, (20_000, 4))
        table = np.repeat(base, copies, axis=1)
        assert_allclose(base_table(read(table), base[:, 0]).effective_number, expected, rtol=0.01)


class TestIdentifiability:
    def test_complete_table_is_one_piece(self):
        _, base = planted(50, 4, 3, noise=0.3, missing=0.0, seed=0)
        found = identifiability(read(base))
        assert found.mask_link == pytest.approx(1.0)
        assert (found.n_components, found.never_together, found.bottleneck) == (1, 0.0, 50)
        assert found.identifiable_share == pytest.approx(1.0)
        assert found.never_together_if_random == 0.0

    def test_groups_without_a_common_instance_are_an_error_that_names_them(self):
        gap = [None, None]
        table = Partitions.of({"a": [0, 1, *gap], "b": [1, 1, *gap], "c": [*gap, 0, 0], "d": [*gap, 0, 1]})
        assert table.base_groups == (("a", "b"), ("c", "d"))
        with pytest.raises(ValueError, match=r"2 groups .* 'a', 'b' \| 'c', 'd'\. Hint: add"):
            require_linked(table)
        found = identifiability(table)
        assert found.mask_link == pytest.approx(0.0)
        assert found.bottleneck == 0
        assert any("cannot be matched" in sentence for sentence in diagnose(table, [0, 1, 0, 1]).warnings)

    def test_linked_bases_pass(self):
        require_linked(read(planted(50, 4, 3, noise=0.3, missing=0.5, seed=0)[1]))

    def test_bottleneck_and_weak_links(self):
        base = np.full((40, 3), -1)
        base[:20, 0] = np.arange(20) % 4
        base[17:37, 1] = np.arange(20) % 4  # 3 shared with the first: fewer than 4 clusters
        base[25:40, 2] = np.arange(15) % 4  # 12 shared with the second
        found = identifiability(read(base))
        assert found.bottleneck == 3
        assert [tuple(link) for link in found.weak_links] == [("0", "1", 3, 4)]

    def test_silent_bases_are_named(self):
        table = Partitions.of({"all": [0, 0, 0, 0], "ids": [1, 2, 3, 4], "fine": [0, 0, 1, 1]})
        assert identifiability(table).silent == ("all", "ids")
        found = base_table(table, [0, 0, 1, 1])
        assert_array_equal(found.weights, [0, 0, 3])
        assert found.effective_number == 1.0

    @pytest.mark.parametrize("m", [5, 9, 70])
    def test_never_together_by_every_route(self, m, monkeypatch):
        rng = np.random.default_rng(m)
        base = np.where(rng.random((150, m)) < 1 - 3.0 / m, -1, rng.integers(0, 3, (150, m)))
        base[0] = rng.integers(0, 3, m)
        expected = plain_never_together(base)
        assert 0.01 < expected < 0.9
        masks, counts = patterns(read(base))
        assert_allclose(links._disjoint_by_pairs(masks, counts.astype(float)) / 150**2, expected)
        assert_allclose(links._disjoint_share(masks, counts), expected)
        if m <= 9:
            assert_allclose(links._disjoint_by_subsets(masks, counts) / 150**2, expected)
        monkeypatch.setattr(links, "_BLOCK_PAIRS", 100)
        assert_allclose(links._disjoint_by_pairs(masks, counts.astype(float)) / 150**2, expected)

    def test_sampled_never_together_is_near(self, monkeypatch):
        rng = np.random.default_rng(0)
        base = np.where(rng.random((3000, 30)) < 0.9, -1, 0)
        masks, counts = patterns(read(np.column_stack([base, np.zeros(3000, int) - 1])[:, :30]))
        exact = links._disjoint_by_pairs(masks, counts.astype(float))
        monkeypatch.setattr(links, "_MAX_PAIRS", len(masks) * 300)
        assert_allclose(links._disjoint_by_pairs(masks, counts.astype(float)), exact, rtol=0.05)

    def test_random_gaps_meet_their_expectation(self):
        _, base = planted(3000, 4, 3, noise=0.3, missing=0.5, seed=0)
        hidden = np.random.default_rng(0).random(base.shape) < 0.5
        found = identifiability(read(np.where(hidden, -1, 0)))
        assert_allclose(found.never_together, found.never_together_if_random, rtol=0.05)

    def test_labels_missing_at_random_are_not_suspected(self):
        truth, base = planted(2000, 6, 4, noise=0.2, missing=0.4, seed=0)
        found = missing_not_at_random(read(base), truth)
        assert found.association.max() < 0.1
        assert abs(found.pattern_agreement) < 0.02
        assert not found.follows_mask

    def test_a_consensus_of_the_gaps_is_found_out(self):
        _, base = planted(500, 4, 3, noise=0.2, missing=0.0, seed=0)
        gaps = np.arange(500) % 2
        base[gaps == 0, 0] = -1
        base[gaps == 1, 1] = -1
        found = missing_not_at_random(read(base), gaps)
        assert found.pattern_agreement == 1.0
        assert found.follows_mask
        assert any(
            "more with what is missing" in sentence for sentence in diagnose(read(base), gaps).warnings
        )


class TestInformation:
    @pytest.mark.parametrize(("n", "k"), [(60, 4), (500, 20), (30_000, 10)])
    def test_equals_scikit_learn(self, n, k):
        rng = np.random.default_rng(n)
        a = rng.integers(0, k, n)
        b = np.where(rng.random(n) < 0.5, a, rng.integers(0, k, n))
        table = np.zeros((k + 1, k))
        np.add.at(table, (a, b), 1)
        assert_allclose(count_tables.adjusted_information(table), adjusted_mutual_info_score(a, b), atol=1e-6)

    def test_approximate_chance_level_is_near_the_exact_one(self, monkeypatch):
        rng = np.random.default_rng(0)
        for n, k in ((200, 5), (2000, 40), (5000, 300)):
            a, b = rng.integers(0, k, n), rng.integers(0, 7, n)
            b[: n // 2] = a[: n // 2] % 7
            table = np.zeros((k, 7))
            np.add.at(table, (a, b), 1)
            exact = adjusted_mutual_info_score(a, b)
            with monkeypatch.context() as patch:
                patch.setattr(count_tables, "_EXACT_TERMS", 0)
                assert_allclose(count_tables.adjusted_information(table), exact, atol=0.01)


class TestDegenerate:
    def test_equal_base_labels_with_different_consensus_labels_stay_apart(self):
        table = read([[0, 1], [0, 1], [1, 0], [0, 1]])
        labels = np.array([0, 1, 1, -1])
        rows = count_tables.joint_rows(table, labels)
        assert len(rows.codes) == 4
        assert_array_equal(rows.codes[rows.inverse], table.codes)
        assert_array_equal(rows.labels[rows.inverse], labels)

    def test_one_cluster(self):
        _, base = planted(30, 3, 3, noise=0.3, missing=0.2, seed=0)
        found = diagnose(read(base), np.zeros(30, dtype=int))
        assert_array_equal(found.confidence, 1.0)
        assert_array_equal(found.alternative, -1)
        assert_array_equal(found.bases.agreement, 0.0)
        assert_array_equal(found.bases.weights, 1.0)

    def test_clusters_of_one_instance(self):
        found = support(read([[0, 0], [1, 1], [2, 0]]), [0, 1, 2])
        assert_array_equal(found.item_consensus, 0.0)

    def test_one_base_and_one_instance(self):
        found = diagnose(read([[0], [0], [1]]), [0, 0, 1])
        assert found.links.mask_link == 1.0
        assert found.bases.effective_number == 1.0
        assert np.isfinite(found.confidence).all()
        assert np.isfinite(diagnose(read([["x"]]), [0]).confidence).all()

    def test_a_number_of_cluster_that_nobody_has(self):
        truth, base = planted(60, 4, 2, noise=0.1, missing=0.2, seed=0)
        found = diagnose(read(base), truth * 2)
        assert found.n_clusters == 2
        assert_allclose(found.confidence, confidence(read(base), truth), atol=0.01)

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ([0, 1], r"shape \(2,\).*3 instances\. Hint"),
            ([0.0, 1.0, 1.0], "must be integers, got dtype float64. Hint"),
            ([-1, -1, -1], "all are negative. Hint"),
        ],
    )
    def test_labels_that_do_not_fit_are_an_error(self, labels, message):
        with pytest.raises(ValueError, match=message):
            diagnose(read([[0], [0], [1]]), labels)

    def test_inputs_stay_untouched(self, noisy):
        base, labels = noisy
        before = labels.copy()
        labels.setflags(write=False)
        diagnose(read(base), labels)
        assert_array_equal(labels, before)


class TestReport:
    def test_is_plain_and_short(self, noisy):
        base, labels = noisy
        found = diagnose(read(base), labels)
        plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert plain["n_instances"] == 70
        assert len(plain["confidence"]["deciles"]) == 11
        assert len(plain["bases"]["weights"]) == 5
        assert plain["links"]["base_groups"] == [["0", "1", "2", "3", "4"]]
        assert "components" not in plain["links"]
        for part in (
            found,
            found.clusters,
            found.bases,
            found.links,
            found.missing,
            support(read(base), labels),
        ):
            assert len(repr(part)) < 140

    def test_warnings_say_what_to_try(self):
        rng = np.random.default_rng(99)
        truth, base = planted(400, 5, 3, noise=0.1, missing=0.0, seed=0)
        base[:, 4] = 0
        base[:, 3] = rng.integers(0, 3, 400)
        base[rng.random(400) < 0.9 * (truth == 1), 2] = -1
        sentences = diagnose(Partitions.of(base), truth).warnings
        assert all("Hint: " in sentence for sentence in sentences)
        text = " ".join(sentences)
        for part in (
            "'4' says nothing",
            "'3' agrees with the others no more than chance would",
            "missing in '2' depends",
        ):
            assert part in text

    def test_nothing_to_warn_about(self):
        truth, base = planted(400, 6, 3, noise=0.1, missing=0.2, seed=0)
        assert diagnose(read(base), truth).warnings == []

    def test_says_how_to_read_the_confidence(self):
        truth, base = planted(400, 6, 3, noise=0.1, missing=0.2, seed=0)
        for columns, told, ranks_only in (
            (base[:, :1], "nothing can be checked", True),
            (base[:, :2], "contradict each other confidence is about one half", True),
            (np.repeat(base[:, :1], 6, axis=1), "ranks instances and is not the chance of being right", True),
            (planted(400, 6, 3, noise=0.5, missing=0.0, seed=0)[1], "right nine times in ten if", False),
        ):
            found = diagnose(read(columns), truth)
            assert told in found.reading
            assert found.ranks_only == found.as_dict()["ranks_only"] == ranks_only
            assert found.as_dict()["reading"] == found.reading

    def test_a_table_that_says_nothing_still_counts_like_one(self):
        found = diagnose(read([[0, 0], [0, 0], [0, 0]]), [0, 0, 0])
        assert found.bases.effective_number == 1.0
        assert "nothing can be checked" in found.reading

    def test_unsure_instances_and_merged_components_are_mentioned(self):
        _, base = planted(300, 4, 3, noise=0.5, missing=0.5, seed=0)
        blurred = diagnose(read(base), np.arange(300) % 3).warnings
        assert any("confidence below" in sentence for sentence in blurred)
        assert any("as among themselves" in sentence for sentence in blurred)
        apart = np.repeat(np.eye(3, dtype=int) @ [0, 1, 2], 10)
        merged = diagnose(read(np.column_stack([apart, apart])), np.minimum(apart, 1)).warnings
        assert any("merged without evidence" in sentence for sentence in merged)
