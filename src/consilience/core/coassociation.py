"""Counts of agreement between instances, missing-aware."""

import numpy as np
import scipy.sparse as sp

from consilience.core.canonical import Rows
from consilience.core.tables import indicator


def agreement(marks: sp.csr_array) -> sp.csr_array:
    """In how many base clusterings two rows share a cluster, sparse."""
    return marks @ marks.T


def coobservation(observed: np.ndarray) -> np.ndarray:
    """How many base clusterings saw both rows, dense."""
    # float32 counts exactly up to 2**24 base clusterings and lets BLAS do the work.
    seen = observed.astype(np.float32)
    return seen @ seen.T


def coassociation(marks: sp.csr_array, observed: np.ndarray, *, normalize: str) -> np.ndarray:
    """Share of agreement, dense: of the clusterings that saw both ("pairs") or of all ("partitions").

    A pair that no clustering saw together has no share: NaN under "pairs", zero under "partitions".
    """
    shared = agreement(marks).toarray()
    if normalize == "partitions":
        return shared / observed.shape[1]
    together = coobservation(observed)
    return np.divide(shared, together, out=np.full_like(shared, np.nan), where=together > 0)


def pair_shares(rows: Rows) -> np.ndarray:
    """Share of agreement of two rows among the base clusterings that saw both; NaN where none did."""
    if rows.base_weights is not None:
        marks, seen = indicator(rows.codes, rows.offsets), (rows.codes >= 0).astype(float)
        weights = rows.weigh_clusters(np.ones(marks.shape[1]))
        shared, together = (marks * weights) @ marks.T, (seen * rows.base_weights) @ seen.T
        return np.divide(shared.toarray(), together, out=np.full_like(together, np.nan), where=together > 0)
    return coassociation(indicator(rows.codes, rows.offsets), rows.codes >= 0, normalize="pairs")
