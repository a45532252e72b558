"""What it costs to hold labels of few members back: quality by the smallest cluster that may leave.

    python -m benchmarks.quality_federated [--draws 3]

Ten base clusterings drawn from a published pool belong to five parties, two each; a party has met half of the
instances. Their numbers of clusters are those of the pools, 2 to about the root of the instances. Quality is
the normalised mutual information (by the larger entropy) with the true classes, for their true number, of all
instances that some party has met: those of which no label leaves any party count as one cluster.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np

from consilience import Partitions
from consilience.federated import merge_parts, prepare
from consilience.metrics import normalized_mutual_info_score

SAVED = Path(__file__).parent / "results" / "federated_quality.json"
POOLS = ("ECCMS_Ecoli", "LWEA_VS", "LWEA_Semeion", "LWEA_MF")
SMALLEST = (1, 5, 10, 20)
N_PARTIES, SHARE = 5, 0.5


def parts(pool, smallest, seed):
    """What the parties send, their rows, and the share of labels and of entries that they hold back."""
    rng = np.random.default_rng(seed)
    columns = rng.choice(pool.shape[1], 2 * N_PARTIES, replace=False)
    sent, rows, held = [], {}, []
    for p in range(N_PARTIES):
        seen = np.sort(rng.choice(len(pool), round(SHARE * len(pool)), replace=False))
        table = Partitions.of(pool[np.ix_(seen, columns[2 * p : 2 * p + 2])].astype(int))
        found = prepare(table, seen, f"party {p}", b"0" * 32, smallest)
        sent.append(found.part)
        rows[f"party {p}"] = seen[found.order]
        held += found.columns
    n_labels, n_entries = (sum(c.n_labels for c in held), sum(c.n_rows + c.n_rows_held_back for c in held))
    shares = sum(c.n_held_back for c in held) / n_labels, sum(c.n_rows_held_back for c in held) / n_entries
    return sent, rows, shares


def measure(name, smallest, seed):
    """One draw."""
    with np.load(Path(os.environ["CONSILIENCE_DATA"]) / f"pool_{name}.npz") as data:
        pool, y = data["pool"], data["y"]
    sent, rows, shares = parts(pool, smallest, seed)
    merged = merge_parts(sent, len(np.unique(y)), random_state=seed)
    labels = np.full(len(y), -2)
    for party, answer in merged.answers.items():
        labels[rows[party]] = answer.labels
    met = labels > -2
    return {
        "pool": name,
        "smallest": smallest,
        "draw": seed,
        "labels_held_back": shares[0],
        "entries_held_back": shares[1],
        "unassigned": float((labels[met] == -1).mean()),
        "nmi": normalized_mutual_info_score(y[met], labels[met], normalization="max"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    results = []
    for name in POOLS:
        for smallest in SMALLEST:
            results += [measure(name, smallest, seed) for seed in range(arguments.draws)]
            last = results[-arguments.draws :]
            means = {key: float(np.mean([one[key] for one in last])) for key in list(last[0])[3:]}
            print(json.dumps({"pool": name, "smallest": smallest, **means}), flush=True)
        SAVED.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
