"""Tools that write a consensus into AnnData and MuData."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from consilience._support.errors import InputError, InputTypeError
from consilience._support.sklearn import Interval, check_parameter, random_source
from consilience._support.values import did_you_mean, is_annotated
from consilience.results import fuse
from consilience.results import fuse_views as fuse_tables
from consilience.scverse._reading import read_modalities, require_names
from consilience.scverse._writing import write

if TYPE_CHECKING:
    from anndata import AnnData
    from mudata import MuData

    Annotated = TypeVar("Annotated", bound=AnnData | MuData)
    Modalities = TypeVar("Modalities", bound=MuData | Mapping[str, AnnData])

__all__ = ["consensus", "fuse_views"]


def consensus(
    adata: Annotated,
    keys: Sequence[str],
    n_clusters: int | Literal["auto"] = "auto",
    *,
    key_added: str = "consensus",
    method: Any = "auto",
    n_neighbors: int = 15,
    random_state: Any = 0,
    copy: bool = False,
    **options: Any,
) -> Annotated | None:
    """Merge annotations of the same cells, such as clusterings of several resolutions, into one.

    Parameters
    ----------
    adata : AnnData or MuData
        The annotated cells.
    keys : list of str
        Columns of ``.obs`` with a label for every cell, or missing where an annotation never saw a cell.
    n_clusters : int or "auto", default="auto"
        The number of clusters, or "auto" to find it.
    key_added : str, default="consensus"
        What the results are called.
    method : str or estimator, default="auto"
        As in :func:`consilience.fuse`.
    n_neighbors : int, default=15
        Neighbours of a cell in the consensus graph; 0 makes none.
    random_state : int, RandomState or None, default=0
        One seed, one answer.
    copy : bool, default=False
        Whether to return a copy with the results instead of writing into `adata`.
    **options
        More parameters of :func:`consilience.fuse`, such as ``named_after`` (the column whose labels name the
        clusters), ``negative="noise"`` (for the -1 of HDBSCAN), ``unobserved``, ``weights``, ``groups`` (of
        keys that are one graph at several resolutions and count as one).

    Returns
    -------
    adata : AnnData or MuData, or None
        None, or the copy. With ``key_added="consensus"``, there are:

        - ``.obs["consensus"]``: the clusters, a categorical of strings, "0" the largest.
        - ``.obs["consensus_confidence"]``: how sure each label is, 0 to 1.
        - ``.obs["consensus_alternative"]``: the next best cluster, missing where there is none.
        - ``.uns["consensus"]``: parameters, method and reason, warnings, and a table of the keys with their
          agreement and weight. ``.uns["consensus_colors"]``: the colours of the clusters.
        - ``.obsp["consensus_connectivities"]``: the consensus graph. Each cell is joined to the cells that
          share its label most often, among the keys that saw both, by the share of these keys. Cells whose
          labels are the same throughout are at most half of them, as long as there are others.

    Notes
    -----
    Scanpy takes the graph by ``neighbors_key="consensus"``. Without an object to write into,
    ``consilience.fuse(adata.obs[keys], n_clusters)`` gives the same as a :class:`consilience.Fusion`, which
    has a report, explains single cells and places new ones.

    The graph costs time with the square of the number of distinct rows of labels, and memory with the number
    of cells times `n_neighbors`.

    Examples
    --------
    >>> import anndata, pandas as pd
    >>> import consilience.scverse as cs
    >>> obs = pd.DataFrame({"leiden": list("aaaabbb"), "louvain": ["x", "x", "x", "y", "z", "z", None]})
    >>> adata = anndata.AnnData(obs=obs.set_index("c" + obs.index.astype(str)))
    >>> cs.tl.consensus(adata, keys=["leiden", "louvain"], n_clusters=2)
    >>> adata.obs["consensus"].tolist()
    ['0', '0', '0', '0', '1', '1', '1']
    """
    _require_annotated(adata, "consensus")
    _check_options(key_added, n_neighbors, "consensus")
    if isinstance(keys, str) or not len(keys):
        raise InputError(
            f"keys must be a list of columns of .obs. Got {keys!r} instead.",
            hint="keys=['leiden', 'louvain'].",
        )
    absent = next((key for key in keys if key not in adata.obs), None)
    if absent is not None:
        raise InputError(f".obs has no column {absent!r}.", did_you_mean(str(absent), adata.obs.columns))
    require_names(adata, "the object")
    adata = adata.copy() if copy else adata
    fusion = fuse(adata.obs[list(keys)], n_clusters, method=method, random_state=random_state, **options)
    params = {"keys": list(keys), "n_clusters": n_clusters, "method": method, "n_neighbors": n_neighbors}
    params |= {"random_state": random_state, **options}
    write([adata], fusion, key_added, params, n_neighbors, random_source(random_state))
    return adata if copy else None


def fuse_views(
    data: Modalities,
    n_clusters: int | Literal["auto"] = "auto",
    *,
    use_rep: str | Mapping[str, str] | None = None,
    layer: str | Mapping[str, str] | None = None,
    obs: Sequence[str] = (),
    key_added: str = "consensus",
    method: Any = "auto",
    n_neighbors: int = 15,
    random_state: Any = 0,
    copy: bool = False,
    **options: Any,
) -> Modalities | None:
    """Cluster cells by several modalities, each of which may lack some of them.

    Parameters
    ----------
    data : MuData, or dict of AnnData
        The modalities. Cells are known by their names, and are those that are in any of them.
    n_clusters : int or "auto", default="auto"
        The number of clusters, or "auto" to find it.
    use_rep : str or dict of modality to str, optional
        What to read of a modality: an entry of its ``.obsm``, or "X". What is left out is ``"X_pca"`` where
        there is one, and ``X`` where there is none.
    layer : str or dict of modality to str, optional
        The layer to read instead.
    obs : list of str, default=()
        Columns of ``.obs`` that are one more view, called "obs": numbers, categories and dates, such as the
        age or the tissue of a donor, with gaps. ``kind={"obs.stage": "category"}`` says how one is read.
    key_added, n_neighbors, random_state
        As in :func:`consensus`.
    method : str or estimator, default="auto"
        As in :func:`consilience.fuse_views`.
    copy : bool, default=False
        Whether to return a copy with the results, a dict if one was given, instead of writing into `data`.
    **options
        More parameters of :func:`consilience.fuse_views`, such as ``kind`` and ``view_weights``.

    Returns
    -------
    data : MuData or dict of AnnData, or None
        None, or the copy. The results are those of :func:`consensus`, in the MuData object, or in every
        AnnData of the dict for the cells that it has. ``.uns["consensus"]["views"]`` is a table of what was
        read and used of each modality.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import consilience.scverse as cs
    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat([0, 1, 2], 30)
    >>> rna, protein = (anndata.AnnData(rng.normal(5 * rng.normal(size=(3, 4))[kind])) for _ in range(2))
    >>> data = {"rna": rna[:80].copy(), "protein": protein[20:].copy()}  # 20 and 10 cells are absent
    >>> cs.tl.fuse_views(data, n_clusters=3)
    >>> data["protein"].obs["consensus"].value_counts().tolist()
    [30, 30, 10]
    """
    _check_options(key_added, n_neighbors, "fuse_views")
    is_mudata = hasattr(data, "mod") and is_annotated(data)
    if not is_mudata and not (isinstance(data, Mapping) and data and all(map(is_annotated, data.values()))):
        raise InputTypeError(
            f"fuse_views of consilience.scverse takes a MuData object or a dict of AnnData. Got "
            f"{type(data).__name__} instead.",
            hint="consilience.fuse_views takes arrays and frames.",
        )
    if copy:
        data = data.copy() if is_mudata else {name: adata.copy() for name, adata in data.items()}  # type: ignore
    views, sources = read_modalities(data, use_rep, layer, obs, options.get("kind"))
    fusion = fuse_tables(views, n_clusters, method=method, random_state=random_state, **options)
    params = {"n_clusters": n_clusters, "method": method, "n_neighbors": n_neighbors, "sources": sources}
    params |= {"random_state": random_state, **options}
    touched = [data] if is_mudata else list(data.values())
    write(touched, fusion, key_added, params, n_neighbors, random_source(random_state))
    return data if copy else None


def _require_annotated(data: Any, function: str) -> None:
    if not is_annotated(data):
        raise InputTypeError(
            f"{function} of consilience.scverse takes an AnnData or MuData object. Got {type(data).__name__} "
            "instead.",
            hint="consilience.fuse takes tables of labels.",
        )


def _check_options(key_added: Any, n_neighbors: Any, function: str) -> None:
    if not isinstance(key_added, str) or not key_added:
        raise InputError(
            f"The 'key_added' parameter of {function} must be a name. Got {key_added!r} instead.",
            hint="key_added='consensus'.",
        )
    accepted = Interval(Integral, 0, None, closed="left")
    check_parameter("n_neighbors", n_neighbors, accepted, function, hint="use 15, or 0 for no graph.")
