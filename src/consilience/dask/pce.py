"""PCE on tables larger than memory: by distinct rows where they fit, else block by block."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from consilience import consensus
from consilience._support.errors import Hint, InputError, Phrase
from consilience._support.sklearn import random_source
from consilience._support.threads import one_thread
from consilience._support.warnings import warn
from consilience.core.canonical import Numbering
from consilience.dask.aggregate import Order, Table, canonical_order
from consilience.dask.blocks import Blocks
from consilience.dask.checkpoint import Checkpoint
from consilience.dask.consensus import on_blocks
from consilience.dask.engine import Engine
from consilience.dask.pce_blocks import Job, Model, Settings, Solution, close, rotate_blocks, solve, start
from consilience.dask.rows import Kept, RowValues
from consilience.evidence.partitions import Partitions
from consilience.inference.posterior import Evidence

# Blocks add up tables of all pairs of base clusters: 50 MB each at this many.
_MAX_BASE_CLUSTERS = 2_500


class Closed(NamedTuple):
    """What predictions rest on where no instance is in memory."""

    evidence: Evidence
    fitted: None = None  # rows that were clustered are not there to be known again


class PCE(on_blocks(consensus.PCE, checkpoint=None)):  # type: ignore[misc]
    """Partial clustering ensemble on a table in blocks: a dask collection, Parquet files, a list of blocks.

    One pass shrinks every block to its distinct label rows with counts. If all of them together are at most
    `max_distinct`, they are solved in memory and the answer goes back to the blocks. Otherwise the rows stay
    in their blocks and every iteration is two passes with a small sum over blocks. Both give the labels of
    :class:`consilience.PCE` on the whole table.

    With an active ``distributed.Client``, Parquet files and dask collections are worked on by its workers,
    otherwise (and lists of blocks always) by this process, one block after the other.

    Parameters
    ----------
    n_clusters, init, gamma, n_init, self_paced, diversity, discretize, unobserved, max_iter, tol, verbose, \
random_state
        See :class:`consilience.PCE`. ``n_clusters="auto"`` needs the distinct rows in memory.
    imputation : {"learned"}, default="learned"
        Labels drawn at random for every instance would make no two rows equal: "random" is refused.
    max_distinct : int, default=5_000_000
        The most distinct label rows that are solved in memory. A row takes about ``2 m + 24 c`` bytes there,
        for m base clusterings and c clusters.
    checkpoint : path, default=None
        A folder for the block path. A run that was interrupted goes on from its last iteration when it is
        given the same folder, input and parameters. All workers must see the folder.

    Attributes
    ----------
    labels_, confidence_, reliability_ : dask series, dask array or BlockArray
        As in :class:`consilience.PCE`, aligned with the input and computed when asked for. A dask dataframe
        gives series with its index, a dask array gives arrays, anything else a `BlockArray`.
    embedding_ : dask array or BlockArray
        The consensus embedding H.
    base_weights_, rotations_, rotation_, objective_, certified_, n_clusters_, n_iter_, n_features_in_
        As in :class:`consilience.PCE`.
    path_ : {"distinct rows", "blocks"}
        How it was solved, and ``path_reason_`` why.

    Notes
    -----
    On the block path the start compares rotations on 5000 rows also for ``n_init=1``, where the estimator in
    memory takes all. There is no ``imputed_``.

    Examples
    --------
    >>> from consilience.dask import PCE
    >>> first = [["a", "x", None], ["a", "x", "u"], ["a", None, "u"], ["a", "x", "u"]]
    >>> second = [["b", "y", "v"], ["b", None, "v"], [None, "y", "v"]]
    >>> model = PCE(n_clusters=2, random_state=0).fit([first, second])
    >>> [block.tolist() for block in model.labels_]
    [[0, 0, 0, 0], [1, 1, 1]]
    >>> model.path_
    'distinct rows'
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        **on_blocks(consensus.PCE)._parameter_constraints,  # type: ignore[attr-defined]
        "checkpoint": [str, os.PathLike, None],
    }

    def _fit(self, blocks: Blocks, engine: Engine, table: Table) -> Any:
        if self.imputation == "random":
            raise InputError(
                "imputation='random' draws labels for every instance and cannot work on distinct rows.",
                hint="use imputation='learned', or consilience.PCE on a table in memory.",
            )
        return super()._fit(blocks, engine, table)

    def _fit_blocks(self, blocks: Blocks, engine: Engine, table: Table) -> None:
        if self.n_clusters == "auto":
            raise InputError(
                Phrase(
                    "{n_clusters=auto} needs the distinct label rows in memory, and there are more than "
                    "max_distinct={most}.",
                    most=self.max_distinct,
                ),
                hint=Hint("give {n_clusters}, or raise max_distinct.", command="give {n_clusters}."),
            )
        partitions = table.partitions
        self._check_base_clusters(partitions)
        if partitions.offsets[-1] > _MAX_BASE_CLUSTERS:
            raise InputError(
                f"the base clusterings have {partitions.offsets[-1]} clusters in all, PCE on blocks takes "
                f"at most {_MAX_BASE_CLUSTERS}.",
                hint="use fewer or coarser base clusterings, or raise max_distinct.",
            )
        with one_thread("blas"):  # small factorisations are slower in threads
            order = canonical_order(engine, blocks, table)
            found, rotation = self._solve_blocks(blocks, engine, table, order)
            closing, evidence = close(engine, found.states, rotation, order.offsets)
        if not found.converged:
            warn(
                f"PCE did not converge in {self.max_iter} iterations.",
                ConvergenceWarning,
                hint="raise max_iter or tol.",
            )
        model = found.model
        self._name_columns(table)
        self.partitions_ = partitions
        self.n_clusters_ = self.n_clusters
        self._answer = Closed(_as_given(evidence, partitions, order))
        self.base_weights_ = np.zeros(partitions.n_columns)
        self.base_weights_[list(order.terms.columns)] = model.alpha
        back = np.argsort(order.clusters)
        self.rotations_ = np.split(model.table[back], partitions.offsets[1:-1])
        self.rotation_ = rotation[:, np.argsort(closing.number)]
        self.objective_ = model.objective
        self.certified_ = model.certified
        self.n_iter_ = model.n_iter
        self.path_ = "blocks"
        self.path_reason_ = (
            f"more than max_distinct={self.max_distinct} distinct label rows of {table.n_rows}: the rows "
            f"stayed in their {len(table.sizes)} blocks"
        )
        unseen = 0 if self.unobserved == "largest" else -1
        key = Kept(order.terms, closing, evidence, unseen)
        shapes: dict[str, Any] = dict.fromkeys(("confidence", "reliability"), (float, ()))
        shapes |= {"labels": (np.int64, ()), "embedding": (float, (self.n_clusters,))}
        self._keep(RowValues(blocks, engine, key, found.states, table.sizes), shapes)

    def _solve_blocks(
        self, blocks: Blocks, engine: Engine, table: Table, order: Order
    ) -> tuple[Solution, np.ndarray]:
        """Start, or go on from the checkpoint; iterate; the rotation that gives the labels."""
        given = {"joint": self.discretize == "joint", **self.get_params()}
        kinds = get_type_hints(Settings)
        settings = Settings(*(kinds[name](given[name]) for name in Settings._fields))
        n = float(table.n_rows - table.n_unseen)
        job = Job(engine, order.offsets, n, settings, random_source(self.random_state))
        run = {"input": table.fingerprint, **settings._asdict()}
        checkpoint = None if self.checkpoint is None else Checkpoint(self.checkpoint)
        engine.folder = engine.scratch() if checkpoint is None else str(checkpoint.folder)
        earlier = None if checkpoint is None else checkpoint.load(run, len(table.sizes))
        model, states = earlier or start(job, blocks.parts, order.terms)

        def save(model: Model, states: list[Any]) -> None:
            if checkpoint is not None:
                checkpoint.save(run, model, states)
            if self.verbose:
                self._progress(model.n_iter, float(model.objective[-1]))

        found = solve(job, states, model, save)
        return found, found.model.rotation if settings.joint else rotate_blocks(job, found.states)

    @property
    def imputed_(self) -> Any:
        """Not there: a completed table would be as large as the input."""
        raise AttributeError(
            "PCE on blocks has no imputed_. Hint: complete the blocks of interest in memory."
        )


def _as_given(evidence: Evidence, partitions: Partitions, order: Order) -> Evidence:
    """Evidence that reads rows of the table, whose base clusterings and clusters are in another order."""
    bases = np.array([partitions.columns.index(column) for column in order.terms.columns])
    return evidence._replace(numbering=Numbering(bases, order.clusters, order.offsets))
