"""The call that gives a result again."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from consilience.multiview.together import LabelsAndViews
from consilience.results.fusion import Fusion
from consilience.results.refitting import asked_n_clusters

_SET_BY_FUSE = ("n_clusters", "random_state", "unobserved")  # on the estimator


def call_of(fusion: Fusion) -> str:
    """The call in Python that gives these clusters again; what is too long to be written has a name."""
    if fusion.mixed is not None:
        return _call_of_both(fusion, fusion.mixed)
    by_labels = fusion.neighbours is None and not fusion.by_views
    asked: dict[str, str] = {}
    if not fusion.candidates:
        asked["method"] = _method(fusion.model)
    elif not by_labels:
        asked["method"] = repr("labels")
    if fusion.given_views is not None:
        own = {"clusterer": fusion.given_views.clusterer, "n_partitions": fusion.given_views.n_partitions}
        asked |= {name: repr(value) for name, value in own.items() if value is not None}
    settings = fusion.model.get_params(deep=False) if hasattr(fusion.model, "get_params") else {}
    if by_labels and settings.get("unobserved", "error") != "error":
        asked["unobserved"] = repr(settings["unobserved"])
    if fusion.given_weights is not None:
        asked["weights"] = repr(dict(zip(fusion.partitions.names, fusion.given_weights, strict=True)))
    if fusion.groups:
        asked["groups"] = repr({name: list(sources) for name, sources in fusion.groups.items()})
    if fusion.linked is not None:
        asked["must_link"] = "pairs"
    if fusion.apart is not None:
        asked["cannot_link"] = "pairs"
    if fusion.seed is not None:
        asked["random_state"] = str(fusion.seed)
    first = ["labels" if by_labels else "views", repr(asked_n_clusters(fusion))]
    given = [*first, *(f"{name}={value}" for name, value in asked.items())]
    then = ".update(table)" if fusion.updated is not None else ""
    return f"{'fuse' if by_labels else 'fuse_views'}({', '.join(given)}){then}"


def _call_of_both(fusion: Fusion, model: LabelsAndViews) -> str:
    given = {n: float(w) for n, w in zip(model.source_names_, model.given_, strict=True) if not np.isnan(w)}
    asked = ["labels", str(model.n_clusters), "views=views"]
    asked += [f"weights={given!r}"] if given else []
    return f"fuse({', '.join(asked)}, random_state={fusion.seed})"


def _method(model: Any) -> str:
    """The name of an estimator, or the estimator with what is set on it."""
    if not hasattr(model, "get_params"):
        return type(model).__name__
    try:
        usual = type(model)().get_params(deep=False)
    except TypeError:  # it cannot do without settings
        return repr(model)
    settings = model.get_params(deep=False)
    own = clone(model).set_params(**{name: usual[name] for name in _SET_BY_FUSE if name in settings})
    written = repr(own)
    return repr(type(model).__name__) if written == f"{type(model).__name__}()" else written
