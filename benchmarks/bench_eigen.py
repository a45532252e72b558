"""Why leading eigenpairs come from a solver of our own: ARPACK beside it, in one run on one thread.

    python -m benchmarks.bench_eigen

Columns: processor seconds, products with a vector, by how much the k eigenvalues add up to less than ours
(copies of a repeated one that were missed), and in how many repeats from the same start the vectors differ.
"""

import inspect
import time

import numpy as np
import scipy
import scipy.sparse as sp
from scipy.sparse.linalg import (
    LinearOperator,
    aslinearoperator,
    eigsh,  # noqa: TID251
)
from threadpoolctl import threadpool_limits

from benchmarks.bench_pce import show
from consilience.core.eigen import leading_eigenpairs
from consilience.core.graphs import neighbour_graph
from consilience.core.tables import indicator

TOL = 1e-10


def normalised(graph):
    root = sp.diags_array(1.0 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
    return (root @ graph @ root).tocsr()


def votes(codes):
    """The products of base clusters with each other, as an operator."""
    b = indicator(codes, np.concatenate([[0], np.cumsum(codes.max(axis=0) + 1)])).tocsr()
    return aslinearoperator(b.T.tocsr()) @ aslinearoperator(b)


def problems():
    rng = np.random.default_rng(0)
    for n in (2_000, 20_000):
        centers = 4.0 * rng.standard_normal((10, 5))
        x = centers[np.arange(n) % 10] + rng.standard_normal((n, 5))
        graph = normalised(neighbour_graph(x, 10, 0))
        for k in (3, 10):
            yield f"neighbours, {n} rows, k = {k}", graph, k
    yield (
        "neighbours in one cloud, 20000 rows, k = 5",
        normalised(neighbour_graph(rng.standard_normal((20_000, 2)), 10, 0)),
        5,
    )
    truth = rng.integers(0, 10, 20_000)
    codes = truth[:, None] * 6 + rng.integers(0, 6, (20_000, 60))
    yield "3600 base clusters, k = 10", votes(codes), 10
    yield "2700 base clusters, rank 3, k = 5", votes(np.tile(np.arange(3_000)[:, None] % 3, 900)), 5
    yield "2600 instances alone, k = 4", votes(np.arange(2_600)[:, None]), 4


def counted(matrix):
    count = [0]

    def product(x):
        count[0] += x.size // len(x)
        return matrix @ x

    return LinearOperator(matrix.shape, matvec=product, matmat=product, dtype=float), count


def run(solve, matrix, k):
    operator, count = counted(matrix)
    start = time.process_time()
    values, vectors = solve(operator, k)
    seconds = time.process_time() - start
    products = count[0]
    repeats = 20 if products < 400 else 3
    differ = sum(not np.array_equal(solve(operator, k)[1], vectors) for _ in range(repeats))
    return seconds, products, values.sum(), f"{differ} of {repeats}"


def arpack(operator, k, **options):
    start = np.random.RandomState(0).standard_normal(operator.shape[0])
    return eigsh(operator, k, which="LA", v0=start, tol=TOL, **options)


def rows():
    solvers = {"ours": lambda operator, k: leading_eigenpairs(operator, k, tol=TOL), "ARPACK": arpack}
    if "rng" in inspect.signature(eigsh).parameters:
        solvers["ARPACK, seeded"] = lambda operator, k: arpack(operator, k, rng=0)
    for name, matrix, k in problems():
        ours = None
        for solver, solve in solvers.items():
            seconds, products, total, differ = run(solve, matrix, k)
            ours = total if ours is None else ours
            yield {
                "problem": name,
                "solver": solver,
                "processor s": seconds,
                "products": products,
                "short of ours": ours - total,
                "repeats that differ": differ,
            }


if __name__ == "__main__":
    with threadpool_limits(1):
        show(f"Leading eigenpairs, SciPy {scipy.__version__}", rows())
