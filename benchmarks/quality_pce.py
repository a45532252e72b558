"""Quality of PCE on real data: the tables of its method page.

    python -m benchmarks.quality_pce            ten draws a cell (about ten minutes on two cores)
    python -m benchmarks.quality_pce --draws 2  a quick look

Needs the benchmark files (see `consilience.datasets.load`). Base clusterings are k-means from random starts,
each on the (1 - r) share of the instances it sees, as in the paper. No parameter is chosen with the labels.
"""

import argparse
import warnings
from itertools import product

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize
from tests.planted import planted

from consilience import PCE, Partitions, datasets
from consilience.consensus.pce import pce
from consilience.core.canonical import Rows
from consilience.generate import base_partitions
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score

TABLES = {"Yale": 15, "ORL": 40, "orlraws10P": 10, "jaffe": 10}
RAW = {"orlraws10P"}  # the others have their rows scaled to length one first, as in the papers
MIXED = ("pool_LWEA_Semeion", "pool_LWEA_LS", "pool_LWEA_Caltech20")
POOLS = {0.1: "pool_PCE_pixraw10P_miss10", 0.3: "pool_PCE_pixraw10P_miss30", 0.7: "pool_PCE_pixraw10P_miss70"}
ABLATIONS = {
    "PCE": {},
    "PCE-noSP": {"self_paced": False},
    "PCE-noDiv": {"diversity": False},
    "PCE-filling": {"imputation": "random"},
    "PCE-post": {"discretize": "post"},
}


def draws(name, ratio, n_draws):
    """True classes, number of clusters and base labels of every draw."""
    if name == "pixraw pools":
        pool = datasets.load(POOLS[ratio])
        for run in range(min(n_draws, 10)):
            yield pool.y, 10, pool.labels[:, 10 * run : 10 * run + 10]
        return
    data = datasets.load(name)
    X = data.X if name in RAW else normalize(data.X)
    for draw in range(n_draws):
        yield (
            data.y,
            TABLES[name],
            base_partitions(
                X, TABLES[name], 10, subsample=1 - ratio, max_iter=100, cover=False, random_state=draw
            ),
        )


def score(name, ratio, n_draws, **options):
    """Mean ACC and NMI (max) over the draws."""
    found = []
    for draw, (y, c, base) in enumerate(draws(name, ratio, n_draws)):
        labels = PCE(c, unobserved="largest", random_state=draw, **options).fit_predict(base)
        found.append(
            (matched_accuracy_score(y, labels), normalized_mutual_info_score(y, labels, normalization="max"))
        )
    return "{:.3f}/{:.3f}".format(*np.mean(found, axis=0))


def pool_score(name, ratio, n_draws, init):
    """Mean NMI (max) on 1000 rows of a pool whose base clusterings differ in their numbers of clusters."""
    pool = datasets.load(name)
    found = []
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        rows = rng.permutation(len(pool.y))[:1000]
        table = pool.labels[rows][:, rng.permutation(pool.labels.shape[1])[:10]]
        table = np.where(rng.random(table.shape) < ratio, -1, table)
        c = len(np.unique(pool.y))
        labels = PCE(c, init=init, unobserved="largest", random_state=draw).fit_predict(table)
        found.append(normalized_mutual_info_score(pool.y[rows], labels, normalization="max"))
    return f"{np.mean(found):.3f}"


def figures(n_draws):
    for name in TABLES:
        yield {"data": name, **{f"r = {r}": score(name, r, n_draws) for r in (0.0, 0.3, 0.7)}}
    cells = {f"r = {r}": score("pixraw pools", r, n_draws) for r in POOLS}
    yield {
        "data": "pixraw pools (r = .1, .3, .7)",
        **dict(zip(("r = 0.0", "r = 0.3", "r = 0.7"), cells.values(), strict=True)),
    }


def ablations(n_draws):
    for method, options in ABLATIONS.items():
        yield {
            "method": method,
            **{
                f"{name} r = {r}": score(name, r, n_draws, **options)
                for name, r in product(("Yale", "orlraws10P", "pixraw pools"), (0.3, 0.7))
            },
        }


def gammas(n_draws):
    for gamma in (1e-4, 1e-2, 0.1, 1.0, 100.0, 1e4):
        yield {
            "gamma": f"{gamma:g}",
            **{
                f"{name} r = 0.3": score(name, 0.3, n_draws, gamma=gamma)
                for name in ("Yale", "orlraws10P", "jaffe", "pixraw pools")
            },
        }


def starts(n_draws):
    for n_init in (1, 10, 50):
        yield {
            "n_init": n_init,
            **{
                f"{name} r = {r}": score(name, r, n_draws, n_init=n_init)
                for name, r in product(TABLES, (0.0, 0.3))
            },
        }


def inits(n_draws):
    for init in ("normalized", "coassociation"):
        yield {
            "init": init,
            **{
                f"{name} r = {r}": score(name, r, n_draws, init=init)
                for name, r in product(TABLES, (0.0, 0.3, 0.7))
            },
            **{f"pixraw r = {r}": score("pixraw pools", r, n_draws, init=init) for r in POOLS},
        }


def mixed(n_draws):
    for init in ("normalized", "coassociation"):
        yield {
            "init": init,
            **{f"{name} {r}": pool_score(name, r, n_draws, init) for name, r in product(MIXED, (0.0, 0.7))},
        }


def unequal(n_draws):
    for init in ("normalized", "coassociation"):
        row = {"init": init}
        for small, m, missing in ((0.15, 3, 0.5), (0.3, 3, 0.7), (0.05, 10, 0.5)):
            found = []
            for draw in range(n_draws):
                truth, base = planted(
                    1000, m, 2, noise=0.0, missing=missing, seed=draw, sizes=(1 - small, small)
                )
                labels = PCE(2, init=init, random_state=draw).fit_predict(base)
                found.append(adjusted_rand_score(truth, labels))
            row[f"{small:.0%} in the small one, {m} bases, {missing:.0%} missing"] = f"{np.mean(found):.2f}"
        yield row


def imputations(n_draws):
    """Share of hidden entries filled in with the label that the base clustering had given."""
    for name, c in TABLES.items():
        row = {"data": name}
        X = normalize(datasets.load(name).X)
        for ratio in (0.3, 0.7):
            published, ours = [], []
            for draw in range(n_draws):
                full = base_partitions(X, c, 10, random_state=draw)
                hidden = np.random.default_rng(draw).random(full.shape) < ratio
                hidden[hidden.all(axis=1), 0] = False
                base = np.where(hidden, -1, full)
                ours.append(np.mean(PCE(c, random_state=draw).fit(base).imputed_[hidden] == full[hidden]))
                table = Partitions.of(base)
                rows = Rows(table.distinct.codes, table.offsets, table.distinct.counts)
                result = pce(
                    rows, c, init="normalized", gamma=1.0, n_init=10, self_paced=True, diversity=True,
                    joint=True, max_iter=100, tol=1e-3, rng=np.random.RandomState(draw),
                )  # fmt: skip
                filled = table.decode(result.codes[table.inverse])
                published.append(np.mean(filled[hidden] == full[hidden]))
            row[f"Eq. (11), {ratio:.0%} hidden"] = f"{np.mean(published):.3f}"
            row[f"imputed_, {ratio:.0%} hidden"] = f"{np.mean(ours):.3f}"
        yield row


def show(title, rows):
    print(f"\n### {title}\n", flush=True)
    for number, row in enumerate(rows):
        if number == 0:
            print("| " + " | ".join(row) + " |\n|" + "---|" * len(row))
        print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=10)
    n_draws = parser.parse_args().draws
    warnings.simplefilter("ignore", ConvergenceWarning)
    show("ACC/NMI(max), gamma = 1", figures(n_draws))
    show("Ablations, ACC/NMI(max)", ablations(n_draws))
    show("gamma, ACC/NMI(max)", gammas(n_draws))
    show("Rotation starts, ACC/NMI(max)", starts(n_draws))
    show("init, ACC/NMI(max)", inits(n_draws))
    show("init, pools with mixed numbers of clusters, NMI(max)", mixed(n_draws))
    show("init, two planted clusters without noise, ARI", unequal(n_draws))
    show("Hidden labels filled in correctly", imputations(n_draws))


if __name__ == "__main__":
    main()
