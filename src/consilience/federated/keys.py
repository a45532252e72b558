"""Ids under a key that the parties share and the server does not have."""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from consilience._support.errors import InputError

ID_BYTES = 32
_FEWEST_BYTES = 16  # a shorter key can be found by trying, and with it every id
_MAKE_ONE = "openssl rand -hex 32 > shared.key"


def keyed_ids(ids: Iterable[object], key: bytes) -> np.ndarray:
    """HMAC-SHA256 of every id, written as text, under the key; (n, 32) bytes.

    Whoever has the key can try ids one by one; whoever has not sees random bytes, the same for the same id.
    An oblivious pseudorandom function, where a key holder apart from the server would answer without seeing
    the ids, would take the place of this function and of no other.

    Parameters
    ----------
    ids : iterable
        Text, or numbers, which count as their text.
    key : bytes
        What all parties share; see :func:`read_key`.

    Examples
    --------
    >>> from consilience.federated import keyed_ids
    >>> ids = keyed_ids(["ann", 7], b"a key that the parties share")
    >>> ids.shape, bool((ids[1] == keyed_ids(["7"], b"a key that the parties share")[0]).all())
    ((2, 32), True)
    """
    keyed = hmac.new(key, digestmod="sha256")
    digests = []
    for one in ids:
        mac = keyed.copy()
        mac.update(str(one).encode())
        digests.append(mac.digest())
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(digests), ID_BYTES)


def key_fingerprint(key: bytes) -> str:
    """A few letters by which parties can tell each other, by telephone, that they have the same key.

    >>> from consilience.federated import key_fingerprint
    >>> key_fingerprint(b"a key that the parties share")
    '3edd-643e'
    """
    text = hmac.digest(key, b"consilience: fingerprint of the key", "sha256").hex()
    return f"{text[:4]}-{text[4:8]}"


def read_key(*, file: str | os.PathLike[str] | None = None, variable: str | None = None) -> bytes:
    """The shared key, from a file or an environment variable; blanks around it do not count.

    Parameters
    ----------
    file : path, optional
        A file with the key.
    variable : str, optional
        The name of an environment variable with the key.
    """
    if (file is None) == (variable is None):
        raise InputError(
            "the key is in a file or in an environment variable, one of both.",
            hint=f"make a key with {_MAKE_ONE}, and give the file's name.",
        )
    where = f"the file {file}" if file is not None else f"the environment variable {variable}"
    try:
        key = Path(file).read_bytes() if file is not None else os.environ[str(variable)].encode()
    except (OSError, KeyError):
        raise InputError(
            f"there is no key in {where}.", hint="all parties share one key, and the server does not have it."
        ) from None
    key = key.strip()
    if len(key) < _FEWEST_BYTES:
        raise InputError(
            f"the key in {where} has {len(key)} bytes, fewer than {_FEWEST_BYTES}.",
            hint=f"a short key can be found by trying; make one with {_MAKE_ONE}.",
        )
    return key
