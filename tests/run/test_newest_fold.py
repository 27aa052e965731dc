"""Models of runs in time: the newest fold predicts, the others have not seen the newest rows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cashmere import AutoRegressor, Predictor
from cashmere.cli import app
from cashmere.exceptions import ModelFileError
from cashmere.model.description import describe_model
from cashmere.model.files import _checksum
from cashmere.run import RunDirectory, refine_run
from cashmere.run.refit import compare_refit
from cashmere.space import make_space

N, N_FOLDS = 240, 3


def drifting():
    """A table in which the effect of a column on the target changes with time."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
    return frame, (frame["a"] * np.linspace(1, 4, N) + 0.1 * rng.normal(size=N)).rename("y")


def linear_and_trees(profile):
    return make_space("default", profile).restricted_to(["ridge", "extra_trees"])


X, Y = drifting()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("time") / "run"
    settings = {"budget": "4trials", "space": linear_and_trees, "isolation": "none", "resampling": f"{N_FOLDS}fold"}
    AutoRegressor(**settings, run_directory=folder).fit(X, Y, time=np.arange(N))
    return folder


@pytest.mark.long
def test_the_summary_says_how_to_use_the_newest_rows(tmp_path, capsys):
    X.assign(day=np.arange(N), y=Y).to_csv(tmp_path / "table.csv", index=False)
    options = ["--target", "y", "--time", "day", "--include", "ridge", "--resampling", "holdout", "--workers", "1"]
    place = ["--budget", "1trials", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, ["fit", str(tmp_path / "table.csv"), *options, *place])
    assert done.exit_code == 0, done.output
    fitted = AutoRegressor(budget="1trials", space=linear_and_trees, isolation="none", resampling="holdout", verbose=1)
    fitted.fit(X, Y, time=np.arange(N))
    for printed in (done.output, capsys.readouterr().out):
        assert f"no model has seen the {N // 4} newest rows; cashmere refine RUN --refit" in " ".join(printed.split())


def of_folds(predictor, folds):
    """Return a predictor with the models of some folds."""
    models = {number: [each[k] for k in folds] for number, each in predictor.models.items()}
    return replace(predictor, encoders=[predictor.encoders[k] for k in folds], models=models, newest_fold_only=False)


def test_the_model_predicts_with_the_newest_fold(folder):
    predictor = Predictor.load(folder)
    assert {len(models) for models in predictor.models.values()} == {N_FOLDS}
    newest, oldest = of_folds(predictor, [N_FOLDS - 1]), of_folds(predictor, [0])
    np.testing.assert_array_equal(predictor.predict(X), newest.predict(X))
    assert np.abs(newest.predict(X) - oldest.predict(X)).max() > 0.1
    assert describe_model(folder).facts["folds"] == "the newest of 3"


def test_it_predicts_the_newest_rows_as_they_were_scored(folder):
    """The loss of these rows is that of the deployed model."""
    predictor = Predictor.load(folder)
    with RunDirectory.open(folder, {"space": linear_and_trees}) as run:
        stored = run.store.load(run.space.configuration_space)
        rows = run.splits[-1].validation
        validated = np.unique(np.concatenate([fold.validation for fold in run.splits]))
        places, moments = np.searchsorted(validated, rows), run.rows.structure.codes[rows]
        expected = predictor.ensemble.combine([stored[n].predictions[places] for n in predictor.ensemble.members])
    assert moments.min() == N - len(rows)
    np.testing.assert_allclose(predictor.predict(X.iloc[moments]), expected, rtol=1e-5, atol=1e-6)


def test_intervals_surround_its_predictions(folder):
    predictor = Predictor.load(folder)
    assert [len(scores) for scores in predictor.conformal.folds] == [N // 2]  # of all folds joined
    low, high = predictor.predict_interval(X).T
    np.testing.assert_allclose((low + high) / 2, predictor.predict(X), rtol=1e-6)


def test_a_refit_is_compared_on_the_newest_rows(folder, tmp_path):
    with RunDirectory.open(folder, {"space": linear_and_trees}) as run:
        stored = run.store.load(run.space.configuration_space)
        number, newest = next(iter(Predictor.load(folder).ensemble.members)), run.splits[-1]
        alone = replace(Predictor.load(folder).ensemble, members=(number,), weights=(1.0,))
        compared = compare_refit(run, [stored[number]], alone, run.metric)
    assert compared.n_rows == len(newest.validation)
    assert compared.single_loss < compared.folds_loss  # the folds of the earlier rows end earlier
    refined = refine_run(folder, refit=True, own_objects={"space": linear_and_trees}, out=tmp_path / "refit")
    refitted = Predictor.load(tmp_path / "refit")
    assert {len(models) for models in refitted.models.values()} == {1} and refitted.conformal is None
    assert refined.refit.n_rows == compared.n_rows
    last = Y.to_numpy()[-20:]
    errors = [np.abs(each.predict(X[-20:]) - last).mean() for each in (refitted, Predictor.load(folder))]
    assert errors[0] < errors[1]  # it has seen these rows


@pytest.mark.long
@pytest.mark.parametrize(("moments", "resampling"), [(4, "auto"), (4, "3fold"), (2, "holdout")])
def test_a_refit_takes_few_moments(moments, resampling, tmp_path):
    """The rows to compare on leave fewer moments than the folds of the run need."""
    settings = {"budget": "1trials", "space": linear_and_trees, "isolation": "none", "resampling": resampling}
    AutoRegressor(**settings, run_directory=tmp_path / "run").fit(X, Y, time=np.arange(N) * moments // N)
    refined = refine_run(tmp_path / "run", refit=True, own_objects={"space": linear_and_trees})
    assert refined.model_folder.is_dir()
    assert (refined.refit is None) == (moments == 2)


def test_the_newest_fold_is_what_is_exported(folder, tmp_path):
    pytest.importorskip("onnxruntime")
    from cashmere.export import export_onnx

    certificate = export_onnx(Predictor.load(folder), tmp_path / "model.onnx", X)
    assert certificate.holds


@pytest.mark.parametrize("changes", [{"newest_fold_only": "yes"}, {"conformal_scores": [[0.1], [0.2]]}])
def test_what_contradicts_itself_is_refused(folder, changes, tmp_path):
    for path in (folder / "model").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((tmp_path / "manifest.json").read_text()) | changes
    manifest["checksum"] = _checksum(manifest)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError):
        Predictor.load(tmp_path, verify=False)
