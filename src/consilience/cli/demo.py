"""Eight branches, each of which has met 40 % of the customers, and one clustering of everybody.

Every branch clusters only what it knows: here, k-means on a sample of scikit-learn's 1797 handwritten digits.
`fuse` merges the eight partial opinions without seeing the digits themselves. The true digits are used only
to score the outcome.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from consilience import Partitions, fuse
from consilience.cli import files
from consilience.cli.results import Told, base_labels, write_fusion
from consilience.datasets import load_digits
from consilience.generate import base_partitions
from consilience.metrics import accuracy_score, normalized_mutual_info_score

N_BRANCHES = 8
SHARE = 0.4


def run_demo(folder: Path, told: Told) -> str:
    """Do it, write everything to the folder, and say how well it went."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    told("clustering in every branch", 0, 3)
    labels = base_partitions(digits.X, 10, N_BRANCHES, subsample=SHARE, random_state=0)
    names = [f"branch_{j + 1}" for j in range(N_BRANCHES)]
    branches = Partitions.of(dict(zip(names, labels.T, strict=True)))
    files.write_table(str(folder / "branches.csv"), len(labels), base_labels(branches), told)

    told("merging", 1, 3)
    start = time.perf_counter()
    fusion = fuse(branches, 10, random_state=0)
    seconds = time.perf_counter() - start
    write_fusion(
        fusion,
        told,
        output=str(folder / "consensus.csv"),
        imputed=str(folder / "imputed.csv"),
        report=str(folder / "report.html"),
    )
    files.write_text(str(folder / "summary.txt"), fusion.summary() + "\n")

    rows = [
        (name, *_scores(digits.y, column), agreement)
        for name, column, agreement in zip(names, labels.T, fusion.agreement, strict=True)
    ]
    rows.append(("consensus", *_scores(digits.y, fusion.labels), float(np.mean(fusion.agreement))))
    sure = fusion.confidence >= np.median(fusion.confidence)
    return (
        f"{_table(rows, len(digits.y))}\n\n"
        f"Merged in {seconds:.1f} s by {fusion.method}: {fusion.reason[0].lower()}{fusion.reason[1:]}\n"
        f"Accuracy on the half it is surest of: {_scores(digits.y[sure], fusion.labels[sure])[1]:.3f}, "
        f"on the other half: {_scores(digits.y[~sure], fusion.labels[~sure])[1]:.3f}.\n\n"
        f"Wrote branches.csv, consensus.csv, imputed.csv, summary.txt and the page to {folder}/"
    )


def _scores(truth: np.ndarray, labels: np.ndarray) -> tuple[int, float, float]:
    """Instances seen, matched accuracy and NMI among them."""
    seen = labels >= 0
    truth, labels = truth[seen], labels[seen]
    nmi = normalized_mutual_info_score(truth, labels, normalization="max")
    return int(seen.sum()), accuracy_score(truth, labels), nmi


def _table(rows: list[tuple[str, int, float, float, float]], n: int) -> str:
    lines = [f"{'':12}{'digits seen':>13}{'accuracy':>11}{'NMI (max)':>11}{'agreement':>11}"]
    for name, seen, accuracy, nmi, agreement in rows:
        line = f"{name:12}{seen:>6} of {n:<4}{accuracy:>10.3f}{nmi:>11.3f}{agreement:>11.3f}"
        lines += ["-" * len(line), line] if name == "consensus" else [line]
    return "\n".join(lines)
