"""How far each base clustering follows from the others: what tells runs of one program from sources."""

from __future__ import annotations

import numpy as np

from consilience.evidence.partitions import Partitions
from consilience.inference.counts import adjusted_information, pair_tables, silent


def sharing(partitions: Partitions) -> np.ndarray:
    r"""How far each base clustering follows from the others: 0 not at all, 1 wholly.

    .. math::
        \frac{\sum_{j \ne i} w_j n_{ij} \, b_{ij}}{\sum_{j \ne i} w_j n_{ij}}, \qquad
        b_{ij} = \max\Bigl(0, \frac{I_{ij} - E[I_{ij}]}{\min(H_i, H_j) - E[I_{ij}]}\Bigr)

    The information that two share is divided by what the coarser of them says, so that a clustering and its
    coarser versions follow from each other, whatever their numbers of clusters. NaN for a base clustering
    that says nothing (one cluster, or everybody apart), and for one that shares no instance with another.

    Symbols: I -> mutual information on the n_ij instances that both saw; E[I] -> its mean under random
    labels; H -> entropies there; w -> partitions.base_weights.
    Cost: a small table of every pair of base clusterings.
    """
    m = partitions.n_partitions
    weights = np.ones(m) if partitions.base_weights is None else partitions.base_weights
    told = ~silent(partitions)
    shared, total = np.zeros(m), np.zeros(m)
    for i, j, table in pair_tables(partitions):
        n = table.sum()
        if told[i] and told[j] and n > 0:
            both = n * min(1.0, max(0.0, adjusted_information(table, of_coarser=True, exact_terms=0)))
            shared[[i, j]] += weights[[j, i]] * both
            total[[i, j]] += weights[[j, i]] * n
    return np.divide(shared, total, out=np.full(m, np.nan), where=total > 0)
