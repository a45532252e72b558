"""Labels in, one partition out. One method is one file; ``__all__`` is the registry."""

from consilience.consensus.pce import PCE
from consilience.consensus.spce import SPCE

__all__ = ["PCE", "SPCE"]
