"""What a picture is drawn from, or an error that says what it should have been."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import did_you_mean
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import label_counts
from consilience.results import Fusion


def require_fusion(result: Any, function: str, *, labels: bool = False) -> None:
    """An error unless it is a Fusion; with `labels`, one of base clusterings."""
    if not isinstance(result, Fusion):
        raise InputTypeError(
            f"{function} needs a Fusion, got {type(result).__name__}.",
            hint=(
                "pass what fuse(labels, n_clusters) returned; fuse(labels, k, method=PCE()) does it by an "
                "estimator of yours."
            ),
        )
    if labels and not result.partitions.n_partitions:
        raise InputTypeError(
            f"{function} shows base clusterings, and there are none: {result.method} clustered the views "
            "themselves.",
            hint='draw plot_views or plot_confidence, or use fuse_views(..., method="labels").',
        )


def partitions_of(result: Any, function: str) -> Partitions:
    """The base clusterings of a fusion, or of whatever `fuse` takes."""
    if not isinstance(result, Fusion):
        return Partitions.of(result, unobserved="keep")
    require_fusion(result, function, labels=True)
    return result.partitions


def chosen_bases(partitions: Partitions, bases: bool | str | Sequence[str], function: str) -> list[int]:
    """Numbers of the base clusterings that were named; True is all of them."""
    if isinstance(bases, bool):
        return list(range(len(partitions.names))) if bases else []
    wanted = [bases] if isinstance(bases, str) else list(bases)
    for name in wanted:
        if name not in partitions.names:
            raise InputError(
                f"{function}: there is no base clustering {name!r}.",
                hint=did_you_mean(str(name), partitions.names),
            )
    return [partitions.names.index(name) for name in wanted]


def base_cluster_colors(fusion: Fusion) -> list[np.ndarray]:
    """For every base clustering and label of it: the cluster that most of its members are in.

    Base clusters have no colours of their own: in that of their cluster one sees where they agree.
    """
    offsets = fusion.partitions.offsets
    most = label_counts(fusion.label_rows, offsets).argmax(axis=1)
    return [most[a:b] for a, b in pairwise(offsets)]
