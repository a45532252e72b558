"""The picture on the front page: partial opinions, one clustering of everything, and how sure it is.

python examples/picture.py [OUTPUT FILE]
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from consilience import Fusion, fuse
from consilience.datasets import load_digits
from consilience.generate import base_partitions
from consilience.plotting import cluster_colors

WHITE = (1.0, 1.0, 1.0)


def as_consensus(fusion: Fusion) -> np.ndarray:
    """Every base label as the consensus cluster that most of its members are in; -1 where it is missing."""
    shown = np.full(fusion.partitions.codes.shape, -1)
    for j, codes in enumerate(fusion.partitions.codes.T):
        for label in range(codes.max() + 1):
            shown[codes == label, j] = np.bincount(fusion.labels[codes == label]).argmax()
    return shown


def draw(X: np.ndarray) -> plt.Figure:
    """Eight base clusterings that see 40 % of the rows each, their consensus and its confidence."""
    fusion = fuse(base_partitions(X, (16, 24), 8, subsample=0.4, random_state=0), 10, random_state=0)
    order = np.lexsort([-fusion.confidence, fusion.labels])
    colors = ListedColormap([WHITE, *cluster_colors(fusion.n_clusters)])

    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(8, 4), width_ratios=[8, 1.5, 3], layout="constrained"
    )
    scale = {"aspect": "auto", "interpolation": "nearest", "vmin": -1, "vmax": fusion.n_clusters - 1}
    left.imshow(as_consensus(fusion)[order], cmap=colors, **scale)
    left.set(title="eight branches, each saw 40 %", xticks=range(8), xticklabels=range(1, 9), yticks=[])
    left.set(ylabel=f"{len(X)} handwritten digits")
    middle.imshow(fusion.labels[order, None], cmap=colors, **scale)
    middle.set(title="consensus", xticks=[], yticks=[])
    right.barh(np.arange(len(X)), fusion.confidence[order], height=1.0, color="0.45")
    right.set(title="confidence", xlim=(0, 1), ylim=(len(X) - 0.5, -0.5), yticks=[])
    for ax in (left, middle, right):
        ax.title.set_fontsize(11)
    return figure


def main(path: Path, X: np.ndarray) -> None:
    """Draw it into a file."""
    plt.switch_backend("Agg")
    draw(X).savefig(path, dpi=110)
    plt.close("all")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "picture.png"), load_digits().X)
