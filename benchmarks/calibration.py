"""Is a confidence of 0.8 right eight times in ten? The tables of the diagnostics page.

    python -m benchmarks.calibration           four ensembles a pool (about four minutes on one core)
    python -m benchmarks.calibration --runs 1  a quick look

Needs the benchmark files (see `consilience.datasets.load`). Consensus labels come from PCE and from a
normalised cut of the graph of instances and base clusters, at the true number of clusters. "Right" is by the
best matching of clusters to classes. The form of the confidence was chosen on columns 0 to 29 of the pools
and other seeds; these tables use columns 30 and up.
"""

import argparse
import warnings
from collections import defaultdict

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from tests.planted import planted
from threadpoolctl import threadpool_limits

from benchmarks.quality_n_clusters import POOLS
from benchmarks.quality_pce import show
from consilience import PCE, Partitions, datasets
from consilience.core.tables import contingency, gather
from consilience.diagnostics import confidence, support
from consilience.diagnostics.counts import joint_rows
from consilience.diagnostics.posterior import _log_chance, _of_own_cluster, gather_evidence
from consilience.missing import drop_labels

FIRST_COLUMN = 30
N_BINS = 10


def ensembles(n_runs):
    """Group, true classes and base labels."""
    for name in POOLS:
        pool = datasets.load(f"pool_{name}")
        y = np.unique(pool.y, return_inverse=True)[1]
        for run in range(n_runs):
            first = FIRST_COLUMN + 10 * run
            base = np.asarray(pool.labels[:, first : first + 10])
            if "pixraw" in name:
                yield "pixraw, 10 to 70% missing", y, base
                continue
            for missing in (0.0, 0.3, 0.6):
                # Labels are numbered from 1 in some pools; only negative ones are missing.
                hidden = drop_labels(base, missing, mechanism="mcar", random_state=run) if missing else base
                yield f"pools, {missing:.0%} missing", y, hidden
    for c, noise in ((4, 0.3), (6, 0.5), (10, 0.6), (6, 0.7)):
        for missing in (0.0, 0.3, 0.6):
            for run in range(n_runs):
                y, base = planted(1500, 10, c, noise=noise, missing=missing, seed=900 + run)
                yield "planted, independent errors", y, base
                yield "planted, shared errors", y, share_errors(y, base, c, seed=run)


def share_errors(y, base, c, *, seed):
    """The same, but a fifth of the instances look to half of the bases like another, common, cluster."""
    rng = np.random.default_rng((seed, 17))
    strange = np.where(rng.random(len(y)) < 0.2, rng.integers(0, c, len(y)), y)
    # The name that most members of the strange cluster have in each base.
    out = base.copy()
    for j in range(0, base.shape[1], 2):
        names = [np.bincount(base[(y == k) & (base[:, j] >= 0), j], minlength=c).argmax() for k in range(c)]
        moved = (strange != y) & (base[:, j] >= 0)
        out[moved, j] = np.array(names)[strange[moved]]
    return out


def cut(table, k):
    """Normalised cut of the bipartite graph, by k-means."""
    rows = table.distinct
    seen = (rows.codes >= 0).sum(axis=1)
    pairs = contingency(rows.codes, table.offsets, rows.counts / seen)
    scale = 1 / np.sqrt(pairs.sum(axis=1))
    vectors = np.linalg.eigh(pairs * scale * scale[:, None])[1][:, -k:]
    h = gather(rows.codes, table.offsets, scale[:, None] * vectors)
    h /= np.maximum(np.linalg.norm(h, axis=1, keepdims=True), 1e-12)
    return KMeans(k, n_init=5, random_state=0).fit(h, sample_weight=rows.counts).labels_[table.inverse]


def right(y, labels):
    counts = np.zeros((labels.max() + 1, y.max() + 1))
    np.add.at(counts, (labels, y), 1)
    clusters, classes = linear_sum_assignment(-counts)
    match = np.full(len(counts), -1)
    match[clusters] = classes
    return match[labels] == y


def leftover_rand(table, labels):
    """Mean over pairs of bases of the adjusted Rand index inside consensus clusters."""
    rows = joint_rows(table, labels)
    starts, m = table.offsets[:-1], table.n_partitions
    found, weight = np.zeros((m, m)), np.zeros((m, m))

    def pairs(counts):
        return counts * (counts - 1) / 2

    for c in range(rows.n_clusters):
        here = rows.labels == c
        if not here.any():
            continue
        together = contingency(rows.codes[here], table.offsets, rows.counts[here].astype(float))
        margins = pairs(
            np.add.reduceat(together, starts, axis=1)
        )  # of a base cluster, where the other saw it
        one_side = np.add.reduceat(margins, starts, axis=0)
        both = np.add.reduceat(np.add.reduceat(pairs(together), starts, axis=0), starts, axis=1)
        total = pairs(np.add.reduceat(np.add.reduceat(together, starts, axis=0), starts, axis=1))
        expected = one_side * one_side.T / np.maximum(total, 1)
        spread = (one_side + one_side.T) / 2 - expected
        valid = (spread > 1e-9) & ~np.eye(m, dtype=bool)
        found[valid] += (both - expected)[valid] / spread[valid]
        weight[valid] += 1
    return max(found.sum() / max(weight.sum(), 1), 0.0)


def tempered(table, labels, rho):
    """Naive Bayes with the likelihood of a row raised to 1 / (1 + (labels of the row - 1) rho)."""
    evidence = gather_evidence(table, labels)
    scores = gather(table.codes, table.offsets, _log_chance(evidence, leave_out=False))
    own = _of_own_cluster(_log_chance(evidence, leave_out=True), table.offsets, table.codes, labels)
    place = np.arange(len(labels))
    scores[place, labels] = own.sum(axis=1)
    scores /= (1 + ((table.codes >= 0).sum(axis=1) - 1) * rho)[:, None]
    scores += np.log(np.maximum(evidence.prior, 1e-300))
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds[place, labels] / odds.sum(axis=1)


def candidates(table, labels):
    evidence = gather_evidence(table, labels)
    m = table.n_partitions
    rho = evidence.dependence / (m - (m - 1) * evidence.dependence)
    found = support(table, labels)
    return {
        "naive Bayes": confidence(table, labels, evidence=evidence._replace(dependence=0.0)),
        "tempered, leftover Rand": tempered(table, labels, leftover_rand(table, labels)),
        "tempered, correlation": tempered(table, labels, rho),
        "average overlap": confidence(table, labels, evidence=evidence._replace(dependence=1.0)),
        "**confidence**": confidence(table, labels, evidence=evidence),
        "margin": found.margin,
        "item consensus": found.item_consensus,
    }


def calibration_error(sure, ok):
    """Mean over instances of the distance of confidence and share right, in ten bins."""
    place = bins(sure)
    return sum(abs(sure[place == b].sum() - ok[place == b].sum()) for b in range(N_BINS)) / len(sure)


def bins(sure):
    return np.minimum((sure * N_BINS).astype(int), N_BINS - 1)


def ranking(sure, ok):
    """Chance that an instance that is right has more confidence than one that is wrong."""
    n_right, n_wrong = ok.sum(), (~ok).sum()
    if not n_right * n_wrong:
        return np.nan
    return (rankdata(sure)[ok].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong)


def evaluate(n_runs):
    scores, curves = defaultdict(list), defaultdict(list)
    for group, y, base in ensembles(n_runs):
        table = Partitions.of(base, unobserved="keep")
        y, table = y[table.seen], table.take_seen()
        k = int(y.max()) + 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence: any labels will do here
            answers = (PCE(k, random_state=0).fit_predict(table), cut(table, k))
        for labels in answers:
            ok = right(y, labels)
            scores[group, "right"].append(ok.mean())
            for name, sure in candidates(table, labels).items():
                scores[group, name].append((calibration_error(sure, ok), ranking(sure, ok), sure.mean()))
                if name == "**confidence**":
                    curves[group].append((sure, ok))
    return scores, curves


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=4)
    with threadpool_limits(1, user_api="blas"):
        scores, curves = evaluate(parser.parse_args().runs)
    groups = sorted(curves)
    names = [name for group, name in scores if group == groups[0] and name != "right"]

    def cells(name, column):
        return {group: f"{np.nanmean(np.array(scores[group, name])[:, column]):.3f}" for group in groups}

    for column, title in enumerate(("Calibration error (lower is better)", "AUC of right and wrong", "Mean")):
        rows = [{"": name, **cells(name, column)} for name in names]
        if column != 1:
            share = {group: f"{np.mean(scores[group, 'right']):.3f}" for group in groups}
            rows.append({"": "share of instances that are right", **share})
        show(title, rows)
    show("Reliability: share right at a confidence of", reliability(curves, groups))


def reliability(curves, groups):
    """Per bin of confidence: share right, and in brackets the share of all instances in the bin."""
    pooled = {group: [np.concatenate(part) for part in zip(*curves[group], strict=True)] for group in groups}
    for b in range(N_BINS):
        row = {"confidence": f"{b / N_BINS:.1f} to {(b + 1) / N_BINS:.1f}"}
        for group, (sure, ok) in pooled.items():
            here = bins(sure) == b
            row[group] = f"{ok[here].mean():.2f} ({here.mean():.0%})" if here.mean() >= 0.001 else "-"
        yield row


if __name__ == "__main__":
    main()
