"""Low-rank representations of rows by each other, and the affinity that they are read as."""

import numpy as np

# Singular values below this share of the largest are noise.
_RANK = 1e-4
# Power that sharpens cosines, as in the programs of low-rank representation.
_POWER = 4


def angular_affinity(representation: np.ndarray) -> np.ndarray:
    r"""Fourth power of the cosines between rows in the column space of a square matrix.

    .. math:: A = (U U^T)^4, \qquad U = \text{rows of } U_Z \Sigma_Z^{1/2} \text{ scaled to length one}

    A row that is zero is like itself alone.

    Cost: one singular value decomposition.
    """
    u, s, _ = np.linalg.svd(representation)
    u = u[:, s > _RANK * s[0]] * np.sqrt(s[s > _RANK * s[0]])
    norms = np.linalg.norm(u, axis=1)
    u /= np.where(norms > 1e-10 * norms.max(initial=0.0), norms, np.inf)[:, None]
    affinity = (u @ u.T) ** _POWER
    np.fill_diagonal(affinity, 1.0)
    return affinity
