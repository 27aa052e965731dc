from __future__ import annotations

import numpy as np

from cashmere.strategies import RandomSearch
from cashmere.strategies.shared.temporary_pool import collect_predictions
from contracts.strategy_contract import cash_space, history_of, run_trials


def test_from_many_observations_the_best_and_some_others_are_used():
    history = history_of(run_trials(RandomSearch(cash_space()), 40, fails=lambda number: number % 10 == 0))
    numbers = [o.trial.number for o in collect_predictions(history, most=12).observations]
    by_loss = sorted(history.successes, key=lambda o: o.loss)
    best, others = ({o.trial.number for o in part} for part in (by_loss[:6], by_loss[6:]))
    assert numbers == sorted(numbers) and len(numbers) == 12
    assert best < set(numbers)
    chosen = sorted(set(numbers) - best)
    assert chosen[0] == min(others) and chosen[-1] == max(others)
    assert np.diff([sorted(others).index(number) for number in chosen]).max() <= 7


def test_few_observations_are_all_used():
    history = history_of(run_trials(RandomSearch(cash_space()), 10))
    assert collect_predictions(history, most=10).observations == history.successes
