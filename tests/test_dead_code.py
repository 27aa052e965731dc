"""What nobody uses is deleted: every function and class of the package is used by the package, or meant for users.

Used means named by other code of the package or by the benchmarks, not only by tests. Meant for users means that a face
(an ``__init__`` with ``__all__``) exports it or that a page of the documentation names it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cashmere"
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")]


def definitions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Return the functions, methods and classes of a file, but not those that a library calls."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef | ast.ClassDef)
            and not node.name.startswith("__")
            and node.name not in ("forward", "do_GET", "log_message", "_load_pyfunc", "_make_estimator", "_repr_html_")
        ):
            decorators = {ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list}
            if not any(name.endswith(("command", "callback", "register")) for name in decorators):
                yield node


def names_in(tree: ast.Module) -> Counter[str]:
    """Return how often code names something, definitions, imports and ``__all__`` left out."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found[node.id] += 1
        elif isinstance(node, ast.Attribute):
            found[node.attr] += 1
        elif isinstance(node, ast.keyword) and node.arg:
            found[node.arg] += 1
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found[node.value] += 1  # a method called by name
    return found


def exported(tree: ast.Module) -> set[str]:
    """Return what ``__all__`` of a file lists."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def test_everything_is_used_or_meant_for_users():
    files = [*SOURCE.rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    used: Counter[str] = Counter()
    for path, tree in trees.items():
        used += names_in(tree)
        if path.name == "__init__.py":
            for name in exported(tree):
                used[name] += 1
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    documented = set(re.findall(r"\w+", pages))
    dead = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, tree in trees.items()
        for node in definitions(tree)
        if not used[node.name] and node.name not in documented
    ]
    assert not dead, "used by no code and named on no page:\n" + "\n".join(dead)
