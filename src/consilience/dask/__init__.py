"""The same methods on tables larger than memory: in blocks, in this process or on a Dask cluster."""

from consilience.dask.apmc import APMC
from consilience.dask.blocks import Blocks, read_parquet
from consilience.dask.consensus import MIRRORS
from consilience.dask.eeimvc import EEIMVC
from consilience.dask.fuse import ParquetFusion, fuse_parquet
from consilience.dask.pce import PCE
from consilience.dask.rows import BlockArray

globals().update(MIRRORS)

__all__ = [
    "APMC",
    "EEIMVC",
    "PCE",
    "BlockArray",
    "Blocks",
    "ParquetFusion",
    "fuse_parquet",
    "read_parquet",
    *MIRRORS,
]
