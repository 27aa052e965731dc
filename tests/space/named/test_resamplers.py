"""The resamplers on tables of few rows, categories and gaps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from cashmere.data.task import TaskProfile, TaskType
from cashmere.exceptions import DataError, SpaceError
from cashmere.model.fold_model import rows_for_learner
from cashmere.space import CLASSIFICATION, BuildContext, Operator, Space, make_space
from cashmere.space.component import Resampler
from cashmere.space.named.imbalance import IMBALANCE_CLASSIFIERS
from cashmere.space.named.resamplers import RESAMPLERS

pytest.importorskip("imblearn")

NAMES = [resampler.name for resampler in RESAMPLERS if resampler.name != "none"]
WITHIN_CLASS = ["smoteenn", "smotetomek", "smote", "smotenc", "borderline_smote", "kmeans_smote", "svm_smote", "adasyn"]
CATEGORICAL = np.array([False, False, True, False])


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def make_profile(n_classes=2, **changes):
    task = TaskType.BINARY if n_classes == 2 else TaskType.MULTICLASS
    facts = {"task_type": task, "n_rows": 80, "n_columns": 4, "n_classes": n_classes, "has_categories": True}
    return TaskProfile(**(facts | changes))


def make_rows(counts, seed=0):
    """Return two numbers, a column of codes and one of 0 and 1, with gaps, and classes that overlap a little."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    X = rng.normal(size=(len(y), 4)).astype(np.float32)
    X[:, :2] += 2.0 * y[:, None]
    X[:, 2] = rng.integers(0, 4, len(y))
    X[:, 3] = rng.integers(0, 2, len(y))
    X[::9, 0] = np.nan
    X[::11, 2] = np.nan
    return X, y


def resample(values, X, y, seed=3):
    n_classes = int(y.max()) + 1
    space = make_space("imbalance", make_profile(n_classes))
    context = BuildContext(
        task_type=space.profile.task_type,
        n_classes=n_classes,
        n_rows=len(X),
        n_features=4,
        categorical=CATEGORICAL,
        seed=seed,
    )
    configuration = space.completed(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in trials
        return rows_for_learner(
            space.build(configuration, context), X, y, space.build_resampling(configuration, context)
        )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("counts", [(50, 9), (40, 25, 6)])
def test_every_resampler_works_and_repeats_itself(name, counts):
    values = {"resampler": name}
    if name == "instance_hardness_threshold":
        values["instance_hardness_threshold:estimator"] = "decision-tree"
    if name == "kmeans_smote":
        values |= {"kmeans_smote:cluster_balance_threshold": 0.01, "kmeans_smote:k_neighbors": 1}
    X, y = make_rows(counts)
    before = X.copy(), y.copy()
    X_new, y_new = resample(values, X, y)
    assert np.isfinite(X_new).all()
    assert X_new.shape == (len(y_new), 4)
    assert set(y_new) == set(y)
    again = resample(values, X, y)
    assert np.array_equal(X_new, again[0])
    assert np.array_equal(y_new, again[1])
    assert np.array_equal(X, before[0], equal_nan=True)
    assert np.array_equal(y, before[1])


LARGEST = {
    "smote": {"smote:k_neighbors": 10},
    "smotenc": {"smotenc:k_neighbors": 10},
    "borderline_smote": {"borderline_smote:k_neighbors": 10, "borderline_smote:m_neighbors": 10},
    "svm_smote": {"svm_smote:k_neighbors": 10, "svm_smote:m_neighbors": 10},
    "adasyn": {"adasyn:n_neighbors": 10},
    "near_miss": {"near_miss:version": 3, "near_miss:n_neighbors": 20, "near_miss:n_neighbors_ver3": 20},
    "one_sided_selection": {"one_sided_selection:n_neighbors": 20},
    "condensed_nearest_neighbour": {"condensed_nearest_neighbour:n_neighbors": 50},
    "edited_nearest_neighbours": {
        "edited_nearest_neighbours:n_neighbors": 20,
        "edited_nearest_neighbours:kind_sel": "mode",
    },
    "instance_hardness_threshold": {
        "instance_hardness_threshold:cv": 20,
        "instance_hardness_threshold:estimator": "knn",
    },
}


@pytest.mark.parametrize("name", list(LARGEST))
def test_numbers_of_neighbours_and_folds_are_limited_to_what_tiny_classes_allow(name):
    X, y = make_rows((14, 3))
    _, y_new = resample({"resampler": name} | LARGEST[name], X, y)
    assert set(y_new) == {0, 1}


def test_neighbours_are_limited_to_one_less_than_the_smallest_class():
    X, y = make_rows((30, 4))
    many, fitting = (resample({"resampler": "smote", "smote:k_neighbors": k}, X, y)[0] for k in (10, 3))
    fewer = resample({"resampler": "smote", "smote:k_neighbors": 2}, X, y)[0]
    assert np.array_equal(many, fitting)
    assert not np.array_equal(many, fewer)


@pytest.mark.parametrize("name", [*WITHIN_CLASS, "instance_hardness_threshold"])
def test_a_class_of_one_row_is_refused_with_the_cause(name):
    X, y = make_rows((30, 1))
    with pytest.raises(DataError, match=r"two training rows of every class; the\s+smallest class has one"):
        resample({"resampler": name}, X, y)


@pytest.mark.parametrize("name", ["random_over_sampler", "random_under_sampler", "tomek_links"])
def test_copying_and_leaving_out_work_with_a_class_of_one_row(name):
    X, y = make_rows((30, 1))
    assert set(resample({"resampler": name}, X, y)[1]) == {0, 1}


def test_a_class_that_vanishes_is_an_error_with_the_numbers():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)).astype(np.float32), np.tile([0, 1, 1, 1], 10)
    X[y == 1] = X[np.flatnonzero(y == 0)].repeat(3, axis=0) + 1e-3
    with pytest.raises(DataError, match=r"edited_nearest_neighbours left no training row of 1 of 2 classes .* 30 rows"):
        resample({"resampler": "edited_nearest_neighbours", "edited_nearest_neighbours:n_neighbors": 20}, X, y)


def test_smotenc_takes_the_values_of_nominal_columns_from_the_table():
    X, y = make_rows((50, 12))
    X_new, _ = resample({"resampler": "smotenc"}, X, y)
    assert [len(np.unique(X_new[:, j])) for j in (2, 3)] == [4, 2]
    mixed, _ = resample({"resampler": "smote"}, X, y)
    assert len(np.unique(mixed[:, 2])) > 4  # what SMOTE does to codes, as in the paper


def test_smotenc_may_fail_without_nominal_columns():
    rng = np.random.default_rng(0)
    space = make_space("imbalance", make_profile(has_categories=False))
    context = BuildContext(
        task_type=TaskType.BINARY, n_classes=2, n_rows=30, n_features=4, categorical=np.zeros(4, dtype=bool)
    )
    change = space.build_resampling(space.completed({"resampler": "smotenc"}), context)
    with pytest.raises(ValueError, match="requires some categorical features"):
        change(rng.normal(size=(30, 4)), np.repeat([0, 1], [24, 6]))


@pytest.mark.parametrize("judge", ["knn", "decision-tree", "adaboost", "gradient-boosting", "linear-svm", "none"])
def test_every_judge_of_hardness_works(judge):
    X, y = make_rows((20, 6))
    values = {"resampler": "instance_hardness_threshold", "instance_hardness_threshold:estimator": judge}
    _, y_new = resample(values | {"instance_hardness_threshold:cv": 2}, X, y)
    assert np.bincount(y_new)[1] == 6
    assert np.bincount(y_new)[0] <= 20  # equally hard rows stay


def test_resamplers_act_right_before_the_learner():
    operator = Operator(name="any", build=lambda values, context: "passthrough")
    with pytest.raises(SpaceError, match="must be the last one"):
        Space(
            name="wrong",
            algorithms=IMBALANCE_CLASSIFIERS,
            operators={"rows": RESAMPLERS, "columns": (operator,)},
            profile=make_profile(),
        )


def test_resamplers_are_left_out_for_weighted_rows():
    def keep(values, context):
        return lambda X, y: (X, y)

    offered = {"rows": (Resampler(name="keep", build=keep, tasks=CLASSIFICATION),)}
    spaces = [
        Space(name="own", algorithms=IMBALANCE_CLASSIFIERS, operators=offered, profile=make_profile(**facts))
        for facts in ({}, {"has_weights": True})
    ]
    assert list(spaces[0].operators) == ["rows"]
    assert spaces[1].left_out["keep"] == "cannot carry the weights of rows"
