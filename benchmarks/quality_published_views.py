"""`fuse_views` beside published figures, under the protocols of the papers: the table of its page.

    python -m benchmarks.quality_published_views            three masks a ratio (some minutes on one core)
    python -m benchmarks.quality_published_views --masks 1 --sets MSRCv1 NGs500

Needs the benchmark files (see `consilience.datasets.load`). A share of the instances is made incomplete, each
losing one to all but one of its views (`drop_views(..., protocol="some_lost")`); 3Sources is incomplete by
nature. All settings are the defaults, and the number of clusters is that of the classes. "Mean" is that over
the ratios .1, .3, .5, .7 and .9. Published figures are those of the papers, some of which choose settings by
the classes.
"""

import argparse
import time
import warnings
from typing import NamedTuple

import numpy as np

from benchmarks.quality_pce import show
from consilience import datasets, fuse_views
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score
from consilience.missing import drop_views

RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)


class Published(NamedTuple):
    """A data set, the protocol of its papers, and ACC/NMI in them, for every ratio or for their mean."""

    file: str
    ratios: tuple[float | None, ...]
    figures: dict[str, tuple[str, ...]]
    views: tuple[int, ...] | None = None
    nmi: str = "max"


SETS = {
    "3Sources, 416 stories": Published(
        "mv_3Sources416_partial",
        (None,),
        {"HCP-IMSC 2022": (".913/.793",), "FLSD": (".887/.743",), "PIC": (".875/.726",)},
    ),
    "Handwritten, six views": Published(
        "mv_Handwritten6",
        (0.1, 0.3, 0.5, 0.7),
        {
            "GAVIM 2026": (".948/.892", ".937/.870", ".936/.868", ".924/.847"),
            "MVP": (".906/.871", "", "", ".867/.826"),
        },
    ),
    "LandUse-21, two views": Published(
        "mv_LandUse21", (0.5,), {"COMPLETER 2021": (".222/.270",)}, (1, 2), "arithmetic"
    ),
    "MSRCv1": Published("mv_MSRCv1_5view", RATIOS, {"AGLF 2026": (".912/.870",), "PIMVC": (".796/.695",)}),
    "BDGP, two views": Published("mv_BDGP2500_2view", RATIOS, {"AGLF 2026": (".865/.833",)}),
    "NGs500": Published("mv_NGs500", RATIOS, {"FIMVC-TLRC 2026": (".909/.774",)}),
    "ProteinFold": Published(
        "mv_ProteinFold12", RATIOS, {"SOME-AS": (".326/.398",), "EEIMVC": (".279/.361",)}
    ),
}


def masks(data, views, ratio, n_masks):
    """Which rows each view has, for every mask; a set that is incomplete by nature has one."""
    for draw in range(n_masks):
        if ratio is None:
            yield data.observed
        else:
            yield drop_views((len(data.y), len(views)), ratio, protocol="some_lost", random_state=draw)


def scores(data, views, ratio, n_masks, nmi, options):
    """ACC and NMI of every mask."""
    k = len(np.unique(data.y))
    for seed, seen in enumerate(masks(data, views, ratio, n_masks)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = fuse_views(views, k, mask=seen, random_state=seed, **options).labels
        yield (
            matched_accuracy_score(data.y, labels),
            normalized_mutual_info_score(data.y, labels, normalization=nmi),
        )


def measure(names, n_masks, options):
    for name in names:
        published = SETS[name]
        data = datasets.load(published.file)
        views = [data.views[v] for v in published.views or range(len(data.views))]
        found, start = [], time.process_time()
        for ratio in published.ratios:
            found.append(list(scores(data, views, ratio, n_masks, published.nmi, options)))
        taken = (time.process_time() - start) / np.size(found) * 2
        if len(next(iter(published.figures.values()))) < len(found):  # published as a mean
            found = [[score for some in found for score in some]]
        for place, some in enumerate(found):
            protocol = "mean" if len(published.ratios) > len(found) else published.ratios[place] or "natural"
            yield {
                "set": name,
                "incomplete": protocol,
                "fuse_views": "{:.3f}/{:.3f}".format(*np.mean(some, axis=0)),
                "deviation": "{:.3f}/{:.3f}".format(*np.std(some, axis=0)) if protocol != "mean" else "",
                "published": ", ".join(
                    f"{who} {f[place]}" for who, f in published.figures.items() if f[place]
                ),
                "s a run": f"{taken:.1f}",
            }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--masks", type=int, default=3)
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="beginnings of names; default all")
    parser.add_argument("--method", help="another method of fuse_views")
    given = parser.parse_args()
    names = [name for name in SETS if not given.sets or name.startswith(tuple(given.sets))]
    options = {"method": given.method} if given.method else {}
    show("ACC/NMI beside published figures", measure(names, given.masks, options))


if __name__ == "__main__":
    main()
