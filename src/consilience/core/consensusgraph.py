"""The sparse consensus graph: every instance and those that share most of its base clusters."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from consilience.core.blocks import run_blocks
from consilience.core.compiled import compiled

# Shares are told apart by so many levels: exactly, up to 64 base clusterings; of more, to .0002.
_LEVELS = 4096
# Distinct rows whose neighbours are looked for at a time.
_BLOCK_ROWS = 256


class Sharing(NamedTuple):
    """For every instance others that share base clusters with it; -1 and 0 where there are no more."""

    indices: np.ndarray
    shares: np.ndarray  # of agreement, among the base clusterings that saw both


def most_sharing(
    codes: np.ndarray, inverse: np.ndarray, n_neighbours: int, rng: np.random.RandomState
) -> Sharing:
    """The instances of the highest co-association with each instance; ties are tossed for.

    Instances whose labels are the same throughout are at most half of the neighbours, as long as there are
    others: with few base clusterings there are hundreds of them, and a graph of nothing else would fall apart
    into its distinct rows.

    Cost: (distinct rows)^2 x bases, and instances x neighbours. No table of pairs is made.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows, n_bases)
        Distinct rows of base labels, -1 where missing.
    inverse : ndarray of int of shape (n_instances,)
        The row of every instance.
    n_neighbours : int
        How many to look for.
    rng : RandomState
        For ties.
    """
    n = len(inverse)
    # Instances by row, shuffled within: next in line is as good as drawn.
    members = np.lexsort((rng.permutation(n), inverse)).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(inverse, minlength=len(codes)))])
    draws = rng.random_sample(n)
    found = Sharing(np.full((n, n_neighbours), -1, np.int32), np.zeros((n, n_neighbours), np.float32))
    codes = np.ascontiguousarray(codes)

    def one(block: slice) -> None:
        _most_sharing(codes, starts, members, draws, block.start, block.stop, *found)

    run_blocks(one, len(codes), block_rows=_BLOCK_ROWS)
    return found


def consensus_graph(sharing: Sharing) -> sp.csr_matrix:
    """Instances joined if either is among the neighbours of the other, by the share of agreement."""
    n, k = sharing.indices.shape
    joined = sharing.indices.ravel() >= 0
    rows = np.repeat(np.arange(n), k)[joined]
    graph = sp.csr_matrix(
        (sharing.shares.ravel()[joined], (rows, sharing.indices.ravel()[joined])), shape=(n, n)
    )
    return graph.maximum(graph.T).tocsr()


@compiled(reads=4)
def _most_sharing(codes, starts, members, draws, first, last, indices, shares):  # type: ignore[no-untyped-def]
    """`most_sharing` for the instances of the rows from `first` to `last`."""
    n_rows, n_bases = codes.shape
    k = indices.shape[1]
    share = np.zeros(n_rows)
    level = np.zeros(n_rows, dtype=np.int64)
    in_level = np.zeros(_LEVELS + 1, dtype=np.int64)  # instances
    whole = np.zeros(k, dtype=np.int64)
    tied = np.zeros(n_rows, dtype=np.int64)
    tied_end = np.zeros(n_rows, dtype=np.int64)
    for i in range(first, last):
        in_level[:] = 0
        others = 0
        for j in range(n_rows):
            both, agree = 0, 0
            for b in range(n_bases):
                if codes[i, b] >= 0 and codes[j, b] >= 0:
                    both += 1
                    agree += codes[i, b] == codes[j, b]
            share[j] = agree / both if agree > 0 and i != j else 0.0
            level[j] = int(np.ceil(share[j] * _LEVELS))
            if level[j] > 0:
                in_level[level[j]] += starts[j + 1] - starts[j]
                others += starts[j + 1] - starts[j]
        alike = starts[i + 1] - starts[i]
        wanted = min(others, k - min(alike - 1, (k + 1) // 2))
        own = min(alike - 1, k - wanted)
        # All others above the last level that is needed, and some of that one.
        lowest, above = _LEVELS + 1, 0
        while above < wanted:
            lowest -= 1
            if above + in_level[lowest] >= wanted:
                break
            above += in_level[lowest]
        n_whole, n_tied, n_in_ties = 0, 0, 0
        for j in range(n_rows):
            if level[j] > lowest:
                whole[n_whole] = j
                n_whole += 1
            elif level[j] == lowest:
                n_in_ties += starts[j + 1] - starts[j]
                tied[n_tied], tied_end[n_tied] = j, n_in_ties
                n_tied += 1
        for q in range(alike):
            p = members[starts[i] + q]
            place = 0
            for s in range(1, own + 1):
                indices[p, place], shares[p, place] = members[starts[i] + (q + s) % alike], 1.0
                place += 1
            for t in range(n_whole):
                j = whole[t]
                for c in range(starts[j], starts[j + 1]):
                    indices[p, place], shares[p, place] = members[c], share[j]
                    place += 1
            drawn = wanted - above
            begin = int(draws[p] * n_in_ties)
            for s in range(drawn):  # evenly over the ties, from a place of its own
                where = (begin + s * n_in_ties // drawn) % n_in_ties
                t = np.searchsorted(tied_end[:n_tied], where, side="right")
                j = tied[t]
                cell = members[starts[j + 1] - (tied_end[t] - where)]
                indices[p, place], shares[p, place] = cell, share[j]
                place += 1
