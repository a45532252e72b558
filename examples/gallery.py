"""A picture of every kind that consilience.plotting draws, from scikit-learn's 1797 handwritten digits.

Eight base clusterings see 60 % of the digits each. The page docs/gallery.md shows what comes out: the code
under every picture is here too.

    python examples/gallery.py [OUTPUT FOLDER]
"""

import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from PIL import Image

from consilience import BCE, PCE, fuse, fuse_views, plotting
from consilience.datasets import load_digits
from consilience.diagnostics import choose_n_clusters, resample_n_clusters
from consilience.generate import base_partitions


def pictures(X: np.ndarray, ks: range) -> Iterator[tuple[str, Any]]:
    """Name and axis of every picture."""
    table = base_partitions(X, 10, 8, subsample=0.6, random_state=0)
    labels = {f"branch {j + 1}": column for j, column in enumerate(table.T)}
    fusion = fuse(labels, 10, random_state=0)
    yield "consensus", plotting.plot_consensus(fusion)
    yield "consensus-bases", plotting.plot_consensus(fusion, bases=True)
    yield "dendrogram", plotting.plot_dendrogram(fusion)
    yield "flow", plotting.plot_flow(fusion, ["branch 1", "branch 2"])
    yield "membership", plotting.plot_membership(fusion)
    yield "confidence", plotting.plot_confidence(fusion)
    yield "embedding", plotting.plot_embedding(fusion, X)
    yield "embedding-confidence", plotting.plot_embedding(fusion, X, color="confidence")
    yield "bases", plotting.plot_bases(fusion)
    yield "base_agreement", plotting.plot_base_agreement(fusion)
    yield "missing", plotting.plot_missing(fusion)

    rng = np.random.default_rng(0)
    tier, said = rng.integers(0, 4, 600), {}
    words = {
        "bank A": "gold silver basic new",
        "bank B": "rich rich poor poor",
        "bank C": "top high low starter",
    }
    for bank, names in words.items():  # each errs in a tenth, and knows 70 %
        seen = np.where(rng.random(600) < 0.1, rng.integers(0, 4, 600), tier)
        said[bank] = np.where(rng.random(600) < 0.7, np.array(names.split(), dtype=object)[seen], None)
    yield "rosetta", plotting.plot_rosetta(fuse(said, 4, unobserved="noise", random_state=0))

    stable = fuse(labels, 10, method="LWGP", random_state=0).stability(n_resamples=10)
    yield "stability", plotting.plot_stability(stable)

    yield "levels", plotting.plot_levels(fusion.levels(k_max=12))

    frame = pd.DataFrame(labels, index=[f"digit {i}" for i in range(len(X))])
    march = fuse(frame[: 4 * len(X) // 5], 8, random_state=0)
    april = fuse(frame[len(X) // 10 :], 10, like=march, random_state=0)
    yield "flow-months", plotting.plot_flow(april, earlier=march)

    image = X.reshape(-1, 8, 8)
    halves = {"left": image[:, :, :4], "right": image[:, :, 4:], "upper": image[:, :4], "lower": image[:, 4:]}
    views = {name: half.reshape(len(X), -1) for name, half in halves.items()}
    yield "views", plotting.plot_views(fuse_views(views, 10, random_state=0))

    yield "count", plotting.plot_count(choose_n_clusters(fusion.partitions, random_state=0))
    fusions = [fuse(labels, k, method="LWGP", random_state=0) for k in ks]
    yield "tracking", plotting.plot_tracking(fusions)
    resampled = resample_n_clusters(X, ks, n_resamples=20, random_state=0)
    yield "cdf", plotting.plot_cdf(resampled)
    yield "delta_area", plotting.plot_delta_area(resampled)
    yield "pac", plotting.plot_pac(resampled)

    models = [method(n_clusters=10, random_state=0).fit(labels) for method in (PCE, BCE)]
    yield "convergence", plotting.plot_convergence(models)


def save(ax: Any, path: Path) -> None:
    """A picture of 256 colours: a third of the bytes, and no difference to see."""
    drawn = BytesIO()
    ax.figure.savefig(drawn, dpi=90)
    plt.close(ax.figure)
    # By coverage: the usual method would merge the colours of small clusters.
    few = Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def main(folder: Path, X: np.ndarray, ks: range) -> None:
    """Draw all pictures into a folder."""
    plt.switch_backend("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    for name, ax in pictures(X, ks):
        path = folder / f"{name}.png"
        save(ax, path)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "gallery"), load_digits().X, range(6, 13))
