"""Cells in AnnData and MuData: two modalities, of which each lacks some cells.

Fixtures import anndata by themselves: test files are left out where it is not installed, this one cannot be.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

ABSENT = "anndata and mudata, of the extra 'scverse', are not installed"
KEYS = ["coarse", "fine", "partial"]


@pytest.fixture(autouse=True)
def quiet_mudata():
    import mudata

    mudata.set_options(pull_on_update=False)  # what its next version does by itself


@pytest.fixture
def kind():
    """What the cells are."""
    return np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [50, 40, 30]))


@pytest.fixture
def adata(kind):
    """120 cells with three annotations; the last never saw forty of them."""
    import anndata

    rng = np.random.default_rng(1)
    fine = np.where(rng.random(120) < 0.9, kind, rng.integers(3, size=120))
    obs = pd.DataFrame(
        {
            "coarse": np.where(kind == 2, "myeloid", "lymphoid"),
            "fine": pd.Categorical([f"type {c}" for c in fine]),
            "partial": pd.Series(kind.astype(float)).where(np.arange(120) < 80),
        }
    ).set_index(pd.Index([f"cell{i}" for i in range(120)]))
    adata = anndata.AnnData(rng.normal(4 * rng.normal(size=(3, 12))[kind]), obs=obs)
    adata.var_names = [f"gene{j}" for j in range(12)]
    adata.obsm["X_pca"] = adata.X[:, :6] + 0.0
    adata.obsm["X_umap"] = rng.normal(size=(120, 2))
    return adata


@pytest.fixture
def modalities(adata, kind):
    """Genes of the first 100 cells, and proteins of the last 90 in another order."""
    import anndata

    rng = np.random.default_rng(2)
    rows = rng.permutation(np.arange(30, 120))
    counts = rng.poisson(np.exp(rng.normal(size=(3, 40)))[kind])[rows]
    protein = anndata.AnnData(sp.csr_matrix(counts.astype(np.float32)), obs=adata.obs.iloc[rows, :0].copy())
    protein.var_names = [f"protein{j}" for j in range(40)]
    protein.layers["dense"] = protein.X.toarray()
    return {"rna": adata[:100].copy(), "protein": protein}
