from __future__ import annotations

import functools
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from cashmere.data.task import TaskType
from cashmere.evaluation.losses import SMALLEST_PREDICTION
from cashmere.evaluation.metrics import (
    METRICS,
    check_targets,
    default_metric,
    get_metric,
    is_built_in,
    is_for_values,
    learns_logarithms,
    metric_from_callable,
    pinball_metric,
)
from cashmere.exceptions import MetricError, UnknownNameError

BINARY, MULTICLASS, REGRESSION = TaskType
CLASS_METRICS = [name for name, metric in METRICS.items() if metric.needs != "values"]
VALUE_METRICS = [name for name, metric in METRICS.items() if metric.needs == "values" and metric.power is None]
DEVIANCES = ("poisson", "gamma", "tweedie", "tweedie@1.2")


def classes(n_classes, n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    p = rng.dirichlet(np.ones(n_classes), n).astype(np.float32)
    return y, np.round(p, 2), rng.random(n) + 0.1


def oracle(name, y, p, w):
    label = p.argmax(axis=1) if p.ndim == 2 else p
    p = p.astype(np.float64)
    sums = p.sum(axis=-1, keepdims=True)
    total = np.where(np.abs(sums - 1) > 1e-4, p / sums, p) if p.ndim == 2 else p
    many = p.ndim == 2 and p.shape[1] > 2
    one = total if many or p.ndim == 1 else total[:, 1]
    recalls = sk.recall_score(y, label, average=None, sample_weight=w) if p.ndim == 2 else 0
    return {
        "accuracy": lambda: sk.accuracy_score(y, label, sample_weight=w),
        "balanced_accuracy": lambda: sk.balanced_accuracy_score(y, label, sample_weight=w),
        "f1_macro": lambda: sk.f1_score(y, label, average="macro", sample_weight=w),
        "f1_weighted": lambda: sk.f1_score(y, label, average="weighted", sample_weight=w),
        "f1": lambda: sk.f1_score(y, label, sample_weight=w),
        "mcc": lambda: sk.matthews_corrcoef(y, label, sample_weight=w),
        "quadratic_kappa": lambda: sk.cohen_kappa_score(y, label, weights="quadratic", sample_weight=w),
        "g_mean": lambda: np.exp(np.log(recalls).mean()) if recalls.all() else 0.0,
        "log_loss": lambda: sk.log_loss(y, np.maximum(total, 1e-7), sample_weight=w),
        "roc_auc": lambda: (
            np.mean([sk.roc_auc_score(y == c, total[:, c], sample_weight=w) for c in range(p.shape[1])])
            if many
            else sk.roc_auc_score(y, one, sample_weight=w)
        ),
        "average_precision": lambda: sk.average_precision_score(y, one, sample_weight=w),
        "brier": lambda: sk.brier_score_loss(y, one, sample_weight=w),
        "rmse": lambda: sk.root_mean_squared_error(y, p, sample_weight=w),
        "rmsle": lambda: sk.root_mean_squared_log_error(y, np.maximum(p, 0), sample_weight=w),
        "mse": lambda: sk.mean_squared_error(y, p, sample_weight=w),
        "mae": lambda: sk.mean_absolute_error(y, p, sample_weight=w),
        "mape": lambda: sk.mean_absolute_percentage_error(y, p, sample_weight=w),
        "r2": lambda: sk.r2_score(y, p, sample_weight=w),
        "pinball": lambda: sk.mean_pinball_loss(y, p, sample_weight=w),
    }[name]()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", CLASS_METRICS)
def test_class_metrics_are_those_of_sklearn(name, n_classes, weighted):
    if name == "f1" and n_classes > 2:
        pytest.skip("for two classes only")
    y, p, w = classes(n_classes)
    metric = get_metric(name, BINARY if n_classes == 2 else MULTICLASS)
    w = w if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # log_loss of sklearn wants rows that sum to one after clipping
        expected = oracle(name, y, p, w)
    tolerance = 1e-4 if metric.needs == "probabilities" else 1e-9  # rows are rescaled beyond 1e-4 only
    assert metric.score(metric.loss(y, p, w)) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", VALUE_METRICS)
def test_value_metrics_are_those_of_sklearn(name, weighted):
    rng = np.random.default_rng(0)
    y, p, w = rng.normal(size=50), rng.normal(size=50).astype(np.float32), rng.random(50) if weighted else None
    metric = get_metric(name, REGRESSION)
    y = abs(y) if metric.learns_logarithms else y
    assert metric.score(metric.loss(y, p, w)) == pytest.approx(oracle(name, y, p, w))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", DEVIANCES)
def test_deviances_are_those_of_sklearn(name, weighted):
    rng = np.random.default_rng(1)
    y, p, weight = rng.gamma(1.0, size=200), rng.gamma(2.0, size=200) + 0.01, rng.random(200)
    if name != "gamma":
        y[::3] = 0.0
    metric, w = get_metric(name, REGRESSION), weight if weighted else None
    assert metric.loss(y, p, w) == pytest.approx(sk.mean_tweedie_deviance(y, p, power=metric.power, sample_weight=w))
    floor = SMALLEST_PREDICTION * np.average(y, weights=w)
    assert metric.loss(y, -p, w) == pytest.approx(metric.loss(y, np.full(200, floor), w))


@pytest.mark.parametrize("name", ["mae", "mape", "pinball@0.5", "rmse", "pinball@0.9", "poisson", "rmsle"])
def test_logarithms_of_skewed_targets_are_learned_under_absolute_errors(name):
    metric, skewed = get_metric(name, REGRESSION), np.exp(np.random.default_rng(0).normal(size=200))
    of_median = name in ("mae", "pinball@0.5")
    assert learns_logarithms(metric, skewed) == (of_median or name == "rmsle")
    for other in (-skewed, skewed - 1, np.log1p(skewed), np.ones(9)):  # negative, hardly skewed, constant
        assert not learns_logarithms(metric, other) or name == "rmsle"
    assert learns_logarithms(metric, 1e200 * skewed) == learns_logarithms(metric, skewed)
    if name == "mae":
        own = replace(metric, function=lambda y, p, w: 0.0)
        assert not learns_logarithms(own, skewed)


def test_mean_minimises_deviances():
    y = np.random.default_rng(0).gamma(1.0, size=100)
    for name in DEVIANCES:
        losses = [get_metric(name, REGRESSION).loss(y, np.full(100, c * y.mean())) for c in (0.9, 1.0, 1.1)]
        assert losses[1] < min(losses[0], losses[2])


@pytest.mark.parametrize(
    ("name", "y", "message"),
    [("poisson", [1.0, -1.0], "needs targets of at least 0, but the smallest is -1.*choose rmse"),
     ("gamma", [1.0, 0.0], "needs positive targets, but the smallest is 0.*choose tweedie, poisson or rmse"),
     ("tweedie", [0.0, 0.0], "needs some positive targets, but all are 0"),
     ("rmsle", [1.0, -1.0], "needs targets of at least 0, but the smallest is -1.*choose rmse")],
)  # fmt: skip
def test_targets_must_fit_the_metric(name, y, message):
    with pytest.raises(MetricError, match=message):
        check_targets(get_metric(name, REGRESSION), np.array(y))
    check_targets(get_metric(name, REGRESSION), np.array([1.0, 2.0]))
    check_targets(METRICS["rmse"], np.array(y))


@pytest.mark.parametrize("name", ["tweedie@1", "tweedie@2", "tweedie@x", "poisson@1.5"])
def test_powers_are_between_1_and_2(name):
    with pytest.raises((MetricError, UnknownNameError)):
        get_metric(name, REGRESSION)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("level", [0.01, 0.25, 0.5, 0.9, 1e-5, 0.123456789])
def test_pinball_losses_are_those_of_sklearn(level, weighted):
    rng = np.random.default_rng(1)
    y, p, w = rng.normal(size=70), rng.normal(size=70), rng.random(70) if weighted else None
    metric = get_metric(f"pinball@{level}", REGRESSION)
    assert (metric.name, metric.level) == (f"pinball@{level}", level)
    assert metric.loss(y, p, w) == pytest.approx(sk.mean_pinball_loss(y, p, alpha=level, sample_weight=w))
    assert pickle.loads(pickle.dumps(metric)) == metric == get_metric(f"Quantile@{level}", REGRESSION)


def test_level_of_numpy_becomes_a_plain_number():
    metric = pinball_metric(np.float64(0.3))
    assert metric == get_metric("pinball@0.3", REGRESSION) and type(metric.level) is float


def test_learners_approach_absolute_errors_by_the_median():
    levels = {name: metric.level for name, metric in METRICS.items() if metric.level is not None}
    assert levels == {"mae": 0.5, "mape": 0.5, "pinball": 0.5}


@pytest.mark.parametrize("weighted", [False, True])
def test_training_weights_are_those_of_the_percentage_error(weighted):
    rng = np.random.default_rng(0)
    y, p = rng.choice([-1, 1], 200) * np.exp(rng.normal(size=200)), rng.normal(size=200)
    given = rng.uniform(1, 9, 200) if weighted else None
    used = METRICS["mape"].training_weight(y, given)
    assert used.mean() == pytest.approx(1 if given is None else given.mean())
    share = np.ones(200) if given is None else given
    expected = METRICS["mape"].loss(y, p, given) * share.sum() / used.sum() / np.mean(share / abs(y)) * share.mean()
    assert METRICS["mae"].loss(y, p, used) == pytest.approx(expected)
    for unweighted in (METRICS["mae"], replace(METRICS["mape"], level=None)):
        assert unweighted.training_weight(y, given) is given


def test_training_weights_are_bounded():
    weigh = METRICS["mape"].training_weight
    y = np.array([0.0, 1e-9, 1.0, 1.0, 2.0])
    np.testing.assert_allclose(weigh(y, None) / weigh(y, None)[2], [100, 100, 1, 1, 0.5])
    few = weigh(np.array([0.0, 0.0, 0.0, 4.0]), None)  # the median is 0
    np.testing.assert_allclose(few / few[3], [4, 4, 4, 1])
    assert weigh(np.zeros(3), None) is None


def test_quantile_minimises_its_pinball_loss():
    y = np.random.default_rng(2).exponential(size=101)
    losses = [get_metric("pinball@0.8", REGRESSION).loss(y, np.full(101, constant)) for constant in np.sort(y)]
    assert np.argmin(losses) == 80


@pytest.mark.parametrize("name", ["pinball@", "pinball@high", "pinball@0", "pinball@1.5", "pinball@nan"])
def test_level_outside_of_0_to_1_is_refused(name):
    with pytest.raises(MetricError, match=r"as in 'pinball@0\.9'"):
        get_metric(name, REGRESSION)


def test_power_that_is_no_number_is_asked_for():
    for name in ("tweedie@", "tweedie@1,5"):
        with pytest.raises(MetricError, match=rf"^A power must follow the @ of '{name}', as in 'tweedie@1\.5'\.$"):
            get_metric(name, REGRESSION)


def test_only_pinball_losses_have_levels():
    with pytest.raises(UnknownNameError, match=r"rmse@0\.9"):
        get_metric("rmse@0.9", REGRESSION)
    with pytest.raises(MetricError, match="does not fit a binary task"):
        get_metric("pinball@0.9", BINARY)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 5), n=st.integers(5, 40))
def test_perfect_predictions_lose_nothing_and_losses_are_bounded(seed, n_classes, n):
    y, p, w = classes(n_classes, n, seed)
    for name in CLASS_METRICS if n_classes == 2 else sorted(set(CLASS_METRICS) - {"f1"}):
        metric = get_metric(name, BINARY if n_classes == 2 else MULTICLASS)
        for weight in (None, w):
            assert metric.loss(y, np.eye(n_classes)[y], weight) == pytest.approx(0, abs=1e-12)
            worst = np.eye(n_classes)[(y + 1) % n_classes]
            for predictions in (p, worst):
                loss = metric.loss(y, predictions, weight)
                assert loss >= 0 and (metric.worst_loss is None or loss <= metric.worst_loss + 1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_perfect_values_lose_nothing(values):
    y = np.array(values)
    for metric in (METRICS[name] for name in VALUE_METRICS):
        allowed = np.abs(y) if metric.learns_logarithms else y
        assert metric.loss(allowed, allowed) == 0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4))
def test_whole_weights_equal_repetition(seed, n_classes):
    y, p, _ = classes(n_classes, 20, seed)
    w = np.random.default_rng(seed).integers(1, 4, 20)
    rows = np.repeat(np.arange(20), w)
    for name in CLASS_METRICS:
        assert METRICS[name].loss(y, p, w) == pytest.approx(METRICS[name].loss(y[rows], p[rows]), abs=1e-9)


def test_ties_go_to_the_lowest_class():
    assert METRICS["accuracy"].loss(np.array([0, 1]), np.full((2, 2), 0.5)) == 0.5


def test_probabilities_are_rescaled_safely():
    y = np.array([0, 1, 0])
    raw = np.array([[2.0, 2.0], [0.0, 0.0], [3.0, -1.0]])
    safe = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    for name in CLASS_METRICS:
        assert METRICS[name].loss(y, raw) == METRICS[name].loss(y, safe)


def test_log_loss_is_clipped():
    assert METRICS["log_loss"].loss(np.array([0]), np.array([[0.0, 1.0]])) == pytest.approx(-np.log(1e-7))


def test_area_with_a_single_class_is_chance():
    assert METRICS["roc_auc"].loss(np.array([1, 1]), np.array([[0.2, 0.8], [0.3, 0.7]])) == 0.5


def test_rows_without_the_second_class():
    none, one = np.zeros(3, dtype=int), np.array([0, 0, 1])
    p, called = np.eye(2)[none], np.eye(2)[one]
    assert [METRICS["f1"].loss(none, each) for each in (p, called)] == [0, 1]
    assert METRICS["average_precision"].loss(none, called) == 1
    assert [METRICS["mcc"].loss(y, p) for y in (none, one)] == [1, 1]


@pytest.mark.parametrize("n", [100, 300, 700, 12345])
def test_matthews_correlation_of_a_constant_is_zero(n):
    """Shares do not sum to one exactly: it was 2e-7, and its interval did not contain 0."""
    y = (np.arange(n) < max(1, n // 17)).astype(int)
    assert METRICS["mcc"].loss(y, np.tile([0.9, 0.1], (n, 1))) == 1
    rare = (np.arange(10**6) == 7).astype(int)
    assert METRICS["mcc"].loss(rare, np.eye(2)[rare]) == pytest.approx(0, abs=1e-6)


def test_functions_that_require_weights_get_none_where_there_are_none():
    def mean_hit(y, predictions, sample_weight):
        return np.average(y == predictions, weights=sample_weight)

    metric = metric_from_callable(mean_hit)
    y, p = np.array([0, 1]), np.array([[0.9, 0.1], [0.8, 0.2]])
    assert metric.name == "mean_hit" and metric.loss(y, p) == 0.5
    assert metric.loss(y, p, np.array([3.0, 1.0])) == 0.25


@pytest.mark.parametrize("task", [TaskType.BINARY, TaskType.MULTICLASS])
def test_functions_of_probabilities_do_not_get_classes(task):
    for function, words in (
        (sk.roc_auc_score, r"Pass metric='roc_auc', or metric_from_callable\(roc_auc_score, greater_is_better=True"),
        (functools.partial(sk.average_precision_score, pos_label=0), "Pass metric='average_precision', or metric_from"),
        (sk.d2_log_loss_score, r"Pass metric_from_callable\(d2_log_loss_score, .*needs='probabilities'"),
    ):
        with pytest.raises(MetricError, match=words):
            get_metric(function, task)

    def roc_auc_score(y, predictions):
        return 0.0

    assert get_metric(roc_auc_score, task).name == "roc_auc_score"  # a user's own may compute it from classes
    assert get_metric(metric_from_callable(sk.roc_auc_score, needs="labels"), task).needs == "labels"
    assert get_metric("roc_auc_score", task).name == "roc_auc"


def test_functions_of_errors_are_not_maximised():
    for task, function, words in (
        (TaskType.REGRESSION, sk.mean_absolute_error, "Pass metric='mae', or metric_from_callable"),
        (
            TaskType.REGRESSION,
            sk.median_absolute_error,
            r"Pass metric_from_callable\(median_absolute_error, greater_is_better",
        ),
        (TaskType.BINARY, sk.hamming_loss, "named like an error, which should be small"),
    ):
        with pytest.raises(MetricError, match=words):
            get_metric(function, task)
    for name in ("rmse", "my_mae", "SMAPE", "total_cost"):

        def function(y, predictions):
            return 0.0

        function.__name__ = name
        with pytest.raises(MetricError, match="named like an error"):
            get_metric(function, TaskType.REGRESSION)
    with pytest.raises(MetricError, match="'mean_pinball_loss' is named like an error"):
        get_metric(functools.partial(sk.mean_pinball_loss, alpha=0.1), TaskType.REGRESSION)
    assert get_metric(sk.r2_score, TaskType.REGRESSION).greater_is_better


def test_metrics_of_values_are_told_from_others():
    assert all(is_for_values(each) for each in ("rmse", "MAE", "r2-score", "pinball@0.9", METRICS["mape"]))
    assert not any(is_for_values(each) for each in ("accuracy", "nothing", None, METRICS["mcc"], sk.r2_score))


def test_f1_is_for_two_classes():
    with pytest.raises(MetricError, match=r"'f1' does not fit a multiclass task. Choose one of: .*f1_macro"):
        get_metric("f1", MULTICLASS)


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_of_the_first_class_are_those_of_sklearn(weighted):
    y, p, weight = classes(2)
    w = weight if weighted else None
    of_first = {name: get_metric(name, BINARY, positive=0) for name in CLASS_METRICS}
    f1 = sk.f1_score(y, p.argmax(axis=1), pos_label=0, sample_weight=w)
    precision = sk.average_precision_score(y, p[:, 0], pos_label=0, sample_weight=w)
    assert of_first["f1"].loss(y, p, w) == pytest.approx(1 - f1)
    assert of_first["average_precision"].loss(y, p, w) == pytest.approx(1 - precision)
    assert pickle.loads(pickle.dumps(of_first["f1"])) == of_first["f1"] != METRICS["f1"]
    assert is_built_in(of_first["f1"]) and is_built_in(METRICS["f1"])
    for name in {*CLASS_METRICS} - {"f1", "average_precision"}:
        assert of_first[name] == get_metric(name, BINARY)  # of both classes
    assert get_metric("average_precision", MULTICLASS, positive=0) == METRICS["average_precision"]


def test_classes_absent_from_the_targets_are_left_out():
    y = np.array([0, 2, 0, 2])
    p = np.array([[0.9, 0.05, 0.05], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2], [0.2, 0.1, 0.7]])
    assert [METRICS[name].loss(y, p) for name in ("roc_auc", "balanced_accuracy", "g_mean", "f1_macro", "mcc")] == [
        0
    ] * 5


def test_constant_targets_have_an_r2():
    y = np.ones(3)
    assert METRICS["r2"].loss(y, y) == 0 and METRICS["r2"].loss(y, y + 1) == 1


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("AUC", "roc_auc"),
        ("acc", "accuracy"),
        ("neg-log-loss", "log_loss"),
        ("Log Loss", "log_loss"),
        ("matthews_corrcoef", "mcc"),
        ("QWK", "quadratic_kappa"),
        ("AUPRC", "average_precision"),
    ],
)
def test_aliases(alias, name):
    assert get_metric(alias, MULTICLASS).name == name


def test_defaults_fit_their_task():
    for task_type in TaskType:
        assert task_type in default_metric(task_type).task_types
    assert default_metric(BINARY).name == "log_loss" and default_metric(REGRESSION).name == "rmse"


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'accuracy'"):
        get_metric("acuracy", BINARY)


@pytest.mark.parametrize(("name", "task_type"), [("rmse", BINARY), ("accuracy", REGRESSION), ("roc_auc", REGRESSION)])
def test_metric_that_does_not_fit_is_refused(name, task_type):
    with pytest.raises(MetricError, match="does not fit"):
        get_metric(name, task_type)


@pytest.mark.parametrize("metric", [3, None, sk.make_scorer(sk.f1_score)])
def test_anything_but_a_metric_is_refused(metric):
    with pytest.raises(MetricError):
        get_metric(metric, BINARY)


def test_function_of_labels_probabilities_and_values():
    y, p, w = classes(2)
    by_label = get_metric(sk.accuracy_score, BINARY)
    assert by_label.name == "accuracy_score" and by_label.needs == "labels" and by_label.worst_loss is None
    assert by_label.loss(y, p, w) == pytest.approx(METRICS["accuracy"].loss(y, p, w))
    by_probability = metric_from_callable(sk.brier_score_loss, greater_is_better=False, needs="probabilities")
    assert by_probability.loss(y, p) == pytest.approx(METRICS["brier"].loss(y, p), rel=1e-4)
    by_value = metric_from_callable(lambda y, p: float(np.max(np.abs(y - p))), greater_is_better=False, needs="values")
    assert by_value.loss(np.zeros(2), np.array([1.0, 3.0])) == 3 == by_value.score(3)


def test_function_may_see_labels():
    names = np.array(["no", "yes"], dtype=object)
    metric = metric_from_callable(lambda y, p: sk.f1_score(y, p, pos_label="yes"), labels=names)
    assert metric.loss(np.array([0, 1]), np.eye(2)) == 0


@pytest.mark.parametrize("result", [float("nan"), float("inf"), "high", None])
def test_function_without_a_number_is_an_error(result):
    metric = metric_from_callable(lambda y, p: result)
    with pytest.raises(MetricError):
        metric.loss(np.array([0, 1]), np.eye(2))


def test_function_that_fails_is_an_error_that_says_what_it_gets():
    metric = metric_from_callable(sk.f1_score, labels=np.array(["no", "yes"], dtype=object))
    with pytest.raises(MetricError, match=r"failed \(ValueError: pos_label=1 .*It gets y_true and y_pred;"):
        metric.loss(np.array([0, 1]), np.eye(2))


@pytest.mark.parametrize(
    "predictions",
    [np.eye(3), np.zeros(2), np.full((2, 2), np.nan), np.array([[np.inf, 0], [0, 1]]), np.zeros((2, 2, 2))],
)
def test_bad_predictions_are_an_error(predictions):
    with pytest.raises(MetricError):
        METRICS["log_loss"].loss(np.array([0, 1]), predictions)


@pytest.mark.parametrize("metric", [*METRICS.values(), metric_from_callable(sk.accuracy_score)])
def test_metrics_can_be_pickled(metric):
    assert pickle.loads(pickle.dumps(metric)).name == metric.name


def test_score_of_a_constant_prediction_is_zero_despite_rounding():
    y = np.random.default_rng(0).integers(0, 5, 611)
    kappa = get_metric("quadratic_kappa", TaskType.MULTICLASS)
    constants = [np.tile(np.eye(5)[code], (len(y), 1)) for code in range(5)]
    losses = [kappa.loss(y, p, weight) for p in constants for weight in (None, np.arange(1.0, 612.0))]
    assert losses != [1.0] * 10
    assert [kappa.score(loss) for loss in losses] == [0.0] * 10
    assert np.isnan(kappa.score(float("nan")))
    assert get_metric("r2", TaskType.REGRESSION).score(1 + 1e-6) == pytest.approx(-1e-6)
    assert get_metric("rmse", TaskType.REGRESSION).score(1e-15) == 1e-15


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("msle", "Choose rmsle, its square root"),
        ("kappa", "Choose quadratic_kappa, or, in Python"),
        ("ndcg", "In Python, pass your own function"),
        ("Sensitivity", "decision_threshold='recall>=0.9' to reach a rate"),
    ],
)
def test_metrics_that_there_are_not_are_answered_with_others(name, advice):
    with pytest.raises(UnknownNameError, match=advice):
        get_metric(name, TaskType.BINARY)
