from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from cashmere.acquisition.diversity import cross_measure
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import InvalidParameterError, MissingPredictionsError, UnknownNameError
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies import BayesianOptimisation, DivBO, EnsembleGain, FixedDivBO, OptDivBO, divbo, optdivbo
from cashmere.strategies.shared.candidates import Candidates
from cashmere.strategies.shared.temporary_pool import select_pool
from cashmere.study import Study
from cashmere.surrogates.prediction import PredictionSurrogate
from contracts.strategy_contract import (
    METRIC,
    StrategyContract,
    cash_space,
    history_of,
    made_up_predictions,
    run_trials,
)


class TestDivBO(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(DivBO, n_global=150)


@pytest.mark.long
class TestFixedDivBO(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(FixedDivBO, n_global=100, fixed_weight=0.025, draws=4)


class TestOptDivBO(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(OptDivBO, n_global=150)


@pytest.fixture
def exact_surrogate(monkeypatch):
    """Let strategies use a fully grown forest, which knows the predictions of what has been observed exactly."""
    for module in (divbo, optdivbo):
        monkeypatch.setattr(
            module,
            "make_diversity_surrogate",
            lambda name, measure: PredictionSurrogate(measure=measure, min_samples_leaf=1),
        )


def seen_candidates(observations, space):
    rows = SpaceEncoder(space).encode(o.trial.configuration for o in observations)
    return Candidates(rows=rows, log_improvement=np.linspace(0, -1, len(rows)))


@pytest.fixture
def observed():
    space = cash_space()
    return space, run_trials(BayesianOptimisation(space, n_global=50), 30)


def test_divbo_adds_weighted_ranks_of_improvement_and_distance_to_the_nearest_member(observed, exact_surrogate):
    space, observations = observed
    strategy = DivBO(space)
    candidates, history = seen_candidates(observations, space), history_of(observations)
    pool = select_pool(history, strategy.encoder)
    stack = np.stack(pool.predictions)
    nearest = cross_measure("div", stack, stack[pool.members], pool.y).min(axis=1)
    weight = 0.05 * (1 / (1 + np.exp(-0.2 * 30)) - 0.5)
    expected = rankdata(-candidates.log_improvement) + weight * rankdata(-nearest)
    np.testing.assert_allclose(strategy.score(candidates, history, np.random.default_rng(0)), expected)


def test_optdivbo_adds_ranks_of_improvement_and_of_the_sum_over_the_multiset(observed, exact_surrogate):
    space, observations = observed
    strategy = OptDivBO(space)
    candidates, history = seen_candidates(observations, space), history_of(observations)
    pool = select_pool(history, strategy.encoder)
    stack = np.stack(pool.predictions)
    total = cross_measure("bs", stack, stack, pool.y) @ pool.counts
    expected = rankdata(-candidates.log_improvement) + np.tanh(0.1 * 30) * rankdata(np.round(total, 9))
    np.testing.assert_allclose(strategy.score(candidates, history, np.random.default_rng(0)), expected)


def test_distances_are_maximised_by_optdivbo_too(observed, exact_surrogate):
    space, observations = observed
    strategy = OptDivBO(space, measure="div", kappa=0.0)
    candidates, history = seen_candidates(observations, space), history_of(observations)
    pool = select_pool(history, strategy.encoder)
    stack = np.stack(pool.predictions)
    total = cross_measure("div", stack, stack, pool.y) @ pool.counts
    ranks = (
        strategy.score(candidates, history, np.random.default_rng(0)) - rankdata(-candidates.log_improvement)
    ) / np.tanh(0.1 * 30)
    np.testing.assert_allclose(ranks, rankdata(-np.round(total, 9)))


def test_the_fixed_weight_does_not_depend_on_the_number_of_trials():
    strategy = FixedDivBO(cash_space())
    assert strategy.weight(0) == strategy.weight(100) == 0.1
    assert DivBO(cash_space()).weight(0) == 0 < DivBO(cash_space()).weight(5) < 0.025


@pytest.mark.parametrize("strategy_class", [DivBO, OptDivBO])
def test_a_weight_of_zero_is_bayesian_optimisation(observed, strategy_class):
    space, observations = observed
    history, option = history_of(observations), "beta" if strategy_class is DivBO else "max_weight"
    plain = BayesianOptimisation(space).draw_candidates(
        history, SpaceEncoder(space).encode(t.configuration for t in history.trials), np.random.default_rng(0)
    )
    scores = strategy_class(space, **{option: 0.0}).score(plain, history, np.random.default_rng(0))
    np.testing.assert_allclose(scores, rankdata(-plain.log_improvement))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("strategy_class", [DivBO, OptDivBO])
@pytest.mark.parametrize("surrogate", ["pairwise", "pairwise_openbox", "pairwise_fast", "pairwise_incremental"])
def test_the_pairwise_surrogate_decides_too(observed, strategy_class, surrogate):
    space, observations = observed
    strategy = strategy_class(space, n_global=50, surrogate=surrogate)
    suggestion = strategy.suggest(history_of(observations[:10]), np.random.default_rng(0))
    assert str(suggestion.origin) == "model"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("strategy_class", [DivBO, OptDivBO])
@pytest.mark.parametrize("missing", ["metric", "targets", "predictions"])
def test_a_history_of_losses_only_is_refused_with_advice(observed, strategy_class, missing):
    space, observations = observed
    parts = {"metric": METRIC, "targets": np.arange(40.0) % 2}
    if missing == "predictions":
        observations = [
            Observation(trial=o.trial, outcome=Outcome(status=TrialStatus.SUCCESS, loss=o.loss))
            for o in observations[:10]
        ]
    else:
        parts[missing] = None
    history = History(observations=tuple(observations), **parts)
    with pytest.raises(MissingPredictionsError, match=missing):
        strategy_class(space).suggest(history, np.random.default_rng(0))


def test_regression_and_many_rows(observed):
    space, observations = observed
    targets = np.random.default_rng(0).normal(size=12_000)
    metric = get_metric("mse", TaskType.REGRESSION)
    made = tuple(
        Observation(
            trial=o.trial,
            outcome=Outcome(
                status=TrialStatus.SUCCESS,
                loss=float(i + 1),
                predictions=(targets + np.random.default_rng(i).normal(size=12_000)).astype(np.float32),
            ),
        )
        for i, o in enumerate(observations[:8])
    )
    history = History(observations=made, metric=metric, targets=targets)
    for strategy_class in (DivBO, OptDivBO):
        suggestion = strategy_class(space, n_global=100).suggest(history, np.random.default_rng(0))
        assert str(suggestion.origin) == "model"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("strategy_class", [DivBO, OptDivBO, EnsembleGain])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_predictions_that_are_not_finite_are_left_out(observed, strategy_class, value):
    space, observations = observed
    broken = observations[2].predictions.copy()
    broken[3] = value
    made = [
        replace(o, outcome=replace(o.outcome, predictions=broken)) if i == 2 else o
        for i, o in enumerate(observations[:12])
    ]
    strategy = strategy_class(space, n_global=50, random_fraction=0)
    assert str(strategy.suggest(history_of(made), np.random.default_rng(0)).origin) == "model"
    pool = select_pool(history_of(made), strategy.encoder)
    assert len(pool.predictions) == 11
    everything = [replace(o, outcome=replace(o.outcome, predictions=broken)) for o in observations[:12]]
    assert select_pool(history_of(everything), strategy.encoder) is None


def test_one_success_among_failures_is_enough():
    space = cash_space()
    (first, *_) = run_trials(BayesianOptimisation(space), 1)
    failed = [
        Observation(trial=Trial(number=i, configuration=c, seed=0), outcome=Outcome(status=TrialStatus.ERROR))
        for i, c in enumerate((o.trial.configuration for o in run_trials(BayesianOptimisation(space), 12)[1:]), 1)
    ]
    history = history_of([first, *failed])
    assert made_up_predictions(first.trial.configuration).shape == (40, 2)
    for strategy_class in (DivBO, OptDivBO):
        assert str(strategy_class(space, n_global=50).suggest(history, np.random.default_rng(0)).origin) == "model"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"beta": -1}, InvalidParameterError),
        ({"draws": 0}, InvalidParameterError),
        ({"tau": 0}, InvalidParameterError),
        ({"ensemble_size": 0}, InvalidParameterError),
        ({"surrogate": "pairwize"}, UnknownNameError),
        ({"n_initial": 0}, InvalidParameterError),
    ],
)
def test_impossible_options_are_refused(options, error):
    with pytest.raises(error, match=next(iter(options))):
        DivBO(cash_space(), **options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"kappa": -1}, InvalidParameterError),
        ({"max_weight": -1}, InvalidParameterError),
        ({"measure": "d"}, UnknownNameError),
    ],
)
def test_impossible_options_of_optdivbo_are_refused(options, error):
    with pytest.raises(error, match=next(iter(options))):
        OptDivBO(cash_space(), **options)


@pytest.mark.parametrize(
    ("measure", "metric", "task"),
    [("mse", "log_loss", "binary"), ("mae", "accuracy", "multiclass"), ("ce", "rmse", "regression")],
)
def test_measure_of_other_predictions_is_refused_before_the_first_trial(measure, metric, task):
    with pytest.raises(InvalidParameterError, match=f"measure must be one of .*; got '{measure}'"):
        Study(cash_space(), f"optdivbo:measure={measure}", metric=get_metric(metric, TaskType(task)))


def test_measure_that_suits_the_metric_is_accepted():
    for measure, metric, task in (
        ("bs", "log_loss", "binary"),
        ("div", "rmse", "regression"),
        ("mae", "mse", "regression"),
    ):
        Study(cash_space(), f"optdivbo:measure={measure}", metric=get_metric(metric, TaskType(task)))
