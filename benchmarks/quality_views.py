"""Quality of `fuse_views` on incomplete views: the tables of the page of PSE.

    python -m benchmarks.quality_views                    three masks a set (about ten minutes on one core)
    python -m benchmarks.quality_views --masks 1          a quick look
    python -m benchmarks.quality_views --only NGs500      one set
    python -m benchmarks.quality_views --labels --peers   also method="labels", and NEMO of imml

Needs the benchmark files (see `consilience.datasets.load`). imml is compared where it is installed
(pip install imml==0.6.0). An instance keeps one view, drawn at random; a mask removes each of its
other rows with the given chance, on its own. All methods get the same rows.

Per set: accuracy and NMI(max) of `fuse_views`; beside it, what an independent program of the same method had
on other masks (three of them; for the last two sets five), as ACC/NMI; the mean confidence and its
calibration error; and, of a fit on four fifths of the instances, the accuracy of those and of the fifth that
`place` put somewhere by the views they have, with the confidence of these and its calibration error.
"""

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp

from benchmarks.quality_confidence import calibration_error, right
from benchmarks.quality_pce import show
from consilience import datasets, fuse_views
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score

# Ratios of missing rows, and what the independent program had at each.
SETS = {
    "3Sources169": {0.3: ".92/.82", 0.7: ".78/.71"},
    "3Sources416_partial": {None: ".93/.82"},  # incomplete as it is
    "BBC4view": {0.3: ".94/.83", 0.7: ".92/.78"},
    "BBCSport544": {0.3: ".97/.91", 0.7: ".96/.87"},
    "BDGP2500_2view": {0.3: ".50/.33", 0.7: ".45/.26"},
    "Handwritten6": {0.3: ".97/.93", 0.7: ".93/.87"},
    "LandUse21": {0.3: ".27/.33", 0.7: ".26/.30"},
    "MNIST4": {0.3: ".92/.80", 0.7: ".91/.79"},
    "MSRCv1_5view": {0.3: ".87/.77", 0.7: ".77/.66"},
    "Movies617": {0.3: ".32/.32", 0.7: ".27/.29"},
    "NGs500": {0.3: ".96/.88", 0.7: ".88/.70"},
    "ProteinFold12": {0.3: ".32/.42", 0.7: ".26/.35"},
    "Reuters1200": {0.3: ".51/.34", 0.7: ".50/.33"},
    "WebKB1051": {0.3: ".96/.71", 0.7: ".95/.61"},
    "WebKB_Cornell": {0.3: ".45/.26", 0.7: ".39/.13"},
    "WebKB_Texas": {0.3: ".47/.25", 0.7: ".44/.17"},
    "Wikipedia2866": {0.3: ".48/.45", 0.7: ".39/.34"},
    "Prokaryotic551": {0.3: ".56/.28", 0.7: ".48/.23"},
}
PLACED = ("fitted", "placed", "confidence of placed", "their calibration error")
HELD_OUT = 5  # every fifth instance is left out of a fit and placed afterwards


def masks(data, ratio, n_masks):
    """Which rows each view has, for every mask."""
    shape = len(data.y), len(data.views)
    for draw in range(n_masks):
        if ratio is None:
            yield data.observed
            continue
        rng = np.random.default_rng(draw)
        seen = rng.random(shape) >= ratio
        seen[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = True
        yield seen


def ours(views, seen, k, seed):
    return fuse_views(views, k, mask=seen, random_state=seed).labels


def merged_labels(views, seen, k, seed):
    return fuse_views(views, k, mask=seen, method="labels", random_state=seed).labels


def nemo(views, seen, k, seed):
    from imml.cluster import NEMO

    tables = []
    for v, view in enumerate(views.values()):
        table = (view.toarray() if sp.issparse(view) else np.array(view)).astype(float)
        table[~seen[:, v]] = np.nan
        tables.append(table)
    return np.asarray(NEMO(n_clusters=k, random_state=seed).fit_predict(tables))


def methods(labels, peers):
    found = {"fuse_views": ours}
    if labels:
        found['method="labels"'] = merged_labels
    if peers:
        try:
            import imml.cluster  # noqa: F401
        except ImportError:
            print("imml is not installed: NEMO is left out. Hint: pip install imml==0.6.0")
        else:
            found["NEMO (imml)"] = nemo
    return found


def scores(y, labels):
    nmi = normalized_mutual_info_score(y, labels, normalization="max")
    return matched_accuracy_score(y, labels), nmi


def sureness(y, views, seen, k, seed):
    """Mean confidence and calibration error."""
    fusion = fuse_views(views, k, mask=seen, random_state=seed)
    return fusion.confidence.mean(), calibration_error(fusion.confidence, right(y, fusion.labels))


def placement(y, views, seen, k, seed):
    """Accuracy of four fifths that were fitted and of the fifth that was placed, by one matching; mean
    confidence of those placed, and its calibration error."""
    new = np.random.default_rng(seed).permutation(len(y)) % HELD_OUT == 0
    fusion = fuse_views(
        {name: view[~new] for name, view in views.items()}, k, mask=seen[~new], random_state=seed
    )
    found = np.empty(len(y), dtype=int)
    found[~new] = fusion.labels
    placed = fusion.place({name: view[new] for name, view in views.items()}, mask=seen[new])
    found[new] = placed.labels
    counts = np.zeros((k, y.max() + 1))
    np.add.at(counts, (found[~new], y[~new]), 1)
    ok = right_by(counts, found, y)
    error = calibration_error(placed.confidence, ok[new])
    return ok[~new].mean(), ok[new].mean(), placed.confidence.mean(), error


def right_by(counts, labels, y):
    """Whether labels are right by the matching that suits these counts of clusters and classes best."""
    from scipy.optimize import linear_sum_assignment

    clusters, classes = linear_sum_assignment(-counts)
    match = np.full(len(counts), -1)
    match[clusters] = classes
    return match[labels] == y


def measure(names, n_masks, programs):
    means = []
    for name in names:
        data = datasets.load(f"mv_{name}")
        y = np.unique(data.y, return_inverse=True)[1]
        views = {
            view_name: sp.csr_array(view) if sp.issparse(view) else view
            for view_name, view in zip(data.view_names, data.views, strict=True)
        }
        k = int(y.max()) + 1
        for ratio, reference in SETS[name].items():
            row = {"set": name if ratio is None else f"{name}, {ratio:.0%} missing"}
            drawn = list(enumerate(masks(data, ratio, n_masks)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for method, program in programs.items():
                    start = time.process_time()
                    found = [program(views, seen, k, draw) for draw, seen in drawn]
                    seconds = (time.process_time() - start) / n_masks
                    accuracy, nmi = np.mean([scores(y, labels) for labels in found], axis=0)
                    row[method] = f"{accuracy:.3f}/{nmi:.3f}"
                    row[f"{method}, s"] = f"{seconds:.1f}"
                    if program is ours:
                        means.append([accuracy, nmi])
                sure = np.mean([sureness(y, views, seen, k, draw) for draw, seen in drawn], axis=0)
                placed = np.mean([placement(y, views, seen, k, draw) for draw, seen in drawn], axis=0)
            means[-1] += [*sure, *placed]
            row["independent program"] = reference
            row["confidence"], row["calibration error"] = (f"{value:.3f}" for value in sure)
            row.update(zip(PLACED, (f"{value:.3f}" for value in placed), strict=True))
            yield row
    accuracy, nmi, *rest = np.mean(means, axis=0)
    columns = ("confidence", "calibration error", *PLACED)
    rest = {column: f"{value:.3f}" for column, value in zip(columns, rest, strict=True)}
    yield {**dict.fromkeys(row, ""), "set": "mean", "fuse_views": f"{accuracy:.3f}/{nmi:.3f}", **rest}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--masks", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=sorted(SETS), metavar="SET", default=list(SETS))
    parser.add_argument("--labels", action="store_true", help="also merge labels of each view")
    parser.add_argument("--peers", action="store_true", help="also NEMO of imml")
    given = parser.parse_args()
    programs = methods(given.labels, given.peers)
    show("Incomplete views, ACC/NMI(max)", measure(given.only, given.masks, programs))


if __name__ == "__main__":
    main()
