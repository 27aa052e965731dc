"""The space `imbalance`: its size, ranges and groups, and that its learners work."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from ConfigSpace.hyperparameters import CategoricalHyperparameter
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.exceptions import IncompatibleParametersError, UnknownNameError
from cashmere.model.archives import dump, load
from cashmere.space import BuildContext, make_space
from cashmere.space.splitting.group_trees import branches, group_tree, leaves

pytest.importorskip("imblearn")

# Ranges of docs/spaces.md#imbalance: bounds of numbers, numbers of choices.
RANGES = {
    "svm": {
        "C": (0.03125, 200),
        "kernel": 4,
        "degree": (2, 5),
        "gamma": 3,
        "gamma_value": (3.1e-5, 8),
        "coef0": (-1, 1),
        "shrinking": 2,
        "probability": 2,
        "tol": (1e-5, 1e-1),
    },
    "random_forest": {
        "n_estimators": (1, 150),
        "criterion": 2,
        "max_features": 4,
        "min_samples_split": (2, 20),
        "min_samples_leaf": (1, 20),
        "bootstrap": 2,
        "class_weight": 3,
    },
    "knn": {"n_neighbors": (1, 51), "weights": 2, "algorithm": 4, "p": (0, 20)},
    "decision_tree": {
        "criterion": 2,
        "max_features": 4,
        "max_depth": (2, 20),
        "min_samples_split": (2, 20),
        "min_samples_leaf": (1, 20),
    },
    "logistic_regression": {"C": (0.03125, 100), "penalty_solver": 12, "tol": (1e-5, 1e-1), "l1_ratio": (1e-9, 1)},
    "none": {},
    "smoteenn": {},
    "smotetomek": {},
    "smote": {"k_neighbors": (1, 10)},
    "smotenc": {"categorical_features": 1, "k_neighbors": (1, 10)},
    "borderline_smote": {"k_neighbors": (1, 10), "m_neighbors": (1, 10), "kind": 2},
    "kmeans_smote": {"k_neighbors": (1, 10), "cluster_balance_threshold": (0.01, 1)},
    "svm_smote": {"k_neighbors": (1, 10), "m_neighbors": (1, 10), "out_step": (0, 1)},
    "random_over_sampler": {},
    "adasyn": {"n_neighbors": (1, 10)},
    "cluster_centroids": {"estimator": 2, "voting": 2},
    "near_miss": {"version": 3, "n_neighbors": (1, 20), "n_neighbors_ver3": (1, 20)},
    "random_under_sampler": {"replacement": 2},
    "tomek_links": {},
    "one_sided_selection": {"n_neighbors": (1, 20), "n_seeds_S": (1, 20)},
    "instance_hardness_threshold": {"estimator": 6, "cv": (2, 20)},
    "edited_nearest_neighbours": {"n_neighbors": (1, 20), "kind_sel": 2},
    "repeated_edited_nearest_neighbours": {"n_neighbors": (1, 20), "kind_sel": 2},
    "all_knn": {"n_neighbors": (1, 20), "kind_sel": 2, "allow_minority": 2},
    "condensed_nearest_neighbour": {"n_neighbors": (1, 50), "n_seeds_S": (1, 50)},
    "neighbourhood_cleaning_rule": {"n_neighbors": (1, 20), "threshold_cleaning": (0, 1)},
}


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def make(task=TaskType.BINARY, **changes):
    facts = {"task_type": task, "n_rows": 60, "n_columns": 4, "n_classes": 3 if task is TaskType.MULTICLASS else 2}
    return make_space("imbalance", TaskProfile(**(facts | changes)))


def make_rows(n_classes, n_rows=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=n_rows), [0.5, 1.2][: n_classes - 1])
    return X, y


def fit(space, values, n_rows=60):
    X, y = make_rows(space.profile.n_classes, n_rows)
    context = BuildContext(
        task_type=space.profile.task_type,
        n_classes=space.profile.n_classes,
        n_rows=n_rows,
        n_features=4,
        categorical=np.zeros(4, dtype=bool),
        seed=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # iteration limits of the paper and of the library
        pipeline = space.build(space.completed(values), context).fit(X, y)
    return pipeline, X, y


def test_64_hyperparameters_with_both_choices():
    space = make().configuration_space
    assert len(space) == 64
    assert len(space["resampler"].choices) == 21
    assert len(space["algorithm"].choices) == 5


def test_ranges_are_those_of_the_table():
    space = make().configuration_space
    names = {f"{component}:{name}" for component, own in RANGES.items() for name in own}
    assert names | {"resampler", "algorithm"} == set(space)
    for component, own in RANGES.items():
        for name, expected in own.items():
            found = space[f"{component}:{name}"]
            if isinstance(found, CategoricalHyperparameter):
                assert len(found.choices) == expected
            else:
                assert (found.lower, found.upper) == expected
                assert not found.log
    assert list(RANGES) == [*space["algorithm"].choices, *space["resampler"].choices]


def test_groups_are_those_of_the_paper():
    resamplers = make().operators["resampler"]
    tree = group_tree({resampler.name: resampler.group for resampler in resamplers})
    assert tree == [
        ["none"],
        ["smoteenn", "smotetomek"],
        [
            ["smote", ["smotenc"], ["borderline_smote", "kmeans_smote", "svm_smote"]],
            "random_over_sampler",
            "adasyn",
        ],
        [
            ["cluster_centroids"],
            ["near_miss", "random_under_sampler"],
            [
                ["tomek_links", "one_sided_selection"],
                "instance_hardness_threshold",
                ["edited_nearest_neighbours", "repeated_edited_nearest_neighbours", "all_knn"],
                ["condensed_nearest_neighbour", "neighbourhood_cleaning_rule"],
            ],
        ],
    ]
    assert [len(leaves(branch)) for branch in branches(tree)] == [1, 2, 7, 11]


def test_columns_are_numbers_with_the_codes_of_categories():
    assert make(has_categories=True).encodings == {Encoding.ORDINAL}


def test_regression_and_weights_are_refused_with_an_alternative():
    with pytest.raises(IncompatibleParametersError, match="classifiers only"):
        make(TaskType.REGRESSION, n_classes=1)
    with pytest.raises(IncompatibleParametersError, match="resampled rows carry no weights"):
        make(has_weights=True)


PENALTIES = make().configuration_space["logistic_regression:penalty_solver"].choices


@pytest.mark.parametrize("pair", PENALTIES)
@pytest.mark.parametrize("task", [TaskType.BINARY, TaskType.MULTICLASS])
def test_every_penalty_and_solver_means_what_it_says(pair, task):
    values = {"algorithm": "logistic_regression", "logistic_regression:penalty_solver": pair}
    strong = values | {"logistic_regression:C": 0.03125, "logistic_regression:l1_ratio": 1.0}
    pipeline, X, y = fit(make(task), strong)
    probabilities = pipeline.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    learner = pipeline["learner"]
    learners = [learner] if hasattr(learner, "coef_") else learner.estimators_
    coefficients = np.concatenate([model.coef_.ravel() for model in learners])
    is_sparse = bool(np.any(coefficients == 0))
    assert is_sparse == pair.startswith(("l1", "elasticnet"))
    if pair.startswith("none"):
        assert np.abs(coefficients).max() > 2  # free to grow, whatever C says
        assert np.mean(pipeline.predict(X) == y) > 0.8
    else:
        assert np.abs(coefficients).max() < 1.5


def test_probability_of_the_support_vector_machine_changes_nothing():
    predictions = [fit(make(), {"algorithm": "svm", "svm:probability": probability}) for probability in (True, False)]
    assert np.array_equal(*[pipeline.predict_proba(X) for pipeline, X, _ in predictions])


@pytest.mark.parametrize("gamma", ["auto", "scale", "value"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
def test_every_kernel_learns_classes(kernel, gamma):
    pipeline, X, y = fit(make(), {"algorithm": "svm", "svm:kernel": kernel, "svm:gamma": gamma})
    margins = pipeline["learner"].decision_function(pipeline[:-1].transform(X))
    assert np.array_equal(pipeline.predict(X), (margins > 0).astype(int))
    assert np.mean(pipeline.predict(X) == y) > 0.7


def after_loading(pipeline, folder):
    (folder / "pipeline.skops").write_bytes(dump(pipeline))
    return load(folder / "pipeline.skops")


@pytest.mark.parametrize("algorithm", ["auto", "ball_tree", "kd_tree", "brute"])
def test_neighbours_know_all_distances_and_survive_the_model_file(algorithm, tmp_path):
    expected = {0: "chebyshev", 1: "manhattan", 2: "euclidean", 3: "minkowski", 20: "minkowski"}
    for p, metric in expected.items():
        pipeline, X, _ = fit(make(), {"algorithm": "knn", "knn:algorithm": algorithm, "knn:p": p})
        assert pipeline["learner"].metric == metric
        loaded = after_loading(pipeline, tmp_path)
        assert np.array_equal(loaded.predict_proba(X), pipeline.predict_proba(X))


def test_neighbours_are_at_most_the_rows_that_are_left():
    pipeline, X, _ = fit(make(), {"algorithm": "knn", "knn:n_neighbors": 51}, n_rows=20)
    assert np.isfinite(pipeline.predict_proba(X)).all()


@pytest.mark.parametrize("task", [TaskType.BINARY, TaskType.MULTICLASS])
@pytest.mark.parametrize("algorithm", ["random_forest", "decision_tree"])
def test_trees_take_every_choice(task, algorithm):
    space = make(task)
    for feature_rule in ("1", "sqrt", "log2", "none"):
        values = {"algorithm": algorithm, f"{algorithm}:max_features": feature_rule}
        if algorithm == "random_forest":
            values |= {"random_forest:n_estimators": 3, "random_forest:class_weight": "balanced_subsample"}
        pipeline, X, y = fit(space, values)
        assert np.mean(pipeline.predict(X) == y) > 0.6


def test_unknown_names_of_values_are_refused():
    with pytest.raises(UnknownNameError, match="smote:k_neighbors"):
        make().completed({"smote:k_neighbours": 3})


WITHOUT_IMBLEARN = """
import importlib.machinery, sys
class Hidden(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] == "imblearn" else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Hidden
"""


def test_only_this_space_needs_the_library():
    code = WITHOUT_IMBLEARN + (
        "import cashmere\n"
        "from cashmere.data.task import TaskProfile, TaskType\n"
        "from cashmere.exceptions import MissingDependencyError\n"
        "from cashmere.space import make_space\n"
        "profile = TaskProfile(task_type=TaskType.BINARY, n_rows=60, n_columns=4, n_classes=2)\n"
        "print(*(make_space(name, profile).name for name in ('default', 'volcano', 'sklearn12')))\n"
        "try:\n"
        "    make_space('imbalance', profile)\n"
        "except MissingDependencyError as error:\n"
        "    print(error)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("default volcano sklearn12\n")
    assert "pip install 'cashmere-automl[imbalance]'" in printed


@pytest.mark.long
def test_naming_the_space_does_not_import_the_library():
    code = (
        "import sys\n"
        "from cashmere.data.task import TaskProfile, TaskType\n"
        "from cashmere.space import make_space\n"
        "profile = TaskProfile(task_type=TaskType.BINARY, n_rows=60, n_columns=4, n_classes=2)\n"
        "make_space('imbalance', profile).configuration_space\n"
        "print([name for name in ('imblearn', 'sklearn') if name in sys.modules])\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


@pytest.mark.parametrize("task", [TaskType.BINARY, TaskType.MULTICLASS])
@pytest.mark.parametrize("algorithm", [algorithm.name for algorithm in make().algorithms])
def test_every_learner_survives_the_model_file(task, algorithm, tmp_path):
    values = {"algorithm": algorithm}
    if algorithm == "logistic_regression":
        values["logistic_regression:penalty_solver"] = "l1+liblinear"  # one against the rest for more classes
    pipeline, X, _ = fit(make(task), values)
    loaded = after_loading(pipeline, tmp_path)
    assert np.array_equal(loaded.predict_proba(X), pipeline.predict_proba(X))
