"""The first ten base clusterings of a pool, whole or with labels hidden at random; its classes."""

import numpy as np

from consilience import datasets
from consilience.metrics import normalized_mutual_info_score


def first_ten(name, missing=0.0):
    """Table and classes. An instance that would lose all labels keeps its first."""
    pool = datasets.load(f"pool_{name}")
    table = pool.labels[:, :10].astype(int)
    if missing:
        hidden = np.random.default_rng(0).random(table.shape) < missing
        hidden[hidden.all(axis=1), 0] = False
        table = np.where(hidden, -1, table)
    return table, pool.y


def nmi(model, table, y):
    return normalized_mutual_info_score(y, model.fit_predict(table), normalization="max")
