"""Eight branches, each of which has met 40 % of the customers, and one clustering of everybody.

Every branch clusters only what it knows, into segments of its own: here, k-means with 16 to 24 clusters on a
sample of scikit-learn's 1797 handwritten digits. `fuse` merges the eight partial opinions into ten clusters
without seeing the digits themselves. The true digits are used only to score the outcome.
"""

from __future__ import annotations

import time
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from consilience import Partitions, fuse
from consilience._support.files import Outputs
from consilience.cli.results import Told, write_fusion, write_labels
from consilience.datasets import load_digits
from consilience.generate import base_partitions
from consilience.io import files
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score

N_BRANCHES = 8
SHARE = 0.4
SEGMENTS = (16, 24)  # each branch draws its own number of clusters from this range


def run_demo(folder: Path, outputs: Outputs, told: Told) -> str:
    """Do it, write everything to the folder, and say how well it went."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    told("clustering in every branch", 0, 3)
    labels = opinions(digits.X, seed=0)
    names = [f"branch_{j + 1}" for j in range(N_BRANCHES)]
    branches = Partitions.of(dict(zip(names, labels.T, strict=True)))
    write_labels(branches, outputs, str(folder / "branches.csv"), told)

    told("merging", 1, 3)
    start = time.perf_counter()
    fusion = fuse(branches, 10, random_state=0)
    seconds = time.perf_counter() - start
    write_fusion(
        fusion,
        outputs,
        told,
        output=str(folder / "consensus.csv"),
        imputed=str(folder / "imputed.csv"),
        report=str(folder / "report.html"),
    )
    files.write_text(outputs, str(folder / "summary.txt"), fusion.summary() + "\n")

    scores = [score(digits.y, column) for column in (*labels.T, fusion.labels)]
    whole = score(digits.y, KMeans(10, n_init=10, random_state=0).fit_predict(digits.X)).accuracy
    sure = fusion.confidence >= np.median(fusion.confidence)
    return (
        f"{_table([*names, 'consensus'], scores, len(digits.y))}\n\n"
        f"{_outcome(scores)}\n"
        "Accuracy allows one cluster per digit, which is hard on a branch that has more than ten;\n"
        f"k-means with ten clusters on all the digits reaches {whole:.3f}.\n\n"
        f"Mean confidence: {fusion.confidence.mean():.3f}, accuracy: {scores[-1].accuracy:.3f}.\n"
        f"{fill(fusion.diagnostics.reading, 96)}\n"
        "Accuracy on the half with the highest confidence: "
        f"{score(digits.y[sure], fusion.labels[sure]).accuracy:.3f}, "
        f"on the other half: {score(digits.y[~sure], fusion.labels[~sure]).accuracy:.3f}.\n"
        f"Merged in {seconds:.1f} s by {fusion.method}: {fusion.reason[0].lower()}{fusion.reason[1:]}\n\n"
        f"Wrote branches.csv, consensus.csv, imputed.csv, summary.txt and the page to {folder}/"
    )


def opinions(X: np.ndarray, seed: int) -> np.ndarray:
    """What the branches say: a column each, -1 for what a branch has not met."""
    return base_partitions(X, SEGMENTS, N_BRANCHES, subsample=SHARE, random_state=seed)


class Score(NamedTuple):
    """How labels compare with the true digits, on the instances that have one."""

    clusters: int
    seen: int
    accuracy: float
    nmi: float


def score(truth: np.ndarray, labels: np.ndarray) -> Score:
    """Accuracy, where a cluster stands for one digit and a digit has one cluster, and NMI."""
    seen = labels >= 0
    truth, labels = truth[seen], labels[seen]
    nmi = normalized_mutual_info_score(truth, labels, normalization="max")
    return Score(len(np.unique(labels)), int(seen.sum()), matched_accuracy_score(truth, labels), nmi)


def _outcome(scores: list[Score]) -> str:
    *branches, consensus = scores
    accuracy = sum(consensus.accuracy > branch.accuracy for branch in branches)
    nmi = sum(consensus.nmi > branch.nmi for branch in branches)
    return (
        f"The consensus beats {accuracy} of {len(branches)} branches in accuracy and {nmi} in NMI, and it "
        "covers all the digits."
    )


def _table(names: list[str], scores: list[Score], n: int) -> str:
    lines = [f"{'':12}{'clusters':>10}{'digits seen':>15}{'accuracy':>11}{'NMI (max)':>11}"]
    for name, (clusters, seen, accuracy, nmi) in zip(names, scores, strict=True):
        line = f"{name:12}{clusters:>10}{seen:>8} of {n}{accuracy:>11.3f}{nmi:>11.3f}"
        lines += ["-" * len(line), line] if name == "consensus" else [line]
    return "\n".join(lines)
