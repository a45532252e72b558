"""Every public function of labels takes whatever `fuse` takes."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot
from numpy.testing import assert_array_equal

import consilience
from consilience import Partitions, diagnostics, fuse, metrics, missing, plotting
from tests.planted import planted

TRUTH, CODES = planted(60, 4, 3, noise=0.2, missing=0.2, seed=1)
CODES = np.where((CODES >= 0).any(axis=1)[:, None], CODES, 0)
NAMES = list("abcd")
IDS = [f"i{n:02d}" for n in range(len(CODES))]
FRAME = pd.DataFrame(np.where(CODES >= 0, CODES, np.nan), columns=NAMES, index=IDS)
LABELS = fuse(CODES, 3, random_state=0).labels
KINDS = {
    "array": CODES,
    "floats": FRAME.to_numpy(),
    "nested list": CODES.tolist(),
    "pandas": FRAME,
    "polars": pl.DataFrame({name: FRAME[name].to_numpy() for name in NAMES}),
    "dict": {name: FRAME[name].to_numpy() for name in NAMES},
    "dict of series": {name: FRAME[name] for name in NAMES},
    "list of series": [FRAME[name] for name in NAMES],
    "Partitions": Partitions.of(CODES),
}
KINDS["scan"] = consilience.scan(FRAME)

# The parameters by which tables of labels come in, and what else a function needs.
TABLES = ("partitions", "base", "result")
GIVEN = {"labels": LABELS, "ratio": 0.2, "random_state": 0}
# Functions of one clustering each, of features, or of what was found.
OTHERS = {
    "cluster_flow", "profile", "resample_n_clusters", "drop_views", "drop_cells", "score_by_id",
    "matched_accuracy_score", "normalized_mutual_info_score", "pair_f_score", "purity_score",
    "plot_count", "plot_delta_area", "plot_pac", "plot_embedding",
}  # fmt: skip


def doors():
    for module in (diagnostics, metrics, missing, plotting):
        for name in module.__all__:
            function = getattr(module, name)
            if not inspect.isfunction(function) or name in OTHERS:
                continue
            taken = list(inspect.signature(function).parameters)
            table = next((each for each in taken if each in TABLES), None)
            if table is None and name == "drop_labels":
                table = "labels"
            if table is not None:
                yield pytest.param(function, table, id=name)


def test_there_are_doors():
    names = {each.id for each in doors()}
    assert {"choose_n_clusters", "diagnose", "ensemble_agreement", "drop_labels", "plot_missing"} <= names
    assert len(names) >= 17


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("function", "table"), list(doors()))
def test_a_function_of_labels_takes_whatever_fuse_takes(function, table, kind):
    taken = inspect.signature(function).parameters
    given = {name: value for name, value in GIVEN.items() if name in taken and name != table}
    function(**given, **{table: KINDS[kind]})
    pyplot.close("all")


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_the_same(kind):
    table = KINDS[kind]
    assert diagnostics.choose_n_clusters(table, random_state=0).n_clusters == 3
    assert metrics.ensemble_agreement(LABELS, table) == metrics.ensemble_agreement(LABELS, CODES)
    assert_array_equal(diagnostics.confidence(table, LABELS), diagnostics.confidence(CODES, LABELS))
    hidden = Partitions.of(missing.drop_labels(table, 0.3, random_state=0))
    assert_array_equal(hidden.codes, missing.drop_labels(CODES, 0.3, random_state=0))


def test_a_column_without_labels_keeps_its_place():
    table = np.column_stack([CODES[:, 0], np.full(len(CODES), np.nan), CODES[:, 1]]).astype(float)
    table[table < 0] = np.nan
    with pytest.warns(UserWarning, match="no labels"):
        found = metrics.base_agreement(LABELS, table)
    assert_array_equal(np.isnan(found), [False, True, False])
