from __future__ import annotations

import errno
import json
import os
import shutil
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from report_page import check_inert
from typer.testing import CliRunner

import cashmere
from cashmere import AutoClassifier, AutoRegressor, Predictor
from cashmere.analysis import read_out_of_fold
from cashmere.cli import app
from cashmere.data.texts import PackedTexts
from cashmere.exceptions import (
    CorruptStoreError,
    DataError,
    InvalidParameterError,
    MissingParameterError,
    RowStructureWarning,
    RunDirectoryError,
    SchemaError,
)
from cashmere.explanations import read_explanation
from cashmere.explanations.unseen_rows import UnseenRows, map_rows, source_columns, take_coded
from cashmere.report import summarise_run, write_report
from cashmere.run import refine_run
from cashmere.storage.directory import TrainingRows, read_source
from cashmere.storage.trial_tables import read_description

N = 240


def columns(rng: np.random.Generator) -> pd.DataFrame:
    size = rng.normal(size=N)
    words = np.array(["soft", "warm", "grey", "wool", "coat", "thin", "long", "old"])
    return pd.DataFrame(
        {
            "size": size,
            "size_in_feet": 3.3 * size + 0.01 * rng.normal(size=N),
            "colour": rng.choice(["red", "green", "blue"], N),
            "noise": rng.normal(size=N),
            "bought": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(N), "D"),
            "remark": [" ".join(rng.choice(words, 6)) for _ in range(N)],
        }
    )


@pytest.fixture(scope="module")
def values_run(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = columns(rng)
    y = 2 * X["size"] + 1.5 * (X["colour"] == "red") + 0.2 * rng.normal(size=N)
    folder = tmp_path_factory.mktemp("runs") / "values"
    model = AutoRegressor(budget="3trials", isolation="none", resampling="2fold", run_directory=folder)
    with pytest.warns(RowStructureWarning):  # because of the dates
        model.fit(X, y.rename("y"))
    return folder


@pytest.fixture(scope="module")
def classes_run(tmp_path_factory):
    rng = np.random.default_rng(1)
    X = columns(rng)[["size", "colour", "noise"]]
    y = np.digitize(X["size"] + (X["colour"] == "red") + 0.3 * rng.normal(size=N), [-0.3, 0.8])
    folder = tmp_path_factory.mktemp("runs") / "classes"
    model = AutoClassifier(
        budget="3trials", isolation="none", metric="g_mean", resampling="2fold", run_directory=folder
    )
    model.fit(X, np.array(["low", "middle", "high"])[y])
    return folder


@pytest.fixture(params=["values_run", "classes_run"])
def run(request, tmp_path):
    return shutil.copytree(request.getfixturevalue(request.param), tmp_path / "run")


def test_rows_are_predicted_by_the_models_that_have_not_seen_them(run):
    settings = read_description(run)[0]["settings"]
    unseen = UnseenRows.draw(run, Predictor.load(run), settings, n_rows=1000, seed=0)
    stored, order = read_out_of_fold(run), np.argsort(read_source(run / "table.npz"))
    np.testing.assert_array_equal(unseen.y[order], stored.y)
    np.testing.assert_allclose(unseen.predict()[order], stored.predictions, rtol=1e-4, atol=1e-5)
    some = np.array([7, 3, 3])
    np.testing.assert_allclose(unseen.predict(rows=order[some]), stored.predictions[some], rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_predictions_under_a_deviance_keep_the_lower_bound_of_the_model(tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 2))
    run, y = tmp_path / "run", np.random.default_rng(1).poisson(np.exp(1.5 * x[:, 0] - 1))
    quick = {"budget": "1trials", "resampling": "2fold", "include": "ridge", "isolation": "none"}
    AutoRegressor(metric="poisson", run_directory=run, **quick).fit(x, y)
    predictor = Predictor.load(run)
    unseen = UnseenRows.draw(run, predictor, read_description(run)[0]["settings"], n_rows=1000, seed=0)
    stored, order = read_out_of_fold(run).predictions, np.argsort(read_source(run / "table.npz"))
    assert predictor.least_prediction > 0
    assert stored.min() == pytest.approx(predictor.least_prediction)
    np.testing.assert_allclose(unseen.predict()[order], stored, rtol=1e-4, atol=1e-5)
    assert unseen.predict(unseen.values - 9).min() == pytest.approx(predictor.least_prediction)


def test_importances_rank_columns_and_group_associated_ones(values_run):
    found = cashmere.explain(values_run, repeats=3)
    groups = [each.columns for each in found.importances]
    assert groups[0] == ("size", "size_in_feet")
    assert groups[1] == ("colour",)
    assert sorted(name for group in groups for name in group) == sorted(columns(np.random.default_rng(0)).columns)
    assert all(each.lower <= each.mean <= each.upper for each in found.importances)
    assert found.importances[1].lower > max(each.upper for each in found.importances if "noise" in each.columns)
    assert found.importance["importance"].is_monotonic_decreasing
    assert (found.n_rows, found.n_columns, found.outputs) == (N, 6, ("y",))
    assert {effect.column for effect in found.effects} == {"size", "size_in_feet", "colour", "noise", "bought"}
    by_column = {effect.column: effect for effect in found.effects}
    red = by_column["colour"].points.index("red")
    assert by_column["colour"].partial_dependence[:, 0].argmax() == red
    assert by_column["colour"].ale is None
    years = by_column["bought"].points
    assert 2023.9 < years[0] < years[-1] < 2024.7
    again = cashmere.explain(values_run, repeats=3)
    assert again.to_json() == found.to_json()


@pytest.mark.long
def test_explanation_reaches_file_report_and_terminal(run):
    result = CliRunner().invoke(app, ["explain", str(run), "--repeats", "2", "-o", str(run / "importances.csv")])
    assert result.exit_code == 0, result.output
    assert "validation rows, 2 permutations each" in " ".join(result.output.split())
    assert "size" in result.output
    table = pd.read_csv(run / "importances.csv")
    found = read_explanation(run)
    np.testing.assert_allclose(table["importance"], found.importance["importance"])
    page = check_inert((run / "report.html").read_text("utf-8"))
    for text in ("Which columns does it rely on?", "How do predictions follow them?", "colour"):
        assert text in page.text
    json.dumps(summarise_run(run), allow_nan=False)
    assert found.effect.groupby("column").size().min() >= 2


def test_importances_of_a_run_that_can_only_be_read_are_told(classes_run, tmp_path, monkeypatch):
    number = errno.EROFS

    def refuse(path, content):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("cashmere.explanations.explanation.write_json", refuse)
    output = tmp_path / "importances.csv"
    quickly = ["explain", str(classes_run), "--rows", "50", "--repeats", "1", "--effects", "1"]
    result = CliRunner().invoke(app, [*quickly, "-o", str(output)])
    assert result.exit_code == 0 and output.exists()
    assert "when a column is shuffled" in result.output
    assert "Note: the run can only be read, so its report stays as it is (Read-only file system)." in result.output
    assert CliRunner().invoke(app, [*quickly, "-q", "-o", str(output)]).output == ""
    assert CliRunner().invoke(app, [*quickly, "-q"]).exit_code == 2
    output.unlink()
    number = errno.ENOSPC
    assert CliRunner().invoke(app, [*quickly, "-o", str(output)]).exit_code == 2
    assert output.exists()


def test_explanation_of_an_earlier_ensemble_is_not_shown(classes_run, tmp_path):
    run = shutil.copytree(classes_run, tmp_path / "run")
    path = cashmere.explain(run, rows=50, repeats=1, effects=1).save(run)
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "digest": "another"}))
    assert "has continued since" in check_inert(write_report(run).read_text("utf-8")).text
    for damaged in ({**stored, "effects": [{**stored["effects"][0], "share": []}]}, {**stored, "loss": "x"}, {"a": 1}):
        path.write_text(json.dumps(damaged))
        with pytest.raises(CorruptStoreError, match="cashmere explain"):
            read_explanation(run)
        assert "cannot be read" in summarise_run(run)["explanation"]["why_not"]
    path.unlink()
    with pytest.raises(RunDirectoryError, match="no explanation yet"):
        read_explanation(run)
    assert "has not been measured" in summarise_run(run)["explanation"]["why_not"]


def test_rows_of_another_table_are_refused(classes_run, values_run, tmp_path):
    run = shutil.copytree(classes_run, tmp_path / "run")
    shutil.copy(values_run / "table.npz", run / "table.npz")
    new = columns(np.random.default_rng(5)).head(1)
    for explained in (lambda: cashmere.explain(run), lambda: cashmere.explain_predictions(run, new, paths=2)):
        with pytest.raises(CorruptStoreError, match="columns and classes of the model"):
            explained()
    with pytest.raises(InvalidParameterError, match="repeats"):
        cashmere.explain(classes_run, repeats=0)


@pytest.mark.parametrize("damaged", ["levels", "texts"])
def test_rows_with_other_levels_or_damaged_texts_are_refused(values_run, tmp_path, damaged):
    run = shutil.copytree(values_run, tmp_path / "run")
    rows = TrainingRows.read(run / "table.npz")
    if damaged == "levels":
        rows.values[:, 2] = 7.0
    else:
        content = np.full(N, 0xFF, dtype=np.uint8)
        rows = replace(rows, texts=(PackedTexts(content=content, ends=np.arange(1, N + 1)),))
    rows.save(run / "table.npz")
    new = columns(np.random.default_rng(5)).head(1)
    for explained in (lambda: cashmere.explain(run), lambda: cashmere.explain_predictions(run, new, paths=2)):
        with pytest.raises(CorruptStoreError, match="Restore it from a copy"):
            explained()


def test_rows_of_a_large_table_stay_in_the_file(values_run, tmp_path):
    run, times = shutil.copytree(values_run, tmp_path / "run"), 500
    rows = TrainingRows.read(run / "table.npz")
    values, packed = np.tile(rows.values, (times, 1)), PackedTexts.pack(rows.texts[0])
    ends = (np.arange(times)[:, None] * len(packed.content) + packed.ends).ravel()
    many = PackedTexts(content=np.tile(packed.content, times), ends=ends)
    replace(rows, values=values, texts=(many,), y=np.tile(rows.y, times), source=None).save(run / "table.npz")
    predictor, settings = Predictor.load(run), read_description(run)[0]["settings"]
    tracemalloc.start()
    try:
        unseen = UnseenRows.draw(run, predictor, settings, n_rows=20, seed=0)
        taken = take_coded(run, map_rows(run, predictor), np.arange(N), predictor)
        assert tracemalloc.get_traced_memory()[1] < values.nbytes / 2
    finally:
        tracemalloc.stop()
    assert len(unseen) == 20
    np.testing.assert_array_equal(taken.values, rows.values)
    assert taken.texts[0].tolist() == rows.texts[0].tolist()


def test_few_columns_are_measured_where_there_are_many(values_run, monkeypatch):
    monkeypatch.setattr("cashmere.explanations.explaining.MOST_COLUMNS", 3)
    found = cashmere.explain(values_run, repeats=1, effects=0)
    measured = {name for each in found.importances for name in each.columns}
    assert {"size", "remark"} < measured  # texts are kept
    assert len(measured) == 3
    assert found.n_columns == 6


def test_source_columns_know_their_places(values_run):
    found = {column.name: column for column in source_columns(Predictor.load(values_run).schema)}
    assert found["colour"].places == (2,)
    assert found["bought"].places == (4, 5, 6, 7, 8)
    assert (found["remark"].places, found["remark"].text) == ((), 0)


def test_recurring_parts_of_dates_are_explained_one_by_one(tmp_path):
    rng = np.random.default_rng(2)
    days = pd.date_range("2024-01-01", periods=N)
    X = pd.DataFrame({"sold": days.strftime("%d.%m.%Y"), "noise": rng.normal(size=N)})
    y = pd.Series(days.day_of_week.to_numpy() + 0.1 * rng.normal(size=N), name="pieces")
    model = AutoRegressor(
        budget="1trials", isolation="none", include=["lightgbm"], resampling="2fold", run_directory=tmp_path / "run"
    ).fit(X, y, time="sold")
    found = cashmere.explain(tmp_path / "run")
    assert set(found.importances[0].columns) == {"sold.weekday"}
    (effect,) = (each for each in found.effects if each.column == "sold.weekday")
    assert effect.points == tuple(map(float, range(7))) and np.all(np.diff(effect.partial_dependence[:, 0]) > 0)
    one = model.explain_predictions(X.tail(1), X, paths=4).contributions.set_index("column")
    assert set(one.index) == {"noise", "sold.day", "sold.weekday"}
    assert one["value"]["sold.weekday"] == X["sold"].iloc[-1]


# ---------------------------------------------------------------- single predictions


def test_contributions_sum_to_the_prediction(values_run):
    model, X = Predictor.load(values_run), columns(np.random.default_rng(5)).head(3)
    found = cashmere.explain_predictions(values_run, X, paths=20)
    np.testing.assert_allclose(found.predictions["prediction"], model.predict(X), rtol=1e-6)
    assert found.predictions["output"].tolist() == ["y"] * 3
    for i, of_row in found.contributions.groupby("row"):
        one = found.predictions.iloc[i]
        assert of_row["contribution"].sum() == pytest.approx(one["prediction"] - one["base"], abs=1e-5)
        assert set(of_row["column"]) == set(X.columns)
        assert (of_row["contribution"].abs().diff().dropna() <= 0).all()
        assert of_row.set_index("column")["value"]["colour"] == X["colour"].iloc[i]
    sizes = found.contributions.set_index("column")["contribution"].abs().groupby("column").mean()
    assert max(sizes["size"], sizes["size_in_feet"], sizes["colour"]) > 5 * sizes["noise"]


def test_the_base_is_the_mean_prediction_of_the_background_for_every_seed(values_run):
    model, X = Predictor.load(values_run), columns(np.random.default_rng(5))
    expected = pytest.approx(model.predict(X).mean(), rel=1e-6)
    for seed in range(3):
        found = cashmere.explain_predictions(values_run, X.head(2), background=X, paths=4, seed=seed)
        assert found.predictions["base"].tolist() == [expected] * 2
        sums = found.contributions.groupby("row")["contribution"].sum()
        np.testing.assert_allclose(sums, found.predictions["prediction"] - found.predictions["base"], atol=1e-5)


def test_columns_of_a_model_without_names_are_matched_by_position(tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 2))
    model = AutoRegressor(
        budget="1trials",
        isolation="none",
        resampling="holdout",
        include="ridge",
        run_directory=tmp_path / "run",
    )
    model.fit(X, X[:, 0])
    arrays, frames = (
        cashmere.explain_predictions(tmp_path / "run", new, paths=2).contributions
        for new in (X[:1], pd.DataFrame(X[:1], columns=["first", "second"]))
    )
    pd.testing.assert_frame_equal(arrays, frames)
    assert dict(zip(arrays["column"], arrays["value"], strict=True)) == {"x0": X[0, 0], "x1": X[0, 1]}


def test_the_predicted_class_is_explained(classes_run):
    X = columns(np.random.default_rng(6))[["size", "colour", "noise"]].head(8)
    found = cashmere.explain_predictions(classes_run, X, paths=10).predictions
    model = Predictor.load(classes_run)
    assert found["output"].tolist() == model.predict(X).tolist()
    codes = [list(model.classes_).index(label) for label in found["output"]]
    np.testing.assert_allclose(found["prediction"], model.predict_proba(X)[np.arange(8), codes], rtol=1e-6)


def test_rows_are_explained_independently_and_repeatably(classes_run):
    X = columns(np.random.default_rng(7))[["size", "colour", "noise"]].head(2)
    both, second = (cashmere.explain_predictions(classes_run, each, paths=4) for each in (X, X.tail(1)))
    of_second = both.contributions.query("row == 1").reset_index(drop=True)
    pd.testing.assert_frame_equal(of_second.drop(columns="row"), second.contributions.drop(columns="row"))


@pytest.mark.long
def test_a_model_without_its_run_is_explained_with_a_background(classes_run, tmp_path):
    X = columns(np.random.default_rng(7))[["size", "colour", "noise"]]
    shutil.copytree(classes_run / "model", tmp_path / "model")
    model = Predictor.load(tmp_path / "model")
    loaded, of_folder = (
        cashmere.explain_predictions(m, X.head(2), background=X, paths=4) for m in (model, tmp_path / "model")
    )
    pd.testing.assert_frame_equal(loaded.contributions, of_folder.contributions)
    pd.testing.assert_frame_equal(loaded.predictions, of_folder.predictions)
    of_row = loaded.contributions.groupby("row")["contribution"].sum()
    np.testing.assert_allclose(of_row, loaded.predictions["prediction"] - loaded.predictions["base"], atol=1e-6)
    one = cashmere.explain_predictions(model, X.head(1), background=X.head(1), paths=2)
    assert one.predictions["base"].item() == pytest.approx(one.predictions["prediction"].item())
    assert (one.contributions["contribution"] == 0).all()  # it is compared with itself
    for model_only in (model, tmp_path / "model"):
        with pytest.raises(MissingParameterError, match="as background"):
            cashmere.explain_predictions(model_only, X.head(1))


@pytest.mark.long
def test_a_model_inside_a_run_is_compared_with_its_rows(classes_run, tmp_path):
    X = columns(np.random.default_rng(7))[["size", "colour", "noise"]].head(1)
    run = tmp_path / "run"
    shutil.copytree(classes_run, run)
    of_run, of_model = (cashmere.explain_predictions(each, X, paths=4) for each in (run, run / "model"))
    pd.testing.assert_frame_equal(of_run.contributions, of_model.contributions)
    refined = refine_run(run, ensemble="best")
    found = cashmere.explain_predictions(refined.model_folder, X, paths=4)
    assert found.predictions["output"].tolist() == of_run.predictions["output"].tolist()
    assert found.predictions["prediction"].item() == pytest.approx(
        Predictor.load(refined.model_folder).predict_proba(X).max(), rel=1e-6
    )


def test_an_estimator_explains_predictions():
    X = columns(np.random.default_rng(7))[["size", "colour", "noise"]]
    model = AutoRegressor(budget="1trials", isolation="none", resampling="holdout", include="lightgbm")
    found = model.fit(X, X["size"].rename("weight")).explain_predictions(X.head(2), X, paths=4)
    assert found.predictions["output"].tolist() == ["weight"] * 2
    np.testing.assert_allclose(found.predictions["prediction"], model.predict(X.head(2)), rtol=1e-6)
    with pytest.raises(DataError):
        model.explain_predictions(X.head(2), X.head(0))
    with pytest.raises(MissingParameterError, match="as background"):
        model.explain_predictions(X.head(2))


def test_command_explains_predictions_of_a_model(classes_run, tmp_path):
    X = columns(np.random.default_rng(8)).head(20)
    shutil.copytree(classes_run / "model", tmp_path / "model")
    X.to_csv(tmp_path / "rows.csv", index=False)
    rows = str(tmp_path / "rows.csv")
    line = ["explain", str(tmp_path / "model"), "--predictions", rows, "--rows", "1"]
    done = CliRunner().invoke(app, [*line, "--background", rows])
    assert done.exit_code == 0, done.output
    assert "Row 0" in done.output
    for refused, text in ((line, "--background"), ([*line[:2], "--background", rows], "Name the predictions")):
        done = CliRunner().invoke(app, refused)
        assert done.exit_code == 2 and text in done.stderr


def test_command_explains_predictions(classes_run, tmp_path):
    new = columns(np.random.default_rng(8)).head(7)
    new.loc[0, "noise"] = np.nan
    new.to_csv(tmp_path / "new.csv", index=False)
    line = ["explain", str(classes_run), "--predictions", str(tmp_path / "new.csv"), "--rows", "2"]
    done = CliRunner().invoke(app, [*line, "-o", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    assert "Row 1" in done.output and "Row 2" not in done.output and "on average" in done.output
    assert "missing" in done.output and "nan" not in done.output
    written = pd.read_csv(tmp_path / "out.csv")
    assert written["row"].tolist() == [0, 0, 0, 1, 1, 1]
    sums = written.groupby("row")["contribution"].sum()
    one = written.groupby("row").first()
    np.testing.assert_allclose(sums, one["prediction"] - one["base"], atol=1e-6)
    assert not (classes_run / "explanations.json").exists()


def test_what_cannot_be_explained_is_refused(classes_run):
    with pytest.raises(SchemaError, match="lacks 1 column"):
        cashmere.explain_predictions(classes_run, pd.DataFrame({"size": [1.0], "noise": [0.0]}))
    with pytest.raises(InvalidParameterError, match="paths"):
        cashmere.explain_predictions(classes_run, pd.DataFrame(), paths=1)


@pytest.mark.long
def test_predictions_of_a_model_that_uses_no_column_are_the_base(tmp_path):
    X = pd.DataFrame({"same": [1.0] * 80, "too": ["k"] * 80})
    model = AutoRegressor(budget="1trials", include="ridge", run_directory=tmp_path / "run", isolation="none")
    model.fit(X, np.arange(80.0))
    found = cashmere.explain_predictions(tmp_path / "run", X.head(2))
    assert found.contributions.empty and list(found.predictions["row"]) == [0, 1]
    assert found.predictions["base"].to_numpy() == pytest.approx(model.predict(X.head(2)))
    X.head(2).to_csv(tmp_path / "new.csv", index=False)
    command = ["explain", str(tmp_path / "run"), "--predictions", str(tmp_path / "new.csv")]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output


def test_a_model_is_no_run():
    with pytest.raises(cashmere.exceptions.InvalidParameterError, match="folder must be the directory of a run"):
        cashmere.explain(AutoRegressor())
