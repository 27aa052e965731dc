"""The pages in docs/papers cannot go stale: what they name exists, and what the code cites they list.

The tables that are checked have a column "function" (names below `cashmere`, or in `benchmarks`) and a column "test";
those with a column "ours" hold the papers' tables and figures. The first column of either names equations, algorithms,
tables, figures and appendices; "bears on" names tables and figures.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from benchmarks.experiments.divbo.methods import AS_PUBLISHED
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space.named.registry import SPACES, make_space
from cashmere.strategies import STRATEGIES, cite, make_strategy

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cashmere"
INDEX = ROOT / "docs" / "papers" / "README.md"
PAPERS = ("divbo", "optdivbo", "dacopt", "latent")
SHARED = ("problem", "surrogates", "baselines")
PAGES = {**{page: INDEX.with_name(f"{page}.md") for page in (*PAPERS, *SHARED)}, "index": INDEX}
PUBLISHED = ROOT / "benchmarks" / "published"
VECTORS = sorted((ROOT / "tests" / "vectors").glob("*.json"))

STRATEGY_OF = {"divbo": "divbo", "optdivbo": "optdivbo", "dacopt": "dac_hb", "latent": "latent"}
"""The strategy whose reference is that of the page."""

UNCITED = {
    ("latent", "algorithm", "1"): "the search as a whole, which is what `strategies.latent` holds",
    ("latent", "equation", "7"): "`acquisition.local_search` is not of the paper alone: SMAC uses it, too",
    ("latent", "equation", "8"): "the expected improvement, whose source is Jones et al. (1998)",
}
"""Equations on a page that no docstring of the row's functions cites, and why not."""

# What tells, in a docstring, which paper a citation belongs to: the nearest one before it.
_MARKS = {
    "divbo": r"Shen[^()]*\(?2022\b\)?|\bDivBO\b|docs/papers/divbo\.md",
    "optdivbo": r"Poduval[^()]*\(?2024\b\)?|\bOptDivBO\b|[Oo]ptimal diversit|docs/papers/optdivbo\.md",
    "dacopt": r"Nguyen[^()]*\(?2022\b\)?|\bDACOpt\b|docs/papers/dacopt\.md",
    "latent": r"Ishikawa[^()]*\(?2025\b\)?|docs/papers/latent\.md",
    "another": r"\((?:19|20)\d\d\)",
}
_PAPER_OF_FILE = {"pretraining/building.py": "latent"}
"""Files that cite numbers and leave it to the modules they put together to name the paper."""

_NUMBERS = r"\d+(?:\s*(?:,|-|to|and)\s*\d+)*"
_CITATION = re.compile(
    rf"\b(?i:(?P<kind>eq|alg|equation|algorithm|table|fig|figure)s?\.?)\s+(?P<numbers>{_NUMBERS})"
    r"|\b(?i:appendix)\s+(?P<appendix>[A-Z](?:\.\d+)?)\b"
)
_KINDS = {"eq": "equation", "alg": "algorithm", "fig": "figure"}
_TICKS = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Place = tuple[str, str]
"""Kind and number of what a paper numbers: ("equation", "5")."""


class Citation(NamedTuple):
    """A docstring's mention of a paper's equation, algorithm, table, figure or appendix."""

    paper: str
    place: Place
    file: str
    owner: str  # qualified name of what has the docstring; "" for the module


class Row(NamedTuple):
    """A line of a table."""

    page: str
    columns: dict[str, str]
    first: str

    @property
    def names(self) -> list[str]:
        """Dotted names in the column "function"."""
        return [tick for tick in _TICKS.findall(self.columns["function"]) if re.fullmatch(r"\w+(\.\w+)+", tick)]

    @property
    def paths(self) -> list[Path]:
        return [ROOT / tick for tick in _TICKS.findall(self.columns["test"])]


def places(text: str) -> list[tuple[int, Place]]:
    """Return where a text cites what; "equations 2-4" and "eq. 2 to 4" are three places, "Figures 1 and 5" two."""
    found = []
    for match in _CITATION.finditer(text):
        if match["appendix"]:
            found.append((match.start(), ("appendix", match["appendix"])))
            continue
        kind = _KINDS.get(match["kind"].lower(), match["kind"].lower())
        for part in re.split(r"\s*(?:,|and)\s*", match["numbers"]):
            ends = [int(number) for number in re.findall(r"\d+", part)]
            found += [(match.start(), (kind, str(n))) for n in range(ends[0], ends[-1] + 1)]
    return found


def marks(text: str) -> list[tuple[int, str]]:
    """Return where a text has named a paper, and which, in order."""
    found: dict[int, str] = {}
    for paper, mark in _MARKS.items():  # "another" comes last, and has its say where no other knows the authors
        for match in re.finditer(mark, text):
            found.setdefault(match.end(), paper)
    return sorted(found.items())


def docstrings(tree: ast.AST, owner: str = "", enclosing: tuple[str, ...] = ()) -> Iterator[tuple[str, str, Any]]:
    """Yield owner and docstring of a module and all that is in it, with the docstrings around it, the nearest first."""
    text = ast.get_docstring(tree) if isinstance(tree, ast.Module | ast.ClassDef | ast.FunctionDef) else None
    if text:
        yield owner, text, enclosing
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield from docstrings(child, f"{owner}.{child.name}".lstrip("."), ((text or ""), *enclosing))


def paper_of(position: int, text: str, around: tuple[str, ...]) -> str | None:
    """Return the paper named last before a citation, else first after it, else around it."""
    known = marks(text)
    before = [paper for end, paper in known if end <= position]
    if known:
        return before[-1] if before else known[0][1]
    return next((marks(outer)[0][1] for outer in around if marks(outer)), None)


@cache
def citations() -> list[Citation]:
    """Return all citations in the docstrings of the package."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        file = str(path.relative_to(SOURCE))
        everything = list(docstrings(ast.parse(path.read_text())))
        for owner, text, around in everything:
            for position, place in places(text):
                paper = paper_of(position, text, around) or _PAPER_OF_FILE.get(file, "unknown")
                found.append(Citation(paper, place, file, owner))
    return found


def rows(page: str) -> list[Row]:
    """Return the lines of all tables of a page."""
    found, header = [], None
    for line in PAGES[page].read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            header = None
        elif header is None:
            header = cells
        elif not set(line) <= set("|-: "):
            assert len(cells) == len(header), line
            found.append(Row(page, dict(zip(header, cells, strict=True)), cells[0]))
    return found


def resolve(name: str) -> Any:
    """Import what a dotted name below `cashmere`, or in `benchmarks`, stands for."""
    parts = name.split(".") if name.startswith("benchmarks.") else ["cashmere", *name.split(".")]
    for n in range(len(parts), 1, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[n:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


def owner_of(name: str) -> tuple[str, str]:
    """Return the file in which a function is written, as `citations` names it, and its qualified name there."""
    target = resolve(name)
    module = inspect.getmodule(target)
    if module is None:  # a constant
        return "", ""
    file = Path(str(module.__file__))
    return file.relative_to(SOURCE if SOURCE in file.parents else ROOT).as_posix(), target.__qualname__


@cache
def words_outside_imports(path: Path) -> set[str]:
    """Return the words of the test functions and their helpers: an import alone tests nothing."""
    lines = path.read_text().splitlines()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return set(re.findall(r"\w+", "\n".join(lines)))


def spellings(name: str) -> set[str]:
    """Return the words by which a test may mention a function: also the name of a registered strategy or space."""
    target = resolve(name)
    registered = {known for table in (STRATEGIES, SPACES) for known, factory in table.items() if factory is target}
    return registered | {name.rpartition(".")[2]}


FUNCTION_ROWS = [
    pytest.param(row, id=f"{page}: {row.first}") for page in PAGES for row in rows(page) if "function" in row.columns
]


@pytest.mark.parametrize("row", FUNCTION_ROWS)
def test_functions_exist(row):
    assert row.names
    for name in row.names:
        assert not inspect.ismodule(resolve(name)), f"{name} is a module: name its functions"


@pytest.mark.parametrize("row", FUNCTION_ROWS)
def test_tests_exist_and_mention_the_functions(row):
    assert row.paths and all(path.is_file() for path in row.paths), row.columns["test"]
    tests = [path for path in row.paths if path.suffix == ".py"]
    mentioned = set().union(*map(words_outside_imports, tests))
    assert [name for name in row.names if not spellings(name) & mentioned] == []
    assert [path.name for path in row.paths if path.parent.name == "vectors" and path.stem not in mentioned] == []


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_every_file_of_reference_numbers_is_on_a_page(path):
    assert any(path in row.values[0].paths for row in FUNCTION_ROWS)


def test_every_citation_can_be_told_apart():
    """A docstring that cites a number names the paper: its authors, its method, or its page in docs/papers."""
    assert [citation for citation in citations() if citation.paper == "unknown"] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_what_docstrings_cite_is_on_the_page(paper):
    listed = {place for row in rows(paper) for _, place in places(row.first)}
    cited = [citation for citation in citations() if citation.paper == paper]
    assert cited
    assert [citation for citation in cited if citation.place not in listed] == []


@pytest.mark.parametrize("row", [row for row in FUNCTION_ROWS if row.values[0].page in PAPERS])
def test_equations_on_the_page_are_cited_by_the_functions_beside_them(row):
    """By the docstring of one of them, of its module, or of one of its methods."""
    owners = [owner_of(name) for name in row.names]
    cited = {
        citation.place
        for citation in citations()
        if citation.paper == row.page
        for file, owner in owners
        if citation.file == file and (not citation.owner or f"{citation.owner}.".startswith(f"{owner}."))
    }
    listed = {place for _, place in places(row.first) if place[0] in ("equation", "algorithm")}
    assert {place for place in listed - cited if (row.page, *place) not in UNCITED} == set()


@pytest.mark.parametrize("paper", PAPERS)
def test_tables_that_equations_bear_on_are_listed(paper):
    listed = {place for row in rows(paper) if "ours" in row.columns for _, place in places(row.first)}
    wanted = {place for row in rows(paper) for _, place in places(row.columns.get("bears on", ""))}
    assert wanted and wanted <= listed


@pytest.mark.parametrize("paper", ["divbo", "optdivbo"])
def test_published_tables_have_a_command(paper):
    counts = pd.read_csv(PUBLISHED / "wilcoxon_counts.csv", dtype=str)
    numbers = [*pd.read_csv(PUBLISHED / f"{paper}.csv", dtype=str)["table"], *counts["table"][counts["suite"] == paper]]
    wanted = {
        ("figure", number.removeprefix("figure")) if "figure" in number else ("table", number) for number in numbers
    }
    rebuilt = [row for row in rows(paper) if "python -m benchmarks" in row.columns.get("ours", "")]
    assert wanted - {place for row in rebuilt for _, place in places(row.first)} <= {("table", "text")}


@pytest.mark.parametrize("paper", ["dacopt", "latent"])
def test_pages_count_the_methods_of_published_tables(paper):
    words = {"six": 6, "eight": 8, "ten": 10}
    said = re.findall(r"(\w+) methods[^|]*`(benchmarks/published/\w+\.csv)`", PAGES[paper].read_text())
    assert said
    for word, path in said:
        assert pd.read_csv(ROOT / path)["method"].nunique() == words[word], path


@pytest.mark.parametrize("paper", PAPERS)
def test_page_gives_the_reference_that_cite_prints(paper):
    authors, year = re.match(r"(.*?) \((\d{4})\)", " ".join(cite(STRATEGY_OF[paper]).split())).groups()
    page = PAGES[paper].read_text()
    assert year in page
    assert [name for name in re.findall(r"[A-ZÄÖÜ]\w+", authors) if name not in page] == []


def strategies_on(page: Path) -> list[str]:
    """Return the strategies with options that a page names, and the lines of its blocks of strategies."""
    text = page.read_text()
    blocks = [line for language, block in _FENCE.findall(text) if language == "text" for line in block.splitlines()]
    inline = [tick for tick in _TICKS.findall(_FENCE.sub("", text)) if re.fullmatch(r"[a-z]\w*:\w+=\S+", tick)]
    return [*blocks, *inline]


@pytest.fixture(scope="module")
def space():
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=200, n_columns=4, n_classes=2)
    return make_space("sklearn12", profile).configuration_space


@pytest.mark.parametrize(
    "strategy", sorted({strategy for page in PAGES.values() for strategy in strategies_on(page)}), ids=str
)
def test_strategies_have_these_options(strategy, space):
    make_strategy(strategy, space)


@pytest.mark.parametrize("strategy", AS_PUBLISHED)
def test_settings_of_the_suites_are_those_on_the_pages(strategy):
    settings = f"{strategy}:{AS_PUBLISHED[strategy]}"
    assert any(found.startswith(settings) for page in PAGES.values() for found in strategies_on(page))


class _AboutToParseError(Exception):
    pass


@pytest.fixture(scope="module")
def benchmark_parser():
    """The parser of ``python -m benchmarks``, taken where it would read the command line."""
    from benchmarks.__main__ import main

    def stop(parser, *_):
        raise _AboutToParseError(parser)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", stop)
        with pytest.raises(_AboutToParseError) as caught:
            main()
    return caught.value.args[0]


def benchmark_commands(page: Path) -> list[str]:
    text = page.read_text().replace("\\\n", " ")
    return [match.strip() for match in re.findall(r"python -m benchmarks ([^`\n]+)", text)]


@pytest.mark.parametrize(
    "command", sorted({command for page in PAGES.values() for command in benchmark_commands(page)}), ids=str
)
def test_benchmark_commands_have_these_options(command, benchmark_parser):
    name, *options = shlex.split(command)
    (commands,) = [action.choices for action in benchmark_parser._actions if action.dest == "command"]
    assert name in commands
    if options:  # the bare name stands for the command with options of the reader's choice
        commands[name].parse_args(options)
