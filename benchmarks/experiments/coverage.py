"""How often intervals and sets of classes hold the truth, and how large they are.

    python -m benchmarks coverage --data DIR

Each run fits on some rows of a table within CPU seconds, and predicts intervals (values) or sets (classes) for all
others. `NAME:COLUMN` takes a numeric column of a table for its target: there are few tables with values to predict.
Rows are added as runs end; the same command continues an interrupted study.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, cpu_timed_search, split_rows
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from cashmere.records.budget import Budget
from cashmere.run.settings import RunSettings

TABLES = (
    *("credit-g", "quake", "churn", "bank-marketing", "eucalyptus", "vehicle", "satimage", "yeast", "vowel"),
    *("eye_movements", "liver_disorders", "wine_quality", "delta_elevators", "credit-g:credit_amount", "diabetes:mass"),
    *("phoneme:V1", "satimage:Aattr", "cpu_act:rchar", "bank-marketing:V6", "eye_movements:prevFixDur"),
)
"""Ten with classes, ten with values."""

COVERAGES = (0.8, 0.9, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageRun(RunKey):
    """The result for one coverage in one run.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`; the variant is the resampling.
    coverage : float
        Coverage requested.
    n_train, n_test : int
        Rows fitted on, and rows judged.
    covered : float
        Share of the judged rows whose interval or set contains the truth.
    size : float
        Mean width of the intervals, as a share of the width that holds as many of all values; or mean number of
        classes in a set.
    commit : str
        Version of the code.
    """

    coverage: float
    n_train: int
    n_test: int
    covered: float
    size: float
    commit: str


def read(table: BenchmarkTable, name: str) -> tuple[pd.DataFrame, pd.Series, bool]:
    """Return features, target, and whether it contains classes; the name may name another column as the target."""
    X, y = table.read()
    column = name.partition(":")[2]
    if not column:
        return X, y, table.is_classification
    X = X.assign(**{table.name: y})
    y = X.pop(column)
    return X[y.notna()], y[y.notna()], False


def run(table: BenchmarkTable, key: RunKey) -> list[CoverageRun]:
    """Fit on some rows of a table within CPU seconds, and judge intervals or sets of the others."""
    X, y, is_class = read(table, key.table)
    train, test = split_rows(y, most_rows=key.rows, stratified=is_class, seed=key.seed)
    settings = RunSettings(
        task="classification" if is_class else "regression",
        budget=Budget(seconds=key.budget),
        seed=key.seed,
        resampling=key.variant,
    )
    with cpu_timed_search(X.iloc[train], y.iloc[train], settings) as session:
        history = session.study.history
        session.model.choose_finally(history)
        session.model.cross_fit(history)
        predictor = session.model.predictor(history)
        found = []
        for coverage in COVERAGES:
            if is_class:
                held = predictor.predict_set(X.iloc[test], coverage)
                truth = predictor.target.encode(y.iloc[test].to_numpy())
                covered, size = held[np.arange(len(test)), truth].mean(), held.sum(axis=1).mean()
            else:
                low, high = predictor.predict_interval(X.iloc[test], coverage).T
                truth = y.iloc[test].to_numpy(dtype=float)
                covered = np.mean((low <= truth) & (truth <= high))
                ends = np.quantile(y.iloc[train].to_numpy(dtype=float), [(1 - coverage) / 2, (1 + coverage) / 2])
                size = np.mean(high - low) / (ends[1] - ends[0])
            found.append(
                CoverageRun(
                    **asdict(key),
                    coverage=coverage,
                    n_train=len(train),
                    n_test=len(test),
                    covered=float(covered),
                    size=float(size),
                    commit=commit(),
                )
            )
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="NAME|NAME:COLUMN")
    parser.add_argument("--resampling", default="auto")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2000, help="most rows to fit on")
    parser.add_argument("--budget", type=float, default=20.0, help="CPU seconds of a run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/coverage.csv"), help="rows; grows")


def wanted_runs(arguments: argparse.Namespace) -> list[tuple[BenchmarkTable, RunKey]]:
    """Return each table with the key of its run, seed after seed; names may contain a column, see `read`."""
    tables = tables_of(arguments)
    return [
        (table, RunKey(name, arguments.resampling, seed, arguments.budget, arguments.rows))
        for seed in range(arguments.seeds)
        for name, table in tables.items()
    ]


def tables_of(arguments: argparse.Namespace) -> dict[str, BenchmarkTable]:
    """Return the table of each name that was given; names may contain a column, see `read`."""
    names = {name: name.partition(":")[0] for name in arguments.tables}
    tables = {table.name: table for table in find_tables(arguments.data, list(dict.fromkeys(names.values())))}
    return {name: tables[of] for name, of in names.items()}


def main(arguments: argparse.Namespace) -> None:
    make_missing(
        wanted_runs(arguments),
        run,
        RowFile(arguments.out, CoverageRun),
        n_workers=arguments.jobs,
        console=Console(),
        describe=lambda found: "\n".join(
            f"{one.table}, {one.coverage:g}: {one.covered:.3f} of {one.n_test} rows, size {one.size:.3g}"
            for one in found
        ),
    )
