"""Figure 1 of ACMK's paper: a table before and after smoothing along the learned graph, drawn by t-SNE.

The paper draws Lung, whose features cannot be had; this draws Orlraws, another set of its tables. Colours are
the true classes, which only the picture sees.

    CONSILIENCE_DATA=FOLDER python examples/reproduce_acmk_figure_1.py OUTPUT.png
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import TSNE
from sklearn.preprocessing import normalize

from consilience import ACMK, datasets

ORDERS = (1, 2, 3, 4)


def tables(X: np.ndarray, n_clusters: int, orders: tuple[int, ...]) -> dict[str, np.ndarray]:
    """The table itself, and smoothed by filters of every order."""
    smoothed = {
        f"k = {order}": ACMK(n_clusters, order=order, random_state=0).fit(X).embedding_ for order in orders
    }
    return {"features": X, **smoothed}


def draw(found: dict[str, np.ndarray], y: np.ndarray) -> Any:
    """A panel for every table."""
    figure, axes = plt.subplots(
        1, len(found), figsize=(2.6 * len(found), 2.8), squeeze=False, layout="constrained"
    )
    for ax, (name, table) in zip(axes.flat, found.items(), strict=True):
        places = TSNE(perplexity=min(15, len(y) // 4), init="pca", random_state=0).fit_transform(table)
        ax.scatter(*places.T, c=y, cmap="tab10", s=12)
        ax.set_title(name, fontsize=10)
        ax.set_xticks([])
        ax.set_yticks([])
    return figure


def main(output: Path) -> None:
    data = datasets.load("orlraws10P")
    X = normalize(data.X.astype(float))
    draw(tables(X, len(np.unique(data.y)), ORDERS), data.y).savefig(output, dpi=100)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
