from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.data.task import TaskType
from cashmere.ensembles.threshold import _one_minus_matthews, as_certain, choose_thresholds, decide, tune_thresholds
from cashmere.evaluation.metrics import METRICS, get_metric, metric_from_callable

LABEL_METRICS = ["accuracy", "balanced_accuracy", "f1", "f1_macro", "f1_weighted", "g_mean", "mcc"]


def loss(metric, y, p, thresholds, weight=None) -> float:
    return METRICS[metric].loss(y, as_certain(decide(p, thresholds), p.shape[1]), weight)


def two_columns(second) -> np.ndarray:
    return np.column_stack([1 - second, second])


def rare_class(n: int = 1000, share: float = 0.05, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities of a rare second class: the true threshold of balanced accuracy is its share."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    second = 1 / (1 + np.exp(-(1.5 * score + np.log(share / (1 - share)))))
    return (rng.random(n) < second).astype(np.int64), two_columns(second)


@st.composite
def binary_rows(draw):
    n = draw(st.integers(4, 40))
    y = draw(arrays(np.int64, n, elements=st.integers(0, 1)))
    second = draw(arrays(np.int64, n, elements=st.integers(0, 32))) / 32  # many ties
    weight = draw(st.none() | arrays(np.float64, n, elements=st.floats(0.1, 5)))
    assume(0 < y.sum() < n)
    return y, two_columns(second), weight


@pytest.mark.long
@given(binary_rows(), st.sampled_from(LABEL_METRICS))
@settings(deadline=None, max_examples=200)
def test_no_threshold_between_two_rows_is_better(rows, metric):
    y, p, weight = rows
    chosen = loss(metric, y, p, choose_thresholds(p, y, METRICS[metric], weight=weight), weight)
    values = np.unique(p[:, 1])
    every = [loss(metric, y, p, np.array([1 - t, t]), weight) for t in (values[1:] + values[:-1]) / 2]
    assert chosen == pytest.approx(min([*every, loss(metric, y, p, np.array([0.5, 0.5]), weight)]), abs=1e-9)


ROUNDED = (
    np.array([1, 1, 0, 1, *[0] * 12]),
    two_columns(np.array([0.0] * 15 + [0.03125])),
    np.full(16, 0.1),  # its sums of a class without hits are not exactly 0
)


@given(binary_rows())
@example(ROUNDED)
@settings(deadline=None, max_examples=50)
def test_metric_that_is_called_finds_what_the_table_finds(rows):
    y, p, weight = rows
    own = metric_from_callable(
        lambda y_true, y_pred, sample_weight=None: 1 - METRICS["g_mean"].function(y_true, y_pred, sample_weight)
    )
    np.testing.assert_allclose(
        choose_thresholds(p, y, own, weight=weight), choose_thresholds(p, y, METRICS["g_mean"], weight=weight)
    )


@given(binary_rows())
@settings(deadline=None, max_examples=25)
def test_f1_of_the_first_class_is_that_of_the_second_with_classes_exchanged(rows):
    y, p, weight = rows
    assume(np.all(p[:, 0] != p[:, 1]))  # in a tie, the lower class is predicted
    first, second = (get_metric("f1", TaskType.BINARY, positive=code) for code in (0, 1))
    chosen = choose_thresholds(p, y, first, weight=weight)
    exchanged = choose_thresholds(p[:, ::-1], 1 - y, second, weight=weight)[::-1]
    losses = [first.loss(y, as_certain(decide(p, each), 2), weight) for each in (chosen, exchanged)]
    assert losses[0] == pytest.approx(losses[1])


def test_class_without_a_row_needs_no_threshold_of_its_own():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 2, 200)
    own = metric_from_callable(lambda y_true, y_pred: np.mean(y_true == y_pred), name="own")
    assert np.isfinite(choose_thresholds(p, y, own)).all()


@pytest.mark.parametrize("class_", [0, 1])
def test_matthews_correlation_of_one_predicted_class_is_that_of_the_table(class_):
    y, codes = np.arange(60) % 3, np.full(60, class_)
    hits, predicted = (np.bincount(codes, weights=w, minlength=3)[None] for w in (codes == y, np.full(60, 0.1)))
    table = _one_minus_matthews(0.1 * hits, predicted, 0.1 * np.bincount(y, minlength=3))
    assert table[0] == METRICS["mcc"].loss(y, as_certain(codes, 3)) == 1.0


def test_custom_metric_with_a_known_name_is_called_itself():
    y, p = rare_class()
    recall = metric_from_callable(lambda y_true, y_pred: float(np.mean(y_pred[y_true == 0] == 0)), name="g_mean")
    first, second = (choose_thresholds(p, y, metric) for metric in (recall, METRICS["g_mean"]))
    assert first[1] > 0.5 > second[1]


@st.composite
def multiclass_rows(draw):
    n, n_classes = draw(st.integers(10, 50)), draw(st.integers(3, 5))
    y = draw(arrays(np.int64, n, elements=st.integers(0, n_classes - 1)))
    p = draw(arrays(np.float64, (n, n_classes), elements=st.floats(0.0, 1.0))) + 1e-3
    weight = draw(st.none() | arrays(np.float64, n, elements=st.floats(0.1, 5)))
    return y, p / p.sum(axis=1, keepdims=True), weight


@given(multiclass_rows(), st.sampled_from(LABEL_METRICS))
@settings(deadline=None, max_examples=100)
def test_thresholds_are_never_worse_than_the_most_probable_class(rows, metric):
    y, p, weight = rows
    thresholds = choose_thresholds(p, y, METRICS[metric], weight=weight)
    assert thresholds.shape == (p.shape[1],)
    assert thresholds.sum() == pytest.approx(1)
    assert (thresholds > 0).all()
    assert loss(metric, y, p, thresholds, weight) <= loss(metric, y, p, None, weight) + 1e-9


def test_best_threshold_of_one_class_is_found_among_many():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 150)
    true = np.array([0.25, 0.25, 0.5])
    y = decide(p, true)
    found = choose_thresholds(p, y, METRICS["accuracy"])
    assert loss("accuracy", y, p, found) <= 0.01 < loss("accuracy", y, p, None)


def test_threshold_lies_in_the_middle_of_the_widest_gap():
    y = np.array([0, 0, 0, 1, 1])
    p = two_columns(np.array([0.05, 0.08, 0.1, 0.3, 0.45]))
    np.testing.assert_allclose(choose_thresholds(p, y, METRICS["g_mean"]), [0.8, 0.2])


def test_weights_are_repetitions():
    y, p = rare_class(200)
    repeats = np.random.default_rng(1).integers(1, 4, len(y))
    for metric in LABEL_METRICS:
        np.testing.assert_allclose(
            choose_thresholds(p, y, METRICS[metric], weight=repeats.astype(float)),
            choose_thresholds(p.repeat(repeats, axis=0), y.repeat(repeats), METRICS[metric]),
        )


def test_order_of_rows_does_not_matter():
    y, p = rare_class(300)
    order = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_array_equal(
        choose_thresholds(p[order], y[order], METRICS["f1_macro"]), choose_thresholds(p, y, METRICS["f1_macro"])
    )


def test_equal_probabilities_leave_nothing_to_choose():
    p = np.full((30, 2), 0.5)
    np.testing.assert_array_equal(choose_thresholds(p, np.arange(30) % 2, METRICS["g_mean"]), [0.5, 0.5])


# ---------------------------------------------------------------- tuning


@pytest.mark.parametrize("metric", ["balanced_accuracy", "g_mean", "f1_macro"])
def test_rare_class_gains_on_rows_never_seen(metric):
    tuned, plain, promised = [], [], []
    for seed in range(5):
        y, p = rare_class(seed=seed)
        found = tune_thresholds(p, y, METRICS[metric], rng=np.random.default_rng(0))
        promised.append(found.gain)
        new_y, new_p = rare_class(20_000, seed=100 + seed)
        tuned.append(loss(metric, new_y, new_p, found.thresholds))
        plain.append(loss(metric, new_y, new_p, None))
    gains = np.array(plain) - tuned
    assert (gains > 0.03).all()
    assert np.mean(promised) == pytest.approx(gains.mean(), abs=0.04)


def test_threshold_of_calibrated_probabilities_is_about_the_share_of_the_class():
    y, p = rare_class(20_000)
    found = tune_thresholds(p, y, METRICS["balanced_accuracy"], rng=np.random.default_rng(0))
    assert found.thresholds[1] == pytest.approx(y.mean(), rel=0.35)


def test_noise_seldom_passes_for_a_gain_and_never_for_a_large_one():
    rng = np.random.default_rng(0)
    kept = []
    for seed in range(20):
        p = two_columns(np.clip(rng.normal(0.5, 0.2, 100), 0, 1))
        found = tune_thresholds(
            p, rng.integers(0, 2, 100), METRICS["balanced_accuracy"], rng=np.random.default_rng(seed)
        )
        kept.append(found.thresholds is not None)
        assert found.gain < 0.2
    assert np.mean(kept) <= 0.6


def test_most_probable_class_is_kept_where_it_is_perfect():
    y = np.arange(100) % 2
    found = tune_thresholds(two_columns(0.1 + 0.8 * y), y, METRICS["g_mean"], rng=np.random.default_rng(0))
    assert found.thresholds is None
    assert found.gain == 0


@pytest.mark.parametrize("rows", [np.arange(15) % 2, np.zeros(50, dtype=int)])
def test_too_few_rows_or_classes_are_left_alone(rows):
    found = tune_thresholds(
        two_columns(np.linspace(0, 0.4, len(rows))), rows, METRICS["g_mean"], rng=np.random.default_rng(0)
    )
    assert (found.thresholds, found.gain) == (None, None)


def test_metric_that_fails_on_halves_is_left_alone():
    def fragile(y_true, y_pred):
        if len(y_true) < 100:
            raise ValueError("too few rows")
        return float(np.mean(y_true == y_pred))

    y, p = rare_class(150)
    found = tune_thresholds(p, y, metric_from_callable(fragile), rng=np.random.default_rng(0))
    assert (found.thresholds, found.gain) == (None, None)


def test_rare_classes_among_several_gain():
    rng = np.random.default_rng(0)
    prior = np.array([0.85, 0.1, 0.05])

    def sample(n):
        y = rng.choice(3, n, p=prior)
        likelihood = np.exp(-0.5 * (rng.normal(size=(n, 1)) + y[:, None] - np.arange(3)) ** 2)
        return y, likelihood * prior / (likelihood * prior).sum(axis=1, keepdims=True)

    y, p = sample(600)
    found = tune_thresholds(p, y, METRICS["g_mean"], rng=np.random.default_rng(0))
    new_y, new_p = sample(10_000)
    assert loss("g_mean", new_y, new_p, None) - loss("g_mean", new_y, new_p, found.thresholds) > 0.2


def test_rows_in_time_are_halved_once():
    y, p = rare_class()
    time, steps = RowStructure(kind=StructureKind.TIME, codes=np.arange(len(y))), []
    found = tune_thresholds(
        p, y, METRICS["g_mean"], structure=time, rng=np.random.default_rng(0), stop=lambda: bool(steps.append(1))
    )
    older, newer = (choose_thresholds(p[half], y[half], METRICS["g_mean"]) for half in (slice(500), slice(500, None)))
    assert len(steps) == 2
    np.testing.assert_allclose(found.thresholds, np.sqrt(older * newer) / np.sqrt(older * newer).sum())
    unseen = [METRICS["g_mean"].loss(y[500:], as_certain(decide(p[500:], t), 2), None) for t in (None, older)]
    assert found.gain == pytest.approx(unseen[0] - unseen[1])


def test_same_generator_same_thresholds():
    y, p = rare_class()
    a, b = (tune_thresholds(p, y, METRICS["g_mean"], rng=np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(a.thresholds, b.thresholds)
