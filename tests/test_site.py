"""The sources of the documentation site: every link of every page leads to another page."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "site" / "build.py"


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build_of_the_site", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def source(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "source"
    build.write_pages(folder)
    build.write_gallery(folder / "gallery", cache=None)
    build.write_reference(folder / "reference")
    return folder


def test_every_link_leads_to_a_page(source):
    lost = []
    for page in source.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8")):
            if not re.match(r"https?:|mailto:", target) and not (page.parent / target).exists():
                lost.append((page.relative_to(source).as_posix(), target))
    assert lost == []


def test_every_page_is_in_a_table_of_contents(source):
    listed = {source / "index.md"}
    for page in source.rglob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {page.parent / f"{name}.md" for name in names}
    assert {page for page in source.rglob("*.md") if page not in listed} == set()


def test_reference_names_what_can_be_imported(source, build):
    assert {path.stem for path in (source / "reference").glob("*.rst")} == {"index", *build.REFERENCE}
    text = (source / "reference" / "cashmere.rst").read_text("utf-8")
    assert ".. autoclass:: cashmere.AutoClassifier" in text and ".. autofunction:: cashmere.inspect_table" in text


def test_an_example_runs_once_and_again_when_it_has_changed(build, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('first')\nopen('here', 'x')")
    assert build.printed(script, tmp_path / "cache") == "first\n"
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_text("kept")
    assert build.printed(script, tmp_path / "cache") == "kept"
    script.write_text("print('second')")
    assert build.printed(script, tmp_path / "cache") == "second\n"
    script.write_text("raise ValueError('odd')")
    with pytest.raises(SystemExit, match="odd"):
        build.printed(script, tmp_path / "cache")
