"""What boosters gain by learning a deviance itself, instead of squared errors.

    python -m benchmarks deviances --data DIR

The default of each booster is cross-validated on amounts and counts twice: as under the metric, and as under ``rmse``.
Both are judged by the metric. `NAME:COLUMN` takes a numeric column of a table for its target; ``gamma`` needs positive
ones. Rows are added as runs end; the same command continues an interrupted study.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.experiments.absolute_errors import TABLES
from benchmarks.experiments.coverage import read, tables_of
from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, split_rows
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.place import temporary_place
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument
from cashmere.data.frames import to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.records.trial import Trial
from cashmere.space import make_space

BOOSTERS = ("lightgbm", "xgboost", "hist_gradient_boosting")
METRICS = ("poisson", "gamma", "tweedie")
_TASK = TaskType.REGRESSION


@dataclass(frozen=True, slots=True, kw_only=True)
class DevianceRun(RunKey):
    """Losses of one booster on one target.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`; the variant is the metric. There is no budget.
    algorithm : str
        The booster.
    own, squared : float
        Deviance of the out-of-fold predictions, if the booster minimises the deviance, and if squared errors.
    constant : float
        Deviance of the mean.
    commit : str
        Version of the code.
    """

    algorithm: str
    own: float
    squared: float
    constant: float
    commit: str


def run(table: BenchmarkTable, key: RunKey) -> list[DevianceRun]:
    """Cross-validate the boosters on some rows of a table."""
    X, y, _ = read(table, key.table)
    rows, _ = split_rows(y, most_rows=key.rows, stratified=False, seed=key.seed)
    frame, values = to_frame(X.iloc[rows].reset_index(drop=True)), y.iloc[rows].to_numpy(dtype=np.float64)
    schema, metric = infer_schema(frame), get_metric(key.variant, _TASK)
    found = []
    with temporary_place() as place:
        prepare_folds(
            place / "folds",
            schema.code(frame),
            values,
            make_folds(values, _TASK, "5fold", seed=key.seed),
            [Encoding.ONEHOT, Encoding.ORDINAL, Encoding.TARGET],
            task_type=_TASK,
            seed=key.seed,
        )
        for algorithm in BOOSTERS:
            if algorithm == "hist_gradient_boosting" and metric.name == "tweedie":
                continue  # it knows no such loss
            losses = []
            for power in (metric.power, None):
                profile = TaskProfile(
                    task_type=_TASK, n_rows=len(values), n_columns=len(schema.used), has_categories=True, power=power
                )
                space = make_space("default", profile)
                objective = CrossValidationObjective(folder=place / "folds", space=space, metric=metric)
                trial = Trial(number=0, configuration=space.completed({"algorithm": algorithm}), seed=key.seed)
                losses.append(objective(trial).loss)
            own, squared = (np.nan if loss is None else loss for loss in losses)
            constant = metric.loss(values, np.full(len(values), values.mean()))
            found.append(
                DevianceRun(
                    **asdict(key), algorithm=algorithm, own=own, squared=squared, constant=constant, commit=commit()
                )
            )
    return found


def _wanted(arguments: argparse.Namespace) -> Iterator[tuple[BenchmarkTable, RunKey]]:
    for seed in range(arguments.seeds):
        for name, table in tables_of(arguments).items():
            least = read(table, name)[1].min()
            for metric in METRICS:
                if least > 0 or (least == 0 and metric != "gamma"):
                    yield table, RunKey(name, metric, seed, 0.0, arguments.rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="NAME|NAME:COLUMN")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1000, help="most rows to cross-validate on")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/deviances.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    make_missing(
        list(_wanted(arguments)),
        run,
        RowFile(arguments.out, DevianceRun),
        n_workers=arguments.jobs,
        console=Console(),
        describe=lambda found: "\n".join(
            f"{one.table}, {one.variant}, {one.algorithm}: {one.own:.4g}, by squared errors {one.squared:.4g}, "
            f"constant {one.constant:.4g}"
            for one in found
        ),
    )
