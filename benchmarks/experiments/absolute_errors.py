"""What it brings that boosters learn the median if the metric is an absolute error, and all learners logarithms.

    python -m benchmarks absolute-errors --data DIR --variants mae/mean mae/median mape/mean mape/median
    python -m benchmarks absolute-errors --data DIR --variants mae/median mae/logarithms mape/median mape/logarithms

Under ``mae``, the boosters of a run learn the median; under ``mape``, all learners weigh rows by 1/|target|, too. Each
target is also learned without that, by the mean, as under the other metrics of values. With logarithms, all learners
learn those of skewed targets; runs do so under ``mae``. Ensembles are chosen by the same metric. Runs count CPU
seconds. `NAME:COLUMN` takes a numeric column for the target; ``mape`` needs positive ones. Rows are added as runs end;
the same command continues an interrupted study.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from rich.console import Console
from scipy import stats

from benchmarks.experiments.coverage import read, tables_of
from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, cpu_timed_search, judge_on, split_rows
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument
from cashmere.base.arrays import AnyArray
from cashmere.evaluation.metrics import METRICS, Metric, learns_logarithms
from cashmere.records.budget import Budget
from cashmere.run import run_directory
from cashmere.run.settings import RunSettings

TABLES = (
    *("liver_disorders", "wine_quality", "delta_elevators", "credit-g:credit_amount", "bank-marketing:V6"),
    *("eye_movements:prevFixDur", "autos:price", "ilpd:V5", "sick:TSH", "cpu_act:rchar", "diabetes:pedi"),
    "colleges_usnews:Number_of_applications_received",
)
"""Three tables with values, and skewed columns of others."""

VARIANTS = tuple(f"{metric}/{learned}" for metric in ("mae", "mape") for learned in ("mean", "median", "logarithms"))

_CONSTANTS = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsoluteErrorRun(RunKey):
    """Losses of one ensemble.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`; the variant is a metric, and what boosters learn.
    skewness : float
        Of the targets of the rows to fit on.
    trials : int
        Finished trials.
    validation, test : float
        Loss of the ensemble on the rows that chose it, and on others.
    constant : float
        Loss on the other rows of the constant that is best on the rows to fit on.
    commit : str
        Version of the code.
    """

    skewness: float
    trials: int
    validation: float
    test: float
    constant: float
    commit: str


def run(table: BenchmarkTable, key: RunKey) -> list[AbsoluteErrorRun]:
    """Fit on some rows of a table within CPU seconds, and judge the ensemble on others."""
    X, y, _ = read(table, key.table)
    y = y.astype(float)
    train, test = split_rows(y, most_rows=key.rows, stratified=False, seed=key.seed)
    seen, unseen = y.iloc[train].to_numpy(), y.iloc[test].to_numpy()
    name, _, learned = key.variant.partition("/")
    metric = METRICS[name]
    settings = RunSettings(
        task="regression",
        metric=replace(metric, level=None) if learned == "mean" else metric,
        budget=Budget(seconds=key.budget),
        seed=key.seed,
    )
    with (
        patch.object(run_directory, "learns_logarithms", _if_skewed if learned == "logarithms" else _never),
        cpu_timed_search(X.iloc[train], y.iloc[train], settings) as session,
    ):
        history = session.study.history
        session.model.choose_finally(history)
        loss = session.model.builder.loss
        constants = np.quantile(seen, np.linspace(0, 1, _CONSTANTS))
        best = min(constants, key=lambda constant: metric.loss(seen, np.full(len(seen), constant)))
        return [
            AbsoluteErrorRun(
                **asdict(key),
                skewness=round(float(stats.skew(seen, bias=False)), 3),
                trials=len(history.successes),
                validation=np.nan if loss is None else loss,
                test=judge_on(session, X.iloc[test], y.iloc[test])(history),
                constant=metric.loss(unseen, np.full(len(unseen), best)),
                commit=commit(),
            )
        ]


def _if_skewed(metric: Metric, y: AnyArray) -> bool:
    """Take the place of `cashmere.evaluation.metrics.learns_logarithms`; under ``mape``, runs learn none."""
    return learns_logarithms(METRICS["mae"], y)


def _never(metric: Metric, y: AnyArray) -> bool:
    """Take its place as well."""
    return False


def _wanted(arguments: argparse.Namespace) -> Iterator[tuple[BenchmarkTable, RunKey]]:
    tables = tables_of(arguments)
    positive = {name for name, table in tables.items() if read(table, name)[1].min() > 0}
    for seed in range(arguments.seeds):
        for name, table in tables.items():
            for variant in arguments.variants:
                if variant.startswith("mae") or name in positive:
                    yield table, RunKey(name, variant, seed, arguments.budget, arguments.rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="NAME|NAME:COLUMN")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), metavar="METRIC/LEARNED")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2000, help="most rows to fit on")
    parser.add_argument("--budget", type=float, default=30.0, help="CPU seconds of a run")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/absolute_errors.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    make_missing(
        list(_wanted(arguments)),
        run,
        RowFile(arguments.out, AbsoluteErrorRun),
        n_workers=arguments.jobs,
        console=Console(),
        describe=lambda found: "\n".join(
            f"{one.table}, {one.variant}, seed {one.seed}: test {one.test:.4g} after {one.trials} trials, constant "
            f"{one.constant:.4g}"
            for one in found
        ),
    )
