"""Tools write what `fuse` and `fuse_views` find into the object, in slots that files can hold."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score

import consilience
import consilience.scverse as cs
from consilience import Partitions, fuse
from consilience.scverse._reading import read_modalities
from tests.scverse.conftest import ABSENT, KEYS

anndata = pytest.importorskip("anndata", reason=ABSENT)
mudata = pytest.importorskip("mudata", reason=ABSENT)


def as_codes(column):
    return column.astype(float).to_numpy(dtype=float)


def test_a_consensus_is_what_fuse_finds(adata):
    assert cs.tl.consensus(adata, keys=KEYS, n_clusters=3, random_state=4) is None
    fusion = fuse(adata.obs[KEYS], 3, random_state=4)
    assert_array_equal(as_codes(adata.obs["consensus"]), fusion.labels)
    assert_array_equal(adata.obs["consensus_confidence"], fusion.confidence)
    alternative = fusion.diagnostics.alternative
    assert_array_equal(
        as_codes(adata.obs["consensus_alternative"]), np.where(alternative < 0, np.nan, alternative)
    )
    assert adata.obs["consensus"].cat.categories.tolist() == ["0", "1", "2"]
    about = adata.uns["consensus"]
    assert about["params"]["keys"].tolist() == KEYS
    assert about["params"]["random_state"] == 4
    assert about["method"] == fusion.method
    assert about["summary"] == fusion.summary()
    assert about["base_clusterings"].index.tolist() == KEYS
    assert_array_equal(about["base_clusterings"]["agreement"], fusion.agreement)
    assert about["base_clusterings"]["coverage"].tolist() == [1.0, 1.0, pytest.approx(2 / 3)]
    assert about["candidates"]["agreement"].tolist() == [c.agreement for c in fusion.candidates]
    assert len(adata.uns["consensus_colors"]) == 3


def test_a_copy_leaves_the_object_alone(adata):
    before = adata.copy()
    found = cs.tl.consensus(adata, keys=KEYS, n_clusters=3, method="DAL", key_added="merged", copy=True)
    pd.testing.assert_frame_equal(adata.obs, before.obs)
    assert not adata.uns
    assert not adata.obsp
    assert sorted(set(found.obs) - set(adata.obs)) == ["merged", "merged_alternative", "merged_confidence"]
    assert sorted(found.uns) == ["merged", "merged_colors"]
    assert list(found.obsp) == ["merged_connectivities"]
    assert_array_equal(found.X, before.X)


def test_the_graph_joins_cells_that_share_labels(adata):
    cs.tl.consensus(adata, keys=KEYS, n_clusters=3, method="DAL", n_neighbors=5)
    graph = adata.obsp["consensus_connectivities"]
    assert sp.issparse(graph)
    assert graph.shape == (120, 120)
    assert graph.nnz <= 2 * 5 * 120
    assert (graph != graph.T).nnz == 0
    shares = Partitions.of(adata.obs[KEYS]).coassociation()
    i, j = graph.nonzero()
    np.testing.assert_allclose(graph.tocoo().data, shares[i, j], atol=1e-6)
    assert adata.uns["consensus"]["connectivities_key"] == "consensus_connectivities"


def test_no_graph_where_none_is_asked_for(adata):
    cs.tl.consensus(adata, keys=KEYS, n_clusters=3, method="DAL", n_neighbors=0)
    assert not adata.obsp
    assert "connectivities_key" not in adata.uns["consensus"]


def test_clusters_can_have_the_names_of_a_key(adata):
    cs.tl.consensus(adata, keys=KEYS, n_clusters=3, method="DAL", named_after="fine")
    assert set(adata.obs["consensus"].cat.categories) == {"type 0", "type 1", "type 2"}
    assert (adata.obs["consensus"] == adata.obs["fine"]).mean() > 0.8


def test_cells_that_no_key_saw_have_no_label(adata):
    adata.obs.loc["cell7", KEYS] = np.nan
    with pytest.raises(ValueError, match="'cell7'"):
        cs.tl.consensus(adata, keys=KEYS, n_clusters=3)
    cs.tl.consensus(adata, keys=KEYS, n_clusters=3, method="DAL", unobserved="noise")
    assert adata.obs["consensus"].isna().sum() == 1
    assert pd.isna(adata.obs.loc["cell7", "consensus"])
    assert adata.obs.loc["cell7", "consensus_confidence"] == 0
    assert adata.obsp["consensus_connectivities"][7].nnz == 0


def test_the_number_of_clusters_is_found_where_none_is_given(adata):
    with pytest.warns(UserWarning, match="clusters found, but not reliably") as warned:
        cs.tl.consensus(adata, keys=KEYS)
    assert warned[0].filename == __file__
    about = adata.uns["consensus"]
    assert about["params"]["n_clusters"] == "auto"
    assert about["n_clusters"] == len(adata.obs["consensus"].cat.categories)
    with pytest.warns(UserWarning, match="clusters found, but not reliably"):
        assert about["warnings"].tolist() == fuse(adata.obs[KEYS], "auto", random_state=0).warnings


def assert_same_results(found, expected, key="consensus"):
    names = [key, f"{key}_confidence", f"{key}_alternative"]
    pd.testing.assert_frame_equal(found.obs[names], expected.obs[names])
    assert (found.obsp[f"{key}_connectivities"] != expected.obsp[f"{key}_connectivities"]).nnz == 0
    assert_array_equal(found.uns[f"{key}_colors"], expected.uns[f"{key}_colors"])
    now, then = found.uns[key], expected.uns[key]
    assert set(now) == set(then)
    for name, value in then.items():
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(now[name], value, check_dtype=False)
        elif name == "params":
            assert {k: np.asarray(v).tolist() for k, v in now[name].items() if not isinstance(v, dict)} == {
                k: np.asarray(v).tolist() for k, v in value.items() if not isinstance(v, dict)
            }
        else:
            assert np.asarray(now[name]).tolist() == np.asarray(value).tolist(), name


@pytest.mark.filterwarnings("ignore:.*clusters found, but not reliably")
@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_results_survive_a_file(adata, tmp_path, n_clusters):
    cs.tl.consensus(adata, keys=KEYS, n_clusters=n_clusters, named_after="fine", weights={"fine": 2})
    assert len(adata.uns["consensus"]["warnings"]) == (n_clusters == "auto")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    assert_same_results(anndata.read_h5ad(tmp_path / "cells.h5ad"), adata)


def test_columns_of_mudata_are_merged_where_modalities_saw_a_cell(modalities, kind):
    mdata = mudata.MuData(modalities)
    kinds = pd.Series(kind, [f"cell{i}" for i in range(120)])
    for name, adata in mdata.mod.items():
        adata.obs["type"] = kinds[adata.obs_names].astype(str).astype("category")
        mdata.obs[f"{name}:type"] = adata.obs["type"].reindex(mdata.obs_names)
    cs.tl.consensus(mdata, keys=["rna:type", "protein:type"], n_clusters=3)
    assert adjusted_rand_score(kinds[mdata.obs_names], mdata.obs["consensus"]) == 1
    assert mdata.uns["consensus"]["base_clusterings"]["coverage"].tolist() == [100 / 120, 90 / 120]


def test_modalities_are_views_with_absent_cells(modalities, kind):
    mdata = mudata.MuData(modalities)
    assert cs.tl.fuse_views(mdata, n_clusters=3) is None
    assert mdata.n_obs == 120
    frames = {
        "rna": pd.DataFrame(modalities["rna"].obsm["X_pca"], modalities["rna"].obs_names),
        "protein": pd.DataFrame(modalities["protein"].X.toarray(), modalities["protein"].obs_names),
    }
    fusion = consilience.fuse_views(frames, 3, random_state=0)
    labels = pd.Series(fusion.labels, fusion.index)
    assert adjusted_rand_score(labels[mdata.obs_names], mdata.obs["consensus"]) == 1
    assert (
        adjusted_rand_score(pd.Series(kind, [f"cell{i}" for i in range(120)])[mdata.obs_names], labels) > 0.9
    )
    about = mdata.uns["consensus"]
    assert about["params"]["sources"] == {"rna": "obsm/X_pca", "protein": "X"}
    assert about["views"].index.tolist() == ["rna", "protein"]
    assert about["views"]["n_rows"].tolist() == [100, 90]
    assert mdata.obsp["consensus_connectivities"].shape == (120, 120)


def test_columns_of_obs_are_one_more_view(modalities, kind):
    for adata in modalities.values():
        of = adata.obs_names.str.removeprefix("cell").astype(int)
        adata.obs["tissue"] = np.array(["blood", "skin", None], dtype=object)[kind[of]]
        adata.obs["age"] = 20.0 * kind[of] + of % 7
    views, sources = read_modalities(modalities, None, None, ["tissue", "age"], {"obs.age": "number"})
    assert views.names == ("rna", "protein", "obs")
    assert sources["obs"] == "obs"
    assert views.tables[2].line.startswith("1 number (age), 1 yes/no (tissue).")
    assert views.observed[:, 2].all()
    cs.tl.fuse_views(modalities, 3, obs=["tissue", "age"])
    assert list(modalities["rna"].uns["consensus"]["views"].index) == ["rna", "protein", "obs"]
    with pytest.raises(ValueError, match=r"\.obs has no column 'tisue'\. Hint: did you mean 'tissue'"):
        cs.tl.fuse_views(modalities, 3, obs=["tisue"])


def test_each_of_a_dict_gets_the_cells_that_it_has(modalities):
    found = cs.tl.fuse_views(modalities, n_clusters=3, key_added="joint", copy=True)
    assert not any("joint" in adata.obs for adata in modalities.values())
    mdata = cs.tl.fuse_views(mudata.MuData(modalities), n_clusters=3, key_added="joint", copy=True)
    graph = mdata.obsp["joint_connectivities"].toarray()
    for adata in found.values():
        rows = mdata.obs_names.get_indexer(adata.obs_names)
        pd.testing.assert_series_equal(adata.obs["joint"], mdata.obs["joint"].iloc[rows])
        np.testing.assert_allclose(adata.obs["joint_confidence"], mdata.obs["joint_confidence"].iloc[rows])
        assert_array_equal(adata.obsp["joint_connectivities"].toarray(), graph[np.ix_(rows, rows)])


def test_representations_and_layers_are_chosen_by_modality(modalities):
    sparse, dense = (
        cs.tl.fuse_views(modalities, n_clusters=3, copy=True, use_rep={"rna": "X"}, layer=layer)["protein"]
        for layer in (None, {"protein": "dense"})
    )
    assert sparse.uns["consensus"]["params"]["sources"] == {"rna": "X", "protein": "X"}
    assert dense.uns["consensus"]["params"]["sources"] == {"rna": "X", "protein": "layers/dense"}
    assert adjusted_rand_score(sparse.obs["consensus"], dense.obs["consensus"]) == 1


def test_the_labels_of_modalities_can_be_merged(modalities):
    found = cs.tl.fuse_views(modalities, n_clusters=3, method="LWGP", n_partitions=5, copy=True)["rna"]
    about = found.uns["consensus"]
    assert about["method"] == "LWGP"
    assert len(about["base_clusterings"]) == 10
    assert set(found.obs["consensus"]) == {"0", "1", "2"}


def test_results_of_modalities_survive_a_file(modalities, tmp_path):
    mdata = mudata.MuData(modalities)
    cs.tl.fuse_views(mdata, n_clusters=3)
    mdata.write(tmp_path / "cells.h5mu")
    back = mudata.read_h5mu(tmp_path / "cells.h5mu")
    assert_same_results(back, mdata)
    assert back.uns["consensus"]["params"]["sources"] == {"rna": "obsm/X_pca", "protein": "X"}


def test_tables_are_sent_elsewhere_and_annotated_data_here(adata, modalities):
    with pytest.raises(
        TypeError, match=r"labels cannot be an AnnData object\. Hint: consilience\.scverse\.tl"
    ):
        fuse(adata, 3)
    for views in (adata, modalities, list(modalities.values()), mudata.MuData(modalities)):
        with pytest.raises(
            TypeError, match=r"views cannot be .*Data objects\. Hint: consilience\.scverse\.tl"
        ):
            consilience.fuse_views(views, 3)
    with pytest.raises(
        TypeError, match=r"takes an AnnData or MuData object\. Got DataFrame.*consilience\.fuse "
    ):
        cs.tl.consensus(adata.obs, keys=KEYS)
    for data in (adata, {"rna": adata.X}, {}):
        with pytest.raises(TypeError, match=r"takes a MuData object or a dict of AnnData\. Got"):
            cs.tl.fuse_views(data)


def test_errors_name_what_is_wrong(adata, modalities):
    with pytest.raises(ValueError, match=r"\.obs has no column 'fin'\. Hint: did you mean 'fine'\?"):
        cs.tl.consensus(adata, keys=["coarse", "fin"])
    with pytest.raises(ValueError, match=r"keys must be a list of columns of \.obs\. Got 'fine'"):
        cs.tl.consensus(adata, keys="fine")
    with pytest.raises(ValueError, match=r"'n_neighbors' parameter of consensus must be an int"):
        cs.tl.consensus(adata, keys=KEYS, n_neighbors=-1)
    with pytest.raises(ValueError, match=r"'key_added' parameter of consensus must be a name\. Got ''"):
        cs.tl.consensus(adata, keys=KEYS, key_added="")
    with pytest.raises(ValueError, match=r"modality 'protein' has no 'X_pac' in \.obsm"):
        cs.tl.fuse_views(modalities, use_rep={"protein": "X_pac"})
    with pytest.raises(ValueError, match=r"modality 'rna' has no layer 'counts'"):
        cs.tl.fuse_views(modalities, layer="counts")
    with pytest.raises(
        ValueError, match=r"use_rep names a modality 'protien'\. Hint: did you mean 'protein'"
    ):
        cs.tl.fuse_views(modalities, use_rep={"protien": "X"})
    with pytest.raises(ValueError, match=r"modality 'rna' has both a use_rep and a layer"):
        cs.tl.fuse_views(modalities, use_rep="X", layer="dense")
    modalities["rna"].obsm["X_pca"][3, 1] = np.inf
    with pytest.raises(ValueError, match=r"view 'rna' has inf in row 3 \(id 'cell3'\)"):
        cs.tl.fuse_views(modalities)


def test_cells_must_have_names_of_their_own(adata, modalities):
    for data in (adata, modalities["rna"]):
        data.obs_names = ["cell1", *data.obs_names[1:]]
    with pytest.raises(ValueError, match=r"the cell 'cell1' twice\. Hint: adata\.obs_names_make_unique\(\)"):
        cs.tl.consensus(adata, keys=KEYS, n_clusters=3)
    with pytest.raises(
        ValueError, match=r"'rna' has the cell 'cell1' twice\. Hint: adata\.obs_names_make_unique"
    ):
        cs.tl.fuse_views(modalities, n_clusters=3)


def test_modalities_that_share_genes_are_refused(modalities):
    rna = modalities["rna"]
    mdata = mudata.MuData({"a": rna[:50].copy(), "b": rna[50:].copy()}, axis=1)
    with pytest.raises(ValueError, match="share variables, not cells"):
        cs.tl.fuse_views(mdata)


def test_importing_it_loads_nothing_of_scverse():
    heavy = {"anndata", "mudata", "matplotlib"}
    code = f"import sys, consilience.scverse; print({heavy} & {{*sys.modules}})"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
