"""Strange tables end in a valid model or in one of our own errors, never in a bare exception."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier, AutoRegressor
from cashmere.exceptions import CashmereError, RowStructureWarning, TargetWarning
from cashmere.space import make_space

RNG = np.random.default_rng(0)
N = 60


def small_space(profile):
    linear = "logistic_regression" if profile.task_type.is_classification else "ridge"
    return make_space("default", profile).restricted_to(["lightgbm", linear])


def fit(X, y, estimator=AutoClassifier, **changes):
    settings = {"budget": "2trials", "space": small_space, "isolation": "none", "resampling": "2fold"}
    return estimator(**{**settings, **changes}).fit(X, y)


def labels(n=N):
    return np.where(np.arange(n) % 2, "yes", "no")


def numbers(n=N, d=3):
    return pd.DataFrame(RNG.normal(size=(n, d)), columns=[f"c{i}" for i in range(d)])


WORKING = {
    "all columns constant": (pd.DataFrame({"a": [1] * N, "b": ["x"] * N}), labels()),
    "all values missing": (pd.DataFrame({"a": [np.nan] * N, "b": [None] * N}), labels()),
    "one column": (numbers(d=1), labels()),
    "two rows per class": (numbers(4), labels(4)),
    "minority class of one": (numbers(), np.where(np.arange(N) == 0, "rare", "common")),
    "minority class of three": (numbers(), np.where(np.arange(N) < 3, "rare", labels())),
    "thirty classes of two": (numbers(), np.arange(N) // 2),
    "wide": (numbers(d=1500), labels()),
    "integer column names": (numbers().set_axis([0, 1, 2], axis=1), labels()),
    "odd column names": (numbers().set_axis(["", "a b\n<script>", "x" * 5000], axis=1), labels()),
    "names that JSON and LightGBM dislike": (numbers().set_axis(['{"a":1}', "a[0]", "ünï,cödé"], axis=1), labels()),
    "huge and tiny numbers": (numbers() * [1e300, 1e-300, 1e38], labels()),
    "mostly missing": (numbers().where(RNG.random((N, 3)) < 0.05), labels()),
    "mixed objects": (pd.DataFrame({"a": [1, "two", 3.0, None, True] * 12}), labels()),
    "nullable types": (numbers().convert_dtypes().assign(d=pd.array([1, None] * 30, dtype="Int64")), labels()),
    "boolean target": (numbers(), np.arange(N) % 2 == 0),
    "categorical target with unused level": (numbers(), pd.Categorical(labels(), ["no", "yes", "never"])),
    "float class labels": (numbers(), (np.arange(N) % 3).astype(float)),
    "duplicate rows only": (pd.DataFrame({"a": [1, 2] * 30, "b": [0, 1] * 30}), labels()),
    "row index with duplicates": (numbers().set_axis([7] * N), pd.Series(labels(), index=[7] * N)),
    "many levels": (pd.DataFrame({"a": [f"level {i % 55}" for i in range(N)], "b": RNG.normal(size=N)}), labels()),
    "dates with gaps": (pd.DataFrame({"when": pd.to_datetime(["2024-01-01", None, "2025-06-05"] * 20)}), labels()),
    "text": (
        pd.DataFrame({"t": [f"the {'good' if i % 2 else 'bad'} number {i} of all words" for i in range(N)]}),
        labels(),
    ),
    "rows that differ by target only": (pd.DataFrame({"a": [1.0] * 30 + [2.0] * 30}), labels()),
}

REFUSED = {
    "no rows": (numbers(0), [], "0 sample"),
    "no columns": (pd.DataFrame(index=range(N)), labels(), "feature"),
    "one row": (numbers(1), ["yes"], "one class|1 sample"),
    "one class": (numbers(), ["yes"] * N, "one class"),
    "missing target": (numbers(), [None, *labels(N - 1)], "missing|NaN"),
    "target of other length": (numbers(), labels(N - 1), "inconsistent"),
    "infinite value": (numbers().replace({"c1": {numbers().iloc[0, 1]: 0}}).assign(c1=np.inf), labels(), "c1"),
    "duplicate names": (numbers().set_axis(["a", "a", "b"], axis=1), labels(), "'a'"),
    "lists in cells": (pd.DataFrame({"a": [[1, 2]] * N}), labels(), "'a'"),
    "complex numbers": (numbers().to_numpy() + 1j, labels(), "[Cc]omplex"),
    "one dimension": (np.arange(N), labels(), "2D"),
    "three dimensions": (np.zeros((N, 2, 2)), labels(), "dim"),
    "continuous target": (numbers(), RNG.normal(size=N), "continuous"),
    "mixed target": (numbers(), np.array([1, "a"] * 30, dtype=object), "label type"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WORKING)
def test_strange_table_gives_a_valid_model(name):
    X, y = WORKING[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RowStructureWarning)  # some of the tables hold dates, others tell the target
        warnings.filterwarnings("ignore", "Column '.*' predicts the target nearly alone", TargetWarning)
        model = fit(X, y)
        probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), len(pd.unique(np.asarray(y))))
    assert np.isfinite(probabilities).all()
    assert set(model.predict(X)) <= set(np.asarray(y))


@pytest.mark.parametrize("name", REFUSED)
def test_table_that_cannot_work_is_refused_with_a_reason(name):
    X, y, reason = REFUSED[name]
    with pytest.raises((CashmereError, ValueError, TypeError), match=reason) as caught:
        fit(X, y)
    assert isinstance(caught.value, CashmereError) or "sklearn" in str(caught.traceback[-1].path)
    assert len(str(caught.value)) > 20


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"metric": "acuracy"}, "'accuracy'"),
        ({"metric": "rmse"}, "does not fit"),
        ({"metric": 7}, "name, a Metric or a function"),
        ({"strategy": "bayes"}, "Known: .* bo,"),
        ({"space": "defualt"}, "'default'"),
        ({"resampling": "1fold"}, "resampling"),
        ({"ensemble": "select"}, "'selection'"),
        ({"ensemble_size": 0}, "at least 1"),
        ({"n_workers": -1}, "n_workers"),
        ({"lookahead": 0}, "lookahead"),
        ({"random_state": -5}, "random_state"),
        ({"isolation": "full"}, "isolation"),
        ({"budget": "eternity"}, "250trials"),
        ({"memory": "much"}, "4GiB"),
        ({"trial_timeout": "-1s"}, "trial_timeout"),
    ],
)
def test_bad_parameter_is_named_with_what_was_expected(change, reason):
    with pytest.raises(CashmereError, match=reason):
        fit(numbers(), labels(), **change)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_regression_target_of_any_scale(scale):
    X = numbers(100)
    y = (X["c0"] * 2 + X["c1"] + 5).to_numpy() * scale
    model = fit(X, y, AutoRegressor, budget="4trials")
    assert model.score(X, y) > 0.8


def test_constant_regression_target():
    with pytest.warns(TargetWarning, match=r"Every row has the target 3\.5: there is nothing to predict"):
        model = fit(numbers(), np.full(N, 3.5), AutoRegressor)
    assert np.allclose(model.predict(numbers()), 3.5)
