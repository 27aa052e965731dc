"""What is published: built, installed into an empty environment, and used there by somebody else's typed code."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from cashmere import __version__

ROOT = Path(__file__).parents[2]
UV = [sys.executable, "-m", "uv", "--quiet"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONSUMER = """
import numpy as np
from numpy.typing import NDArray

from cashmere import AutoClassifier, Predictor

model = AutoClassifier(budget="2trials", n_workers=1)
model.fit([[0.0], [1.0]], ["a", "b"])
probabilities: NDArray[np.float64] = model.predict_proba([[0.5]])
loaded: Predictor = Predictor.load("run")
wrong: int = loaded.predict_proba([[0.5]])
"""


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution, and the wheel that is built from it."""
    out = tmp_path_factory.mktemp("dist")
    run(*UV, "build", "--out-dir", out, ROOT)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def environment(built, tmp_path_factory):
    """The Python of an empty environment with the wheel, and nothing of the source tree."""
    folder = tmp_path_factory.mktemp("environment")
    run(*UV, "venv", "--python", sys.executable, folder)
    python = folder / "bin" / "python"
    run(*UV, "pip", "install", "--python", python, "--constraint", ROOT / "constraints.txt", built[1])
    return python


def test_wheel_holds_the_package_and_nothing_else(built):
    names = zipfile.ZipFile(built[1]).namelist()
    package = {name for name in names if name.startswith("cashmere/")}
    tracked = run("git", "-C", ROOT, "ls-files", "src/cashmere").split()
    assert package == {name.removeprefix("src/") for name in tracked}
    assert "cashmere/py.typed" in package
    assert {name.partition("/")[0] for name in names} == {"cashmere", f"cashmere_automl-{__version__}.dist-info"}


def test_source_distribution_holds_licence_readme_and_tests(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "src/cashmere/__init__.py"} <= names


def test_command_searches_and_predicts_in_an_empty_environment(environment, tmp_path):
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = environment.parent / "cashmere"
    (tmp_path / "table.csv").write_text(
        "a,b,y\n" + "".join(f"{i},{i % 7},{'no' if i % 3 else 'yes'}\n" for i in range(60))
    )
    options = {"cwd": tmp_path, "env": variables}
    assert run(command, "--version", **options).strip() == f"cashmere {__version__}"
    run(command, "fit", "table.csv", "--target", "y", "--budget", "2trials", "--out", "run", **options)
    run(command, "predict", "run", "table.csv", "-o", "predictions.csv", **options)
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 61
    assert (tmp_path / "run" / "report.html").exists()


def test_type_checkers_see_the_types(environment, tmp_path):
    (tmp_path / "consumer.py").write_text(CONSUMER)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", environment, "consumer.py"]
    found = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True)
    errors = [line for line in found.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1 and "consumer.py:12" in errors[0] and "Incompatible types" in errors[0], found.stdout
