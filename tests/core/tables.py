"""Random tables of codes for the tests of the core, and the plain one-hot matrix they stand for."""

import numpy as np

KS = (3, 1, 6, 4)
OFFSETS = np.array([0, 3, 4, 10, 14])


def random_codes(n, ks=KS, *, missing=0.3, seed=0, dtype=np.int8):
    """Codes (n, len(ks)) with -1 for missing; some rows may be missing altogether."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, k, n) for k in ks])
    return np.where(rng.random(codes.shape) < missing, -1, codes).astype(dtype)


def offsets_of(ks):
    return np.concatenate([[0], np.cumsum(ks)])


def one_hot(codes, offsets):
    """The stacked indicator B, dense, entry by entry."""
    b = np.zeros((len(codes), int(offsets[-1])))
    for p, row in enumerate(codes.astype(int)):
        for i, code in enumerate(row):
            if code >= 0:
                b[p, offsets[i] + code] = 1.0
    return b


def orthogonal(k, rng):
    return np.linalg.qr(rng.standard_normal((k, k)))[0]
