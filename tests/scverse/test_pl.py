"""The embedding, by cluster and by confidence; and the page of the guide."""

import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.metrics import adjusted_rand_score

import consilience.scverse as cs
from tests.scverse.conftest import ABSENT, KEYS

mudata = pytest.importorskip("mudata", reason=ABSENT)
matplotlib.use("Agg")
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "single-cell.md"


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def merged(adata):
    cs.tl.consensus(adata, keys=KEYS, n_clusters=3, method="DAL")
    return adata


def test_two_panels_show_every_cell(merged):
    ax = cs.pl.embedding(merged, "umap")
    by_cluster, by_confidence = (panel.collections[0] for panel in ax.child_axes)
    confidence = merged.obs["consensus_confidence"].to_numpy()
    np.testing.assert_allclose(by_confidence.get_array(), np.sort(confidence)[::-1])  # the least sure on top
    # Each cell is where it should be, in the colour of its cluster.
    places = {tuple(place): i for i, place in enumerate(merged.obsm["X_umap"])}
    cells = [places[tuple(place)] for place in by_cluster.get_offsets().data]
    assert sorted(cells) == list(range(120))
    codes = merged.obs["consensus"].cat.codes.to_numpy()[cells]
    colours = [to_hex(colour).upper() for colour in by_cluster.get_facecolors()]
    assert colours == [merged.uns["consensus_colors"][code] for code in codes]


def test_one_panel_an_axis_of_ones_own_and_a_sample(merged):
    _, given = plt.subplots()
    ax = cs.pl.embedding(merged, color="confidence", max_points=50, ax=given)
    assert ax is given
    (panel,) = ax.child_axes
    assert len(panel.collections[0].get_offsets()) == 50


def test_an_embedding_of_a_modality_shows_its_cells(modalities):
    mdata = mudata.MuData(modalities)
    cs.tl.fuse_views(mdata, n_clusters=3)
    ax = cs.pl.embedding(mdata, "rna:umap")
    assert [len(panel.collections[0].get_offsets()) for panel in ax.child_axes] == [100, 100]


def test_errors_say_what_there_is(merged, modalities):
    with pytest.raises(ValueError, match=r"\.obsm has no 'X_umpa'\. Hint: did you mean 'X_umap'"):
        cs.pl.embedding(merged, "X_umpa")
    with pytest.raises(ValueError, match=r"no result called 'joint'\. Hint: run consilience\.scverse"):
        cs.pl.embedding(merged, "umap", key="joint")
    with pytest.raises(ValueError, match=r"'color' parameter of embedding must be .* Got 'fine'"):
        cs.pl.embedding(merged, "umap", color="fine")
    with pytest.raises(TypeError, match=r"takes an AnnData or MuData object\. Got DataFrame"):
        cs.pl.embedding(merged.obs)
    mdata = mudata.MuData(modalities)
    cs.tl.fuse_views(mdata, n_clusters=3)
    with pytest.raises(ValueError, match=r"no modality 'ran'\. Hint: did you mean 'rna'"):
        cs.pl.embedding(mdata, "ran:umap")


def test_the_python_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(compile(block, PAGE.name, "exec"), scope)
    assert (tmp_path / "cells.png").stat().st_size > 10_000
    assert adjusted_rand_score(scope["kind"], scope["rna"].obs["joint"]) > 0.95
