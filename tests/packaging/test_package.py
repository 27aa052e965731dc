"""What is published: built, installed into an empty environment, and used there by somebody else's typed code."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from processes import running

from cashmere import __version__

ROOT = Path(__file__).parents[2]
UV = [sys.executable, "-m", "uv", "--quiet"]
OWN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
"""Variables that lead to no other installation."""

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
    command = environment.parent / "cashmere"
    (tmp_path / "table.csv").write_text(
        "a,b,y\n" + "".join(f"{i},{i % 7},{'no' if i % 3 else 'yes'}\n" for i in range(60))
    )
    options = {"cwd": tmp_path, "env": OWN}
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
    assert len(errors) == 1 and "consumer.py:11" in errors[0] and "Incompatible types" in errors[0], found.stdout


SERVING = ROOT / "examples" / "serving"


@pytest.fixture(scope="module")
def served(environment, built, tmp_path_factory):
    """A folder as the Dockerfile of the example makes it, and the Python of an environment with its commands run."""
    folder = tmp_path_factory.mktemp("image")
    rows = "".join(f"{i},{i % 7},{'no' if i % 3 else 'yes'}\n" for i in range(60))
    (folder / "table.csv").write_text("a,b,y\n" + rows)
    options = {"cwd": folder, "env": OWN}
    fit = ["fit", "table.csv", "--target", "y", "--budget", "2trials", "--include", "lightgbm"]
    command = environment.parent / "cashmere"
    run(command, *fit, "--out", "run", **options)
    run(command, "requirements", "run", "-o", "requirements.txt", **options)
    shutil.copytree(folder / "run" / "model", folder / "model")
    run(*UV, "venv", "--python", sys.executable, folder / "venv")
    python = folder / "venv" / "bin" / "python"
    found = re.search(r"^RUN (pip .+)$", (SERVING / "Dockerfile").read_text(), re.MULTILINE)
    for line in found[1].split(" && "):
        place = ["--python", python, "--find-links", built[1].parent, "--constraint", ROOT / "constraints.txt"]
        run(*UV, *line.split()[:2], *place, *line.split()[2:], cwd=folder)
    return folder, python


def test_model_predicts_in_an_environment_with_its_requirements_only(environment, served):
    """Also without a key that this machine trusts: the model is tried in a child process first."""
    folder, python = served
    listing = "import importlib.metadata as m; print(*(d.metadata['Name'] for d in m.distributions()))"
    installed = set(map(canonicalize_name, run(python, "-c", listing).split()))
    asked = {line.partition("==")[0] for line in (folder / "requirements.txt").read_text().splitlines()[1:]}
    assert asked <= installed and "lightgbm" in asked
    assert not installed & {"configspace", "pyarrow", "loky", "typer", "rich", "jinja2", "psutil", "filelock"}
    code = (
        "import pandas, cashmere; table = pandas.read_csv('table.csv'); "
        "print(cashmere.Predictor.load('model').predict_proba(table).tolist())"
    )
    stranger = {**OWN, "CASHMERE_KEY_FOLDER": str(folder / "no-keys")}
    found = run(python, "-c", code, cwd=folder, env=stranger)
    assert found == run(environment, "-c", code, cwd=folder, env=OWN)


def test_server_of_the_example_answers_in_that_environment(served):
    folder, python = served
    shutil.copy(SERVING / "serve.py", folder)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [python, "-m", "uvicorn", "serve:app", "--fd", str(listening.fileno())]
        with running(command, cwd=folder, env=OWN, pass_fds=[listening.fileno()]):
            request = urllib.request.Request(
                f"http://127.0.0.1:{listening.getsockname()[1]}/predict",
                b'[{"a": 3, "b": 3}, {"a": 4, "b": null}]',
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=120) as answer:
                assert set(json.load(answer)) <= {"yes", "no"}
