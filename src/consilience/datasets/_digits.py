"""Data that ships with a dependency: scikit-learn's 1797 handwritten digits of 8 x 8 pixels."""

import numpy as np
from numpy.typing import NDArray

from consilience.datasets._dataset import Dataset

_SIDE = 8
_N_DIRECTIONS = 8


def load_digits() -> Dataset:
    """The digits as one table of 64 pixels.

    >>> from consilience.datasets import load_digits
    >>> load_digits()
    Dataset('digits': table 1797 x 64, 10 classes)
    """
    images, y = _read()
    return Dataset("digits", "table", y=y, X=images.reshape(len(images), -1))


def load_digits_views() -> Dataset:
    """The digits as four views, each computed from the pixels alone.

    - ``pixels`` (64): the grey values, 0 to 16.
    - ``projections`` (20): the sums over each row, each column and each quadrant of the image.
    - ``fourier`` (40): the magnitudes of the two-dimensional Fourier transform, without the half that
      repeats the other. They do not change when the image is shifted around its border.
    - ``gradients`` (32): in each quadrant, how much the grey value rises in each of eight directions.

    All instances are present in all views: `observed` is all True.

    >>> from consilience.datasets import load_digits_views
    >>> digits = load_digits_views()
    >>> digits.view_names
    ('pixels', 'projections', 'fourier', 'gradients')
    >>> [view.shape for view in digits.views]
    [(1797, 64), (1797, 20), (1797, 40), (1797, 32)]
    """
    images, y = _read()
    tables = {
        "pixels": images.reshape(len(images), -1),
        "projections": np.hstack([images.sum(axis=2), images.sum(axis=1), _by_quadrant(images)]),
        "fourier": np.abs(np.fft.rfft2(images)).reshape(len(images), -1),
        "gradients": _gradients(images),
    }
    return Dataset(
        "digits_views",
        "views",
        y=y,
        views=tuple(tables.values()),
        view_names=tuple(tables),
        observed=np.ones((len(y), len(tables)), dtype=bool),
    )


def _read() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    from sklearn import datasets  # half a second that the readers of files need not pay

    digits = datasets.load_digits()
    return digits.images, digits.target.astype(np.int64)


def _by_quadrant(images: NDArray[np.float64]) -> NDArray[np.float64]:
    half = _SIDE // 2
    return images.reshape(-1, 2, half, 2, half).sum(axis=(2, 4)).reshape(-1, 4)


def _gradients(images: NDArray[np.float64]) -> NDArray[np.float64]:
    down, right = np.gradient(images, axis=(1, 2))
    angle = np.arctan2(down, right) % (2 * np.pi)
    # bins centred on the directions, so that a straight stroke does not fall on the edge of two
    direction = np.rint(angle * _N_DIRECTIONS / (2 * np.pi)).astype(int) % _N_DIRECTIONS
    strength = np.hypot(down, right)
    return np.hstack([_by_quadrant(np.where(direction == d, strength, 0)) for d in range(_N_DIRECTIONS)])
