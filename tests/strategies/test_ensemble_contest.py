from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from cashmere.exceptions import InvalidParameterError
from cashmere.strategies import EnsembleContest, OptDivBO
from contracts.strategy_contract import (
    METRIC,
    TARGETS,
    StrategyContract,
    cash_space,
    flat_space,
    history_of,
    keys,
    run_trials,
)

ALGORITHMS = ("svm", "forest", "knn", "dummy")


class TestEnsembleContest(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(EnsembleContest, n_global=100)


@pytest.mark.long
class TestContestByBestLoss(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(
            EnsembleContest,
            n_global=100,
            judged_by="best_loss",
            trials_per_round=1,
            random_fraction=0.0,
            max_weight=0.0,
        )


def strategy_of(**options):
    return EnsembleContest(cash_space(), n_global=100, **options)


def algorithms(observations):
    return [o.trial.configuration["algorithm"] for o in observations]


def judged(predictions, losses=None):
    """Return the history of one round in which every algorithm has two trials with the same predictions and loss.

    `predictions` are probabilities of the right class by algorithm.
    """
    observations = []
    for observation in run_trials(strategy_of(random_fraction=0.0), 8):
        name = observation.trial.configuration["algorithm"]
        second = np.where(TARGETS == 1, predictions[name], 1 - np.asarray(predictions[name]))
        probabilities = np.stack([1 - second, second], axis=1)
        loss = METRIC.loss(TARGETS, probabilities) if losses is None else losses[name]
        outcome = replace(observation.outcome, predictions=probabilities.astype(np.float32), loss=loss)
        observations.append(replace(observation, outcome=outcome))
    return history_of(observations)


HALF = np.arange(len(TARGETS)) % 4 < 2
COMPLEMENTS = {
    "svm": np.where(HALF, 0.9, 0.4),
    "forest": np.where(HALF, 0.4, 0.9),
    "knn": np.where(HALF, 0.88, 0.38),  # alone as good as the forest, nearly, but the svm does the same
    "dummy": np.full(len(TARGETS), 0.5),
}


def test_first_round_visits_every_algorithm_twice():
    observations = run_trials(strategy_of(random_fraction=0.0), 8)
    assert Counter(algorithms(observations)) == dict.fromkeys(ALGORITHMS, 2)


def test_warm_starts_count_in_the_first_round():
    begun = run_trials(strategy_of(), 40)
    svm = [o for o in begun if o.trial.configuration["algorithm"] == "svm"][:3]
    start = tuple(replace(o, trial=replace(o.trial, number=i)) for i, o in enumerate(svm))
    counts = Counter(algorithms(run_trials(strategy_of(random_fraction=0.0, n_initial=1), 8, start=start)))
    assert counts["svm"] == 3 and sorted(counts.values()) == [1, 2, 2, 3]


def test_algorithms_are_kept_by_what_the_ensemble_loses_without_them():
    strategy, history = strategy_of(), judged(COMPLEMENTS)
    kept = [strategy.blocks.names[task] for task in strategy.kept(history)]
    assert set(kept[:2]) == {"svm", "forest"} and kept[2:] == ["knn"]


def test_by_best_loss_the_ensemble_does_not_matter():
    losses = {"svm": 0.4, "forest": 0.3, "knn": 0.1, "dummy": 0.2}
    strategy, history = strategy_of(judged_by="best_loss"), judged(COMPLEMENTS, losses)
    assert [strategy.blocks.names[task] for task in strategy.kept(history)] == ["knn", "dummy", "forest"]


def test_after_a_cut_those_kept_take_turns():
    strategy, history = strategy_of(random_fraction=0.0), judged(COMPLEMENTS)
    observations = run_trials(strategy, 14, start=history.observations)
    assert Counter(algorithms(observations[8:])) == {"svm": 2, "forest": 2, "knn": 2}
    assert {str(o.trial.origin).partition(" · ")[0] for o in observations[8:]} == {"round 1"}


@pytest.mark.long
def test_within_a_round_later_trials_change_nothing():
    strategy, history = strategy_of(random_fraction=0.0), judged(COMPLEMENTS)
    first = strategy.kept(history)
    for n in range(9, 16):
        observations = run_trials(strategy, n, start=history.observations)
        assert strategy.kept(history_of(observations)) == first


def test_a_share_of_the_trials_is_left_for_those_dropped():
    strategy, history = strategy_of(random_fraction=1.0), judged(COMPLEMENTS)
    observations = run_trials(strategy, 12, start=history.observations)
    assert algorithms(observations[8:]).count("dummy") >= 1


def test_a_dropped_algorithm_returns_when_it_has_become_valuable():
    strategy, history = strategy_of(random_fraction=0.0), judged(COMPLEMENTS)
    dummy = strategy.blocks.names.index("dummy")
    assert dummy not in strategy.kept(history)
    best = {**COMPLEMENTS, "dummy": np.full(len(TARGETS), 0.99)}
    assert strategy.kept(judged(best))[0] == dummy


def test_the_number_kept_falls_with_the_rounds():
    observations = run_trials(strategy_of(trials_per_round=1, share_kept=0.9), 12)
    strategy = strategy_of(trials_per_round=1, share_kept=0.9)
    numbers = [len(strategy.kept(history_of(observations[:n]))) for n in (0, 3, 4, 8, 12)]
    assert numbers == [4, 4, 4, 4, 3]
    assert len(strategy_of(share_kept=1.0, trials_per_round=1).kept(history_of(observations))) == 4


def test_without_algorithms_it_is_optdivbo():
    one = keys(run_trials(EnsembleContest(flat_space(), n_global=50), 12))
    assert one == keys(run_trials(OptDivBO(flat_space(), n_global=50), 12))


@pytest.mark.parametrize(
    ("option", "value"),
    [("trials_per_round", 0), ("share_kept", 0.0), ("share_kept", 1.1), ("judged_by", "chance")],
)
def test_impossible_rules_are_refused(option, value):
    with pytest.raises(InvalidParameterError, match=option):
        strategy_of(**{option: value})
