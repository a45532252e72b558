"""Labels by a solver of ensembleclustering, in an environment of its own: see benchmarks.record.scale."""

import json
import sys
from importlib.metadata import version

import numpy as np
from ensembleclustering import ClusterEnsembles

source, target, n, m, k, solver = sys.argv[1:]
used = ("ensembleclustering", "numpy", "scipy", "pymetis", "kahypar")
print(json.dumps({name: version(name) for name in used}))
base = np.fromfile(source, dtype=np.int16).reshape(int(m), int(n)).astype(float)
base[base < 0] = np.nan
labels = ClusterEnsembles.cluster_ensembles(base, nclass=int(k), solver=solver, random_state=0)
np.asarray(labels, dtype=np.int32).tofile(target)
