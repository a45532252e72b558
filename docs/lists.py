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

import numpy as np

import consilience
from consilience._methods import SUBPACKAGES, methods
from consilience.fusion.labels import CANDIDATES

ROOT = Path(__file__).parent.parent
TARGETS = (ROOT / "README.md", ROOT / "docs" / "methods" / "index.md")
BEGIN, END = "<!-- methods -->", "<!-- end of methods -->"
LABELS, VIEWS, FEATURES = (f"consilience.{name}" for name in ("consensus", "multiview", "features"))


def page_of(method: type) -> str:
    """The page that opens with a call of the method."""
    call = re.compile(rf"^{method.__name__}\(n_clusters", flags=re.MULTILINE)
    for page in sorted((ROOT / "docs" / "methods").glob("*.md")):
        if call.search(page.read_text(encoding="utf-8")):
            return page.name
    return "index.md"


def readme() -> str:
    """By what one has, the methods that take it."""
    labels, views = methods(LABELS), methods(VIEWS)
    some = [m for m in labels if not m.about.linear]
    tried = [m for m in some if m.about.experimental]
    rows = [
        ("labels, do not want to choose", "[`fuse`](docs/fuse.md); side by side: [`compare`](docs/cli.md)"),
        ("labels, any number of instances", _linked(m for m in labels if m.about.linear)),
        (
            "labels, some thousand different rows",
            f"{_linked(m for m in some if m not in tried)}; experimental: {_linked(tried)}",
        ),
        ("one table of features", _linked(methods(FEATURES))),
        ("several tables of features, rows absent", f"[`fuse_views`](docs/guide/views.md); {_linked(views)}"),
        (
            "more than fits in memory",
            "[`consilience.dask`](docs/dask.md): the same classes over Dask collections and Parquet folders",
        ),
    ]
    return "\n".join(["| what you have | methods |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)])


def _linked(found: Iterable[type]) -> str:
    ordered = sorted(found, key=lambda m: (not m.about.featured, m.__name__.lower()))
    return ", ".join(
        f"[{'**' * m.about.featured}`{m.__name__}`{'**' * m.about.featured}](docs/methods/{page_of(m)})"
        for m in ordered
    )


def index() -> str:
    """Tables by what goes in and by cost."""
    labels, views = methods(LABELS), methods(VIEWS)
    parts = [
        ("Labels in, cost linear in the rows", [m for m in labels if m.about.linear], False),
        ("Labels in, all pairs of rows", [m for m in labels if not m.about.linear], False),
        ("Views in, no pairs of instances", [m for m in views if m.about.linear], True),
        ("Views in, all pairs of instances", [m for m in views if not m.about.linear], True),
        ("One table of features in", list(methods(FEATURES)), False),
    ]
    return "\n\n".join(f"## {title}\n\n{_table(found, new)}" for title, found, new in parts)


def _table(found: list[type], new: bool) -> str:
    """In the order of `fuse`'s candidates, then by name; `new`: whether it places new instances."""
    tried = list(CANDIDATES)
    order = {name: place for place, name in enumerate(tried)}
    found = sorted(found, key=lambda m: (order.get(m.__name__, len(tried)), m.__name__.lower()))
    head = ["method", "use it", "not when", *(["new instances"] if new else []), "cost"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for m in found:
        bold = "**" * (m.__name__ in order)
        cells = [f"{bold}[{m.__name__}]({page_of(m)}){bold}", m.about.use, m.about.avoid]
        cells[1] += " (experimental)" * m.about.experimental
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
