"""Parties that may not share rows: labels under keyed ids go out, a consensus comes back.

What leaves a party, how parts are joined and what goes back are functions of arrays, here. The two apps that
Flower runs are in ``consilience.federated.flower``: ``client`` at each party, ``server`` in the middle.
"""

from consilience.federated.keys import key_fingerprint, keyed_ids, read_key
from consilience.federated.merging import Answer, Merged, join_parts, merge_parts
from consilience.federated.parts import Column, Part, Prepared, prepare

__all__ = [
    "Answer",
    "Column",
    "Merged",
    "Part",
    "Prepared",
    "join_parts",
    "key_fingerprint",
    "keyed_ids",
    "merge_parts",
    "prepare",
    "read_key",
]
