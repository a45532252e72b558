"""Makes the files of this folder: results as the version that is installed saves them.

    python -m tests.saved.write

Run it only when the number of the format changes (``fusion.saving.VERSION``): it writes files named after
that number and refuses to touch those that are there. Older files stay as they are, for ever: every later
version must load them, which ``tests/test_saved_files.py`` checks.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from consilience import fuse, fuse_views
from consilience.results.saving import VERSION
from tests.planted import planted

HERE = Path(__file__).parent


def labels():
    """A fusion of labels that has everything a file may hold: ids, gaps, names, changes, a found number."""
    _, base = planted(60, 4, 3, noise=0.2, missing=0.2, seed=1)
    words = np.array(["red", "green", "blue", None], dtype=object)
    frame = pd.DataFrame(words[base], columns=list("abcd"))
    frame["d"] = pd.Series(base[:, 3]).where(base[:, 3] >= 0).astype("Int64")  # numbers among text
    frame.insert(0, "customer", [f"C-{i:02d}" for i in range(60)])
    frame = frame[frame.drop(columns="customer").notna().any(axis=1)]
    earlier = fuse(frame.iloc[:40], 3, method="DAL", index="customer", random_state=0)
    fusion = fuse(frame, "auto", method="DAL", index="customer", like=earlier, random_state=0)
    fusion = fusion.named_after("a")
    return fusion, {"a": ["red", "blue", None], "d": [1, 0, 2]}


def views():
    """A fusion of two views, each without some instances."""
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 8)
    tables = {name: rng.normal(4 * rng.normal(size=(3, 3))[kind]) for name in ("blood", "genes")}
    tables["blood"][:4] = np.nan
    tables["genes"][-4:] = np.nan
    fusion = fuse_views(tables, 3, n_partitions=3, random_state=0)
    return fusion, {name: table[5:9].tolist() for name, table in tables.items()}


def describe(fusion, new):
    """What must come out of the file again, as JSON."""
    arrays = isinstance(next(iter(new.values()))[0], list)
    placed = fusion.place({name: np.array(table) for name, table in new.items()} if arrays else new)
    return {
        "labels": fusion.labels.tolist(),
        "confidence": fusion.confidence.tolist(),
        "index": None if fusion.index is None else fusion.index.tolist(),
        "names": list(fusion.names),
        "method": fusion.method,
        "flows": None if fusion.changes is None else [list(flow) for flow in fusion.changes.flows],
        "found": None if fusion.cluster_count is None else fusion.cluster_count.n_clusters,
        "new": new,
        "placed": placed.labels.tolist(),
        "placed_confidence": [None if np.isnan(value) else value for value in placed.confidence.tolist()],
    }


def main():
    """Write both files, and beside each what it holds."""
    for kind, made in {"labels": labels, "views": views}.items():
        path = HERE / f"v{VERSION}-{kind}.consilience"
        if path.exists():
            raise SystemExit(f"{path.name} is there and stays as it is.")
        fusion, new = made()
        fusion.save(path)
        path.with_suffix(".json").write_text(json.dumps(describe(fusion, new)) + "\n")


if __name__ == "__main__":
    main()
