"""What the documentation shows, works: code blocks, commands, links and examples."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from cashmere.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RESULTS = ROOT / "benchmarks" / "results" / "README.md"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line of the page it begins at."""

    language: str
    text: str
    line: int


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[Block]:
    text = page.read_text()
    found = [Block(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in _FENCE.finditer(text)]
    return [block for block in found if block.language == language]


def commands(page: Path) -> list[str]:
    """Return the lines of console blocks that call cashmere, without prompt and remark."""
    lines = [line for block in blocks(page, "console") for line in block.text.replace("\\\n", " ").splitlines()]
    return [line for line in (re.sub(r"^\$ ", "", line.strip()) for line in lines) if line.startswith("cashmere ")]


def anchors(page: Path) -> set[str]:
    """Return the names of the headings as GitHub links them."""
    text = _FENCE.sub("", page.read_text())
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def long_but(path: str, paths: list[Path]) -> list:
    """Return paths as parameters: all but one are long."""
    assert path in map(name_of, paths)
    marks = {name: () if name == path else pytest.mark.long for name in map(name_of, paths)}
    return [pytest.param(each, marks=marks[name_of(each)], id=name_of(each)) for each in paths]


@pytest.mark.parametrize("page", long_but("README.md", [page for page in PAGES if blocks(page, "python")]))
def test_python_blocks_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks(page, "python"):
        # Empty lines in front, so that a traceback names the line of the page.
        exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)


@pytest.mark.parametrize("example", long_but("examples/first_run.py", EXAMPLES))
def test_example_runs_and_prints(example, tmp_path):
    finished = subprocess.run(
        [sys.executable, "-W", "error", str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr
    # On a busy machine, Dask notes that its workers take long to end.
    assert [line for line in finished.stderr.splitlines() if " - distributed.nanny - " not in line] == []
    assert len(finished.stdout.splitlines()) >= 3


COMMANDS = [pytest.param(line, id=f"{name_of(page)}: {line}") for page in PAGES for line in commands(page)]


@pytest.mark.parametrize("line", COMMANDS)
def test_command_exists_with_these_options(line):
    """Parsing alone: unknown commands, unknown options and missing arguments raise a usage error."""
    _, command, *arguments = shlex.split(line, comments=True)
    group = typer.main.get_command(app)
    assert command in group.commands
    group.commands[command].make_context(command, arguments)


def test_the_check_of_commands_notices_mistakes():
    fit = typer.main.get_command(app).commands["fit"]
    for arguments in (["t.csv", "--target", "y", "--out", "d", "--no-such"], ["t.csv", "--target", "y"]):
        with pytest.raises(Exception, match=r"No such option|Missing parameter"):
            fit.make_context("fit", arguments)


@pytest.mark.parametrize("page", [*PAGES, RESULTS], ids=name_of)
def test_relative_links_lead_somewhere(page):
    broken = []
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_every_result_that_is_kept_is_told_of():
    paths = (path.relative_to(RESULTS.parent) for path in RESULTS.parent.rglob("*") if path.is_file())
    files = {path.as_posix() for path in paths if path.suffix != ".lock"} - {RESULTS.name}
    assert set(re.findall(r"`([\w./]+\.(?:csv|jsonl))`", RESULTS.read_text())) == files


def test_every_page_is_linked_from_a_readme_and_every_example_from_the_docs():
    """From the readme of the repository, or that of a folder of pages, which the former links."""
    readme = (ROOT / "README.md").read_text()
    missing = []
    for page in PAGES[1:]:
        index = page.with_name("README.md")
        in_folder = index.exists() and index != page and f"]({page.name})" in index.read_text()
        if name_of(page) not in readme and not in_folder:
            missing.append(name_of(page))
    text = "".join(page.read_text() for page in PAGES)
    missing += [example.name for example in EXAMPLES if example.name not in text]
    assert not missing
