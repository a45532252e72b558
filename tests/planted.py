"""Planted ensembles: a truth, and base clusterings that see it through noise and gaps."""

import numpy as np


def planted(n, m, c, *, noise, missing, seed, sizes=None, draw=0):
    """Truth (n,) and base labels (n, m): names of clusters follow from `seed`, entries also from `draw`.

    Every instance is seen at least once.
    """
    names = np.random.default_rng(seed)
    tables = [names.permutation(c) for _ in range(m)]
    rng = np.random.default_rng((seed, draw))
    truth = rng.choice(c, n, p=sizes)
    truth[:c] = np.arange(c)
    base = np.column_stack([table[truth] for table in tables])
    wrong = rng.random((n, m)) < noise
    base[wrong] = rng.integers(0, c, int(wrong.sum()))
    hidden = rng.random((n, m)) < missing
    spared = np.flatnonzero(hidden.all(axis=1))
    hidden[spared, rng.integers(0, m, len(spared))] = False
    return truth, np.where(hidden, -1, base)
