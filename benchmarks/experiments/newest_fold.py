"""Which models should predict the rows that come next: those of all folds, of the newest fold, or fitted once more.

    python -m benchmarks newest-fold --data DIR

The rows of these tables were recorded one after the other. Each run fits on some of them within CPU seconds, and the
rows that follow are predicted in three ways by the same ensemble. `NAME:COLUMN` takes a numeric column for the target.
Rows are added as runs end; the same command continues an interrupted study.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.experiments.coverage import read, wanted_runs
from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, cpu_timed_search
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument
from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.model.predictor import Predictor
from cashmere.records.budget import Budget
from cashmere.run.refit import refit_on_all_rows
from cashmere.run.settings import RunSettings

TABLES = ("stock", "stock:company9", "wind", "wind:BEL", "eeg", "wall-robot-navigation", "bank-marketing")
"""Daily prices, daily wind speeds, two minutes of brain waves, a trip of a robot, and calls of thirty months."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestFoldRun(RunKey):
    """Losses of one ensemble on the rows that follow.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`; the variant is the resampling, and the seed also tells how many tenths of the table are left out
        at its end.
    n_train, n_test : int
        Rows fitted on, and the rows after them.
    claimed : float
        Loss that the run expects: the cross-fitted one, or else that of the ensemble.
    all_folds, newest_three, newest_two, newest_fold : float
        Loss if each member is the mean of its fold models, of the newest three or two, or the newest alone.
    refit, refit_and_two : float
        Loss if each member is one model fitted on all rows, or the mean of that and the newest two.
    covered : float
        Share of the rows whose interval or set of 90 % holds the truth, by the newest fold.
    commit : str
        Version of the code.
    """

    n_train: int
    n_test: int
    claimed: float
    all_folds: float
    newest_three: float
    newest_two: float
    newest_fold: float
    refit: float
    refit_and_two: float
    covered: float
    commit: str


def run(table: BenchmarkTable, key: RunKey) -> list[NewestFoldRun]:
    """Fit on some rows of a table within CPU seconds, and judge predictions of the rows that follow."""
    X, y, is_class = read(table, key.table)
    end = len(y) - (1 + key.seed) * (len(y) // 10)
    train = np.arange(max(0, end - key.rows), end)
    test = np.arange(end, min(len(y), end + len(train) // 9))
    settings = RunSettings(
        task="classification" if is_class else "regression",
        budget=Budget(seconds=key.budget),
        seed=key.seed,
        resampling=key.variant,
        time="row",
    )
    structure = RowStructure.from_values(train, StructureKind.TIME, name="row")
    with cpu_timed_search(X.iloc[train], y.iloc[train], settings, structure=structure) as session:
        history, model = session.study.history, session.model
        model.choose_finally(history)
        cross_fitted = model.cross_fit(history)
        assert model.builder.loss is not None
        newest = model.predictor(history)
        members = [o for o in history.successes if o.trial.number in newest.ensemble.members]
        encoders, models = refit_on_all_rows(session.run, members)
        known = y.iloc[test].isin(y.iloc[train].unique()).to_numpy() if is_class else np.ones(len(test), dtype=bool)
        future, truth = X.iloc[test[known]], y.iloc[test[known]].to_numpy()

        def loss(predictor: Predictor) -> float:
            if is_class:
                coded = predictor.target.encode(truth)
                return float(session.run.metric.loss(coded, predictor.predict_proba(future)))
            return float(session.run.metric.loss(truth, predictor.predict(future)))

        def of(n_newest: int, *, refitted: bool = False) -> float:
            """Return the loss of means of some of the newest models, and perhaps the refitted one."""
            chosen = newest.encoders[len(newest.encoders) - n_newest :] + (encoders if refitted else [])
            parts = {
                number: each[len(each) - n_newest :] + (models[number] if refitted else [])
                for number, each in newest.models.items()
            }
            return loss(replace(newest, encoders=chosen, models=parts, newest_fold_only=False))

        if is_class:
            held = newest.predict_set(future, 0.9)
            covered = held[np.arange(len(truth)), newest.target.encode(truth)].mean()
        else:
            low, high = newest.predict_interval(future, 0.9).T
            covered = np.mean((low <= truth) & (truth <= high))
        return [
            NewestFoldRun(
                **asdict(key),
                n_train=len(train),
                n_test=len(truth),
                claimed=model.builder.loss if cross_fitted is None else cross_fitted,
                all_folds=of(len(newest.encoders)),
                newest_three=of(3),
                newest_two=of(2),
                newest_fold=of(1),
                refit=of(0, refitted=True),
                refit_and_two=of(2, refitted=True),
                covered=float(covered),
                commit=commit(),
            )
        ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="NAME|NAME:COLUMN")
    parser.add_argument("--resampling", default="5fold")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=4000, help="most rows to fit on")
    parser.add_argument("--budget", type=float, default=20.0, help="CPU seconds of a run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/newest_fold.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    make_missing(
        wanted_runs(arguments),
        run,
        RowFile(arguments.out, NewestFoldRun),
        n_workers=arguments.jobs,
        console=Console(),
        describe=lambda found: "\n".join(
            f"{one.table}, seed {one.seed}: {one.claimed:.4g} expected; {one.all_folds:.4g} all folds, "
            f"{one.newest_fold:.4g} newest fold, {one.refit:.4g} refit"
            for one in found
        ),
    )
