"""The few compiled loops. Each has a plain NumPy twin in its test.

All of them work on a block of rows and release the interpreter, so that `core.blocks` can run several at
once. ``codes`` is (rows, bases) with -1 for missing; ``offsets[i]`` is where the clusters of base ``i`` begin
in a stacked table that has a row per cluster of any base.
"""

import numpy as np
from numba import njit

# Sums may be reordered for speed; infinities keep their meaning.
_compiled = njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})


@_compiled
def gather_sum(codes, offsets, table, out):  # type: ignore[no-untyped-def]
    """``out[p] = sum_i table[offsets[i] + codes[p, i]]`` over observed entries: the product of the stacked
    indicator with a table."""
    n_rows, n_bases = codes.shape
    width = table.shape[1]
    for p in range(n_rows):
        for d in range(width):
            out[p, d] = 0.0
        for i in range(n_bases):
            code = codes[p, i]
            if code >= 0:
                row = offsets[i] + code
                for d in range(width):
                    out[p, d] += table[row, d]


@_compiled
def scatter_sum(codes, offsets, weights, values, out):  # type: ignore[no-untyped-def]
    """``out[offsets[i] + codes[p, i]] += weights[p] * values[p]``: the transposed product."""
    n_rows, n_bases = codes.shape
    width = values.shape[1]
    for p in range(n_rows):
        weight = weights[p]
        for i in range(n_bases):
            code = codes[p, i]
            if code >= 0:
                row = offsets[i] + code
                for d in range(width):
                    out[row, d] += weight * values[p, d]


@_compiled
def contingency(codes, offsets, weights, out):  # type: ignore[no-untyped-def]
    """Upper triangle of ``indicator.T @ diag(weights) @ indicator``: weighted counts of cluster pairs."""
    n_rows, n_bases = codes.shape
    stacked = np.empty(n_bases, dtype=np.int64)
    for p in range(n_rows):
        weight = weights[p]
        seen = 0
        for i in range(n_bases):
            code = codes[p, i]
            if code >= 0:
                stacked[seen] = offsets[i] + code
                seen += 1
        for a in range(seen):
            row = stacked[a]
            for b in range(a, seen):
                out[row, stacked[b]] += weight


@_compiled
def impute(codes, missing, offsets, table, bias, weights, target, diversity):  # type: ignore[no-untyped-def]
    """Refill missing entries, base after base, each with the cluster that brings the row nearest its target.

    ``table`` (clusters, width) holds the stacked rotations, ``bias`` half the weighted squared norm of each
    of its rows, ``weights`` the base weights and ``target`` (rows, width) the embedding. Entries that are
    still -1 count as zero. With ``diversity`` false, the other bases are left out of the score. Returns how
    many entries changed.
    """
    n_rows, n_bases = codes.shape
    width = table.shape[1]
    rest = np.empty(width)
    changed = 0
    for p in range(n_rows):
        complete = True
        for i in range(n_bases):
            if missing[p, i]:
                complete = False
        if complete:
            continue
        for d in range(width):
            rest[d] = -target[p, d]
        if diversity:
            for j in range(n_bases):
                if codes[p, j] >= 0:
                    row = offsets[j] + codes[p, j]
                    for d in range(width):
                        rest[d] += weights[j] * table[row, d]
        for i in range(n_bases):
            if not missing[p, i]:
                continue
            lo, hi, old = offsets[i], offsets[i + 1], codes[p, i]
            if diversity and old >= 0:
                for d in range(width):
                    rest[d] -= weights[i] * table[lo + old, d]
            best, lowest = lo, np.inf
            for q in range(lo, hi):
                score = bias[q]
                for d in range(width):
                    score += rest[d] * table[q, d]
                if score < lowest:
                    best, lowest = q, score
            if best - lo != old:
                codes[p, i] = best - lo
                changed += 1
            if diversity:
                for d in range(width):
                    rest[d] += weights[i] * table[best, d]
    return changed


@_compiled
def assign(embedding, rotation_t, weights, labels):  # type: ignore[no-untyped-def]
    """``labels[p] = argmax_q <embedding[p], rotation_t[q]>``; returns how much weight changed its label, and
    the weighted sum of the maxima."""
    n_rows, width = embedding.shape
    moved, fit = 0.0, 0.0
    for p in range(n_rows):
        best, highest = 0, -np.inf
        for q in range(rotation_t.shape[0]):
            score = 0.0
            for d in range(width):
                score += embedding[p, d] * rotation_t[q, d]
            if score > highest:
                best, highest = q, score
        if labels[p] != best:
            labels[p] = best
            moved += weights[p]
        fit += weights[p] * highest
    return moved, fit


@_compiled
def complete(codes, labels, offsets, log_shares, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` where ``codes`` is missing with the cluster of highest summed log share.

    ``log_shares[a, b]`` says how much cluster ``a`` speaks for cluster ``b`` of another base; the last base
    of ``offsets`` is the consensus, whose clusters are ``labels``.
    """
    n_rows, n_bases = codes.shape
    score = np.empty(log_shares.shape[1])
    for p in range(n_rows):
        for i in range(n_bases):
            if codes[p, i] >= 0:
                out[p, i] = codes[p, i]
                continue
            lo, hi = offsets[i], offsets[i + 1]
            row = offsets[n_bases] + labels[p]
            for q in range(lo, hi):
                score[q] = log_shares[row, q]
            for j in range(n_bases):
                if codes[p, j] >= 0:
                    row = offsets[j] + codes[p, j]
                    for q in range(lo, hi):
                        score[q] += log_shares[row, q]
            best = lo
            for q in range(lo + 1, hi):
                if score[q] > score[best]:
                    best = q
            out[p, i] = best - lo


@_compiled
def group(keys, slots, values, counts, inverse):  # type: ignore[no-untyped-def]
    """Number the distinct keys in the order of their first occurrence; returns how many there are.

    A hash table with linear probing: ``slots`` is its memory, -1 where free, a power of two long and longer
    than ``keys``. Fills ``values`` and ``counts`` from the front, and ``inverse`` for every key.
    """
    mask = np.uint64(len(slots) - 1)
    found = 0
    for p in range(len(keys)):
        key = keys[p]
        # Fibonacci hashing: the high bits of the product depend on all bits of the key.
        place = ((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
        while slots[place] >= 0 and values[slots[place]] != key:
            place = (place + np.uint64(1)) & mask
        number = slots[place]
        if number < 0:
            number = found
            slots[place] = number
            values[number] = key
            counts[number] = 0
            found += 1
        counts[number] += 1
        inverse[p] = number
    return found
