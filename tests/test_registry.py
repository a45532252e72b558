"""Methods by name: near names of the right kind, and where a method of another kind is used."""

import subprocess
import sys

import numpy as np
import pytest

from consilience import compare, fuse, fuse_views
from consilience.registry import SUBPACKAGES, kind_of, methods, resolve

TABLE = np.repeat([[0, 0], [1, 1]], 5, axis=0)
VIEWS = [np.random.default_rng(0).normal(size=(20, 3)) for _ in range(2)]


def test_every_method_is_found_by_its_name_in_any_case():
    for package, kind in SUBPACKAGES.items():
        for made in methods(f"consilience.{package}"):
            assert kind_of(made) == kind
            assert resolve(made.__name__, [kind]) is resolve(made.__name__.lower(), [kind]) is made


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fuse_views(VIEWS, 2, method="DIAMC"),
            r"of fuse_views .*views or labels. Got 'DIAMC'.*DAIMC",
        ),
        (lambda: fuse(TABLE, 2, method="LGWP"), r"of fuse must .*for labels. Got 'LGWP'.*did you mean LWGP"),
        (lambda: compare(TABLE, 2, methods=["LGWP"]), r"'method' parameter of compare .*did you mean LWGP"),
        (lambda: fuse(TABLE, 2, method="zzz"), r"Got 'zzz' instead. Hint: the names are BCE, .*USENC\."),
        (
            lambda: fuse(TABLE, 2, method="DAIMC"),
            r"DAIMC takes views.*fuse merges labels.*use it in fuse_views",
        ),
        (lambda: fuse(TABLE, 2, method="acmk"), r"ACMK takes one table of features; .*in its own fit"),
        (lambda: fuse_views(VIEWS, 2, method="ACMK"), r"ACMK takes one table .*fuse_views merges views"),
    ],
)
def test_wrong_names_are_answered_with_what_helps(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_near_names_are_of_the_right_kind():
    with pytest.raises(ValueError, match="must be") as error:
        resolve("DIAMC", ["labels"])
    assert "DAIMC" not in str(error.value).partition("Hint")[2]


def test_one_method_is_loaded_alone():
    code = (
        "import sys; from consilience.registry import resolve; resolve('EAC', ['labels', 'views']);"
        "assert 'consilience.consensus.pce' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
