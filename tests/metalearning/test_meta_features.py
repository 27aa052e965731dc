from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from cashmere.data.inference import infer_schema
from cashmere.data.task import TaskType
from cashmere.exceptions import ArrayError, ShapeError
from cashmere.metalearning.landmarkers import LANDMARKERS, gaussian_naive_bayes, linear_discriminant, nearest_neighbour
from cashmere.metalearning.meta_features import (
    META_FEATURES,
    MetaFeatureScaler,
    describe_frame,
    meta_features,
    stack_features,
)
from cashmere.storage.directory import TrainingRows

ACCURACIES = [f"accuracy_{name}" for name in LANDMARKERS]
ABOUT_CLASSES = ["log_classes", "class_entropy", "majority_share", *ACCURACIES]
ABOUT_CLASSES += [f"class_size_{how}" for how in ("min", "max", "mean", "std")]
ABOUT_NUMBERS = [f"{what}_{how}" for what in ("skewness", "kurtosis") for how in ("min", "max", "mean", "std")]
ABOUT_CATEGORIES = [f"categories_{how}" for how in ("min", "max", "mean", "std")]


def describe(values, y, categorical=None, task_type=TaskType.MULTICLASS):
    values = np.asarray(values, dtype=np.float64)
    mask = np.zeros(values.shape[1], dtype=bool) if categorical is None else np.asarray(categorical, dtype=bool)
    return meta_features(values, np.asarray(y), categorical=mask, task_type=task_type)


def mixed_table(n=300, seed=0):
    """Return two numeric and two categorical columns with missing values, and three classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    values = np.column_stack([rng.normal(size=n) + y, rng.exponential(size=n), rng.integers(4, size=n), y > 1])
    values[rng.random(values.shape) < 0.1] = np.nan
    return values, y, np.array([False, False, True, True])


def undefined(features):
    return {name for name, value in features.items() if np.isnan(value)}


def test_there_are_forty_in_a_fixed_order():
    features = describe(*mixed_table())
    assert len(META_FEATURES) == len(set(META_FEATURES)) == 40
    assert tuple(features) == META_FEATURES
    assert all(type(value) is float for value in features.values())


def test_simple_numbers_by_hand():
    values = [[1.0, 0, 5], [2.0, 1, np.nan], [4.0, 2, np.nan], [8.0, 2, 5], [9.0, np.nan, 5]]
    z = describe(values, [0, 0, 0, 2, 2], [False, True, True])
    assert z["log_rows"] == pytest.approx(np.log(5))
    assert z["log_columns"] == pytest.approx(np.log(3))
    assert z["log_classes"] == pytest.approx(np.log(2))  # code 1 does not occur
    assert z["log_columns_per_row"] == pytest.approx(np.log(3 / 5))
    assert [z[f"class_size_{how}"] for how in ("min", "max", "mean", "std")] == [2, 3, 2.5, 0.5]
    assert z["class_entropy"] == pytest.approx(-0.4 * np.log(0.4) - 0.6 * np.log(0.6))
    assert z["majority_share"] == pytest.approx(0.6)
    assert (z["numeric_columns"], z["categorical_columns"]) == (1, 2)
    assert (z["numeric_share"], z["categorical_share"]) == pytest.approx((1 / 3, 2 / 3))
    assert [z[name] for name in ABOUT_CATEGORIES] == [1, 3, 2, 1]
    assert z["missing_share"] == pytest.approx(3 / 15)
    assert z["rows_with_missing_share"] == pytest.approx(3 / 5)
    assert z["columns_with_missing_share"] == pytest.approx(2 / 3)
    assert z["skewness_mean"] == pytest.approx(stats.skew([1, 2, 4, 8, 9]))
    assert z["kurtosis_max"] == pytest.approx(stats.kurtosis([1, 2, 4, 8, 9]))


def test_shapes_agree_with_scipy():
    rng = np.random.default_rng(1)
    values = rng.gamma([0.5, 1, 2, 5], size=(400, 4))
    values[rng.random(values.shape) < 0.2] = np.nan
    z = describe(values, rng.integers(2, size=400))
    skewness = stats.skew(values, nan_policy="omit")
    kurtosis = stats.kurtosis(values, nan_policy="omit")
    for how, of in {"min": np.min, "max": np.max, "mean": np.mean, "std": np.std}.items():
        assert z[f"skewness_{how}"] == pytest.approx(of(skewness), rel=1e-10)
        assert z[f"kurtosis_{how}"] == pytest.approx(of(kurtosis), rel=1e-10)


def test_components_agree_with_scikit_learn():
    rng = np.random.default_rng(2)
    values = rng.exponential(size=(500, 3)) @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(500, 8))
    z = describe(values, rng.integers(2, size=500))
    pca = PCA().fit(standardised := stats.zscore(values))
    first = pca.transform(standardised)[:, 0]
    n_needed = 1 + np.sum(np.cumsum(pca.explained_variance_ratio_) < 0.95)
    assert z["components_share"] == n_needed / 8
    assert z["component_skewness"] == pytest.approx(abs(stats.skew(first)), rel=1e-6)
    assert z["component_kurtosis"] == pytest.approx(stats.kurtosis(first), rel=1e-6)


def test_information_of_columns():
    """A copy of four balanced classes knows log 4 nats, halves of them log 2, a constant nothing."""
    y = np.repeat([0, 1, 2, 3], 25)
    z = describe(np.column_stack([y, y // 2, np.zeros(100)]), y, [True, False, False])
    assert z["information_max"] == pytest.approx(np.log(4))
    assert z["information_mean"] == pytest.approx((np.log(4) + np.log(2)) / 3)
    missing = np.where(y == 0, np.nan, 1.0)[:, None]
    assert describe(missing, y)["information_max"] == pytest.approx(-0.25 * np.log(0.25) - 0.75 * np.log(0.75))


def test_information_is_the_same_for_any_monotone_scale():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(300, 1)), rng.integers(2, size=300)
    assert describe(x, y)["information_max"] == describe(np.exp(3 * x), y)["information_max"]


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (nearest_neighbour, KNeighborsClassifier(1, algorithm="brute")),
        (gaussian_naive_bayes, GaussianNB()),
        (linear_discriminant, LinearDiscriminantAnalysis()),
    ],
)
def test_landmarkers_predict_as_scikit_learn(ours, theirs):
    rng = np.random.default_rng(4)
    y = rng.choice(5, size=600, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    Z = stats.zscore(rng.normal(size=(5, 7))[y] + rng.normal(size=(600, 7)))
    np.testing.assert_array_equal(ours(Z[:400], y[:400], Z[400:]), theirs.fit(Z[:400], y[:400]).predict(Z[400:]))


def test_landmarkers_recognise_what_they_are_made_for():
    rng = np.random.default_rng(5)
    n = 1200
    x = rng.uniform(-1, 1, size=(n, 4))
    threshold = describe(x, x[:, 0] > 0.2)
    assert threshold["accuracy_stump"] > 0.98
    assert threshold["accuracy_random_node"] < 0.85  # it finds the column one time in four
    line = describe(x, x @ [1, -1, 1, -1] > 0)
    assert line["accuracy_linear_discriminant"] > 0.95 > line["accuracy_decision_tree"] > line["accuracy_stump"]
    ring = describe(x[:, :2], np.square(x[:, :2]).sum(axis=1) < 0.6)
    assert ring["accuracy_naive_bayes"] > 0.85 > 0.6 > ring["accuracy_linear_discriminant"]
    checkers = describe(x[:, :2], (np.floor(3 * x[:, 0]) + np.floor(3 * x[:, 1])) % 2)
    assert checkers["accuracy_nearest_neighbour"] > 0.85 > 0.65 > checkers["accuracy_naive_bayes"]
    assert abs(describe(x, rng.integers(2, size=n))["accuracy_nearest_neighbour"] - 0.5) < 0.06


@pytest.mark.parametrize("n", [300, 5000])
def test_order_of_rows_does_not_matter(n):
    values, y, categorical = mixed_table(n)
    order = np.random.default_rng(6).permutation(n)
    for task_type in (TaskType.MULTICLASS, TaskType.REGRESSION):
        features = [describe(values[rows], y[rows], categorical, task_type) for rows in (np.arange(n), order)]
        assert list(map(str, features[0].items())) == list(map(str, features[1].items()))


@pytest.mark.long
def test_same_in_another_process(tmp_path):
    values, y, _ = mixed_table(3000)
    code = (
        "import numpy as np; from cashmere.metalearning.meta_features import TaskType, meta_features; "
        f"rows = np.load({str(tmp_path / 'rows.npy')!r}); mask = np.zeros(4, dtype=bool); "
        "print(meta_features(rows[:, :4], rows[:, 4], categorical=mask, task_type=TaskType.MULTICLASS))"
    )
    np.save(tmp_path / "rows.npy", np.column_stack([values, y]))
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == str(describe(values, y))


def test_sample_keeps_the_shares_of_repeated_rows():
    """Three distinct rows, 12000 in all: a sample of 2000 must not hold one of them only."""
    y = np.repeat([0, 1, 1], 4000)
    z = describe(np.repeat([[0.0], [1.0], [2.0]], 4000, axis=0), y)
    assert z["accuracy_decision_tree"] == 1
    assert z["information_max"] == pytest.approx(-np.log(1 / 3) / 3 - 2 * np.log(2 / 3) / 3, abs=1e-3)


def test_regression_leaves_out_what_is_about_classes():
    values, y, categorical = mixed_table()
    z = describe(values, y + 0.5, categorical, TaskType.REGRESSION)
    assert undefined(z) == set(ABOUT_CLASSES)
    assert z["information_max"] > 0


def test_features_of_missing_kinds_of_columns_are_undefined():
    rng = np.random.default_rng(7)
    y = rng.integers(2, size=60)
    codes = rng.integers(3, size=(60, 2))
    assert undefined(describe(rng.normal(size=(60, 2)), y)) == set(ABOUT_CATEGORIES)
    assert undefined(describe(codes, y, [True, True])) == set(ABOUT_NUMBERS)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("task_type", TaskType)
@pytest.mark.parametrize(
    "values",
    [
        np.empty((40, 0)),
        np.empty((0, 3)),
        np.ones((1, 2)),
        np.ones((2, 2)),
        np.full((40, 3), np.nan),
        np.full((40, 3), np.inf),
        np.full((40, 2), 0.1),
        np.tile([1e308, -1e308], (40, 1)) * np.linspace(-1, 1, 40)[:, None],
        np.linspace(0, 5e-324 * 40, 80).reshape(40, 2),
        np.eye(40, 200),
        np.arange(40.0)[:, None] * np.ones(5),
    ],
    ids=["no columns", "no rows", "one row", "two rows", "missing", "infinite", "constant", "huge", "tiny", "wide",
         "equal columns"],
)  # fmt: skip
def test_odd_tables_are_described(values, task_type):
    n = len(values)
    for y in (np.zeros(n), np.arange(n), np.arange(n) % 2, np.arange(n) // 3):
        for mask in (np.zeros, np.ones):
            z = describe(values, y.astype(np.int64), mask(values.shape[1]), task_type)
            assert tuple(z) == META_FEATURES
            assert not np.isinf(list(z.values())).any()


def test_many_classes_and_rare_ones():
    rng = np.random.default_rng(8)
    y = np.concatenate([rng.integers(100, size=3000), np.arange(100, 160)])
    z = describe(np.column_stack([y + rng.normal(size=len(y)), rng.normal(size=len(y))]), y)
    assert undefined(z) == set(ABOUT_CATEGORIES)
    assert z["log_classes"] == pytest.approx(np.log(160))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 30), st.integers(0, 4), st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from(list(TaskType))
)
def test_any_table_gives_numbers_in_range(n, d, n_classes, seed, task_type):
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 1.0, 2.0, np.nan, 1e9, -3.5], size=(n, d))
    z = describe(values, rng.integers(n_classes, size=n), rng.random(d) < 0.5, task_type)
    assert not np.isinf(list(z.values())).any()
    shares = [name for name in META_FEATURES if name.endswith("_share") or name.startswith("accuracy_")]
    assert all(np.isnan(z[name]) or 0 <= z[name] <= 1 for name in shares)
    if task_type.is_classification and n:
        assert 0 <= z["class_entropy"] <= z["log_classes"] + 1e-12
        assert d == 0 or 0 <= z["information_mean"] <= z["information_max"] <= z["class_entropy"] + 1e-12


def test_lengths_that_disagree_are_refused():
    with pytest.raises(ArrayError, match=r"\(n_rows, n_columns\)"):
        describe(np.ones((5, 2)), [0, 1])


def test_a_frame_and_the_rows_of_its_run_give_the_same(tmp_path):
    values, y, _ = mixed_table()
    frame = pd.DataFrame(values, columns=["a", "b", "c", "d"])
    frame["c"] = frame["c"].map({0: "red", 1: "green", 2: "blue", 3: "grey"}).astype("category")
    frame["constant"] = 1
    labels = np.array(["low", "mid", "top"])[y]
    schema = infer_schema(frame)
    coded = schema.code(frame)
    TrainingRows(values=coded.values, texts=coded.texts, y=y, weight=None).save(tmp_path / "table.npz")
    rows = TrainingRows.read(tmp_path / "table.npz")
    stored = meta_features(rows.values, rows.y, categorical=schema.categorical, task_type=TaskType.MULTICLASS)
    assert describe_frame(frame, labels) == stored
    assert stored["numeric_columns"] == 3


def test_large_table_takes_less_than_five_seconds():
    rng = np.random.default_rng(9)
    values = np.column_stack([rng.normal(size=(50_000, 25)), rng.integers(20, size=(50_000, 25))])
    start = time.process_time()
    describe(values, rng.integers(10, size=50_000), np.arange(50) >= 25)
    assert time.process_time() - start < 5


def test_stacked_features_have_nan_where_one_is_not_known():
    stacked = stack_features([{"log_rows": 2.0}, {}])
    assert stacked.shape == (2, 40)
    assert stacked[0, 0] == 2.0
    assert np.isnan(stacked).sum() == 79
    assert stack_features([]).shape == (0, 40)


def test_scaled_sources_have_mean_zero_and_deviation_one():
    rng = np.random.default_rng(10)
    features = rng.normal(size=(20, 5)) * [1, 10, 100, 0, 1] + [0, 5, 0, 0.1, 0]
    features[3, 0] = np.nan
    features[:, 4] = np.nan
    scaler = MetaFeatureScaler.fit(features)
    scaled = scaler.apply(features)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 1, 0, 0], atol=1e-12)
    assert scaled[3, 0] == (np.nanmedian(features[:, 0]) - scaler.mean[0]) / scaler.std[0]
    np.testing.assert_array_equal(scaler.apply(features[7]), scaled[7])
    assert np.isfinite(scaler.apply(np.full(5, np.nan))).all()


def test_scaler_needs_a_source():
    with pytest.raises(ShapeError, match="n_sources > 0"):
        MetaFeatureScaler.fit(np.empty((0, 40)))


def test_of_long_tables_some_rows_are_used_but_all_are_counted(monkeypatch):
    rng = np.random.default_rng(0)
    values, y = (
        rng.normal(size=(3000, 3)).astype(np.float32),
        np.repeat([0, 1, 2], [2000, 900, 100])[rng.permutation(3000)],
    )
    everything = describe(values, y)
    monkeypatch.setattr("cashmere.metalearning.meta_features.MAX_ROWS", 1000)
    some = describe(values, y)
    exact = ["log_rows", "log_columns_per_row", "log_classes", "class_entropy", "majority_share"]
    exact += [f"class_size_{how}" for how in ("min", "max", "mean", "std")]
    assert {name: some[name] for name in exact} == {name: everything[name] for name in exact}
    assert some["kurtosis_mean"] != everything["kurtosis_mean"]
    assert some["kurtosis_mean"] == pytest.approx(everything["kurtosis_mean"], abs=0.3)
