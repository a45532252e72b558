"""How alike two nodes are to random walkers: the walks that start there, compared step by step."""

import numpy as np


def trajectory_similarity(graph: np.ndarray, weights: np.ndarray, n_steps: int) -> np.ndarray:
    r"""Cosine of where walkers from two nodes are, over the first steps.

    .. math:: R = \sum_{t=1}^{T} P^t (P^t)^T, \qquad P = D^{-1} G W, \qquad R_{ij} / \sqrt{R_{ii} R_{jj}}

    A node that nothing is linked to is like itself alone. P is similar to a symmetric matrix, `graph` scaled
    by degrees, so one eigendecomposition replaces 2T products.

    Symbols: G -> graph, dense, symmetric and not negative; W -> weights of the nodes; T -> n_steps.
    Cost: nodes^3, whatever the number of steps; nodes^2 memory.
    """
    degrees = graph @ weights
    linked = degrees > 0
    degrees = np.where(linked, degrees, 1.0)
    root = np.sqrt(weights / degrees)
    values, vectors = np.linalg.eigh(graph * root * root[:, None])
    balance = weights * degrees
    product = np.outer(values, values)
    powers = product.copy()
    for _ in range(n_steps - 1):
        powers = product * (1.0 + powers)
    back = vectors / np.sqrt(balance)[:, None]
    r = back @ (((vectors.T * balance) @ vectors) * powers) @ back.T
    scale = np.where(linked, np.sqrt(np.where(linked, np.diag(r), 1.0)), np.inf)
    r /= scale * scale[:, None]
    r = 0.5 * (r + r.T)
    np.fill_diagonal(r, 1.0)
    return r
