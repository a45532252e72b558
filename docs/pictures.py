"""Draws the picture of every method page: what goes in, what the method makes of it, and what comes out.

python docs/pictures.py                  all of them, into docs/methods/img
python docs/pictures.py LWEA PSE         only these
"""

import sys
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, to_rgba
from PIL import Image
from scipy.cluster.hierarchy import dendrogram
from scipy.optimize import linear_sum_assignment

from consilience import Partitions
from consilience.diagnostics import cluster_flow, confidence
from consilience.generate import base_partitions
from consilience.plotting import cluster_colors
from consilience.registry import SUBPACKAGES, methods

FOLDER = Path(__file__).parent / "methods" / "img"
SEED = 4
GREY, PALE = "#B0B0B0", "#DDDDDD"
BASE = ("#88CCEE", "#CC6677", "#DDCC77", "#117733", "#332288", "#AA4499", "#44AA99", "#999933", "#882255")


class Toy(NamedTuple):
    """Points in the plane, what was said about them, and the clusters that they were drawn from."""

    points: np.ndarray
    given: Any
    truth: np.ndarray


def strips() -> Toy:
    """Three long clusters; k-means with 6 to 12 clusters has cut them to pieces, seeing 70 % of them."""
    rng = np.random.RandomState(SEED)
    truth = np.repeat([0, 1, 2], [90, 70, 50])
    along = rng.uniform(0, np.array([3.4, 2.9, 2.4])[truth])
    across = truth * 1.55 + 0.3 * np.sin(1.3 * along) + rng.normal(0, 0.13, len(truth))
    points = np.column_stack([along, across])
    return Toy(points, base_partitions(points, (6, 12), 16, subsample=0.7, random_state=SEED), truth)


def blobs(blur: float = 0.75, missing: float = 0.3) -> Toy:
    """Three round clusters; eight observers with three words each miss some, and err near the borders."""
    rng = np.random.RandomState(SEED)
    truth = np.repeat([0, 1, 2], [90, 60, 40])
    centres = np.array([[0, 0], [2.6, 0.3], [1.2, 2.2]])
    points = centres[truth] + rng.normal(0, 0.55, (len(truth), 2))
    distance = np.linalg.norm(points[:, None] - centres, axis=2)
    table = (distance[:, :, None] + rng.normal(0, blur, (len(truth), 3, 8))).argmin(axis=1)
    table = np.column_stack([rng.permutation(3)[column] for column in table.T])
    table[rng.random_sample(table.shape) < missing] = -1
    table[(table < 0).all(axis=1), 0] = 0
    return Toy(points, table, truth)


def agreeing() -> Toy:
    """The same observers, of one mind but for the borders, and nothing missing."""
    return blobs(blur=0.3, missing=0.0)


def two_views() -> Toy:
    """Three clusters, of which either view confuses two; a quarter of its rows is absent."""
    rng = np.random.RandomState(SEED)
    truth = np.repeat([0, 1, 2], [70, 50, 40])
    parts = np.kron(np.eye(3), np.ones(3)) + 0.1
    mixed = {
        "blood": [[1, 0, 0], [0, 0.7, 0.3], [0, 0.3, 0.7]],
        "genes": [[0.7, 0.3, 0], [0.3, 0.7, 0], [0, 0, 1]],
    }
    views = {}
    for name, shares in mixed.items():
        drawn = np.clip(np.array(shares)[truth] + rng.normal(0, 0.13, (len(truth), 3)), 0, None)
        views[name] = drawn @ parts + rng.uniform(0, 0.2, (len(truth), 9))
    lost = rng.permutation(len(truth))[:80]
    views["blood"][lost[:40]] = np.nan
    views["genes"][lost[40:]] = np.nan
    return Toy(np.empty((0, 2)), views, truth)


def features() -> Toy:
    """Seven round clusters: runs of k-means end in different places."""
    rng = np.random.RandomState(SEED)
    truth = np.repeat(np.arange(7), 30)
    centres = np.array([[0, 0], [2, 0.3], [4, 0], [0.8, 2], [3, 2.1], [5, 2], [2, 4]])
    points = centres[truth] + rng.normal(0, 0.4, (len(truth), 2))
    return Toy(points, points, truth)


# Which toy shows what a method of labels is for; others get the long clusters.
TOYS = {
    "SPCE": agreeing,
    **dict.fromkeys(("PCE", "MixtureConsensus", "BCE", "KCC", "SEC", "NMFC", "MCLA"), blobs),
    **dict.fromkeys(("CESHL", "SCCBG", "TRCE"), blobs),
}


def toy_for(method: type) -> Toy:
    """The toy of a method."""
    home = next(name for name in SUBPACKAGES if f".{name}." in method.__module__)
    if home == "multiview":
        return two_views()
    if home == "features":
        return features()
    return TOYS.get(method.__name__, strips)()


def fitted(method: type, toy: Toy) -> Any:
    """The method on its toy, with the clusters numbered as in the toy wherever they are the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a method says of a toy belongs on no page
        model = method(n_clusters=len(np.unique(toy.truth)), random_state=0)
        return model.fit(toy.given)


def as_in(truth: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Labels under the numbers of the clusters that they share most with, so that colours can be compared."""
    flow = cluster_flow(labels, truth)
    number = np.arange(max(flow.shape))
    row, column = linear_sum_assignment(-np.pad(flow, [(0, max(flow.shape) - s) for s in flow.shape]))
    number[row] = column
    return number[labels]


def draw(method: type) -> plt.Figure:
    """Three panels: in, inside, out."""
    toy = toy_for(method)
    model = fitted(method, toy)
    labels = as_in(toy.truth, model.labels_)
    if isinstance(toy.given, dict):
        figure, axes = plt.subplots(1, 3, figsize=(8.4, 2.7), layout="constrained")
        for ax, (name, view) in zip(axes, toy.given.items(), strict=False):
            view_panel(ax, name, view, labels)
        inside(axes[2], model, labels, toy)
        return figure
    figure = plt.figure(figsize=(8.4, 2.7), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[1.1, 1, 1.1])
    opinions = toy.given if toy.given.shape[1] > 2 else model.initial_base_labels_
    opinions_panel(left, toy.points, opinions)
    inside(middle.subplots(), model, labels, toy)
    answer_panel(right.subplots(), model, labels, toy)
    return figure


def right(labels: np.ndarray, toy: Toy) -> str:
    """How many are in the cluster that they were drawn from."""
    return f"{np.mean(labels == toy.truth):.0%} right"


def opinions_panel(part: Any, points: np.ndarray, table: np.ndarray) -> None:
    """The first four base clusterings, each in the plane; grey is what it has not seen."""
    axes = part.subplots(2, 2, gridspec_kw={"wspace": 0.02, "hspace": 0.02}).ravel()
    for ax, column in zip(axes, table.T, strict=False):
        seen = column >= 0
        ax.scatter(*points[~seen].T, s=2.5, c=PALE, linewidths=0)
        ax.scatter(*points[seen].T, s=5, c=[BASE[c % len(BASE)] for c in column[seen]], linewidths=0)
        frame(ax)
    missing = ", grey: not seen" if (table < 0).any() else ""
    part.suptitle(f"in: 4 of {table.shape[1]} base clusterings{missing}", size=9)


def view_panel(ax: plt.Axes, name: str, view: np.ndarray, labels: np.ndarray) -> None:
    """The rows that are present, on the two axes that show most."""
    present = np.isfinite(view).all(axis=1)
    centred = view[present] - view[present].mean(axis=0)
    x, y = (centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T).T
    ax.scatter(x, y, s=9, c=np.array(cluster_colors(labels.max() + 1))[labels[present]], linewidths=0)
    ax.set_title(f"view {name!r}: {present.sum()} of {len(view)} instances", size=9)
    frame(ax)


def answer_panel(ax: plt.Axes, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """The consensus in the plane; the less confident, the paler."""
    if hasattr(model, "partitions_"):
        sure, said = confidence(model.partitions_, model.labels_), ", pale: unsure"
    else:
        sure, said = np.ones(len(labels)), ""
    palette = cluster_colors(labels.max() + 1)
    colors = [to_rgba(palette[c], 0.15 + 0.85 * s**2) for c, s in zip(labels, sure, strict=True)]
    ax.scatter(*toy.points.T, s=12, c=colors, linewidths=0)
    ax.set_title(f"out: {right(labels, toy)}{said}", size=9)
    frame(ax)


def inside(ax: plt.Axes, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """What the method made of it on its way, by the attributes that it has."""
    panels: list[tuple[str, Callable[..., None]]] = [
        ("imputed_", filled),
        ("row_merges_", tree),
        ("membership_", shares),
        ("association_", shares),
        ("cluster_similarity_", base_clusters),
        ("row_memberships_", memberships),
        ("row_coassociation_", rows_heat),
        ("row_similarity_", rows_heat),
        ("row_graph_", rows_heat),
        ("row_representation_", rows_heat),
        ("embedding_", embedding),
        ("certainty_", certainties),
        ("partitions_", coassociation),
    ]
    attribute, panel = next(one for one in panels if hasattr(model, one[0]))
    panel(ax, getattr(model, attribute), model, labels, toy)
    ax.title.set_size(9)


def filled(ax: plt.Axes, imputed: Any, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """The table of labels, what was missing filled in by paler colours."""
    order = np.argsort(labels, kind="stable")
    table, full = np.asarray(toy.given)[order], np.asarray(imputed, dtype=int)[order]
    palette = np.array([to_rgba(c) for c in cluster_colors(3)])
    codes = np.column_stack([as_in(labels[order], full[:, j]) for j in range(table.shape[1])])
    shown = palette[codes]
    shown[table < 0, 3] = 0.35
    ax.imshow(shown, aspect="auto", interpolation="nearest")
    ax.set_title("inside: missing labels filled in (pale)")
    ax.set_xlabel("base clusterings", size=8)
    frame(ax)


def tree(ax: plt.Axes, merges: np.ndarray, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """The hierarchy; a branch has the colour of the cluster that all its leaves are in."""
    n = len(merges) + 1
    cluster = np.zeros(n, dtype=int)
    cluster[model.row_of_instance_] = labels
    inside_of = list(cluster)
    for a, b in merges[:, :2].astype(int):
        inside_of.append(inside_of[a] if inside_of[a] == inside_of[b] else -1)
    z = merges.copy()
    z[:, 2] = np.maximum.accumulate(merges[0, 2] - merges[:, 2])
    found = dendrogram(z, no_plot=True, link_color_func=str)  # the number of a node instead of its colour
    palette = [*cluster_colors(labels.max() + 1), GREY]
    lines = [np.column_stack(line) for line in zip(found["icoord"], found["dcoord"], strict=True)]
    colors = [palette[inside_of[int(node)]] for node in found["color_list"]]
    ax.add_collection(LineCollection(lines, colors=colors, linewidths=0.9))
    ax.autoscale_view()
    ax.margins(x=0.01)
    ax.set_title("inside: the tree of the label rows")
    frame(ax)
    ax.spines[["top", "right", "left"]].set_visible(False)


def shares(ax: plt.Axes, table: np.ndarray, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """How much of every instance belongs to every cluster, sorted."""
    table = np.asarray(table) / np.asarray(table).sum(axis=1, keepdims=True)
    number = np.arange(table.shape[1])
    number[model.labels_] = labels  # the colours of the other panels
    order = np.lexsort([-table.max(axis=1), labels])
    palette, below = cluster_colors(table.shape[1]), np.zeros(len(table))
    for c in np.argsort(number):
        ax.bar(np.arange(len(table)), table[order, c], 1.0, below, color=palette[number[c]])
        below += table[order, c]
    ax.set_xlim(-0.5, len(table) - 0.5)
    ax.set_title("inside: shares of the clusters")
    ax.set_xlabel("instances", size=8)
    frame(ax)


def base_clusters(ax: plt.Axes, similarity: np.ndarray, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """How alike the base clusters are, sorted by the clusters that they ended in."""
    order = np.argsort(np.concatenate(list(model.meta_clusters_)), kind="stable")
    heat(ax, np.asarray(similarity)[np.ix_(order, order)], "inside: how alike the base clusters are")


def memberships(ax: plt.Axes, table: np.ndarray, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """Instances against base clusters after learning, both sorted by cluster."""
    rows = np.asarray(table)[model.row_of_instance_]
    order = np.argsort(labels, kind="stable")
    sums = np.array([rows[labels == c].mean(axis=0) for c in np.unique(labels)])
    heat(
        ax, rows[np.ix_(order, np.argsort(sums.argmax(axis=0), kind="stable"))], "inside: learned memberships"
    )
    ax.set_xlabel("base clusters", size=8)
    ax.set_ylabel("instances", size=8)


def rows_heat(ax: plt.Axes, table: np.ndarray, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """The similarity that was learned, sorted by cluster."""
    place = model.row_of_instance_[np.argsort(labels, kind="stable")]
    table = np.abs(table.toarray() if hasattr(table, "toarray") else table)[np.ix_(place, place)]
    heat(ax, (table + table.T) / 2, "inside: the learned similarity")


def coassociation(ax: plt.Axes, partitions: Partitions, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """How often two instances share a base cluster, sorted by cluster."""
    order = np.argsort(labels, kind="stable")
    heat(ax, partitions.coassociation()[np.ix_(order, order)], "inside: who shares base clusters")


def certainties(ax: plt.Axes, found: Any, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """How much every base cluster counts; its colour is the cluster that most of its members are in."""
    codes = model.partitions_.codes
    colors = cluster_colors(labels.max() + 1)
    bars = []
    for j, one in enumerate(found):
        for label, value in enumerate(one):
            members = labels[codes[:, j] == label]
            bars.append((float(value), colors[np.bincount(members).argmax()]))
    bars.sort()
    ax.bar(np.arange(len(bars)), [v for v, _ in bars], 1.0, color=[c for _, c in bars])
    ax.set_title("inside: how much base clusters count")
    ax.set_xlabel("base clusters", size=8)
    frame(ax)


def embedding(ax: plt.Axes, table: np.ndarray, model: Any, labels: np.ndarray, toy: Toy) -> None:
    """Places of all instances on the two axes that show most."""
    centred = np.asarray(table) - np.asarray(table).mean(axis=0)
    x, y = (centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T).T
    ax.scatter(x, y, s=9, c=np.array(cluster_colors(labels.max() + 1))[labels], linewidths=0, alpha=0.8)
    everyone = f"one place for all {len(labels)}"
    ax.set_title(
        f"{everyone}, {right(labels, toy)}" if isinstance(toy.given, dict) else f"inside: {everyone}"
    )
    frame(ax)


def heat(ax: plt.Axes, table: np.ndarray, title: str) -> None:
    """A heat map; few entries are large, so the scale ends where a hundredth is above it."""
    top = np.nanquantile(table, 0.99)
    blues = ListedColormap(plt.colormaps["Blues"](np.linspace(0, 1, 64)))
    ax.imshow(table, cmap=blues, vmin=0, vmax=top or 1, aspect="auto", interpolation="nearest")
    ax.set_title(title)
    frame(ax)


def frame(ax: plt.Axes) -> None:
    """No ticks, a thin line around."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color("#CCCCCC")


def save(figure: plt.Figure, path: Path) -> None:
    """A picture of 128 colours on white, a few kilobytes."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=130)
    plt.close(figure)
    few = Image.open(drawn).convert("RGB").quantize(128, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def main(names: list[str], folder: Path) -> None:
    """Draw the pictures that pages show, of these methods or of all."""
    plt.switch_backend("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    pages = "".join(page.read_text(encoding="utf-8") for page in FOLDER.parent.glob("*.md"))
    for method in (m for home in SUBPACKAGES for m in methods(f"consilience.{home}")):
        path = folder / f"{method.__name__.lower()}.png"
        if f"(img/{path.name})" in pages and (not names or method.__name__ in names):
            save(draw(method), path)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:], FOLDER)
