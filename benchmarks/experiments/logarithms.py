"""What learners gain by learning log(1 + target), under errors of logarithms and under squared errors.

    python -m benchmarks logarithms --data DIR

The configurations with which a search starts are cross-validated twice on targets of at least 0: on the targets, and on
their logarithms, from which values are predicted again. Ensembles of either, and of both, are chosen on one half of the
rows and judged on the other. `NAME:COLUMN` takes a numeric column of a table for its target. Rows are added as runs
end; the same command continues an interrupted study.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy import stats

from benchmarks.experiments.absolute_errors import TABLES
from benchmarks.experiments.coverage import read, tables_of
from benchmarks.experiments.followed_candidates import halves_loss
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
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.metrics import METRICS
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.records.trial import Trial
from cashmere.space import make_space

JUDGED_BY = ("rmsle", "rmse")
ENSEMBLE = "ensemble"
_TASK = TaskType.REGRESSION
_RESAMPLING = "3fold"
_SPLITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LogarithmRun(RunKey):
    """Losses of one learner, or of ensembles of all, on one target.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`; the variant is the resampling. There is no budget.
    metric : str
        What losses are of.
    learner : str
        Algorithm, for a configuration other than its default with a number; or ``"ensemble"``.
    skewness : float
        Of the targets.
    on_values, on_logarithms, on_both : float
        Loss of the predictions for rows that the learner has not seen, by what it has learned; of ensembles for rows
        that have not chosen them. NaN if there is none.
    commit : str
        Version of the code.
    """

    metric: str
    learner: str
    skewness: float
    on_values: float
    on_logarithms: float
    on_both: float
    commit: str


def run(table: BenchmarkTable, key: RunKey) -> list[LogarithmRun]:
    """Cross-validate the first configurations on some rows of a table, and choose ensembles of them."""
    X, y, _ = read(table, key.table)
    rows, _ = split_rows(y, most_rows=key.rows, stratified=False, seed=key.seed)
    frame, values = to_frame(X.iloc[rows].reset_index(drop=True)), y.iloc[rows].to_numpy(dtype=np.float64)
    schema = infer_schema(frame)
    profile = TaskProfile(task_type=_TASK, n_rows=len(values), n_columns=len(schema.used), has_categories=True)
    learned, predictions = (False, True), {}
    spaces = [make_space("default", replace(profile, learns_logarithms=logarithms)) for logarithms in learned]
    with temporary_place() as place:
        prepare_folds(
            place / "folds",
            schema.code(frame),
            values,
            make_folds(values, _TASK, key.variant, seed=key.seed),
            sorted(spaces[0].encodings),
            task_type=_TASK,
            seed=key.seed,
        )
        first, seen = [list(space.first_configurations()) for space in spaces], list[str]()
        for number, pair in enumerate(zip(*first, strict=True)):
            algorithm = str(pair[0]["algorithm"])
            seen.append(algorithm)
            name = algorithm if seen.count(algorithm) == 1 else f"{algorithm} {seen.count(algorithm)}"
            for logarithms, space, configuration in zip(learned, spaces, pair, strict=True):
                objective = CrossValidationObjective(
                    folder=place / "folds", space=space, metric=METRICS["rmse"], keep_model=False
                )
                outcome = objective(Trial(number=number, configuration=configuration, seed=key.seed))
                assert outcome.predictions is not None, outcome.error
                predictions[name, logarithms] = outcome.predictions

    skewness, names = float(stats.skew(values)), list(dict.fromkeys(name for name, _ in predictions))
    found = []
    for metric in (METRICS[name] for name in JUDGED_BY):
        pools = [[predictions[name, kind] for name in names] for kind in learned]
        pools.append(pools[0] + pools[1])
        losses = {name: [metric.loss(values, predictions[name, kind]) for kind in learned] + [np.nan] for name in names}
        losses[ENSEMBLE] = [halves_loss(pool, values, metric, n_seeds=_SPLITS) for pool in pools]
        found += [
            LogarithmRun(
                **asdict(key),
                metric=metric.name,
                learner=name,
                skewness=skewness,
                on_values=on_values,
                on_logarithms=on_logarithms,
                on_both=on_both,
                commit=commit(),
            )
            for name, (on_values, on_logarithms, on_both) in losses.items()
        ]
    return found


def _wanted(arguments: argparse.Namespace) -> Iterator[tuple[BenchmarkTable, RunKey]]:
    for seed in range(arguments.seeds):
        for name, table in tables_of(arguments).items():
            if read(table, name)[1].min() >= 0:
                yield table, RunKey(name, _RESAMPLING, seed, 0.0, arguments.rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="NAME|NAME:COLUMN")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1500, help="most rows to cross-validate on")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/logarithms.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    make_missing(
        list(_wanted(arguments)),
        run,
        RowFile(arguments.out, LogarithmRun),
        n_workers=arguments.jobs,
        console=Console(),
        describe=lambda found: "\n".join(
            f"{one.table}, {one.metric}: ensembles on values {one.on_values:.4g}, on logarithms "
            f"{one.on_logarithms:.4g}, on both {one.on_both:.4g}"
            for one in found
            if one.learner == ENSEMBLE
        ),
    )
