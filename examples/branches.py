"""Eight branches, each of which has met 40 % of the customers, and one clustering of everybody.

Every branch clusters only what it knows: here, k-means on a sample of scikit-learn's 1797 handwritten digits.
`fuse` merges the eight partial opinions without seeing the digits themselves. The true digits are used only
to score the outcome.

    python examples/branches.py [OUTPUT FOLDER]
"""

import csv
import json
import sys
import time
from pathlib import Path

import numpy as np

from consilience import Fusion, fuse
from consilience.datasets import load_digits
from consilience.generate import base_partitions
from consilience.metrics import accuracy_score, normalized_mutual_info_score

N_BRANCHES = 8
SHARE = 0.4


def main(folder: Path) -> None:
    digits = load_digits()
    labels = base_partitions(digits.X, 10, N_BRANCHES, subsample=SHARE, random_state=0)
    names = [f"branch_{j + 1}" for j in range(N_BRANCHES)]

    start = time.perf_counter()
    fusion = fuse(dict(zip(names, labels.T, strict=True)), 10, random_state=0)
    elapsed = time.perf_counter() - start

    rows = [
        (name, *scores(digits.y, column), agreement)
        for name, column, agreement in zip(names, labels.T, fusion.agreement, strict=True)
    ]
    rows.append(("consensus", *scores(digits.y, fusion.labels), float(np.mean(fusion.agreement))))
    show(rows, len(digits.y))
    sure = fusion.confidence >= np.median(fusion.confidence)
    print(
        f"\nMerged in {elapsed:.1f} s by {fusion.method}: {fusion.reason[0].lower()}{fusion.reason[1:]}\n"
        f"Accuracy on the half it is surest of: {scores(digits.y[sure], fusion.labels[sure])[1]:.3f}, "
        f"on the other half: {scores(digits.y[~sure], fusion.labels[~sure])[1]:.3f}."
    )
    write(folder, names, labels, fusion, rows)


def scores(truth: np.ndarray, labels: np.ndarray) -> tuple[int, float, float]:
    """Instances seen, matched accuracy and NMI among them."""
    seen = labels >= 0
    truth, labels = truth[seen], labels[seen]
    return (
        int(seen.sum()),
        accuracy_score(truth, labels),
        normalized_mutual_info_score(truth, labels, normalization="max"),
    )


def show(rows: list[tuple[str, int, float, float, float]], n: int) -> None:
    print(f"{'':12}{'digits seen':>13}{'accuracy':>11}{'NMI (max)':>11}{'agreement':>11}")
    for name, seen, accuracy, nmi, agreement in rows:
        line = f"{name:12}{seen:>6} of {n:<4}{accuracy:>10.3f}{nmi:>11.3f}{agreement:>11.3f}"
        print("-" * len(line) + "\n" + line if name == "consensus" else line)


def write(folder: Path, names: list[str], labels: np.ndarray, fusion: Fusion, rows: list[tuple]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(
        folder / "consensus.csv",
        ["instance", "cluster", "confidence", "margin", "coverage"],
        zip(
            range(len(labels)),
            fusion.labels,
            fusion.confidence.round(4),
            fusion.margin.round(4),
            fusion.coverage.round(4),
            strict=True,
        ),
    )
    write_csv(
        folder / "branches.csv",
        ["instance", *names],
        ([p, *("" if label < 0 else label for label in row)] for p, row in enumerate(labels)),
    )
    write_csv(
        folder / "imputed.csv",
        ["instance", *names],
        ([p, *row] for p, row in enumerate(fusion.imputed.tolist())),
    )
    fields = ("name", "seen", "accuracy", "nmi_max", "agreement")
    summary = {
        "method": fusion.method,
        "reason": fusion.reason,
        "scores": [dict(zip(fields, row, strict=True)) for row in rows],
        "diagnostics": fusion.diagnostics.as_dict(),
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (folder / "summary.txt").write_text(fusion.summary() + "\n")
    print(f"\nWrote consensus.csv, branches.csv, imputed.csv, summary.json and summary.txt to {folder}/")


def write_csv(path: Path, header: list[str], rows) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
