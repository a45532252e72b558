"""Parties that may not share rows: time, memory and bytes of three parties with a million rows each.

    python -m benchmarks.bench_federated [--rows 1e6] [--no-flower]

Three parties, each with half of its customers in common with each of the others, three columns of ten
clusters, a fifth of the labels wrong. First the steps in this process, in seconds of the processor: what
leaves (reading, keyed ids, codes), the merge, the answer. Then the same on Flower, a link and three nodes on
this machine, in seconds of the clock; where Flower is not installed that is left out.
"""

import argparse
import json
import resource
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

SAVED = Path(__file__).parent / "results" / "federated.json"
PARTIES = ("north", "east", "south")


def write(folder, n):
    """The tables and the node configs; each two parties share half of their customers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    kind = rng.integers(0, 10, 2 * n)
    (folder / "shared.key").write_text("f" * 64)
    configs = {}
    for p, party in enumerate(PARTIES):
        own = (np.arange(n) + p * n // 2) % (3 * n // 2)
        columns = {"customer": pa.array([f"customer-{i}" for i in own])}
        for j in range(3):
            labels = np.where(rng.random(n) < 0.2, rng.integers(0, 10, n), kind[own])
            columns[f"segment {j}"] = pa.array(np.array(list("abcdefghij"))[labels])
        pq.write_table(pa.table(columns), folder / f"{party}.parquet")
        configs[party] = {
            "table": str(folder / f"{party}.parquet"),
            "id": "customer",
            "key-file": str(folder / "shared.key"),
            "output": str(folder / f"{party}-answer.parquet"),
        }
    return configs


def run_steps(configs, n):
    """Seconds of the processor of each step, bytes, and the peak of this process that plays all parts."""
    from consilience.federated import merge_parts
    from consilience.federated.table import Settings

    settings = [Settings.of({"party": party, **config}) for party, config in configs.items()]
    times = [time.process_time()]
    found = [one.prepare() for one in settings]
    times.append(time.process_time())
    merged = merge_parts([one.part for one in found], 10)
    times.append(time.process_time())
    for one, prepared in zip(settings, found, strict=True):
        one.write(merged.answers[one.party], prepared.order)
    times.append(time.process_time())
    prepare, merge, answer = np.diff(times)
    back = sum(values.nbytes for values in merged.answers[PARTIES[0]])
    return {
        "task": "steps",
        "rows": n,
        "instances": len(merged.fusion.labels),
        "bytes_out": found[0].part.n_bytes,
        "bytes_back": back,
        "prepare_cpu_s": prepare / len(settings),
        "merge_cpu_s": merge,
        "answer_cpu_s": answer / len(settings),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def run_flower(configs, folder, n):
    """Seconds of the clock, from `flwr run` until every party has its answer."""
    from consilience.federated.local import LocalFederation

    with LocalFederation(folder / "flower", configs) as federation:
        start = time.perf_counter()
        federation.run(10)
        return {"task": "flower", "rows": n, "seconds": time.perf_counter() - start}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--no-flower", action="store_true")
    arguments = parser.parse_args()
    n = int(arguments.rows)
    with tempfile.TemporaryDirectory() as folder:
        configs = write(Path(folder), n)
        results = [run_steps(configs, n)]
        print(json.dumps(results[-1]), flush=True)
        if not arguments.no_flower and find_spec("flwr") is not None:
            results.append(run_flower(configs, Path(folder), n))
            print(json.dumps(results[-1]), flush=True)
    SAVED.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
