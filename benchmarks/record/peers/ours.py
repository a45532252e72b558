"""Labels by a method of ours, as an adapter of a peer gives its own: see benchmarks.record.scale."""

import sys

import numpy as np

from consilience import Partitions, consensus, fuse
from consilience.bench.runner import versions

source, target, n, m, k, method = sys.argv[1:]
print(versions())
base = np.fromfile(source, dtype=np.int16).reshape(int(m), int(n)).T
if method == "fuse":
    labels = fuse(base, int(k), random_state=0).labels
else:
    labels = getattr(consensus, method)(int(k), random_state=0).fit(Partitions.of(base)).labels_
np.asarray(labels, dtype=np.int32).tofile(target)
