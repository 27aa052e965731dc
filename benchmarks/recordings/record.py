"""Record histories: evaluate random configurations of a space on tables, once, for all later replays.

    python -m benchmarks record --data DIR --space volcano --tables quake cpu_act --configurations 600

Every table is split into 60 % training, 20 % validation and 20 % test rows (at most `--rows` rows, a stratified draw);
a configuration is fitted on the training rows and predicts the others. The limit counts CPU seconds, so that recordings
made on a busy machine, or on many cores, agree; a second limit of wall time stops trials that do not end. Work in
progress is kept in `--work`; repeat the command to continue, also with more configurations.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.recordings.recorded_history import RECORDED, RecordedHistory, save_recorded
from benchmarks.runs.search import run_search
from benchmarks.runs.search_task import SearchTask
from benchmarks.runs.trial_limit import CpuLimit
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from benchmarks.tables.search_table import SearchTable
from benchmarks.tables.three_parts import SEED, ThreeParts
from cashmere.base.versions import versions
from cashmere.evaluation.metrics import get_metric
from cashmere.records.budget import Budget
from cashmere.records.trial import History
from cashmere.storage.store import RunStore


def record(
    table: BenchmarkTable,
    *,
    work: Path,
    out: Path,
    space_name: str,
    n_configurations: int,
    n_rows: int,
    limit_seconds: float,
    n_workers: int,
) -> Path:
    """Evaluate configurations on one table until there are enough, and write the file.

    Parameters
    ----------
    table : BenchmarkTable
        What is recorded.
    work, out : Path
        Folder of work in progress, and of recorded histories.
    space_name : str
        A name of `cashmere.space.named.registry`.
    n_configurations, n_rows : int
        How many; rows at most.
    limit_seconds : float
        CPU seconds per configuration.
    n_workers : int
        Worker processes of one thread each.
    """
    folder = work / f"{table.name}-{space_name}"
    data = SearchTable.read(table)
    parts = ThreeParts.of(data, n_rows=n_rows)
    task = make_task(data, parts, space_name)
    with RunStore(folder) as store:
        # The lookahead is fixed: random search sees the pending trials, so any number of workers draws the same.
        found = run_search(
            task,
            "random",
            Budget(trials=n_configurations),
            limit=CpuLimit(limit_seconds),
            n_workers=n_workers,
            lookahead=64,
            store=store,
            announce=lambda n: print(
                f"{folder.name}: {n} of {n_configurations} configurations are finished", flush=True
            ),
        )
    history = to_recorded(
        found.history,
        task,
        parts,
        dataset=table.name,
        space_name=space_name,
        limit_seconds=limit_seconds,
        command=f"python -m benchmarks record --space {space_name} --tables {table.name} "
        f"--configurations {n_configurations} --rows {n_rows} --limit {limit_seconds:g}",
    )
    path = save_recorded(history, out)
    failed = len(history) - len(history.succeeded)
    print(
        f"{path}: {len(history)} configurations ({failed} failed), {path.stat().st_size / 1e6:.2f} MB, "
        f"median {np.median(history.seconds):.2f} s, sum {history.seconds.sum() / 60:.0f} CPU minutes",
        flush=True,
    )
    return path


def make_task(data: SearchTable, parts: ThreeParts, space_name: str) -> SearchTask:
    """Return what is recorded: validation and test rows are predicted together; losses are of no use."""
    return SearchTask(
        table=data,
        y=parts.y,
        folds=[parts.fold],
        space=data.make_space(space_name, len(parts.train)),
        metric=get_metric("accuracy" if data.task_type.is_classification else "mse", data.task_type),
        seed=SEED,
    )


def to_recorded(
    found: History,
    task: SearchTask,
    parts: ThreeParts,
    *,
    dataset: str,
    space_name: str,
    limit_seconds: float,
    command: str,
) -> RecordedHistory:
    """Return what all trials predicted, by validation and test rows."""
    shape = next(o.predictions.shape for o in found if o.predictions is not None)
    predictions = np.full((len(found), *shape), np.nan, dtype=np.float32)
    for i, o in enumerate(found):
        if o.predictions is not None:
            predictions[i] = o.predictions
    return RecordedHistory(
        dataset=dataset,
        space_name=space_name,
        task_type=task.table.task_type,
        space=task.space.configuration_space,
        configurations=tuple(o.trial.configuration for o in found),
        statuses=tuple(o.status for o in found),
        seconds=np.array([min(o.fit_seconds or o.duration_seconds, limit_seconds) for o in found]),
        validation=predictions[:, np.searchsorted(task.validation_rows, parts.validation)],
        test=predictions[:, np.searchsorted(task.validation_rows, parts.test)],
        y_validation=parts.y[parts.validation],
        y_test=parts.y[parts.test],
        facts={
            "n_rows": len(parts.train) + len(task.validation_rows),
            "n_columns": task.space.profile.n_columns,
            "n_classes": task.space.profile.n_classes,
            "limit_cpu_seconds": limit_seconds,
            "seed": SEED,
            "versions": versions(),
            "command": command,
        },
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", required=True)
    parser.add_argument("--space", default="volcano")
    parser.add_argument("--configurations", type=int, default=600)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--limit", type=float, default=10.0, help="CPU seconds per configuration")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path(".recording"), help="work in progress")
    parser.add_argument("--out", type=Path, default=RECORDED)


def main(arguments: argparse.Namespace) -> None:
    for table in find_tables(arguments.data, arguments.tables):
        record(
            table,
            work=arguments.work,
            out=arguments.out,
            space_name=arguments.space,
            n_configurations=arguments.configurations,
            n_rows=arguments.rows,
            limit_seconds=arguments.limit,
            n_workers=arguments.workers,
        )
