"""`RunSettings` is the only list of settings: command line and estimators offer it with the same defaults."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields, replace
from datetime import timedelta

import numpy as np
import pytest
import typer

from cashmere import AutoClassifier, AutoRegressor
from cashmere.cli import app
from cashmere.data.task import TaskType
from cashmere.exceptions import InvalidParameterError, UnknownNameError
from cashmere.records.budget import Budget
from cashmere.records.order import Order
from cashmere.run import RunSettings
from cashmere.run.settings import inputs

DEFAULTS = {f.name: f.default for f in fields(RunSettings)}

NO_SETTINGS_OF_ESTIMATORS = {"preset", "executor", "run_directory", "resume", "verbose"}
NO_SETTINGS_OF_FIT = {
    *(
        "preset",
        "table",
        "out",
        "drop_missing_target",
        "missing_target",
        "ignore",
        "categorical",
        "sample_weight",
        "scheduler",
        "quiet",
        "resume",
    )
}


@pytest.mark.parametrize("estimator", [AutoClassifier, AutoRegressor])
def test_estimators_offer_the_settings_with_their_defaults(estimator):
    named = {each.parameter for each in inputs().values() if each.parameter is not None}
    assert inspect.signature(estimator).parameters.keys() == named | NO_SETTINGS_OF_ESTIMATORS
    assert RunSettings.from_parameters(estimator().get_params()) == RunSettings()


def test_command_line_offers_the_settings_with_their_defaults():
    offered = {p.name: p for p in typer.main.get_command(app).commands["fit"].params}
    named = {each.option: name for name, each in inputs().items() if each.option is not None}
    assert offered.keys() == named.keys() | NO_SETTINGS_OF_FIT
    assert all(f"--{option.replace('_', '-')}" in offered[option].opts for option in named)
    defaults = {option: offered[option].default for option in named if not offered[option].required}
    assert RunSettings.from_options(**defaults) == RunSettings()


def test_parameters_and_options_are_read_alike():
    parameters = AutoClassifier(budget="5m,9trials", memory="1GiB", trial_timeout="1m", random_state=3).get_params()
    settings = RunSettings.from_parameters(parameters, task="binary", target_name="kind")
    options = {"budget": "5m,9trials", "memory": "1GiB", "trial_timeout": "1m", "seed": 3, "target": "kind"}
    assert settings == RunSettings.from_options(task="binary", **options)
    assert settings.budget == Budget(seconds=300.0, trials=9)
    assert (settings.memory_mib, settings.trial_seconds) == (1024.0, 60.0)


def test_texts_that_cannot_be_read_are_named_as_they_were_given():
    with pytest.raises(InvalidParameterError, match=r"^--trial-timeout must be"):
        RunSettings.from_options(trial_timeout="never")
    with pytest.raises(InvalidParameterError, match=r"^trial_timeout must be"):
        RunSettings.from_parameters(AutoClassifier(trial_timeout="never").get_params())
    with pytest.raises(UnknownNameError, match="worker"):
        RunSettings.from_options(worker=2)


@pytest.mark.parametrize("wrong", ["1", 1.5, True])
def test_seed_is_named_as_it_was_given(wrong):
    with pytest.raises(InvalidParameterError, match=r"^random_state must be a whole number"):
        RunSettings.from_parameters(AutoClassifier(random_state=wrong).get_params())


def test_generators_and_none_draw_a_seed():
    def seed(random_state):
        return RunSettings.from_parameters(AutoClassifier(random_state=random_state).get_params()).seed

    assert seed(np.random.RandomState(1)) == seed(np.random.RandomState(1)) != seed(np.random.RandomState(2))
    assert seed(np.random.default_rng(1)) == seed(np.random.default_rng(1))
    assert seed(None) != seed(None)


def test_stored_settings_are_read_back_with_the_users_objects():
    metric = np.mean
    settings = RunSettings(metric=metric, budget=Budget(trials=4), n_workers=2)
    stored = settings.to_json()
    assert (stored["budget"], stored["own_objects"]) == ("4trials", ["metric"])
    assert RunSettings.from_json({**stored, "of_another_version": 1}, {"metric": metric}) == settings


def test_numbers_of_numpy_are_stored_as_numbers():
    settings = RunSettings(seed=np.int64(5), n_workers=np.int32(2), repeats=np.int64(1), budget=Budget(trials=4))
    stored = json.loads(json.dumps(settings.to_json()))
    assert (stored["seed"], stored["n_workers"], stored["repeats"]) == (5, 2, 1)
    assert RunSettings.from_json(stored, {}) == settings


def test_numbers_of_numpy_are_read_like_those_of_python():
    given = {
        "budget": np.int64(60),
        "memory": np.int32(512),
        "trial_timeout": np.int16(5),
        "max_latency": np.float32(1),
    }
    settings = RunSettings.from_parameters(AutoClassifier(**given).get_params())
    assert settings.budget == Budget(seconds=60.0)
    assert (settings.memory_mib, settings.trial_seconds, settings.max_latency) == (512.0, 5.0, 1.0)
    with pytest.raises(InvalidParameterError, match="memory must be at least 64 MiB"):
        RunSettings.from_parameters(AutoClassifier(memory=np.int64(4)).get_params())


@pytest.mark.parametrize("name", ["include", "exclude"])
def test_algorithms_may_be_named_in_any_order(name):
    names = ["ridge", "extra_trees", "lasso", "mlp"]
    first, again, of_set = (
        RunSettings.from_parameters(AutoRegressor(**{name: given}).get_params() | {"random_state": 0})
        for given in (names, names[::-1], set(names))
    )
    assert first.changed_in(again) is None
    assert getattr(of_set, name) == tuple(sorted(names))
    assert first.changed_in(replace(first, **{name: tuple(names[1:])})) is not None


def test_rule_is_also_read_by_its_earlier_name():
    settings = RunSettings(fold_racing="forgiving")
    assert RunSettings.from_json({**settings.to_json(), "fold_racing": "incumbent"}, {}) == settings


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_resume_may_change_settings_that_decide_nothing(name):
    other = {
        "budget": Budget(trials=1), "n_workers": 3, "lookahead": 64, "seed": 7, "memory_mib": 100.0,
        "trial_seconds": 5.0, "isolation": "none", "ensemble": "best", "ensemble_size": 3,
        "decision_threshold": "none", "fold_racing": "forgiving", "resampling": "holdout", "repeats": 3,
        "order": Order.ARRIVAL, "deployable": "onnx", "max_latency": 0.01, "refit": True,
    }.get(name, "another")  # fmt: skip
    settings = RunSettings(time="day" if name == "gap" else None)
    changed = settings.changed_in(replace(settings, **{name: other}))
    free = {"task", "budget", "n_workers", "memory_mib", "trial_seconds", "isolation", "target_name", "weight_name"}
    assert changed == (None if name in free else (name, DEFAULTS[name], other))


@pytest.mark.parametrize(
    ("given", "read"), [("auto", "auto"), ("yes", True), ("no", False), (True, True), (np.False_, False)]
)
def test_refit_is_a_word_or_a_truth_value(given, read):
    settings = RunSettings.from_options(refit=given, budget="1trials")
    assert settings.refit is read or settings.refit == read == "auto"
    assert RunSettings.from_json(settings.to_json(), {}) == settings


def test_automatic_resampling_may_be_given_again():
    assert RunSettings(resampling="5fold").changed_in(RunSettings(resampling="auto")) is None


def test_budget_that_nobody_read_is_refused():
    with pytest.raises(InvalidParameterError, match=r"Budget\.parse"):
        RunSettings(budget="5m")


def test_structure_is_named_by_a_column():
    assert RunSettings().structure_kind is None
    assert (RunSettings(groups="ward").structure_kind, RunSettings(time="day").structure_kind) == ("groups", "time")
    assert RunSettings.from_options(groups="ward", budget="1trials").groups == "ward"
    assert RunSettings.from_json({"budget": "1trials"}, {}).structure_kind is None  # of earlier versions
    with pytest.raises(InvalidParameterError, match="groups must be the name of a column; got 3"):
        RunSettings(groups=3)


def test_memory_that_no_worker_fits_in_is_refused():
    with pytest.raises(InvalidParameterError, match=r"memory must be at least 64 MiB; got 4\. .* write '4GiB'"):
        RunSettings.from_parameters(AutoClassifier(memory=4).get_params())


@pytest.mark.parametrize("given", ["28d", " 28D ", "672h", "4w", timedelta(weeks=4), np.timedelta64(28, "D")])
def test_a_gap_is_the_same_in_other_words(given):
    assert RunSettings.from_parameters(AutoClassifier(gap=given).get_params(deep=False), time="day").gap == "28d"


@pytest.mark.parametrize(("given", "read"), [("90m", "90m"), ("1.5s", "1.5s"), ("3", 3.0), (0.5, 0.5), (None, None)])
def test_gaps_are_durations_or_numbers(given, read):
    assert RunSettings.from_parameters(AutoClassifier(gap=given).get_params(deep=False), time="day").gap == read


@pytest.mark.parametrize(
    "given",
    [True, 0, -1.0, np.nan, "nan", "soon", "3y", "1d-", timedelta(0), timedelta(days=-1), np.timedelta64("NaT"),
     np.timedelta64(2, "M"), "200000000d", [3]],
)  # fmt: skip
def test_what_is_no_gap_is_refused(given):
    with pytest.raises(InvalidParameterError, match="gap must be a positive number, or a time such as '28d'"):
        RunSettings.from_parameters(AutoClassifier(gap=given).get_params(deep=False), time="day")


@pytest.mark.parametrize("threshold", ["f1>=0.5", "recall>=95", "recall", 1.0, None, True])
def test_thresholds_that_decide_nothing_are_refused(threshold):
    with pytest.raises(InvalidParameterError, match=r"a rate such as 'recall>=0\.9'; got .* Rates are recall, "):
        RunSettings(budget=Budget(trials=1), decision_threshold=threshold)


def test_rates_are_those_of_two_classes():
    settings = RunSettings(budget=Budget(trials=1), decision_threshold="recall>=0.9")
    settings.check_task(TaskType.BINARY)
    for task, expected in ((TaskType.MULTICLASS, "for more than two classes"), (TaskType.REGRESSION, "for regression")):
        with pytest.raises(InvalidParameterError, match=expected):
            settings.check_task(task)
