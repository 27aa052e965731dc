"""Imports flow one way, and `import cashmere` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cashmere"

# From the bottom up: a module may import its own level and everything below. docs/design.md says the same in words.
LEVELS = [
    {"arrays", "exceptions", "loss", "trial", "budget", "text", "datasets", "interrupts", "threads", "seeds"},
    {"protocols"},
    {"data"},
    {"space", "acquisition", "surrogates", "metalearning", "ensembles", "contests"},
    {"strategies", "evaluation", "persistence"},
    {"store", "executors", "worker_pool", "study", "ensemble_builder"},
    {"predictor", "run_directory", "settings", "progress", "charts", "bracket", "latent_chart"},
    {"leaderboard", "analysis", "report"},
    {"run", "source_collection", "artefact_building"},
    {"estimators"},
    {"cli", "__init__"},
]
LEVEL_OF = {name: level for level, names in enumerate(LEVELS) for name in names}
MODULES = sorted(path for path in SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_rooms(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cashmere."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("cashmere.")}
    return names


def test_every_module_has_a_level():
    assert {room(path) for path in MODULES} == set(LEVEL_OF)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downwards(path):
    upwards = {name for name in imported_rooms(path) if LEVEL_OF[name] > LEVEL_OF[room(path)]}
    assert not upwards


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
