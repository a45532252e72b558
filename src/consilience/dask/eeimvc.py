"""EE-IMVC on ready base embeddings in row blocks: one pass, however many sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience import multiview
from consilience._support.errors import InputError
from consilience.core.stiefel import polar_factor
from consilience.core.sweeps import Progress, Sweeps, settled
from consilience.dask.consensus import with_parameters
from consilience.dask.engine import add
from consilience.dask.views import ViewBlocks, ViewBlocksMixin, ViewRows
from consilience.multiview.late import common_map, inverse_root, unit_weights

Kind = tuple[bool, ...]  # the views that a row is present in


class Maps(NamedTuple):
    """How stacked base embeddings become rows of the consensus."""

    of_kind: dict[Kind, np.ndarray]

    def __call__(self, block: ViewRows) -> np.ndarray:
        """Rows of H of a block."""
        out = np.empty((len(block.observed), next(iter(self.of_kind.values())).shape[1]))
        for kind, rows, stacked in _by_kind(block):
            out[rows] = stacked @ self.of_kind[kind]
        return out


class Projections(NamedTuple):
    """How base embeddings of new rows become rows of the consensus."""

    of_view: list[np.ndarray]

    def __call__(self, block: ViewRows) -> np.ndarray:
        """Rows of H of new rows."""
        return np.asarray(sum(a @ part for a, part in zip(block.arrays, self.of_view, strict=True)))


class Found(NamedTuple):
    """What EE-IMVC learned from blocks."""

    sizes: tuple[int, ...]
    n_features: tuple[int, ...]
    width: int
    embed: Maps
    extend: Projections
    weights: np.ndarray
    rotations: list[np.ndarray]
    objective: np.ndarray
    n_iter: int
    converged: bool


def _by_kind(block: ViewRows) -> Iterator[tuple[Kind, np.ndarray, np.ndarray]]:
    """The kinds of rows, the rows of each, and their base embeddings side by side."""
    stacked = np.hstack(block.arrays)
    kinds, inverse = np.unique(block.observed, axis=0, return_inverse=True)
    for g, kind in enumerate(kinds):
        rows = np.flatnonzero(inverse.ravel() == g)
        yield tuple(kind.tolist()), rows, stacked[rows]


def moments_of(block: ViewRows, k: int) -> tuple[tuple[int, ...], dict[Kind, np.ndarray]]:
    """Rows of the block, and the moments of its stacked embeddings by kind of row."""
    for name, array in zip(block.names, block.arrays, strict=True):
        if array.shape[1] != k:
            raise InputError(
                f"block {block.number}: view {name!r} has {array.shape[1]} columns, but an embedding has one "
                f"per cluster, here {k}.",
                hint="give that many leading eigenvectors of each view.",
            )
    return (len(block.observed),), {kind: z.T @ z for kind, _, z in _by_kind(block)}


def merge_moments(parts: Sequence[Any]) -> Any:
    """Several blocks as one."""
    kinds = sorted({kind for _, found in parts for kind in found})
    sizes = sum((sizes for sizes, _ in parts), ())
    return sizes, {kind: add([found[kind] for _, found in parts if kind in found]) for kind in kinds}


def eeimvc_moments(
    moments: dict[Kind, np.ndarray],
    k: int,
    *,
    regularization: float,
    init: str,
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
) -> tuple[Any, ...]:
    r"""The sweeps of :func:`consilience.multiview.eeimvc.eeimvc` on moments alone.

    .. math:: \max \; tr(H^T \sum_p \beta_p H_p W_p) + \lambda \, tr(H^T H_0)

    A row of H is a linear function of the row z of all base embeddings side by side, and so is a filled-in
    row of :math:`H_p`: by a matrix that depends only on which views the row is present in. Every product
    over rows is then a product with the moments :math:`\sum z z^T` of a kind of rows.

    Symbols: z -> moments; H -> maps; beta -> weights; W_p -> rotations[p]; lambda -> regularization.
    Returns the fields of `Found` from `embed` on.
    Cost: kinds x (views x k)^3 a sweep, whatever the number of rows.
    """
    kinds, s = list(moments), list(moments.values())
    m = len(kinds[0])
    pick = np.split(np.eye(m * k), m, axis=1)
    hs = [
        [part if there else np.zeros_like(part) for part, there in zip(pick, kind, strict=True)]
        for kind in kinds
    ]
    prior = common_map(add(s), k)
    beta = np.full(m, 1.0 / np.sqrt(m))
    ws = [np.eye(k)] * m

    def align(maps: list[np.ndarray]) -> list[np.ndarray]:
        return [polar_factor(_product(s, [h[p] for h in hs], maps)) for p in range(m)]

    def combine() -> list[np.ndarray]:
        return [sum((h[p] @ (beta[p] * ws[p]) for p in range(m)), start=regularization * prior) for h in hs]

    if init == "aligned":
        ws = align([prior] * len(s))
    t = combine()
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        maps = _orthonormal(s, t)  # Eq. (7)
        ws = align(maps)  # Eq. (8)
        for p in range(m):
            absent = [g for g, kind in enumerate(kinds) if not kind[p]]
            if absent:  # Eq. (9)
                filled = _orthonormal([s[g] for g in absent], [maps[g] @ ws[p].T for g in absent])
                for g, new in zip(absent, filled, strict=True):
                    hs[g][p] = new
        # Eq. (10)
        beta = unit_weights([np.trace(_product(s, maps, [h[p] for h in hs]) @ ws[p]) for p in range(m)])
        t = combine()
        sweeps.add(float(np.trace(_product(s, maps, t))))
        sweeps.converged = settled(sweeps.objective, tol)
    white = inverse_root(_product(s, t, t))
    of_prior = np.split(regularization * prior, m)
    projections = [(b * w + part) @ white for b, w, part in zip(beta, ws, of_prior, strict=True)]
    return Maps(dict(zip(kinds, maps, strict=True))), Projections(projections), beta, ws, *sweeps.outcome


def _product(s: list[np.ndarray], left: list[np.ndarray], right: list[np.ndarray]) -> np.ndarray:
    """``L^T R`` for two tables whose rows are those of z times a matrix per kind of row."""
    return np.sum([a.T @ moments @ b for moments, a, b in zip(s, left, right, strict=True)], axis=0)


def _orthonormal(s: list[np.ndarray], maps: list[np.ndarray]) -> list[np.ndarray]:
    """The polar factor; twice, since one pass through a Gram matrix loses half of the digits."""
    for _ in range(2):
        factor = inverse_root(_product(s, maps, maps))
        maps = [a @ factor for a in maps]
    return maps


class EEIMVC(ViewBlocksMixin, with_parameters(multiview.EEIMVC, prior="average", kernel="embedding")):  # type: ignore[misc]
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
    labels_, embedding_ : dask array or BlockArray
        As in :class:`consilience.EEIMVC`, aligned with the input and computed when asked for.
    view_weights_, rotations_, objective_, n_iter_, n_clusters_, view_names_
        As in :class:`consilience.EEIMVC`.

    Notes
    -----
    k-means runs on all rows up to ten million, and on every so many-th row of more.
    """

    def _solve_blocks(self, blocks: ViewBlocks, rng: np.random.RandomState) -> Found:
        if self.kernel != "embedding" or not (self.prior is None or self.prior == "average"):
            raise InputError(
                "EEIMVC on blocks takes kernel='embedding' and prior='average' or None. Got "
                f"{self.kernel!r} and {self.prior!r} instead.",
                hint="embed every view first, or use consilience.EEIMVC in memory.",
            )
        k = int(self.n_clusters)
        sizes, moments = blocks.reduce("moments", moments_of, merge_moments, k)
        regularization = 0.0 if self.prior is None else float(self.regularization)
        found = eeimvc_moments(moments, k, regularization=regularization, init=self.init, **self._sweeping)
        return Found(sizes, (k,) * len(blocks.names), k, *found)

    def _keep(self, found: Found) -> None:
        self._check_converged(found.converged, self.max_iter)
        self.view_weights_, self.rotations_ = found.weights, found.rotations
        self.objective_, self.n_iter_ = found.objective, found.n_iter
