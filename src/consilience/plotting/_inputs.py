"""What a picture is drawn from, or an error that says what it should have been."""

from __future__ import annotations

from typing import Any

from consilience._errors import InputTypeError
from consilience.fusion import Fusion
from consilience.partitions import Partitions


def require_fusion(result: Any, function: str) -> None:
    """An error unless it is a Fusion."""
    if not isinstance(result, Fusion):
        raise InputTypeError(
            f"{function} needs a Fusion, got {type(result).__name__}.",
            hint=(
                "pass what fuse(labels, n_clusters) returned; fuse(labels, k, method=PCE()) does it by an "
                "estimator of yours."
            ),
        )


def partitions_of(result: Fusion | Partitions) -> Partitions:
    """The base clusterings of what was given."""
    if not isinstance(result, (Fusion, Partitions)):
        raise InputTypeError(
            f"a Fusion or Partitions is needed, got {type(result).__name__}.", hint="Partitions.of(labels)."
        )
    return result.partitions if isinstance(result, Fusion) else result
