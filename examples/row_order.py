"""The trap of row order: a consensus that reads the order of the file, and methods that cannot.

A tensor of two n x n tables, how often two instances share a base cluster and which pairs always do, is made
low rank by shrinking singular values after a Fourier transform along the instances. In a file that is sorted
by class, neighbours in the file belong together, and the transform sees it. Shuffle the rows, and it is gone.

    python examples/row_order.py                            a few hundred handwritten digits
    python examples/row_order.py --pool pool_LWEA_Semeion   a pool of base clusterings, where it is there

This is a plain version of the idea, written from its mathematics; it is nobody's program.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from consilience import DAL, LWEA, datasets, fuse
from consilience.generate import base_partitions
from consilience.metrics import normalized_mutual_info_score

N_ROWS, N_BASES = 400, 20
Method = Callable[[np.ndarray, int], np.ndarray]


def shrink(tensor: np.ndarray, amount: float) -> np.ndarray:
    """Every singular value of an n x 2 x n tensor made smaller (t-SVD), transformed along the instances."""
    slices = np.moveaxis(np.fft.fft(tensor, axis=2), 2, 0)  # one n x 2 matrix for every frequency
    squares, vectors = np.linalg.eigh(np.conj(slices.transpose(0, 2, 1)) @ slices)
    values = np.sqrt(np.maximum(squares, 1e-12))
    kept = np.maximum(values - amount, 0.0) / values
    slices = slices @ (vectors * kept[:, None, :]) @ np.conj(vectors.transpose(0, 2, 1))
    return np.asarray(np.fft.ifft(np.moveaxis(slices, 0, 2), axis=2).real)


def tensor_consensus(base: np.ndarray, k: int, *, weight: float = 0.01, n_steps: int = 60) -> np.ndarray:
    r"""Low-rank tensor, then average linkage.

    .. math:: \min_P \|P\|_* + \tfrac{w}{2} \|P_2 - A\|^2, \quad P_1 = A \text{ where } A = 1

    A -> how often two instances share a base cluster; P_1, P_2 -> the tables of the tensor, symmetric, in
    0..1; w -> `weight`. Solved by alternating directions with a growing penalty.
    """
    together = (base[:, None, :] == base[None, :, :]).mean(axis=2)
    sure = together == 1.0
    found = np.stack([np.where(sure, together, 0.0), together], axis=1)
    dual, penalty = np.zeros_like(found), 1e-3
    for _ in range(n_steps):
        low_rank = shrink(found + dual / penalty, 1.0 / penalty)
        first = low_rank[:, 0] - dual[:, 0] / penalty
        second = (weight * together + penalty * low_rank[:, 1] - dual[:, 1]) / (weight + penalty)
        first, second = (np.clip((table + table.T) / 2.0, 0.0, 1.0) for table in (first, second))
        first[sure] = together[sure]
        found = np.stack([first, second], axis=1)
        dual, penalty = dual + penalty * (found - low_rank), 1.3 * penalty
    linkage = AgglomerativeClustering(k, metric="precomputed", linkage="average")
    return np.asarray(linkage.fit_predict(1.0 - found[:, 0]))


METHODS: dict[str, Method] = {
    "low-rank tensor": tensor_consensus,
    "low-rank tensor, weight .002": lambda base, k: tensor_consensus(base, k, weight=0.002),
    "low-rank tensor, weight .05": lambda base, k: tensor_consensus(base, k, weight=0.05),
    "LWEA": lambda base, k: LWEA(k).fit_predict(base),
    "DAL": lambda base, k: DAL(k, random_state=0).fit_predict(base),
    "fuse": lambda base, k: fuse(base, k, random_state=0).labels,
}


def table(pool: str | None, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes and base labels, sorted by class as files often are."""
    rng = np.random.default_rng(0)
    data = datasets.load_digits() if pool is None else datasets.load(pool)
    rows = rng.permutation(len(data.y))[:n_rows]
    rows = rows[np.argsort(data.y[rows], kind="stable")]
    if pool is not None:
        return data.y[rows], data.labels[np.ix_(rows, rng.permutation(data.labels.shape[1])[:N_BASES])]
    most = int(np.sqrt(len(rows)))
    return data.y[rows], base_partitions(data.X[rows], (2, most), N_BASES, random_state=0)


def compare(
    y: np.ndarray, base: np.ndarray, methods: dict[str, Method]
) -> dict[str, tuple[float, float, float]]:
    """NMI sorted by class, NMI of the same rows shuffled, and ARI between the two answers."""
    order = np.random.default_rng(1).permutation(len(y))
    k, found = len(np.unique(y)), {}
    for name, method in methods.items():
        in_order, shuffled = method(base, k), np.empty(len(y), dtype=int)
        shuffled[order] = method(base[order], k)
        quality = (normalized_mutual_info_score(y, x, normalization="max") for x in (in_order, shuffled))
        found[name] = (*quality, float(adjusted_rand_score(in_order, shuffled)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pool", help="a file for consilience.datasets.load")
    parser.add_argument("--rows", type=int, default=N_ROWS)
    given = parser.parse_args()
    y, base = table(given.pool, given.rows)
    print(f"{'NMI (max)':30s}{'sorted':>10s}{'shuffled':>10s}{'the same partition':>20s}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (in_order, shuffled, same) in compare(y, base, METHODS).items():
            print(f"{name:30s}{in_order:10.3f}{shuffled:10.3f}{'yes' if same == 1.0 else 'no':>20s}")


if __name__ == "__main__":
    main()
