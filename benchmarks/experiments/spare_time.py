"""What to do with the last third of the time: search on, fit a second layer, or repeat the cross-validation.

    python -m benchmarks spare-time --data DIR

On each table a third of the rows is held out, and a search learns from the rest for so many CPU seconds. What it has
found after two thirds of them is continued in three ways, each for as long as the last third:

- *search*: as it is.
- *second layer*: defaults of all algorithms are fitted to the table with added columns, the out-of-fold predictions of
  the members of the ensemble, on the same folds.
- *repeats*: members of the ensemble are fitted again on other splits, those with the largest weights first; their
  predictions are averaged with those of the first split.

Ensembles are chosen as runs choose them, and judged on the rows held out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from ConfigSpace import Configuration
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.features import drawn_rows
from benchmarks.runs.cpu_clock import CpuSecondsOfTrial
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from benchmarks.tables.search_table import SearchTable
from cashmere.base.arrays import AnyArray, Float64, FloatArray
from cashmere.data.column import Column, ColumnKind
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.schema import CodedTable
from cashmere.ensembles.calibration import FLOOR
from cashmere.ensembles.pool import ValidationPool
from cashmere.evaluation.metrics import Metric, default_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.execution.in_process import run_trial
from cashmere.model.archives import load_fold_models
from cashmere.records.trial import History, Observation, Outcome, Trial
from cashmere.records.work_budget import WorkBudget
from cashmere.run.ensemble_builder import EnsembleBuilder
from cashmere.space.named.registry import make_space
from cashmere.space.space import Space
from cashmere.study import Study

TABLES = (
    *("colic", "cylinder-bands", "ilpd", "profb", "eucalyptus", "vehicle", "credit-g", "qsar-biodeg", "cmc", "yeast"),
    *("liver_disorders", "churn", "phoneme", "first-order-theorem-proving", "wine_quality"),
)
"""Eleven of at most 1,500 rows, four of more; two to ten classes, two with values."""

NONE, SEARCH, SECOND_LAYER, REPEATS = "none", "search", "second layer", "repeats"

_N_FOLDS = 5
_LARGEST_SHARE = 0.1
"""Largest share of all seconds for one trial."""

_MOST_REPEATS = 2
_MOST_COLUMNS = 60
"""Largest number of columns of predictions that the second layer sees."""

_SECOND_LAYER = 100_000
"""Number of its first trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpareTimeRow:
    """One way to spend the last third.

    Attributes
    ----------
    table, seed, rows
        What was learned from.
    drawn : int
        Rows that were drawn at most, to learn from and to judge on.
    strategy : str
        Of the search.
    budget : float
        CPU seconds of the search with its last third.
    way : str
        ``"none"``, ``"search"``, ``"second layer"`` or ``"repeats"``, with what is special about it.
    seconds : float
        CPU seconds spent, those of deciding included.
    fits : int
        Trials of the last third, repeats included.
    members : int
        Of the ensemble.
    new_weight : float
        Share of the ensemble that the last third has added or repeated.
    unseen_loss : float
        Cross-fitted: on validation rows that the ensemble was not chosen on.
    test_loss : float
        On the rows held out.
    """

    table: str
    seed: int
    rows: int
    drawn: int
    strategy: str
    budget: float
    way: str
    seconds: float
    fits: int
    members: int
    new_weight: float
    unseen_loss: float
    test_loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A trial, and what it predicts for the rows held out."""

    observation: Observation
    test: FloatArray

    @property
    def number(self) -> int:
        """Number of the trial."""
        return self.observation.trial.number

    @property
    def out_of_fold(self) -> FloatArray:
        """What it predicts for the rows to learn from."""
        assert self.observation.predictions is not None  # it has succeeded
        return self.observation.predictions


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All that was fitted for a table.

    Attributes
    ----------
    table, seed, drawn, strategy, budget
        See `SpareTimeRow`.
    y, y_test : arrays
        Targets of the rows to learn from, and of those held out.
    metric : Metric
        The loss.
    first, later : list of Fit
        What the search has found in two thirds of the seconds, and in the last third.
    second : list of Fit
        The second layer.
    repeats : list of Fit
        Members of the ensemble on other splits, in the order in which they were fitted.
    seconds : dict of str to float
        CPU seconds of each of these four.
    """

    table: str
    seed: int
    drawn: int
    strategy: str
    budget: float
    y: AnyArray
    y_test: AnyArray
    metric: Metric
    first: list[Fit]
    later: list[Fit]
    second: list[Fit]
    repeats: list[Fit]
    seconds: dict[str, float]


# ------------------------------------------------------------ fitting


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Rows to learn from, rows to predict, the search space and the metric."""

    seen: CodedTable
    held_out: CodedTable
    y: AnyArray
    space: Space
    metric: Metric

    def with_columns(self, seen: Float64, held_out: Float64) -> Task:
        """Return the task on a table with more columns of numbers."""
        wider = [_wider(self.seen, seen), _wider(self.held_out, held_out)]
        profile = replace(self.space.profile, n_columns=len(wider[0].schema.used))
        space = make_space("default", profile)
        return Task(seen=wider[0], held_out=wider[1], y=self.y, space=space, metric=self.metric)


def _wider(coded: CodedTable, added: Float64) -> CodedTable:
    columns = tuple(Column(name=f"prediction {i}", kind=ColumnKind.NUMERIC) for i in range(added.shape[1]))
    schema = replace(coded.schema, columns=(*coded.schema.columns, *columns))
    values = np.hstack([np.asarray(coded.values, dtype=np.float64), added])
    return replace(coded, values=values, schema=schema)


class Split:
    """The rows to learn from, cut into folds; fits configurations there.

    Parameters
    ----------
    task : Task
        What is learned.
    folder : Path
        For the prepared folds.
    seed : int
        Of the folds.
    limit : float
        CPU seconds of a trial.
    n_folds : int
        Number of folds.
    """

    def __init__(self, task: Task, folder: Path, *, seed: int, limit: float, n_folds: int = _N_FOLDS) -> None:
        kind, space = task.space.profile.task_type, task.space
        folds = make_folds(task.y, kind, f"{n_folds}fold", seed=seed)
        encodings = sorted(space.encodings)
        _, self._encoders = prepare_folds(folder, task.seen, task.y, folds, encodings, task_type=kind, seed=seed)
        self._task, self._folder, self._limit = task, folder, limit
        self._objective = CrossValidationObjective(folder=folder, space=space, metric=task.metric)

    def run(self, trial: Trial) -> Outcome:
        """Run a trial; its duration is in CPU seconds."""
        clock = time.process_time()
        outcome = run_trial(self._objective, trial, CpuSecondsOfTrial(self._limit))
        return replace(outcome, duration_seconds=time.process_time() - clock)

    def test_predictions(self, configuration: Configuration, outcome: Outcome) -> FloatArray:
        """Return what the models of a successful trial predict for the rows held out."""
        assert outcome.model is not None  # the objective keeps models
        path = self._folder / "model.skops"
        path.write_bytes(outcome.model)
        encoding = self._task.space.encoding_of(configuration)
        predicted = [
            model.predict(encoders[encoding].transform(self._task.held_out))
            for model, encoders in zip(load_fold_models(path), self._encoders, strict=True)
        ]
        return np.asarray(np.mean(predicted, axis=0, dtype=np.float64))

    def fit(self, trials: Sequence[Trial], seconds: float) -> tuple[list[Fit], float]:
        """Run trials until these CPU seconds are spent; return the successes, and the seconds."""
        found: list[Fit] = []
        spent = 0.0
        for trial in trials:
            if spent >= seconds:
                break
            outcome = self.run(trial)
            spent += outcome.duration_seconds
            if outcome.predictions is not None:
                observation = Observation(trial=trial, outcome=replace(outcome, model=None))
                found.append(Fit(observation=observation, test=self.test_predictions(trial.configuration, outcome)))
        return found, spent


def gather(table: BenchmarkTable, *, strategy: str, seed: int, n_rows: int, seconds: float) -> Gathered:
    """Search on at most `n_rows` rows of a table, a third of which are held out, and continue in three ways."""
    data = SearchTable.read(table)
    learn, test = drawn_rows(len(data.y), n_rows, seed)
    coded, y, metric = data.schema.code(data.frame), data.y[learn], default_metric(data.task_type)
    space = data.make_space("default", len(learn))
    task = Task(seen=coded.take(learn), held_out=coded.take(test), y=y, space=space, metric=metric)
    limit = _LARGEST_SHARE * seconds
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        split = Split(task, folder / "first", seed=seed, limit=limit)
        first, later, spent = search(task, split, strategy=strategy, seed=seed, seconds=seconds)
        weights = choose(first, y, metric, seed)[0].weights
        members = sorted((fit for fit in first if fit.number in weights), key=lambda fit: -weights[fit.number])

        upper = on_predictions(task, members)
        configurations = upper.space.default_configurations()
        split = Split(upper, folder / "second", seed=seed, limit=limit)
        second, spent["second"] = split.fit(
            [Trial(number=_SECOND_LAYER + i, configuration=c, seed=seed) for i, c in enumerate(configurations)],
            seconds / 3,
        )
        repeats: list[Fit] = []
        spent["repeats"] = 0.0
        for repeat in range(1, _MOST_REPEATS + 1):
            split = Split(task, folder / f"repeat{repeat}", seed=seed + 1000 * repeat, limit=limit)
            fits, more = split.fit([fit.observation.trial for fit in members], seconds / 3 - spent["repeats"])
            repeats += fits
            spent["repeats"] += more
    return Gathered(
        table=table.name,
        seed=seed,
        drawn=n_rows,
        strategy=strategy,
        budget=seconds,
        y=y,
        y_test=data.y[test],
        metric=metric,
        first=first,
        later=later,
        second=second,
        repeats=repeats,
        seconds=spent,
    )


def search(
    task: Task, split: Split, *, strategy: str, seed: int, seconds: float
) -> tuple[list[Fit], list[Fit], dict[str, float]]:
    """Return what a search finds in two thirds of the seconds and in the last third, and the seconds of both."""
    found: dict[str, list[Fit]] = {"first": [], "later": []}
    ends = dict.fromkeys(found, 0.0)
    for fit, begin, end in timed_search(task, split, strategy=strategy, seed=seed, seconds=seconds):
        part = "first" if begin < seconds * 2 / 3 else "later"
        ends[part] = end
        if fit is not None:
            found[part].append(fit)
    return found["first"], found["later"], {"first": ends["first"], "later": ends["later"] - ends["first"]}


def timed_search(
    task: Task, split: Split, *, strategy: str, seed: int, seconds: float
) -> Iterator[tuple[Fit | None, float, float]]:
    """Search for so many CPU seconds; yield each trial, None if it failed, and when its decision began and it ended."""
    study = Study(
        task.space.configuration_space,
        strategy,
        seed=seed,
        warm_start=task.space.first_configurations(),
        plan=WorkBudget(worker_seconds=seconds),
        worst_loss=task.metric.worst_loss,
        metric=task.metric,
        targets=np.asarray(task.y, dtype=np.float64),
    )
    spent = 0.0
    while spent < seconds:
        begin = spent
        clock = time.process_time()
        trial = study.ask()
        spent += time.process_time() - clock
        outcome = split.run(trial)
        spent += outcome.duration_seconds
        (observation,) = study.tell(trial, outcome)
        fit = None
        if outcome.predictions is not None:
            fit = Fit(observation=observation, test=split.test_predictions(trial.configuration, outcome))
        yield fit, begin, spent


def on_predictions(task: Task, members: Sequence[Fit]) -> Task:
    """Return the task with the predictions of members as further columns: out-of-fold ones, where they have learned."""
    members = members[: max(1, _MOST_COLUMNS // as_columns(members[0].test).shape[1])]
    seen = np.hstack([as_columns(member.out_of_fold) for member in members])
    return task.with_columns(seen, np.hstack([as_columns(member.test) for member in members]))


def as_columns(predictions: FloatArray) -> Float64:
    """Return values, the log-odds of the second of two classes, or the log-probability of each."""
    predictions = np.asarray(predictions, dtype=np.float64)
    if predictions.ndim == 1:
        return predictions[:, None]
    logs = np.log(np.maximum(predictions, FLOOR))
    return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else np.asarray(logs)


# ------------------------------------------------------------ judging


def choose(fits: Sequence[Fit], y: AnyArray, metric: Metric, seed: int) -> tuple[EnsembleBuilder, float]:
    """Choose an ensemble as runs do; return it and its loss on rows that it was not chosen on, or NaN."""
    history = History(observations=tuple(fit.observation for fit in fits))
    builder = EnsembleBuilder(
        method="selection",
        size=25,
        metric=metric,
        pool=ValidationPool.draw(np.arange(len(y)), y, None, seed=seed),
        seed=seed,
        has_model=lambda number: True,
        decision_threshold="none",
    )
    builder.update(history)
    unseen = builder.cross_fit(history)
    return builder, float("nan") if unseen is None else unseen


def judge(gathered: Gathered) -> list[SpareTimeRow]:
    """Judge each way to spend the last third."""
    first, later, second, repeats = gathered.first, gathered.later, gathered.second, gathered.repeats
    averaged = [mean_of([fit, *(other for other in repeats if other.number == fit.number)]) for fit in first]
    again = {fit.number for fit in repeats}
    base, unseen = choose(first, gathered.y, gathered.metric, gathered.seed)
    return [
        _row(gathered, NONE, base, unseen, first, []),
        _chosen(gathered, SEARCH, [*first, *later], later, "later"),
        _chosen(gathered, SECOND_LAYER, [*first, *second], second, "second"),
        _row(gathered, f"{REPEATS}, same weights", base, float("nan"), averaged, repeats, "repeats"),
        _chosen(gathered, f"{REPEATS}, chosen again", averaged, repeats, "repeats"),
        _chosen(gathered, f"{REPEATS}, only these", [f for f in averaged if f.number in again], repeats, "repeats"),
    ]


def mean_of(fits: Sequence[Fit]) -> Fit:
    """Return the mean of fits of one configuration on several splits."""
    outcome = replace(fits[0].observation.outcome, predictions=np.mean([fit.out_of_fold for fit in fits], axis=0))
    return Fit(
        observation=replace(fits[0].observation, outcome=outcome), test=np.mean([fit.test for fit in fits], axis=0)
    )


def _chosen(gathered: Gathered, way: str, fits: list[Fit], new: list[Fit], part: str) -> SpareTimeRow:
    ensemble, unseen = choose(fits, gathered.y, gathered.metric, gathered.seed)
    return _row(gathered, way, ensemble, unseen, fits, new, part)


def _row(
    gathered: Gathered,
    way: str,
    ensemble: EnsembleBuilder,
    unseen: float,
    fits: list[Fit],
    new: list[Fit],
    part: str | None = None,
) -> SpareTimeRow:
    tests, added, weights = {fit.number: fit.test for fit in fits}, {fit.number for fit in new}, ensemble.weights
    predicted = np.asarray(sum(weight * tests[number] for number, weight in weights.items()))
    if ensemble.calibration is not None:
        predicted = ensemble.calibration.apply(predicted)
    seconds = gathered.seconds["first"] + (0.0 if part is None else gathered.seconds[part])
    return SpareTimeRow(
        table=gathered.table,
        seed=gathered.seed,
        rows=len(gathered.y),
        drawn=gathered.drawn,
        strategy=gathered.strategy,
        budget=gathered.budget,
        way=way,
        seconds=round(seconds, 2),
        fits=len(new),
        members=len(weights),
        new_weight=round(sum(weight for number, weight in weights.items() if number in added), 3),
        unseen_loss=round(unseen, 6),
        test_loss=round(float(gathered.metric.loss(gathered.y_test, predicted, None)), 6),
    )


# ------------------------------------------------------------ the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--rows", type=int, default=3000, help="drawn from larger tables; a third is held out")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--seconds", type=float, default=60, help="CPU seconds of a search with its last third")
    parser.add_argument("--strategy", default="optdivbo", help="of the search")
    parser.add_argument("--out", type=Path, default=Path(".replay/spare_time.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, SpareTimeRow)
    settings = {"drawn": arguments.rows, "strategy": arguments.strategy, "budget": arguments.seconds}
    done = file.keys("table", "seed", **settings)
    with until_interrupted(console):
        for seed in arguments.seeds:
            for table in find_tables(arguments.data, arguments.tables):
                if (table.name, seed) not in done:
                    gathered = gather(
                        table,
                        strategy=arguments.strategy,
                        seed=seed,
                        n_rows=arguments.rows,
                        seconds=arguments.seconds,
                    )
                    file.add(judge(gathered))
                    console.print(f"{table.name}, seed {seed}, is judged")
    rows = file.frame(table=arguments.tables, seed=arguments.seeds, **settings)
    if not rows.empty:
        title = f"{arguments.seconds:g} CPU seconds: test loss against no last third, in per cent"
        console.print(report(rows, title=title))


def report(rows: pd.DataFrame, *, title: str) -> Table:
    """Show how each way changes the test loss: per table, mean and median."""
    losses = rows.pivot_table(index="table", columns="way", values="test_loss", sort=False, aggfunc="mean")
    change = 100 * losses.div(losses[NONE], axis=0).drop(columns=NONE) - 100
    shown = Table("table", *map(str, change.columns), title=title)
    for table, of_table in change.iterrows():
        shown.add_row(str(table), *(f"{each:+.2f}" for each in of_table))
    shown.add_section()
    shown.add_row("mean", *(f"{each:+.2f}" for each in change.mean()))
    shown.add_row("median", *(f"{each:+.2f}" for each in change.median()))
    return shown
