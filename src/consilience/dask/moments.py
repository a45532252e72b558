r"""Several steps of the generalised power iteration from one pass over the rows.

The iteration of :func:`consilience.core.stiefel.power_iteration` is :math:`X = u H + C`,
:math:`H = X (X^T W X)^{-1/2}`, with one number u and one weight w a row. Started at :math:`H_0`, every
:math:`X_t` is a sum of terms :math:`u^j C A_j` and :math:`u^t H_0 B` with small matrices A and B. So the
moments :math:`[H_0, C]^T diag(w u^j) [H_0, C]`, j = 0..2K, hold all that K steps need: blocks send these
small tables, the steps are taken on them, and blocks get the matrices back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.core.blocks import map_blocks, run_blocks
from consilience.core.tables import total

# Steps from one pass. Three are enough from about ten thousand instances on; more passes follow if not.
STEPS = 3
# An embedding whose Gram matrix is worse conditioned has lost a direction; it is kept from blowing up.
_FLOOR = 1e-12

Terms = dict[tuple[int, int], np.ndarray]  # (0: H_0 or 1: C, power of u) -> its matrix


class Leap(NamedTuple):
    """Where K steps lead."""

    terms: Terms
    slack: float  # see `PowerIteration`
    done: bool


def moments(h: np.ndarray, linear: np.ndarray, shift: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``[H, C]^T diag(w u^j) [H, C]`` for j = 0..2 STEPS, (2 STEPS + 1, 2c, 2c); sums over blocks add up.

    Cost: rows x (2 STEPS + 1) x (2c)^2.
    """

    def one(rows: slice) -> np.ndarray:
        both = np.hstack([h[rows], linear[rows]])
        weighted = both * w[rows, None]
        out = np.empty((2 * STEPS + 1, both.shape[1], both.shape[1]))
        for j in range(len(out)):
            np.matmul(weighted.T, both, out=out[j])
            weighted *= shift[rows, None]
        return out

    return total(map_blocks(one, len(h)))


def leap(found: np.ndarray, largest_shift: float, tol: float) -> Leap:
    """Up to STEPS steps on the moments alone, with the stopping rule of `power_iteration`."""
    c = found.shape[1] // 2
    part = (slice(0, c), slice(c, 2 * c))

    def product(p: Terms, q: Terms) -> np.ndarray:
        return sum(
            a.T @ found[i + j][part[s], part[r]] @ b for (s, i), a in p.items() for (r, j), b in q.items()
        )

    before: Terms = {(0, 0): np.eye(c)}
    x: Terms = {(0, 1): np.eye(c), (1, 0): np.eye(c)}
    for step in range(STEPS):
        values, vectors = np.linalg.eigh(product(x, x))
        smallest = float(np.sqrt(max(values[0], 0.0)))
        factor = (vectors / np.sqrt(np.maximum(values, _FLOOR * values[-1]))) @ vectors.T
        h = {term: a @ factor for term, a in x.items()}
        # Both have orthonormal columns, so their distance follows from their product.
        moved = np.sqrt(max(2.0 * c - 2.0 * float(np.trace(product(before, h))), 0.0))
        rate = largest_shift / smallest if smallest > 0 else np.inf
        done = bool(min(rate, 1.0) * moved <= tol * np.sqrt(c) or values[0] <= _FLOOR * values[-1])
        if done or step == STEPS - 1:
            break
        before = h
        x = {(kind, power + 1): a for (kind, power), a in h.items()} | {(1, 0): np.eye(c)}
    return Leap(h, smallest - largest_shift, done)


def land(terms: Terms, h: np.ndarray, linear: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """The rows of a block after a leap."""
    out = np.empty_like(h)

    def one(rows: slice) -> None:
        u = shift[rows, None]
        here = np.zeros_like(h[rows])
        for (kind, power), a in terms.items():
            here += u**power * ((linear if kind else h)[rows] @ a)
        out[rows] = here

    run_blocks(one, len(h))
    return out
