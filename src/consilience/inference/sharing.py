"""How far each base clustering follows from the others: what tells runs of one program from sources."""

from __future__ import annotations

import numpy as np

from consilience.evidence.partitions import Partitions
from consilience.inference.counts import adjusted_information, pair_tables, silent

_FEWEST = 10  # instances in common, on average: fewer say nothing


def sharing(partitions: Partitions) -> np.ndarray:
    r"""How far each base clustering follows from the others: 0 not at all, 1 wholly.

    .. math::
        \frac{\sum_{j \ne i} w_j n_{ij} \, b_{ij}}{\sum_{j \ne i} w_j n_{ij}}, \qquad
        b_{ij} = \max\Bigl(0, \frac{I_{ij} - E[I_{ij}]}{\min(H_i, H_j) - E[I_{ij}]}\Bigr)

    The information that two share is divided by what the coarser of them says, so that a clustering and its
    coarser versions follow from each other, whatever their numbers of clusters. NaN for a base clustering
    that says nothing (one cluster, or everybody apart), and for one that has fewer than ten instances in
    common with each of the others that it meets, on average.

    Symbols: I -> mutual information on the n_ij instances that both saw; E[I] -> its mean under random
    labels; H -> entropies there; w -> partitions.opinion_weights.
    Cost: a small table of every pair of base clusterings.
    """
    weights = partitions.opinion_weights
    near, n = following(partitions)
    w = n if weights is None else n * weights
    shared, total = (w * np.nan_to_num(near)).sum(axis=1), w.sum(axis=1)
    enough = (total > 0) & (n.sum(axis=1) >= _FEWEST * (n > 0).sum(axis=1))
    return np.divide(shared, total, out=np.full(len(near), np.nan), where=enough)


def following(partitions: Partitions) -> tuple[np.ndarray, np.ndarray]:
    """b of `sharing`, how far every two follow from each other, and on how many instances that rests.

    Both (n_partitions, n_partitions). NaN, and no instance, on the diagonal, of a clustering that says
    nothing, and of two that share no instance.
    """
    m, told = partitions.n_partitions, ~silent(partitions)
    near, n = np.full((m, m), np.nan), np.zeros((m, m))
    for i, j, table in pair_tables(partitions):
        if told[i] and told[j] and table.sum() > 0:
            n[i, j] = n[j, i] = table.sum()
            near[i, j] = near[j, i] = min(
                1.0, max(0.0, adjusted_information(table, of_coarser=True, exact_terms=0))
            )
    return near, n
