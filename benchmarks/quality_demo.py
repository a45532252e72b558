"""The demo with other seeds: how often the consensus is above every branch, and what ten clusters would do.

    python -m benchmarks.quality_demo [SEEDS]    thirty seeds take about two minutes on one core

The seed draws who meets whom, the numbers of clusters and the starts. Beside the branches as they are stands
what they would say if each were asked for ten clusters itself, of the same digits, from ten starts: accuracy
and NMI (max) both punish clusters that are finer than the classes.
"""

import sys

import numpy as np
from sklearn.cluster import KMeans

from consilience import fuse
from consilience.cli.demo import opinions, score
from consilience.datasets import load_digits


def coarse(X, labels, seed):
    """A branch's digits in ten clusters; -1 for the others."""
    seen = labels >= 0
    out = np.full(len(labels), -1)
    out[seen] = KMeans(10, n_init=10, random_state=seed).fit_predict(X[seen])
    return out


def one(digits, seed):
    """Scores of the consensus, of the branches, and of the branches with ten clusters each."""
    labels = opinions(digits.X, seed)
    fusion = fuse(labels, 10, random_state=0)
    sure = fusion.confidence >= np.median(fusion.confidence)
    consensus = score(digits.y, fusion.labels)
    fine = [score(digits.y, column) for column in labels.T]
    ten = [score(digits.y, coarse(digits.X, column, seed)) for column in labels.T]
    return {
        "consensus accuracy": consensus.accuracy,
        "best branch accuracy": max(s.accuracy for s in fine),
        "ten clusters, mean accuracy": np.mean([s.accuracy for s in ten]),
        "ten clusters, best accuracy": max(s.accuracy for s in ten),
        "consensus NMI": consensus.nmi,
        "best branch NMI": max(s.nmi for s in fine),
        "ten clusters, best NMI": max(s.nmi for s in ten),
        "mean confidence": fusion.confidence.mean(),
        "accuracy, surer half": score(digits.y[sure], fusion.labels[sure]).accuracy,
        "accuracy, other half": score(digits.y[~sure], fusion.labels[~sure]).accuracy,
    }


def main(n_seeds):
    """Print means with ranges, and counts."""
    digits = load_digits()
    runs = [one(digits, seed) for seed in range(n_seeds)]
    for name in runs[0]:
        values = [run[name] for run in runs]
        print(f"{name:30}{np.mean(values):.3f}  ({np.min(values):.3f} to {np.max(values):.3f})")
    for other in (
        "best branch accuracy",
        "best branch NMI",
        "ten clusters, mean accuracy",
        "ten clusters, best accuracy",
    ):
        ours = "consensus NMI" if other.endswith("NMI") else "consensus accuracy"
        print(f"above {other}: {sum(run[ours] > run[other] for run in runs)} of {n_seeds} seeds")
    whole = KMeans(10, n_init=10, random_state=0).fit_predict(digits.X)
    print(f"k-means with ten clusters on all digits: accuracy {score(digits.y, whole).accuracy:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
