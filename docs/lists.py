"""Writes the lists of methods in the README and in docs/methods/index.md, from what the methods say, and the
stubs by which static tools know the names that are loaded when they are used.

python docs/lists.py            write them
python docs/lists.py --show     print those of README and index instead
"""

import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import consilience
from consilience.registry import SUBPACKAGES, methods
from consilience.results.selection import CANDIDATES, LIKELY

ROOT = Path(__file__).parent.parent
TARGETS = (ROOT / "README.md", ROOT / "docs" / "methods" / "index.md")
# The README is read where no page lies beside it, so its links are whole.
SITE = "https://consilience.readthedocs.io/en/latest/"
BEGIN, END = "<!-- methods -->", "<!-- end of methods -->"
TRIED = tuple(dict.fromkeys((*CANDIDATES, *LIKELY)))  # by `fuse`
LABELS, VIEWS, FEATURES = (f"consilience.{name}" for name in ("consensus", "multiview", "features"))


def page_of(method: type) -> str:
    """The page that opens with a call of the method."""
    call = re.compile(rf"^{method.__name__}\(n_clusters", flags=re.MULTILINE)
    for page in sorted((ROOT / "docs" / "methods").glob("*.md")):
        if call.search(page.read_text(encoding="utf-8")):
            return page.name
    return "index.md"


class Group(NamedTuple):
    """Methods that are looked for together."""

    title: str
    sentence: str
    methods: list[type]


def groups() -> list[Group]:
    """All methods, by what goes in and how much of it: each is in one group."""
    labels, views, features = methods(LABELS), methods(VIEWS), methods(FEATURES)
    tried = [m for m in (*labels, *views, *features) if m.about.experimental]
    sure = [m for m in labels if m not in tried]
    return [
        Group(
            "Labels, any size",
            "Time grows with the distinct label rows: at most as many as instances, often far fewer.",
            [m for m in sure if m.about.linear],
        ),
        Group(
            "Labels, small tables",
            "All pairs of distinct label rows are compared: up to some thousand of them.",
            [m for m in sure if not m.about.linear],
        ),
        Group(
            "Views",
            "Several tables of features about the same instances, with rows absent here and there.",
            [m for m in views if m not in tried],
        ),
        Group("Features", "One table of features, complete.", [m for m in features if m not in tried]),
        Group("Experimental", "To try an idea or to compare with a paper; not for work.", tried),
    ]


def readme() -> str:
    """By what one has, the methods that take it."""
    rows = [
        (
            "**start here**",
            f"[`fuse`]({SITE}fuse.html) for labels, [`fuse_views`]({SITE}guide/views.html) for tables of "
            f"features; side by side: [`compare`]({SITE}guide/which-method.html)",
        ),
        *((group.title.lower(), _linked(group.methods)) for group in groups()),
        (
            "more than fits in memory",
            f"[`consilience.dask`]({SITE}dask.html): the same classes over Dask collections and Parquet",
        ),
    ]
    return "\n".join(["| what you have | methods |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)])


def _linked(found: list[type]) -> str:
    return ", ".join(
        f"[{'**' * m.about.featured}`{m.__name__}`{'**' * m.about.featured}]"
        f"({SITE}methods/{page_of(m).removesuffix('.md')}.html)"
        for m in _ordered(found)
    )


def _ordered(found: list[type]) -> list[type]:
    """Good first choices, then the candidates of `fuse`, then by name."""
    order = {name: place for place, name in enumerate(TRIED)}
    return sorted(
        found, key=lambda m: (not m.about.start, order.get(m.__name__, len(order)), m.__name__.lower())
    )


def index() -> str:
    """A table for every group, and one of good first choices."""
    found = groups()
    first = [m for group in found for m in _ordered(group.methods) if m.about.start]
    parts = [f"## Start here\n\n{_FIRST}\n\n{_table(first)}"]
    parts += [f"## {group.title}\n\n{group.sentence}\n\n{_table(_ordered(group.methods))}" for group in found]
    return "\n\n".join(parts)


_FIRST = """Let one call choose:

- [`fuse`](../fuse.md) takes **labels**, tries the methods that suit the table, and says which answer it
  took and why;
- [`fuse_views`](../guide/views.md) takes **tables of features**, by [PSE](pse.md);
- [`compare`](../guide/which-method.md) shows several methods side by side, without true classes.

To choose a method yourself, begin with one of these:"""


def _table(found: list[type]) -> str:
    """In bold: candidates of `fuse`. Of views it says whether new instances can be placed."""
    views = [m for m in found if m.__module__.startswith(VIEWS)]
    new = len(views) == len(found)
    head = ["method", "use it", "not when", *(["new instances"] if new else []), "cost"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for m in found:
        bold = "**" * (m.__name__ in TRIED)
        cells = [f"{bold}[{m.__name__}]({page_of(m)}){bold}", m.about.use, m.about.avoid]
        cells += ["yes" if hasattr(m, "predict") else "no"] if new else []
        most = getattr(m, "max_rows", getattr(m, "max_instances", np.inf))
        cells.append(m.about.cost + (f"; at most {int(most)}" if np.isfinite(most) else ""))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def stubs() -> dict[Path, str]:
    """What every package with lazy names has to offer, in the words of static tools."""
    package = Path(consilience.__file__).parent
    written = {}
    for name in SUBPACKAGES:
        base = {"consensus": "LabelMethod", "multiview": "ViewMethod"}.get(name)
        lines = [
            f"from {m.__module__} import {m.__name__} as {m.__name__}" for m in methods(f"consilience.{name}")
        ]
        lines += [f"from consilience.{name}.base import {base} as {base}"] if base else []
        written[package / name / "__init__.pyi"] = _stub(lines)
    written[package / "dask" / "__init__.pyi"] = _stub_of_mirrors()
    public = {n: getattr(consilience, n) for n in dir(consilience) if not n.startswith("_")}
    modules = sorted(n for n, value in public.items() if inspect.ismodule(value))
    others = [n for n in public if n not in modules]
    lines = [f"from {public[n].__module__} import {n} as {n}" for n in others]
    lines += [f"from consilience import {n} as {n}" for n in modules]
    written[package / "__init__.pyi"] = _stub([*lines, "__version__: str"])
    return written


def _stub_of_mirrors() -> str:
    """The methods of `consilience.dask`, which are made from those in memory when it is loaded."""
    mirrors = consilience.dask.consensus.MIRRORS
    own = [n for n in consilience.dask.__all__ if n not in mirrors and n != "PCE"]
    imports = [f"from {getattr(consilience.dask, n).__module__} import {n} as {n}" for n in own]
    imports += [
        "from consilience import consensus",
        "from consilience.core.parameters import parameters",
        "from consilience.dask.consensus import BlocksMixin",
    ]
    lazy = [f"    {name}_: Any" for name in consilience.dask.consensus._PER_INSTANCE]
    lines = ["class _OnBlocks(BlocksMixin):", *lazy, "    def fit(self, X: Any, y: Any = None) -> Self: ..."]
    for name in ["PCE", *mirrors]:
        more = ["    checkpoint: str | PathLike[str] | None = ..."] if name == "PCE" else []
        lines += [
            "",
            "@parameters",
            f"class {name}(_OnBlocks, consensus.{name}):  # type: ignore[misc]",
            "    max_distinct: int = ...",
            *more,
        ]
    before = ["from os import PathLike", "from typing import Any, Self", ""]
    return _stub([*imports, *lines, ""], before)


def _stub(lines: list[str], before: Iterable[str] = ()) -> str:
    """Imports under their own names are what a package offers; `before` them stand those of Python."""
    imports = sorted(line for line in lines if line.startswith("from"))
    rest = [line for line in lines if not line.startswith("from")]
    return "\n".join(["# Written by docs/lists.py.", *before, *imports, "", *rest, "__all__: list[str]", ""])


def main() -> None:
    """Write the lists between their marks and the stubs, or show the lists."""
    if "--show" not in sys.argv:
        for path, text in stubs().items():
            path.write_text(text, encoding="utf-8")
    for path, text in zip(TARGETS, (readme(), index()), strict=True):
        if "--show" in sys.argv:
            print(text)
            continue
        old = path.read_text(encoding="utf-8")
        before, rest = old.split(BEGIN)
        _, after = rest.split(END)
        path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
