"""What members gain by fits on all rows, beside or instead of the models of folds, each of which lacks a fifth of them.

    python -m benchmarks all-rows --data DIR

On each table a third of the rows is held out, and a search learns from the rest for so many CPU seconds. An ensemble is
chosen among its trials, and judged on the rows held out, in several ways:

- *folds*: members predict the mean of the models of the folds.
- *one fit alone*, *two fits alone*: after the search, each member is fitted on all rows, once or twice with different
  seeds, as far along its path as in its trial, and predicts the mean of these models.
- *and one fit*, *and two fits*: it predicts a mean of that and, with half of its weight, of what the models of its
  folds predict.
- *a fifth*: the search ends earlier by a fifth of the time, which goes to two fits of its members.
- *in time*: as runs do it, the search ends when the time left is needed for one fit of each member, or a fifth of the
  time is left. What one fit of each leaves of it goes to second fits. (Runs do so only after eight trials.)

Members with the largest weights are fitted first, and all of them once before any is fitted twice. Those for which the
time does not suffice keep the models of their folds. Only *a fifth* and *in time* take no longer than *folds*.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.features import drawn_rows
from benchmarks.experiments.spare_time import Fit, Split, Task, choose, timed_search
from benchmarks.runs.code_version import commit
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from benchmarks.tables.search_table import SearchTable
from cashmere.base.arrays import Float64, FloatArray
from cashmere.data.fold import Fold
from cashmere.data.prepared import prepare_folds
from cashmere.evaluation.metrics import default_metric
from cashmere.evaluation.objective import CrossValidationObjective, forget_folds
from cashmere.model.predictor import SHARE_OF_REFITS
from cashmere.run.ensemble_builder import EnsembleBuilder
from cashmere.run.repeats import LARGEST_SHARE

TABLES = (
    *("vehicle", "credit-g", "pc1", "diabetes", "ilpd", "wine-quality-red", "cardiotocography", "mfeat-fourier"),
    *("abalone", "kr-vs-kp", "churn", "wine-quality-white", "phoneme", "satimage", "wine_quality", "wind"),
    *("bank32nh", "delta_elevators", "eye_movements", "PhishingWebsites", "eeg", "pol", "MagicTelescope", "letter"),
)
"""Five with at most 740 rows to learn from, nineteen with 1,000 to 6,000."""

FOLDS, ONE_ALONE, TWO_ALONE = "folds", "one fit alone", "two fits alone"
ONE_FIT, TWO_FITS, FIFTH, IN_TIME = "and one fit", "and two fits", "a fifth", "in time"
WAYS = (FOLDS, ONE_ALONE, TWO_ALONE, ONE_FIT, TWO_FITS, FIFTH, IN_TIME)

_N_FITS = {FOLDS: 0, ONE_ALONE: 1, TWO_ALONE: 2, ONE_FIT: 1, TWO_FITS: 2, FIFTH: 2, IN_TIME: 2}

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
    folds : int
        Number of folds.
    budget : float
        CPU seconds of the search.
    way : str
        See the module.
    seconds : float
        CPU seconds of the search and the fits.
    trials, members, fits : int
        Successful trials of the search, members of the ensemble, and their fits on all rows.
    test_loss : float
        On the rows held out.
    commit : str
        Version of the code.
    """

    table: str
    seed: int
    rows: int
    drawn: int
    folds: int
    budget: float
    way: str
    seconds: float
    trials: int
    members: int
    fits: int
    test_loss: float
    commit: str


class AllRows:
    """All rows to learn from, in one fold; fits members of an ensemble to them.

    Parameters
    ----------
    task : Task
        What is learned.
    folder : Path
        For the prepared rows.
    seed : int
        Of the encoders.
    n_folds : int
        In a trial.
    """

    def __init__(self, task: Task, folder: Path, *, seed: int, n_folds: int) -> None:
        clock = time.process_time()
        fold, encodings = Fold(train=np.arange(len(task.y)), validation=np.arange(1)), sorted(task.space.encodings)
        task_type = task.space.profile.task_type
        self._encoders = prepare_folds(folder, task.seen, task.y, [fold], encodings, task_type=task_type, seed=seed)[1]
        self._objective = CrossValidationObjective(folder=folder, space=task.space, metric=task.metric)
        self._task, self._n_folds, self._preparing = task, n_folds, time.process_time() - clock
        self._fits: dict[tuple[int, int], tuple[FloatArray, float]] = {}

    def needed(self, members: Sequence[Fit]) -> float:
        """Return the CPU seconds that one fit of each member is expected to take."""
        return self._preparing + sum(map(self._expected, members))

    def predictions(
        self, members: Sequence[Fit], *, n_fits: int, seconds: float
    ) -> tuple[dict[int, Float64], int, float]:
        """Fit each member once, then twice, and so on, as far as the CPU seconds are likely to suffice.

        Returns
        -------
        predictions : dict of int to (n, n_classes) or (n,) array
            What each of them predicts for the rows held out: the mean of its fits.
        n_done : int
            Number of fits.
        spent : float
            CPU seconds.
        """
        parts: dict[int, list[FloatArray]] = {}
        spent = self._preparing
        for fit in range(n_fits):
            for member in members:
                if spent + self._expected(member) <= seconds:
                    predicted, took = self._fitted(member, fit)
                    parts.setdefault(member.number, []).append(predicted)
                    spent += took
        means = {number: np.asarray(np.mean(each, axis=0, dtype=np.float64)) for number, each in parts.items()}
        return means, sum(map(len, parts.values())), spent

    def _fitted(self, member: Fit, fit: int) -> tuple[FloatArray, float]:
        """Return what a fit of a member predicts, and the CPU seconds that it took when it was made."""
        if (member.number, fit) not in self._fits:
            clock = time.process_time()
            trial, path = member.observation.trial, member.observation.outcome.path
            (model,) = self._objective.fit(replace(trial, seed=(trial.seed + 1000 * fit) % 2**31), path)
            encoding = self._task.space.encoding_of(trial.configuration)
            predicted = model.predict(self._encoders[0][encoding].transform(self._task.held_out))
            self._fits[member.number, fit] = predicted, time.process_time() - clock
        return self._fits[member.number, fit]

    def _expected(self, member: Fit) -> float:
        return member.observation.duration_seconds / (self._n_folds - 1)


def compare(table: BenchmarkTable, *, seed: int, n_rows: int, n_folds: int, seconds: float) -> list[AllRowsRow]:
    """Search on at most `n_rows` rows of a table, a third of which are held out, and judge each way to predict."""
    data = SearchTable.read(table)
    learn, test = drawn_rows(len(data.y), n_rows, seed)
    coded, y, metric = data.schema.code(data.frame), data.y[learn], default_metric(data.task_type)
    space = data.make_space("default", len(learn))
    task = Task(seen=coded.take(learn), held_out=coded.take(test), y=y, space=space, metric=metric)
    with tempfile.TemporaryDirectory() as place:
        split = Split(task, Path(place) / "folds", seed=seed, limit=_LARGEST_SHARE * seconds, n_folds=n_folds)
        trials = list(timed_search(task, split, strategy="optdivbo", seed=seed, seconds=seconds))
        all_rows = AllRows(task, Path(place) / "all rows", seed=seed, n_folds=n_folds)

        @functools.cache
        def chosen(end: float) -> tuple[EnsembleBuilder, list[Fit], int]:
            """Return the ensemble after so many seconds, its members, largest weights first, and the successes."""
            fits = [fit for fit, _, ended in trials if fit is not None and ended <= end]
            ensemble, _ = choose(fits, y, metric, seed)
            weights = ensemble.weights
            members = sorted((fit for fit in fits if fit.number in weights), key=lambda fit: -weights[fit.number])
            return ensemble, members, len(fits)

        earliest = (1 - LARGEST_SHARE) * seconds
        possible = sorted((end for *_, end in trials if earliest < end <= seconds), reverse=True)
        in_time = next((end for end in possible if end + all_rows.needed(chosen(end)[1]) <= seconds), earliest)
        ends = {FIFTH: earliest, IN_TIME: in_time}
        found = []
        for way in WAYS:
            n_fits = _N_FITS[way]
            end = ends.get(way, seconds)
            ensemble, members, n_trials = chosen(end)
            left = seconds - end if way in ends else float("inf")
            of_all, n_done, spent = all_rows.predictions(members, n_fits=n_fits, seconds=left)
            weights = ensemble.weights
            of_folds = {fit.number: np.asarray(fit.test, dtype=np.float64) for fit in members}
            if way not in (ONE_ALONE, TWO_ALONE):
                share = SHARE_OF_REFITS
                of_all = {number: (1 - share) * of_folds[number] + share * each for number, each in of_all.items()}
            predicted = np.asarray(sum(weights[n] * each for n, each in (of_folds | of_all).items()))
            if ensemble.calibration is not None:
                predicted = ensemble.calibration.apply(predicted)
            found.append(
                AllRowsRow(
                    table=table.name,
                    seed=seed,
                    rows=len(learn),
                    drawn=n_rows,
                    folds=n_folds,
                    budget=seconds,
                    way=way,
                    seconds=round(end + (spent if n_fits else 0.0), 2),
                    trials=n_trials,
                    members=len(members),
                    fits=n_done,
                    test_loss=float(metric.loss(data.y[test], predicted, None)),
                    commit=commit(),
                )
            )
    forget_folds()
    return found


# ------------------------------------------------------------ the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--rows", type=int, default=9000, help="drawn from larger tables; a third is held out")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--folds", type=int, default=5, help="number of folds of a trial")
    parser.add_argument("--seconds", type=float, default=60, help="CPU seconds of a search")
    parser.add_argument("--out", type=Path, default=Path(".replay/all_rows.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, AllRowsRow)
    settings = {"drawn": arguments.rows, "folds": arguments.folds, "budget": arguments.seconds}
    done = file.keys("table", "seed", **settings)
    with until_interrupted(console):
        for seed in arguments.seeds:
            for table in find_tables(arguments.data, arguments.tables):
                if (table.name, seed) not in done:
                    found = compare(
                        table, seed=seed, n_rows=arguments.rows, n_folds=arguments.folds, seconds=arguments.seconds
                    )
                    file.add(found)
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
