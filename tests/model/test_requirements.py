"""What a model needs to predict is listed exactly, and nothing else is imported."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cashmere import AutoClassifier, Predictor
from cashmere.cli import app
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import ModelFileError
from cashmere.model.requirements import model_requirements

ROWS = demo_table().head(120)
X, Y = ROWS.drop(columns=DEMO_TARGET), ROWS[DEMO_TARGET]

WITHOUT = """
import sys
from importlib.metadata import packages_distributions
from packaging.utils import canonicalize_name

homes, allowed = packages_distributions(), set(sys.argv[1].split())

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        owners = {canonicalize_name(home) for home in homes.get(name.partition(".")[0], ())}
        if owners and not owners & allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
"""
"""Code that hides all distributions except those in the first argument."""


def names(lines: list[str]) -> set[str]:
    return {line.partition("==")[0] for line in lines}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return a function that fits one algorithm, once; it gives the run directory."""

    @functools.cache
    def fit(algorithm: str) -> Path:
        folder = tmp_path_factory.mktemp("runs") / algorithm
        model = AutoClassifier(
            budget="1trials", include=[algorithm], resampling="holdout", isolation="none", run_directory=folder
        )
        model.fit(X, Y)
        return folder

    return fit


@pytest.mark.long
def test_only_the_members_decide_on_boosting_libraries(fitted):
    linear, boosted = (model_requirements(fitted(name)) for name in ("logistic_regression", "lightgbm"))
    assert names(boosted) - names(linear) == {"lightgbm"}
    assert {"cashmere-automl", "scikit-learn", "skops", "cryptography", "joblib"} <= names(linear)
    assert not names(linear) & {"configspace", "typer", "rich", "jinja2", "loky", "pyarrow", "catboost", "psutil"}
    for line in boosted:
        name, _, number = line.partition("==")
        assert number == version(name).partition("+")[0]


@pytest.mark.long
def test_model_predicts_where_nothing_else_is_installed(fitted, tmp_path):
    folder = fitted("lightgbm")
    X.head(20).to_json(tmp_path / "rows.json", orient="split")
    code = WITHOUT + (
        "import numpy, pandas, cashmere\n"
        "model = cashmere.Predictor.load(sys.argv[2])\n"
        "numpy.save('found.npy', model.predict_proba(pandas.read_json('rows.json', orient='split')))\n"
        "for name in ('ConfigSpace', 'pyarrow'):\n"
        "    assert name not in sys.modules\n"
        "    try: __import__(name)\n"
        "    except ModuleNotFoundError: pass\n"
        "    else: raise AssertionError(name)\n"
    )
    allowed = " ".join(names(model_requirements(folder)))
    subprocess.run([sys.executable, "-c", code, allowed, str(folder)], cwd=tmp_path, check=True)
    expected = Predictor.load(folder).predict_proba(X.head(20))
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), expected)


@pytest.mark.long
@pytest.mark.parametrize("options", ["", ", verify=False"], ids=["first load", "not verified"])
def test_a_library_that_is_not_installed_is_named_with_its_version(fitted, tmp_path, options):
    folder = shutil.copytree(fitted("lightgbm") / "model", tmp_path / "model")
    for path in folder.glob("signature-*"):
        path.unlink()
    allowed = " ".join(names(model_requirements(folder)) - {"lightgbm"})
    (tmp_path / "sitecustomize.py").write_text(WITHOUT.replace("sys.argv[1]", repr(allowed)))  # for the child as well
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "import sitecustomize, cashmere\n"
        "from cashmere.exceptions import MissingLibraryError\n"
        f"try: cashmere.Predictor.load('model'{options})\n"
        "except MissingLibraryError as error: print(error.path.name, error.library, error.version, error, sep='|')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    name, library, number, text = done.stdout.strip().split("|")
    assert name.endswith(".skops") and (library, number) == ("lightgbm", version("lightgbm"))
    assert f"needs the library 'lightgbm', which is not installed here (the model was made with {number})." in text


@pytest.mark.long
@pytest.mark.parametrize("options", ["", ", verify=False"], ids=["first load", "not verified"])
def test_a_system_library_that_is_missing_is_named(fitted, tmp_path, options):
    shutil.copytree(fitted("lightgbm") / "model", tmp_path / "model", ignore=shutil.ignore_patterns("signature-*"))
    package = tmp_path / "without" / "lightgbm"
    package.mkdir(parents=True)
    text = "libgomp.so.1: cannot open shared object file: No such file or directory"
    (package / "__init__.py").write_text(f"raise OSError({text!r})")  # as LightGBM does where there is no OpenMP
    code = (
        "import cashmere\n"
        "from cashmere.exceptions import MissingLibraryError\n"
        f"try: cashmere.Predictor.load('model'{options})\n"
        "except MissingLibraryError as error: print(error.path.name, error.library, error, sep='|')\n"
    )
    places = os.pathsep.join([str(tmp_path / "without"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": places}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True, env=environment
    )
    name, library, message = done.stdout.strip().split("|")
    assert name.endswith(".skops") and library == "libgomp.so.1"
    assert "needs the system library 'libgomp.so.1', which is missing here." in message
    assert "apt-get install libgomp1" in message


def test_an_installation_for_predictions_says_so(fitted, tmp_path):
    allowed = " ".join(names(model_requirements(fitted("logistic_regression"))))
    code = WITHOUT + (
        "import cashmere\nfrom cashmere.exceptions import MissingDependencyError\n"
        "try: cashmere.AutoClassifier\n"
        "except MissingDependencyError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, allowed], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("cashmere.AutoClassifier needs the package ")
    assert (
        "Only installations for predictions lack it. Install the rest with: pip install cashmere-automl" in done.stdout
    )


def test_unsigned_model_needs_no_cryptography(fitted, tmp_path):
    folder = shutil.copytree(fitted("logistic_regression") / "model", tmp_path / "model")
    before = names(model_requirements(folder))
    for path in folder.glob("signature-*"):
        path.unlink()
    assert before - names(model_requirements(folder)) == {"cryptography", "cffi", "pycparser"}


@pytest.mark.long
def test_command_prints_a_requirements_file(fitted, tmp_path):
    folder = fitted("logistic_regression")
    found = CliRunner().invoke(app, ["requirements", str(folder)])
    assert found.exit_code == 0
    first, *lines = found.output.splitlines()
    assert first.startswith("# Python 3.") and lines == model_requirements(folder)
    file = tmp_path / "requirements.txt"
    assert CliRunner().invoke(app, ["requirements", str(folder), "-o", str(file)]).exit_code == 0
    assert file.read_text().splitlines() == [first, *lines]
    with pytest.raises(ModelFileError, match="does not exist"):
        model_requirements(tmp_path)
