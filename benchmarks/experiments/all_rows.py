"""What members gain by fits on all rows, instead of the models of folds, each of which lacks a fifth of them.

    python -m benchmarks all-rows --data DIR

On each table a third of the rows is held out, and a search learns from the rest for so many CPU seconds. Then the
members of its ensemble are fitted again, each as far along its path as before:

- *other folds*: on another split into five folds; members predict the mean of both splits.
- *ten folds*: on ten folds; members predict the mean of these alone.
- *one fit* and *two fits*: on all rows, with one or two seeds; members predict with these alone.
- *half*: the mean of the five folds and of the two fits.

Weights and calibration stay as they are. Ensembles are judged on the rows held out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.features import drawn_rows
from benchmarks.experiments.spare_time import Fit, Split, Task, choose, search
from benchmarks.runs.code_version import commit
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from benchmarks.tables.search_table import SearchTable
from cashmere.base.arrays import Float64
from cashmere.data.fold import Fold
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.evaluation.metrics import default_metric
from cashmere.evaluation.objective import CrossValidationObjective, forget_folds

TABLES = (
    *("vehicle", "credit-g", "pc1", "diabetes", "ilpd", "wine-quality-red", "cardiotocography", "mfeat-fourier"),
    *("abalone", "kr-vs-kp", "churn", "wine-quality-white", "phoneme", "satimage", "wine_quality", "wind"),
    *("bank32nh", "delta_elevators", "eye_movements", "PhishingWebsites", "eeg", "pol", "MagicTelescope", "letter"),
)
"""Five with at most 700 rows to learn from, nineteen with 1,000 to 6,000."""

FOLDS, OTHER, TEN, ONE, TWO, HALF = "folds", "other folds", "ten folds", "one fit", "two fits", "half"
WAYS = (FOLDS, OTHER, TEN, ONE, TWO, HALF)

_LARGEST_SHARE = 0.25
"""Largest share of all seconds for one trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllRowsRow:
    """An ensemble whose members predict in one of the ways.

    Attributes
    ----------
    table, seed, rows
        What was learned from.
    drawn : int
        Rows that were drawn at most, to learn from and to judge on.
    budget : float
        CPU seconds of the search.
    way : str
        See the module.
    seconds : float
        CPU seconds of the fits after the search.
    trials, members : int
        Successful trials of the search, and members of the ensemble.
    test_loss : float
        On the rows held out.
    commit : str
        Version of the code.
    """

    table: str
    seed: int
    rows: int
    drawn: int
    budget: float
    way: str
    seconds: float
    trials: int
    members: int
    test_loss: float
    commit: str


Predictions = Mapping[int, Float64]
"""What each member predicts for the rows held out, by the number of its trial."""


def compare(table: BenchmarkTable, *, seed: int, n_rows: int, seconds: float) -> list[AllRowsRow]:
    """Search on at most `n_rows` rows of a table, a third of which are held out, and judge each way to predict."""
    data = SearchTable.read(table)
    learn, test = drawn_rows(len(data.y), n_rows, seed)
    coded, y, metric = data.schema.code(data.frame), data.y[learn], default_metric(data.task_type)
    space = data.make_space("default", len(learn))
    task = Task(seen=coded.take(learn), held_out=coded.take(test), y=y, space=space, metric=metric)
    everything = Fold(train=np.arange(len(y)), validation=np.arange(1))
    splits = [
        make_folds(y, task.space.profile.task_type, "5fold", seed=seed + 1000),
        make_folds(y, task.space.profile.task_type, "10fold", seed=seed + 1000),
        [everything],
        [everything],
    ]
    with tempfile.TemporaryDirectory() as place:
        split = Split(task, Path(place) / "first", seed=seed, limit=_LARGEST_SHARE * seconds)
        first, later, _ = search(task, split, strategy="optdivbo", seed=seed, seconds=seconds)
        ensemble, _ = choose([*first, *later], y, metric, seed)
        members = [fit for fit in (*first, *later) if fit.number in ensemble.weights]
        fitted = [fit_again(task, Path(place) / str(i), folds, members, i) for i, folds in enumerate(splits)]

    def row(way: str, predictions: Predictions, seconds_of_fits: float) -> AllRowsRow:
        predicted = np.asarray(sum(weight * predictions[number] for number, weight in ensemble.weights.items()))
        if ensemble.calibration is not None:
            predicted = ensemble.calibration.apply(predicted)
        return AllRowsRow(
            table=table.name,
            seed=seed,
            rows=len(learn),
            drawn=n_rows,
            budget=seconds,
            way=way,
            seconds=round(seconds_of_fits, 2),
            trials=len(first) + len(later),
            members=len(members),
            test_loss=float(metric.loss(data.y[test], predicted, None)),
            commit=commit(),
        )

    of_folds = {fit.number: np.asarray(fit.test, dtype=np.float64) for fit in members}
    (other, of_other), (ten, of_ten), (one, of_one), (another, of_another) = fitted
    two = mean_of(one, another)
    return [
        row(FOLDS, of_folds, 0.0),
        row(OTHER, mean_of(of_folds, other), of_other),
        row(TEN, ten, of_ten),
        row(ONE, one, of_one),
        row(TWO, two, of_one + of_another),
        row(HALF, mean_of(of_folds, two), of_one + of_another),
    ]


def fit_again(
    task: Task, folder: Path, folds: Sequence[Fold], members: Sequence[Fit], seed: int
) -> tuple[Predictions, float]:
    """Fit members on other folds; return the mean of what these predict for the rows held out, and the CPU seconds."""
    clock = time.process_time()
    encodings = sorted({task.space.encoding_of(member.observation.trial.configuration) for member in members})
    task_type = task.space.profile.task_type
    _, encoders = prepare_folds(folder, task.seen, task.y, folds, encodings, task_type=task_type, seed=seed)
    objective = CrossValidationObjective(folder=folder, space=task.space, metric=task.metric)
    predictions = {}
    for member in members:
        trial, encoding = member.observation.trial, task.space.encoding_of(member.observation.trial.configuration)
        models = objective.fit(replace(trial, seed=trial.seed + 100 * seed), member.observation.outcome.path)
        predicted = [
            model.predict(encoders_of_fold[encoding].transform(task.held_out))
            for model, encoders_of_fold in zip(models, encoders, strict=True)
        ]
        predictions[member.number] = np.asarray(np.mean(predicted, axis=0, dtype=np.float64))
    forget_folds()
    return predictions, time.process_time() - clock


def mean_of(some: Predictions, others: Predictions) -> Predictions:
    """Return the mean of two predictions by each member."""
    return {number: (some[number] + others[number]) / 2 for number in some}


# ------------------------------------------------------------ the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--rows", type=int, default=9000, help="drawn from larger tables; a third is held out")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--seconds", type=float, default=60, help="CPU seconds of a search")
    parser.add_argument("--out", type=Path, default=Path(".replay/all_rows.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, AllRowsRow)
    settings = {"drawn": arguments.rows, "budget": arguments.seconds}
    done = file.keys("table", "seed", **settings)
    with until_interrupted(console):
        for seed in arguments.seeds:
            for table in find_tables(arguments.data, arguments.tables):
                if (table.name, seed) not in done:
                    file.add(compare(table, seed=seed, n_rows=arguments.rows, seconds=arguments.seconds))
                    console.print(f"{table.name}, seed {seed}, is judged")
    rows = file.frame(table=arguments.tables, seed=arguments.seeds, **settings)
    if not rows.empty:
        console.print(report(rows))


def changes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the logarithm of each test loss relative to that with folds, by table (ascending rows) and way."""
    logs = rows.assign(log=np.log(rows["test_loss"]))
    losses = logs.pivot_table(index=["rows", "table"], columns="way", values="log", aggfunc="mean")
    return losses.sub(losses[FOLDS], axis=0).droplevel("rows")[[way for way in WAYS if way in losses]]


def report(rows: pd.DataFrame) -> Table:
    """Show how each way changes the test loss, in per cent: per table, and in the median."""
    found = changes(rows).drop(columns=FOLDS).transform(lambda log: 100 * np.expm1(log))
    shown = Table("table", *map(str, found.columns), title="test loss against the folds of the search, in per cent")
    for table, of_table in found.iterrows():
        shown.add_row(str(table), *(f"{each:+.2f}" for each in of_table))
    shown.add_section()
    shown.add_row("median", *(f"{each:+.2f}" for each in found.median()))
    return shown
