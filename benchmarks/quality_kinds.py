"""How views of zeros and ones and of whole numbers are read: the tables of the page on PSE.

    python -m benchmarks.quality_kinds             all tables (about ten minutes on one core)
    python -m benchmarks.quality_kinds --draws 1   a quick look

One view at a time through PSE at the true number of classes, read in each way that would do and as it is
recognised. Tables are planted from seeds or made from the benchmark files (see `consilience.datasets.load`):
images and texts of which only zero or not zero is kept. Readings and limits were chosen on the first half;
the second half was read once.
"""

import argparse
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

from benchmarks.quality_pce import show
from consilience import PSE, datasets
from consilience.metrics import normalized_mutual_info_score
from consilience.multiview.pse import DoubtfulWarning
from consilience.multiview.scaling import recognise

FIRST_HELD_OUT = 100  # draws from this seed on were not looked at when readings were chosen


def mutations(n, genes, k, *, rate, lift, seed):
    """Every class has genes that are mutated more often, but for the first, which has hardly any mutation."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    chance = np.tile(rate * rng.gamma(0.7, 1 / 0.7, genes), (k, 1))
    for c in range(1, k):
        own = rng.choice(genes, max(2, genes // 10), replace=False)
        chance[c, own] += lift * rng.random(len(own))
    chance[0] = rate / 4
    x = (rng.random((n, genes)) < np.clip(chance[truth], 0, 0.97)).astype(float)
    return x[:, x.any(axis=0)], truth


def answers(n, questions, k, *, sharp, seed):
    """Yes or no to questions that classes answer differently."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    level = rng.normal(0, 1.2, questions) + sharp * rng.normal(size=(k, questions))
    return (rng.random((n, questions)) < (1 / (1 + np.exp(-level)))[truth]).astype(float), truth


def baskets(n, products, k, *, seed):
    """Who bought what: a few products each, of one of three shelves that a class goes to, or of any."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    liked = rng.dirichlet(np.full(3, 0.5), k)
    shelf = rng.integers(0, 3 * k, products)
    x = np.zeros((n, products))
    for i, c in enumerate(truth):
        for _ in range(rng.poisson(4)):
            own = np.flatnonzero(shelf == 3 * c + rng.choice(3, p=liked[c]))
            x[i, rng.choice(own if len(own) and rng.random() < 0.5 else products)] = 1.0
    return x[:, x.any(axis=0)], truth


def reads(n, genes, k, *, depth, uneven, noise, fold, share, spread, seed):
    """Reads of genes: levels over orders of magnitude, rows of unequal depth, some genes shifted by class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    shifted = np.exp(fold * rng.normal(size=(k, genes)) * (rng.random((k, genes)) < share))
    level = (np.exp(rng.normal(0, spread, genes)) * shifted)[truth]
    level *= depth * np.exp(uneven * rng.normal(size=(n, 1))) / level.sum(axis=1, keepdims=True)
    dispersion = noise * rng.gamma(2, 0.5, genes) + 1e-3
    x = rng.poisson(level * rng.gamma(1 / dispersion, dispersion, level.shape)).astype(float)
    return x[:, x.any(axis=0)], truth


def image(name, threshold, n=1_500):
    data = datasets.load(name)
    rows = np.sort(np.random.default_rng(0).permutation(len(data.y))[:n])
    return (data.X[rows] > threshold).astype(float), data.y[rows]


def text(name, columns=None, n=1_200):
    data = datasets.load(name)
    rows = np.sort(np.random.default_rng(0).permutation(len(data.y))[:n])
    x = sp.csr_array(data.X)[rows] > 0
    if columns is not None:
        x = x[:, np.sort(np.argsort(-x.sum(axis=0), kind="stable")[:columns])]
    return x.astype(float), data.y[rows]


def drawn(make, *shape, n_draws, first, **settings):
    return [make(*shape, seed=seed, **settings) for seed in range(first, first + n_draws)]


def binary_sets(held_out, n_draws):
    """By name: tables of zeros and ones with their classes."""
    digits = load_digits()
    if not held_out:
        yield "mutations, 90 x 40", drawn(mutations, 90, 40, 3, rate=0.03, lift=0.5, n_draws=n_draws, first=0)
        yield (
            "mutations, 300 x 200",
            drawn(mutations, 300, 200, 4, rate=0.02, lift=0.35, n_draws=n_draws, first=0),
        )
        yield (
            "mutations, 300 x 1000",
            drawn(mutations, 300, 1000, 5, rate=0.02, lift=0.12, n_draws=n_draws, first=0),
        )
        yield "answers, 300 x 20", drawn(answers, 300, 20, 4, sharp=1.2, n_draws=n_draws, first=0)
        yield "answers, 300 x 60", drawn(answers, 300, 60, 5, sharp=0.8, n_draws=n_draws, first=0)
        yield "digits, pixels > 7", [((digits.data > 7).astype(float), digits.target)]
        yield "USPS, pixels > 100", [image("USPS", 100)]
        yield "medical, words", [text("medical")]
        yield "WebACE, words", [text("WebACE")]
        yield "tr11, words", [text("tr11")]
        return
    first = FIRST_HELD_OUT
    yield (
        "mutations, 150 x 80",
        drawn(mutations, 150, 80, 4, rate=0.03, lift=0.4, n_draws=n_draws, first=first),
    )
    yield (
        "mutations, 200 x 400",
        drawn(mutations, 200, 400, 3, rate=0.015, lift=0.25, n_draws=n_draws, first=first),
    )
    yield "baskets, 400 x 60", drawn(baskets, 400, 60, 4, n_draws=n_draws, first=first)
    yield "baskets, 400 x 200", drawn(baskets, 400, 200, 5, n_draws=n_draws, first=first)
    yield "answers, 120 x 30", drawn(answers, 120, 30, 3, sharp=0.8, n_draws=n_draws, first=first)
    yield "COIL20, pixels > .3", [image("COIL20", 0.3)]
    yield "UMIST, pixels > 128", [image("UMIST", 128)]
    yield "k1b, words", [text("k1b")]
    yield "tr31, words", [text("tr31")]
    yield "tr31, 300 words", [text("tr31", 300)]
    yield "k1b, 300 words", [text("k1b", 300)]


def count_sets(held_out, n_draws):
    """By name: tables of whole numbers with their classes."""
    first = FIRST_HELD_OUT * held_out
    usual = {"n_draws": n_draws, "first": first, "uneven": 0.4}
    if not held_out:
        bulk = {"noise": 0.5, "fold": 0.35, "share": 0.08, "spread": 2.0}
        yield "reads, 90 x 1000", drawn(reads, 90, 1000, 3, depth=2e6, **bulk, **usual)
        bulk = {"noise": 0.4, "fold": 0.6, "share": 0.08, "spread": 1.5}
        yield "reads, 150 x 500", drawn(reads, 150, 500, 4, depth=1e6, **bulk, **usual)
        panel = {"noise": 0.5, "fold": 0.6, "share": 0.3, "spread": 1.5}
        yield "reads, 300 x 60", drawn(reads, 300, 60, 4, depth=3e3, **panel, **usual)
        cells = {"noise": 0.5, "fold": 0.8, "share": 0.1, "spread": 1.9}
        yield "cells, 400 x 1000", drawn(reads, 400, 1000, 5, depth=4e3, **cells, **usual)
        msrc = datasets.load("mv_MSRCv1_5view")
        yield "MSRC, LBP", [(msrc.views[3], msrc.y)]
        yield "MSRC, CENT", [(msrc.views[4], msrc.y)]
        hand = datasets.load("mv_Handwritten6")
        yield "Handwritten, fac", [(hand.views[0], hand.y)]
        return
    bulk = {"noise": 0.3, "fold": 0.5, "share": 0.15, "spread": 1.8}
    yield "reads, 120 x 300", drawn(reads, 120, 300, 3, depth=5e5, **bulk, **usual)
    bulk = {"noise": 0.6, "fold": 0.5, "share": 0.05, "spread": 2.2}
    yield "reads, 200 x 2000", drawn(reads, 200, 2000, 5, depth=1e7, **bulk, **usual)
    cells = {"noise": 0.4, "fold": 0.7, "share": 0.1, "spread": 1.6}
    yield "cells, 500 x 800", drawn(reads, 500, 800, 6, depth=5e3, **cells, **usual)
    cells = {"noise": 0.4, "fold": 1.0, "share": 0.1, "spread": 2.0}
    yield "cells, 500 x 2000", drawn(reads, 500, 2000, 6, depth=1e3, **cells, **usual)
    for name in ("ORL", "PenDigits", "jaffe"):
        data = datasets.load(name)
        yield f"{name}, pixels", [(data.X[:2_000], data.y[:2_000])]


def quality(x, truth, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulWarning)
        model = PSE(len(np.unique(truth)), kind=kind, random_state=0).fit([x])
    return normalized_mutual_info_score(truth, model.labels_, normalization="max")


def table(sets, kinds):
    """A row per set: NMI by kind of reading, and which was recognised."""
    for name, tables in sets:
        x, _ = tables[0]
        found = {recognise(x, np.ones(x.shape[0], dtype=bool)) for x, _ in tables}
        empty = np.mean([np.mean(np.asarray(x.sum(axis=1)) == 0) for x, _ in tables])
        filled = np.mean(
            [np.count_nonzero(x if not sp.issparse(x) else x.data) / np.prod(x.shape) for x, _ in tables]
        )
        row = {"set": name, "columns": x.shape[1], "filled": f"{filled:.0%}", "rows of zeros": f"{empty:.0%}"}
        for kind in kinds:
            row[kind] = f"{np.mean([quality(x, truth, kind) for x, truth in tables]):.3f}"
        yield {**row, "read as": ", ".join(sorted(found))}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=4, help="planted tables of each kind")
    draws = parser.parse_args().draws
    for held_out in (False, True):
        half = "held out" if held_out else "chosen on"
        show(
            f"Zeros and ones, {half}: NMI (max)",
            table(binary_sets(held_out, draws), ("measurements", "counts", "binary")),
        )
        show(
            f"Whole numbers, {half}: NMI (max)",
            table(count_sets(held_out, draws), ("measurements", "counts", "log-counts")),
        )


if __name__ == "__main__":
    main()
