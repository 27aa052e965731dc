"""Compare the strategy `tpe` with Optuna's TPE sampler and with random search, on synthetic problems.

    python -m benchmarks tpe --seeds 20 --trials 250

Problems:

- ``mixed``: five algorithms with twelve parameters each, and three shared ones: 64 parameters, 16 of them active.
- ``pipelines``: five classifiers and twenty-one resamplers that must fit each other, with 64 parameters in all.
- ``interacting``: six learners and five selectors, whose numbers form narrow valleys across their axes: 47 parameters.
- ``phoneme``: a forest's interpolation of the losses recorded of 600 configurations (`benchmarks/recorded`), over the
  whole space they come from.

Every seed is another instance of the first three problems, with its own optimum of loss 0. The rules of `tpe` were
chosen on ``mixed`` and ``pipelines`` with other seeds; ``interacting`` was written afterwards and nothing chosen by it.
Optuna runs with its defaults (10 random trials, multivariate) and with the 20 random trials of `tpe`; the strategy
``tpe:density=independent`` has hyperopt's rules. Seconds are CPU time, the median of the ten suggestions before a
checkpoint. Needs ``pip install -e .[bench]``, and about 15 minutes of one core, most of them Optuna's. Rows are added
as searches end; the same command continues an interrupted one.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import (
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    InCondition,
    Integer,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters import Hyperparameter, IntegerHyperparameter
from rich.console import Console

from benchmarks.recordings.recorded_history import RECORDED, load_recorded
from benchmarks.reporting.table import Table
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from benchmarks.statistics.ranks_and_tests import signed_rank_test
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import MissingDependencyError
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies import make_strategy

RECORDING = RECORDED / "phoneme-classic.zip"
CHECKPOINTS = (50, 100, 250)

OPTUNA: dict[str, dict[str, Any]] = {
    "optuna": {},
    "optuna:n_startup_trials=20": {"n_startup_trials": 20},
    "optuna:n_startup_trials=20,group=True": {"n_startup_trials": 20, "group": True},
    "optuna:n_startup_trials=20,multivariate=False": {"n_startup_trials": 20, "multivariate": False},
}
"""Options of `optuna.samplers.TPESampler` by name."""

DEFAULT_STRATEGIES = (
    "tpe",
    "tpe:density=independent",
    "random",
    "optuna:n_startup_trials=20",
    "optuna",
)

Loss = Callable[[Configuration], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSearch:
    """A search after some trials.

    Attributes
    ----------
    problem : str
        One of `PROBLEMS`.
    seed : int
        Of the problem and of the search.
    strategy : str
        Of the package with its options, or one of `OPTUNA`.
    trials : int
        How many there were.
    best_loss : float
        Lowest loss of them.
    seconds_per_suggestion : float
        CPU seconds, median of the ten before.
    """

    problem: str
    seed: int
    strategy: str
    trials: int
    best_loss: float
    seconds_per_suggestion: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A space and a loss to be minimised in it."""

    space: ConfigurationSpace
    loss: Loss


# --- problems ------------------------------------------------------------------------------------------------------


def mixed(seed: int) -> Problem:
    """Return the problem of five algorithms: their offsets, bowls with one valley each, and choices that cost."""
    rng = np.random.default_rng([seed, 1])
    space = ConfigurationSpace(name="mixed", seed=0)
    algorithm = CategoricalHyperparameter("algorithm", [f"a{i}" for i in range(5)])
    space.add(algorithm, *_parameters("shared", 3))
    for name in algorithm.choices:
        own = _parameters(name, 12)
        space.add(own)
        space.add([EqualsCondition(child, algorithm, name) for child in own])
    bowl = Bowl(space, rng, operators=["algorithm"])
    offsets = dict(zip(algorithm.choices, rng.permutation([0.0, 0.05, 0.1, 0.2, 0.4]), strict=True))

    def loss(configuration: Configuration) -> float:
        return float(offsets[configuration["algorithm"]]) + bowl(configuration)

    return Problem(space=space, loss=loss)


def pipelines(seed: int) -> Problem:
    """Return the problem of two operators: their offsets, and what a pair costs that does not fit."""
    rng = np.random.default_rng([seed, 2])
    space = ConfigurationSpace(name="pipelines", seed=0)
    classifier = CategoricalHyperparameter("algorithm", ["svm", "forest", "neighbours", "tree", "regression"])
    resampler = CategoricalHyperparameter("resampler", [f"r{i}" for i in range(21)])
    space.add([classifier, resampler])
    sizes = [9, 7, 4, 5, 4]
    for choice, counts in ((classifier, sizes), (resampler, [0, 1, 1, 2, 2, 3, 1] * 3)):
        for name, count in zip(choice.choices, counts, strict=True):
            own = _parameters(name, count)
            space.add(own)
            space.add([EqualsCondition(child, choice, name) for child in own])
    space.add(_parameters("shared", 3))
    bowl = Bowl(space, rng, operators=["algorithm", "resampler"])
    costs = 0.2 * rng.random((5, 21)) + 0.3 * rng.random((5, 1)) + 0.3 * rng.random((1, 21))
    costs -= costs.min()

    def loss(configuration: Configuration) -> float:
        pair = classifier.choices.index(configuration["algorithm"]), resampler.choices.index(configuration["resampler"])
        return float(costs[pair]) + bowl(configuration)

    return Problem(space=space, loss=loss)


def _parameters(owner: str, n: int) -> list[Hyperparameter]:
    """Return n parameters, of five kinds in turn."""
    kinds: list[Callable[[str], Hyperparameter]] = [
        lambda name: Float(name, (1e-5, 10.0), log=True),
        lambda name: Integer(name, (1, 20)),
        lambda name: CategoricalHyperparameter(name, ["p", "q", "r"]),
        lambda name: Float(name, (0.0, 1.0)),
        lambda name: Integer(name, (1, 1000), log=True),
    ]
    return [kinds[i % len(kinds)](f"{owner}:{i}") for i in range(n)]


class Bowl:
    """Weighted mean over the active parameters of their costs, which is 0 at one place.

    Numbers cost the square of their distance to a centre, and half the square of the sum of this distance and that of
    the number before, so that they depend on each other. Choices other than operators cost 0, 0.25 or 0.5.
    """

    def __init__(self, space: ConfigurationSpace, rng: np.random.Generator, *, operators: Sequence[str]) -> None:
        self._encoder = encoder = SpaceEncoder(space)
        self._weights = rng.exponential(size=encoder.n_dims)  # a few matter most
        self._centre = rng.random(encoder.n_dims)
        for column in np.flatnonzero(encoder.is_integer):
            self._centre[column] = encoder.bins(column, self._centre[[column]])[0, 0]
        self._costs = {
            column: rng.permutation([0.0, 0.25, 0.5])
            for column in np.flatnonzero(encoder.is_categorical)
            if encoder.names[column] not in operators
        }
        self._weights[[encoder.names.index(name) for name in operators]] = 0.0

    def __call__(self, configuration: Configuration) -> float:
        """Return the cost of a configuration, at least 0."""
        row = self._encoder.encode([configuration])[0]
        active = np.flatnonzero(self._encoder.activity(row[None])[0])
        total, previous = 0.0, 0.0
        for column in active[self._weights[active] > 0]:
            if column in self._costs:
                cost = self._costs[column][int(row[column])]
            else:
                gap = row[column] - self._centre[column]
                cost = gap**2 + 0.5 * (gap + previous) ** 2
                previous = gap
            total += self._weights[column] * cost
        return float(total / self._weights[active].sum())


def interacting(seed: int) -> Problem:
    """Return the problem of two operators whose numbers form rotated valleys: what a pair costs, and how far off.

    The last parameter of every learner depends on a choice among the others.
    """
    rng = np.random.default_rng([seed, 3])
    space = ConfigurationSpace(name="interacting", seed=0)
    learner = CategoricalHyperparameter("learner", [f"learner{i}" for i in range(6)])
    selector = CategoricalHyperparameter("selector", [f"selector{i}" for i in range(5)])
    space.add([learner, selector])
    for operator, counts in ((learner, [4, 5, 5, 6, 6, 7]), (selector, [0, 2, 2, 3, 3])):
        for name, count in zip(operator.choices, counts, strict=True):
            own = _parameters(name, count)
            space.add(own)
            nested = own[-1:] if operator is learner else []
            space.add([EqualsCondition(child, operator, name) for child in own if child not in nested])
            space.add([EqualsCondition(child, own[2], "p") for child in nested])
    space.add(_parameters("shared", 2))
    owners = {name: [c for c in space if c.startswith(f"{name}:")] for name in (*learner.choices, *selector.choices)}
    valleys = [Valley(space, rng, names) for names in (*owners.values(), ["shared:0", "shared:1"]) if names]
    costs = 0.5 * rng.random((6, 5))
    costs -= costs.min()

    def loss(configuration: Configuration) -> float:
        pair = learner.choices.index(configuration["learner"]), selector.choices.index(configuration["selector"])
        return float(costs[pair]) + sum(valley(configuration) for valley in valleys)

    return Problem(space=space, loss=loss)


class Valley:
    """Cost of the parameters of one owner: a quadratic form of the distance of its numbers to a centre.

    Its axes are a random rotation of the parameters', the steepest a hundred times as steep as the flattest. The centre
    depends on the first choice among the parameters, which costs 0, 0.1 or 0.2 itself. Numbers that are not active are
    at the centre.

    Parameters
    ----------
    space : ConfigurationSpace
    rng : numpy.random.Generator
        Draws rotation, centres and costs.
    names : sequence of str
        The parameters, the first of which is active whenever their owner is.
    """

    def __init__(self, space: ConfigurationSpace, rng: np.random.Generator, names: Sequence[str]) -> None:
        self._encoder = encoder = SpaceEncoder(space)
        self._first = names[0]
        columns = np.array([encoder.names.index(name) for name in names])
        self._numbers = columns[~encoder.is_categorical[columns]]
        self._choice = next(iter(columns[encoder.is_categorical[columns]]), None)
        self._costs = rng.permutation([0.0, 0.1, 0.2]) if self._choice is not None else np.zeros(1)
        self._centres = 0.1 + 0.8 * rng.random((len(self._costs), len(self._numbers)))
        for j, column in enumerate(self._numbers):
            if encoder.is_integer[column]:
                self._centres[:, j] = encoder.bins(column, self._centres[:, j])[0]
        rotation, _ = np.linalg.qr(rng.normal(size=(len(self._numbers), len(self._numbers))))
        steepness = np.geomspace(0.01, 1.0, len(self._numbers))
        self._axes = rotation * np.sqrt(steepness / steepness.mean() / len(self._numbers))

    def __call__(self, configuration: Configuration) -> float:
        """Return the cost of a configuration, at least 0; 0 if its owner is not active."""
        if self._first not in configuration:
            return 0.0
        row = self._encoder.encode([configuration])[0]
        code = 0 if self._choice is None else int(row[self._choice])
        numbers = row[self._numbers]
        gaps = np.where(numbers < 0, 0.0, numbers - self._centres[code])
        return float(self._costs[code] + np.sum(np.square(gaps @ self._axes)))


def phoneme(seed: int) -> Problem:
    """Return the interpolated recording, the same for every seed."""
    return _interpolated(RECORDING)


@functools.cache
def _interpolated(path: Path) -> Problem:
    from sklearn.ensemble import ExtraTreesRegressor

    history = load_recorded(path)
    metric = get_metric("log_loss", history.task_type)
    losses = [metric.loss(history.y_validation, history.validation[i], None) for i in history.succeeded]
    encoder = SpaceEncoder(history.space)
    rows = encoder.encode(history.configurations[i] for i in history.succeeded)
    forest = ExtraTreesRegressor(n_estimators=20, min_samples_leaf=2, random_state=0).fit(rows, np.log(losses))
    trees = [tree.tree_ for tree in forest.estimators_]  # `predict` spends most time on checks

    def loss(configuration: Configuration) -> float:
        row = encoder.encode([configuration]).astype(np.float32)
        return float(np.exp(np.mean([tree.predict(row)[0, 0] for tree in trees])))

    return Problem(space=history.space, loss=loss)


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "mixed": mixed,
    "pipelines": pipelines,
    "interacting": interacting,
    "phoneme": phoneme,
}


# --- searches ------------------------------------------------------------------------------------------------------


def run_strategy(problem: Problem, strategy: str, *, seed: int, n_trials: int) -> tuple[list[float], list[float]]:
    """Return losses and seconds of suggestions of a strategy of the package."""
    searcher = make_strategy(strategy, problem.space)
    observations: list[Observation] = []
    seconds = []
    for number in range(n_trials):
        history = History(observations=tuple(observations))
        start = time.process_time()
        suggestion = searcher.suggest(history, np.random.default_rng([seed, number]))
        seconds.append(time.process_time() - start)
        trial = Trial(number=number, configuration=suggestion.configuration, seed=0, origin=suggestion.origin)
        loss = problem.loss(suggestion.configuration)
        observations.append(Observation(trial=trial, outcome=Outcome(status=TrialStatus.SUCCESS, loss=loss)))
    return [float(observation.loss or 0.0) for observation in observations], seconds


def run_optuna(
    problem: Problem, options: dict[str, Any], *, seed: int, n_trials: int
) -> tuple[list[float], list[float]]:
    """Return losses and seconds of suggestions of Optuna's TPE sampler."""
    optuna = import_optuna()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed, **options)
    study = optuna.create_study(sampler=sampler)
    losses, seconds = [], []
    for _ in range(n_trials):
        start = time.process_time()
        trial = study.ask()
        values = suggest_by_optuna(trial, problem.space)
        seconds.append(time.process_time() - start)
        losses.append(problem.loss(Configuration(problem.space, values=values)))
        study.tell(trial, losses[-1])
    return losses, seconds


def suggest_by_optuna(trial: Any, space: ConfigurationSpace) -> dict[str, Any]:
    """Ask an Optuna trial for the active parameters of a space, parents first."""
    values: dict[str, Any] = {}
    for name, parameter in space.items():
        if not all(values.get(c.parent.name) in _parent_values(c) for c in space.parent_conditions_of[name]):
            continue
        if isinstance(parameter, CategoricalHyperparameter):
            values[name] = trial.suggest_categorical(name, list(parameter.choices))
        elif isinstance(parameter, OrdinalHyperparameter):
            values[name] = parameter.sequence[trial.suggest_int(name, 0, len(parameter.sequence) - 1)]
        elif isinstance(parameter, Constant):
            values[name] = parameter.value
        elif isinstance(parameter, IntegerHyperparameter):
            values[name] = trial.suggest_int(name, int(parameter.lower), int(parameter.upper), log=parameter.log)
        else:
            values[name] = trial.suggest_float(name, float(parameter.lower), float(parameter.upper), log=parameter.log)
    return values


def _parent_values(condition: Any) -> tuple[Any, ...]:
    """Return the values of the parent under which an Equals or In condition holds."""
    return tuple(condition.values) if isinstance(condition, InCondition) else (condition.value,)


def import_optuna() -> Any:
    """Return the module with its messages silenced.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise MissingDependencyError("optuna", "The comparison with Optuna", "bench") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


# --- study ------------------------------------------------------------------------------------------------------


def judge(name: str, strategy: str, *, seed: int, checkpoints: Sequence[int]) -> list[JudgedSearch]:
    """Search one instance of a problem, as far as the largest of the numbers of trials at which it is judged."""
    problem, n_trials = PROBLEMS[name](seed), max(checkpoints)
    if strategy in OPTUNA:
        losses, seconds = run_optuna(problem, OPTUNA[strategy], seed=seed, n_trials=n_trials)
    else:
        losses, seconds = run_strategy(problem, strategy, seed=seed, n_trials=n_trials)
    return [
        JudgedSearch(
            problem=name,
            seed=seed,
            strategy=strategy,
            trials=n,
            best_loss=float(f"{min(losses[:n]):.6g}"),
            seconds_per_suggestion=round(float(np.median(seconds[max(0, n - 10) : n])), 4),
        )
        for n in checkpoints
    ]


def summary_tables(rows: pd.DataFrame, *, reference: str) -> list[Table]:
    """Return a table per number of trials: median best loss, comparison with the reference, seconds.

    Parameters
    ----------
    rows : DataFrame
        Columns of `JudgedSearch`.
    reference : str
        The strategy that the others are compared with, seed by seed.
    """
    tables = []
    for n, part in rows.groupby("trials"):
        cells = []
        for (problem, strategy), runs in part.groupby(["problem", "strategy"], sort=False):
            losses = runs.set_index("seed")["best_loss"]
            theirs = part[(part["problem"] == problem) & (part["strategy"] == reference)].set_index("seed")["best_loss"]
            differences = (losses - theirs).dropna().to_numpy()
            p, _ = signed_rank_test(differences)
            compared = f"{(differences < 0).sum()}:{(differences > 0).sum()}, p {p:.2g}"
            milliseconds = 1e3 * runs["seconds_per_suggestion"].median()
            cells.append(
                (f"{problem}", str(strategy), f"{losses.median():.4f}", compared, f"{milliseconds:.1f}", str(len(runs)))
            )
        columns = ("problem", "strategy", "median best loss", f"better:worse than {reference}", "ms", "seeds")
        tables.append(Table(title=f"After {n:g} trials", columns=columns, rows=tuple(cells)))
    return tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument(
        "--strategies",
        nargs="+",
        default=list(DEFAULT_STRATEGIES),
        help=f"strategies of the package, or one of {', '.join(map(repr, OPTUNA))}; the first is the reference",
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=250)
    parser.add_argument("--out", type=Path, default=Path(".replay/tpe.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    """Make the searches that the file lacks, seed by seed, and print the tables."""
    if any(strategy in OPTUNA for strategy in arguments.strategies):
        import_optuna()
    console, file = Console(), RowFile(arguments.out, JudgedSearch)
    checkpoints = [n for n in CHECKPOINTS if n < arguments.trials] + [arguments.trials]
    done = file.keys("problem", "seed", "strategy", "trials")
    with until_interrupted(console):
        for seed, problem, strategy in itertools.product(
            range(arguments.seeds), arguments.problems, arguments.strategies
        ):
            if missing := [n for n in checkpoints if (problem, seed, strategy, n) not in done]:
                file.add(judge(problem, strategy, seed=seed, checkpoints=missing))
    rows = file.frame()
    wanted = rows["problem"].isin(arguments.problems) & rows["strategy"].isin(arguments.strategies)
    rows = rows[wanted & (rows["seed"] < arguments.seeds) & rows["trials"].isin(checkpoints)]
    for table in summary_tables(rows, reference=arguments.strategies[0]):
        console.print(table.title)
        console.print(table.to_rich())
