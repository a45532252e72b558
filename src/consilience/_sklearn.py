"""The only file that touches scikit-learn's private names.

Parameter constraints and the sentence of a parameter error are scikit-learn's own, so that a user
meets one kind of message. They have no public home there; if they move, this file changes and no other.
"""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["Interval", "StrOptions", "fit_context"]
