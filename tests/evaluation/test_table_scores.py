from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

import cashmere
from cashmere import AutoClassifier, AutoRegressor, Predictor
from cashmere.evaluation import table_scores
from cashmere.evaluation.metrics import metric_from_callable
from cashmere.exceptions import (
    DataError,
    IncompatibleParametersError,
    InvalidParameterError,
    MetricError,
    RowOrderWarning,
    SchemaError,
    TargetWarning,
    UnknownNameError,
)
from cashmere.space import make_space


def two_algorithms(profile):
    linear = "logistic_regression" if profile.task_type.is_classification else "ridge"
    return make_space("default", profile).restricted_to([linear, "extra_trees"])


QUICK = {"budget": "4trials", "space": two_algorithms, "isolation": "none", "resampling": "2fold"}


def rows(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return X, np.where(X["a"] + X["b"] ** 2 + 0.7 * rng.normal(size=n) > 2, "yes", "no")


@pytest.fixture(scope="module")
def rare():
    return AutoClassifier(metric="f1", **QUICK).fit(*rows(400, 0))


def test_scores_are_those_of_sklearn(rare):
    X, y = rows(300, 1)
    scores = rare.score_table(X, y)
    assert list(scores.intervals["metric"][:3]) == ["f1", "log_loss", "roc_auc"] and scores.n_rows == 300
    found = scores.models.loc[0]
    assert found["f1"] == pytest.approx(sk.f1_score(y, rare.predict(X), pos_label="yes"))  # with tuned thresholds
    assert found["log_loss"] == pytest.approx(sk.log_loss(y, rare.predict_proba(X)), rel=1e-5)
    assert found["average_precision"] == pytest.approx(
        sk.average_precision_score(y == "yes", rare.predict_proba(X)[:, 1]), rel=1e-5
    )
    assert scores.models["weight"][1:].sum() == pytest.approx(1)
    assert scores.models["f1"][1:].is_monotonic_decreasing
    for _, row in scores.intervals.iterrows():
        assert row["lower"] < row["score"] < row["upper"]


@pytest.mark.long
def test_functions_see_labels(rare):
    def share_of_yes_found(y_true, y_pred):
        return float(np.mean(y_pred[y_true == "yes"] == "yes"))

    X, y = rows(300, 1)
    expected = pytest.approx(sk.recall_score(y, rare.predict(X), pos_label="yes"))
    for metrics in (share_of_yes_found, ["accuracy", share_of_yes_found]):
        assert rare.score_table(X, y, metrics=metrics).models["share_of_yes_found"][0] == expected
    with pytest.raises(MetricError, match="'roc_auc_score' is computed from probabilities"):
        rare.score_table(X, y, metrics=sk.roc_auc_score)


def test_other_metrics_of_the_frequent_class_are_reported(tmp_path):
    X, y = rows(400, 0)
    names = np.where(y == "yes", "churned", "stays")
    model = AutoClassifier(run_directory=tmp_path / "run", **QUICK).fit(X, names)
    own = {"own_objects": {"space": two_algorithms}}
    for ask in (
        lambda: model.score_table(X, names, metrics=["log_loss", "f1"]),
        lambda: cashmere.run.refine_run(tmp_path / "run", metric="f1", **own),
    ):
        with pytest.warns(TargetWarning, match="f1 is that of the class 'stays', the second .* pos_label='churned'"):
            ask()
    model.score_table(X, names)  # not asked for
    cashmere.run.refine_run(tmp_path / "run", metric="roc_auc", **own)


def test_weights_may_be_a_column(rare):
    X, y = rows(100, 1)
    weight = np.arange(100) % 3
    expected = rare.score_table(X, y, sample_weight=weight).intervals
    weighed = X.assign(seen=weight)
    pd.testing.assert_frame_equal(rare.score_table(weighed, y, sample_weight="seen").intervals, expected)
    assert list(weighed) == [*"abc", "seen"]
    with pytest.raises(UnknownNameError, match="'sene'"):
        rare.score_table(weighed, y, sample_weight="sene")


def test_members_predict_what_the_ensemble_combines(rare):
    X, y = rows(50, 2)
    predictor = rare._predictor
    members = predictor.predict_members(X)
    assert sorted(members) == sorted(rare.ensemble_["trial"])
    np.testing.assert_allclose(predictor.combine(list(members.values())), predictor.predict_proba(X), atol=1e-6)
    scores = cashmere.score_table(predictor, X, y, metrics=["log_loss"])
    for number, predictions in members.items():
        (found,) = scores.models.query(f"model == 'trial {number}'")["log_loss"]
        assert found == pytest.approx(-np.log(predictions[np.arange(50), (y == "yes").astype(int)]).mean(), rel=1e-4)


def test_weights_count_rows(rare):
    X, y = rows(60, 3)
    weight = np.random.default_rng(0).integers(0, 3, 60)
    weighted = rare.score_table(X, y, sample_weight=weight)
    repeated = rare.score_table(X.loc[X.index.repeat(weight)], y.repeat(weight))
    np.testing.assert_allclose(
        weighted.models.select_dtypes("number"), repeated.models.select_dtypes("number"), rtol=1e-6
    )
    assert weighted.n_rows == np.count_nonzero(weight)


def test_intervals_cover_and_shrink_with_rows(rare, monkeypatch):
    widths = []
    for n in (200, 3200):
        found = rare.score_table(*rows(n, 4), metrics=["accuracy"]).intervals.loc[0]
        widths.append(found["upper"] - found["lower"])
    assert 2.5 < widths[0] / widths[1] < 6.5  # the root of 16, up to the noise of 200 resamples
    monkeypatch.setattr(table_scores, "_MOST_DRAWN", 400)
    fewer = rare.score_table(*rows(3200, 4), metrics=["accuracy"]).intervals.loc[0]
    assert fewer["upper"] - fewer["lower"] == pytest.approx(widths[1], rel=0.35)


def test_intervals_know_groups(rare):
    """Ten copies of every row are no new information: with groups, intervals are those without the copies."""
    X, y = rows(150, 13)
    once = rare.score_table(X, y, metrics=["accuracy", "log_loss"]).intervals
    names = [f"person {i:03}" for i in range(150)]
    copies = X.loc[np.tile(X.index, 10)].assign(person=names * 10).reset_index(drop=True)
    widths = {}
    for groups in (None, "person", copies["person"].to_numpy()):
        found = rare.score_table(copies, np.tile(y, 10), metrics=["accuracy", "log_loss"], groups=groups).intervals
        np.testing.assert_allclose(found["score"], once["score"])
        widths[str(groups)] = found["upper"] - found["lower"]
    own, alone, by_name, by_value = once["upper"] - once["lower"], *widths.values()
    np.testing.assert_allclose(by_name, own, rtol=1e-6)
    np.testing.assert_array_equal(by_name, by_value)
    assert (alone < 0.5 * own).all()


def test_groups_of_different_sizes_are_drawn_whole(rare, monkeypatch):
    X, y = rows(600, 14)
    groups = np.random.default_rng(0).integers(0, 40, 600) ** 2 // 40
    units = table_scores._Units.of(np.arange(600), groups)
    drawn = units.draw(500, np.random.default_rng(1))
    counts = np.bincount(drawn, minlength=600)
    for group in np.unique(groups):
        assert len(set(counts[groups == group])) == 1  # all rows of a group equally often
    whole = rare.score_table(X, y, groups=groups, metrics=["accuracy"]).intervals.loc[0]
    monkeypatch.setattr(table_scores, "_MOST_DRAWN", 200)
    fewer = rare.score_table(X, y, groups=groups, metrics=["accuracy"]).intervals.loc[0]
    assert fewer["upper"] - fewer["lower"] == pytest.approx(whole["upper"] - whole["lower"], rel=0.35)


def test_subgroups_are_scored_one_by_one(rare):
    X, y = rows(600, 13)
    X["ward"] = np.where(X["c"] > 0, 1.0, np.where(X["c"] > -1, 2.0, np.nan))
    found = rare.score_table(X[list("abc")], y, metrics=["log_loss", "roc_auc"], by=X["ward"]).subgroups
    assert list(dict.fromkeys(found["subgroup"])) == ["all rows", "1", "2", "missing"]
    one = found[found["subgroup"] == "1"].set_index("metric")
    inside = (X["c"] > 0).to_numpy()
    alone = rare.score_table(X.loc[inside, list("abc")], y[inside], metrics=["log_loss", "roc_auc"])
    np.testing.assert_allclose(one["score"], alone.models.loc[0, ["log_loss", "roc_auc"]].astype(float))
    np.testing.assert_allclose(one[["lower", "upper"]], alone.intervals[["lower", "upper"]])
    assert (one["n_rows"] == inside.sum()).all()
    assert one["observed"].iloc[0] == pytest.approx((y[inside] == "yes").mean())
    predicted = rare.predict_proba(X.loc[inside, list("abc")])[:, 1].mean()
    assert one["predicted"].iloc[0] == pytest.approx(predicted, rel=1e-5)


def test_scores_are_shown_as_tables(rare):
    X, y = rows(400, 15)
    scores = rare.score_table(X, y, by=np.where(X["a"] > 0, "<b>", "<i>"))
    text, page = str(scores), scores._repr_html_()
    assert repr(scores).startswith("TableScores(400 rows, f1 0.")
    for part in (text, page):
        assert all(title in part for title in ("Ensemble and members", "Decisions", "Subgroups"))
        assert "Compared" not in part
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_subgroups_may_be_undefined_for_a_metric_and_are_weighted(rare):
    X, y = rows(100, 14)
    weight = np.r_[np.ones(60), np.zeros(40)]
    found = rare.score_table(X, y, metrics="roc_auc", by=y, sample_weight=weight).subgroups.set_index("subgroup")
    assert found["n_rows"].to_dict() == {"all rows": 60, "no": (y[:60] == "no").sum(), "yes": (y[:60] == "yes").sum()}
    assert found["score"].isna().to_dict() == {"all rows": False, "no": True, "yes": True}


@pytest.mark.long
@pytest.mark.parametrize("by_class", [False, True])
def test_sets_are_held_against_the_rows(rare, by_class):
    X, y = rows(400, 20)
    weight = np.r_[np.ones(300), 2 * np.ones(50), np.zeros(50)]
    ward = np.where(X["c"] > 0, "north", "south")
    found = rare.score_table(X, y, sample_weight=weight, by=ward, coverage=0.8, by_class=by_class).covered
    assert list(found["part"]) == ["all rows", "class", "class", "subgroup", "subgroup"]
    assert list(found["name"]) == ["", "no", "yes", "north", "south"]
    held = rare.predict_set(X, 0.8, by_class=by_class)
    inside = held[np.arange(400), (y == "yes").astype(int)]
    chosen = (y == "yes") & (weight > 0)
    assert found["n_rows"][2] == chosen.sum()
    assert found["coverage"][2] == pytest.approx(np.average(inside[chosen], weights=weight[chosen]))
    assert found["size"][0] == pytest.approx(np.average(held.sum(axis=1), weights=weight))
    assert 0.7 < found["coverage"][0] < 0.97
    assert rare.score_table(X, y).covered is None


def test_intervals_are_held_against_the_rows():
    X, y = rows(400, 21)
    target = X["a"] + 0.5 * (y == "yes")
    model = AutoRegressor(**QUICK).fit(X[:250], target[:250])
    found = model.score_table(X[250:], target[250:], coverage=0.9).covered
    lower, upper = model.predict_interval(X[250:], 0.9).T
    assert len(found) == 1 and found["size"][0] == pytest.approx(np.mean(upper - lower))
    assert found["coverage"][0] == pytest.approx(np.mean((lower <= target[250:]) & (target[250:] <= upper)))
    assert 0.8 < found["coverage"][0] <= 1
    for asked in ({"coverage": 0.9, "by_class": True}, {"by_class": True}):
        with pytest.raises(IncompatibleParametersError, match="need coverage and a classification model"):
            model.score_table(X[250:], target[250:], **asked)
    with pytest.raises(InvalidParameterError, match="coverage"):
        model.score_table(X[250:], target[250:], coverage=1.5)


@pytest.fixture(scope="module")
def weak():
    X, y = rows(400, 0)
    return AutoClassifier(**QUICK).fit(X[["b", "c"]], y)


def test_another_model_is_compared_on_the_same_rows(rare, weak):
    X, y = rows(600, 16)
    found = rare.score_table(X, y, metrics=["log_loss", "accuracy"], against=weak)
    theirs = weak.score_table(X[["b", "c"]], y, metrics=["log_loss", "accuracy"]).intervals
    compared = found.compared.set_index("metric")
    assert compared["score"].tolist() == found.intervals["score"].tolist()
    assert compared["other"].tolist() == pytest.approx(theirs["score"].tolist())
    assert compared["better"].tolist() == ["lower", "higher"]
    assert (compared["difference"] == compared["score"] - compared["other"]).all()
    assert compared.loc["log_loss", "upper"] < 0 < compared.loc["accuracy", "lower"]
    of_two = np.hypot(*(each["upper"] - each["lower"] for each in (found.intervals, theirs)))  # as if independent
    assert (compared["upper"] - compared["lower"] < of_two.to_numpy()).all()


def test_a_model_does_not_differ_from_itself(rare):
    X, y = rows(100, 17)
    weight, groups = np.arange(100) % 3, np.arange(100) // 4
    compared = rare.score_table(X, y, against=rare, sample_weight=weight, groups=groups).compared
    assert (compared[["difference", "lower", "upper"]] == 0).all(axis=None)


def test_difference_shrinks_the_interval_as_rows_do(rare, weak, monkeypatch):
    X, y = rows(2000, 18)
    widths = []
    for most in (10_000, 500):  # of many rows, fewer are drawn
        monkeypatch.setattr(table_scores, "_MOST_DRAWN", most)
        compared = rare.score_table(X, y, metrics="log_loss", against=weak).compared.loc[0]
        widths.append(compared["upper"] - compared["lower"])
    assert widths[1] == pytest.approx(widths[0], rel=0.3)


def test_models_of_other_targets_are_not_compared(rare):
    X, y = rows(100, 19)
    other = AutoClassifier(**QUICK).fit(X, np.where(y == "yes", "1", "0"))
    with pytest.raises(InvalidParameterError, match=r"predicts the same: \['no', 'yes'\]; got \['0', '1'\]"):
        rare.score_table(X, y, against=other)
    values = AutoRegressor(**QUICK).fit(X, (X["a"] + X["b"]).rename("sum"))
    with pytest.raises(InvalidParameterError, match="numbers"):
        rare.score_table(X, y, against=values)
    with pytest.raises(InvalidParameterError, match="against must be a run directory, a Predictor, or a fitted Auto"):
        rare.score_table(X, y, against=LogisticRegression())


def test_what_are_no_subgroups_is_refused(rare):
    X, y = rows(60, 15)
    with pytest.raises(UnknownNameError, match="ward"):
        rare.score_table(X, y, by="ward")
    with pytest.raises(DataError, match="one value per row"):
        rare.score_table(X, y, by=["a"] * 59)
    with pytest.raises(InvalidParameterError, match=r"at most 50 different values.*Cut numbers"):
        rare.score_table(X, y, by="a")


def test_subgroups_of_several_columns_are_named_by_column(rare):
    X, y = rows(200, 15)
    X = X.assign(ward=np.repeat(["n", "s"], 100), sex=np.tile([1, 2], 100))
    found = rare.score_table(X[[*"abc", "ward", "sex"]], y, metrics="log_loss", by=["ward", "sex"], coverage=0.8)
    assert found.subgroups["subgroup"].tolist() == ["all rows", "ward n", "ward s", "sex 1", "sex 2"]
    assert found.covered.query("part == 'subgroup'")["name"].tolist() == ["ward n", "ward s", "sex 1", "sex 2"]
    alone = rare.score_table(X[[*"abc", "ward"]], y, metrics="log_loss", by=["ward"]).subgroups
    assert alone["subgroup"].tolist() == ["all rows", "n", "s"]
    with pytest.raises(UnknownNameError, match="age"):
        rare.score_table(X, y, by=["ward", "age"])


def test_decisions_count_rows_by_the_threshold_of_the_model(rare):
    X, y = rows(200, 15)
    weight = np.repeat([2, 0], 100)
    found = rare.score_table(X[list("abc")], y, sample_weight=weight).decisions
    called = rare.predict_proba(X[list("abc")])[:100, 1] >= found["threshold"]
    is_yes = np.asarray(y)[:100] == "yes"
    assert (found["positive"], found["threshold"]) == ("yes", rare.decision_threshold_)
    assert (found["true_positives"], found["false_positives"]) == ((called & is_yes).sum(), (called & ~is_yes).sum())
    assert (found["false_negatives"], found["true_negatives"]) == ((~called & is_yes).sum(), (~called & ~is_yes).sum())
    assert found["recall"] == called[is_yes].mean()
    assert found["specificity"] == pytest.approx(1 - called[~is_yes].mean())
    assert found["precision"] == is_yes[called].mean()


def test_means_are_those_of_target_and_prediction(rare):
    X, y = rows(200, 15)
    weight = np.repeat([2, 0.5], 100)
    found = rare.score_table(X[list("abc")], y, sample_weight=weight, by=np.repeat("all", 200))
    share, probability = np.asarray(y) == "yes", rare.predict_proba(X[list("abc")])[:, 1]
    expected = {"observed": np.average(share, weights=weight), "predicted": np.average(probability, weights=weight)}
    assert found.means == pytest.approx(expected)
    assert found.subgroups[["observed", "predicted"]].iloc[0].to_dict() == pytest.approx(expected)


def test_f1_needs_a_row_of_the_positive_class(rare):
    X, y = rows(200, 22)
    found = rare.score_table(X[y == "no"], y[y == "no"], metrics=["f1", "accuracy"])
    assert np.isnan(found.models.loc[0, "f1"]) and found.intervals["lower"].isna().tolist() == [True, False]
    by = rare.score_table(X, y, metrics="f1", by=y).subgroups.set_index("subgroup")["score"]
    assert by.isna().to_dict() == {"all rows": False, "no": True, "yes": False}


def test_single_group_has_no_interval(rare):
    X, y = rows(60, 15)
    weight, groups = np.repeat([1, 0], 30), np.repeat(["a", "b"], 30)
    found = rare.score_table(X, y, sample_weight=weight, groups=groups, metrics="accuracy").intervals.loc[0]
    assert np.isfinite(found["score"]) and np.isnan(found["lower"]) and np.isnan(found["upper"])


def test_values_and_custom_metrics(tmp_path):
    X = rows(200, 5)[0]
    y = X["a"] - X["b"].abs()
    model = AutoRegressor(
        metric=metric_from_callable(sk.median_absolute_error, greater_is_better=False, needs="values"),
        run_directory=tmp_path / "run",
        **QUICK,
    ).fit(X[:100], y[:100])
    loaded = Predictor.load(tmp_path / "run")
    scores = cashmere.score_table(loaded, X[100:], y[100:])
    assert list(scores.intervals["metric"]) == ["rmse", "mae", "r2"]
    assert list(scores.intervals["better"]) == ["lower", "lower", "higher"]
    assert scores.models["r2"][0] == pytest.approx(sk.r2_score(y[100:], model.predict(X[100:])))


def test_targets_out_of_the_range_of_a_deviance_are_named():
    X = rows(200, 5)[0]
    claims = X["a"].abs() + 0.1
    model = AutoRegressor(metric="gamma", **QUICK).fit(X, claims)
    reversed_, none = claims.where(X.index != 7, -3.0), claims.where(X.index != 7, 0.0)
    with pytest.raises(MetricError, match="'gamma' needs positive targets, but the smallest is -3"):
        model.score_table(X, reversed_)
    with pytest.raises(MetricError, match=r"'gamma' needs positive targets, but the smallest is 0.*tweedie, poisson"):
        model.score_table(X, none)
    weight = (X.index != 7).astype(float)
    assert np.isfinite(model.score_table(X, none, sample_weight=weight).intervals["score"]).all()


def test_classes_are_decided_as_predict_does():
    y = np.where(np.arange(1000) < 140, "b", "a")
    X = pd.DataFrame({"u": np.random.default_rng(0).random(1000)})
    with pytest.warns(UserWarning, match="constant"):
        model = AutoClassifier(budget="0.01s", decision_threshold=0.14, isolation="none").fit(X, y)
    found = model.score_table(X, y, metrics="accuracy").models
    assert found["model"].tolist() == ["ensemble", "constant"]
    assert found["accuracy"].tolist() == [model.score(X, y)] * 2


@pytest.mark.long
def test_custom_metric_is_not_taken_for_the_built_in_of_its_name(tmp_path):
    def accuracy(y_true, y_pred):
        return -float(np.mean((y_true == 1) & (y_pred == 0)))

    X, y = rows(200, 7)
    with pytest.warns(UserWarning, match="'accuracy' is 0 for every trial.*labels such as 'no' and 'yes'"):
        model = AutoClassifier(metric=accuracy, run_directory=tmp_path / "run", **QUICK).fit(X, y)
    scores = model.score_table(X, y)
    assert scores.intervals["metric"][0] == "accuracy" and scores.intervals["score"][0] <= 0
    loaded = cashmere.score_table(tmp_path / "run", X, y)
    assert loaded.intervals["metric"][0] == "log_loss"
    assert loaded.models["accuracy"][0] == pytest.approx((model.predict(X) == y).mean())


def test_undefined_scores_are_missing(rare):
    X, y = rows(100, 8)
    one = rare.score_table(X[y == "no"], y[y == "no"]).intervals.set_index("metric")
    assert one.loc[["roc_auc", "average_precision", "mcc"], "score"].isna().all()
    assert one.loc[["log_loss", "accuracy"], "score"].notna().all()
    auc = metric_from_callable(sk.roc_auc_score, needs="probabilities", name="own_auc")
    few = np.r_[np.flatnonzero(y == "no")[:40], np.flatnonzero(y == "yes")[:2]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn: some draws have one class
        found = rare.score_table(X.iloc[few], y[few], metrics=[auc, "roc_auc"]).intervals
    assert found["score"][0] == pytest.approx(found["score"][1]) and found["lower"].notna().all()


def test_custom_metric_that_fails_on_all_rows_is_an_error(rare):
    X, y = rows(50, 12)
    with pytest.raises(MetricError, match="The metric function failed"):
        rare.score_table(X, y, metrics=[metric_from_callable(lambda y_true, y_pred: 1 / 0)])


def test_metrics_need_names_of_their_own(rare):
    X, y = rows(20, 9)
    twice = [metric_from_callable(sk.accuracy_score, name="same"), metric_from_callable(sk.f1_score, name="same")]
    for metrics in (twice, [metric_from_callable(sk.accuracy_score, name="weight")]):
        with pytest.raises(InvalidParameterError, match="metrics with different names"):
            rare.score_table(X, y, metrics=metrics)
    assert list(rare.score_table(X, y, metrics=["mcc", "mcc"]).intervals["metric"]) == ["mcc"]


@pytest.mark.long
def test_stacked_members_have_no_weights():
    X, y = rows(200, 10)
    scores = AutoClassifier(ensemble="stacking", **QUICK).fit(X, y).score_table(X, y)
    assert scores.models["weight"][1:].isna().all()


def test_target_in_another_order_is_warned_of(rare):
    X, y = rows(20, 11)
    with pytest.warns(RowOrderWarning):
        rare.score_table(X, pd.Series(y).sample(frac=1, random_state=1))


def test_what_cannot_be_scored_is_refused(rare):
    X, y = rows(20, 6)
    with pytest.raises(UnknownNameError, match="acuracy"):
        rare.score_table(X, y, metrics=["acuracy"])
    with pytest.raises(DataError, match="labels that were not in training: 'maybe'"):
        rare.score_table(X, np.where(y == "yes", "maybe", y))
    with pytest.raises(DataError, match="equally many rows"):
        rare.score_table(X, y[:-1])
    with pytest.raises(DataError, match="groups must have one value for each of 20 rows; got 3"):
        rare.score_table(X, y, groups=[1, 2, 3])
    with pytest.raises(UnknownNameError, match="person"):
        rare.score_table(X, y, groups="person")
    with pytest.raises(SchemaError, match="lacks 1 column"):
        rare.score_table(X.drop(columns="a"), y)
