from __future__ import annotations

import functools
import time
from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, EqualsCondition, Float, Integer

from cashmere.contests import plan_rounds
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import InvalidParameterError, MissingParameterError, UnknownNameError
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus
from cashmere.records.work_budget import WorkBudget
from cashmere.space.encoding import CatalogueEncoder
from cashmere.space.splitting.groups import part_of
from cashmere.strategies import BO4ML, TPE, Contest, Preset, RandomSearch, cite, make_strategy
from cashmere.study import Study, run_digest
from contracts.strategy_contract import (
    StrategyContract,
    cash_space,
    finite_space,
    flat_space,
    history_of,
    keys,
    made_up_loss,
    run_trials,
)

PRESETS = ("dac_hb", "dac_hh", "dac_sb", "dac_sh")


class TestContest(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(Contest, inner=TPE, budget=60)


@pytest.mark.long
class TestContestThatEnds(StrategyContract):
    """The round is over, and the contest too, within the trials of these tests."""

    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(Contest, inner=RandomSearch, b_first=1, budget=30, independent=False)


@pytest.mark.long
class TestDacHh(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(make_strategy, "dac_hh", budget=60)


class TestDacHb(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(make_strategy, "dac_hb", budget=60)


class TestDacSh(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(make_strategy, "dac_sh", n_initial=2)


@pytest.mark.long
class TestDacSb(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(make_strategy, "dac_sb", n_initial=2)


def many_spaces(n=7):
    """Return a space of n algorithms with two parameters each, and a scaler."""
    space = ConfigurationSpace(name="many", seed=0)
    algorithm = CategoricalHyperparameter("algorithm", [f"a{i}" for i in range(n)])
    space.add([algorithm, CategoricalHyperparameter("scaler", ["none", "standard"])])
    for i in range(n):
        own = [Float(f"a{i}:x", (0.0, 1.0)), Integer(f"a{i}:n", (1, 1000), log=True)]
        space.add(own)
        space.add([EqualsCondition(child, algorithm, f"a{i}") for child in own])
    return space


def loss_of(configuration, spread=0.2):
    values = dict(configuration)
    name = values["algorithm"]
    return int(name[1:]) * spread + (values[f"{name}:x"] - 0.4) ** 2 + 0.01 * (values["scaler"] == "none")


def objective(trial):
    loss = loss_of(trial.configuration)
    if trial.number % 11 == 3:
        return Outcome(status=TrialStatus.ERROR, error="no luck", duration_seconds=0.5)
    return Outcome(status=TrialStatus.SUCCESS, loss=loss, fold_losses=(loss,), duration_seconds=1.0)


def similar(trial):
    loss = loss_of(trial.configuration, spread=0.02)
    return Outcome(status=TrialStatus.SUCCESS, loss=loss, fold_losses=(loss,), duration_seconds=1.0)


def run(n=60, *, lookahead=1, objective=objective, n_algorithms=7, executor=None, warm_start=(), **options):
    space = many_spaces(n_algorithms)
    strategy = Contest(space, **{"inner": TPE, **options})
    study = Study(space, strategy, lookahead=lookahead, seed=5, warm_start=warm_start)
    return strategy, study.optimize(objective, f"{n}trials", executor=executor)


def parts_of(strategy, history):
    return [part_of(trial.configuration, strategy.parts) for trial in history.trials]


@pytest.mark.long
@pytest.mark.parametrize("elimination", ["highest", "statistical"])
def test_run_is_the_same_with_any_lookahead(elimination):
    runs = {run_digest(run(lookahead=q, elimination=elimination)[1]) for q in (1, 2, 5, 8)}
    assert len(runs) == 1


@pytest.mark.long
def test_run_is_the_same_with_workers():
    executor = WorkerProcessExecutor(2)
    try:
        parallel = run(40, lookahead=8, executor=executor)[1]
    finally:
        executor.shutdown()
    serial = run(40)[1]
    assert run_digest(parallel) == run_digest(serial)
    assert [str(o.trial.origin) for o in parallel] == [str(o.trial.origin) for o in serial]


def test_sub_spaces_take_turns_and_leave_as_planned():
    strategy, history = run(100)
    ledger = strategy.ledger(history)
    plan = plan_rounds(7, 100, first=5)
    assert [(len(r.alive), r.granted[0]) for r in ledger.rounds] == [tuple(p) for p in plan[:-1]]
    members = parts_of(strategy, history)
    assert members[:35] == list(range(7)) * 5
    totals = [sum(str(o.trial.origin).startswith(f"round {r}") for o in history) for r in range(len(plan))]
    assert totals == [p.contenders * p.evaluations for p in plan]
    assert ledger.names[ledger.open.alive[0]] == "a0"
    for each in ledger.rounds:
        assert {ledger.names[i] for i in each.survivors} == {f"a{j}" for j in range(len(each.survivors))}


def test_origin_names_round_sub_space_and_origin_inside():
    _, history = run(60, inner=Preset(TPE, {"n_initial": 3}))
    origins = [str(o.trial.origin).split(" · ") for o in history]
    assert origins[0][0] == "round 0" and origins[0][2] == "random"
    assert all(label == o.trial.configuration["algorithm"] for o, (_, label, _) in zip(history, origins, strict=True))
    assert [inside for *_, inside in origins[:35]] == 21 * ["random"] + 14 * ["model"]


def test_start_up_inside_is_that_of_the_contest_unless_given():
    space = many_spaces()
    inner = {
        text: make_strategy(f"contest:inner={text}", space, n_initial=4)._make_inner(space)
        for text in ("tpe", "tpe:n_initial=9", "random")
    }
    assert (inner["tpe"].n_initial, inner["tpe:n_initial=9"].n_initial) == (4, 9)


def test_decision_in_a_sub_space_ignores_the_others():
    strategy, history = run(14)
    changed = tuple(
        replace(o, outcome=replace(o.outcome, loss=None if o.loss is None else o.loss * 3))
        if o.trial.number % 7 != 0
        else o
        for o in history
    )
    rng = functools.partial(np.random.default_rng, 1)
    one, two = (strategy.suggest(replace(history, observations=o), rng()) for o in (history.observations, changed))
    assert dict(one.configuration) == dict(two.configuration)


def test_a_sub_space_waits_for_its_trials_and_for_the_end_of_the_round():
    space = many_spaces(3)
    observations = run_trials(Contest(space, inner=RandomSearch, budget=60), 15)
    patient, busy = (Contest(space, inner=RandomSearch, budget=60, independent=i) for i in (True, False))

    def ask(strategy, committed, decided):
        pending = [o.trial for o in observations[committed:decided]]
        return strategy.suggest(history_of(observations[:committed], pending=pending), np.random.default_rng(0))

    assert ask(patient, 2, 4) is not None  # the turn is that of sub-space 1, decided as trial 1
    assert ask(patient, 1, 4) is None  # which is pending
    assert ask(busy, 1, 4) is not None
    assert ask(busy, 14, 15) is None and ask(patient, 14, 15) is None  # the end of round 0
    assert str(ask(patient, 15, 15).origin).startswith("round 1")


def test_all_workers_are_busy_when_sub_spaces_do_not_wait():
    strategy, history = run(50, lookahead=8, independent=False)
    assert len(set(keys(history.observations))) == 50
    assert strategy.ledger(history).open.alive == run(50)[0].ledger(history).open.alive


def test_statistical_contest_drops_the_worse_ones():
    strategy, history = run(120, elimination="statistical", n_algorithms=5)
    ledger = strategy.ledger(history)
    dropped = [ledger.names[i] for r in ledger.rounds for i in r.dropped]
    assert "a4" in dropped and "a0" not in dropped
    members = np.bincount(parts_of(strategy, history), minlength=5)
    assert members[ledger.names.index("a4")] < members[ledger.names.index("a0")]


def test_equal_sub_spaces_stay():
    strategy, history = run(
        70,
        elimination="statistical",
        n_algorithms=3,
        objective=lambda trial: Outcome(status=TrialStatus.SUCCESS, loss=0.25, fold_losses=(0.25,)),
    )
    assert len(strategy.ledger(history).open.alive) == 3


def test_seconds_are_divided_too():
    strategy = Contest(many_spaces(), inner=RandomSearch, b_first=2, budget=50)
    observations = run_trials(strategy, 20, loss=loss_of)
    slow = tuple(replace(o, outcome=replace(o.outcome, duration_seconds=1.0)) for o in observations)
    history = replace(history_of(slow), budget=WorkBudget(worker_seconds=50.0))
    current = replace(strategy, budget=None).ledger(history).open
    # Round 0 took 14 s; half of the 36 s left is for three that cost 1 s each.
    assert (current.number, current.quotas) == (1, (8, 8, 8))


def test_warm_starts_count_for_the_sub_space_they_lie_in():
    warm = [c for c in many_spaces().sample_configuration(80) if c["algorithm"] == "a3"][:2]
    strategy, history = run(60, warm_start=warm)
    members = parts_of(strategy, history)
    there = [part.label for part in strategy.parts].index("a3")
    assert members[:8] == [there, there, *(i for i in range(7) if i != there)]
    assert np.bincount(members[:35]).tolist() == [5] * 7


@pytest.mark.long
@pytest.mark.parametrize("inner", ["bo", "random", "tpe", "divbo:n_global=50", "ensemble_gain:n_global=50"])
def test_any_strategy_may_search_inside(inner):
    space = cash_space()
    strategy = make_strategy(f"contest:inner={inner}", space, budget=40, n_initial=3, max_subspaces=3)
    observations = run_trials(strategy, 24)
    assert len(set(keys(observations))) == 24


def test_small_budgets_are_spent():
    for n in (1, 3, 7, 8, 20):
        _, history = run(n)
        assert len(history) == n
        assert len({o.trial.configuration["algorithm"] for o in history}) == min(n, 7)


def test_a_study_may_go_on_beyond_its_plan():
    space = many_spaces()
    study = Study(space, Contest(space, inner=RandomSearch))
    study.optimize(similar, "20trials")
    assert len(study.optimize(similar, "40trials")) == 40


def test_a_space_without_choices_is_one_sub_space():
    strategy = Contest(flat_space(), inner=RandomSearch, budget=20)
    assert len(strategy.parts) == 1
    assert strategy.ledger(History()).open.quotas == (None,)
    observations = run_trials(strategy, 3)
    assert str(observations[-1].trial.origin) == "round 0 · all · random"


def test_an_exhausted_contest_searches_everywhere():
    strategy = Contest(finite_space(), inner=RandomSearch, budget=20)
    history = history_of(run_trials(strategy, 10))
    ledger = strategy.ledger(history)
    assert ledger.open is None
    assert all("have been evaluated" in str(reason) for reason in ledger.rounds[0].reasons)
    assert [str(o.trial.origin) for o in history][8:] == ["random (repeated)"] * 2


def test_a_catalogue_is_split_like_the_space():
    space = many_spaces(4)
    space.seed(3)
    listed = tuple(c for c in space.sample_configuration(60) if c["algorithm"] != "a2")
    strategy = make_strategy("contest:inner=tpe", CatalogueEncoder(space, listed), budget=40)
    history = history_of(run_trials(strategy, 40))
    chosen = {id(o.trial.configuration) for o in history}
    assert chosen <= {id(c) for c in listed} and len(chosen) == 40
    empty = strategy.ledger(history).names.index("a2")
    assert empty not in strategy.ledger(history).rounds[0].alive


def test_a_long_catalogue_is_exhausted_too():
    space = flat_space()
    listed = tuple(dict.fromkeys(space.sample_configuration(1100)))
    assert len(listed) > 1000
    strategy = Contest(CatalogueEncoder(space, listed), inner=RandomSearch, budget=2000)
    trials = (Trial(number=n, configuration=c, seed=0) for n, c in enumerate(listed))
    outcome = Outcome(status=TrialStatus.SUCCESS, loss=0.5)
    history = history_of(tuple(Observation(trial=trial, outcome=outcome, finished_at=0.0) for trial in trials))
    assert strategy.ledger(history).open is None


def test_without_a_budget_the_option_is_named():
    space = many_spaces()
    with pytest.raises(MissingParameterError, match=r"budget.*contest:budget=250"):
        Contest(space, inner=RandomSearch).suggest(History(), np.random.default_rng(0))
    assert Contest(space, inner=RandomSearch, elimination="statistical").suggest(History(), np.random.default_rng(0))
    planned = History(budget=WorkBudget(trials=50))
    assert Contest(space, inner=RandomSearch).suggest(planned, np.random.default_rng(0)) is not None


@pytest.mark.parametrize(
    "options",
    [
        {"elimination": "lot"},
        {"eta": 1},
        {"max_subspaces": 0},
        {"seed": -1},
        {"budget": 0},
        {"budget": "many"},
        {"alpha": 0.0},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        Contest(many_spaces(), **options)


def test_an_unknown_strategy_inside_is_refused_at_once():
    with pytest.raises(UnknownNameError, match="nothing"):
        make_strategy("contest:inner=nothing", many_spaces())
    with pytest.raises(UnknownNameError, match="speed"):
        make_strategy("contest:inner=tpe:speed=3", many_spaces())
    for inner in ("random", 3, lambda space: "random"):
        with pytest.raises(InvalidParameterError, match="inner must be a strategy class"):
            Contest(many_spaces(), inner=inner)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_contests_with_options(name):
    strategy = make_strategy(f"{name}:eta=2,budget=30,max_subspaces=4", many_spaces())
    assert isinstance(strategy, Contest) and (strategy.eta, strategy.budget, strategy.max_subspaces) == (2, 30, 4)
    assert strategy.elimination == ("highest" if name[4] == "h" else "statistical")
    assert strategy.inner == (BO4ML if name[5] == "b" else Preset(TPE, {"density": "independent"}))
    assert {inner.density for inner in strategy._inner} == {"independent"}  # hyperopt's rules, as in the paper
    assert cite(name) == cite("contest")
    assert run_trials(strategy, 5)
    with pytest.raises(InvalidParameterError, match="whole number"):
        make_strategy(f"{name}:eta=2.5", many_spaces())
    with pytest.raises(UnknownNameError, match="etha"):
        make_strategy(f"{name}:etha=2", many_spaces())


def test_cached_ledger_equals_a_new_one():
    strategy, history = run(90, elimination="statistical")
    for n in (0, 30, 31, 60, 90, 45, 90):
        part = replace(history, observations=history.observations[:n])
        fresh = Contest(strategy.space, inner=TPE, elimination="statistical").ledger(part)
        assert strategy.ledger(part) == fresh
    other = replace(history, observations=tuple(reversed(history.observations)))
    assert strategy.ledger(other) == Contest(strategy.space, inner=TPE, elimination="statistical").ledger(other)


@pytest.mark.long
@pytest.mark.parametrize("elimination", ["highest", "statistical"])
def test_deciding_whose_turn_it_is_takes_little_time(elimination):
    space = many_spaces()
    strategy = Contest(space, inner=RandomSearch, elimination=elimination, budget=10_000, b_first=70)
    observations = []
    for i, o in enumerate(run_trials(Contest(space, inner=RandomSearch, budget=10_000, b_first=90), 490)):
        observations.append(replace(o, outcome=replace(o.outcome, loss=made_up_loss(o.trial.configuration) + i % 7)))
    times = []
    for n in range(470, 490):
        history = history_of(observations[:n])
        start = time.perf_counter()
        strategy.ledger(history)
        times.append(time.perf_counter() - start)
    assert np.median(times) < 0.005


def test_metric_that_does_not_suit_the_inner_strategy_is_refused_before_the_first_trial():
    space = many_spaces()
    with pytest.raises(InvalidParameterError, match="measure"):
        Study(space, "contest:inner=optdivbo:measure=mse", metric=get_metric("log_loss", "binary"))
    Study(space, "contest:inner=optdivbo:measure=ce", metric=get_metric("log_loss", "binary"))
