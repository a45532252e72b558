"""One name has one meaning: what a method learns is documented alike wherever the name occurs."""

import ast
import inspect
import re
from collections import defaultdict

import pytest

from consilience import consensus, features, multiview


def documented(cls):
    """Public attributes of a class and the kind of thing that each is: its type, and its first axis."""
    section = re.search(r"Attributes\n-+\n(.*?)(?:\n\n[^\n]+\n-{3,}|\Z)", inspect.getdoc(cls), re.DOTALL)
    entries = section.group(1) if section else ""
    for names, kind in re.findall(r"^(\w[\w, ]*_) : (.*)$", entries, re.MULTILINE):
        type_ = "str" if kind.startswith("{") else re.split(r" of shape|,| or ", kind)[0]
        axis = re.search(r"of shape \((\w+)", kind)
        for name in names.split(", "):
            yield name, (type_, axis.group(1) if axis else "")


def test_a_name_has_one_type_over_all_methods():
    kinds = defaultdict(lambda: defaultdict(list))
    for subpackage in (consensus, multiview, features):
        for method in subpackage.__all__:
            for name, kind in documented(getattr(subpackage, method)):
                kinds[name][kind].append(method)
    assert len(kinds) > 30
    assert {name: dict(found) for name, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize("subpackage", [consensus, multiview, features])
def test_docstrings_have_every_parameter_with_its_default(subpackage):
    for method in subpackage.__all__:
        cls = getattr(subpackage, method)
        section = re.search(r"Parameters\n-+\n(.*?)\n\n(?=\S)", inspect.getdoc(cls), re.DOTALL).group(1)
        entries = re.findall(r"^(\w+) : .*, default=(.*)\n    \S", section, re.MULTILINE)
        given = [(name, parameter.default) for name, parameter in inspect.signature(cls).parameters.items()]
        assert [(name, ast.literal_eval(default)) for name, default in entries] == given, method
