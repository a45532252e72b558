"""How `make docs` builds the site: Markdown pages, and a reference made from the docstrings.

Everything the pages need is in the site itself. It is built and read without a network.
"""

import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util import logging

import consilience
from consilience import consensus, features, multiview

project = "consilience"
author = "The consilience developers"
copyright = author  # the name that Sphinx asks for
release = version = consilience.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True
# A word in single backticks is a link where the reference knows it, and code where it does not.
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", ".*"), ("py:.*", r"(sklearn|scipy|numpy|pandas|dask|matplotlib)\..*")]

smartquotes = False  # "auto" in quotes is something to type

myst_heading_anchors = 4

# Tutorials are notebooks. They run in every build, in a folder of their own: a cache would outlive the
# library that made it.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

html_theme = "furo"
html_title = "consilience"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "source_repository": "https://github.com/consilience-clustering/consilience/",
    "source_branch": "main",
    "source_directory": "docs/",
}
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
copybutton_exclude = ".linenos, .gp, .go"

_OF_METHODS = (consensus, multiview, features)  # a page for every method; one for all of another subpackage
_METHODS = {name: getattr(home, name) for home in _OF_METHODS for name in home.__all__}


def _solvers(estimator: type) -> list[str]:
    """The functions beside a method that state its problem: the mathematics belongs on its page."""
    found = [
        name
        for name, function in inspect.getmembers(inspect.getmodule(estimator), inspect.isfunction)
        if function.__module__ == estimator.__module__ and "Cost:" in (function.__doc__ or "")
    ]
    own = [name for name in found if name.replace("_", "") == estimator.__name__.lower()]
    return [f"{estimator.__module__}.{name}" for name in own or found]


def _page_of_method() -> dict[str, str]:
    """Method name to page, read from the pages: each opens with the calls that it is about."""
    pages = (Path(__file__).parent / "methods").glob("*.md")
    return {name: page.stem for page in sorted(pages) for name in _methods_on(page.read_text())}


def _methods_on(text: str) -> list[str]:
    return [name for name in re.findall(r"^(\w+)\(n_clusters", text, flags=re.MULTILINE) if name in _METHODS]


autosummary_context = {
    "method_subpackages": [home.__name__ for home in _OF_METHODS],
    "solvers": {f"{m.__module__.rsplit('.', 1)[0]}.{name}": _solvers(m) for name, m in _METHODS.items()},
    "method_pages": _page_of_method(),
}


def _read_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Pages are read as files in the repository too: what only the site needs is added here."""
    source[0] = source[0].replace("../benchmarks/README.md", "benchmarks.md")
    if page == "methods/index":
        # In the order of the groups on the page.
        pages = {
            page: name for name, page in reversed(re.findall(r"\[([^\[\]]+)\]\(([\w-]+)\.md\)", source[0]))
        }
        lines = "\n".join(f"{name} <{page}>" for page, name in reversed(pages.items()))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{lines}\n```\n"
    elif page == "reproduction/index":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
    elif page.startswith("methods/") and (names := _methods_on(source[0])):
        links = ", ".join(f"{{py:obj}}`{_home(name)}.{name}`" for name in names)
        source[0] += f"\n## Reference\n\nParameters, attributes and mathematics: {links}.\n"


# What a reader of a method's page came for; everything below it, such as measurements, is folded.
_OPEN = {
    "Living with a result",
    "When to use it, and when not",
    "In a picture",
    "In Python",
    "Parameters that matter",
    "What you get",
    "How it works",
    "Reference",
}


def _fold(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Sections of a method's page that are not for every reader open by a click, or by a link into them."""
    if page != "fuse" and page.removeprefix("methods/") not in autosummary_context["method_pages"].values():
        return
    for section in [
        part for top in doctree.children for part in top.children if isinstance(part, nodes.section)
    ]:
        title = section.children[0]
        if title.astext() not in _OPEN:
            section.children[:1] = [_html('<details class="fold"><summary>'), title, _html("</summary>")]
            section.append(_html("</details>"))


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def _home(name: str) -> str:
    if name in _METHODS:
        return _METHODS[name].__module__.rpartition(".")[0]
    return f"consilience.{consilience._HOME[name]}"


def _find_short_name(app: Sphinx, env: Any, node: pending_xref, shown: nodes.Element) -> nodes.Element | None:
    """Docstrings say ``consilience.PCE``, as users do; the reference has it where it lives."""
    if node.get("refdomain") != "py":
        return None
    name, _, rest = node["reftarget"].removeprefix("consilience.").partition(".")
    if name not in _METHODS and name not in consilience._HOME:
        return None
    target = ".".join(part for part in (_home(name), name, rest) if part)
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], target, node, shown)


def _skip_member(app: Sphinx, kind: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn gives every estimator, and "Alias for field number 0" of named tuples."""
    inherited = re.fullmatch("get_params|set_params|get_metadata_routing|set_output|set_.*_request", name)
    return True if inherited or str(member.__doc__).startswith("Alias for field number") else None


def _part_paragraphs(app: Sphinx, kind: str, name: str, it: Any, options: Any, lines: list[str]) -> None:
    """Solvers end in lines of symbols and of cost; on a page each is a paragraph."""
    parted = re.sub(r"^(\s*)(Symbols|Cost): ", r"\n\1**\2:** ", "\n".join(lines), flags=re.MULTILINE)
    lines[:] = parted.split("\n")


def _mathml(node: nodes.math | nodes.math_block, *, as_block: bool) -> str:
    formula = node.astext()
    try:
        found = tex2mathml(formula, as_block=as_block)
    except MathError as error:
        logging.getLogger(__name__).warning("%s in %r", error, formula, location=node)
        return ""
    # Bars grow with what stands on their right, so two of a pair would differ; LaTeX asks for it by \left.
    return (
        found
        if re.search(r"\\left(?![a-z])", formula)
        else found.replace("<mo>‖</mo>", '<mo stretchy="false">‖</mo>')
    )


def _inline_math(writer: Any, node: nodes.math) -> None:
    writer.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _displayed_math(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math" tabindex="0">{_mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline_math, None), block_renderers=(_displayed_math, None)
    )
    app.connect("source-read", _read_page)
    app.connect("doctree-resolved", _fold)
    app.connect("missing-reference", _find_short_name)
    app.connect("autodoc-skip-member", _skip_member)
    app.connect("autodoc-process-docstring", _part_paragraphs, priority=400)  # before numpydoc reads it
    return {"parallel_read_safe": True, "parallel_write_safe": True}
