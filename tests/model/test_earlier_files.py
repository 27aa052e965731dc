"""Runs and models written before types moved to other modules still load, predict the same and can be resumed.

``earlier/`` holds files of cashmere 0.1.0 before the package was divided into rooms: a run (two trials of ``classic``,
which was called ``default``), a model (two members of ``autosklearn6``), both fitted to the rows of `earlier_table`,
and one object of every type of ours that model files may hold.
"""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.utils.fixes import parse_version

from cashmere import AutoClassifier, Predictor
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import RunDirectoryError
from cashmere.model.archives import load
from cashmere.model.moved_types import MOVED_MODULES, MOVED_TYPES, present_module
from cashmere.model.trusted import TRUSTED_TYPES
from cashmere.pretraining.collection import read_runs
from cashmere.records.budget import Budget
from cashmere.report import summarise_run
from cashmere.run import continue_run
from cashmere.storage.trial_tables import run_leaderboard

EARLIER = Path(__file__).parent / "earlier"

LATER = (
    "cashmere.space.estimators.arithmetic_features.ArithmeticFeatures",
    "cashmere.space.estimators.bases.PiecewiseLinearColumns",
    "cashmere.space.estimators.category_catboost.CategoryCatBoostClassifier",
    "cashmere.space.estimators.category_catboost.CategoryCatBoostRegressor",
    "cashmere.space.estimators.margins.CoupledMargins",
    "cashmere.space.estimators.outliers.OutlierClipper",
    "cashmere.space.estimators.realmlp.RealMLPClassifier",
    "cashmere.space.estimators.realmlp.RealMLPRegressor",
)
"""Our types that are newer than the file of all types."""

written_by_newer = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="the files were written with scikit-learn 1.9, which earlier versions do not promise to read",
)


def earlier_table():
    return demo_table().sample(120, random_state=0).drop(columns=DEMO_TARGET)


@pytest.fixture
def unpacked(tmp_path):
    def unpack(name: str) -> Path:
        with tarfile.open(EARLIER / f"{name}-0.1.tar.xz") as archive:
            archive.extractall(tmp_path / name, filter="data")
        return tmp_path / name

    return unpack


@written_by_newer
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run", [0.68750582, 0.96255596, 0.99289976, 0.88345902]),
        ("model", [0.56522441, 0.70376621, 0.74401293, 0.72669493]),
    ],
)
def test_earlier_models_predict_what_they_predicted(unpacked, name, expected):
    probabilities = Predictor.load(unpacked(name)).predict_proba(earlier_table())
    np.testing.assert_allclose(probabilities[: len(expected), 1], expected, rtol=1e-5)


@written_by_newer
def test_an_earlier_run_is_resumed(unpacked):
    folder = unpacked("run")
    history = continue_run(folder, Budget(trials=1)).study.history
    assert [o.trial.number for o in history] == [0, 1, 2]
    assert len(history.successes) == 3
    check_space_of_then(folder, history)


@pytest.mark.long
@written_by_newer
def test_a_script_resumes_its_earlier_run(unpacked):
    folder = unpacked("run")
    settings = {"strategy": "optdivbo", "resampling": "holdout", "random_state": 1, "n_workers": 1}
    rows = demo_table().sample(120, random_state=0)
    model = AutoClassifier(budget="4trials", run_directory=folder, resume=True, **settings)
    history = model.fit(rows.drop(columns=DEMO_TARGET), rows[DEMO_TARGET]).study_.history
    assert len(history.successes) == 4
    check_space_of_then(folder, history)
    with pytest.raises(RunDirectoryError, match="space='classic' and cannot continue with 'volcano'"):
        model.set_params(space="volcano").fit(rows.drop(columns=DEMO_TARGET), rows[DEMO_TARGET])


def check_space_of_then(folder, history):
    """The space that was called ``default`` is now ``classic``, which everything that reads the run says."""
    names = {name.rpartition(":")[2] for o in history for name in o.trial.configuration}
    assert {"n_estimators", "iterations"} <= names
    assert all(o.trial.configuration.config_space.name == "classic" for o in history)
    assert all(o.outcome.path is None for o in history)
    assert summarise_run(folder)["settings"]["space"] == "classic"
    assert len(run_leaderboard(folder)[0]) == len(history)
    assert len(read_runs([folder], space="classic").configurations) == len(history)
    with pytest.raises(RunDirectoryError, match="'classic'"):
        read_runs([folder], space="default")


@written_by_newer
def test_every_type_of_ours_loads_under_its_earlier_name(tmp_path):
    path = tmp_path / "types.skops"
    path.write_bytes(lzma.decompress((EARLIER / "types-0.1.skops.xz").read_bytes()))
    content = load(path)
    for earlier, loaded in content.items():
        module, _, name = earlier.rpartition(".")
        assert (loaded if callable(loaded) else type(loaded)).__module__ == present_module(module, name)
    ours = {name for name in TRUSTED_TYPES if name.startswith("cashmere.space.") and name not in LATER}
    assert {f"{present_module(*n.rpartition('.')[::2])}.{n.rpartition('.')[2]}" for n in content} == ours


def test_names_of_today_have_not_moved():
    assert not set(MOVED_MODULES) & set(MOVED_MODULES.values())
    for earlier, today in MOVED_TYPES.items():
        assert earlier.rpartition(".")[2] == today.rpartition(".")[2]
