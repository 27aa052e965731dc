"""At which position of their paths trials serve an ensemble best.

    python -m benchmarks positions --data DIR

Random configurations follow their paths on each table, and their predictions at every position are kept; nearest
neighbours are fitted with every number of neighbours. Pools of 25 trials differ in the positions that trials give them.
The ensemble is chosen on one half of the validation rows and judged on the other, and the other way round.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Configuration
from rich.console import Console
from rich.table import Table

from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from benchmarks.tables.search_table import SearchTable
from cashmere.base.arrays import Float64, FloatArray
from cashmere.data.fold import Fold
from cashmere.data.resampling import make_folds
from cashmere.ensembles import select_ensemble
from cashmere.evaluation.metrics import Metric, default_metric
from cashmere.evaluation.objective import CrossValidationObjective, Unsupervised
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.space.component import Algorithm
from cashmere.space.path import FittedPath, PathData
from cashmere.space.paths.positions import geometric
from cashmere.space.space import Space

TABLES = ("credit-g", "churn", "phoneme", "satimage", "abalone", "cpu_act")

RULES: dict[str, dict[str, tuple[int, ...]]] = {
    "best": {},
    "rounds two earlier": {"rounds": (-2,)},
    "rounds one later": {"rounds": (1,)},
    "rounds best and one later": {"rounds": (0, 1)},
    "trees best and four earlier": {"trees": (0, -4)},
    "epochs best and one later": {"epochs": (0, 1)},
    "two neighbours": {"neighbours": ()},
    "rounds one later, two neighbours": {"rounds": (1,), "neighbours": ()},
}
"""For the path parameters that differ from the best position: steps from it; two neighbours are a fixed position."""

_FOLDS, _STEP_SECONDS = "3fold", 8.0
_NEIGHBOURS = geometric(1, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledRun:
    """One pool and its ensemble.

    Attributes
    ----------
    table, rule, seed
        Which one; the seed draws the trials of the pool and halves the rows.
    trials, pool : int
        Random configurations that were followed beside the defaults; how many of all are in the pool.
    candidates, members : int
        Predictions in the pool; distinct ones in the ensemble, mean of both halves.
    loss : float
        On the rows that did not choose, mean of both halves.
    """

    table: str
    rule: str
    seed: int
    trials: int
    pool: int
    candidates: int
    members: float
    loss: float


@dataclass(frozen=True, slots=True)
class Way:
    """What one configuration predicted for all rows, at every position that it reached, and the losses."""

    parameter: str
    predictions: list[FloatArray]
    losses: list[float]

    def at(self, rule: str) -> list[FloatArray]:
        """Return the predictions that a rule puts into the pool."""
        best, last = int(np.argmin(self.losses)), len(self.losses) - 1
        steps = RULES[rule].get(self.parameter, (0,))
        wanted = [best + step for step in steps] or [_NEIGHBOURS.index(2)]
        return [self.predictions[k] for k in dict.fromkeys(min(max(0, k), last) for k in wanted)]


class _Watched:
    """A path whose predictions are kept."""

    def __init__(self, follow: Any, kept: list[list[FloatArray]], learner: Any, data: PathData) -> None:
        self._path: FittedPath = follow(learner, data)
        self._kept: list[FloatArray] = []
        kept.append(self._kept)

    def advance(self, position: float) -> None:
        self._path.advance(position)

    def predict(self) -> FloatArray:
        predicted = np.asarray(self._path.predict(), dtype=np.float32)
        self._kept.append(predicted)
        return predicted

    def learner_at(self, position: float) -> Any:
        return self._path.learner_at(position)


class _NoLongSteps(Unsupervised):
    """Ends a path before a step that would take too long; nothing else stops the trial."""

    def seconds_left(self) -> float:
        return _STEP_SECONDS


class Ways:
    """Follows configurations on one table.

    Parameters
    ----------
    table : BenchmarkTable
        What they learn.
    folder : Path
        For prepared folds.
    seed : int
        Of folds and configurations.
    """

    def __init__(self, table: BenchmarkTable, folder: Path, *, seed: int) -> None:
        rows = SearchTable.read(table)
        self.y, self.metric = rows.y, default_metric(rows.task_type)
        self._kept: list[list[FloatArray]] = []
        self.space = self._watching(rows.make_space("default", len(rows.y)))
        self._folds: Sequence[Fold] = make_folds(rows.y, rows.task_type, _FOLDS, seed=seed)
        self._seed = seed
        rows.prepare(folder, rows.y, self._folds, self.space, seed=seed)
        self._objective = CrossValidationObjective(
            folder=folder, space=self.space, metric=self.metric, keep_model=False
        )

    def _watching(self, space: Space) -> Space:
        def watched(algorithm: Algorithm) -> Algorithm:
            if (path := algorithm.path) is None:
                return algorithm
            follow = functools.partial(_Watched, path.follow, self._kept)
            return replace(algorithm, path=replace(path, follow=follow))

        return replace(space, algorithms=tuple(watched(algorithm) for algorithm in space.algorithms))

    def follow(self, configuration: Configuration) -> Way | None:
        """Return the way of a configuration, or None if it failed."""
        if configuration["algorithm"] == "knn":
            outcomes = [self._run(self.space.completed({**configuration, "knn:n_neighbors": k})) for k in _NEIGHBOURS]
            if any(each.predictions is None for each in outcomes):
                return None
            predictions = [np.asarray(each.predictions) for each in outcomes]
            return Way("neighbours", predictions, [float(each.loss or 0.0) for each in outcomes])
        self._kept.clear()
        outcome = self._run(configuration)
        if outcome.status is not TrialStatus.SUCCESS or outcome.predictions is None:
            return None
        if outcome.path is None:
            return Way("", [outcome.predictions], [float(outcome.loss or 0.0)])
        predictions = []
        for k in range(len(outcome.path.losses)):
            joined = np.empty_like(outcome.predictions)
            for fold, kept in zip(self._folds, self._kept, strict=True):
                joined[fold.validation] = kept[k].reshape(joined[fold.validation].shape)
            predictions.append(joined)
        return Way(outcome.path.parameter, predictions, list(outcome.path.losses))

    def _run(self, configuration: Configuration) -> Outcome:
        trial = Trial(number=0, configuration=configuration, seed=self._seed)
        return self._objective.run(trial, _NoLongSteps())


def judge(
    y: Float64,
    metric: Metric,
    ways: Sequence[Way],
    rule: str,
    *,
    table: str,
    seed: int,
    trials: int,
    pool: int,
) -> PooledRun:
    """Choose ensembles from a pool on halves of the rows, judge them on the other halves."""
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(len(ways))[:pool]
    first = rng.permutation(len(y)) < len(y) / 2
    candidates = [each for k in drawn for each in ways[k].at(rule)]
    losses, members = [], []
    for half in (first, ~first):
        chosen = select_ensemble([each[half] for each in candidates], y[half], metric, tie="secondary")
        mixed = np.sum([w * candidates[k][~half].astype(float) for k, w in enumerate(chosen.weights) if w], axis=0)
        losses.append(metric.loss(y[~half], mixed, None))
        members.append(np.count_nonzero(chosen.weights))
    return PooledRun(
        table=table,
        rule=rule,
        seed=seed,
        trials=trials,
        pool=pool,
        candidates=len(candidates),
        members=float(np.mean(members)),
        loss=float(np.mean(losses)),
    )


def judge_table(table: BenchmarkTable, *, trials: int, pool: int, seeds: Sequence[int]) -> list[PooledRun]:
    """Follow the default and random configurations on a table, and judge a pool of them per seed."""
    with tempfile.TemporaryDirectory() as folder:
        made = Ways(table, Path(folder) / "prepared", seed=0)
        drawn = made.space.configuration_space
        drawn.seed(0)
        configurations = [*made.space.default_configurations(), *drawn.sample_configuration(trials)]
        ways = [way for configuration in configurations if (way := made.follow(configuration)) is not None]
        return [
            judge(made.y, made.metric, ways, rule, table=table.name, seed=seed, trials=trials, pool=pool)
            for seed in seeds
            for rule in RULES
        ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--trials", type=int, default=40, help="random configurations per table, beside the defaults")
    parser.add_argument("--pool", type=int, default=25, help="of these in each pool")
    parser.add_argument("--seeds", type=int, default=10, help="pools per table")
    parser.add_argument("--out", type=Path, default=Path(".replay/positions.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, PooledRun)
    settings = {"trials": arguments.trials, "pool": arguments.pool}
    done = file.keys("table", "seed", **settings)
    with until_interrupted(console):
        for table in find_tables(arguments.data, arguments.tables):
            if seeds := [seed for seed in range(arguments.seeds) if (table.name, seed) not in done]:
                file.add(judge_table(table, seeds=seeds, **settings))
                console.print(f"{table.name} is judged")
    rows = file.frame(table=arguments.tables, seed=range(arguments.seeds), **settings)
    if rows.empty:
        return
    means = rows.pivot_table(index="rule", columns="table", values="loss")
    change = 100 * means.div(means.loc["best"], axis=1) - 100
    shown = Table("rule", *map(str, change.columns), "mean", title="loss relative to the best position, per cent")
    for rule in RULES:
        shown.add_row(rule, *(f"{each:+.2f}" for each in [*change.loc[rule], change.loc[rule].mean()]))
    console.print(shown)
