"""The six-operator space: its size and shape, and that all of it works on real tables with categories and gaps."""

from __future__ import annotations

import itertools
import warnings
from typing import NamedTuple

import numpy as np
import pytest
import sklearn
from ConfigSpace.exceptions import ForbiddenValueError
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.utils.fixes import parse_version
from threadpoolctl import threadpool_limits

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.exceptions import IncompatibleParametersError
from cashmere.model.archives import dump_fold_models, load_fold_models
from cashmere.model.fold_model import fit_fold_model
from cashmere.space import BuildContext, make_space
from cashmere.space.estimators.autosklearn6 import (
    MISSING_LEVEL,
    RARE_LEVEL,
    BalancedClassifier,
    LevelMerger,
    LimitedOneHotEncoder,
    NegativeClipper,
    RelativeDepthTree,
)
from cashmere.space.named.autosklearn6 import NON_LINEAR
from cashmere.space.named.autosklearn6_operators import build_preprocessor
from cashmere.space.space import _default_configuration

N_ROWS = 100
LEGITIMATE_FAILURES = (
    "the limits are 2000 columns",  # the size guard
    "leaves no column",  # a selection of nothing
    "covariance matrix of class",  # QDA on more columns than rows
    "must not contain infs or NaNs",  # an ICA that diverged
    "has a NaN entry",
    "contains NaN",
    "contains infinity",
    "The test_size",  # early stopping on hardly any row
    "least populated class",
    "zero vectors",  # a constant column, and cosine distances between columns
)


class Table(NamedTuple):
    """A prepared table and its space."""

    folds: object
    space: object


def make_profile(task=TaskType.BINARY, *, has_categories=True):
    return TaskProfile(
        task_type=task,
        n_rows=N_ROWS,
        n_columns=9,
        n_classes={TaskType.BINARY: 2, TaskType.MULTICLASS: 3, TaskType.REGRESSION: 1}[task],
        has_categories=has_categories,
    )


def credit():
    """Return 100 rows of credit-g, a tenth of the cells missing, and the target."""
    frame = demo_table().iloc[:N_ROWS]
    y = (frame[DEMO_TARGET] == "good").to_numpy().astype(int)
    frame = frame[["checking_status", "duration", "purpose", "credit_amount", "age", "foreign_worker", "job"]]
    return frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1), y


def prepare(folder, frame, y, task):
    folds = make_folds(y, task, "2fold", seed=0)
    prepared, _ = prepare_folds(
        folder, infer_schema(frame).code(frame), y, folds, [Encoding.ORDINAL], task_type=task, seed=0
    )
    space = make_space("autosklearn6", make_profile(task, has_categories=prepared.load(0, Encoding.ORDINAL)[2].any()))
    return Table(prepared, space)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return a table with categories and gaps, two classes, and a numeric one, three classes."""
    wine = load_wine(as_frame=True)
    return (
        prepare(tmp_path_factory.mktemp("credit"), *credit(), TaskType.BINARY),
        prepare(tmp_path_factory.mktemp("wine"), wine.data[::2], wine.target.to_numpy()[::2], TaskType.MULTICLASS),
    )


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def completed(space, **chosen):
    """Return the configuration with the chosen values, everything else at its default."""
    return _default_configuration(space.configuration_space, chosen)


QUICK = {"gradient_boosting:early_stop": "train"}
"""Instead of 512 rounds of boosting."""


def fit(table, configuration):
    """Fit on the training rows of the first fold, check the predictions of the others, and return the model."""
    folds, space = table
    X, X_valid, categorical = folds.load(0, space.encoding_of(configuration))
    y = folds.y[folds.folds[0].train]
    context = BuildContext(
        task_type=space.profile.task_type,
        n_classes=folds.n_classes,
        n_rows=len(X),
        n_features=X.shape[1],
        categorical=categorical,
        seed=3,
    )
    pipeline = space.build(configuration, context)
    model = fit_fold_model(pipeline, Encoding.ORDINAL, X, y, n_classes=folds.n_classes, needs_probabilities=True)
    predicted = model.predict(X_valid)
    if not np.isfinite(predicted).all():
        raise ValueError("the prediction contains NaN")  # like the objective after a divergence
    assert predicted.shape == (len(X_valid), folds.n_classes)
    np.testing.assert_allclose(predicted.sum(axis=1), 1, atol=1e-3)  # the learners work in float32
    return model


def fit_or_fail_cleanly(table, configuration):
    """Return whether the configuration failed, for one of the known causes."""
    try:
        fit(table, configuration)
    except (ValueError, np.linalg.LinAlgError) as error:
        assert any(text in str(error) for text in LEGITIMATE_FAILURES), (str(error), dict(configuration))
        return True
    return False


# Size and shape ------------------------------------------------------------------------------------------------------


def test_hyperparameters_are_those_of_the_table_except_constants_and_those_for_sparse_tables():
    space = make_space("autosklearn6", make_profile()).configuration_space
    counts = {}
    for name in space:
        component = name.partition(":")[0] if ":" in name else "choices"
        counts[component] = counts.get(component, 0) + 1
    assert counts == {
        **{"choices": 7, "minority_coalescer": 1, "quantile": 2, "robust": 2},
        **{"select_by_extra_trees": 5, "random_trees_embedding": 4, "feature_agglomeration": 4, "fast_ica": 4},
        **{"kernel_pca": 5, "polynomial": 3, "random_kitchen_sinks": 2, "nystroem": 5, "select_by_linear_svm": 2},
        **{"pca": 2, "select_percentile": 2, "select_rates": 3},
        **{"random_forest": 5, "extra_trees": 5, "decision_tree": 4, "gradient_boosting": 7, "adaboost": 3},
        **{"libsvm_svc": 7, "k_nearest_neighbors": 3, "mlp": 6, "liblinear_svc": 4, "sgd": 10},
        **{"passive_aggressive": 4, "lda": 3, "qda": 1, "bernoulli_nb": 2, "multinomial_nb": 2},
    }
    assert len(space) == 119
    without = make_space("autosklearn6", make_profile(has_categories=False)).configuration_space
    assert set(space) - set(without) == {"coalescence", "encoding", "minority_coalescer:minimum_fraction"}


def in_any_order(tree):
    return tree if isinstance(tree, str) else frozenset(map(in_any_order, tree))


TREES = {
    "algorithm": [
        ["liblinear_svc", "sgd", ["passive_aggressive"]],
        ["libsvm_svc", "k_nearest_neighbors", "mlp"],
        [["qda", "lda"], ["gaussian_nb", "bernoulli_nb", "multinomial_nb"]],
        ["adaboost", "gradient_boosting"],
        [["random_forest"], ["decision_tree", "extra_trees"]],
    ],
    "preprocessor": [
        [["select_by_extra_trees", "random_trees_embedding"], "feature_agglomeration"],
        [["fast_ica", "kernel_pca", "polynomial"], ["no_preprocessing"]],
        [["random_kitchen_sinks", "nystroem"], "select_by_linear_svm", "pca"],
        ["select_percentile", "select_rates"],
    ],
    "rescaling": [["standardize", "minmax", "robust"], ["quantile", "power"], ["normalize"], ["no_rescaling"]],
}


@pytest.mark.parametrize(("step", "n_choices", "n_branches"), [("algorithm", 16, 5), ("preprocessor", 13, 4)])
def test_group_trees_have_the_sizes_of_the_paper(step, n_choices, n_branches):
    choice = make_space("autosklearn6", make_profile()).configuration_space[step]
    assert (len(choice.choices), len(choice.meta["groups"])) == (n_choices, n_branches)


@pytest.mark.parametrize("step", list(TREES))
def test_group_trees_are_those_of_the_paper(step):
    groups = make_space("autosklearn6", make_profile()).configuration_space[step].meta["groups"]
    assert in_any_order(groups) == in_any_order(TREES[step])


def test_exactly_the_forbidden_pairs_are_missing():
    space = make_space("autosklearn6", make_profile())
    maps = ("kernel_pca", "random_kitchen_sinks", "nystroem")
    expected = set(itertools.product(maps, NON_LINEAR))
    expected |= {(p, "multinomial_nb") for p in (*maps, "pca", "fast_ica")}
    expected |= {("random_trees_embedding", a) for a in ("gaussian_nb", "gradient_boosting", "lda", "qda")}
    expected |= {("weighting", a) for a in ("k_nearest_neighbors", "lda", "qda")}
    missing = set()
    for step, algorithm in itertools.product(("preprocessor", "balancing"), space.algorithms):
        for operator in space.operators[step]:
            try:
                completed(space, algorithm=algorithm.name, **{step: operator.name})
            except ForbiddenValueError:
                missing.add((operator.name, algorithm.name))
    assert len(NON_LINEAR) == 9
    assert missing == expected
    space.configuration_space.seed(0)
    for c in space.configuration_space.sample_configuration(1000):
        assert {(c["preprocessor"], c["algorithm"]), (c["balancing"], c["algorithm"])}.isdisjoint(expected)


def test_there_are_no_regressors():
    with pytest.raises(IncompatibleParametersError, match="'default' or 'volcano'"):
        make_space("autosklearn6", make_profile(TaskType.REGRESSION))


# Everything works ----------------------------------------------------------------------------------------------------


def at_defaults(tables, numbers):
    """Yield table and configuration for (table, classifier, preprocessor, rescaler) numbers that are permitted."""
    for index, i, j, k in numbers:
        space = tables[index].space
        choice = {
            "algorithm": space.algorithms[i].name,
            "preprocessor": space.operators["preprocessor"][j].name,
            "rescaling": space.operators["rescaling"][k].name,
        }
        try:
            yield tables[index], completed(space, **choice, **QUICK)
        except ForbiddenValueError:
            continue


# Discriminant analysis of scikit-learn 1.7 warns of collinear columns, that of 1.9 raises an error.
COLLINEAR = pytest.mark.filterwarnings("ignore:The covariance matrix of class:scipy.linalg.LinAlgWarning")


@pytest.mark.slow
@COLLINEAR
def test_every_classifier_works_with_every_preprocessor_at_their_defaults(tables):
    pairs = itertools.product(range(16), range(13))
    chosen = list(at_defaults(tables, [((i + j) % 2, i, j, (i + j) % 7) for i, j in pairs]))
    assert len(chosen) == 16 * 13 - 36
    failed = [c["algorithm"] for table, c in chosen if fit_or_fail_cleanly(table, c)]
    assert set(failed) <= {"qda"}  # more columns than rows of a class


@pytest.mark.slow
def test_every_classifier_works_with_every_preprocessor_and_rescaler(tables):
    every = itertools.product(range(2), range(16), range(13), range(7))
    failed = [c["algorithm"] for table, c in at_defaults(tables, every) if fit_or_fail_cleanly(table, c)]
    assert set(failed) <= {"qda"}


@pytest.mark.long
@COLLINEAR
@pytest.mark.parametrize(("which", "seed"), [(0, 1), (1, 2)])
def test_random_configurations_fit_or_fail_cleanly(tables, which, seed):
    space = tables[which].space.configuration_space
    space.seed(seed)
    n_failed = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # iteration limits of the learners
        for configuration in space.sample_configuration(40):
            if configuration.get("adaboost:n_estimators", 0) > 150:
                continue  # slow, and covers nothing else
            n_failed += fit_or_fail_cleanly(tables[which], configuration)
    assert n_failed <= 8


CHOICES = [
    *({"rescaling": "quantile", "quantile:output_distribution": d} for d in ("uniform", "normal")),
    *({"preprocessor": "select_rates", "select_rates:score": score} for score in ("f", "mutual_info")),
    *({"preprocessor": "select_percentile", "select_percentile:score": score} for score in ("f", "mutual_info")),
    *({"preprocessor": "feature_agglomeration", "feature_agglomeration:pooling": p} for p in ("median", "max")),
    *({"preprocessor": "nystroem", "nystroem:kernel": kernel} for kernel in ("poly", "chi2")),
    *({"algorithm": "sgd", "sgd:loss": loss} for loss in ("hinge", "modified_huber")),
    {"algorithm": "passive_aggressive", "passive_aggressive:loss": "squared_hinge"},
    {"algorithm": "passive_aggressive", "balancing": "weighting"},
    {"algorithm": "liblinear_svc", "liblinear_svc:loss": "hinge", "balancing": "weighting"},
    {"algorithm": "bernoulli_nb", "balancing": "weighting"},
    {"algorithm": "mlp", "balancing": "weighting", "mlp:activation": "tanh"},
    {"algorithm": "k_nearest_neighbors", "k_nearest_neighbors:p": 1},
    {"algorithm": "lda", "lda:shrinkage": "auto"},
    {"algorithm": "gradient_boosting", "gradient_boosting:early_stop": "train"},
    {"algorithm": "gradient_boosting", "gradient_boosting:early_stop": "valid", "balancing": "weighting"},
]


@pytest.mark.slow
@COLLINEAR
def test_every_part_survives_the_model_file(tables, tmp_path):
    table = tables[0]
    steps = table.space.operators.items()
    chosen = [{"algorithm": a.name} for a in table.space.algorithms]
    chosen += [{"algorithm": "sgd", step: o.name} for step, choices in steps for o in choices]
    X = table.folds.load(0, Encoding.ORDINAL)[1]
    n_compared = 0
    for values in [*chosen, *({"algorithm": "sgd", **choice} for choice in CHOICES)]:
        try:
            model = fit(table, completed(table.space, **{**QUICK, **values}))
        except np.linalg.LinAlgError:
            assert values["algorithm"] == "qda"
            continue
        (tmp_path / "model").write_bytes(dump_fold_models([model]))
        (loaded,) = load_fold_models(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        n_compared += 1
    assert n_compared >= len(chosen) + len(CHOICES) - 1


def test_products_and_kernel_maps_of_wide_matrices_stay_within_the_limits():
    context = BuildContext(
        task_type=TaskType.BINARY, n_classes=2, n_rows=10_000, n_features=70, categorical=np.zeros(70, dtype=bool)
    )
    for name in ("random_kitchen_sinks", "nystroem"):
        built = build_preprocessor(name, {"n_components": 10_000, "kernel": "rbf", "gamma": 0.1}, context)
        assert built.n_components == 2000
    X = np.random.default_rng(0).normal(size=(60, 70))
    for bias in (True, False):
        values = {"degree": 3, "interaction_only": False, "include_bias": bias}
        assert build_preprocessor("polynomial", values, context).fit_transform(X).shape[1] == 1770 + bias


def test_prediction_copes_with_unknown_categories_and_new_gaps(tables):
    table = tables[0]
    for encoding, coalescence in itertools.product(
        ("one_hot", "ordinal", "no_encoding"), ("no_coalescence", "minority_coalescer")
    ):
        model = fit(table, completed(table.space, algorithm="sgd", encoding=encoding, coalescence=coalescence))
        X, _, categorical = table.folds.load(0, Encoding.ORDINAL)
        rows = np.array(X[:3])
        rows[0] = np.nan
        rows[1, categorical] = 99
        assert np.isfinite(model.predict(rows)).all()


# Operators -----------------------------------------------------------------------------------------------------------


def transformed(X, categorical, **chosen):
    """Return what reaches the learner."""
    space = make_space("autosklearn6", make_profile())
    context = BuildContext(
        task_type=TaskType.BINARY, n_classes=2, n_rows=len(X), n_features=X.shape[1], categorical=categorical
    )
    pipeline = space.build(completed(space, **chosen), context)
    return Pipeline(pipeline.steps[:-1]).fit_transform(X, np.arange(len(X)) % 2)


def test_numbers_are_imputed_and_rescaled_and_categories_only_encoded():
    nan = np.nan
    X = np.array([[2, 1.0], [0, nan], [2, 3.0], [nan, 5.0]], dtype=np.float32)
    categorical = np.array([True, False])
    number = np.array([0, 0.5, 0.5, 1], dtype=np.float32)
    levels = {"no_encoding": [[2, 0, 2, -1]], "ordinal": [[2, 1, 2, 0]], "one_hot": np.eye(3)[[2, 1, 2, 0]].T}
    for encoding, columns in levels.items():
        choices = {"coalescence": "no_coalescence", "encoding": encoding, "rescaling": "minmax"}
        result = transformed(X, categorical, **choices)
        np.testing.assert_allclose(result, np.column_stack([number, *columns]))
    for imputation, value in (("mean", 3), ("median", 3), ("most_frequent", 1)):
        choices = {"coalescence": "no_coalescence", "encoding": "ordinal", "rescaling": "no_rescaling"}
        assert transformed(X, categorical, imputation=imputation, **choices)[1, 0] == value


def test_tables_of_categories_only_have_nothing_to_impute_or_rescale():
    X = np.array([[0, 1], [1, 2], [2, np.nan], [0, 2]], dtype=np.float32)
    result = transformed(X, np.array([True, True]), encoding="ordinal", coalescence="no_coalescence")
    np.testing.assert_array_equal(result, [[0, 1], [1, 2], [2, 0], [0, 2]])


def test_rare_and_new_levels_become_one():
    X = np.array([[0, 7]] * 6 + [[1, 8]] * 3 + [[2, 9]], dtype=np.float32)
    merger = LevelMerger([0], minimum_fraction=0.3).fit(X)
    np.testing.assert_array_equal(merger.transform(X)[:, 0], [0] * 6 + [1] * 3 + [RARE_LEVEL])
    np.testing.assert_array_equal(merger.transform(X)[:, 1], X[:, 1])
    new = np.array([[5, np.nan], [np.nan, 1]], dtype=np.float32)
    np.testing.assert_array_equal(merger.transform(new), [[RARE_LEVEL, np.nan], [RARE_LEVEL, 1]])
    kept = LevelMerger([0], minimum_fraction=0.0).fit(X)
    np.testing.assert_array_equal(kept.transform(new)[:, 0], [5, MISSING_LEVEL])


@settings(deadline=None, max_examples=50)
@given(
    codes=st.lists(st.one_of(st.integers(0, 5), st.just(np.nan)), min_size=1, max_size=40),
    fraction=st.floats(1e-4, 0.5),
)
def test_merged_levels_are_the_rare_ones_of_the_training_rows(codes, fraction):
    X = np.array(codes, dtype=np.float32)[:, None]
    before = np.where(np.isnan(X), np.float32(MISSING_LEVEL), X)
    after = LevelMerger([0], minimum_fraction=fraction).fit_transform(X)
    share = np.array([(before == level).mean() for level in before[:, 0]])
    np.testing.assert_array_equal(after[:, 0] == RARE_LEVEL, share < fraction)
    assert np.all((after == before) | (after == RARE_LEVEL))
    assert np.isnan(X).sum() == sum(np.isnan(codes))  # the table is not changed


def test_one_hot_encoding_of_too_many_levels_is_refused():
    encoder = LimitedOneHotEncoder(sparse_output=False)
    encoder.fit(np.arange(2000)[:, None])
    with pytest.raises(ValueError, match="2001 columns"):
        encoder.fit(np.arange(2001)[:, None])


def test_preprocessors_know_the_width_that_encoding_makes():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 30, 200), rng.normal(size=200)]).astype(np.float32)
    choices = {"coalescence": "no_coalescence", "encoding": "one_hot", "preprocessor": "fast_ica"}
    width = 1 + len(np.unique(X[:, 0]))
    result = transformed(X, np.array([True, False]), **choices)
    assert result.shape[1] == width > 2


def test_balanced_classes_weigh_the_same():
    X, y = load_wine(return_X_y=True)
    rows = np.r_[0:59, 59:80, 130:140]
    X, y = X[rows], y[rows]
    weight = np.linspace(0.5, 1.5, len(y))
    np.testing.assert_allclose(BalancedClassifier(GaussianNB()).fit(X, y).estimator_.class_prior_, [1 / 3] * 3)
    balanced = len(y) / (3 * np.bincount(y)[y])
    expected = GaussianNB().fit(X, y, sample_weight=weight * balanced).predict_proba(X)
    weighted = BalancedClassifier(GaussianNB()).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(weighted.predict_proba(X), expected)
    np.testing.assert_array_equal(weighted.predict(X), expected.argmax(axis=1))


@pytest.mark.long
def test_weighting_favours_the_rare_class_with_every_learner_that_offers_it():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    y = (X[:, 0] + 2 * rng.normal(size=300) > 3).astype(int)
    space = make_space("autosklearn6", make_profile(has_categories=False))
    context = BuildContext(
        task_type=TaskType.BINARY, n_classes=2, n_rows=300, n_features=3, categorical=np.zeros(3, dtype=bool)
    )
    unweighted = {"k_nearest_neighbors", "lda", "qda"}
    calm = {"min_samples_leaf": 20, "early_stop": "train", "max_depth": 2, "early_stopping": "train"}
    for algorithm in space.algorithms:
        if algorithm.name in unweighted:
            continue
        own = {f"{algorithm.name}:{key}": value for key, value in calm.items()}
        shares = [
            space.build(completed(space, algorithm=algorithm.name, balancing=balancing, **own), context)
            .fit(X, y)
            .predict_proba(X)[:, 1]
            .mean()
            for balancing in ("none", "weighting")
        ]
        assert shares[1] > shares[0], algorithm.name


# Learners ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_passive_aggressive_learner_is_that_of_scikit_learn(loss):
    from sklearn.linear_model import PassiveAggressiveClassifier

    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    space = make_space("autosklearn6", make_profile(TaskType.MULTICLASS, has_categories=False))
    values = {"passive_aggressive:loss": loss, "passive_aggressive:C": 0.01}
    context = BuildContext(
        task_type=TaskType.MULTICLASS, n_classes=3, n_rows=len(X), n_features=13, categorical=np.zeros(13, dtype=bool)
    )
    ours = space.build(completed(space, algorithm="passive_aggressive", **values), context)["learner"].fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # deprecated since 1.8, and the oracle as long as it exists
        theirs = PassiveAggressiveClassifier(C=0.01, loss=loss, tol=1e-4, max_iter=1024, random_state=0).fit(X, y)
    np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(X))


def test_probabilities_of_naive_bayes_sum_to_one_where_single_precision_fails():
    X = np.column_stack([np.random.default_rng(0).normal(size=60), np.zeros(60)]).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    space = make_space("autosklearn6", make_profile(has_categories=False))
    context = BuildContext(
        task_type=TaskType.BINARY, n_classes=2, n_rows=60, n_features=2, categorical=np.zeros(2, dtype=bool)
    )
    configuration = completed(space, algorithm="gaussian_nb", rescaling="no_rescaling")
    surprise = np.array([[0.1, 1]], dtype=np.float32)  # a value of a column that was constant
    ours = space.build(configuration, context).fit(X, y).predict_proba(surprise)
    np.testing.assert_allclose(ours.sum(), 1)
    if parse_version(sklearn.__version__) >= parse_version("1.9"):  # 1.7 sums to one
        assert GaussianNB().fit(X, y).predict_proba(surprise).sum() == 2


@pytest.mark.parametrize(("factor", "depth"), [(0.0, 1), (0.25, 2), (2.0, 16)])
def test_tree_depth_grows_with_the_number_of_columns(factor, depth):
    rng = np.random.default_rng(0)
    tree = RelativeDepthTree(max_depth=factor, random_state=0).fit(rng.normal(size=(5000, 8)), rng.integers(0, 2, 5000))
    assert (tree.get_depth(), tree.max_depth) == (depth, factor)


def test_negative_numbers_are_clipped_in_dense_and_sparse_matrices():
    from scipy.sparse import csr_matrix

    X = np.array([[-1.0, 2.0], [0.0, -3.0]])
    expected = np.maximum(X, 0)
    np.testing.assert_array_equal(NegativeClipper().fit_transform(X), expected)
    np.testing.assert_array_equal(NegativeClipper().fit_transform(csr_matrix(X)).toarray(), expected)
