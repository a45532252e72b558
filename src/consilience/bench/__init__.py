"""Experiments as data: a readable file says what to run; the results are tidy rows, and runs resume."""

from consilience.bench.data import DataFile, data_files
from consilience.bench.experiment import Experiment, available, load
from consilience.bench.figure import draw
from consilience.bench.runner import run
from consilience.bench.store import Store
from consilience.bench.table import show, tabulate

__all__ = [
    "DataFile",
    "Experiment",
    "Store",
    "available",
    "data_files",
    "draw",
    "load",
    "run",
    "show",
    "tabulate",
]
