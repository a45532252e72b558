"""Quality of APMC and its family on partial views: the tables and the picture of the method page.

    python -m benchmarks.quality_apmc                      all tables (about half an hour on one core)
    python -m benchmarks.quality_apmc --masks 2            a quick look
    python -m benchmarks.quality_apmc --only sources       one table: sources, digits, pairs, neighbours, few
    python -m benchmarks.quality_apmc --plot picture.png   sensitivity to n_neighbors and bandwidth

Needs the benchmark files (see `consilience.datasets.load`). The strongest other program, NEMO of imml 0.6.0,
runs beside ours where it is installed: `pip install imml==0.6.0` (best into an environment of its own). The
picture needs matplotlib. No parameter is chosen with the labels of a data set.
"""

import argparse
import warnings
from functools import partial

import numpy as np

from benchmarks.quality_pce import show
from consilience import datasets, multiview
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score
from consilience.missing import drop_views

SOURCES = {"BBC-Guardian": [0, 1], "BBC-Reuters": [0, 2], "Guardian-Reuters": [1, 2], "all views": [0, 1, 2]}
TABLE_1 = {
    "BBC-Guardian": "0.783/0.639",
    "BBC-Reuters": "0.753/0.659",
    "Guardian-Reuters": "0.744/0.662",
    "all views": "0.803/0.681",
}
ANY_VIEWS = (
    "APMC", "NEMO", "SNF", "DAIMC", "MIC", "MultiNMF", "SpectralConcat", "SpectralAverage",
)  # fmt: skip
TWO_VIEWS = (*ANY_VIEWS, "PVC", "IMG")
# Data sets on which the defaults were compared: name, missing ratios.
SEVERAL = {
    "mv_MSRCv1_5view": (0.3, 0.5),
    "mv_BBCSport544": (0.2, 0.4),
    "mv_NGs500": (0.3, 0.5),
    "mv_Handwritten6": (0.3, 0.7),
}


def chosen_of(methods, some):
    """Those of a list or dict that were asked for."""
    if some is None:
        return methods
    if isinstance(methods, dict):
        return {name: fit for name, fit in methods.items() if name in some}
    return [name for name in methods if name in some]


def score(y, labels):
    return matched_accuracy_score(y, labels), normalized_mutual_info_score(y, labels, normalization="max")


def cell(scores):
    return "{:.3f}/{:.3f}".format(*np.mean(scores, axis=0))


def stories(chosen):
    data = datasets.load("mv_3Sources416_partial")
    kept = data.observed[:, chosen].any(axis=1)
    return [data.views[v][kept] for v in chosen], data.observed[kept][:, chosen], data.y[kept]


def sources(n_runs, some=None):
    """3Sources, all 416 stories: every method, mean over random states (three for all but APMC)."""
    yield {"method": "APMC, Table 1 of its paper", **TABLE_1}
    runs = dict.fromkeys(TWO_VIEWS, min(3, n_runs)) | {"APMC": n_runs}
    for method in chosen_of(TWO_VIEWS, some):
        row = {"method": method}
        for name, chosen in SOURCES.items():
            views, observed, y = stories(chosen)
            if len(views) > 2 and method in ("PVC", "IMG"):
                row[name] = "-"
                continue
            make = getattr(multiview, method)
            row[name] = cell(
                [
                    score(y, make(6, random_state=run).fit(views, mask=observed).labels_)
                    for run in range(runs[method])
                ]
            )
        yield row


def masks(ratio, n_masks):
    return [drop_views((2000, 6), ratio, random_state=draw) for draw in range(n_masks)]


def digits(n_masks, some=None):
    """Handwritten digits, six views: ACC/NMI by share of rows missing a view, mean over masks."""
    data = datasets.load("mv_Handwritten6")
    for method, fit in chosen_of(peers(), some).items():
        row = {"method": method}
        for ratio in (0.3, 0.7):
            scores = [score(data.y, fit(data.views, mask)) for mask in masks(ratio, n_masks)]
            row[f"{ratio:.0%} missing"] = cell(scores)
            row[f"worst ACC, {ratio:.0%}"] = f"{min(accuracy for accuracy, _ in scores):.3f}"
        yield row


def peers():
    ours = {method: partial(fit_ours, method) for method in ANY_VIEWS}
    try:
        from imml.cluster import NEMO
    except ImportError:
        print("imml is not installed: pip install imml==0.6.0")
        return ours
    return {"NEMO of imml 0.6.0": partial(fit_imml, NEMO), **ours}


def fit_ours(method, views, mask):
    return getattr(multiview, method)(10, random_state=0).fit(views, mask=mask).labels_


def fit_imml(method, views, mask):
    """Features standardised on the rows that are there, absent rows NaN, all else at its default."""
    tables = []
    for v, x in enumerate(views):
        rows = mask[:, v]
        deviation = x[rows].std(axis=0)
        scaled = (x - x[rows].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        tables.append(np.where(rows[:, None], scaled, np.nan))
    return method(n_clusters=10, random_state=0).fit_predict(tables)


def pairs(n_masks, some=None):
    """Digits, Fourier and profile views, one view lost by a share of the instances: methods for two views."""
    data = datasets.load("mv_Handwritten6")
    views = [data.views[1], data.views[0]]
    for method in chosen_of(TWO_VIEWS, some):
        row = {"method": method}
        for ratio in (0.1, 0.5, 0.9):
            scores = []
            for draw in range(n_masks):
                mask = drop_views((2000, 2), ratio, protocol="one_lost", y=data.y, random_state=draw)
                scores.append(score(data.y, fit_ours(method, views, mask)))
            row[f"{ratio:.0%} lost one"] = cell(scores)
        yield row


def several(n_masks):
    for name, chosen in SOURCES.items():
        yield f"3Sources {name}", *stories(chosen)
    for name, ratios in SEVERAL.items():
        data = datasets.load(name)
        for ratio in ratios:
            for draw in range(n_masks):
                mask = drop_views((len(data.y), len(data.views)), ratio, random_state=draw)
                yield f"{name[3:].split('_')[0]} {ratio:.0%}", data.views, mask, data.y


def settings():
    for share in (0.25, 0.5, 0.75, 1.0):
        yield f"{share:g} of the anchors a cluster", {"share": share}
    for m in (5, 10, 20):
        yield f"n_neighbors = {m}", {"n_neighbors": m}
    yield "bandwidth = mean distance", {"bandwidth": "mean_distance"}
    yield "normalize = l2", {"normalize": "l2"}


def neighbours(n_masks):
    """The defaults of APMC against others, one setting for all data sets."""
    for title, options in settings():
        found = {}
        for name, views, mask, y in several(n_masks):
            model = with_share(len(np.unique(y)), **options).fit(views, mask=mask)
            found.setdefault(name, []).append(score(y, model.labels_))
        means = [np.mean(scores, axis=0) for scores in found.values()]
        cells = {name: cell(scores) for name, scores in found.items()}
        yield {"setting": title, **cells, "mean": "{:.3f}/{:.3f}".format(*np.mean(means, axis=0))}


class with_share(multiview.APMC):
    """APMC with another share of the anchors for each cluster as neighbours."""

    def __init__(self, n_clusters=8, *, share=0.5, **options):
        super().__init__(n_clusters, random_state=0, **options)
        self.share = share

    def fit(self, X, y=None, *, mask=None):
        from consilience.multiview import apmc

        before, apmc.SHARE = apmc.SHARE, self.share
        try:
            return super().fit(X, mask=mask)
        finally:
            apmc.SHARE = before


def few(n_masks):
    """Few common instances: the paper's anchors, diffusion, and which of them APMC takes."""
    from consilience.multiview import apmc

    data = datasets.load("mv_Handwritten6")
    for name, chosen in (("fou + fac", [1, 0]), ("kar + zer", [2, 5])):
        for common in (12, 30, 60, 120, 240):
            row = {"views": name, "common": common}
            for how, enough in (("anchors", 0), ("diffusion", np.inf)):
                scores = []
                for draw in range(n_masks):
                    lost = 1 - common / 2000
                    mask = drop_views((2000, 2), lost, protocol="one_lost", y=data.y, random_state=draw)
                    before, apmc.FEW = apmc.FEW, enough
                    try:
                        model = multiview.APMC(10, random_state=0)
                        labels = model.fit([data.views[v] for v in chosen], mask=mask).labels_
                    finally:
                        apmc.FEW = before
                    scores.append(score(data.y, labels))
                row[how] = cell(scores)
            yield {**row, "taken": "diffusion" if common < apmc.FEW * 10 else "anchors"}


def plot(path):
    """Accuracy by number of neighbours, and by bandwidth in units of the mean distance."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    data = datasets.load("mv_Handwritten6")
    cases = {f"3Sources, {name}": stories(chosen) for name, chosen in SOURCES.items()}
    for ratio in (0.3, 0.7):
        cases[f"digits, {ratio:.0%} missing"] = (data.views, masks(ratio, 1)[0], data.y)
    counts, widths = (2, 4, 6, 8, 10, 14, 20, 30, 40, 60, 80), (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.5, 2.5, 5.0)
    for name, (views, mask, y) in cases.items():
        k = len(np.unique(y))
        by_count = [
            accuracy(multiview.APMC(k, n_neighbors=m, random_state=0), views, mask, y) for m in counts
        ]
        left.plot(counts, by_count, marker=".", label=name)
        by_width = [accuracy(with_width(k, width), views, mask, y) for width in widths]
        right.plot(widths, by_width, marker=".", label=name)
    left.set(xlabel="n_neighbors", ylabel="accuracy", xscale="log")
    right.set(xlabel="bandwidth / mean distance to the nearest anchors", xscale="log")
    for axis, ticks in ((left, (2, 5, 10, 20, 40, 80)), (right, (0.1, 0.2, 0.5, 1, 2, 5))):
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
    right.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


class with_width(multiview.APMC):
    """APMC whose bandwidth is a multiple of the mean distance, in every view of every pair."""

    def __init__(self, n_clusters=8, width=1.0):
        super().__init__(n_clusters, bandwidth="mean_distance", random_state=0)
        self.width = width

    def fit(self, X, y=None, *, mask=None):
        from consilience.multiview import apmc

        kernel = apmc.truncated_kernel
        apmc.truncated_kernel = lambda near, n, sigma: kernel(near, n, self.width * sigma)
        try:
            return super().fit(X, mask=mask)
        finally:
            apmc.truncated_kernel = kernel


def accuracy(model, views, mask, y):
    return matched_accuracy_score(y, model.fit(views, mask=mask).labels_)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--masks", type=int, default=10)
    parser.add_argument("--only", choices=("sources", "digits", "pairs", "neighbours", "few"))
    parser.add_argument("--methods", nargs="+", help="some rows of a table only")
    parser.add_argument("--plot", metavar="FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.plot:
        plot(options.plot)
        return
    tables = {
        "sources": (
            "3Sources, ACC/NMI(max)",
            lambda n, some: sources(2 * n, some),
        ),
        "digits": ("Digits, six views, ACC/NMI(max)", digits),
        "pairs": ("Digits, two views, ACC/NMI(max)", lambda n, some: pairs(max(1, n // 5), some)),
        "neighbours": ("Settings of APMC, ACC/NMI(max)", lambda n, some: neighbours(max(1, n // 5))),
        "few": ("Few common instances, ACC/NMI(max)", lambda n, some: few(max(1, n // 5))),
    }
    for name, (title, table) in tables.items():
        if options.only in (None, name):
            show(title, table(options.masks, options.methods))


if __name__ == "__main__":
    main()
