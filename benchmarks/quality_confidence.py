"""Is a confidence of .9 right nine times in ten? The tables of the page on confidence.

    python -m benchmarks.quality_confidence             about ten minutes on one core
    python -m benchmarks.quality_confidence --tables 4  a quick look
    python -m benchmarks.quality_confidence --chances   chances of all clusters, also of newcomers

The pools need the benchmark files (see `consilience.datasets.load`) and are left out without them. Consensus
labels come from PCE and from a normalised cut of the graph of instances and base clusters, at the true number
of clusters. "Right" is by the best matching of clusters to classes. Beside the confidence stands its previous
form, which counted labels in the consensus (`previous`). The form was chosen on other planted tables and on
columns 0 to 49 of the pools; these are drawn from columns 50 and up.
"""

import argparse
import warnings
from collections import defaultdict

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks.quality_n_clusters import POOLS
from benchmarks.quality_pce import show
from consilience import PCE, Partitions, datasets, fuse
from consilience.core.tables import contingency, gather
from consilience.diagnostics import confidence
from consilience.inference.counts import joint_rows, label_counts
from consilience.inference.posterior import judge
from consilience.inference.settling import INDEPENDENT
from consilience.missing import drop_labels

FIRST_COLUMN = 50
MORE_POOLS = ("LWEA_IS", "LWEA_LR", "LWEA_MF", "LWEA_PD")
N_BINS = 10
SEED = 2028  # 2027 was looked at while the form was chosen


# --- tables -------------------------------------------------------------------------------------------------


def planted(m, seed, *, random_source=False, shared=False):
    """Classes, m base clusterings that see them through noise and gaps, and in words of what kind they are.

    2 to 20 classes of 500 to 4000 instances, 5 to 50 % errors, up to 70 % of the labels missing. In a quarter
    of the tables errors all go to one neighbour. Some sources are finer or coarser than the classes. With
    `random_source` the last one knows nothing; with `shared`, a fifth of the instances look to half of the
    sources like one other class.
    """
    rng = np.random.default_rng((SEED, m, seed, random_source, shared))
    k, n = int(rng.integers(2, 21)), int(500 * 8 ** rng.random())
    noise, missing, neighbour = rng.uniform(0.05, 0.5), rng.uniform(0, 0.7), rng.random() < 0.25
    missing *= rng.random() < 0.6 and m > 2
    y = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
    y = np.unique(y, return_inverse=True)[1]
    k = int(y.max()) + 1
    step, odd = int(rng.integers(1, max(k, 2))), rng.random(n) < 0.2
    strange = np.where(odd, (y + 1) % k, y)
    base = np.empty((n, m), dtype=int)
    for j in range(m):
        wrong = rng.random(n) < np.clip(noise * rng.uniform(0.5, 1.5), 0.05, 0.5)
        jump = step if neighbour else rng.integers(1, max(k, 2), n)
        truth = strange if shared and j % 2 else y
        label = np.where(wrong, (truth + jump) % k, truth)
        kind = rng.random()
        if kind < 0.1:
            label = 2 * label + rng.integers(0, 2, n)
        elif kind < 0.2 and k > 4:
            label = label // 2
        base[:, j] = label
    if random_source:
        base[:, -1] = rng.integers(0, k, n)
    hidden = rng.random((n, m)) < missing
    hidden[hidden.all(axis=1)] = False
    coarser = (base.max(axis=0) < k - 1).any()
    kind = "a coarser source" if coarser else "errors to one neighbour" if neighbour else "errors anywhere"
    return y, np.where(hidden, -1, base), kind


def pools(n_runs):
    """Groups, classes and base labels of ten columns of each pool."""
    for name in (*POOLS, *MORE_POOLS):
        try:
            pool = datasets.load(f"pool_{name}")
        except FileNotFoundError:
            continue
        y = np.unique(pool.y, return_inverse=True)[1]
        for run in range(n_runs):
            rng = np.random.default_rng((SEED, run))
            base = np.asarray(pool.labels[:, np.sort(rng.choice(np.arange(FIRST_COLUMN, 100), 10, False))])
            if "pixraw" in name:
                yield ("pixraw, 10 to 70 % missing",), y, base
                continue
            for missing in (0.0, 0.3, 0.6):
                # Labels are numbered from 1 in some pools; only negative ones are missing.
                hidden = drop_labels(base, missing, mechanism="mcar", random_state=run) if missing else base
                yield (f"pools, {missing:.0%} missing",), y, hidden


def tables(n_tables):
    """The groups that a table is in, classes and base labels."""
    for m in (2, 3, 5, 8, 10, 20):
        for seed in range(n_tables):
            y, base, kind = planted(m, seed)
            yield (f"m = {m}", *([f"m = {m}: {kind}"] if m < 5 else [])), y, base
    for seed in range(n_tables):
        yield ("one random source",), *planted(3 + seed % 6, seed, random_source=True)[:2]
        yield ("shared errors, m 4 to 20",), *planted(4 + seed % 17, seed, shared=True)[:2]
    yield from pools(max(n_tables // 20, 1))


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


# --- forms --------------------------------------------------------------------------------------------------


def previous(table, labels):
    """Naive Bayes by counts in the consensus, the instance taken out, mixed with the average overlap."""
    rows = joint_rows(table, labels)
    codes, z, m = rows.codes, rows.labels, rows.codes.shape[1]
    k, observed, place = np.diff(table.offsets), rows.codes >= 0, np.arange(len(rows.codes))
    both = label_counts(rows, table.offsets)
    seen = np.repeat(np.add.reduceat(both, table.offsets[:-1], axis=0), k, axis=0)
    prior = np.bincount(z, rows.counts) / rows.counts.sum()

    def log_chance(less):
        return np.log(
            (np.maximum(both - less, 0) + 0.5 / np.repeat(k, k)[:, None]) / (np.maximum(seen - less, 0) + 0.5)
        )

    def own(values):
        return np.where(observed, values[codes + table.offsets[:-1], z[:, None]], 0.0)

    left_out, n_seen = log_chance(1), observed.sum(axis=1)
    sums = np.repeat(np.add.reduceat(both * left_out, table.offsets[:-1], axis=0), k, axis=0)
    x = own(left_out - sums / np.maximum(seen, 1))
    squares = (x**2).sum(axis=1)
    together = rows.counts @ (x.sum(axis=1) ** 2 - squares)
    apart = rows.counts @ ((n_seen - 1) * squares)
    rho = min(max(together / apart, 0.0), 1.0) if apart > 0 else 0.0
    dependence = m * rho / (1 + (m - 1) * rho)
    scores = gather(codes, table.offsets, log_chance(0))
    scores[place, z] = own(left_out).sum(axis=1)
    scores += np.log(np.maximum(prior, 1e-300))
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    bayes = odds[place, z] / odds.sum(axis=1)
    rest, members = np.maximum(both - 1, 0), np.maximum(both.sum(axis=1, keepdims=True) - 1, 0)
    overlap = np.sqrt((rest + prior) / (members + 1) * rest / np.maximum(seen - 1, 1))
    mixed = (1 - dependence) * bayes + dependence * own(overlap).sum(axis=1) / np.maximum(n_seen, 1)
    purity = own(both / np.maximum(both.sum(axis=1, keepdims=True), 1)).sum(axis=1)
    return np.where(n_seen == 1, np.minimum(mixed, purity), mixed)[rows.inverse]


FORMS = {"previous": previous, "confidence": confidence}


# --- scores -------------------------------------------------------------------------------------------------


def right(y, labels):
    counts = np.zeros((labels.max() + 1, y.max() + 1))
    np.add.at(counts, (labels, y), 1)
    clusters, classes = linear_sum_assignment(-counts)
    match = np.full(len(counts), -1)
    match[clusters] = classes
    return match[labels] == y


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


def evaluate(n_tables):
    """Scores of every form by group, a row per answer; and both arrays of the confidence itself."""
    scores, curves = defaultdict(list), defaultdict(list)
    for groups, y, base in tables(n_tables):
        table = Partitions.of(base, unobserved="keep")
        y, table = y[table.seen], table.take_seen()
        y = np.unique(y, return_inverse=True)[1]
        k = int(y.max()) + 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence: any labels will do here
            answers = (PCE(k, random_state=0).fit_predict(table), cut(table, k))
        for labels in answers:
            ok = right(y, labels)
            for name, form in FORMS.items():
                sure = form(table, labels)
                brier = np.mean((sure - ok) ** 2)
                row = (ok.mean(), sure.mean(), calibration_error(sure, ok), ranking(sure, ok), brier)
                for group in groups:
                    scores[group, name].append(row)
            for group in groups:
                curves[group].append((sure, ok, judge(table, labels).margin))
    return scores, curves


def of_chances(n_tables):
    """Scores of `fusion.chances`, and of `fusion.place(...).chances` of a fifth that was not merged."""
    scores = defaultdict(list)
    for groups, y, base in tables(n_tables):
        rng = np.random.default_rng((SEED, len(y)))
        rows = rng.permutation(np.flatnonzero((base >= 0).any(axis=1)))[:2000]
        new, old = rows[: len(rows) // 5], rows[len(rows) // 5 :]
        k = len(np.unique(y[old]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fusion = fuse(base[old], k, random_state=0)
            except ValueError:  # nothing links the sources
                continue
            placed = fusion.place(base[new], unknown="missing")
        cluster_of = matching(y[old], fusion.labels, int(y.max()) + 1)
        found = {"merged": (fusion.chances, old), "newcomers": (placed.chances, new)}
        low = fusion.evidence.dependence <= INDEPENDENT
        kind = "pools" if "pool" in groups[0] or "pixraw" in groups[0] else "planted"
        kind = groups[0] if groups[0].startswith(("one", "shared")) else kind
        for who, (chance, place) in found.items():
            row = chance_scores(chance, cluster_of[y[place]])
            for group in (kind, f"{kind}, dependence {'up to' if low else 'above'} {INDEPENDENT:g}"):
                scores[group, who].append((*row, fusion.diagnostics.ranks_only))
    for (group, who), values in sorted(scores.items()):
        brier, log_loss, top, classwise, ranks = np.mean(values, axis=0)
        yield {
            "": group,
            "instances": who,
            "tables": len(values),
            "Brier": f"{brier:.3f}",
            "log loss": f"{log_loss:.2f}",
            "ECE, top-1": f"{top:.3f}",
            "ECE, class-wise": f"{classwise:.3f}",
            "said to rank only": f"{ranks:.0%}",
        }


def matching(y, labels, n_classes):
    """The cluster of every class by the best matching, -1 for a class that has none."""
    counts = np.zeros((labels.max() + 1, n_classes))
    np.add.at(counts, (labels, y), 1)
    clusters, classes = linear_sum_assignment(-counts)
    found = np.full(n_classes, -1)
    found[classes] = clusters
    return found


def chance_scores(chance, true):
    """Brier score, log loss, calibration error of the largest chance and of all, against true clusters."""
    hit = (true[:, None] == np.arange(chance.shape[1])).astype(float)
    brier = np.mean(((chance - hit) ** 2).sum(axis=1) + (true < 0))
    own = np.where(true >= 0, chance[np.arange(len(true)), true], 0.0)
    top = calibration_error(chance.max(axis=1), chance.argmax(axis=1) == true)
    classwise = np.mean([calibration_error(column, ok) for column, ok in zip(chance.T, hit.T, strict=True)])
    return brier, -np.log(np.maximum(own, 1e-6)).mean(), top, classwise


def conflicts(n_tables):
    """Two equal sources, and the rows where they contradict each other: which of them the consensus follows
    must not matter. Then with a third source that knows nothing."""
    found = defaultdict(list)
    for seed in range(n_tables):
        rng = np.random.default_rng((SEED, seed))
        k, n = int(rng.integers(2, 11)), int(rng.integers(500, 2001))
        y = rng.integers(0, k, n)
        odd = rng.random(n) < rng.uniform(0.05, 0.2)
        one = rng.random(n) < 0.5  # whether the first of them is right
        other = (y + rng.integers(1, k, n)) % k
        base = np.column_stack([np.where(odd & ~one, other, y), np.where(odd & one, other, y)])
        guess = rng.integers(0, k, n)
        for name, columns in (("two", base), ("two and a random one", np.column_stack([base, guess]))):
            table = Partitions.of(columns)
            labels = PCE(k, random_state=0).fit_predict(table)
            ok = right(y, labels)
            for form, function in FORMS.items():
                sure = function(table, labels)
                found[name, form].append((sure[odd], ok[odd], sure[~odd]))
    return found


def show_conflicts(found):
    rows = []
    for (name, form), parts in found.items():
        means = [sure.mean() for sure, _, _ in parts]
        sure, ok, agreed = (np.concatenate(part) for part in zip(*parts, strict=True))
        rows.append(
            {
                "sources": name,
                "": form,
                "right": f"{ok.mean():.2f}",
                "confidence, mean": f"{sure.mean():.2f}",
                "table means": f"{min(means):.2f} to {max(means):.2f}",
                "rows in .4 to .6": f"{((sure >= 0.4) & (sure <= 0.6)).mean():.1%}",
                "where the two agree, lowest": f"{agreed.min():.2f}",
            }
        )
    show("Rows where two good sources contradict each other", rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--chances", action="store_true", help="Brier score and more of all chances only.")
    asked = parser.parse_args()
    n_tables = asked.tables
    with threadpool_limits(1, user_api="blas"):
        if asked.chances:
            show("Chances of every cluster, of merged instances and of newcomers", list(of_chances(n_tables)))
            return
        show_conflicts(conflicts(n_tables))
        scores, curves = evaluate(n_tables)
    rows = []
    for group in curves:
        old, new = (np.array(scores[group, name]) for name in FORMS)
        row = {"": group, "answers": len(new), "right": f"{new[:, 0].mean():.2f}"}
        for column, title in enumerate(("mean", "ECE", "AUC", "Brier"), start=1):
            before, after = np.nanmean(old[:, column]), np.nanmean(new[:, column])
            row[title] = f"{before:.3f} → {after:.3f}"
        row["ECE at most .07"] = f"{(new[:, 2] <= 0.07).mean():.0%}"
        rows.append(row)
    show("Previous form → confidence, means over answers", rows)
    curves = {group: parts for group, parts in curves.items() if ":" not in group}
    show("Reliability: share right at a confidence of", reliability(curves))
    show("Instances whose alternative is more likely (margin below .5)", contradictions(curves))


def reliability(curves):
    """Per bin of confidence: share right, and in brackets the share of all instances in the bin."""
    pooled = {group: [np.concatenate(part) for part in zip(*curves[group], strict=True)] for group in curves}
    for b in range(N_BINS):
        row = {"confidence": f"{b / N_BINS:.1f} to {(b + 1) / N_BINS:.1f}"}
        for group, (sure, ok, _) in pooled.items():
            here = bins(sure) == b
            row[group] = f"{ok[here].mean():.2f} ({here.mean():.0%})" if here.mean() >= 0.001 else "-"
        yield row


def contradictions(curves):
    """What confidence says of them, and what is right."""
    for group, parts in curves.items():
        sure, ok, margin = (np.concatenate(part) for part in zip(*parts, strict=True))
        less, both = margin < 0.5, (margin < 0.5) & (sure > 0.5)
        yield {
            "": group,
            "share": f"{less.mean():.1%}",
            "right": f"{ok[less].mean():.2f}",
            "confidence": f"{sure[less].mean():.2f}",
            "of them above .5": f"{both.sum() / max(less.sum(), 1):.1%}",
            "right of those": f"{ok[both].mean():.2f}" if both.any() else "-",
            "their confidence": f"{sure[both].mean():.2f}" if both.any() else "-",
        }


if __name__ == "__main__":
    main()
