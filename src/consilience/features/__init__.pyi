# Written by docs/lists.py.
from consilience.features.acmk import ACMK as ACMK

__all__: list[str]
