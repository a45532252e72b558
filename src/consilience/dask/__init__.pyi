# Written by docs/lists.py.
from os import PathLike
from typing import Any, Self

from consilience import consensus
from consilience.core.parameters import parameters
from consilience.dask.apmc import APMC as APMC
from consilience.dask.blocks import Blocks as Blocks
from consilience.dask.blocks import read_parquet as read_parquet
from consilience.dask.consensus import BlocksMixin
from consilience.dask.eeimvc import EEIMVC as EEIMVC
from consilience.dask.fuse import ParquetFusion as ParquetFusion
from consilience.dask.fuse import fuse_parquet as fuse_parquet
from consilience.dask.rows import BlockArray as BlockArray

class _OnBlocks(BlocksMixin):
    labels_: Any
    confidence_: Any
    reliability_: Any
    embedding_: Any
    membership_: Any
    def fit(self, X: Any, y: Any = None) -> Self: ...

@parameters
class PCE(_OnBlocks, consensus.PCE):  # type: ignore[misc]
    max_distinct: int = ...
    checkpoint: str | PathLike[str] | None = ...

@parameters
class BCE(_OnBlocks, consensus.BCE):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class CSPA(_OnBlocks, consensus.CSPA):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class DAL(_OnBlocks, consensus.DAL):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class ECPCS(_OnBlocks, consensus.ECPCS):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class HBGF(_OnBlocks, consensus.HBGF):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class HGPA(_OnBlocks, consensus.HGPA):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class KC(_OnBlocks, consensus.KC):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class KCC(_OnBlocks, consensus.KCC):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class LWGP(_OnBlocks, consensus.LWGP):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class MCLA(_OnBlocks, consensus.MCLA):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class MixtureConsensus(_OnBlocks, consensus.MixtureConsensus):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class NMFC(_OnBlocks, consensus.NMFC):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class SEC(_OnBlocks, consensus.SEC):  # type: ignore[misc]
    max_distinct: int = ...

@parameters
class USENC(_OnBlocks, consensus.USENC):  # type: ignore[misc]
    max_distinct: int = ...

__all__: list[str]
