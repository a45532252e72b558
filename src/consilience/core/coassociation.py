"""Counts of agreement between instances, missing-aware."""

import numpy as np
import scipy.sparse as sp


def agreement(indicator: sp.csr_array) -> sp.csr_array:
    """In how many base clusterings two rows share a cluster, sparse."""
    return indicator @ indicator.T


def coobservation(observed: np.ndarray) -> np.ndarray:
    """How many base clusterings saw both rows, dense."""
    # float32 counts exactly up to 2**24 base clusterings and lets BLAS do the work.
    seen = observed.astype(np.float32)
    return seen @ seen.T


def coassociation(indicator: sp.csr_array, observed: np.ndarray, *, normalize: str) -> np.ndarray:
    """Share of agreement, dense: of the clusterings that saw both ("pairs") or of all ("partitions").

    A pair that no clustering saw together has no share: NaN under "pairs", zero under "partitions".
    """
    shared = agreement(indicator).toarray()
    if normalize == "partitions":
        return shared / observed.shape[1]
    together = coobservation(observed)
    return np.divide(shared, together, out=np.full_like(shared, np.nan), where=together > 0)
