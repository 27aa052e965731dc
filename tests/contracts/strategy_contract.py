"""What every strategy must do. Inherit `StrategyContract` and override the fixture `strategy_factory`.

Every strategy that has a name needs a class of tests called after its own (a preset, after its name: ``TestDacHb`` for
``"dac_hb"``); further classes, for other options, are called as you like.

    class TestMyStrategy(StrategyContract):
        @pytest.fixture
        def strategy_factory(self):
            return MyStrategy          # called with a ConfigurationSpace

Run as a script, this file makes trajectories in another process (see `trajectory_elsewhere`).
"""

from __future__ import annotations

import atexit
import functools
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    GreaterThanCondition,
    Integer,
    OrdinalHyperparameter,
)

from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.execution.messages import pack, read_message, unpack, write_message
from cashmere.protocols import BatchStrategy, Strategy
from cashmere.records.time_left import TimeLeft
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus, configuration_key
from cashmere.strategies import STRATEGIES, Preset
from cashmere.strategies.shared.factories import described_class

StrategyFactory = Callable[[ConfigurationSpace], Strategy]
Failing = Callable[[int], bool]

N_TRIALS = 14


def cash_space() -> ConfigurationSpace:
    """Return a small conditional space over four algorithms."""
    space = ConfigurationSpace(name="contract", seed=0)
    algorithm = CategoricalHyperparameter("algorithm", ["svm", "forest", "knn", "dummy"])
    kernel, cost = CategoricalHyperparameter("svm:kernel", ["rbf", "poly"]), Float("svm:cost", (1e-3, 1e3), log=True)
    degree = Integer("svm:degree", (2, 6))
    trees, depth = Integer("forest:trees", (8, 512), log=True), Integer("forest:depth", (1, 12))
    k = OrdinalHyperparameter("knn:k", [1, 3, 5, 9, 17])
    scaler = CategoricalHyperparameter("scaler", ["none", "standard", "quantile"])
    space.add([algorithm, kernel, cost, degree, trees, depth, k, scaler])
    space.add([EqualsCondition(child, algorithm, "svm") for child in (kernel, cost)])
    space.add([EqualsCondition(child, algorithm, "forest") for child in (trees, depth)])
    space.add(EqualsCondition(k, algorithm, "knn"))
    space.add(AndConjunction(EqualsCondition(degree, kernel, "poly"), GreaterThanCondition(degree, cost, 0.01)))
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(algorithm, "knn"), ForbiddenEqualsClause(scaler, "none")))
    return space


def flat_space() -> ConfigurationSpace:
    """Return a space without conditions and without algorithms."""
    return ConfigurationSpace({"x": (0.0, 1.0), "y": (1, 100), "z": ["a", "b"]}, seed=0)


def finite_space() -> ConfigurationSpace:
    """Return a conditional space of 9 configurations: 2 + 6 + 1, one of which is forbidden."""
    space = ConfigurationSpace(name="finite", seed=0)
    algorithm = CategoricalHyperparameter("algorithm", ["a", "b", "c"])
    one, two, three = Integer("a:n", (1, 2)), Integer("b:n", (1, 3)), CategoricalHyperparameter("b:kind", ["x", "y"])
    space.add([algorithm, one, two, three])
    space.add([EqualsCondition(one, algorithm, "a")])
    space.add([EqualsCondition(child, algorithm, "b") for child in (two, three)])
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(two, 3), ForbiddenEqualsClause(three, "y")))
    return space


N_FINITE = 8


def made_up_loss(configuration: Configuration) -> float:
    """Return a loss in [0, 1) that looks like noise but is a function of the configuration."""
    return int(configuration_key(configuration)[:8], 16) / 2**32


TARGETS = np.arange(40) % 2
METRIC = get_metric("brier", TaskType.BINARY)


def made_up_predictions(configuration: Configuration) -> np.ndarray:
    """Return probabilities for the rows of `TARGETS` that depend on the configuration, better for low losses."""
    rng = np.random.default_rng(int(configuration_key(configuration)[8:], 16))
    right = np.clip(rng.normal(0.8 - 0.5 * made_up_loss(configuration), 0.15, size=len(TARGETS)), 0, 1)
    second = np.where(TARGETS == 1, right, 1 - right)
    return np.stack([1 - second, second], axis=1).astype(np.float32)


def run_trials(
    strategy: Strategy,
    n: int,
    *,
    seed: int = 0,
    lookahead: int = 1,
    fails: Failing = lambda number: False,
    start: tuple[Observation, ...] = (),
    worst_loss: float | None = 1.0,
    loss: Callable[[Configuration], float | None] | None = None,
) -> tuple[Observation, ...]:
    """Run trials ``len(start) .. n - 1`` as a study does: trial i sees the outcomes of trials 0 .. i - lookahead.

    A strategy that cannot decide on these is shown one more at a time. `loss` replaces the made-up one; None: failed.
    """
    done = list(start)
    while len(done) < n:
        number = len(done)
        suggestion = None
        for committed in range(max(0, number - lookahead + 1), number + 1):
            pending = [observation.trial for observation in done[committed:]]
            history = history_of(done[:committed], pending=pending, worst_loss=worst_loss)
            suggestion = strategy.suggest(history, np.random.default_rng([seed, number]))
            if suggestion is not None:
                break
        assert suggestion is not None, "with nothing pending a strategy must decide"
        trial = Trial(number=number, configuration=suggestion.configuration, seed=number, origin=suggestion.origin)
        value = made_up_loss(trial.configuration) if loss is None else loss(trial.configuration)
        if fails(number) or value is None:
            done.append(Observation(trial=trial, outcome=Outcome(status=TrialStatus.ERROR, error="no luck")))
        else:
            done.append(succeed(trial, value))
    return tuple(done)


def history_of(
    observations: Sequence[Observation], *, pending: Sequence[Trial] = (), worst_loss: float | None = 1.0
) -> History:
    """Return a history with everything a strategy may ask for."""
    return History(
        observations=tuple(observations),
        pending=tuple(pending),
        worst_loss=worst_loss,
        metric=METRIC,
        targets=TARGETS.astype(np.float64),
    )


def succeed(trial: Trial, loss: float | None = None) -> Observation:
    """Return a successful observation with made-up predictions, and the given loss instead of the made-up one."""
    return Observation(
        trial=trial,
        outcome=Outcome(
            status=TrialStatus.SUCCESS,
            loss=made_up_loss(trial.configuration) if loss is None else loss,
            predictions=made_up_predictions(trial.configuration),
        ),
    )


def keys(observations: tuple[Observation, ...]) -> list[str]:
    """Return the configuration keys in order."""
    return [observation.trial.key for observation in observations]


def reloaded(observations: tuple[Observation, ...], space: ConfigurationSpace) -> tuple[Observation, ...]:
    """Return copies whose configurations were made from plain values, as a store does."""
    return tuple(
        Observation(
            trial=Trial(
                number=o.trial.number,
                configuration=Configuration(space, values=dict(o.trial.configuration)),
                seed=o.trial.seed,
                origin=o.trial.origin,
            ),
            outcome=Outcome(status=o.status, loss=o.loss, predictions=o.predictions, error=o.error),
        )
        for o in observations
    )


def trajectory_elsewhere(factory: StrategyFactory, n: int, seed: int) -> list[str]:
    """Return the keys of a run in another process with another hash seed."""
    process = another_process()
    write_message(process.stdin, pack((factory, n, seed)))
    answer = read_message(process.stdout)
    assert answer is not None, "the other process has ended; what went wrong is printed above"
    return unpack(answer)


@functools.cache
def another_process() -> subprocess.Popen[bytes]:
    """Start the process that makes all trajectories: starting one takes longer than most trajectories."""
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    atexit.register(process.communicate)
    return process


def name_of_contract(name: str) -> str:
    """Return what the class of tests of a registered strategy is called after: its class, or a preset's name."""
    factory = STRATEGIES[name]
    return name.title().replace("_", "") if isinstance(factory, Preset) else factory.__name__


class StrategyContract:
    """Tests that hold for every strategy."""

    @pytest.fixture
    def strategy_factory(self) -> StrategyFactory:
        raise NotImplementedError("override the fixture strategy_factory")

    @pytest.fixture
    def space(self) -> ConfigurationSpace:
        return cash_space()

    @pytest.fixture
    def strategy(self, strategy_factory: StrategyFactory, space: ConfigurationSpace) -> Strategy:
        return strategy_factory(space)

    @pytest.fixture
    def trials(self, request: pytest.FixtureRequest, strategy_factory: StrategyFactory) -> tuple[Observation, ...]:
        """Return the first trials of the strategy with seed 0: decided once, looked at by many tests."""
        contract = request.cls
        if "made_trials" not in vars(contract):
            contract.made_trials = run_trials(strategy_factory(cash_space()), 2 * N_TRIALS)
        return contract.made_trials

    def test_it_is_a_strategy(self, strategy):
        assert isinstance(strategy, Strategy)
        called_after = type(self).__name__.removeprefix("Test")
        named = {name_of_contract(name): factory for name, factory in STRATEGIES.items()}
        if called_after in named:
            factory = named[called_after]
            assert type(strategy) is described_class(factory)
            if isinstance(factory, Preset):
                assert all(getattr(strategy, option) == value for option, value in factory.options.items())

    def test_suggestions_are_valid_in_the_space(self, trials, strategy, space):
        for observation in trials:
            configuration = observation.trial.configuration
            configuration.check_valid_configuration()
            Configuration(space, values=dict(configuration))
            assert observation.trial.origin
        for n in (0, N_TRIALS):
            history = history_of(reloaded(trials[:n], space))
            suggestion = strategy.suggest(history, np.random.default_rng(0))
            assert suggestion.configuration.config_space is space

    def test_no_configuration_is_suggested_twice(self, trials):
        seen = keys(trials)
        assert len(set(seen)) == len(seen)

    def test_same_seed_gives_the_same_trajectory(self, trials, strategy_factory):
        same, other = (keys(run_trials(strategy_factory(cash_space()), N_TRIALS, seed=s)) for s in (0, 4))
        assert same == keys(trials)[:N_TRIALS]
        assert other != same

    @pytest.mark.long
    def test_another_process_gives_the_same_trajectory(self, trials, strategy_factory):
        assert trajectory_elsewhere(strategy_factory, N_TRIALS, 0) == keys(trials)[:N_TRIALS]

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("worst_loss", [1.0, None])
    @pytest.mark.parametrize(
        "fails",
        [
            pytest.param(lambda number: True, id="all"),
            pytest.param(lambda number: number % 3 != 1, id="some"),
            pytest.param(lambda number: number < 10, id="first 10"),
        ],
    )
    def test_failures_are_survived(self, strategy, fails, worst_loss):
        seen = keys(run_trials(strategy, N_TRIALS, fails=fails, worst_loss=worst_loss))
        assert len(set(seen)) == N_TRIALS

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("loss", [float("inf"), 1e300, -1e300, 0.0])
    def test_strange_losses_are_survived(self, trials, strategy, space, loss):
        observations = list(reloaded(trials[:N_TRIALS], space))
        for i in range(0, N_TRIALS, 2):
            observations[i] = succeed(observations[i].trial, loss)
        history = history_of(observations, worst_loss=None)
        strategy.suggest(history, np.random.default_rng(0)).configuration.check_valid_configuration()

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("lookahead", [1, 4])
    def test_resuming_after_any_prefix_equals_the_uninterrupted_run(self, trials, strategy_factory, lookahead):
        uninterrupted = trials[:N_TRIALS]
        if lookahead > 1:
            uninterrupted = run_trials(strategy_factory(cash_space()), N_TRIALS, lookahead=lookahead)
        for n in range(0, N_TRIALS, 3):
            space = cash_space()
            prefix = reloaded(uninterrupted[:n], space)
            resumed = run_trials(strategy_factory(space), n + 3, lookahead=lookahead, start=prefix)
            assert keys(resumed) == keys(uninterrupted)[: n + 3] or n + 3 > N_TRIALS

    def test_parallel_asks_differ(self, strategy):
        seen = keys(run_trials(strategy, 3 * N_TRIALS, lookahead=8))
        assert len(set(seen)) == len(seen)

    def test_decisions_taken_together_are_valid_and_new_and_depend_on_the_generator_alone(
        self, trials, strategy, space
    ):
        if not (isinstance(strategy, BatchStrategy) and strategy.decides_in_batches):
            return
        observations = reloaded(trials[:N_TRIALS], space)
        for n_known in (2, N_TRIALS - 1):
            pending = [o.trial for o in observations[n_known:]]
            history = history_of(observations[:n_known], pending=pending)
            made = [strategy.suggest_batch(history, np.random.default_rng(seed), 9) for seed in (5, 5, 6)]
            one, two, other = ([configuration_key(s.configuration) for s in batch] for batch in made)
            assert one == two != other
            assert len(set(one)) == 9 and not set(one) & history.seen
            for suggestion in made[0]:
                Configuration(space, values=dict(suggestion.configuration))

    def test_decisions_taken_together_exhaust_a_finite_space(self, strategy_factory):
        strategy = strategy_factory(finite_space())
        if not (isinstance(strategy, BatchStrategy) and strategy.decides_in_batches):
            return
        observations = run_trials(strategy, N_FINITE - 2)
        batch = strategy.suggest_batch(history_of(observations), np.random.default_rng(0), 4)
        assert len({configuration_key(s.configuration) for s in batch} | set(keys(observations))) == N_FINITE

    def test_suggest_depends_on_nothing_but_history_and_generator(self, strategy_factory):
        space = cash_space()
        used = strategy_factory(space)
        observations = run_trials(used, N_TRIALS)
        run_trials(used, 5, seed=99)
        history = history_of(observations[:-2], pending=(observations[-2].trial,))
        before = pickle.dumps([dict(trial.configuration) for trial in history.trials])
        first = used.suggest(history, np.random.default_rng(5))
        assert pickle.dumps([dict(trial.configuration) for trial in history.trials]) == before
        again = used.suggest(history, np.random.default_rng(5))
        fresh = strategy_factory(space).suggest(history, np.random.default_rng(5))
        assert (
            configuration_key(first.configuration)
            == configuration_key(again.configuration)
            == configuration_key(fresh.configuration)
        )

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("seconds", [float("inf"), 0.5])
    def test_with_a_budget_of_time_the_history_decides_too(self, trials, strategy_factory, space, seconds):
        observations = reloaded(trials[:N_TRIALS], space)
        timed = [replace(o, outcome=replace(o.outcome, duration_seconds=0.1 * i)) for i, o in enumerate(observations)]
        history = history_of(timed[:-2], pending=[observations[-2].trial])
        history = replace(history, time_left=TimeLeft(share=0.6, seconds=seconds))
        made = [strategy_factory(space).suggest(history, np.random.default_rng(5)) for _ in range(2)]
        assert len({configuration_key(suggestion.configuration) for suggestion in made}) == 1
        made[0].configuration.check_valid_configuration()
        assert configuration_key(made[0].configuration) not in history.seen

    def test_a_finite_space_is_exhausted_before_anything_repeats(self, strategy_factory):
        seen = keys(run_trials(strategy_factory(finite_space()), N_FINITE + 3))
        assert len(set(seen[:N_FINITE])) == N_FINITE

    def test_a_flat_space_without_algorithms_is_searched(self, strategy_factory):
        seen = keys(run_trials(strategy_factory(flat_space()), N_TRIALS))
        assert len(set(seen)) == N_TRIALS

    def test_a_space_of_one_configuration_is_repeated(self, strategy_factory):
        space = ConfigurationSpace({"algorithm": ["only"]}, seed=0)
        assert len(set(keys(run_trials(strategy_factory(space), N_TRIALS)))) == 1

    def test_it_survives_pickling(self, trials, strategy, space):
        copy = pickle.loads(pickle.dumps(strategy))
        history = history_of(reloaded(trials[:N_TRIALS], space))
        one, two = (s.suggest(history, np.random.default_rng(5)) for s in (strategy, copy))
        assert dict(one.configuration) == dict(two.configuration)


if __name__ == "__main__":
    while (task := read_message(sys.stdin.buffer)) is not None:
        made_by, count, run_seed = unpack(task)
        write_message(sys.stdout.buffer, pack(keys(run_trials(made_by(cash_space()), count, seed=run_seed))))
