"""Write the numbers of pages again from the kept rows, or compare them.

    python -m benchmarks pages
    python -m benchmarks pages --check

Each page has a list of its parts in `benchmarks.pages`: sentences with fields for numbers, and bodies of tables. What a
page says in words must still be true when its numbers change; read it.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks.pages import benchmarks_page, how_good, match, more_machines, onnx_page
from benchmarks.pages.statement import Body, PageError, Statement, tables_by_hand, unexplained, written

ROOT = Path(__file__).parents[2]


PARTS: Mapping[str, Callable[[], Iterable[Statement | Body]]] = {
    "README.md": match.readme_summary,
    how_good.PAGE: how_good.statements,
    benchmarks_page.PAGE: benchmarks_page.parts,
    more_machines.PAGE: more_machines.parts,
    onnx_page.PAGE: onnx_page.parts,
}
"""What computes the parts of a page, by the path of the page."""


def differences(name: str, parts: tuple[Statement | Body, ...]) -> list[str]:
    """Return the lines of a page that would change: old ones with a minus, new ones with a plus."""
    page = (ROOT / name).read_text()
    lines = difflib.unified_diff(page.splitlines(), written(page, parts).splitlines(), n=0, lineterm="")
    return [line for line in lines if line[0] in "+-" and line.strip() not in ("+++", "---")]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="change nothing; show what differs, with exit status 1")


def main(arguments: argparse.Namespace) -> None:
    found, made = [], {}
    for name, compute in PARTS.items():
        try:
            parts = made[name] = tuple(compute())
            found += [f"{name}: {line}" for line in differences(name, parts)]
            if not arguments.check:
                (ROOT / name).write_text(written((ROOT / name).read_text(), parts))
        except PageError as error:
            raise SystemExit(f"{name}: {error}") from error
    loose = unexplained((ROOT / how_good.PAGE).read_text(), made[how_good.PAGE], how_good.GIVEN)
    found += [f"{how_good.PAGE}: nothing computes {line}" for line in loose]
    tables = tables_by_hand((ROOT / benchmarks_page.PAGE).read_text(), made[benchmarks_page.PAGE])
    by_hand = [header for header in tables if header not in benchmarks_page.EXPLANATIONS]
    found += [f"{benchmarks_page.PAGE}: nothing computes the table {header}" for header in by_hand]
    print("\n".join(found) or "All numbers are those of the kept rows.")
    if found and arguments.check:
        raise SystemExit(1)
