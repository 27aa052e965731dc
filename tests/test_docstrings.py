"""Sections of docstrings are what tools that read them take for sections."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCES = sorted((Path(__file__).parents[1] / "src").rglob("*.py"))

_FLOWED = re.compile(r"\w[\w )]* -{5,} \S")
"""A heading, its rule and its text on one line."""


def flowed_sections(source: str) -> list[str]:
    """Return the lines of docstrings in which a heading is not on a line of its own."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [line for text in docstrings for line in text.splitlines() if _FLOWED.match(line)]


def test_headings_are_on_lines_of_their_own():
    assert {str(path): found for path in SOURCES if (found := flowed_sections(path.read_text()))} == {}


def test_flowed_headings_are_found():
    assert flowed_sections('"""Do.\n\nSee Also -------- other : the same.\n"""') == [
        "See Also -------- other : the same."
    ]
    assert flowed_sections('"""Do.\n\nSee Also\n--------\nother : the same.\n"""') == []
