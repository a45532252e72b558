"""AnnData and MuData: a consensus of annotations, and of modalities, written into the object itself.

.. code-block:: python

   import consilience.scverse as cs

   cs.tl.consensus(adata, keys=["leiden_0.5", "leiden_1", "celltypist"], n_clusters=8)
   cs.tl.fuse_views(mdata, n_clusters=8)
   cs.pl.embedding(adata, "X_umap")

Needs ``pip install 'consilience[scverse]'``. In the habit of scverse, tools return nothing and write into the
object that they are given: labels, confidence and the next best cluster into ``.obs``, how they were found
into ``.uns``, the consensus graph into ``.obsp``.
"""

from consilience.scverse import pl, tl

__all__ = ["pl", "tl"]
