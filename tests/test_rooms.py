"""Imports flow one way: no circle of rooms or of files, no arrow upwards; and `import cashmere` is light.

A *room* is a folder, or a module at the root of the package. Imports inside functions count, and so do those under
``TYPE_CHECKING``.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cashmere"
BENCHMARKS = ROOT / "benchmarks"

# From the bottom up: a room may import those before it. docs/design.md says the same in words.
ROOMS = [
    *("exceptions", "base", "records", "protocols", "data", "contests", "ensembles"),
    *("space/splitting", "space", "space/encoding", "space/estimators", "space/paths", "space/named"),
    *("acquisition", "surrogates", "costs", "model/content", "model", "export", "evaluation", "metalearning"),
    *("execution", "storage"),
    *("strategies/shared", "strategies", "study", "analysis", "charts", "explanations", "inspection"),
    *("report", "report/summary", "report/figures", "report/page", "plots"),
    *("run", "pretraining/collection", "pretraining", "tracking", "estimators", "comparison", "cli", "__main__"),
]

ROOMS_OF_BENCHMARKS = [
    *("published", "statistics", "tables", "runs", "reporting", "recordings", "timings", "peers/runners", "peers"),
    *("faults/stepping_clock", "faults"),
    *("experiments", "experiments/costs", "experiments/dacopt", "experiments/latent", "experiments/divbo"),
    *("experiments/opening", "pages", "__main__"),
]


def modules(folder: Path) -> dict[str, Path]:
    """Return the files of a package by dotted name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def imports(folder: Path) -> dict[str, set[str]]:
    """Return which files of a package every file imports, at its top or inside functions."""
    files = modules(folder)
    arrows: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    arrows[name] |= {inner if inner in files else node.module} & files.keys()
            elif isinstance(node, ast.Import):
                arrows[name] |= {alias.name for alias in node.names} & files.keys()
    return arrows


def find_circle(arrows: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@functools.cache
def rooms(source: Path) -> dict[str, set[str]]:
    """Return which rooms every room imports.

    What the face of a folder takes from the folders inside it is no arrow, nor is what the face of the package takes.
    """
    files = modules(source)

    def room(name: str) -> str:
        path = files[name].relative_to(source)
        return path.parent.as_posix() if path.parent != Path() else path.stem

    found: dict[str, set[str]] = {}
    for name, targets in imports(source).items():
        if name == "cashmere":
            continue
        inside = f"{room(name)}/" if files[name].name == "__init__.py" else "no room"
        found.setdefault(room(name), set()).update(
            room(t) for t in targets - {"cashmere"} if not room(t).startswith(inside)
        )
    return {name: targets - {name} for name, targets in found.items()}


def test_no_circle_of_files():
    assert find_circle(imports(SOURCE)) == []


def test_every_room_has_a_place():
    assert set(rooms(SOURCE)) == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_no_arrow_upwards(room):
    below = ROOMS[: ROOMS.index(room)]
    assert not rooms(SOURCE)[room] - set(below)


def test_few_modules_stand_at_the_root():
    assert len(list(SOURCE.glob("*.py"))) <= 8


def test_public_names_are_listed_before_they_are_imported():
    code = "import cashmere; print(set(cashmere.__all__) <= set(dir(cashmere)), '__version__' in dir(cashmere))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"True True\n"


def test_importing_cashmere_is_light():
    code = (
        "import time, numpy, pandas, sys; start = time.perf_counter(); import cashmere; "
        "print(time.perf_counter() - start); print(*sorted(sys.modules))"
    )
    seconds, modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert float(seconds) < 0.5
    heavy = {
        "torch",
        "dask",
        "ray",
        "matplotlib",
        "sklearn",
        "lightgbm",
        "xgboost",
        "catboost",
        "jinja2",
        "typer",
        "rich",
    }
    assert not heavy & set(modules.split())


def test_command_line_starts_without_heavy_parts():
    code = "import cashmere.cli, sys; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"sklearn", "pandas", "lightgbm", "skops"} & set(modules)


def test_benchmarks_have_no_circle_of_files():
    assert find_circle(imports(BENCHMARKS)) == []


def test_benchmarks_import_downwards():
    found = rooms(BENCHMARKS)
    del found["__init__"]
    assert set(found) == set(ROOMS_OF_BENCHMARKS)
    below = {room: set(ROOMS_OF_BENCHMARKS[:i]) for i, room in enumerate(ROOMS_OF_BENCHMARKS)}
    assert {room: upwards for room in found if (upwards := found[room] - below[room])} == {}


def test_one_module_stands_at_the_root_of_benchmarks():
    assert {path.name for path in BENCHMARKS.glob("*.py")} == {"__init__.py", "__main__.py"}
