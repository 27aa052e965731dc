from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.ensembles import (
    METHODS,
    StackedEnsemble,
    WeightedEnsemble,
    bagging,
    bagging_weights,
    build_ensemble,
    ensemble_from_json,
    fit_stacking,
    greedy_ensemble,
    mean_ensemble,
    select_ensemble,
    stacked_ensemble,
)
from cashmere.exceptions import ArrayError, InvalidParameterError, UnknownNameError


class ErrorRate:
    name = "accuracy"
    worst_loss = 1.0

    def loss(self, y, predictions, weight=None):
        return float(np.average(predictions.argmax(axis=1) != y, weights=weight))


class LogLoss:
    name = "log_loss"
    worst_loss = None
    clip = 1e-7

    def loss(self, y, predictions, weight=None):
        true = predictions[np.arange(len(y)), y.astype(int)]
        return float(np.average(-np.log(np.clip(true, 1e-7, 1)), weights=weight))


class Squared:
    name = "mse"
    worst_loss = None

    def loss(self, y, predictions, weight=None):
        return float(np.average((predictions - y) ** 2, weights=weight))


def classes(n_classes, *, m=7, n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    p = np.exp(rng.normal(size=(m, n, n_classes)) + 1.5 * np.eye(n_classes)[y])
    return (p / p.sum(axis=2, keepdims=True)).astype(np.float32), y


def values(*, m=7, n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = 1000 + rng.normal(size=n)
    return (y + rng.normal(size=(m, n)) * np.linspace(0.3, 1, m)[:, None]).astype(np.float64), y


CASES = {
    "binary": (*classes(2), LogLoss()),
    "error": (*classes(2), ErrorRate()),
    "multiclass": (*classes(4), LogLoss()),
    "regression": (*values(), Squared()),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_every_method(method, case):
    p, y, metric = CASES[case]
    numbers = [10, 3, 5, 8, 21, 13, 0]
    ensemble, loss = build_ensemble(method, numbers, p, y, metric)
    assert set(ensemble.members) <= set(numbers)
    combined = ensemble.combine([p[numbers.index(n)] for n in ensemble.members])
    assert combined.shape == p[0].shape
    assert combined.dtype == np.float64
    if combined.ndim == 2:
        np.testing.assert_allclose(combined.sum(axis=1), 1, atol=1e-6)
    single = build_ensemble("best", numbers, p, y, metric)[1]
    assert loss <= single + (0 if method == "selection" else 0.02)
    if method != "stacking":
        assert loss == pytest.approx(metric.loss(y, combined), abs=1e-9)
    again = ensemble_from_json(json.loads(json.dumps(ensemble.to_json())))
    assert again == ensemble
    assert (again.combine([p[numbers.index(n)] for n in again.members]) == combined).all()
    assert pickle.loads(pickle.dumps(ensemble)) == ensemble


@pytest.mark.parametrize("method", METHODS)
def test_candidates_with_holes_are_left_out(method):
    p, y, metric = CASES["binary"]
    p = p.copy()
    p[[0, 2]] = np.nan
    ensemble, loss = build_ensemble(method, range(7), p, y, metric)
    assert not {0, 2} & set(ensemble.members)
    assert np.isfinite(loss)
    with pytest.raises(ArrayError):
        build_ensemble(method, [0], p[:1], y, metric)


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="selection"):
        build_ensemble("selektion", [0], np.ones((1, 3)), np.ones(3), Squared())
    with pytest.raises(UnknownNameError, match="weighted"):
        ensemble_from_json({"kind": "weigthed"})


def test_lengths_must_agree():
    with pytest.raises(ArrayError):
        build_ensemble("bagging", [0, 1], np.ones((1, 3)), np.ones(3), Squared())
    with pytest.raises(ArrayError):
        build_ensemble("best", [0], np.ones((1, 3)), np.ones(3), Squared(), losses=[1.0, 2.0])


class TestWeightedEnsemble:
    @pytest.mark.parametrize(
        ("members", "weights"),
        [((), ()), ((1, 1), (0.5, 0.5)), ((1, 2), (0.5, 0.6)), ((1, 2), (1.5, -0.5)), ((1,), (0.5, 0.5))],
    )
    def test_refuses_nonsense(self, members, weights):
        with pytest.raises(InvalidParameterError):
            WeightedEnsemble(members, weights)

    def test_stack_must_fit_members(self):
        with pytest.raises(ValueError, match="zip"):
            WeightedEnsemble((1, 2), (0.5, 0.5)).combine(np.ones((3, 4)))

    def test_greedy_gives_multiplicities(self):
        p, y, metric = CASES["binary"]
        result = select_ensemble(p, y, metric, size=10)
        ensemble, loss = greedy_ensemble(range(100, 107), p, y, metric, size=10)
        assert dict(zip(ensemble.members, ensemble.weights, strict=True)) == {
            100 + i: w for i, w in enumerate(result.weights) if w > 0
        }
        assert loss == result.trajectory[-1]


class TestBagging:
    def test_bounded_losses_weigh_by_accuracy(self):
        assert bagging_weights([0.2, 0.4, 0.6], 1.0) == pytest.approx([0.8 / 1.8, 0.6 / 1.8, 0.4 / 1.8])

    def test_unbounded_losses_weigh_by_reciprocal(self):
        assert bagging_weights([1.0, 2.0, 4.0]) == pytest.approx([4 / 7, 2 / 7, 1 / 7])

    def test_members_without_loss_share_everything(self):
        assert bagging_weights([0.0, 3.0, 0.0]) == (0.5, 0.0, 0.5)

    @pytest.mark.parametrize(("losses", "worst"), [([1.0, 1.0], 1.0), ([-1.0, 2.0], None)])
    def test_equal_weights_where_the_rule_fails(self, losses, worst):
        assert bagging_weights(losses, worst) == (0.5, 0.5)

    def test_takes_the_best_finite(self):
        ensemble = bagging([0.5, np.nan, 0.1, np.inf, 0.1], [7, 6, 5, 4, 3], n_best=2, worst_loss=1.0)
        assert ensemble == WeightedEnsemble((5, 3), (0.5, 0.5))

    @given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=9), st.sampled_from([None, 1.0]))
    def test_weights_sum_to_one(self, losses, worst):
        if worst is not None:
            losses = [abs(x) % 1 for x in losses]
        weights = np.array(bagging_weights(losses, worst))
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert (weights >= 0).all()


class TestStacking:
    def test_cross_fitted_loss_is_above_the_fitted_one_on_noise(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, size=60)
        p = rng.dirichlet([1, 1], size=(20, 60))
        ensemble, loss = stacked_ensemble(range(20), p, y, LogLoss())
        assert loss > LogLoss().loss(y, ensemble.combine(p)) + 0.1
        assert loss > np.log(2)

    def test_repairs_overconfidence(self):
        p, y = classes(3, m=1, n=2000)
        sharp = p**4
        sharp /= sharp.sum(axis=2, keepdims=True)
        loss = stacked_ensemble([0], sharp, y, LogLoss())[1]
        assert loss < LogLoss().loss(y, sharp[0]) - 0.05

    def test_regression_coefficients_are_not_negative_and_prefer_the_better(self):
        p, y = values()
        coefficients = np.array(fit_stacking(range(7), p, y).coefficients[0])
        assert (coefficients >= 0).all()
        assert coefficients[0] == coefficients.max()

    def test_regression_shifts_with_the_target(self):
        p, y = values()
        a = fit_stacking(range(7), p, y).combine(p)
        np.testing.assert_allclose(fit_stacking(range(7), p + 5, y).combine(p + 5), a, atol=1e-8)
        np.testing.assert_allclose(fit_stacking(range(7), p, y + 5).combine(p), a + 5, atol=1e-8)

    def test_constant_members_leave_the_mean(self):
        y = np.array([1.0, 2.0, 3.0])
        np.testing.assert_allclose(fit_stacking([0, 1], np.ones((2, 3)), y).combine(np.ones((2, 3))), 2)

    @pytest.mark.parametrize("case", ["binary", "multiclass", "regression"])
    def test_whole_number_weights_equal_repetitions(self, case):
        p, y, _ = CASES[case]
        times = np.arange(len(y)) % 2 + 1
        weighted = fit_stacking(range(7), p, y, weight=times.astype(float)).combine(p)
        repeated = fit_stacking(range(7), np.repeat(p, times, axis=1), np.repeat(y, times)).combine(p)
        np.testing.assert_allclose(weighted, repeated, rtol=0, atol=2e-2 if p.ndim == 3 else 1e-8)

    def test_classes_that_do_not_occur_get_probability_zero(self):
        p, y = classes(4)
        few = y < 2
        combined = fit_stacking(range(7), p[:, few], y[few]).combine(p)
        assert (combined[:, 2:] == 0).all()
        np.testing.assert_allclose(combined.sum(axis=1), 1)
        one = y == 2
        np.testing.assert_allclose(fit_stacking(range(7), p[:, one], y[one]).combine(p)[:, 2], 1)

    def test_same_generator_same_loss(self):
        p, y, metric = CASES["binary"]
        losses = [stacked_ensemble(range(7), p, y, metric, rng=np.random.default_rng(4))[1] for _ in range(2)]
        assert losses[0] == losses[1]

    def test_refuses_wrong_shapes(self):
        with pytest.raises(ArrayError):
            StackedEnsemble(members=(1, 2), coefficients=((1.0,),), intercepts=(0.0,))
        with pytest.raises(ArrayError):
            StackedEnsemble(members=(1,), coefficients=((1.0,),), intercepts=(0.0,)).combine(np.ones((2, 3)))
        with pytest.raises(ArrayError):
            stacked_ensemble([0], np.ones((1, 1)), np.ones(1), Squared())


weighted = st.dictionaries(st.integers(0, 9), st.floats(0.01, 1), min_size=1, max_size=5).map(
    lambda weights: WeightedEnsemble(tuple(weights), tuple(w / sum(weights.values()) for w in weights.values()))
)


@given(st.lists(weighted, min_size=1, max_size=5))
def test_mean_ensemble_predicts_the_mean(ensembles):
    predictions = {number: np.array([number, number**2, 1.0]) for number in range(10)}

    def combined(ensemble):
        return ensemble.combine([predictions[number] for number in ensemble.members])

    mean = mean_ensemble(ensembles)
    np.testing.assert_allclose(combined(mean), np.mean([combined(each) for each in ensembles], axis=0), atol=1e-9)
    assert list(mean.members) == sorted(mean.members)


@given(st.lists(weighted, min_size=1, max_size=5), st.floats(0, 1))
def test_mean_ensemble_leaves_out_members_with_little_weight(ensembles, least):
    whole = dict(zip(mean_ensemble(ensembles).members, mean_ensemble(ensembles).weights, strict=True))
    kept = mean_ensemble(ensembles, least)
    heavy = {number for number, weight in whole.items() if weight >= least + 1e-9}
    assert heavy <= set(kept.members)
    assert not heavy or all(whole[number] >= least - 1e-9 for number in kept.members)
    assert sum(kept.weights) == pytest.approx(1)
