from __future__ import annotations

import contextlib
import errno
import os
import pickle
import signal
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from ConfigSpace import ConfigurationSpace, Float
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, mean_tweedie_deviance, root_mean_squared_log_error
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cashmere import AutoClassifier, AutoRegressor
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import (
    DataError,
    IncompatibleParametersError,
    InvalidParameterError,
    MetricError,
    NoSuccessfulTrialError,
    RowOrderWarning,
    RunDirectoryError,
    SchemaError,
    TargetWarning,
    UnknownNameError,
)
from cashmere.model.predictor import Predictor
from cashmere.run import refine_run
from cashmere.space import Algorithm, Operator, Space, Subspace, make_space
from cashmere.space.component import CLASSIFICATION
from cashmere.strategies import RandomSearch


def quick_space(profile):
    """Two cheap algorithms of the default space."""
    linear = "logistic_regression" if profile.task_type.is_classification else "ridge"
    return make_space("default", profile).restricted_to([linear, "extra_trees"])


class LinearSpace:
    """One cheap algorithm, as the checks of scikit-learn fit several hundred times."""

    def __call__(self, profile):
        linear = "logistic_regression" if profile.task_type.is_classification else "ridge"
        return make_space("default", profile).restricted_to([linear])

    def __repr__(self):
        return "linear_space"  # it names tests, and the address in a function's repr would differ in every process


linear_space = LinearSpace()


def quick(estimator=AutoClassifier, **changes):
    settings = {"budget": "3trials", "space": quick_space, "isolation": "none", "resampling": "3fold"}
    return estimator(**{**settings, **changes})


CHECKED = [
    quick(estimator, budget="2trials", space=linear_space, resampling="holdout")
    for estimator in (AutoClassifier, AutoRegressor)
]


# A row of weight 2 is on one side of every split, while two equal rows may be on both. scikit-learn expects this of its
# own estimators that cross-validate.
EXPECTED_FAILURES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "cross-validation splits rows, whatever their weights"
    for kind in ("dense", "sparse")
}


@pytest.mark.sampled(2)
@parametrize_with_checks(CHECKED, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks themselves warn
        check(estimator)


@pytest.fixture(scope="module")
def credit():
    frame = demo_table().sample(300, random_state=0)
    return frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET]


@pytest.fixture(scope="module")
def fitted(credit):
    return quick(budget="6trials").fit(*credit)


def test_string_labels_come_back(fitted, credit):
    assert list(fitted.classes_) == ["bad", "good"]
    assert set(fitted.predict(credit[0])) <= {"bad", "good"}
    assert fitted.score(*credit) > 0.7


def test_probabilities_have_a_column_per_class_and_sum_to_one(fitted, credit):
    probabilities = fitted.predict_proba(credit[0])
    assert probabilities.shape == (300, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-9)


def test_members_have_weights_that_sum_to_one(fitted):
    assert list(fitted.ensemble_.columns) == ["trial", "algorithm", "weight"]
    assert fitted.ensemble_["weight"].sum() == pytest.approx(1)
    assert fitted.ensemble_["weight"].is_monotonic_decreasing


def test_leaderboard_lists_the_trials_best_first(fitted):
    assert len(fitted.leaderboard_) == 6
    assert fitted.leaderboard_["loss"].is_monotonic_increasing
    assert fitted.failures_.empty
    assert len(fitted.study_.history) == 6


def test_fitted_estimator_survives_pickle_and_clone(fitted, credit):
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(credit[0]), fitted.predict_proba(credit[0]))
    assert clone(fitted).get_params()["budget"] == "6trials"


@pytest.mark.long
def test_permuted_training_rows_give_the_same_model(fitted, credit):
    X, y = credit
    order = np.random.default_rng(1).permutation(len(X))
    other = quick(budget="6trials").fit(X.iloc[order], y.iloc[order])
    np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))


def test_a_row_is_predicted_the_same_alone_and_among_others(fitted, credit):
    X = credit[0]
    together = fitted.predict_proba(X)
    for i in (0, 17, 299):
        np.testing.assert_allclose(fitted.predict_proba(X.iloc[[i]])[0], together[i], atol=1e-6)


def test_re_ordered_columns_are_accepted_missing_ones_refused_by_name(fitted, credit):
    X = credit[0]
    np.testing.assert_array_equal(fitted.predict_proba(X[X.columns[::-1]]), fitted.predict_proba(X))
    with pytest.raises(ValueError, match="credit_amount"):
        fitted.predict(X.drop(columns=["credit_amount"]))


def test_unseen_category_and_missing_value_are_predicted(fitted, credit):
    X = credit[0].head(3).astype({"purpose": object})
    X.loc[X.index[0], "purpose"] = "never seen"
    X.loc[X.index[1], "purpose"] = None
    assert np.isfinite(fitted.predict_proba(X)).all()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["numpy", "polars", "csr", "coo array", "list"])
def test_every_form_of_table_gives_the_same_model(kind):
    X, y = load_iris(return_X_y=True)
    make = {
        "numpy": lambda a: a,
        "polars": lambda a: pl.DataFrame(a, schema=[f"x{i}" for i in range(a.shape[1])]),
        "csr": sp.csr_matrix,
        "coo array": sp.coo_array,
        "list": lambda a: a.tolist(),
    }[kind]
    expected = quick().fit(X, y).predict_proba(X)
    model = quick().fit(make(X), y)
    np.testing.assert_allclose(model.predict_proba(make(X)), expected, atol=1e-12)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::cashmere.exceptions.RowStructureWarning")
def test_polars_and_pandas_with_categories_dates_and_text_agree():
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "flag": rng.random(n) > 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, n), unit="D"),
            "note": [" ".join(rng.choice(["good", "bad", "fine", "poor", "great", "awful"], 7)) for _ in range(n)],
            "constant": 1,
        }
    )
    y = np.where(frame["note"].str.count("good") + frame["number"] > 1, "yes", "no")
    a = quick().fit(frame, y).predict_proba(frame)
    b = quick().fit(pl.from_pandas(frame), y).predict_proba(pl.from_pandas(frame))
    np.testing.assert_allclose(a, b)


LABELS = {"integers": [10, 20, 30], "positions": [0, 1, 2], "levels": [("a", "x"), ("a", "y"), ("b", "x")]}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", LABELS)
def test_columns_of_any_labels_are_found_in_any_order(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=pd.Index(LABELS[kind]))
    y = np.where(X.iloc[:, 0] > 0, "yes", "no")
    model = quick().fit(X, y)
    assert not hasattr(model, "feature_names_in_")  # as in scikit-learn
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X[X.columns[::-1]]), expected)
    np.testing.assert_array_equal(model.predict_proba(X.to_numpy()), expected)


def test_other_labels_are_refused():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=[10, 20])
    model = quick().fit(X, X[10] > 0)
    with pytest.raises(SchemaError, match="lacks 1 column it had in training: '20'"):
        model.predict(X.rename(columns={20: 30}))


def test_names_that_training_lacked_are_warned_of():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    model = quick().fit(X.to_numpy(), X["a"] > 0)
    with pytest.warns(UserWarning, match="X has feature names, but AutoClassifier was fitted without") as caught:
        model.predict(X)
    assert caught[0].filename == __file__


@pytest.mark.long
def test_weights_change_the_model_by_their_ratios():
    X, y = load_iris(return_X_y=True)
    plain = quick().fit(X, y).predict_proba(X)
    weights = np.random.default_rng(0).integers(1, 6, len(y))
    weighted = quick().fit(X, y, sample_weight=weights).predict_proba(X)
    assert np.abs(plain - weighted).max() > 1e-4
    np.testing.assert_array_equal(quick().fit(X, y, sample_weight=weights / 2).predict_proba(X), weighted)


@pytest.mark.long
def test_weights_may_be_a_column():
    X, y = load_iris(return_X_y=True, as_frame=True)
    weight = pd.Series(1.0 + np.arange(len(X)) % 3, name="persons")
    by_values, by_name = quick(), quick()
    by_values.fit(X, y, sample_weight=weight)
    wide = X.assign(persons=weight)
    by_name.fit(wide, y, sample_weight="persons")
    assert list(by_name.feature_names_in_) == list(X) and "persons" in wide
    np.testing.assert_array_equal(by_name.predict_proba(wide), by_values.predict_proba(X))
    with pytest.raises(UnknownNameError, match="person"):
        quick().fit(wide, y, sample_weight="person")


@pytest.mark.long
def test_rows_of_weight_zero_count_as_removed():
    X, y = load_iris(return_X_y=True)
    seen = np.random.default_rng(0).random(len(y)) < 0.8
    weighted = quick().fit(X, y, sample_weight=seen).predict_proba(X)
    np.testing.assert_array_equal(weighted, quick().fit(X[seen], y[seen]).predict_proba(X))


def test_only_columns_that_are_used_must_be_finite():
    X = pd.DataFrame({"a": np.arange(40.0), "k": 1.0, "c": [1.0, 2.0] * 20}).astype({"c": "category"})
    model = quick(space=linear_space, budget="1trials").fit(X, np.arange(40) % 2)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X.assign(k=np.inf, new=-np.inf)), expected)
    assert len(model.score_table(X.assign(k=np.inf, new=-np.inf), np.arange(40) % 2).intervals)
    for name in ("a", "c"):
        with pytest.raises(DataError, match=f"contains infinity.*'{name}'"):
            model.predict(X.assign(**{name: np.inf}))
    rows = np.column_stack([np.arange(40.0), np.ones(40)])
    model.fit(rows, np.arange(40) % 2)
    np.testing.assert_array_equal(model.predict(rows * [1, np.inf]), model.predict(rows))
    with pytest.raises(DataError, match="contains infinity"):
        model.predict(np.full((3, 2), np.inf))


@pytest.mark.parametrize("budget", ["1trials", 0.001])
@pytest.mark.parametrize("gone", [0, 2])
def test_a_class_of_weight_zero_keeps_its_column(gone, budget):
    X, y = load_iris(return_X_y=True)
    model = quick(space=linear_space, budget=budget)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The budget")
        probabilities = model.fit(X, y, sample_weight=y != gone).predict_proba(X)
    assert probabilities.shape == (150, 3) and (probabilities[:, gone] == 0).all()
    assert set(model.classes_) == {0, 1, 2} and set(model.predict(X)) <= {0, 1, 2} - {gone}


@pytest.mark.parametrize("resampling", ["3fold", [(np.arange(0, 20), np.arange(20, 40))]])
def test_a_single_class_of_positive_weight_is_refused(resampling):
    y = np.arange(40) % 2
    with pytest.raises(DataError, match="only one class is present: all 20 rows with a weight above 0 are 1"):
        quick(resampling=resampling).fit(np.eye(40), y, sample_weight=y)


@pytest.mark.long
def test_heavy_rows_do_not_make_random_labels_look_predictable():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
    model = quick().fit(X, y, sample_weight=np.where(np.arange(200) < 100, 5, 6))
    assert model.leaderboard_["loss"].min() > 0.5


@pytest.mark.long
def test_class_with_a_single_row_keeps_its_column():
    X, y = load_iris(return_X_y=True)
    y = y.copy()
    y[0] = 3
    model = quick().fit(X, y)
    assert model.predict_proba(X).shape == (150, 4)


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4))
    return X, np.where(rng.random(1200) < 1 / (1 + np.exp(3 - 1.5 * X[:, 0])), "rare", "common")


@pytest.mark.long
def test_g_mean_is_decided_by_a_tuned_threshold_which_helps_on_new_rows(rare):
    X, y = rare
    model = quick(metric="g_mean").fit(X[:600], y[:600])
    probabilities = model.predict_proba(X[600:])
    threshold = model.decision_threshold_
    assert 0 < threshold < 0.3
    predicted = model.predict(X[600:])
    np.testing.assert_array_equal(predicted == "rare", probabilities[:, 1] >= threshold)

    def g_mean(labels):
        return np.sqrt(np.prod([np.mean(labels[y[600:] == name] == name) for name in ("rare", "common")]))

    assert g_mean(predicted) > g_mean(model.classes_[probabilities.argmax(axis=1)]) + 0.1
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.long
def test_tuned_threshold_helps_on_unseen_rows_of_a_real_table():
    frame = demo_table()
    X, y = frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET].to_numpy()
    unseen = np.random.default_rng(0).random(len(y)) < 0.3
    model = quick(metric="g_mean").fit(X[~unseen], y[~unseen])
    tuned = model.predict(X[unseen])
    plain = model.classes_[model.predict_proba(X[unseen]).argmax(axis=1)]

    def g_mean(labels):
        return np.sqrt(np.prod([np.mean(labels[y[unseen] == name] == name) for name in ("bad", "good")]))

    assert model.decision_threshold_ > 0.55  # "good" is the more frequent class
    assert g_mean(tuned) > g_mean(plain) + 0.03


@pytest.mark.long
@pytest.mark.parametrize(("metric", "threshold", "expected"), [(None, "auto", 0.5), ("g_mean", "none", 0.5)])
def test_without_tuning_the_most_probable_class_is_predicted(rare, metric, threshold, expected):
    X, y = rare
    model = quick(metric=metric, decision_threshold=threshold).fit(X, y)
    assert model.decision_threshold_ == expected
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


@pytest.mark.long
def test_thresholds_do_not_change_search_and_probabilities(rare):
    X, y = rare
    tuned, plain, fixed = (
        quick(metric="balanced_accuracy", decision_threshold=t).fit(X, y) for t in ("tune", "none", 0.07)
    )
    assert tuned.decision_threshold_ < 0.5
    assert fixed.decision_threshold_ == pytest.approx(0.07)
    np.testing.assert_array_equal(fixed.predict_proba(X), tuned.predict_proba(X))
    for other in (tuned, fixed):
        assert [o.loss for o in other.study_.history] == [o.loss for o in plain.study_.history]
    np.testing.assert_array_equal(fixed.predict(X) == "rare", fixed.predict_proba(X)[:, 1] >= 0.07)


@pytest.mark.long
def test_positive_class_may_be_the_first(rare):
    X, y = rare
    names = np.where(y == "rare", "churned", "stays")
    found = quick(metric="f1", pos_label="churned").fit(X, names)
    other = quick(metric="f1", pos_label="stays").fit(X, names)
    assert found.classes_.tolist() == ["churned", "stays"]
    assert found.leaderboard_["score"].max() < 0.7 < 0.9 < other.leaderboard_["score"].min()
    threshold = found.decision_threshold_
    assert 0 < threshold < 0.5
    predicted = found.predict(X)
    np.testing.assert_array_equal(predicted == "churned", found.predict_proba(X)[:, 0] >= threshold)
    judged = found.score_table(X, names).intervals.set_index("metric")["score"]
    assert judged["f1"] == pytest.approx(f1_score(names, predicted, pos_label="churned"))
    copy = pickle.loads(pickle.dumps(found))
    assert copy.decision_threshold_ == threshold


def test_given_threshold_is_that_of_the_positive_class(rare):
    X, y = rare
    X, y = X[:300], np.where(y == "rare", "churned", "stays")[:300]
    model = quick(decision_threshold=0.07, pos_label="churned").fit(X, y)
    assert model.decision_threshold_ == pytest.approx(0.07)
    np.testing.assert_array_equal(model.predict(X) == "churned", model.predict_proba(X)[:, 0] >= 0.07)


def test_positive_class_must_be_one_of_two(rare):
    X, y = rare
    with pytest.raises(InvalidParameterError, match=r"pos_label must be one of the two classes, 'common', 'rare'"):
        quick(pos_label="usual").fit(X, y)
    with pytest.raises(InvalidParameterError, match=r"pos_label must be None; got 1\. The target has values"):
        quick(AutoRegressor, pos_label=1).fit(X, X[:, 0])


@pytest.mark.long
def test_thresholds_of_several_classes_sum_to_one(rare):
    X, y = rare
    y = np.where((y == "common") & (X[:, 1] > 1.2), "other", y)
    model = quick(metric="g_mean").fit(X, y)
    assert model.decision_threshold_.shape == (3,)
    assert model.decision_threshold_.sum() == pytest.approx(1)
    assert model.decision_threshold_[0] == max(model.decision_threshold_)  # the common class
    ratio = model.predict_proba(X) / model.decision_threshold_
    np.testing.assert_array_equal(model.predict(X), model.classes_[ratio.argmax(axis=1)])


@pytest.mark.parametrize(
    ("estimator", "threshold", "n_classes"),
    [
        (AutoRegressor, "tune", 100),
        (AutoRegressor, 0.3, 100),
        (AutoClassifier, 0.3, 3),
        (AutoClassifier, 0.0, 2),
        (AutoClassifier, 1, 2),
        (AutoClassifier, True, 2),
        (AutoClassifier, "tuned", 2),
        (AutoClassifier, None, 2),
    ],
)
def test_decision_threshold_that_does_not_fit_is_refused(estimator, threshold, n_classes):
    y = np.arange(200) % n_classes
    with pytest.raises(InvalidParameterError, match=r"decision_threshold must be .*'auto'"):
        quick(estimator, decision_threshold=threshold).fit(y.reshape(-1, 1), y)


def test_custom_metric_sees_labels():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["a", "b", "c"])[y]

    def share_of_a_found(y_true, y_pred):
        assert set(y_true) <= {"a", "b", "c"}
        return float(np.mean(y_pred[y_true == "a"] == "a"))

    model = quick(metric=share_of_a_found).fit(X, labels)
    assert model.leaderboard_["score"].max() == 1.0


def test_custom_algorithm_in_ten_lines():
    def build(values, context):
        from sklearn.naive_bayes import GaussianNB

        return GaussianNB(var_smoothing=values["var_smoothing"])

    def subspace(profile):
        return Subspace(hyperparameters=[Float("var_smoothing", (1e-12, 1e-1), log=True)])

    naive_bayes = Algorithm(name="naive_bayes", build=build, subspace=subspace, tasks=CLASSIFICATION)
    model = quick(space=lambda profile: quick_space(profile).with_algorithm(naive_bayes), budget="5trials")
    model.fit(*load_iris(return_X_y=True))
    assert "naive_bayes" in set(model.leaderboard_["algorithm"])


def test_every_trial_failing_is_a_typed_error_with_the_reasons():
    def build(values, context):
        raise RuntimeError("this learner never works")

    broken = Algorithm(name="broken", build=build, tasks=CLASSIFICATION)
    model = quick(space=lambda profile: quick_space(profile).with_algorithm(broken).restricted_to(["broken"]))
    with pytest.raises(NoSuccessfulTrialError, match="this learner never works") as caught:
        model.fit(*load_iris(return_X_y=True))
    assert caught.value.failures[0][1:3] == ("broken", "error")


def test_learner_without_probabilities_under_a_metric_that_needs_them_says_so():
    from sklearn.linear_model import RidgeClassifier

    ridge = Algorithm(
        name="ridge_classifier",
        build=lambda values, context: RidgeClassifier(),
        tasks=CLASSIFICATION,
        trusted_types=("sklearn.linear_model._ridge.RidgeClassifier",),
    )
    model = quick(space=lambda p: quick_space(p).with_algorithm(ridge).restricted_to(["ridge_classifier"]))
    with pytest.raises(NoSuccessfulTrialError, match="predict_proba"):
        model.fit(*load_iris(return_X_y=True))
    model.set_params(metric="accuracy").fit(*load_iris(return_X_y=True))
    assert model.score(*load_iris(return_X_y=True)) > 0.7


@pytest.mark.long
def test_works_inside_meta_estimators():
    X, y = load_iris(return_X_y=True)
    fast = quick(budget="2trials", resampling="holdout")
    pipeline = make_pipeline(StandardScaler(), fast)
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.8
    search = GridSearchCV(fast, {"ensemble": ["selection", "best"]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8
    for meta in (
        StackingClassifier([("auto", fast)], LogisticRegression(), cv=2),
        VotingClassifier([("auto", fast), ("lr", LogisticRegression(max_iter=500))], voting="soft"),
        CalibratedClassifierCV(fast, cv=2),
    ):
        assert meta.fit(X, y).score(X, y) > 0.8


def test_nothing_is_printed_and_no_directory_is_left(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    quick(isolation="process", budget="3trials").fit(*load_iris(return_X_y=True))
    assert capfd.readouterr() == ("", "")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("cashmere-")]


def test_full_disk_of_a_temporary_run_promises_nothing(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("cashmere.storage.store._write_predictions", full)
    with pytest.raises(RunDirectoryError) as caught:
        quick(space=linear_space).fit(*load_iris(return_X_y=True))
    assert str(caught.value).endswith(
        "cannot be written, because its disk is full. Free some space, then fit again; finished trials are only kept "
        "in a run_directory."
    )
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("cashmere-")]


@pytest.mark.long
def test_run_directory_is_kept_and_continued(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    folder = tmp_path / "run"
    model = quick(AutoRegressor, run_directory=folder).fit(X, y)
    assert (folder / "report.html").exists()
    more = quick(AutoRegressor, run_directory=folder, resume=True, budget="5trials").fit(X, y)
    assert len(more.study_.history) == 5
    assert [o.loss for o in more.study_.history[:3]] == [o.loss for o in model.study_.history]


@pytest.mark.long
def test_further_time_too_short_for_a_trial_is_warned_of(tmp_path):
    X, y = load_iris(return_X_y=True)
    quick(run_directory=tmp_path / "run").fit(X, y)
    with pytest.warns(UserWarning, match="No further trial finished in this time"):
        model = quick(run_directory=tmp_path / "run", resume=True, budget="0.01s").fit(X, y)
    assert len(model.leaderboard_) == 3


def test_budget_too_small_for_a_trial_gives_the_constant_predictor_and_says_so():
    X, y = load_iris(return_X_y=True)
    model = quick(budget="0.01s")
    with pytest.warns(UserWarning, match="constant"):
        model.fit(X, y)
    assert len(set(model.predict(X))) == 1
    assert model.ensemble_["algorithm"].tolist() == ["baseline"]


def test_interrupt_before_any_trial_ends_does_not_blame_the_budget():
    me = os.getpid()

    def build(values, context):
        os.kill(me, signal.SIGINT)
        time.sleep(60)

    algorithm = Algorithm(name="slow", build=build, subspace=lambda profile: Subspace(), tasks=CLASSIFICATION)
    model = quick(
        space=lambda profile: quick_space(profile).with_algorithm(algorithm).restricted_to(["slow"]),
        isolation="process",
        n_workers=1,
    )
    with pytest.warns(UserWarning, match=r"^The search was interrupted before any trial ended, so the model predicts"):
        model.fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("verbose", ["yes", -1, None])
def test_verbose_is_a_number(verbose):
    with pytest.raises(InvalidParameterError, match=r"verbose must be 0 \(silent\) or 1"):
        AutoRegressor(budget="1trials", verbose=verbose).fit([[1.0], [2.0]] * 10, [1.5, 2.5] * 10)


def test_run_directory_must_be_a_path_and_resuming_needs_one():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(
        InvalidParameterError, match=r"run_directory must be a path, or None for a temporary run; got 3"
    ):
        quick(run_directory=3).fit(X, y)
    with pytest.raises(IncompatibleParametersError, match=r"resume needs run_directory.*or leave out resume"):
        quick(resume=True).fit(X, y)


def test_excluding_all_that_are_included_says_so():
    with pytest.raises(InvalidParameterError, match=r"exclude must be fewer than all of 'extra_trees'; got"):
        quick(include=["extra_trees"], exclude=["extra_trees"]).fit(*load_iris(return_X_y=True))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("ensemble", ["selection", "bagging", "stacking", "best"])
@pytest.mark.parametrize("estimator", [AutoClassifier, AutoRegressor])
def test_every_ensemble_method_works_end_to_end(estimator, ensemble):
    X, y = load_iris(return_X_y=True) if estimator is AutoClassifier else load_diabetes(return_X_y=True)
    model = quick(estimator, ensemble=ensemble, budget="6trials").fit(X, y)
    assert model.score(X, y) > 0.3


def test_custom_metric_for_regression_sees_values():
    X, y = load_diabetes(return_X_y=True)

    def within_fifty(y_true, y_pred):
        return float(np.mean(np.abs(y_true - y_pred) < 50))

    model = quick(AutoRegressor, metric=within_fifty).fit(X, y)
    assert 0.3 < model.leaderboard_["score"].max() <= 1.0


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.* are unlike those in training:cashmere.exceptions.UnknownValuesWarning")
@pytest.mark.parametrize("metric", ["poisson", "gamma", "tweedie@1.7"])
def test_deviance_gets_positive_predictions_that_stay_when_saved(metric, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    mean = np.exp(1.5 * X[:, 0])
    y = rng.gamma(2.0, mean / 2) if metric == "gamma" else rng.poisson(mean).astype(float)
    model = quick(AutoRegressor, metric=metric, run_directory=tmp_path / "run", budget="8trials").fit(X, y)
    far = 20 * rng.normal(size=(200, 3))  # linear models predict negative values there
    predicted = model.predict(far)
    assert (predicted >= 0.99e-3 * y.mean()).all()
    judged = model.score_table(X, y, metrics=[metric]).intervals["score"][0]
    power = {"poisson": 1, "gamma": 2}.get(metric, 1.7)
    assert judged == pytest.approx(mean_tweedie_deviance(y, model.predict(X), power=power), rel=1e-5)
    assert judged < mean_tweedie_deviance(y, np.full(300, y.mean()), power=power)
    np.testing.assert_array_equal(Predictor.load(tmp_path / "run").predict(far), predicted)
    with pytest.raises(MetricError, match="smallest is -1"):
        quick(AutoRegressor, metric=metric).fit(X, y - (y.min() + 1))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.* are unlike those in training:cashmere.exceptions.UnknownValuesWarning")
def test_errors_of_logarithms_are_learned_from_logarithms(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.round(np.exp(3 * X[:, 0] + rng.normal(scale=0.3, size=300)), 2)
    of_values, of_logarithms = (
        quick(AutoRegressor, metric=metric, include=["ridge"], run_directory=tmp_path / metric, budget="2trials")
        for metric in ("rmse", "rmsle")
    )
    scores = [
        model.fit(X, y).score_table(X, y, metrics=["rmsle"]).intervals["score"][0]
        for model in (of_values, of_logarithms)
    ]
    assert scores[1] < 0.5 * scores[0]
    assert scores[1] == pytest.approx(root_mean_squared_log_error(y, of_logarithms.predict(X)), rel=1e-5)
    far = of_logarithms.predict(20 * X)
    assert far.min() >= 0 and far.max() <= 1.001 * np.e * (y.max() + 1)
    np.testing.assert_array_equal(Predictor.load(tmp_path / "rmsle").predict(20 * X), far)
    with pytest.raises(MetricError, match="smallest is -1"):
        quick(AutoRegressor, metric="rmsle").fit(X, y - (y.min() + 1))


@pytest.mark.parametrize("settings", [{"enable_metadata_routing": True}, {"transform_output": "pandas"}])
def test_global_settings_of_sklearn_change_nothing(settings, tmp_path):
    X, y = load_iris(return_X_y=True)
    weight = np.linspace(1, 2, len(X))
    linear = {"space": "default", "include": ["logistic_regression"]}
    expected = quick(**linear).fit(X, y, sample_weight=weight).predict_proba(X)
    with sklearn.config_context(**settings):
        model = quick(run_directory=tmp_path / "run", **linear).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        refined = refine_run(tmp_path / "run", refit=True)
        assert np.isfinite(Predictor.load(refined.model_folder).predict_proba(X)).all()
    np.testing.assert_array_equal(model.predict_proba(X), expected)


class OwnLearner(LogisticRegression):
    """A class that is on nobody's allow-list."""


def test_custom_learner_class_must_be_trusted_and_the_trial_says_so():
    name = f"{OwnLearner.__module__}.{OwnLearner.__name__}"

    def space_with(trusted):
        own = Algorithm(
            name=f"own_{len(trusted)}",
            build=lambda values, context: OwnLearner(),
            tasks=CLASSIFICATION,
            trusted_types=trusted,
        )
        return lambda profile: linear_space(profile).with_algorithm(own).restricted_to([own.name])

    X, y = load_iris(return_X_y=True)
    with pytest.raises(NoSuccessfulTrialError, match=f"not trusted: {name}"):
        quick(space=space_with(())).fit(X, y)
    assert quick(space=space_with((name,))).fit(X, y).score(X, y) > 0.9


class OwnScaler(StandardScaler):
    """A class that is on nobody's allow-list."""


@pytest.mark.long
def test_types_are_checked_for_every_kind_of_pipeline_and_not_once_per_algorithm():
    scaler = Operator(name="own_scaler", build=lambda values, context: OwnScaler())
    plain = Operator(name="plain", build=lambda values, context: StandardScaler())

    def space(profile):
        learner = linear_space(profile).algorithms[0]
        return Space(name="two", algorithms=(learner,), operators={"scaler": (plain, scaler)}, profile=profile)

    X, y = load_iris(return_X_y=True)
    model = quick(space=space, budget="4trials", strategy="random", lookahead=1).fit(X, y)
    statuses = {o.trial.configuration["scaler"]: o.status for o in model.study_.history}
    assert statuses == {"plain": "success", "own_scaler": "error"}


@pytest.mark.long
@pytest.mark.parametrize("change", [{"metric": "mae"}, {"random_state": 5}, {"strategy": "random"}])
def test_resume_with_other_settings_is_refused_by_name(tmp_path, change):
    X, y = load_diabetes(return_X_y=True)
    settings = {"run_directory": tmp_path / "run", "space": linear_space}
    quick(AutoRegressor, **settings).fit(X, y)
    name = next(iter(change)).replace("random_state", "seed")
    with pytest.raises(RunDirectoryError, match=f"started with {name}="):
        quick(AutoRegressor, **settings, resume=True, **change).fit(X, y)


@pytest.mark.parametrize("resampling", ["holdout", KFold(3)])
def test_columns_of_a_resumed_run_may_be_in_another_order(tmp_path, resampling):
    X, y = load_iris(return_X_y=True, as_frame=True)
    settings = {"run_directory": tmp_path / "run", "space": linear_space, "resampling": resampling}
    quick(**settings, budget="1trials").fit(X, y)
    turned = X.iloc[:, ::-1]
    model = quick(**settings, budget="2trials", resume=True).fit(turned, y)
    assert len(model.study_.history) == 2
    assert list(model.feature_names_in_) == list(turned)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        unnamed = model.predict_proba(turned.to_numpy())
    np.testing.assert_array_equal(unnamed, model.predict_proba(X))
    with pytest.raises(RunDirectoryError, match="other rows"):
        quick(**settings, budget="2trials", resume=True).fit(turned.set_axis(list(X), axis=1), y)


def test_run_with_a_drawn_seed_is_resumed_with_it(tmp_path):
    X, y = load_iris(return_X_y=True)
    settings = {"run_directory": tmp_path / "run", "space": linear_space, "random_state": None, "budget": "1trials"}
    quick(**settings).fit(X, y)
    model = quick(**{**settings, "budget": "2trials"}, resume=True).fit(X, y)
    assert len(model.study_.history) == 2


@pytest.mark.long
def test_resume_with_other_rows_is_refused(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    settings = {"run_directory": tmp_path / "run", "space": linear_space}
    quick(AutoRegressor, **settings).fit(X, y)
    for other in ((X[:-1], y[:-1]), (X + 1, y), (X, y + 1)):
        with pytest.raises(RunDirectoryError, match="other rows"):
            quick(AutoRegressor, **settings, resume=True, budget="5trials").fit(*other)


def test_resume_with_other_columns_says_which(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.set_axis(["a", "b", "c", "d"], axis=1)
    settings = {"run_directory": tmp_path / "run", "space": linear_space, "budget": "1trials"}
    quick(**settings).fit(X, y)
    for other, message in (
        (X.assign(e=1.0), r"other columns: 'e' is new\."),
        (X[["a"]].assign(e=y, f=y), r"other columns: X lacks 'b', 'c', 'd', and 'e', 'f' are new\."),
        (X.astype({"c": "float32"}), r"\(the type of 'c' was float64 and is float32\)"),
        (X.assign(a=X["a"] + 1).astype({"c": pd.SparseDtype("float64", 0.0)}), r"other rows than .* weight 0\."),
        (X.astype({"a": str}), r"\(the type of 'a' was float64 and is "),
        (X.assign(a=X["a"] + 1), r"other rows have the weight 0\. Start"),
    ):
        with pytest.raises(RunDirectoryError, match=message):
            quick(**settings, resume=True).fit(other, y)
    with pytest.raises(RunDirectoryError, match="150 rows with a weight then, 149 now"):
        quick(**settings, resume=True).fit(X[1:], y[1:])
    settings["run_directory"] = tmp_path / "unnamed"
    quick(**settings).fit(X.to_numpy(), y)
    with pytest.raises(RunDirectoryError, match="started with 4 columns, but X has 3"):
        quick(**settings, resume=True).fit(X.to_numpy()[:, 1:], y)


def test_custom_splitter_keeps_its_row_numbers_under_weights():
    X, y = load_iris(return_X_y=True)
    rows = np.arange(len(y))
    splits = [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3)]
    weights = np.where(rows % 2, 2, 0)
    model = quick(space=linear_space, resampling=splits).fit(X, y, sample_weight=weights)
    assert model.study_.history[0].predictions.shape == (150, 3)


def test_fits_leave_no_files_threads_or_processes_behind():
    import gc
    import threading

    import psutil
    from processes import descendants

    X, y = load_iris(return_X_y=True)
    me = psutil.Process()

    def held():
        gc.collect()
        return me.num_fds(), threading.active_count(), len(descendants())

    def targets():
        """The targets of the descriptors, if the system reports them."""
        found = []
        for each in Path("/proc/self/fd").glob("*"):
            with contextlib.suppress(OSError):  # the descriptor of this listing
                found.append(str(each.readlink()))
        return sorted(found)

    quick(space=linear_space, isolation="process", n_workers=2).fit(X, y)  # libraries keep what they open once
    before, open_before = held(), targets()
    for isolation in ("none", "none", "process"):
        quick(space=linear_space, isolation=isolation).fit(X, y)
    # On a busy machine, threads of the pools may close their descriptors a little later.
    deadline = time.monotonic() + 20
    while (after := held())[0] > before[0] or after[1:] != before[1:]:
        assert time.monotonic() < deadline, (before, after, open_before, targets())
        time.sleep(0.1)


def test_doubtful_targets_are_reported_before_the_search():
    X = pd.DataFrame({"size": range(40)})
    model = AutoClassifier(budget="1trials", isolation="none")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TargetWarning, match="'Yes' and 'yes'"):
            model.fit(X, ["yes", "Yes", "no", "no"] * 10)
        with pytest.raises(TargetWarning, match="Class 9 of the target"):
            model.fit(X, [0] * 20 + [1] * 16 + [9] * 4)
        with pytest.raises(RowOrderWarning, match=r"rows of y have the same labels.*y\.loc\[X\.index\]"):
            model.fit(X[::-1], pd.Series(["yes", "no"] * 20))


def test_strategy_that_is_made_already_is_refused():
    strategy = RandomSearch(ConfigurationSpace({"x": (0.0, 1.0)}))
    with pytest.raises(InvalidParameterError, match="strategy must be a name, a class, or a function from a space"):
        AutoClassifier(budget="1trials", isolation="none", strategy=strategy).fit([[1], [2], [3], [4]], [0, 1, 0, 1])


@pytest.mark.parametrize("make", [AutoClassifier, AutoRegressor])
def test_warnings_point_to_the_line_that_calls_fit(make):
    frame = demo_table().sample(120, random_state=0)
    name = "target" if make is AutoClassifier else "credit_amount"
    model = make(budget="1trial", isolation="none", resampling="holdout", space=linear_space)
    with pytest.warns(TargetWarning, match="The features contain the target") as found:
        model.fit(frame, frame[name])
    assert {each.filename for each in found} == {__file__}
