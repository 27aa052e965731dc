from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from constant_models import constant_models
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.exceptions import InvalidParameterError, MissingPredictionsError
from cashmere.records.trial import History, Outcome, TrialStatus
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies import BayesianOptimisation, EnsembleOptimisation
from cashmere.study import Study
from contracts.strategy_contract import (
    METRIC,
    TARGETS,
    StrategyContract,
    cash_space,
    flat_space,
    history_of,
    made_up_predictions,
    run_trials,
)


class TestEnsembleOptimisation(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(EnsembleOptimisation, n_global=100, n_initial=4, n_slots=3)


@pytest.mark.long
class TestEnsembleOptimisationAsInThePaper(StrategyContract):
    """The first of the twelve slots are refilled within the trials of these tests."""

    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(EnsembleOptimisation, n_global=100, random_fraction=0.0)


SPACE = flat_space()
CONFIGURATIONS = SPACE.sample_configuration(40)


def history_from(predictions) -> History:
    return constant_models(predictions, CONFIGURATIONS[: len(predictions)])


@pytest.mark.parametrize(
    ("predictions", "members"),
    [
        ([4], (0,)),
        ([4, -2], (0, 1)),  # the first ones fill their own slots
        ([4, -2, 1], (2, 1)),  # beside -2 the losses are 1, 4 and 1/4
        ([4, -2, 1, -3], (2, 1)),  # beside 1 they are 25/4, 1/4, 1 and 1
        ([4, -2, 1, -3, 1], (4, 1)),  # beside -2 both 1s are equal: the newest
        ([4, -2, 1, -3, 1, -1], (4, 5)),
        ([4, None, 1], (2,)),  # nothing beside the slot to be filled: the best one alone
        ([4, None, 1, -3], (2, 3)),  # beside 1 they are 25/4, 1 and 1
        ([4, None, 1, None], (2, 2)),  # a failure has no predictions, but its slot has its turn
        ([None, None, None, None], ()),
        ([None, None, None, 2], (3,)),
    ],
)
def test_the_best_beside_the_others_fills_the_slot(predictions, members):
    assert EnsembleOptimisation(SPACE, n_slots=2).members(history_from(predictions)) == members


def assert_candidates_are_judged_by(losses, history, **options):
    """Compare with Bayesian optimisation on a history whose losses are the ensemble's, found by hand."""
    decided = SpaceEncoder(SPACE).encode(trial.configuration for trial in history.trials)
    strategy = EnsembleOptimisation(SPACE, n_slots=2, **options)
    found = strategy.draw_candidates(history, decided, np.random.default_rng(0))
    by_hand = History(
        observations=tuple(
            replace(o, outcome=replace(o.outcome, loss=loss)) for o, loss in zip(history, losses, strict=True)
        ),
        pending=history.pending,
    )
    expected = BayesianOptimisation(SPACE, **options).draw_candidates(by_hand, decided, np.random.default_rng(0))
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_allclose(found.log_improvement, expected.log_improvement)


def test_candidates_are_judged_by_the_loss_of_the_ensemble():
    """Trial 4 empties slot 0; beside -2 the losses of the four are 1, 4, 1/4 and 25/4."""
    assert_candidates_are_judged_by([1, 4, 0.25, 6.25], history_from([4, -2, 1, -3]))


def test_failures_count_as_the_worst_ensemble_and_pending_trials_have_their_own_slots():
    """Trial 6 is pending, so trial 7 empties slot 1; beside 1 the losses are 25/4, 1/4, 1, 1 and 1."""
    history = history_from([4, -2, 1, -3, None, 1, 9])
    pending = (history[6].trial,)
    history = replace(history, observations=history[:6], pending=pending, worst_loss=1000.0, baseline_loss=500.0)
    assert EnsembleOptimisation(SPACE, n_slots=2).members(history) == (2, 1)
    assert_candidates_are_judged_by([6.25, 0.25, 1, 1, 6.25, 1], history, cap_losses=False)


def naive_members(values, n_slots):
    slots = [None] * n_slots
    for t in range(len(values)):
        if t < n_slots:
            slots[t] = t if values[t] is not None else None
            continue
        others = [values[m] for k, m in enumerate(slots) if k != t % n_slots and m is not None]
        best = None
        for i in range(t + 1):
            if values[i] is not None:
                loss = (sum([*others, values[i]]) / (len(others) + 1)) ** 2
                if best is None or loss <= best[0]:
                    best = (loss, i)
        slots[t % n_slots] = None if best is None else best[1]
    return tuple(m for m in slots if m is not None)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.none() | st.integers(-8, 8), max_size=20), st.integers(1, 4))
def test_slots_equal_those_of_a_plain_replay_with_and_without_cache(values, n_slots):
    history = history_from(values)
    growing = EnsembleOptimisation(SPACE, n_slots=n_slots)
    for n in (*range(0, len(values) + 1, 3), len(values)):
        part = replace(history, observations=history[:n])
        assert growing.members(part) == naive_members(values[:n], n_slots)
    assert EnsembleOptimisation(SPACE, n_slots=n_slots).members(history) == naive_members(values, n_slots)
    half = replace(history, observations=history[: len(values) // 2])  # shorter than what is remembered
    assert growing.members(half) == naive_members(values[: len(values) // 2], n_slots)


def test_cached_slots_are_not_used_for_other_targets():
    history = history_from([4, -2, 1, -3])
    strategy = EnsembleOptimisation(SPACE, n_slots=2)
    assert strategy.members(history) == (2, 1)
    assert strategy.members(replace(history, targets=np.full(2, 4.0))) == (0, 0)


def test_members_are_a_good_ensemble_of_the_right_size():
    space = cash_space()
    strategy = EnsembleOptimisation(space, n_global=100)
    observations = run_trials(strategy, 40)
    members = strategy.members(history_of(observations))
    assert len(members) == 12
    ensemble = np.mean([observations[number].predictions for number in members], axis=0)
    alone = [METRIC.loss(TARGETS, o.predictions.astype(np.float64)) for o in observations]
    assert METRIC.loss(TARGETS, ensemble) < min(alone)


@pytest.mark.parametrize("missing", ["metric", "targets", "predictions"])
def test_a_history_of_losses_only_is_refused_with_advice(missing):
    history = history_from([4, -2, 1, -3])
    if missing == "predictions":
        history = replace(
            history, observations=tuple(replace(o, outcome=replace(o.outcome, predictions=None)) for o in history)
        )
    else:
        history = replace(history, **{missing: None})
    strategy = EnsembleOptimisation(SPACE, n_initial=2, random_fraction=0)
    with pytest.raises(MissingPredictionsError, match=missing):
        strategy.suggest(history, np.random.default_rng(0))
    with pytest.raises(MissingPredictionsError, match=missing):
        strategy.members(history)


def test_predictions_that_are_not_finite_are_never_members():
    history = history_from([4, -2, np.inf, 1, np.nan, -1, 3])
    strategy = EnsembleOptimisation(SPACE, n_slots=3, n_initial=2, n_global=50, random_fraction=0)
    assert str(strategy.suggest(history, np.random.default_rng(0)).origin) == "model"
    assert not {2, 4} & set(strategy.members(history))
    nothing = history_from([np.inf, np.nan, np.inf])
    assert strategy.members(nothing) == ()
    assert str(strategy.suggest(nothing, np.random.default_rng(0)).origin) == "model"


def test_it_runs_in_a_study():
    def objective(trial):
        predictions = made_up_predictions(trial.configuration)
        loss = METRIC.loss(TARGETS, predictions)
        return Outcome(status=TrialStatus.SUCCESS, loss=loss, predictions=predictions)

    space = cash_space()
    study = Study(space, "ensemble_optimisation:n_slots=3,n_initial=3", metric=METRIC, targets=TARGETS, lookahead=3)
    history = study.optimize(objective, "15trials")
    assert len(study.strategy.members(history)) == 3


def test_impossible_options_are_refused():
    with pytest.raises(InvalidParameterError, match="n_slots"):
        EnsembleOptimisation(SPACE, n_slots=0)
    with pytest.raises(InvalidParameterError, match="n_initial"):
        EnsembleOptimisation(SPACE, n_initial=0)
