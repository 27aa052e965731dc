"""Select again from a finished run: bounds of size and latency, other metrics and methods."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from cashmere import AutoClassifier, Predictor
from cashmere.cli import app
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.ensembles import StackedEnsemble, WeightedEnsemble
from cashmere.exceptions import (
    IncompatibleParametersError,
    InvalidParameterError,
    MetricError,
    RunDirectoryError,
    RunLockedError,
)
from cashmere.model.description import describe_model
from cashmere.model.first_load import check_first_load
from cashmere.run import RunDirectory, refine_run
from cashmere.run.ensemble_builder import EnsembleBuilder
from cashmere.run.refit import compare_refit
from cashmere.storage.store import RunStore

FRAME = demo_table().head(240)
X, Y = FRAME.drop(columns=DEMO_TARGET), FRAME[DEMO_TARGET]
COSTS = ["single_row_ms", "bytes"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refined") / "run"
    settings = {"budget": "8trials", "resampling": "3fold", "exclude": ["catboost"], "isolation": "none"}
    AutoClassifier(**settings, run_directory=folder).fit(X, Y)
    return folder


@pytest.fixture(scope="module")
def front(folder):
    """The front; afterwards, all latencies are known."""
    return refine_run(folder).front


def folder_bytes(folder):
    return sum(path.stat().st_size for path in folder.iterdir())


def test_without_bounds_no_model_is_written(folder, front):
    assert not front["chosen"].any()
    assert not list(folder.glob("model-*"))


def test_no_ensemble_of_the_front_beats_another(front):
    aims = np.column_stack([front["cross_fitted_score"], front[COSTS]])  # the log loss: smaller is better
    for i, one in enumerate(aims):
        better = (aims <= one).all(axis=1) & (aims < one).any(axis=1)
        assert not better.any(), i
    assert len(front) >= 2  # the best is not the smallest


def test_latencies_are_measured_once(folder, front):
    with RunStore(folder, read_only=True) as store:
        before = store.facts().latencies
    refine_run(folder)
    with RunStore(folder, read_only=True) as store:
        assert store.facts().latencies == before


def test_sizes_are_those_of_the_files(folder, front):
    own = front["trials"].map(
        lambda trials: sum((folder / "members" / f"{n:06d}.skops").stat().st_size for n in trials)
    )
    fixed = front["bytes"] - own
    assert fixed.nunique() == 1
    assert 0 < fixed.iloc[0] < folder_bytes(folder / "model")


def test_a_bound_of_size_holds_for_the_folder(folder, front, tmp_path):
    most = float(front["bytes"].median())
    refined = refine_run(folder, max_size=most / 2**20, out=tmp_path / "small")
    assert folder_bytes(tmp_path / "small") == refined.after["bytes"] <= most
    chosen = refined.front[refined.front["chosen"]]
    assert len(chosen) == 1
    model = Predictor.load(tmp_path / "small")
    assert set(model.ensemble.members) == set(chosen["trials"].iloc[0])
    assert model.information["latency"]["single_row_ms"] == refined.after["single_row_ms"]
    assert model.predict_set(X, 0.9).any(axis=1).all()
    assert "this machine" in describe_model(tmp_path / "small").facts["signature"]


def test_a_bound_of_latency_holds_for_the_whole_model(folder, front, tmp_path):
    refined = refine_run(folder, max_latency="10s", out=tmp_path / "fast")
    assert refined.after["single_row_ms"] == Predictor.load(tmp_path / "fast").information["latency"]["single_row_ms"]
    assert refined.after["single_row_ms"] <= 10_000


def test_a_bound_that_nothing_keeps_names_one_that_can_be_kept(folder, front, tmp_path):
    with pytest.raises(InvalidParameterError, match=r"max_latency must be at least [\d.]+ms"):
        refine_run(folder, max_latency="0.001ms", out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_another_metric_chooses_and_tunes_thresholds(folder, front, tmp_path):
    refined = refine_run(folder, metric="balanced_accuracy", out=tmp_path / "other")
    model = Predictor.load(tmp_path / "other")
    assert model.information["metric"] == "balanced_accuracy"
    assert model.information["decision"]["metric"] == "balanced_accuracy"
    assert 0.5 < refined.after["score"] <= 1
    assert refined.before["score"] is None


def test_trials_for_which_a_custom_metric_fails_are_left_out(folder, front):
    with RunStore(folder, read_only=True) as store:
        numbers = [row["number"] for row in store.rows() if row["loss"] is not None]
    judged = []

    def fails_first(truth, predicted):
        judged.append(1)
        if len(judged) == 1:
            raise ValueError("too few")
        return float(np.mean(truth == predicted))

    with pytest.warns(UserWarning, match=r"'fails_first' failed for 1 trial, left out here\. .*ValueError: too few"):
        refined = refine_run(folder, metric=fails_first, out=folder.with_name("without-first"))
    members = {number for trials in refined.front["trials"] for number in trials}
    assert members and numbers[0] not in members

    def fails(truth, predicted):
        raise ValueError("never")

    with pytest.raises(MetricError, match="ValueError: never"):
        refine_run(folder, metric=fails)


def test_another_threshold_keeps_the_ensemble(folder, tmp_path):
    refined = refine_run(folder, decision_threshold=0.2, out=tmp_path / "careful")
    before, after = Predictor.load(folder), Predictor.load(tmp_path / "careful")
    assert after.decision_threshold_ == pytest.approx(0.2) != before.decision_threshold_
    np.testing.assert_allclose(after.predict_proba(X), before.predict_proba(X))
    np.testing.assert_array_equal(after.predict(X) == after.classes_[1], after.predict_proba(X)[:, 1] >= 0.2)
    assert len(refined.front) == 1 and refined.front["chosen"].all()
    assert not after.information["decision"]["tuned"]
    found = refined.after["decisions"]
    assert (found["positive"], found["threshold"]) == (after.classes_[1], pytest.approx(0.2))
    more = refine_run(folder, decision_threshold=0.05, out=tmp_path / "eager").after["decisions"]
    assert more["true_positives"] >= found["true_positives"] and more["false_positives"] > found["false_positives"]
    assert sum(n for name, n in found.items() if "tives" in name) == sum(n for k, n in more.items() if "tives" in k)
    for wrong in (1.5, "often"):
        with pytest.raises(InvalidParameterError, match="decision_threshold must be 'auto', 'tune', 'none', a number"):
            refine_run(folder, decision_threshold=wrong, out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_members_can_be_stacked(folder, front, tmp_path):
    refined = refine_run(folder, ensemble="stacking", out=tmp_path / "stacked")
    assert isinstance(Predictor.load(tmp_path / "stacked").ensemble, StackedEnsemble)
    assert len(refined.front) == 1


@pytest.mark.long
def test_a_refit_has_one_model_for_each_member(folder, front, tmp_path):
    refined = refine_run(folder, max_size="300kB", refit=True, out=tmp_path / "refit")
    model = Predictor.load(tmp_path / "refit")
    assert len(model.encoders) == 1
    assert {len(models) for models in model.models.values()} == {1}
    assert refined.after["bytes"] <= 300_000
    assert refined.refit.n_rows == 80
    assert 0.2 < refined.refit.single_loss < 1
    assert refined.refit.single_loss != refined.refit.folds_loss
    assert model.conformal is None  # CV+ needs models of folds
    assert (model.predict(X) == Y).mean() > 0.7
    assert not (folder / "prepared" / "refit").exists()


def test_what_one_model_loses_is_measured_with_the_models_of_the_run(folder, front):
    with RunDirectory.open(folder) as run:
        stored = run.store.load(run.space.configuration_space)
        member = stored[1]
        ensemble = WeightedEnsemble((1,), (1.0,))
        compared = compare_refit(run, [member], ensemble, run.metric)
        judged = run.splits[0].validation
        # The model of the first fold was fitted on all rows except those that are judged.
        expected = run.metric.loss(run.rows.y[judged], member.predictions[judged])
    assert compared.single_loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_models_of_another_machine_are_first_loaded_in_a_child(folder, front, tmp_path, monkeypatch):
    copied = tmp_path / "run"
    shutil.copytree(folder, copied)
    for signature in (*(copied / "members").glob("signature-*"), *(copied / "model").glob("signature-*")):
        signature.unlink()
    tried = []

    def tracked(path, manifest, **settings):
        tried.append((path.name, len(manifest["members"])))
        check_first_load(path, manifest, **settings)

    for module in ("current_model", "measured_trials"):
        monkeypatch.setattr(f"cashmere.run.{module}.check_first_load", tracked)
    refined = refine_run(copied, max_size="1GB")
    n_models = len(list((copied / "members").glob("0*.skops")))
    assert tried[0][0] == "model"
    assert tried[1][1] == n_models
    assert describe_model(refined.model_folder).facts["signature"] == "not signed"


def test_bounds_need_selection(folder):
    with pytest.raises(IncompatibleParametersError, match="selection"):
        refine_run(folder, ensemble="stacking", max_size="1MB")


def test_a_folder_that_holds_something_is_refused(folder, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="holds something"):
        refine_run(folder, out=tmp_path)


def test_a_run_in_progress_is_refused(folder):
    with RunDirectory.open(folder), pytest.raises(RunLockedError):
        refine_run(folder)


def test_trials_without_models_are_no_candidates(folder, front, tmp_path):
    copied = tmp_path / "run"
    shutil.copytree(folder, copied)
    largest = max((copied / "members").glob("0*.skops"), key=os.path.getsize)
    largest.unlink()
    found = refine_run(copied).front
    assert int(largest.stem) not in set().union(*found["trials"])


def test_the_mean_of_selections_keeps_limits(monkeypatch, folder, front, tmp_path):
    monkeypatch.setattr("cashmere.run.ensemble_builder._LEAST_TRIALS", 2)
    averaged = []
    original = EnsembleBuilder._mean
    monkeypatch.setattr(EnsembleBuilder, "_mean", lambda *args: averaged.append(original(*args)) or averaged[-1])
    most = float(front["bytes"].median())
    refined = refine_run(folder, max_size=most / 2**20, out=tmp_path / "small")
    assert averaged
    assert refined.after["bytes"] <= most


def test_the_command_shows_the_front_and_writes_a_model_beside_that_of_the_run(folder, front):
    before = (folder / "model" / "manifest.json").read_bytes()
    (folder / "model-refined").mkdir()
    run = CliRunner().invoke(app, ["refine", str(folder), "--max-size", "1GB", "--metric", "brier"])
    assert run.exit_code == 0, run.output
    assert "Best trade-offs of score, latency and size (brier)" in run.output
    assert "Model of the run:" in run.output and "score -" not in run.output  # it has none under this metric
    assert Predictor.load(folder / "model-refined-2").ensemble.members
    assert (folder / "model" / "manifest.json").read_bytes() == before
    shutil.rmtree(folder / "model-refined-2")
    (folder / "model-refined").rmdir()


def test_the_command_names_its_option(folder, front):
    run = CliRunner().invoke(app, ["refine", str(folder), "--max-size", "1kB"])
    assert run.exit_code == 2
    assert "--max-size must be at least" in run.output


@pytest.mark.long
def test_what_was_not_repeated_may_be_chosen_where_most_of_the_ensemble_was(tmp_path):
    settings = {"repeats": 1, "resampling": "3fold", "isolation": "none", "run_directory": tmp_path / "run"}
    AutoClassifier(budget="6trials", **settings).fit(X, Y)
    with RunStore(tmp_path / "run", read_only=True) as store:
        repeated = {int(number) for number in store.facts().splits}
        numbers = [row["number"] for row in store.rows()]
        sizes = {number: store.member_path(number, 2 if number in repeated else 1).stat().st_size for number in numbers}
    smallest = min(sizes, key=sizes.get)
    assert repeated and smallest not in repeated
    front = refine_run(tmp_path / "run").front
    assert front.loc[front["bytes"].idxmin(), "trials"] == (smallest,)
