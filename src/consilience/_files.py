"""Files that are there completely or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which appears under its name when the block has ended well.

    Whatever had that name before stays until then, and for good if the block fails.
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        with open(part, "xb") as file:
            yield file
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
