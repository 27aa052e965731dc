"""The spaces that come with the package: what they offer, and that everything in them works."""

from __future__ import annotations

import functools
import itertools
import math
import subprocess
import sys
import warnings

import cloudpickle
import numpy as np
import pytest
from ConfigSpace import Configuration
from ConfigSpace.exceptions import ForbiddenValueError
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.exceptions import IncompatibleParametersError, InvalidParameterError, UnknownNameError
from cashmere.space import SPACES, BuildContext, Space, make_space, register_space
from cashmere.space.encoding import SpaceEncoder

N_CLASSES = {TaskType.BINARY: 2, TaskType.MULTICLASS: 3, TaskType.REGRESSION: 1}
CASES = [(name, task) for name in ("default", "classic", "volcano", "sklearn12") for task in TaskType][:-1]
LEGITIMATE_FAILURES = (
    "0 feature(s)",  # a selection that leaves no column
    "covariance matrix of class",  # QDA without regularisation after an expansion
    "No covariance",
)


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def make_profile(task, **changes):
    facts = {"task_type": task, "n_rows": 60, "n_columns": 6, "n_classes": N_CLASSES[task], "has_categories": True}
    return TaskProfile(**(facts | changes))


def make_data(task, encoding, n_rows=60):
    """Return a table with a column of codes and the target; gaps where the encoding keeps them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6)).astype(np.float32)
    X[:, 1] = rng.integers(0, 4, n_rows)
    signal = X[:, 0] + (X[:, 1] == 2) + 0.3 * rng.normal(size=n_rows)
    categorical = np.zeros(6, dtype=bool)
    if encoding is Encoding.ORDINAL:
        categorical[1] = True
        X[::9, 1] = np.nan
        X[::7, 2] = np.nan
    if task is TaskType.REGRESSION:
        return X, 1e6 + 1e4 * signal, categorical
    return X, np.digitize(signal, np.quantile(signal, np.arange(1, N_CLASSES[task]) / N_CLASSES[task])), categorical


def make_context(task, categorical, n_rows=60, n_threads=1, seed=3):
    return BuildContext(
        task_type=task,
        n_classes=N_CLASSES[task],
        n_rows=n_rows,
        n_features=len(categorical),
        categorical=categorical,
        n_threads=n_threads,
        seed=seed,
    )


def fit_and_predict(space, configuration, *, weighted=False, n_rows=60, n_threads=1):
    task = space.profile.task_type
    X, y, categorical = make_data(task, space.encoding_of(configuration), n_rows)
    pipeline = space.build(configuration, make_context(task, categorical, n_rows, n_threads))
    weights = {"learner__sample_weight": np.linspace(0.5, 1.5, n_rows)} if weighted else {}
    pipeline.fit(X, y, **weights)
    if task is TaskType.REGRESSION:
        predicted = pipeline.predict(X)
        assert predicted.shape == (n_rows,)
    else:
        predicted = pipeline.predict_proba(X)
        assert predicted.shape == (n_rows, N_CLASSES[task])
        np.testing.assert_allclose(predicted.sum(axis=1), 1, atol=1e-5)
        assert np.array_equal(pipeline.classes_, np.arange(N_CLASSES[task]))
    assert np.isfinite(predicted).all()
    return pipeline, predicted


@functools.cache
def cached_space(name, task):
    return make_space(name, make_profile(task))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "task"), CASES)
def test_every_default_fits_and_learns_without_warnings(name, task):
    space = cached_space(name, task)
    for configuration in space.first_configurations():
        _, predicted = fit_and_predict(space, configuration)
        _, y, _ = make_data(task, Encoding.ONEHOT)
        if task is TaskType.REGRESSION:
            assert np.mean((predicted - y) ** 2) < 0.9 * np.var(y), configuration["algorithm"]
        else:
            assert np.mean(predicted.argmax(axis=1) == y) > 0.55, configuration["algorithm"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "task"), CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # iteration limits of MindWare
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")  # fails right after
def test_random_configurations_fit_or_fail_cleanly(name, task):
    space = cached_space(name, task)
    space.configuration_space.seed(11)
    n_failed = 0
    for configuration in space.configuration_space.sample_configuration(10):
        if configuration.get("mlp:width", 0) > 128 or configuration.get("adaboost:n_estimators", 0) > 200:
            continue  # slow, and covers nothing else
        try:
            fit_and_predict(space, configuration)
        except (ValueError, TypeError, np.linalg.LinAlgError) as error:
            n_failed += 1
            assert name == "volcano"
            assert any(text in str(error) for text in LEGITIMATE_FAILURES), str(error)
    assert n_failed <= 5


@pytest.mark.parametrize(("name", "task"), CASES)
def test_builders_accept_every_configuration(name, task):
    space = cached_space(name, task)
    space.configuration_space.seed(5)
    for configuration in space.configuration_space.sample_configuration(50):
        _, _, categorical = make_data(task, space.encoding_of(configuration))
        pipeline = space.build(configuration, make_context(task, categorical))
        assert pipeline.steps[-1][0] == "learner"


@pytest.mark.long
@pytest.mark.parametrize("step", ["rescaler", "preprocessor"])
@pytest.mark.parametrize("task", [TaskType.MULTICLASS, TaskType.REGRESSION])
@pytest.mark.filterwarnings("ignore:FastICA did not converge")
def test_every_operator_works_with_its_defaults(step, task):
    space = cached_space("volcano", task)
    base = dict(space.restricted_to(["random_forest"]).default_configurations()[0])
    for operator in space.operators[step]:
        small = Space(
            name="one operator",
            algorithms=tuple(a for a in space.algorithms if a.name == "random_forest"),
            operators={step: (operator,)},
            profile=space.profile,
        )
        assert small.default_configurations()[0]["algorithm"] == base["algorithm"]
        fit_and_predict(small, small.default_configurations()[0])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "task"), [case for case in CASES if case[1] in (TaskType.MULTICLASS, TaskType.REGRESSION)]
)
def test_algorithms_offered_for_weighted_rows_take_weights(name, task):
    space = make_space(name, make_profile(task, has_weights=True))
    assert {"knn", "lda", "qda"}.isdisjoint(algorithm.name for algorithm in space.algorithms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for configuration in space.default_configurations():
            fit_and_predict(space, configuration, weighted=True)


FEW_ROUNDS = {
    "lightgbm": {"lightgbm:n_estimators": 50},
    "xgboost": {"xgboost:n_estimators": 50},
    "catboost": {"catboost:iterations": 50},
    "hist_gradient_boosting": {"hist_gradient_boosting:max_iter": 50},
    "random_forest": {},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("algorithm", list(FEW_ROUNDS))
@pytest.mark.parametrize("task", [TaskType.BINARY, TaskType.REGRESSION])
def test_the_number_of_threads_does_not_change_predictions(algorithm, task):
    if algorithm not in [a.name for a in cached_space("classic", task).algorithms]:
        pytest.skip(f"{algorithm} is not installed")
    space = cached_space("classic", task).restricted_to([algorithm])
    values = dict(space.default_configurations()[0]) | FEW_ROUNDS[algorithm]
    configuration = Configuration(space.configuration_space, values=values)
    predictions = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            _, predicted = fit_and_predict(space, configuration, n_rows=1200, n_threads=n_threads)
        predictions.append(predicted.astype(np.float32))
    assert np.array_equal(*predictions)


@pytest.mark.parametrize("algorithm", ["lightgbm", "xgboost", "hist_gradient_boosting"])
def test_native_categories_survive_gaps_and_unknown_codes(algorithm):
    space = cached_space("default", TaskType.BINARY)
    if algorithm not in [a.name for a in space.algorithms]:
        pytest.skip(f"{algorithm} is not installed")
    space = space.restricted_to([algorithm])
    pipeline, _ = fit_and_predict(space, space.default_configurations()[0])
    X, _, _ = make_data(TaskType.BINARY, Encoding.ORDINAL)
    X[:, 1] = np.nan
    missing = pipeline.predict_proba(X)
    X[:, 1] = 17
    assert np.isfinite(pipeline.predict_proba(X)).all()
    assert np.isfinite(missing).all()


def test_histogram_boosting_treats_columns_of_many_levels_as_numbers():
    from cashmere.space.estimators.boosting import CategoryHistogramClassifier

    codes = np.column_stack([np.arange(600) % 300, np.arange(600) % 3]).astype(np.float32)
    y = (codes[:, 0] > 150).astype(int)
    learner = CategoryHistogramClassifier(categorical_features=np.array([True, True]), early_stopping=False)
    learner.fit(codes, y)
    assert list(learner.is_categorical_) == [False, True]
    assert learner.score(codes, y) == 1.0


def test_lightgbm_uses_the_category_columns():
    space = cached_space("default", TaskType.BINARY).restricted_to(["lightgbm"])
    pipeline, _ = fit_and_predict(space, space.default_configurations()[0], n_rows=500)
    trees = pipeline["learner"].booster_.trees_to_dataframe()
    assert "==" in set(trees["decision_type"].dropna())


COUNTS = {
    # name, task: algorithms, rescalers, preprocessors, hyper-parameters without categories
    ("default", TaskType.BINARY): (11, 0, 0, 58),
    ("default", TaskType.REGRESSION): (11, 0, 0, 57),
    ("classic", TaskType.BINARY): (10, 0, 0, 47),
    ("classic", TaskType.REGRESSION): (10, 0, 0, 46),
    ("volcano", TaskType.BINARY): (11, 6, 16, 98),
    ("volcano", TaskType.REGRESSION): (10, 6, 14, 98),
    ("sklearn12", TaskType.BINARY): (12, 0, 0, 30),
}


@pytest.mark.parametrize(("name", "task"), list(COUNTS))
def test_counts_are_those_of_the_documentation(name, task):
    space = make_space(name, make_profile(task, has_categories=False))
    steps = [len(space.operators.get(step, ())) for step in ("rescaler", "preprocessor")]
    assert (len(space.algorithms), *steps, len(space.configuration_space)) == COUNTS[name, task]


def test_volcano_has_the_parameters_of_the_tables_except_constant_ones():
    space = make_space("volcano", make_profile(TaskType.BINARY))
    per_component = {}
    for name in space.configuration_space:
        component, _, parameter = name.partition(":")
        per_component[component] = per_component.get(component, 0) + bool(parameter)
    learners = {a.name: per_component.get(a.name, 0) for a in space.algorithms}
    constant_learner_parameters = 2  # adaboost algorithm, gradient boosting criterion
    constant_operator_parameters = 4  # bootstrap of the embedding; penalty, loss, dual of the linear SVM
    assert sum(learners.values()) == 50 - constant_learner_parameters
    assert sum(per_component.values()) - sum(learners.values()) == 51 - constant_operator_parameters
    assert list(learners.values()) == [3, 5, 5, 6, 2, 4, 1, 4, 5, 7, 6]


def test_forbidden_combinations_are_never_drawn():
    space = make_space("volcano", make_profile(TaskType.BINARY)).restricted_to(["liblinear_svc"])
    space.configuration_space.seed(0)
    for c in space.configuration_space.sample_configuration(400):
        penalty, loss, dual = (c[f"liblinear_svc:{name}"] for name in ("penalty", "loss", "dual"))
        assert (penalty, loss, dual) in {
            ("l2", "squared_hinge", True),
            ("l2", "squared_hinge", False),
            ("l2", "hinge", True),
            ("l1", "squared_hinge", False),
        }
        if c.get("feature_agglomeration:linkage") == "ward":
            assert c["feature_agglomeration:metric"] == "euclidean"


@pytest.mark.parametrize(("n_rows", "expected"), [(150, 10), (4000, 20), (1_000_000, 100)])
def test_orders_of_levels_are_smoothed_on_long_tables(n_rows, expected):
    """With a hundred rows per level as a condition, small tables lose levels that matter."""
    space = make_space("default", make_profile(TaskType.BINARY, n_rows=n_rows))
    assert space.configuration_space["lightgbm:cat_smooth"].default_value == expected
    without = make_space("default", make_profile(TaskType.BINARY, n_rows=n_rows, has_categories=False))
    assert not [name for name in without.configuration_space if "cat" in name.partition(":")[2]]


@pytest.mark.parametrize("basis", ["bins", "similarities"])
@pytest.mark.parametrize("task", [TaskType.MULTICLASS, TaskType.REGRESSION])
def test_bases_let_linear_models_follow_curves(basis, task):
    space = cached_space("default", task)
    name = "logistic_regression" if task.is_classification else "ridge"
    X = np.random.default_rng(0).uniform(-2, 2, (300, 3)).astype(np.float32)
    y = np.digitize(X[:, 0] ** 2, [1.0, 2.5]) if task.is_classification else X[:, 0] ** 2
    context = make_context(task, np.zeros(3, dtype=bool), n_rows=300)
    score = {}
    for each in ("columns", basis):
        pipeline = space.build(space.completed({"algorithm": name, f"{name}:basis": each}), context)
        weak = {"C": 1e3} if task.is_classification else {"regressor__alpha": 1e-3}  # as the path may choose
        pipeline["learner"].set_params(**weak)
        score[each] = pipeline.fit(X, y).score(X, y)
    assert score["columns"] < 0.6 < 0.9 < score[basis]


def test_bases_of_long_tables_stay_small():
    space = make_space("default", make_profile(TaskType.BINARY, n_rows=1_000_000))
    context = make_context(TaskType.BINARY, np.zeros(6, dtype=bool), n_rows=1_000_000)
    wide = {
        basis: space.build(
            space.completed({"algorithm": "logistic_regression", "logistic_regression:basis": basis}), context
        )["basis"]
        for basis in ("bins", "similarities")
    }
    assert wide["bins"].max_columns == wide["similarities"].n_components == 50


def test_default_space_orders_boosting_first_and_drops_slow_kernels_on_long_tables():
    space = make_space("default", make_profile(TaskType.BINARY, n_rows=6000))
    assert space.algorithms[0].name == "lightgbm"
    assert "up to 5000 rows" in space.left_out["svm"]


@pytest.mark.parametrize(
    ("task", "n_classes", "most"),
    [
        (TaskType.REGRESSION, 1, 5_000),
        (TaskType.BINARY, 2, 5_000),
        (TaskType.MULTICLASS, 3, 7_500),
        (TaskType.MULTICLASS, 26, 20_000),
    ],
)
def test_default_space_offers_support_vectors_on_5000_rows_for_every_two_classes(task, n_classes, most):
    for n_rows in (most, most + 1):
        profile = TaskProfile(task_type=task, n_rows=n_rows, n_columns=4, n_classes=n_classes)
        left_out = make_space("default", profile).left_out
        assert ("svm" in left_out) == (n_rows > most)
    assert f"up to {most} rows" in left_out["svm"]


def test_default_space_tries_forests_late_and_leaves_of_single_rows_first():
    space = make_space("default", make_profile(TaskType.BINARY, n_rows=600))
    gains = space.first_gains()
    late = {c["algorithm"] for c, gain in gains.items() if gain < 1}
    assert late == {"hist_gradient_boosting", "random_forest", "extra_trees", "logistic_regression", "svm", "knn"}
    assert gains[space.completed({"algorithm": "logistic_regression"})] == 1
    leaves = [c["extra_trees:min_samples_leaf"] for c in gains if c["algorithm"] == "extra_trees"]
    assert leaves == [1, 2]


@pytest.mark.parametrize(("n_rows", "leaves"), [(4_999, [1, 2]), (15_000, [4, 5]), (10**6, [20, 21])])
def test_leaves_of_extra_trees_grow_with_the_rows(n_rows, leaves):
    space = make_space("default", make_profile(TaskType.BINARY, n_rows=n_rows))
    trees = [c for c in space.first_configurations() if c["algorithm"] == "extra_trees"]
    assert [c["extra_trees:min_samples_leaf"] for c in trees] == leaves


# Limits of the space "volcano" ----------------------------------------------------------------------------------------


def build_preprocessor(values, n_columns, n_rows=60, seed=3):
    """Return an unfitted preprocessor of the space for a table of this shape."""
    space = cached_space("volcano", TaskType.BINARY)
    context = make_context(TaskType.BINARY, np.zeros(n_columns, dtype=bool), n_rows=n_rows, seed=seed)
    return space.build(space.completed({"algorithm": "knn", **values}), context)["preprocessor"]


CUBES = {"preprocessor": "polynomial", "polynomial:degree": 3}


@pytest.mark.parametrize(
    ("values", "n_products", "n_products_of_many_rows"),
    [
        ({"preprocessor": "cross_features"}, 62 + math.comb(62, 2), 22 + math.comb(22, 2)),
        ({"preprocessor": "polynomial"}, math.comb(63, 2) - 1, math.comb(23, 2) - 1),
        (CUBES, math.comb(23, 3) - 1, math.comb(12, 3) - 1),
        ({**CUBES, "polynomial:interaction_only": True}, 22 + 231 + 1540, 11 + 55 + 165),
    ],
)
def test_products_are_of_as_many_columns_as_the_limits_allow(values, n_products, n_products_of_many_rows):
    """The limits are 2000 columns, and 2 GiB: 268 columns of a million rows."""
    X = np.random.default_rng(0).normal(size=(60, 70)).astype(np.float32)
    assert build_preprocessor(values, 70).fit_transform(X).shape[1] == n_products
    of_many_rows = build_preprocessor(values, 70, n_rows=1_000_000)
    assert of_many_rows.fit_transform(X).shape[1] == n_products_of_many_rows


def test_polynomials_use_all_columns_if_these_fit_and_otherwise_random_ones_by_the_seed():
    X = np.random.default_rng(0).normal(size=(60, 59)).astype(np.float32)
    squares = build_preprocessor({"preprocessor": "polynomial"}, 59).fit_transform(X)
    assert squares.shape[1] == math.comb(61, 2) - 1
    np.testing.assert_array_equal(squares[:, :59], X)
    cubes = [build_preprocessor(CUBES, 59, seed=seed).fit_transform(X) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(cubes[0], cubes[1])
    assert not np.array_equal(cubes[0][:, :20], cubes[2][:, :20])
    assert np.isin(cubes[2][:, :20], X).all()


@pytest.mark.parametrize("kernel_map", ["random_kitchen_sinks", "nystroem"])
def test_kernel_maps_have_as_many_components_as_the_limits_allow(kernel_map):
    values = {"preprocessor": kernel_map, f"{kernel_map}:n_components": 5000}
    built = [build_preprocessor(values, 6, n_rows=n_rows) for n_rows in (10_000, 1_000_000)]
    assert [each.n_components for each in built] == [2000, 268]


def test_exactly_the_embedding_before_discriminants_is_forbidden():
    space = cached_space("volcano", TaskType.BINARY)
    expected = {("random_trees_embedding", "lda"), ("random_trees_embedding", "qda")}
    missing = set()
    for operator, algorithm in itertools.product(space.operators["preprocessor"], space.algorithms):
        try:
            space.completed({"preprocessor": operator.name, "algorithm": algorithm.name})
        except ForbiddenValueError:
            missing.add((operator.name, algorithm.name))
    assert missing == expected
    encoder = SpaceEncoder(space.configuration_space)
    drawn = map(encoder.decode, encoder.sample(500, np.random.default_rng(0)))
    assert expected.isdisjoint((c["preprocessor"], c["algorithm"]) for c in drawn)


@pytest.mark.parametrize("names", [["lda"], ["lda", "qda"], ["knn", "qda"], ["knn"]])
def test_the_forbidden_pair_follows_the_algorithms_that_are_left(names):
    space = cached_space("volcano", TaskType.BINARY).restricted_to(names)
    space.configuration_space.seed(0)
    drawn = {(c["preprocessor"], c["algorithm"]) for c in space.configuration_space.sample_configuration(600)}
    assert {algorithm for _, algorithm in drawn} == set(names)
    assert {algorithm for step, algorithm in drawn if step == "random_trees_embedding"} == {"knn"} & set(names)


@pytest.mark.long
@pytest.mark.parametrize("task", [TaskType.BINARY, TaskType.REGRESSION])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_all_other_learners_work_after_the_embedding(task):
    space = cached_space("volcano", task)
    for algorithm in space.algorithms:
        if algorithm.name not in ("lda", "qda"):
            fit_and_predict(
                space, space.completed({"preprocessor": "random_trees_embedding", "algorithm": algorithm.name})
            )


# Names and imports ----------------------------------------------------------------------------------------------------


def test_names_lead_to_spaces():
    profile = make_profile(TaskType.BINARY)
    with pytest.raises(UnknownNameError, match="'volcano'"):
        make_space("vulcano", profile)
    with pytest.raises(InvalidParameterError, match=r"the name of a space, or a function .* in include"):
        make_space(["lightgbm"], profile)
    with pytest.raises(InvalidParameterError, match=r"a function that returns a Space.*It returned a NoneType"):
        make_space(lambda profile: None, profile)
    with pytest.raises(IncompatibleParametersError, match="'default' or 'volcano'"):
        make_space("sklearn12", make_profile(TaskType.REGRESSION))

    def mine(profile):
        return make_space("default", profile).restricted_to(["lightgbm"])

    assert len(make_space(mine, profile).algorithms) == 1
    register_space("mine", mine)
    try:
        assert len(make_space("mine", profile).algorithms) == 1
        with pytest.raises(InvalidParameterError, match="a name that is not taken"):
            register_space("mine", SPACES["default"])
    finally:
        del SPACES["mine"]


@pytest.mark.parametrize("name", list(SPACES))
def test_spaces_pickle_small_and_by_reference(name):
    space = make_space(name, make_profile(TaskType.BINARY))
    _ = space.configuration_space
    assert len(cloudpickle.dumps(space)) < 8000


def test_importing_spaces_imports_no_learners():
    code = "import sys, cashmere.space; print([m for m in ('sklearn', 'lightgbm', 'xgboost') if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


@pytest.mark.parametrize(("monotone", "expected"), [((), 0.0), ((1, 0, 0), 0.001)])
def test_regularisation_too_small_to_matter_is_off(monotone, expected):
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=600, n_columns=3, n_classes=2, monotone=monotone)
    space = make_space("default", profile)
    context = BuildContext(
        task_type=TaskType.BINARY, n_classes=2, n_rows=600, n_features=3, categorical=np.zeros(3, bool), seed=0,
        monotone=monotone,
    )  # fmt: skip
    learner = space.build(space.completed({"algorithm": "lightgbm"}), context)[-1]
    assert learner.reg_alpha == pytest.approx(expected)
    effective = space.completed({"algorithm": "lightgbm", "lightgbm:reg_alpha": 0.5})
    assert space.build(effective, context)[-1].reg_alpha == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
@pytest.mark.parametrize(
    ("task", "n_rows", "bins"),
    [(TaskType.BINARY, 10_000, 127), (TaskType.BINARY, 10_001, None), (TaskType.REGRESSION, 600, None)],
)
def test_short_tables_of_classes_have_fewer_bins(name, task, n_rows, bins):
    n_classes = 2 if task.is_classification else 1
    space = make_space("default", TaskProfile(task_type=task, n_rows=n_rows, n_columns=3, n_classes=n_classes))
    context = BuildContext(
        task_type=task, n_classes=n_classes, n_rows=n_rows, n_features=3, categorical=np.zeros(3, bool), seed=0
    )
    assert space.build(space.completed({"algorithm": name}), context)[-1].get_params().get("max_bin") == bins
