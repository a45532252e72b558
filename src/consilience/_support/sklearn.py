"""scikit-learn's manners, and the only file that touches its private names.

Parameter constraints and the sentence of a parameter error are scikit-learn's own, so that a user meets one
kind of message. They have no public home there; if they move, this file changes and no other.
"""

from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.base import _fit_context as fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from consilience._support.errors import InputError

__all__ = [
    "Clusterer",
    "Embedder",
    "HasMethods",
    "Interval",
    "StrOptions",
    "Transformer",
    "check_parameter",
    "fit_context",
    "random_source",
    "seed_from",
]

if TYPE_CHECKING:

    class _Estimator:
        """What estimators have from scikit-learn, which has no types: without them, any name would pass."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def set_fit_request(self, **requests: bool | str | None) -> Self: ...
        def set_predict_request(self, **requests: bool | str | None) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...

    class Clusterer(_Estimator):
        """A clusterer."""

        def fit_predict(self, X: Any, y: Any = None, **more: Any) -> np.ndarray: ...

    class Transformer(_Estimator):
        """What makes columns of a table, and names them."""

        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

    class Embedder:
        """What a clusterer has whose `transform` gives the columns of `embedding_`."""

        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

else:

    class Clusterer(ClusterMixin, BaseEstimator):
        """A clusterer in scikit-learn's manner."""

    class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
        """A transformer in scikit-learn's manner, whose columns are its name and a number."""

    class Embedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
        """What a clusterer has whose `transform` gives the columns of `embedding_`."""

        @property
        def _n_features_out(self) -> int:
            return self.embedding_.shape[1]


def check_parameter(
    name: str, value: Any, constraint: Any, function: str, *, hint: str | None = None
) -> None:
    """Raise scikit-learn's sentence for a parameter that its constraint does not admit."""
    if not constraint.is_satisfied_by(value):
        sentence = f"The {name!r} parameter of {function} must be {constraint}. Got {value!r} instead."
        raise InputError(sentence, hint or "")


def random_source(random_state: Any) -> np.random.RandomState:
    """A generator for a seed or a generator; a fresh one for None.

    scikit-learn would take NumPy's global generator for None, and so move the user's random state.
    """
    if random_state is None:
        return np.random.RandomState()
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise InputError(
            f"The 'random_state' parameter must be an int from 0 to 2**32 - 1, a RandomState or None. Got "
            f"{random_state!r} instead.",
            hint="any number in that range will do, such as 0.",
        ) from error


def seed_from(random_state: Any) -> int:
    """The seed that was given, or one that is drawn."""
    rng = random_source(random_state)
    return int(random_state) if isinstance(random_state, Integral) else int(rng.randint(2**31))
