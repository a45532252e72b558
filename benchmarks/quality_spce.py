"""Quality of SPCE on pools of base clusterings: the tables of its method page.

    python -m benchmarks.quality_spce           ten runs a pool (about three minutes on two cores)
    python -m benchmarks.quality_spce --runs 2  a quick look

Needs the benchmark files (see `consilience.datasets.load`). A run takes the next columns of a pool, as its
authors do. No parameter is chosen with the labels of a set: a row has one theta for all sets.
"""

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.quality_pce import show
from consilience import PCE, SPCE, Partitions, datasets
from consilience.consensus.spce import _between_components, spce
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score
from consilience.missing import drop_labels

# Number of clusters and base clusterings a run.
COMPLETE = {
    "Zhou_Lung": (5, 20),
    "Zhou_GLIOMA": (4, 20),
    "RCE_Yale": (15, 20),
    "ECCMS_Ecoli": (8, 10),
    "LWEA_VS": (4, 10),
    "LWEA_SPF": (7, 10),
    "LWEA_Semeion": (10, 10),
}
PARTIAL = {f"PCE_pixraw10P_miss{share}": (10, 10) for share in (10, 30, 50, 70)}
THETAS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5)


def draws(pools, n_runs):
    """True classes, number of clusters and base labels of every run of every pool."""
    for name, (c, m) in pools.items():
        pool = datasets.load(f"pool_{name}")
        for run in range(min(n_runs, pool.labels.shape[1] // m)):
            yield name, pool.y, c, pool.labels[:, m * run : m * run + m]


def score(y, labels):
    return matched_accuracy_score(y, labels), normalized_mutual_info_score(y, labels, normalization="max")


def table(pools, n_runs, methods):
    """A row per method: mean ACC/NMI (max) per pool, their mean, and how often S had c components."""
    tables = list(draws(pools, n_runs))
    for method, make in methods.items():
        found = {name: [] for name in pools}
        exact = []
        for name, y, c, base in tables:
            model = make(c).fit(base)
            found[name].append(score(y, model.labels_))
            exact.append(getattr(model, "n_components_", c) == c)
        means = {name: np.mean(scores, axis=0) for name, scores in found.items()}
        cells = {name.split("_", 1)[1]: "{:.3f}/{:.3f}".format(*mean) for name, mean in means.items()}
        overall = "{:.3f}/{:.3f}".format(*np.mean(list(means.values()), axis=0))
        yield {"method": method, **cells, "mean": overall, "c components": f"{np.mean(exact):.0%}"}


def spce_with(**options):
    return lambda c: SPCE(c, unobserved="largest", random_state=0, **options)


def finishes(n_runs):
    """Where there are too many components: the cut that SPCE takes, and average linkage instead."""
    for theta in (0.25, 0.3, 0.5):
        cut, linked = [], []
        for _, y, c, base in draws(COMPLETE, n_runs):
            known = Partitions.of(base)
            rows = known.canonical.rows
            with threadpool_limits(1, user_api="blas"):
                result = spce(rows, c, theta=theta, weighting="self_paced", max_iter=20)
            if result.n_components <= c:
                continue
            graph, sizes = _between_components(result, rows)
            merged = average_linkage(graph, np.outer(sizes, sizes), c)
            linked.append(score(y, merged[result.components][known.inverse]))
            cut.append(score(y, SPCE(c, theta=theta, random_state=0).fit_predict(base)))
        yield {
            "theta": theta,
            "runs with too many components": len(cut),
            "normalised cut of components": "{:.3f}/{:.3f}".format(*np.mean(cut, axis=0)),
            "average linkage of components": "{:.3f}/{:.3f}".format(*np.mean(linked, axis=0)),
        }


def giants(n_runs):
    """When the warning about a giant made by gaps is given, and what SPCE and PCE are worth there."""
    yield _giants("complete pools", draws(COMPLETE, n_runs))
    yield _giants("incomplete pools", draws(PARTIAL, n_runs))
    for share in (0.05, 0.1, 0.2, 0.4):
        removed = (
            (name, y, c, drop_labels(base, share, random_state=0))
            for name, y, c, base in draws(COMPLETE, n_runs)
        )
        yield _giants(f"complete pools, {share:.0%} removed", removed)


def _giants(title, tables):
    scores = {True: [], False: []}
    for _, y, c, base in tables:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            labels = spce_with()(c).fit_predict(base)
        warned = any(str(said.message).startswith("SPCE put") for said in caught)
        other = PCE(c, unobserved="largest", random_state=0).fit_predict(base)
        scores[warned].append((matched_accuracy_score(y, labels), matched_accuracy_score(y, other)))
    cells = {
        warned: "SPCE {:.3f}, PCE {:.3f}".format(*np.mean(pairs, axis=0)) if pairs else "-"
        for warned, pairs in scores.items()
    }
    runs = f"{len(scores[True])} of {len(scores[True]) + len(scores[False])}"
    return {"tables": title, "warned": runs, "ACC where warned": cells[True], "ACC elsewhere": cells[False]}


def average_linkage(sums, pairs, n_clusters):
    """Merge the two groups of highest mean similarity until `n_clusters` are left."""
    labels = np.arange(len(sums))
    sums, pairs = sums.copy(), pairs.copy()
    for _ in range(len(sums) - n_clusters):
        alive = np.unique(labels)
        mean = sums[np.ix_(alive, alive)] / pairs[np.ix_(alive, alive)]
        np.fill_diagonal(mean, -1.0)
        x, y = alive[list(np.unravel_index(mean.argmax(), mean.shape))]
        for part in (sums, pairs):
            part[x] += part[y]
            part[:, x] += part[:, y]
        labels[labels == y] = x
    return np.unique(labels, return_inverse=True)[1]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    n_runs = parser.parse_args().runs
    others = {"PCE": lambda c: PCE(c, unobserved="largest", random_state=0)}
    thetas = {f"SPCE, theta = {theta:g}": spce_with(theta=theta) for theta in THETAS}
    ablations = {
        "SPCE": spce_with(),
        "SPCE-fixW": spce_with(weighting="fixed"),
        "SPCE-W": spce_with(weighting="none"),
    }
    show("theta, complete pools, ACC/NMI(max)", table(COMPLETE, n_runs, thetas | others))
    show("theta, incomplete pools, ACC/NMI(max)", table(PARTIAL, n_runs, thetas | others))
    show("Ablations, ACC/NMI(max)", table(COMPLETE, n_runs, ablations))
    show("Too many components, ACC/NMI(max)", finishes(n_runs))
    show("Giants made by gaps", giants(n_runs))


if __name__ == "__main__":
    main()
