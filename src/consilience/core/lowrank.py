"""Low-rank representations of rows by each other, and the affinity that they are read as."""

import numpy as np
import scipy.linalg

# Singular values below this share of the largest are noise.
_RANK = 1e-4
# Power that sharpens cosines, as in the programs of low-rank representation.
_POWER = 4


def angular_affinity(representation: np.ndarray, *, symmetric: bool = False) -> np.ndarray:
    r"""Fourth power of the cosines between rows in the column space of a square matrix.

    .. math:: A = (U U^T)^4, \qquad U = \text{rows of } U_Z \Sigma_Z^{1/2} \text{ scaled to length one}

    A row that is zero is like itself alone.

    Cost: one singular value decomposition, or the eigenproblem of a symmetric matrix, which takes less.
    """
    if symmetric:
        values, u = np.linalg.eigh(representation)
        s = np.abs(values)
    else:
        u, s = _left_singular(representation)
    kept = s > _RANK * s.max()
    u = u[:, kept] * np.sqrt(s[kept])
    norms = np.linalg.norm(u, axis=1)
    u /= np.where(norms > 1e-10 * norms.max(initial=0.0), norms, np.inf)[:, None]
    affinity = (u @ u.T) ** _POWER
    np.fill_diagonal(affinity, 1.0)
    return affinity


def _left_singular(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    try:
        u, s, _ = np.linalg.svd(matrix)
    except np.linalg.LinAlgError:
        # Divide and conquer gives up on some harmless matrices of low rank; QR does not.
        u, s, _ = scipy.linalg.svd(matrix, lapack_driver="gesvd")
    return u, s


def shrink_singular_values(matrix: np.ndarray, threshold: float) -> np.ndarray:
    r"""The matrix with its singular values lowered by `threshold`, those below it gone.

    .. math:: \arg\min_J \; t \|J\|_* + \tfrac12 \|J - X\|_F^2

    Symbols: X -> matrix; t -> threshold.
    Through the Gram matrix, which takes half the time: singular values below 1e-8 of the largest are not
    resolved, and what they add is as small.

    Cost: one eigenproblem of a symmetric matrix.
    """
    squares, v = np.linalg.eigh(matrix.T @ matrix)
    s = np.sqrt(np.maximum(squares, 0.0))
    v, s = v[:, s > threshold], s[s > threshold]
    return (matrix @ v * (1.0 - threshold / s)) @ v.T
