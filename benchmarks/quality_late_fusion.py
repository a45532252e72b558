"""Quality of the late-fusion family on incomplete views: the tables of its method pages.

    python -m benchmarks.quality_late_fusion --table settings   priors and regularisation, all sets
    python -m benchmarks.quality_late_fusion --table methods    all methods in their defaults, all sets
    python -m benchmarks.quality_late_fusion --table paper      UCI digits and ProteinFold, nine ratios
    python -m benchmarks.quality_late_fusion --table clear      clusters without any overlap
    python -m benchmarks.quality_late_fusion --table signs      what the aligned start is for
    ... --draws 1 --sets MSRC,BBCSport                          a quick look

Needs the benchmark files (see `consilience.datasets.load`). Rows are hidden by published patterns where there
are any, else by the papers' protocol: a share of the instances of every class loses half of the views. A row
of a table has one setting for all sets; none is chosen with the labels of a set.
"""

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks.quality_pce import show
from consilience import datasets
from consilience.core.kernels import fit_kernel, restrict
from consilience.core.stiefel import polar_factor
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score
from consilience.missing import drop_views
from consilience.multiview.eeimvc import eeimvc
from consilience.multiview.kernels import base_embeddings, cluster_embedding
from consilience.multiview.late import common_directions, read_prior
from consilience.multiview.lfimvc import lfimvc
from consilience.multiview.mkkm import impute, mkkm
from consilience.multiview.mkkmik import mkkmik
from consilience.multiview.oslfimvc import oslfimvc

# File, views (None is all) and kernel. Counts of words are compared by angle; the views of ProteinFold are
# the leading components of kernels, whose inner products give the kernels back.
SETS = {
    "UCI": ("mv_Handwritten6", (0, 1, 3), "rbf"),
    "UCI-6": ("mv_Handwritten6", None, "rbf"),
    "MSRC": ("mv_MSRCv1_5view", None, "rbf"),
    "BBCSport": ("mv_BBCSport544", None, "cosine"),
    "ProteinFold": ("mv_ProteinFold12", None, "linear"),
    "3Sources": ("mv_3Sources169", None, "cosine"),
    "3Sources-416": ("mv_3Sources416_partial", None, "cosine"),
    "NGs": ("mv_NGs500", None, "cosine"),
    "Cornell": ("mv_WebKB_Cornell", None, "cosine"),
    "Washington": ("kern_washington2", None, "precomputed"),
}
NINE = tuple(ratio / 10 for ratio in range(1, 10))
# Ratios and patterns of a table where they are not those of the command: the digits take long, and the two
# sets of the paper are shown over its nine ratios.
PLANS = {
    "settings": {"UCI": ((0.1, 0.3, 0.5, 0.7, 0.9), 1), "UCI-6": ((0.1, 0.5, 0.9), 1)},
    "methods": {"UCI": (NINE, 1), "ProteinFold": (NINE, 2)},
}
PRIORS = ("average", "imputed", "mkkm")
LAMBDAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
N_INIT = 10


class Case:
    """One set with one pattern of hidden rows: kernels, base embeddings and priors, made once."""

    def __init__(self, y, views, observed, kernel, *, leaking=False):
        self.y, self.k, self.observed = y, len(np.unique(y)), observed
        self._source = (y, views, observed, kernel)
        rng = np.random.RandomState(0)
        rows = [np.flatnonzero(seen) for seen in observed.T]
        everyone = np.arange(len(y))
        self.kernels = []
        for view, r in zip(views, rows, strict=True):
            used = everyone if leaking else r
            x = view[np.ix_(used, used)] if kernel == "precomputed" else view[used]
            fitted = fit_kernel(x, used, len(y), kernel, rng)
            self.kernels.append(restrict(fitted, r) if leaking else fitted)
        self._bases = base_embeddings(self.kernels, self.k)
        self.hs = [base.h for base in self._bases]
        self._priors = {}

    def leaking(self):
        """The same with kernels centred and scaled before rows are hidden, as in the papers."""
        return Case(*self._source, leaking=True)

    def prior(self, kind):
        if kind not in self._priors:
            self._priors[kind] = read_prior(kind, self.kernels, self._bases).h
        return self._priors[kind]

    def score_rows(self, h):
        return self.score(self.clusters(h).labels)

    def clusters(self, h):
        return cluster_embedding(h, self.k, n_init=N_INIT, rng=np.random.RandomState(0))

    def score(self, labels):
        return matched_accuracy_score(self.y, labels), normalized_mutual_info_score(
            self.y, labels, normalization="max"
        )


def cases(name, ratios, n_draws):
    file, chosen, kernel = SETS[name]
    data = datasets.load(file)
    tables = data.kernels if data.kind == "kernels" else data.views
    views = list(tables) if chosen is None else [tables[v] for v in chosen]
    if data.kind == "views" and not data.observed.all():  # incomplete by nature
        yield Case(data.y, views, data.observed, kernel)
        return
    patterns = data.patterns
    if name == "ProteinFold":
        patterns = datasets.load("miss_proteinFold").patterns
    for ratio in ratios:
        for draw in range(n_draws):
            if patterns:
                observed = patterns[len(views)][round(10 * ratio) - 1, draw]
            else:
                observed = drop_views(
                    (len(data.y), len(views)), ratio, protocol="stratified", y=data.y, random_state=draw
                )
            yield Case(data.y, views, observed, kernel)


def ee(prior, lam, init="aligned"):
    def run(case):
        h0 = case.prior(prior)
        found = eeimvc(case.hs, case.observed, h0, regularization=lam, init=init, max_iter=100, tol=1e-4)
        return case.score_rows(found.embedding)

    return run


def alone(prior):
    return lambda case: case.score_rows(case.prior(prior))


def lf(lam):
    def run(case):
        found = lfimvc(case.hs, regularization=lam, init="aligned", max_iter=200, tol=1e-4)
        return case.score_rows(found.embedding)

    return run


def oslf(prior, lam):
    def run(case):
        h0 = case.prior(prior)
        start = common_directions(case.hs, case.k) if h0 is None else h0
        centers = polar_factor(case.clusters(start).centers)
        settings = {"regularization": lam, "init": "aligned", "max_iter": 100, "tol": 1e-4}
        return case.score(oslfimvc(case.hs, case.observed, h0, centers, **settings).labels)

    return run


def multiple_kernel(imputation):
    def run(case):
        kernels, fills = impute(case.kernels, case.k, imputation)
        found = mkkm(kernels, case.k, fills=fills, max_iter=100, tol=1e-3)
        return case.score_rows(found.embedding)

    return run


def incomplete_kernels(case):
    return case.score_rows(mkkmik(case.kernels, case.k, max_iter=100, tol=1e-4).embedding)


def settings():
    yield "EE-IMVC, no prior", ee(None, 0.0)
    for prior in PRIORS:
        yield f"H_0 alone, {prior}", alone(prior)
        for lam in LAMBDAS:
            yield f"EE-R-IMVC, {prior}, {lam:g}", ee(prior, lam)
    for lam in (0.125, 1.0, 8.0, 64.0):
        yield f"LF-IMVC, {lam:g}", lf(lam)


def methods():
    yield "EE-R-IMVC (default)", ee("imputed", 1.0)
    yield "EE-R-IMVC, average prior", ee("average", 1.0)
    yield "EE-R-IMVC, centred before hiding", lambda case: ee("imputed", 1.0)(case.leaking())
    yield "EE-IMVC", ee(None, 0.0)
    yield "LF-IMVC", lf(1.0)
    yield "OS-LF-IMVC", oslf("imputed", 1.0)
    yield "MKKM-IK", incomplete_kernels
    for imputation in ("zero", "mean", "knn", "alignment"):
        yield f"MKKM, {imputation}", multiple_kernel(imputation)


def table(names, ratios, n_draws, programs, plan=None):
    """A row per program: mean ACC/NMI (max) per set, and their mean over the sets."""
    programs, plan = dict(programs), plan or {}
    found = {name: {program: [] for program in programs} for name in names}
    for name in names:
        for case in cases(name, *plan.get(name, (ratios, n_draws))):
            for program, run in programs.items():
                found[name][program].append(run(case))
    for program in programs:
        means = {name: 100 * np.mean(found[name][program], axis=0) for name in names}
        cells = {name: "{:.1f}/{:.1f}".format(*mean) for name, mean in means.items()}
        yield {
            "method": program,
            **cells,
            "mean": "{:.1f}/{:.1f}".format(*np.mean(list(means.values()), axis=0)),
        }


def clear(n_draws):
    """Clusters that nothing hides but missing rows: how many instances go wrong."""
    programs = dict(methods())
    for n_views in (2, 3):
        for missing in (0.1, 0.3):
            found = {program: [] for program in programs}
            for seed in range(n_draws):
                rng = np.random.default_rng(seed)
                y = rng.permutation(np.arange(150) % 3)
                views = [10.0 * np.eye(3, 5)[y] + 0.5 * rng.standard_normal((150, 5)) for _ in range(n_views)]
                observed = drop_views((150, n_views), missing, protocol="mcar", random_state=seed)
                case = Case(y, views, observed, "rbf")
                case.score = lambda labels, y=y: adjusted_rand_score(y, labels)
                for program, run in programs.items():
                    found[program].append(run(case))
            yield {
                "views": n_views,
                "missing": missing,
                **{program: f"{np.mean(scores):.3f}" for program, scores in found.items()},
            }


def signs(names, n_patterns):
    """Random signs of the base embeddings, half of the instances incomplete: published and aligned start."""
    for name in names:
        case = next(cases(name, [0.5], 1))
        for lam in (0.0, 1.0):
            found = {"identity": [], "aligned": []}
            for pattern in range(n_patterns):
                rng = np.random.default_rng(pattern)
                hs = [h * rng.choice([-1.0, 1.0], case.k) for h in case.hs]
                for init, scores in found.items():
                    result = eeimvc(
                        hs, case.observed, case.prior("average"),
                        regularization=lam, init=init, max_iter=100, tol=1e-4,
                    )  # fmt: skip
                    scores.append((*case.score_rows(result.embedding), result.n_iter))
            row = {"set": name, "regularization": lam}
            for init, scores in found.items():
                accuracy, sweeps = 100 * np.array(scores)[:, 0], np.array(scores)[:, 2]
                row[f"{init}: ACC"] = f"{accuracy.mean():.1f} +- {accuracy.std():.1f}"
                row[f"{init}: least to most"] = f"{accuracy.min():.1f} to {accuracy.max():.1f}"
                row[f"{init}: sweeps"] = f"{sweeps.mean():.0f}"
            yield row


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--table", choices=["settings", "methods", "paper", "clear", "signs"], default="methods"
    )
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--ratios", default=".1,.3,.5,.7,.9")
    parser.add_argument("--only", default="", help="methods whose name has this in it")
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    names = options.sets.split(",")
    ratios = [float(ratio) for ratio in options.ratios.split(",")]
    chosen = {name: run for name, run in methods() if options.only in name}
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        if options.table == "clear":
            show("Clear clusters, ARI", clear(options.draws))
        elif options.table == "signs":
            show("Signs of the base embeddings", signs(names, 20))
        elif options.table == "settings":
            rows = table(names, ratios, options.draws, settings(), PLANS["settings"])
            show("Settings, ACC/NMI(max)", rows)
        elif options.table == "methods":
            show("Methods, ACC/NMI(max)", table(names, ratios, options.draws, chosen, PLANS["methods"]))
        else:
            both = [name for name in names if name in ("UCI", "ProteinFold")]
            show("Aggregated over ratios .1 to .9", table(both, NINE, options.draws, chosen))


if __name__ == "__main__":
    main()
