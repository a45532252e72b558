"""Figure 1 of SPCE's paper: the co-association of the base clusterings, and what four methods make of it.

A sample of K1b, 20 k-means base clusterings of it; instances are sorted by true class, which only the picture
sees. The number over a panel is the share of its weight that links instances of one class.

    CONSILIENCE_DATA=FOLDER python examples/reproduce_spce_figure_1.py OUTPUT.png
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from consilience import MVEC, RCE, RSEC, SPCE, datasets
from consilience.generate import base_partitions

N_INSTANCES = 500
_SHADES = 7  # few, so that the file stays small


def matrices(labels: np.ndarray, n_clusters: int) -> dict[str, np.ndarray]:
    """Between all instances, not negative: the input, and the consensus of every method."""
    found = {"co-association": np.mean([column[:, None] == column for column in labels.T], axis=0)}
    learned = {"RCE": (RCE, "similarity"), "MEC": (MVEC, "graph"), "RSEC": (RSEC, "representation")}
    for name, (method, attribute) in learned.items():
        model = method(n_clusters, random_state=0).fit(labels)
        rows = model.row_of_instance_
        matrix = np.abs(getattr(model, f"row_{attribute}_"))
        found[name] = (matrix + matrix.T)[np.ix_(rows, rows)] / 2
    spce = SPCE(n_clusters, random_state=0).fit(labels)
    return {**found, "SPCE": spce.coassociation(np.arange(len(labels)))}


def purity_of_links(matrix: np.ndarray, y: np.ndarray) -> float:
    """Share of the weight between two different instances that stays inside a class."""
    weights = matrix - np.diag(np.diag(matrix))
    return float(weights[y[:, None] == y].sum() / weights.sum())


def draw(found: dict[str, np.ndarray], y: np.ndarray) -> Any:
    """A panel for every matrix; its largest tenth of a percent is black."""
    order = np.argsort(y, kind="stable")
    figure, axes = plt.subplots(
        1, len(found), figsize=(2.5 * len(found), 2.8), squeeze=False, layout="constrained"
    )
    for ax, (name, matrix) in zip(axes.flat, found.items(), strict=True):
        shades = np.round(_SHADES * matrix[np.ix_(order, order)] / np.quantile(matrix, 0.999))
        ax.imshow(shades, cmap="gray_r", vmin=0, vmax=_SHADES, interpolation="nearest")
        ax.set_title(f"{name} ({purity_of_links(matrix, y):.3f})", fontsize=10)
        ends = np.cumsum(np.bincount(y))
        ax.set_xticks(ends, [])
        ax.set_yticks(ends, [])
    return figure


def main(output: Path) -> None:
    data = datasets.load("k1b")
    rows = np.sort(np.random.default_rng(0).choice(len(data.y), N_INSTANCES, replace=False))
    k = len(np.unique(data.y))
    labels = base_partitions(data.X[rows], k, 20, max_iter=100, random_state=0)
    draw(matrices(labels, k), data.y[rows]).savefig(output, dpi=72)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
