"""Data: built in, or read from a folder of the user's."""

from consilience.datasets._dataset import Dataset
from consilience.datasets._digits import load_digits, load_digits_views
from consilience.datasets._files import available, cache_folder, find, load
from consilience.datasets._partial_views import make_partial_views

__all__ = [
    "Dataset",
    "available",
    "cache_folder",
    "find",
    "load",
    "load_digits",
    "load_digits_views",
    "make_partial_views",
]
