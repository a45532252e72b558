"""Quality of `fuse_views` on incomplete views, beside NEMO of the peer package imml: the table of its page.

    python -m benchmarks.quality_views            ten masks a set (about half an hour on two cores)
    python -m benchmarks.quality_views --masks 2  a quick look

Needs the benchmark files (see `consilience.datasets.load`). imml is compared where it is installed
(pip install imml==0.6.0). A mask removes each row of each view with the given chance, on its own; an
instance that would lose all its views gets one back. Both methods get the same rows.
"""

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp

from benchmarks.quality_pce import show
from consilience import datasets, fuse_views
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score

SETS = {
    "Handwritten6": (0.3, 0.7),
    "3Sources416_partial": (None,),  # incomplete as it is
    "BBCSport544": (0.3, 0.7),
    "MSRCv1_5view": (0.3, 0.7),
    "NGs500": (0.3, 0.7),
}


def masks(data, ratio, n_masks):
    """Which rows each view has, for every mask."""
    shape = len(data.y), len(data.views)
    for draw in range(n_masks):
        if ratio is None:
            yield data.observed
            continue
        rng = np.random.default_rng(draw)
        seen = rng.random(shape) >= ratio
        lost = np.flatnonzero(~seen.any(axis=1))
        seen[lost, rng.integers(0, shape[1], len(lost))] = True
        yield seen


def ours(views, seen, k, seed):
    return fuse_views(views, k, mask=seen, random_state=seed).labels


def nemo(views, seen, k, seed):
    from imml.cluster import NEMO

    tables = []
    for v, view in enumerate(views.values()):
        table = (view.toarray() if sp.issparse(view) else np.array(view)).astype(float)
        table[~seen[:, v]] = np.nan
        tables.append(table)
    return np.asarray(NEMO(n_clusters=k, random_state=seed).fit_predict(tables))


def methods():
    found = {"fuse_views": ours}
    try:
        import imml.cluster  # noqa: F401
    except ImportError:
        print("imml is not installed: NEMO is left out. Hint: pip install imml==0.6.0")
    else:
        found["NEMO (imml)"] = nemo
    return found


def measure(n_masks):
    programs = methods()
    for name, ratios in SETS.items():
        data = datasets.load(f"mv_{name}")
        views = dict(zip(data.view_names, data.views, strict=True))
        k = len(np.unique(data.y))
        for ratio in ratios:
            row = {"set": name if ratio is None else f"{name}, {ratio:.0%} missing"}
            for method, program in programs.items():
                scores, start = [], time.perf_counter()
                for draw, seen in enumerate(masks(data, ratio, n_masks)):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        labels = program(views, seen, k, draw)
                    scores.append(
                        (
                            matched_accuracy_score(data.y, labels),
                            normalized_mutual_info_score(data.y, labels, normalization="max"),
                        )
                    )
                row[method] = "{:.3f}/{:.3f}".format(*np.mean(scores, axis=0))
                row[f"{method}, s"] = f"{(time.perf_counter() - start) / n_masks:.1f}"
            yield row


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--masks", type=int, default=10)
    show("Incomplete views, ACC/NMI(max)", measure(parser.parse_args().masks))


if __name__ == "__main__":
    main()
