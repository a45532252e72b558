"""Evidence for `choose_n_clusters`: the tables of the page on the number of clusters.

    python -m benchmarks.quality_n_clusters           all tables (about an hour on one core)
    python -m benchmarks.quality_n_clusters --runs 2  a quick look
    python -m benchmarks.quality_n_clusters --only pools

The pools need the benchmark files (see `consilience.datasets.load`); the other tables are made from seeds.
"Before" is the largest gap in the spectrum whether it stands out or not, which used to decide alone. The rule
was fixed on other draws of the pools of the first half, and read once on other draws of the second.
"""

import argparse
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from benchmarks.quality_pce import show
from consilience import DAL, Partitions, datasets
from consilience.diagnostics import choose_n_clusters
from consilience.generate import base_partitions
from consilience.metrics import normalized_mutual_info_score
from consilience.missing import drop_labels

KS = (1, 2, 3, 4, 6, 9)
# Of which `benchmarks.quality_confidence` makes its ensembles.
POOLS = (
    "ECCMS_Ecoli", "LWEA_Caltech20", "LWEA_LS", "LWEA_ODR", "LWEA_SPF", "LWEA_Semeion", "LWEA_USPS",
    "LWEA_VS", "Zhou_Lung", "Zhou_GLIOMA", "RCE_Yale", "PCE_pixraw10P_miss10", "PCE_pixraw10P_miss30",
    "PCE_pixraw10P_miss50", "PCE_pixraw10P_miss70",
)  # fmt: skip
# The pools on which the rule was chosen, and those on which it was read once. Base clusterings have 2 to
# sqrt(n) clusters, or all about the same number.
HALVES = {
    "chosen on, mixed k": (
        "LWEA_Semeion", "LWEA_SPF", "LWEA_VS", "LWEA_LS", "LWEA_USPS", "LWEA_LR",
    ),
    "chosen on, equal k": ("Zhou_Lung", "RCE_Yale"),
    "held out, mixed k": (
        "LWEA_Caltech20", "LWEA_ODR", "LWEA_IS", "LWEA_MF", "LWEA_PD", "ECCMS_Ecoli",
    ),
    "held out, equal k": ("Zhou_GLIOMA", "PCE_pixraw10P_miss10", "PCE_pixraw10P_miss50"),
}  # fmt: skip
# Far from the draws that the rule was chosen on.
FIRST_DRAW = 100
# Of larger pools so many instances are drawn.
INSTANCES = 2_000


def planted(n, m, k, *, noise, missing, seed):
    """Base labels that merge or split planted clusters, with noise and gaps; for k = 1, noise alone."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    columns = []
    for _ in range(m):
        if k == 1:
            columns.append(rng.integers(0, rng.integers(2, 7), n))
            continue
        labels = truth.copy()
        change = rng.choice(["merge", "split", "keep"])
        if change == "merge" and k > 2:
            first, second = rng.choice(k, 2, replace=False)
            labels[labels == first] = second
        elif change == "split":
            torn = rng.integers(k)
            labels[(labels == torn) & (rng.random(n) < 0.5)] = k
        names = np.unique(labels)
        wrong = rng.random(n) < noise
        labels[wrong] = rng.choice(names, int(wrong.sum()))
        columns.append(labels)
    base = np.column_stack(columns)
    hidden = rng.random((n, m)) < missing
    hidden[np.arange(n), rng.integers(0, m, n)] &= ~hidden.all(axis=1)
    return np.where(hidden, -1, base)


def planted_sets(n_runs, m, noise, missing, first_seed):
    for k in KS:
        for run in range(n_runs):
            yield f"K = {k}", k, planted(500, m, k, noise=noise, missing=missing, seed=(first_seed, k, run))


def blob_sets(n_runs, mixed, first_seed):
    for k in KS:
        for run in range(n_runs):
            seed = first_seed + 100 * k + run
            X, _ = make_blobs(500, n_features=10, centers=k, cluster_std=2.0, random_state=seed)
            sizes = (2, 28) if mixed else (2, k + 2)
            yield f"K = {k}", k, base_partitions(X, sizes, 20, random_state=seed)


def old_and_new(base):
    """What the spectrum alone says, and the count."""
    count = choose_n_clusters(Partitions.of(base, unobserved="keep").take_seen(), random_state=0)
    return next((c.n_clusters for c in count.candidates if "spectrum" in c.found_by), 1), count


def table(sets, **options):
    """A row per group: how often the number was right, near, and how often the flag was right."""
    found: dict[str, list[tuple[int, int, int, bool]]] = {}
    for group, k, base in sets:
        known = Partitions.of(base, unobserved="keep").take_seen()
        count = choose_n_clusters(known, random_state=0, **options)
        before = next((c.n_clusters for c in count.candidates if "spectrum" in c.found_by), 1)
        found.setdefault(group, []).append((k, before, count.n_clusters, count.reliable))
    rows = [(group, np.array(answers)) for group, answers in found.items()]
    rows.append(("all", np.concatenate([answers for _, answers in rows])))
    for group, answers in rows:
        truth, before, answer, flagged = answers.T
        right, near, sure = answer == truth, abs(answer - truth) <= 1, flagged.astype(bool)
        yield {
            "group": group,
            "ensembles": len(answers),
            "exact before": f"{(before == truth).mean():.0%}",
            "exact": f"{right.mean():.0%}",
            "within one before": f"{(abs(before - truth) <= 1).mean():.0%}",
            "within one": f"{near.mean():.0%}",
            "median found": f"{np.median(answer):g}",
            "called reliable": f"{sure.mean():.0%}",
            "of these exact": f"{right[sure].mean():.0%}" if sure.any() else "-",
            "of these within one": f"{near[sure].mean():.0%}" if sure.any() else "-",
        }


class Outcome(NamedTuple):
    """One ensemble of a pool: numbers found, what merging at them loses, and what else was said."""

    half: str
    pool: str
    missing: bool
    truth: int
    before: int
    now: int
    nmi_before: float
    nmi_now: float
    ari_before: float
    ari_now: float
    in_range: bool
    a_candidate: bool
    width: float
    repeatable: bool
    cloud: bool
    rule: str


def near(found, truth):
    """Within one, or within a quarter."""
    return abs(found - truth) <= np.maximum(1, truth / 4)


def pool_outcomes(n_runs) -> Iterator[Outcome]:
    """Ensembles of 10 and 20 drawn columns, complete and with 30 % of the labels taken out."""
    for half, names in HALVES.items():
        for name in names:
            pool = datasets.load(f"pool_{name}")
            for run in range(n_runs):
                for m in (10, 20):
                    rng = np.random.default_rng((FIRST_DRAW + run, m))
                    columns = rng.choice(pool.labels.shape[1], min(m, pool.labels.shape[1]), replace=False)
                    n = len(pool.y)
                    rows = rng.choice(n, min(n, INSTANCES), replace=False)
                    base, y = pool.labels[np.ix_(rows, columns)], np.asarray(pool.y)[rows]
                    yield outcome(half, name, base, y, missing=False)
                    dropped = drop_labels(base, 0.3, random_state=FIRST_DRAW + run)
                    yield outcome(half, name, dropped, y, missing=True)


def outcome(half, name, base, y, *, missing):
    table = Partitions.of(base, unobserved="keep")
    known, y = table.take_seen(), y[table.seen]
    before, count = old_and_new(base)
    truth, now = len(np.unique(y)), count.n_clusters
    labels = {k: DAL(k, random_state=0).fit_predict(known) for k in {before, now, truth}}
    nmi = {k: normalized_mutual_info_score(y, found, normalization="sqrt") for k, found in labels.items()}
    ari = {k: adjusted_rand_score(y, found) for k, found in labels.items()}
    return Outcome(
        half, name.split("_", 1)[1], missing, truth, before, now,
        nmi[truth] - nmi[before], nmi[truth] - nmi[now], ari[truth] - ari[before], ari[truth] - ari[now],
        count.low <= truth <= count.high, any(near(c.n_clusters, truth) for c in count.candidates),
        count.high / count.low, count.repeatable, count.may_be_one_cloud, count.rule,
    )  # fmt: skip


def lost(outcomes, which):
    """A row per rule: how near the number of classes, and what merging at it loses against that number."""
    truth = np.array([o.truth for o in outcomes])
    for rule in ("before", "now"):
        found = np.array([getattr(o, rule) for o in outcomes])
        yield {
            "ensembles": which,
            "number": len(outcomes),
            "rule": rule,
            "within one": f"{(abs(found - truth) <= 1).mean():.0%}",
            "one or 25 %": f"{near(found, truth).mean():.0%}",
            "NMI lost": f"{np.mean([getattr(o, f'nmi_{rule}') for o in outcomes]):.3f}",
            "ARI lost": f"{np.mean([getattr(o, f'ari_{rule}') for o in outcomes]):.3f}",
        }


def each_pool(outcomes):
    for name in dict.fromkeys(o.pool for o in outcomes):
        of = [o for o in outcomes if o.pool == name]
        yield {
            "pool": name,
            "half": of[0].half,
            "classes": of[0].truth,
            "median before": f"{np.median([o.before for o in of]):g}",
            "median now": f"{np.median([o.now for o in of]):g}",
            "ARI lost before": f"{np.mean([o.ari_before for o in of]):.3f}",
            "ARI lost now": f"{np.mean([o.ari_now for o in of]):.3f}",
            "range holds the classes": f"{np.mean([o.in_range for o in of]):.0%}",
        }


def said(outcomes, which):
    """Whether what else is said holds."""
    right = np.array([near(o.now, o.truth) for o in outcomes])
    sure = np.array([o.repeatable for o in outcomes])
    ari = np.array([o.ari_now for o in outcomes])
    yield {
        "ensembles": which,
        "gap stands out": f"{np.mean([o.rule == 'spectrum' for o in outcomes]):.0%}",
        "range holds the classes": f"{np.mean([o.in_range for o in outcomes]):.0%}",
        "its width, a factor": f"{np.exp(np.mean(np.log([o.width for o in outcomes]))):.1f}",
        "a candidate is near": f"{np.mean([o.a_candidate for o in outcomes]):.0%}",
        "repeatable": f"{sure.mean():.0%}",
        "near if so / if not": " / ".join(
            f"{right[x].mean():.0%}" if x.any() else "-" for x in (sure, ~sure)
        ),
        "ARI lost if so / if not": " / ".join(
            f"{ari[x].mean():.3f}" if x.any() else "-" for x in (sure, ~sure)
        ),
        "one cloud, wrongly": f"{np.mean([o.cloud for o in outcomes]):.0%}",
    }


def clouds(n_runs):
    """k-means on one cloud of points: how often it is called that."""
    for width in (1, 2, 3, 10):
        for shape in ("normal", "uniform"):
            flags, found = [], []
            for run in range(n_runs):
                rng = np.random.default_rng((FIRST_DRAW, width, run))
                X = rng.standard_normal((500, width)) if shape == "normal" else rng.random((500, width))
                _, count = old_and_new(base_partitions(X, (2, 22), 10, random_state=run))
                flags.append(count.may_be_one_cloud)
                found.append(count.n_clusters)
            yield {
                "cloud": f"{shape}, {width} dimensions",
                "ensembles": n_runs,
                "said to be one": f"{np.mean(flags):.0%}",
                "median found": f"{np.median(found):g}",
            }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40, help="ensembles of a kind; a tenth of each pool")
    parser.add_argument("--only", choices=("planted", "blobs", "clouds", "pools"))
    arguments = parser.parse_args()
    n_runs = arguments.runs
    few = max(n_runs // 8, 2)
    warnings.simplefilter("ignore")
    if arguments.only in (None, "planted"):
        for m, noise, missing in ((20, 0.3, 0.0), (20, 0.3, 0.4), (10, 0.5, 0.0), (10, 0.5, 0.4)):
            title = f"Planted clusters, merged and split, {m} bases, {noise:.0%} noise, {missing:.0%} missing"
            show(title, table(planted_sets(n_runs, m, noise, missing, 1000)))
    if arguments.only in (None, "blobs"):
        for mixed in (False, True):
            sizes = "2 to 28" if mixed else "2 to K + 2"
            show(f"Gaussian blobs, k-means of {sizes} clusters", table(blob_sets(few, mixed, 5000)))
            show(
                f"Gaussian blobs, k-means of {sizes} clusters, unimodal reference",
                table(blob_sets(few, mixed, 5000), reference="unimodal"),
            )
    if arguments.only in (None, "clouds"):
        show("One cloud, k-means of 2 to 22 clusters", clouds(few))
    if arguments.only in (None, "pools"):
        outcomes = list(pool_outcomes(max(n_runs // 10, 1)))
        groups = {half: [o for o in outcomes if o.half == half] for half in HALVES}
        groups["held out, mixed k, 30 % missing"] = [
            o for o in outcomes if o.half == "held out, mixed k" and o.missing
        ]
        show("Pools", [row for which, of in groups.items() for row in lost(of, which)])
        show("Pools: what else is said", [row for which, of in groups.items() for row in said(of, which)])
        show("Every pool", each_pool(outcomes))


if __name__ == "__main__":
    main()
