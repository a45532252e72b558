"""The consensus function of ultra-scalable ensemble clustering (U-SENC)."""

from __future__ import annotations

from typing import ClassVar

from consilience.consensus.hbgf import HBGF
from consilience.core.parameters import Count, parameters
from consilience.registry import About


@parameters
class USENC(HBGF):
    """The consensus function of ultra-scalable ensemble clustering: a cut at a cost linear in the rows.

    Instances are linked to the base clusters they are in; the eigenvectors of the graph come from the base
    clusters' side, which is small. Use it for very large tables, complete or with many labels missing. It
    takes labels, made by any clusterer (see :func:`consilience.generate.base_partitions`); the base
    clusterer of the paper, U-SPEC, is not part of this class. The cut is that of :class:`HBGF` in its
    default, with the three starts of k-means that the authors' program makes.

    Parameters
    ----------
    n_init : int, default=3
        Starts of k-means on the eigenvectors; the best is kept.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, width)
        Instances on the unit sphere, before k-means; zero for an unobserved instance.
    partitioner_ : str
        What made the cut: "spectral".

    Notes
    -----
    Where this differs from the paper: the base clusterings are given instead of made from features; it runs
    on distinct label rows with counts, which is exact up to the starts of k-means; missing labels are links
    that are not there.

    Cost: an eigenproblem of the size of all base clusters, rows x bases x n_clusters, and k-means.

    References
    ----------
    D. Huang, C.-D. Wang, J.-S. Wu, J.-H. Lai, C.-K. Kwoh: Ultra-Scalable Spectral Clustering and Ensemble
    Clustering. IEEE TKDE, 2020.

    Examples
    --------
    >>> from consilience import USENC
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = USENC(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="HBGF with fewer starts",
        avoid="",
        cost="as HBGF",
        paper="Huang, Wang, Wu, Lai, Kwoh: Ultra-Scalable Spectral Clustering and Ensemble Clustering. "
        "IEEE TKDE, 2020.",
        linear=True,
    )

    n_init: Count = 3
    balance: ClassVar = "free"  # type: ignore[misc]  # no parameter of this one
