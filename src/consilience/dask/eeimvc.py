"""EE-IMVC on ready base embeddings in row blocks: one pass, however many sweeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from consilience import multiview
from consilience._errors import InputError
from consilience._sklearn import fit_context, random_source
from consilience.core.stiefel import polar_factor
from consilience.dask.engine import engine_for
from consilience.dask.views import cluster_blocks, lazy_rows, load_views, nearest_center, read_views
from consilience.multiview.kernels import nearest
from consilience.multiview.sweeps import settled

# Gram eigenvalues below this share of the largest carry rounding errors only.
_NOTHING = 1e-12


class Pattern(NamedTuple):
    """Rows that are present in the same views: how many, and the moments of their stacked embeddings."""

    n: int
    moments: np.ndarray


class Found(NamedTuple):
    """What `eeimvc_moments` learned; maps take stacked base embeddings to rows of the consensus."""

    maps: dict[tuple[bool, ...], np.ndarray]  # per pattern
    weights: np.ndarray
    rotations: list[np.ndarray]
    projections: list[np.ndarray]  # of the views of a new row
    objective: np.ndarray
    n_iter: int
    converged: bool


def patterns_of(piece: Any, number: int, names: tuple[str, ...], k: int) -> Any:
    """Rows of the block, and its moments by pattern of present views."""
    block = load_views(piece, number, names)
    for name, array in zip(names, block.arrays, strict=True):
        if array.shape[1] != k:
            raise InputError(
                f"block {number}: view {name!r} has {array.shape[1]} columns, but an embedding has one per "
                f"cluster, here {k}.",
                hint="give that many leading eigenvectors of each view.",
            )
    stacked = np.hstack(block.arrays)
    kinds, inverse = np.unique(block.observed, axis=0, return_inverse=True)
    found = {}
    for g, kind in enumerate(kinds):
        z = stacked[inverse.ravel() == g]
        found[tuple(kind.tolist())] = Pattern(len(z), z.T @ z)
    return (len(stacked),), found


def merge_patterns(parts: Sequence[Any]) -> Any:
    """Several blocks as one."""
    sizes: tuple[int, ...] = ()
    total: dict[tuple[bool, ...], Pattern] = {}
    for more, found in parts:
        sizes += more
        for kind, pattern in found.items():
            old = total.get(kind)
            total[kind] = (
                pattern if old is None else Pattern(old.n + pattern.n, old.moments + pattern.moments)
            )
    return sizes, dict(sorted(total.items()))


def eeimvc_moments(
    patterns: dict[tuple[bool, ...], Pattern],
    k: int,
    *,
    regularization: float,
    with_prior: bool,
    init: str,
    max_iter: int,
    tol: float,
    progress: Callable[[int, float], None] | None = None,
) -> Found:
    r"""The sweeps of :func:`consilience.multiview.eeimvc.eeimvc` on moments alone.

    .. math:: \max \; tr(H^T \sum_p \beta_p H_p W_p) + \lambda \, tr(H^T H_0)

    A row of H is a linear function of the row z of all base embeddings side by side, and so is a filled-in
    row of :math:`H_p`: by a matrix that depends only on which views the row is present in. Every product
    over rows is then a product with the moments :math:`\sum z z^T` of a pattern.

    Symbols: z -> patterns; H -> maps; beta -> weights; W_p -> rotations[p]; lambda -> regularization.
    Cost: patterns x (views x k)^3 a sweep, whatever the number of rows.
    """
    kinds = list(patterns)
    m = len(kinds[0])
    lam = regularization if with_prior else 0.0
    s = [patterns[kind].moments for kind in kinds]
    pick = [np.eye(m * k)[:, p * k : (p + 1) * k] for p in range(m)]
    hs = [[pick[p] if kind[p] else np.zeros((m * k, k)) for p in range(m)] for kind in kinds]
    prior = _common_directions(sum(s[1:], start=s[0]), k)
    beta = np.full(m, 1.0 / np.sqrt(m))
    ws = [np.eye(k)] * m
    if init == "aligned":
        ws = [polar_factor(_product(s, [h[p] for h in hs], [prior] * len(s))) for p in range(m)]

    def combine() -> list[np.ndarray]:
        return [sum((h[p] @ (beta[p] * ws[p]) for p in range(m)), start=lam * prior) for h in hs]

    t = combine()
    objective: list[float] = []
    converged = False
    for iteration in range(max_iter):
        maps = _orthonormal(s, t)  # Eq. (7)
        ws = [polar_factor(_product(s, [h[p] for h in hs], maps)) for p in range(m)]  # Eq. (8)
        for p in range(m):
            absent = [g for g, kind in enumerate(kinds) if not kind[p]]
            if absent:  # Eq. (9)
                filled = _orthonormal([s[g] for g in absent], [maps[g] @ ws[p].T for g in absent])
                for g, new in zip(absent, filled, strict=True):
                    hs[g][p] = new
        v = np.array([float(np.trace(_product(s, maps, [h[p] for h in hs]) @ ws[p])) for p in range(m)])
        v = np.maximum(v, 0.0)  # Eq. (10)
        norm = np.linalg.norm(v)
        beta = v / norm if norm > 0 else np.full(m, 1.0 / np.sqrt(m))
        t = combine()
        objective.append(float(np.trace(_product(s, maps, t))))
        if progress:
            progress(iteration + 1, objective[-1])
        if settled(objective, tol):
            converged = True
            break
    level = _leveling(_product(s, t, t))
    projections = [(beta[p] * ws[p] + lam * prior[p * k : (p + 1) * k]) @ level for p in range(m)]
    return Found(
        dict(zip(kinds, maps, strict=True)),
        beta,
        ws,
        projections,
        np.array(objective),
        iteration + 1,
        converged,
    )


def _product(s: list[np.ndarray], left: list[np.ndarray], right: list[np.ndarray]) -> np.ndarray:
    """``L^T R`` for two tables whose rows are those of z times a matrix per pattern."""
    return np.sum([a.T @ moments @ b for moments, a, b in zip(s, left, right, strict=True)], axis=0)


def _orthonormal(s: list[np.ndarray], maps: list[np.ndarray]) -> list[np.ndarray]:
    """The polar factor; twice, since one pass through a Gram matrix loses half of the digits."""
    for _ in range(2):
        factor = _leveling(_product(s, maps, maps))
        maps = [a @ factor for a in maps]
    return maps


def _leveling(gram: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(gram)
    floor = _NOTHING * max(float(values[-1]), np.finfo(float).tiny)
    return (vectors * np.where(values > floor, 1.0 / np.sqrt(np.maximum(values, floor)), 0.0)) @ vectors.T


def _common_directions(moments: np.ndarray, k: int) -> np.ndarray:
    """The map to the leading left singular vectors of all base embeddings side by side."""
    values, vectors = np.linalg.eigh(moments)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    return vectors / np.sqrt(np.maximum(values, _NOTHING * max(float(values[0]), np.finfo(float).tiny)))


def embed_rows(piece: Any, number: int, given: Any) -> np.ndarray:
    """Rows of H of a block."""
    names, maps = given
    block = load_views(piece, number, names)
    stacked = np.hstack(block.arrays)
    kinds, inverse = np.unique(block.observed, axis=0, return_inverse=True)
    out = np.empty((len(stacked), next(iter(maps.values())).shape[1]))
    for g, kind in enumerate(kinds):
        rows = np.flatnonzero(inverse.ravel() == g)
        out[rows] = stacked[rows] @ maps[tuple(kind.tolist())]
    return out


class EEIMVC(multiview.EEIMVC):
    """EE-IMVC on ready base embeddings in row blocks: a dask array per view, or a list of blocks.

    One pass over the blocks gathers moments for every pattern of present views; all sweeps run on these, so
    their cost does not depend on the number of rows. A second pass embeds the rows for k-means. The answer is
    that of :class:`consilience.EEIMVC` with ``kernel="embedding"``.

    Parameters
    ----------
    n_clusters, regularization, init, max_iter, tol, n_init, verbose, random_state
        See :class:`consilience.EEIMVC`.
    prior : {"average"} or None, default="average"
        What the consensus is held to; see there. Other priors need all rows at once.
    kernel : {"embedding"}, default="embedding"
        The views are base embeddings with `n_clusters` columns.

    Attributes
    ----------
    labels_, embedding_ : dask array or an iterable of blocks
        As in :class:`consilience.EEIMVC`, aligned with the input and computed when asked for.
    weights_, rotations_, objective_, n_iter_, n_clusters_, view_names_
        As in :class:`consilience.EEIMVC`.

    Notes
    -----
    k-means runs on all rows up to ten million, and on every so many-th row of more.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        regularization: float = 1.0,
        prior: Any = "average",
        kernel: Any = "embedding",
        preprocessing: str = "observed",
        init: str = "aligned",
        max_iter: int = 100,
        tol: float = 1e-4,
        n_init: int = 10,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_clusters,
            regularization=regularization,
            prior=prior,
            kernel=kernel,
            preprocessing=preprocessing,
            init=init,
            max_iter=max_iter,
            tol=tol,
            n_init=n_init,
            verbose=verbose,
            random_state=random_state,
        )

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> EEIMVC:
        """Cluster the instances.

        Parameters
        ----------
        X : list or dict of dask arrays, or list of blocks
            A base embedding per view; an absent row is NaN. A block is a list or dict of arrays.
        y : ignored
            There for scikit-learn's interface.
        """
        if self.kernel != "embedding" or not (self.prior is None or self.prior == "average"):
            raise InputError(
                "EEIMVC on blocks takes kernel='embedding' and prior='average' or None. Got "
                f"{self.kernel!r} and {self.prior!r} instead.",
                hint="embed every view first, or use consilience.EEIMVC in memory.",
            )
        blocks = read_views(X)
        engine = engine_for("views" if blocks.is_dask else "list")
        k = int(self.n_clusters)
        rng = random_source(self.random_state)
        with threadpool_limits(limits=1):  # the same answer whatever the threads
            sizes, patterns = engine.reduce(
                "moments", patterns_of, merge_patterns, blocks.pieces, blocks.names, k
            )
            found = eeimvc_moments(
                patterns,
                k,
                regularization=float(self.regularization),
                with_prior=self.prior is not None,
                init=self.init,
                max_iter=self.max_iter,
                tol=float(self.tol),
                progress=self._progress if self.verbose else None,
            )
            given = (blocks.names, found.maps)
            clusters = cluster_blocks(
                engine, blocks.pieces, embed_rows, given, sum(sizes), k, self.n_init, rng
            )
        self._check_converged(found.converged, self.max_iter)
        self.view_names_ = blocks.names
        self.n_features_per_view_ = (k,) * len(blocks.names)
        self.n_features_in_ = k * len(blocks.names)
        self._centers = clusters.centers[self._answer(clusters.labels)]
        self._projections = found.projections
        self.weights_, self.rotations_ = found.weights, found.rotations
        self.objective_, self.n_iter_ = found.objective, found.n_iter
        self.embedding_ = lazy_rows(engine, blocks, sizes, embed_rows, (given,), float, k)
        self.labels_ = lazy_rows(
            engine, blocks, sizes, nearest_center, (embed_rows, given, self._centers), np.int64
        )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Clusters of new instances, in memory, from whatever views they have.

        Parameters
        ----------
        X : list or dict of arrays
            Base embeddings of the new instances, one per view; an absent row is NaN.
        """
        block = load_views(read_views([X]).pieces[0], 0, self.view_names_)
        out = sum(array @ part for array, part in zip(block.arrays, self._projections, strict=True))
        return nearest(np.asarray(out), self._centers)
