"""Eight branches, each of which has met 40 % of the customers, and one clustering of everybody.

Every branch clusters only what it knows: here, k-means on a sample of scikit-learn's 1797 handwritten digits.
PCE merges the eight partial opinions without seeing the digits themselves. The true digits are used only to
score the outcome.

    python examples/branches.py [OUTPUT FOLDER]
"""

import csv
import json
import sys
import time
from pathlib import Path

import numpy as np

from consilience import PCE
from consilience.datasets import load_digits
from consilience.generate import base_partitions
from consilience.metrics import accuracy_score, base_agreement, normalized_mutual_info_score

N_BRANCHES = 8
SHARE = 0.4


def main(folder: Path) -> None:
    digits = load_digits()
    labels = base_partitions(digits.X, 10, N_BRANCHES, subsample=SHARE, random_state=0)
    names = [f"branch_{j + 1}" for j in range(N_BRANCHES)]

    start = time.perf_counter()
    model = PCE(n_clusters=10, random_state=0).fit(dict(zip(names, labels.T, strict=True)))
    elapsed = time.perf_counter() - start

    agreement = base_agreement(model.labels_, model.partitions_)
    rows = [
        (name, *scores(digits.y, column), agreement[j])
        for j, (name, column) in enumerate(zip(names, labels.T, strict=True))
    ]
    rows.append(("consensus", *scores(digits.y, model.labels_), float(np.mean(agreement))))
    show(rows, len(digits.y))
    sure = model.confidence_ >= np.median(model.confidence_)
    print(
        f"\nMerged in {elapsed:.2f} s ({model.n_iter_} iterations). "
        f"Accuracy on the half it is surest of: {scores(digits.y[sure], model.labels_[sure])[1]:.3f}, "
        f"on the other half: {scores(digits.y[~sure], model.labels_[~sure])[1]:.3f}."
    )
    write(folder, names, labels, model, rows)


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


def write(folder: Path, names: list[str], labels: np.ndarray, model: PCE, rows: list[tuple]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(
        folder / "consensus.csv",
        ["instance", "cluster", "confidence"],
        zip(range(len(labels)), model.labels_, model.confidence_.round(4), strict=True),
    )
    write_csv(
        folder / "branches.csv",
        ["instance", *names],
        ([p, *("" if label < 0 else label for label in row)] for p, row in enumerate(labels)),
    )
    write_csv(
        folder / "imputed.csv",
        ["instance", *names],
        ([p, *row] for p, row in enumerate(model.imputed_.tolist())),
    )
    fields = ("name", "seen", "accuracy", "nmi_max", "agreement")
    summary = {"method": repr(model), "scores": [dict(zip(fields, row, strict=True)) for row in rows]}
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(f"\nWrote consensus.csv, branches.csv, imputed.csv and summary.json to {folder}/")


def write_csv(path: Path, header: list[str], rows) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
