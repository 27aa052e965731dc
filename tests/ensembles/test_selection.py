from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from cashmere.ensembles import IncrementalSelection, choose_rows, select_ensemble
from cashmere.ensembles.stopping import StoppedError
from cashmere.evaluation.metrics import METRICS, pinball_metric
from cashmere.exceptions import ArrayError, InvalidParameterError, ShapeError

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "ensemble_selection.json").read_text())


@dataclass(frozen=True)
class Measure:
    """A metric written down independently of the package."""

    name: str
    function: Callable
    clip: float = 1e-7

    def loss(self, y, predictions, weight=None):
        return float(self.function(np.asarray(y), predictions, weight))

    @property
    def nameless(self) -> Measure:
        """The same without a kernel."""
        return replace(self, name=f"own {self.name}")


def log_loss(clip=1e-7):
    def function(y, p, w):
        return np.average(-np.log(np.clip(p[np.arange(len(y)), y.astype(int)], clip, 1)), weights=w)

    return Measure("log_loss", function, clip)


def mean_square(y, p, w):
    return np.average((p - y) ** 2, weights=w)


def brier(y, p, w):
    squared = ((p - np.eye(p.shape[1])[y.astype(int)]) ** 2).sum(axis=1)
    return np.average(squared, weights=w) / (2 if p.shape[1] == 2 else 1)


def balanced_error(y, p, w):
    right, w = p.argmax(axis=1) == y, np.ones(len(y)) if w is None else w
    return 1 - np.mean([np.average(right[y == c], weights=w[y == c]) for c in np.unique(y)])


def area_above_curve(y, p, w):
    if w is None:
        positive = y == 1
        ranks, k = rankdata(p[:, 1])[positive].sum(), positive.sum()
        return 1 - (ranks - k * (k + 1) / 2) / (k * (len(y) - k))
    a, b = p[y == 1, 1], p[y == 0, 1]
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    return 1 - w[y == 1] @ wins @ w[y == 0] / (w[y == 1].sum() * w[y == 0].sum())


CLASSIFICATION = {
    "log_loss": log_loss(),
    "accuracy": Measure("accuracy", lambda y, p, w: np.average(p.argmax(axis=1) != y, weights=w)),
    "balanced_accuracy": Measure("balanced_accuracy", balanced_error),
    "brier": Measure("brier", brier),
}
AUC = Measure("roc_auc", area_above_curve)
REGRESSION = {
    "mse": Measure("mse", mean_square),
    "rmse": Measure("rmse", lambda y, p, w: np.sqrt(mean_square(y, p, w))),
    "rmsle": Measure("rmsle", lambda y, p, w: np.sqrt(mean_square(*(np.log1p(np.maximum(v, 0)) for v in (y, p)), w))),
    "mae": Measure("mae", lambda y, p, w: np.average(np.abs(p - y), weights=w)),
    "mape": Measure("mape", lambda y, p, w: np.average(np.abs(p - y) / np.maximum(np.abs(y), 2.0**-52), weights=w)),
    "r2": Measure("r2", lambda y, p, w: mean_square(y, p, w) / mean_square(y, np.average(y, weights=w), w)),
}
CONVEX = ["log_loss", "brier", *(name for name in REGRESSION if name != "rmsle")]


def make_candidates(name, rng, *, m=8, n=40, dtype=np.float64, coarse=False):
    """Random candidates and targets; coarse ones have many equal values, hence ties everywhere."""
    if name in REGRESSION:
        y = np.round(rng.normal(size=n) + 3, 1)
        p = y + rng.normal(size=(m, n)) * rng.uniform(0.2, 2, size=(m, 1))
        return (np.round(p, 0) if coarse else p).astype(dtype), y
    n_classes = 2 if name == "roc_auc" else int(rng.integers(2, 5))
    y = rng.permutation(np.arange(n) % n_classes).astype(np.float64)
    if coarse:
        counts = rng.multinomial(5, np.full(n_classes, 1 / n_classes), size=(m, n))
        return (counts / 5).astype(dtype), y
    logits = rng.normal(size=(m, n, n_classes)) + np.eye(n_classes)[y.astype(int)]
    p = np.exp(logits)
    return (p / p.sum(axis=2, keepdims=True)).astype(dtype), y


ALL = {**CLASSIFICATION, "roc_auc": AUC, **REGRESSION}
seeds = st.integers(0, 2**32 - 1)


def assert_same(a, b, tolerance=1e-9):
    assert a.order.tolist() == b.order.tolist()
    np.testing.assert_allclose(a.trajectory, b.trajectory, rtol=0, atol=tolerance)
    np.testing.assert_allclose(a.weights, b.weights, rtol=0, atol=1e-15)


@pytest.mark.parametrize("case", ["small", "random"])
@pytest.mark.parametrize(
    ("key", "measure"), [("error", CLASSIFICATION["accuracy"]), ("logloss_clip1e-6", log_loss(1e-6))]
)
@pytest.mark.parametrize("kernel", [True, False])
def test_classification_vectors(case, key, measure, kernel):
    data, expected = VECTORS[case], VECTORS[case][key]
    measure = measure if kernel else measure.nameless
    result = select_ensemble(np.array(data["pred"]), np.array(data["y"]), measure, size=data["E"])
    assert result.order.tolist() == expected["order"]
    np.testing.assert_allclose(result.trajectory, expected["trajectory"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.weights, expected["weights"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", [True, False])
def test_regression_vector(kernel):
    data = VECTORS["regression_mse"]
    measure = REGRESSION["mse"] if kernel else REGRESSION["mse"].nameless
    result = select_ensemble(np.array(data["pred"]), np.array(data["y"]), measure, size=data["E"])
    assert result.order.tolist() == data["order"]
    np.testing.assert_allclose(result.trajectory, data["trajectory"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.weights, data["weights"], rtol=0, atol=1e-12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_kernel_equals_generic_loop(name, dtype, coarse, weighted, seed):
    rng = np.random.default_rng(seed)
    p, y = make_candidates(name, rng, dtype=dtype, coarse=coarse)
    weight = rng.uniform(0.1, 3, size=len(y)) if weighted else None
    for tie in ("first", "secondary"):
        fast = select_ensemble(p, y, ALL[name], size=7, weight=weight, tie=tie)
        slow = select_ensemble(p, y, ALL[name].nameless, size=7, weight=weight, tie=tie)
        assert_same(fast, slow)


@pytest.mark.parametrize("name", ["log_loss", "accuracy", "brier", "roc_auc", "mse", "mae"])
def test_kernel_asks_the_metric_only_for_contenders(name):
    calls = []
    measure = ALL[name]
    counting = replace(measure, function=lambda y, p, w: calls.append(1) or measure.function(y, p, w))
    p, y = make_candidates(name, np.random.default_rng(3), m=50, n=500, dtype=np.float32)
    select_ensemble(p, y, counting, size=10)
    assert len(calls) < 50


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=6, deadline=None)
@given(seed=seeds)
def test_result_is_consistent(name, seed):
    p, y = make_candidates(name, np.random.default_rng(seed))
    result = select_ensemble(p, y, ALL[name], size=7)
    assert result.weights.sum() == pytest.approx(1, abs=1e-12)
    assert (result.weights * 7 == np.bincount(result.order, minlength=len(p))).all()
    assert result.members.tolist() == np.flatnonzero(result.weights).tolist()
    average = np.tensordot(result.weights, p, axes=1)
    if name not in ("accuracy", "balanced_accuracy", "roc_auc"):
        assert ALL[name].loss(y, average) == pytest.approx(result.trajectory[-1], rel=1e-12, abs=1e-9)
    singles = [ALL[name].loss(y, candidate) for candidate in p]
    assert result.trajectory[0] == pytest.approx(min(singles), abs=1e-9)


@pytest.mark.parametrize("name", CONVEX)
@settings(max_examples=8, deadline=None)
@given(seed=seeds, size=st.integers(1, 30))
def test_convex_loss_never_exceeds_best_single(name, seed, size):
    # Greedy steps may rise: the average of k + 1 need not be better than that of k. But adding the best member b again
    # gives, for a convex loss and L(A) <= L(b), L((k A + b) / (k + 1)) <= (k L(A) + L(b)) / (k + 1) <= L(b).
    p, y = make_candidates(name, np.random.default_rng(seed))
    measure = ALL[name] if name != "log_loss" else log_loss(clip=0.0)
    result = select_ensemble(p, y, measure, size=size)
    assert (result.trajectory <= result.trajectory[0] * (1 + 1e-12) + 1e-9).all()  # relative errors may be huge


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_equal_candidates_can_be_permuted(seed):
    rng = np.random.default_rng(seed)
    p, y = make_candidates("log_loss", rng, m=5)
    p = np.concatenate([p, p])
    shuffled = rng.permutation(10)
    a, b = select_ensemble(p, y, log_loss()), select_ensemble(p[shuffled], y, log_loss())
    np.testing.assert_allclose(a.trajectory, b.trajectory, rtol=0, atol=1e-12)
    assert (a.order % 5).tolist() == (shuffled[b.order] % 5).tolist()
    assert (a.order < 5).all()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("tie", ["first", "secondary", "random"])
@settings(max_examples=3, deadline=None)
@given(seed=seeds, coarse=st.booleans())
def test_incremental_equals_from_scratch(name, tie, seed, coarse):
    rng = np.random.default_rng(seed)
    p, y = make_candidates(name, rng, m=14, dtype=np.float32, coarse=coarse)
    p[3] = np.nan
    selection = IncrementalSelection(y, ALL[name], size=6, tie=tie)
    for m in (1, 2, 3, 4, 5, 10, 11, 14):
        if m == 11:
            selection.clear()
        now = selection.select(range(m), p[:m], rng=np.random.default_rng(seed))
        assert_same(now, select_ensemble(p[:m], y, ALL[name], size=6, tie=tie, rng=np.random.default_rng(seed)))
    some = [13, 5, 0]
    now = selection.select(some, p[some], rng=np.random.default_rng(seed))
    assert_same(now, select_ensemble(p[some], y, ALL[name], size=6, tie=tie, rng=np.random.default_rng(seed)))


@pytest.mark.parametrize("name", ["log_loss", "accuracy", "mse"])
def test_cache_limit_does_not_change_the_result(name):
    p, y = make_candidates(name, np.random.default_rng(1), m=12)
    limited = IncrementalSelection(y, ALL[name], size=8, cache_mib=0.0)
    assert_same(limited.select(range(12), p), select_ensemble(p, y, ALL[name], size=8))


def test_memory_mapped_candidates_of_different_precision(tmp_path):
    p, y = make_candidates("log_loss", np.random.default_rng(2))
    files = []
    for i, candidate in enumerate(p):
        np.save(tmp_path / f"{i}.npy", candidate.astype(np.float64 if i % 2 else np.float32))
        files.append(np.load(tmp_path / f"{i}.npy", mmap_mode="r"))
    assert_same(select_ensemble(files, y, log_loss()), select_ensemble(files, y, log_loss().nameless))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_candidate_with_a_hole_is_never_chosen(name, bad):
    p, y = make_candidates(name, np.random.default_rng(0))
    best = int(select_ensemble(p, y, ALL[name], size=1).order[0])
    p[best].reshape(-1)[-1] = bad
    for measure in (ALL[name], ALL[name].nameless):
        result = select_ensemble(p, y, measure)
        assert result.weights[best] == 0
        assert np.isfinite(result.trajectory).all()


def test_no_finite_candidate_is_an_error():
    with pytest.raises(ArrayError, match="finite"):
        select_ensemble(np.full((2, 3), np.nan), np.zeros(3), REGRESSION["mse"])


def test_infinite_losses_still_give_an_ensemble():
    p = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])
    with np.errstate(divide="ignore"):
        result = select_ensemble(p, np.array([1, 0]), log_loss(clip=0.0), size=3)
    assert result.order[0] == 0
    assert result.weights.sum() == pytest.approx(1)


def test_row_weights_are_respected():
    y = np.array([0, 0, 1, 1])
    right_on_first, right_on_last = np.array([[0.9, 0.1]] * 4), np.array([[0.1, 0.9]] * 4)
    p = np.stack([right_on_first, right_on_last])
    for name in ("log_loss", "accuracy", "brier"):
        for favoured in (0, 1):
            weight = np.where(y == favoured, 10.0, 1.0)
            assert select_ensemble(p, y, ALL[name], size=1, weight=weight).order[0] == favoured


def test_repeated_rows_equal_whole_number_weights():
    p, y = make_candidates("log_loss", np.random.default_rng(5))
    times = np.arange(len(y)) % 3 + 1
    repeated = select_ensemble(np.repeat(p, times, axis=1), np.repeat(y, times), log_loss())
    assert_same(repeated, select_ensemble(p, y, log_loss(), weight=times.astype(float)))


class TestTies:
    # All three make one error on the second row; the third has the best Brier score.
    predictions = np.array([[[0.6, 0.4], [0.9, 0.1]], [[0.6, 0.4], [0.9, 0.1]], [[0.9, 0.1], [0.6, 0.4]]])
    y = np.array([0, 1])

    def order(self, **kwargs):
        return select_ensemble(self.predictions, self.y, CLASSIFICATION["accuracy"], **kwargs).order.tolist()

    def test_first_takes_lowest_position(self):
        assert self.order(size=3) == [0, 0, 0]

    def test_secondary_takes_lowest_brier_score_of_ensemble(self):
        assert self.order(size=2, tie="secondary") == [2, 2]

    @pytest.mark.parametrize("name", ["accuracy", "mae"])
    @settings(max_examples=10, deadline=None)
    @given(seed=seeds, weighted=st.booleans())
    def test_secondary_is_the_squared_error_of_the_average(self, name, seed, weighted):
        rng = np.random.default_rng(seed)
        metric = METRICS[name]
        p, y = make_candidates("mse" if name == "mae" else name, rng, m=12, n=40, coarse=True)
        weight = rng.uniform(0.1, 3, size=len(y)) if weighted else None
        y = y if p.ndim == 2 else y.astype(int)
        target = y if p.ndim == 2 else np.eye(p.shape[2])[y]
        total = np.zeros(p.shape[1:])
        for step, chosen in enumerate(select_ensemble(p, y, metric, size=6, weight=weight, tie="secondary").order, 1):
            losses = np.array([metric.loss(y, (total + candidate) / step, weight) for candidate in p])
            squared = np.array([((total + candidate) / step - target) ** 2 for candidate in p]).reshape(
                *p.shape[:2], -1
            )
            scores = np.average(squared.sum(axis=2), axis=1, weights=weight)
            tied = losses <= losses.min() + 1e-12
            assert tied[chosen]
            assert scores[chosen] == pytest.approx(scores[tied].min(), abs=1e-11)
            total += p[chosen]

    def test_random_is_seeded_and_reaches_all(self):
        draws = self.order(size=30, tie="random", rng=np.random.default_rng(1))
        assert draws == self.order(size=30, tie="random", rng=np.random.default_rng(1))
        assert set(draws) == {0, 1, 2}
        assert draws != self.order(size=30, tie="random", rng=np.random.default_rng(2))

    def test_tolerance_is_1e_12(self):
        y = np.zeros(4)
        p = np.array([np.full(4, 1.0), np.full(4, 1.0 - 2e-13)])
        assert select_ensemble(p, y, REGRESSION["mae"], size=1).order[0] == 0
        p = np.array([np.full(4, 1.0), np.full(4, 1.0 - 4e-12)])
        assert select_ensemble(p, y, REGRESSION["mae"], size=1).order[0] == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=3, deadline=None)
@given(seed=seeds, coarse=st.booleans())
def test_metrics_of_the_package(name, dtype, weighted, seed, coarse):
    rng = np.random.default_rng(seed)
    metric = METRICS[name]
    p, y = make_candidates("mse" if metric.needs == "values" else name, rng, dtype=dtype, coarse=coarse)
    y = np.abs(y) + 0.1 if metric.power or metric.learns_logarithms else y
    weight = rng.uniform(0.1, 3, size=len(y)) if weighted else None
    for tie in ("first", "secondary"):
        fast = select_ensemble(p, y, metric, size=7, weight=weight, tie=tie)
        slow = select_ensemble(p, y, replace(metric, name="own"), size=7, weight=weight, tie=tie)
        assert_same(fast, slow)


@pytest.mark.parametrize(
    "name",
    sorted(set(METRICS) - {"f1", "f1_macro", "f1_weighted", "g_mean", "mcc", "quadratic_kappa", "average_precision"}),
)
def test_kernels_agree_with_the_metrics_of_the_package(name):
    # A disagreement would be repaired silently and slowly, with one call per candidate and step.
    calls = []
    metric = METRICS[name]
    counting = replace(metric, function=lambda y, p, w: calls.append(1) or metric.function(y, p, w))
    family = "mse" if metric.needs == "values" else name
    p, y = make_candidates(family, np.random.default_rng(0), m=30, n=500)
    y = np.abs(y) + 0.1 if metric.power or metric.learns_logarithms else y
    select_ensemble(p, y, counting, size=5)
    assert len(calls) < 30


@pytest.mark.parametrize("level", [0.1, 0.9])
def test_levels_of_pinball_losses(level):
    p, y = make_candidates("mse", np.random.default_rng(3), m=30, n=500)
    metric, calls = pinball_metric(level), []
    counting = replace(metric, function=lambda *values: calls.append(1) or metric.function(*values))
    fast = select_ensemble(p, y, counting, size=5)
    assert_same(fast, select_ensemble(p, y, replace(metric, name="own"), size=5))
    assert len(calls) < len(p)


@pytest.mark.parametrize("name", ["log_loss", "brier", "roc_auc", "accuracy"])
def test_rows_that_the_metric_rescales(name):
    p, y = make_candidates(name, np.random.default_rng(11))
    p[::2] *= np.random.default_rng(12).uniform(0.5, 2, size=(4, 40, 1))
    assert_same(select_ensemble(p, y, METRICS[name]), select_ensemble(p, y, replace(METRICS[name], name="own")))


def test_metric_with_a_familiar_name_but_another_definition():
    half = Measure("log_loss", lambda y, p, w: np.average(p[np.arange(len(y)), y.astype(int)] ** 2, weights=w))
    p, y = make_candidates("log_loss", np.random.default_rng(7))
    assert_same(select_ensemble(p, y, half), select_ensemble(p, y, half.nameless))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"size": 0}, InvalidParameterError),
        ({"tie": "last"}, InvalidParameterError),
        ({"weight": np.ones(3)}, ShapeError),
        ({"predictions": np.ones((2, 7))}, ShapeError),
    ],
)
def test_bad_parameters_are_named(change, error):
    arguments = {"predictions": np.ones((2, 5)), "y": np.zeros(5), "metric": REGRESSION["mse"], **change}
    with pytest.raises(error, match=next(iter(change))):
        select_ensemble(**arguments)


def test_chosen_rows_keep_class_shares():
    y = np.repeat([0, 1, 2], [700, 200, 100])
    rows = choose_rows(y, 100, np.random.default_rng(0))
    assert len(np.unique(rows)) == 100
    assert (np.diff(rows) > 0).all()
    assert np.bincount(y[rows]).tolist() == [70, 20, 10]
    assert choose_rows(y, 2000, np.random.default_rng(0)).tolist() == list(range(1000))


@pytest.mark.parametrize("measure", [CLASSIFICATION["log_loss"], CLASSIFICATION["log_loss"].nameless])
def test_selection_can_be_repeated_after_a_stop_at_any_instant(measure):
    candidates, y = make_candidates("log_loss", np.random.default_rng(0))
    fresh = select_ensemble(candidates, y, measure, size=6)
    n_stopped = 0
    for instant in range(60):
        selection = IncrementalSelection(y, measure, size=6)
        clock = iter(range(1000))
        try:
            selection.select(range(len(candidates)), candidates, stop=lambda c=clock, i=instant: next(c) >= i)
        except StoppedError:
            n_stopped += 1
        assert_same(selection.select(range(len(candidates)), candidates), fresh)
    assert n_stopped > 8
