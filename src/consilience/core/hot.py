"""The few compiled loops. Each has a plain NumPy twin in its test.

All of them work on a block of rows and release the interpreter, so that `core.blocks` can run several at
once. ``codes`` is (rows, bases) with -1 for missing; ``offsets[i]`` is where the clusters of base ``i`` begin
in a stacked table that has a row per cluster of any base.
"""

import numpy as np

from consilience.core.compiled import compiled


@compiled(reads=3)
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


@compiled(reads=4)
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


@compiled(reads=3)
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


@compiled(reads=3)
def quadratic(codes, offsets, table, out):  # type: ignore[no-untyped-def]
    """``out[p] = z_p.T @ table @ z_p``, z_p the row's part of the stacked indicator; `table` symmetric."""
    n_rows, n_bases = codes.shape
    stacked = np.empty(n_bases, dtype=np.int64)
    for p in range(n_rows):
        seen = 0
        for i in range(n_bases):
            if codes[p, i] >= 0:
                stacked[seen] = offsets[i] + codes[p, i]
                seen += 1
        value = 0.0
        for a in range(seen):
            row = stacked[a]
            value += table[row, row]
            for b in range(a):
                value += 2.0 * table[row, stacked[b]]
        out[p] = value


@compiled(reads=4)
def cross(codes, offsets, labels, weights, out):  # type: ignore[no-untyped-def]
    """``out[offsets[i] + codes[p, i], labels[p]] += weights[p]``; rows with a negative label are left out."""
    n_rows, n_bases = codes.shape
    for p in range(n_rows):
        label = labels[p]
        if label >= 0:
            for i in range(n_bases):
                if codes[p, i] >= 0:
                    out[offsets[i] + codes[p, i], label] += weights[p]


@compiled(reads=4)
def elect(codes, offsets, table, bias, labels):  # type: ignore[no-untyped-def]
    """``labels[p] = argmax(bias + gather_sum)`` without keeping the sums."""
    n_rows, n_bases = codes.shape
    width = table.shape[1]
    sums = np.empty(width)
    for p in range(n_rows):
        for d in range(width):
            sums[d] = bias[d]
        for i in range(n_bases):
            if codes[p, i] >= 0:
                row = offsets[i] + codes[p, i]
                for d in range(width):
                    sums[d] += table[row, d]
        best = 0
        for d in range(1, width):
            if sums[d] > sums[best]:
                best = d
        labels[p] = best


@compiled(reorder=True)
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


@compiled(reads=3, reorder=True)
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


@compiled(reads=4)
def complete(codes, labels, offsets, evidence, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` where ``codes`` is missing with the cluster of highest summed evidence.

    ``evidence[a, b]`` says how much cluster ``a`` speaks for cluster ``b`` of another base; the last base of
    ``offsets`` is the consensus, whose clusters are ``labels``.
    """
    n_rows, n_bases = codes.shape
    score = np.empty(evidence.shape[1])
    for p in range(n_rows):
        for i in range(n_bases):
            if codes[p, i] >= 0:
                out[p, i] = codes[p, i]
                continue
            lo, hi = offsets[i], offsets[i + 1]
            row = offsets[n_bases] + labels[p]
            for q in range(lo, hi):
                score[q] = evidence[row, q]
            for j in range(n_bases):
                if codes[p, j] >= 0:
                    row = offsets[j] + codes[p, j]
                    for q in range(lo, hi):
                        score[q] += evidence[row, q]
            best = lo
            for q in range(lo + 1, hi):
                if score[q] > score[best]:
                    best = q
            out[p, i] = best - lo


@compiled(reads=1, interpret=False)
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


@compiled(reads=1)
def count_agreeing(codes, start, stop, sizes):  # type: ignore[no-untyped-def]
    """``sizes[p]``: with how many later rows row ``p`` shares a cluster in at least one base."""
    n_rows, n_bases = codes.shape
    for p in range(start, stop):
        found = 0
        for q in range(p + 1, n_rows):
            shared = 0
            for i in range(n_bases):
                shared += (codes[p, i] == codes[q, i]) & (codes[p, i] >= 0)
            found += shared > 0
        sizes[p] = found


@compiled(reads=1)
def fill_agreeing(codes, start, stop, starts, left, right, agree):  # type: ignore[no-untyped-def]
    """The pairs that `count_agreeing` counted, those of row ``p`` from ``starts[p]`` on, and which bases
    agree: bit ``i % 8`` of ``agree[pair, i // 8]``, which must be zero before."""
    n_rows, n_bases = codes.shape
    for p in range(start, stop):
        place = starts[p]
        for q in range(p + 1, n_rows):
            shared = 0
            for i in range(n_bases):
                shared += (codes[p, i] == codes[q, i]) & (codes[p, i] >= 0)
            if shared > 0:
                left[place], right[place] = p, q
                for i in range(n_bases):
                    if (codes[p, i] == codes[q, i]) & (codes[p, i] >= 0):
                        agree[place, i >> 3] |= np.uint8(1 << (i & 7))
                place += 1


@compiled(reads=5)
def sum_bits(left, right, agree, seen, table, agreeing, together):  # type: ignore[no-untyped-def]
    """Sums over the bases that agree on a pair and over those that saw both; ``table[b, byte]`` is the sum
    over the bits of byte ``b``."""
    for e in range(len(left)):
        p, q = left[e], right[e]
        t, a = 0.0, 0.0
        for b in range(agree.shape[1]):
            t += table[b, agree[e, b]]
            a += table[b, seen[p, b] & seen[q, b]]
        agreeing[e], together[e] = t, a


@compiled(reads=10, reorder=True)
def learn_pairs(  # type: ignore[no-untyped-def]
    left, right, agree, seen, certain, table, embedding, spread, counts, pace, rho, threshold,
    s, by_agree, by_seen,
):  # fmt: skip
    """One step of the learned co-association on pairs, and what the base weights need, in one pass.

    ``s`` becomes the minimiser on 0..1 of ``sum_i (s - s_i)^2 pace^2 / alpha_i + rho distance s`` over the
    bases that saw both rows, plus ``threshold^2`` where it is not zero; certain pairs stay at one.
    ``table`` holds sums of 1 / alpha over bytes of bases. Adds the two parts of ``||(s - s_i) pace||^2`` to
    ``by_agree`` and ``by_seen`` (bytes, 256) by byte value, and returns how many instance pairs have s > 0.
    """
    n_bytes = agree.shape[1]
    width = embedding.shape[1]
    level = threshold * threshold
    nonzero = 0.0
    for e in range(len(left)):
        p, q = left[e], right[e]
        both = 2.0 * counts[p] * counts[q]
        if certain[e]:
            s[e] = 1.0
            nonzero += both
            continue
        t, a = 0.0, 0.0
        for b in range(n_bytes):
            t += table[b, agree[e, b]]
            a += table[b, seen[p, b] & seen[q, b]]
        weight = pace[e] * pace[e]
        value = 0.0
        if t * t * weight >= level * a:  # a distance would only lower the value: most pairs need none
            distance = spread[p] + spread[q]
            for d in range(width):
                gap = embedding[p, d] - embedding[q, d]
                distance += gap * gap
            value = min((2.0 * weight * t - rho * distance) / (2.0 * weight * a), 1.0)
            if value <= 0.0 or value * value * weight * a < level:
                value = 0.0
        s[e] = value
        weight *= both
        for b in range(n_bytes):
            by_agree[b, agree[e, b]] += weight * (1.0 - 2.0 * value)
        if value > 0.0:
            nonzero += both
            for b in range(n_bytes):
                by_seen[b, seen[p, b] & seen[q, b]] += weight * value * value
    return nonzero


@compiled(reads=5)
def link(left, right, s, counts, root, starts, others, weights, diagonal):  # type: ignore[no-untyped-def]
    """Upper half of the quotient Laplacian of the pairs with ``s > 0``; returns how many there are.

    Those of row ``p`` are ``starts[p]`` to ``starts[p + 1]``: their columns are in ``others`` and the entries
    without their sign, ``s sqrt(w_p w_q)``, in ``weights``. ``root`` is the square root of ``counts``;
    ``diagonal`` must be zero before.
    """
    kept, row = 0, 0
    for e in range(len(left)):
        p, q = left[e], right[e]
        while row <= p:
            starts[row] = kept
            row += 1
        if s[e] > 0.0:
            others[kept] = q
            weights[kept] = s[e] * root[p] * root[q]
            diagonal[p] += s[e] * counts[q]
            diagonal[q] += s[e] * counts[p]
            kept += 1
    starts[row:] = kept
    return kept


@compiled(reads=5)
def multiply(others, weights, starts, diagonal, x, out):  # type: ignore[no-untyped-def]
    """``out = laplacian @ x`` of what `link` made."""
    n_rows, width = x.shape
    mine, total = np.empty(width), np.empty(width)
    for p in range(n_rows):
        for d in range(width):
            out[p, d] = diagonal[p] * x[p, d]
    for p in range(n_rows):
        for d in range(width):
            mine[d], total[d] = x[p, d], 0.0
        for e in range(starts[p], starts[p + 1]):
            q, weight = others[e], weights[e]
            for d in range(width):
                total[d] += weight * x[q, d]
                out[q, d] -= weight * mine[d]
        for d in range(width):
            out[p, d] -= total[d]


@compiled(reads=3)
def join(left, right, s, parent):  # type: ignore[no-untyped-def]
    """Connected components of the pairs with ``s > 0``: afterwards ``parent[p]`` is the lowest row of ``p``'s
    component. ``parent`` must be 0..rows-1 before."""
    # SciPy's would need the pairs sorted into a sparse matrix first, in every step.
    for e in range(len(left)):
        if s[e] > 0.0:
            p, q = left[e], right[e]
            while parent[p] != p:
                parent[p] = parent[parent[p]]
                p = parent[p]
            while parent[q] != q:
                parent[q] = parent[parent[q]]
                q = parent[q]
            if p < q:
                parent[q] = p
            elif q < p:
                parent[p] = q
    for p in range(len(parent)):
        parent[p] = parent[parent[p]]  # lower rows are already at their root


@compiled(reads=2)
def smallest(table, bias, out):  # type: ignore[no-untyped-def]
    """Columns of the smallest entries of ``bias - 2 table`` in every row, as many as `out` has, ascending."""
    k = out.shape[1]
    best = np.empty(k, dtype=table.dtype)
    for p in range(table.shape[0]):
        found = 0
        for q in range(table.shape[1]):
            value = bias[q] - 2 * table[p, q]
            if found < k:
                place = found
                found += 1
            elif value < best[k - 1]:
                place = k - 1
            else:
                continue
            while place > 0 and best[place - 1] > value:
                best[place] = best[place - 1]
                out[p, place] = out[p, place - 1]
                place -= 1
            best[place] = value
            out[p, place] = q


@compiled(reads=3)
def agree(codes, pointers, others, out):  # type: ignore[no-untyped-def]
    """``out[i, e]``: whether base i has both rows of pair e in one cluster; row p is in a pair with each of
    ``others[pointers[p] : pointers[p + 1]]``."""
    for p in range(len(pointers) - 1):
        for e in range(pointers[p], pointers[p + 1]):
            q = others[e]
            for i in range(codes.shape[1]):
                out[i, e] = codes[p, i] == codes[q, i]


@compiled(reads=2)
def largest(scores, offsets, out):  # type: ignore[no-untyped-def]
    """``out[p, i]``: place of the largest score in ``offsets[i]..offsets[i + 1]``, the first of equals."""
    for p in range(scores.shape[0]):
        for i in range(len(offsets) - 1):
            start = offsets[i]
            best = start
            for j in range(start + 1, offsets[i + 1]):
                if scores[p, j] > scores[p, best]:
                    best = j
            out[p, i] = best - start


@compiled(reads=2, interpret=False)
def consecutive_sums(values, sizes, out):  # type: ignore[no-untyped-def]
    """``out[c, j]``: sum of the values of column j, NaN passed over: of the first ``sizes[0, j]`` for c = 0,
    of the next ``sizes[1, j]`` for c = 1, and so on."""
    n_rows, width = values.shape
    group, left = np.zeros(width, dtype=np.int64), sizes[0].copy()
    for p in range(n_rows):
        for j in range(width):
            value = values[p, j]
            if value == value:
                while left[j] == 0:
                    group[j] += 1
                    left[j] = sizes[group[j], j]
                out[group[j], j] += value
                left[j] -= 1


@compiled(reads=3, interpret=False)
def consecutive_counts(codes, offsets, sizes, out):  # type: ignore[no-untyped-def]
    """``out[offsets[j] + code, c]``: how often the code occurs in group c of column j; groups as in
    `consecutive_sums`, -1 passed over."""
    n_rows, width = codes.shape
    group, left = np.zeros(width, dtype=np.int64), sizes[0].copy()
    for p in range(n_rows):
        for j in range(width):
            code = codes[p, j]
            if code >= 0:
                while left[j] == 0:
                    group[j] += 1
                    left[j] = sizes[group[j], j]
                out[offsets[j] + code, group[j]] += 1.0
                left[j] -= 1
