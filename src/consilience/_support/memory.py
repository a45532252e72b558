"""How much memory this process may still take."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from consilience._support.errors import InputError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def free_memory() -> float | None:
    """Bytes that this process may still take: as the user says, as its group may, or as the machine has."""
    said = os.environ.get("CONSILIENCE_MEMORY")
    if said is not None:
        given = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?B)?", said.strip(), flags=re.IGNORECASE)
        if given is None:
            raise InputError(f"CONSILIENCE_MEMORY is {said!r}, not a size.", hint="as in 16G.")
        return float(given[1]) * _UNITS[given[2].upper()]
    known = [value for value in (_of_machine(), _of_group()) if value is not None]
    return min(known, default=None)


def _of_machine() -> float | None:
    with suppress(OSError, ValueError, StopIteration):  # only Linux says so this way
        lines = Path("/proc/meminfo").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        kilobytes = [int(fields[name].split()[0]) for name in ("MemAvailable", "SwapFree") if name in fields]
        return 1024.0 * sum(kilobytes)
    return None


def _of_group() -> float | None:
    folder = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # "max" is no number, and no limit
        limit, used = ((folder / f"memory.{name}").read_text() for name in ("max", "current"))
        return float(int(limit) - int(used))
    return None
