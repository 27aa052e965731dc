"""Every source that is cited can be opened: files and headings named in code and pages exist."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks", "docs", "examples")
PATTERNS = ("*.md", "Makefile", ".ci/run", *(f"{folder}/**/*.{kind}" for folder in FOLDERS for kind in ("py", "md")))
FILES = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))

_PATH = re.compile(
    rf"(?<![\w./-])(?P<path>(?:{'|'.join(FOLDERS)})/[\w./*-]*[\w*])"
    r"(?:#(?P<anchor>[\w-]+)|,\s+section\s+(?P<section>\w+))?"
)
_PLACEHOLDER = re.compile(r"(?<![A-Za-z])(?!README)[A-Z]{3,}(?![A-Za-z])")
"""NAME in ``run_NAME.py``: any name will do."""

_OUTSIDE = re.compile(r"(?<![\w./-])(?:(?:\.\./)*spec/|(?:\.\./)+shared/|shared/(?:data|papers)\b)")
"""Folders that the project does not have."""

_MODULE = re.compile(r"python -m (benchmarks(?:\.\w+)*)")

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


class Mention(NamedTuple):
    """A path that a file names, with the heading it asks for."""

    line: int
    path: str
    anchor: str | None


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def texts(path: Path) -> tuple[tuple[int, str], ...]:
    """Return the first line and the text of what people read: a page; comments and docstrings of a module.

    Of the package and the benchmarks also other strings, since messages cite pages as well; those of tests may name
    files that the test writes.
    """
    content = path.read_text(encoding="utf-8")
    return tuple(texts_of_module(path, content)) if path.suffix == ".py" else ((1, content),)


def texts_of_module(path: Path, content: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    is_test = path.is_relative_to(ROOT / "tests")
    for node in ast.walk(ast.parse(content)):
        if is_test and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node = node.value  # docstrings, of constants too
        elif is_test:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


@cache
def mentions(path: Path) -> list[Mention]:
    return [
        Mention(line + text.count("\n", 0, match.start()), match["path"], match["anchor"] or match["section"])
        for line, text in texts(path)
        for match in _PATH.finditer(text)
    ]


def titles(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)


@cache
def anchors(page: Path) -> set[str]:
    """Return the names of the headings of a page as GitHub links them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles(page)}


def opens(mention: Mention) -> bool:
    """Tell whether the file or folder exists, and its heading."""
    found = list(ROOT.glob(_PLACEHOLDER.sub("*", mention.path)))
    if mention.anchor is None:
        return bool(found)
    return any(page.suffix == ".md" and mention.anchor.lower() in anchors(page) for page in found)


def test_what_is_cited_exists():
    missing = {name_of(path): [found for found in mentions(path) if not opens(found)] for path in FILES}
    assert {name: found for name, found in missing.items() if found} == {}


def test_the_check_finds_citations():
    """It would be easy for the test above to look for nothing."""
    cited = {(mention.path, mention.anchor) for path in FILES for mention in mentions(path)}
    assert ("docs/papers/divbo.md", "samples-of-the-surrogate") in cited
    assert sum(anchor is not None for _, anchor in cited) > 30


def test_headings_of_a_page_have_names_of_their_own():
    """Two headings of one name would share their anchor."""
    for page in (ROOT / "docs").rglob("*.md"):
        assert len(titles(page)) == len(anchors(page)), name_of(page)


def test_nothing_outside_the_repository_is_named():
    found = {
        name_of(path): [line for line in path.read_text(encoding="utf-8").splitlines() if _OUTSIDE.search(line)]
        for path in FILES
        if path != Path(__file__)
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_no_default_path_leads_out_of_the_repository():
    found = {
        name_of(path): [text for _, text in texts(path) if text.startswith("../")]
        for path in FILES
        if path.suffix == ".py"
    }
    assert {name: paths for name, paths in found.items() if paths} == {}


def test_modules_in_commands_exist():
    named = {module for path in FILES for _, text in texts(path) for module in _MODULE.findall(text)}
    assert len(named) > 3
    places = {module: ROOT / Path(*module.split(".")) for module in named}
    runnable = {module: (place.with_suffix(".py"), place / "__main__.py") for module, place in places.items()}
    assert [module for module, files in runnable.items() if not any(file.exists() for file in files)] == []


@pytest.mark.parametrize("text", ["`spec/divbo.md` 3.4", "(shared/data)", "--data ../shared/data", "../../spec/tables"])
def test_folders_outside_are_recognised(text):
    assert _OUTSIDE.search(text)


@pytest.mark.parametrize("text", ["strategies/shared/drawing.py", "`shared/` holds what they share", "datasets/data/"])
def test_folders_inside_are_not(text):
    assert not _OUTSIDE.search(text)


@pytest.mark.parametrize(
    ("path", "anchor", "expected"),
    [
        ("docs/papers/divbo.md", None, True),
        ("docs/papers/divbo.md", "weight-of-the-diversity", True),
        ("docs/papers/divbo.md", "no-such-heading", False),
        ("docs/papers/no_such_page.md", None, False),
        ("docs/benchmarks.md", "Tables", True),
        ("benchmarks/peers/runners/run_NAME.py", None, True),
    ],
)
def test_the_check_notices_what_is_missing(path, anchor, expected):
    assert opens(Mention(1, path, anchor)) is expected
