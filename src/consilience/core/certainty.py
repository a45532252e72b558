"""How far the other base clusterings keep a base cluster together."""

import numpy as np

from consilience.core.blocks import run_blocks
from consilience.core.canonical import Rows
from consilience.core.compiled import compiled
from consilience.core.tables import cluster_sizes, contingency

# Rows compared with all rows in one piece of work.
_ROWS = 64


def certainty(rows: Rows, theta: float) -> np.ndarray:
    r"""Entropy-based certainty of every base cluster, in (0, 1]: 1 where no other base splits it.

    .. math:: q_c = \exp(-h_c / \theta), \qquad h_c = \operatorname{mean}_j H_j(c)

    :math:`H_j(c)` is the entropy, in bits, of the labels that base j gives to the members of c it saw. The
    mean is over the bases that saw a member, the own base included, which never splits c. Where nothing is
    missing this is the ensemble-driven cluster index (ECI) of Huang, Wang and Lai.

    Symbols: q -> result, one entry per cluster of all bases in the order of `rows.offsets`; theta -> theta.
    Cost: the table of all pairs of base clusters.
    """
    offsets = rows.offsets
    table = contingency(rows.codes, offsets, rows.weights)
    starts = offsets[:-1]
    seen = np.add.reduceat(table, starts, axis=1)  # members of each cluster that each base saw
    share = table / np.repeat(np.maximum(seen, 1.0), np.diff(offsets), axis=1)
    terms = share * np.log2(np.where(share > 0.0, share, 1.0))
    entropy = -rows.weigh_clusters(terms.T).T.sum(axis=1)
    mean = entropy / np.where((seen > 0.0).any(axis=1), rows.weigh_bases(seen > 0.0), 1.0)
    # Never zero, whatever theta: callers divide by sums of certainties.
    return np.exp(-np.minimum(mean / theta, 200.0))


def certain_coassociation(
    rows: Rows, certainties: np.ndarray | None = None, *, diagonal: float | None = 1.0
) -> np.ndarray:
    r"""Share of agreement of two rows, each shared cluster counting by its certainty, one if None; dense.

    .. math:: S_{pr} = a \, \frac{\sum_i q_{c_i(p)} [c_i(p) = c_i(r)] + \mu}{m_{pr} + 1} + b

    :math:`m_{pr}` of the m bases saw both rows. One more base that agrees as much as the average pair does,
    :math:`\mu`, takes part in every share: without it, two rows that were seen together once and agreed
    would be as alike as two rows on which all bases agree, and two rows never seen together would have no
    share at all. The constants a and b, which no average linkage notices, make S the locally weighted
    co-association (LWCA) where nothing is missing. `diagonal` None leaves there what two instances of
    the same row have in common.

    Symbols: c_i(p) -> rows.codes[p, i] (-1 = missing); q -> certainties, in the order of `rows.offsets`.
    Cost: rows^2 x bases comparisons.
    """
    codes, offsets = np.ascontiguousarray(rows.codes), rows.offsets
    n_rows, n_bases = codes.shape
    sizes = cluster_sizes(codes, offsets, rows.weights)
    certainties = np.ones(len(sizes)) if certainties is None else certainties
    seen = np.add.reduceat(sizes, offsets[:-1]) ** 2
    weighed = rows.weigh_clusters(certainties)
    average = weighed @ sizes**2 / rows.weigh_bases(seen[None])[0]
    values = np.where(codes >= 0, weighed[np.maximum(codes, 0) + offsets[:-1]], 0.0)
    out = np.empty((n_rows, n_rows))
    if rows.base_weights is not None:
        w, total = rows.base_weights, float(rows.base_weights.sum())
        run_blocks(
            lambda part: _agree_weighted(codes, values, w, total, average, part.start, part.stop, out),
            n_rows,
            block_rows=_ROWS,
        )
        if diagonal is not None:
            np.fill_diagonal(out, diagonal)
        return out
    # By how often a pair was seen together, 0..m.
    times = np.arange(n_bases + 1) + 1.0
    scale = (n_bases + 1.0) / (n_bases * times)
    shift = average * (scale - scale[-1])
    run_blocks(
        lambda part: _agree(codes, values, scale, shift, part.start, part.stop, out), n_rows, block_rows=_ROWS
    )
    if diagonal is not None:
        np.fill_diagonal(out, diagonal)
    return out


# Sums in a fixed order, so that the matrix is symmetric to the last bit.
@compiled(reads=4)
def _agree(codes, values, scale, shift, start, stop, out):  # type: ignore[no-untyped-def]
    n_rows, n_bases = codes.shape
    for p in range(start, stop):
        for r in range(n_rows):
            total, together = 0.0, 0
            for i in range(n_bases):
                if codes[p, i] >= 0 and codes[r, i] >= 0:
                    together += 1
                    if codes[p, i] == codes[r, i]:
                        total += values[p, i]
            out[p, r] = scale[together] * total + shift[together]


@compiled(reads=3)
def _agree_weighted(codes, values, weights, most, average, start, stop, out):  # type: ignore[no-untyped-def]
    n_rows, n_bases = codes.shape
    last = 1.0 / most
    for p in range(start, stop):
        for r in range(n_rows):
            total, together = 0.0, 0.0
            for i in range(n_bases):
                if codes[p, i] >= 0 and codes[r, i] >= 0:
                    together += weights[i]
                    if codes[p, i] == codes[r, i]:
                        total += values[p, i]
            scale = (most + 1.0) / (most * (together + 1.0))
            out[p, r] = scale * total + average * (scale - last)
