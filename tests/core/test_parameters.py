"""Parameters said once: constructor and checks from annotations."""

import inspect
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

import pytest
from sklearn.base import BaseEstimator, clone

from consilience._support.sklearn import StrOptions
from consilience.core.parameters import Count, NonNegative, Positive, Seed, Verbose, parameters


@parameters
class Parent(BaseEstimator):
    limit: ClassVar[int] = 7
    n_clusters: Count | Literal["auto"] = field(default=8, kw_only=False)
    random_state: Seed = None


@parameters
class Child(Parent):
    n_clusters: Count = field(default=2, kw_only=False)
    theta: Positive = 0.4
    tol: NonNegative | None = None
    linkage: Literal["average", "single"] = "average"
    refine: bool = True
    n_jobs: int | None = None
    kernel: Annotated[Any, StrOptions({"rbf"}), callable] = "rbf"
    verbose: Verbose = 0


def test_constructor():
    parameters = inspect.signature(Child).parameters
    own = ["theta", "tol", "linkage", "refine", "n_jobs", "kernel", "verbose"]
    assert list(parameters) == ["n_clusters", *own, "random_state"]
    assert [p.default for p in parameters.values()] == [2, 0.4, None, "average", True, None, "rbf", 0, None]
    assert [name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY] == ["n_clusters"]
    model = Child(3, linkage="single")
    assert vars(clone(model)) == vars(model) == model.get_params()
    assert (model.n_clusters, model.linkage, model.theta) == (3, "single", 0.4)
    with pytest.raises(TypeError, match="limit"):
        Child(limit=7)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("n_clusters", 1, "auto"),
        ("random_state", 5, "five"),
        ("theta", 0.1, 0.0),
        ("tol", 0, -1.0),
        ("tol", None, "none"),
        ("linkage", "single", "ward"),
        ("refine", False, 2),
        ("n_jobs", -1, 0.5),
        ("kernel", max, "poly"),
        ("verbose", True, -1),
    ],
)
def test_checks(name, good, bad):
    Child(**{name: good})._validate_params()
    with pytest.raises(ValueError, match=f"The {name!r} parameter of Child must be"):
        Child(**{name: bad})._validate_params()


def test_a_child_may_allow_less_than_its_parent():
    Parent("auto")._validate_params()
    with pytest.raises(ValueError, match="'n_clusters'"):
        Child("auto")._validate_params()


def test_a_type_that_allows_nothing_known_is_an_error():
    with pytest.raises(KeyError, match="str"):

        @parameters
        class Vague(Parent):
            linkage: str = "average"
