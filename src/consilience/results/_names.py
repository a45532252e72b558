"""Names of clusters: taken from the labels of a base clustering, or given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import counted, did_you_mean
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import JointRows, label_counts
from consilience.io.labels import is_negative


def base_named(partitions: Partitions, name: Any) -> int:
    """The position of a base clustering."""
    if str(name) not in partitions.names:
        raise InputError(
            f"named_after={name!r} is not a base clustering with labels.",
            did_you_mean(str(name), partitions.names),
        )
    return partitions.names.index(str(name))


def names_after(partitions: Partitions, rows: JointRows, base: int) -> tuple[str, ...]:
    """Clusters under the labels of a base clustering, each label once, so that as many instances as possible
    are in a cluster of their label's name; clusters that are left over keep their number."""
    low, high = list(pairwise(partitions.offsets.tolist()))[base]
    labels = partitions.categories[base]
    shared = label_counts(rows, partitions.offsets)[low:high].T
    shared[:, [is_negative(label) for label in labels]] = 0.0  # noise is the name of no cluster
    cluster, label = linear_sum_assignment(shared, maximize=True)
    overlap = shared[cluster, label] > 0
    wanted = {c: str(labels[j]) for c, j in zip(cluster[overlap], label[overlap], strict=True)}
    taken: dict[str, int] = {}
    for c in sorted(range(rows.n_clusters), key=lambda c: (c not in wanted, c)):
        name = wanted.get(c, str(c))
        while name in taken:  # a label may be called as a cluster that is left over
            name = f"cluster {name}"
        taken[name] = c
    return tuple(sorted(taken, key=taken.__getitem__))


def given_names(names: Mapping[int, str] | Sequence[str], before: tuple[str, ...]) -> tuple[str, ...]:
    """Names as they were given, for all clusters or for some."""
    if isinstance(names, Mapping):
        for number in names:
            if not isinstance(number, Integral) or not 0 <= number < len(before):
                raise InputError(
                    f"there is no cluster {number!r}.", hint=f"clusters are numbered 0 to {len(before) - 1}."
                )
        new = [names.get(c, name) for c, name in enumerate(before)]
    elif isinstance(names, str) or not isinstance(names, Sequence | np.ndarray):
        raise InputTypeError(
            f"names must be a list or a dict. Got {names!r}.",
            hint="give one for each cluster, or a dict such as {0: 'loyal'}.",
        )
    else:
        new = list(names)
        if len(new) != len(before):
            raise InputError(
                f"{counted(len(new), 'name')} for {counted(len(before), 'cluster')}.",
                hint="one for each, or a dict such as {0: 'loyal'} for some.",
            )
    for c, name in enumerate(new):
        if not isinstance(name, str) or not name.strip():
            raise InputTypeError(f"the name of cluster {c} is {name!r}.", hint="names are text.")
        if name in new[:c]:
            raise InputError(
                f"clusters {new.index(name)} and {c} are both named {name!r}.", hint="a name for each."
            )
    return tuple(str(name) for name in new)
