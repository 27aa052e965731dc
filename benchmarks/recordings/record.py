"""Record histories: evaluate random configurations of a space on tables, once, for all later replays.

    python -m benchmarks record --data DIR --space volcano --tables quake cpu_act --configurations 600

Every table is split into 60 % training, 20 % validation and 20 % test rows (at most `--rows` rows, a stratified draw);
a configuration is fitted on the training rows and predicts the others. The limit counts CPU seconds, so that recordings
made on a busy machine, or on many cores, agree; a second limit of wall time stops trials that do not end. Work in
progress is kept in `--work`; repeat the command to continue, also with more configurations.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.recordings.recorded_history import RECORDED, RecordedHistory, save_recorded
from benchmarks.tables.manifest import (
    BenchmarkTable,
    add_data_argument,
    find_tables,
)
from benchmarks.tables.search_table import SearchTable
from cashmere.base.versions import versions
from cashmere.data.prepared import is_complete
from cashmere.data.resampling import Fold
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.execution.limits import Limits
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.storage.store import RunStore
from cashmere.study import Study

SEED = 0
WALL_FACTOR = 5
"""Wall seconds a trial may take per CPU second of its limit: CPU seconds decide, on a busy machine too."""

MEMORY_MIB = 4096
"""Of a trial, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingObjective:
    """Evaluates a configuration and judges its CPU time; ``fit_seconds`` of the outcome are CPU seconds of everything.

    Attributes
    ----------
    objective : CrossValidationObjective
        Its one fold validates on validation and test rows together; the loss is therefore of no use.
    limit_seconds : float
        CPU seconds beyond which the outcome is a timeout.
    """

    objective: CrossValidationObjective
    limit_seconds: float

    def __call__(self, trial: Trial) -> Outcome:
        """Evaluate the trial."""
        start = time.process_time()
        outcome = self.objective(trial)
        seconds = time.process_time() - start
        if seconds > self.limit_seconds:
            cause = Cause(kind=CauseKind.CPU_LIMIT, limit=self.limit_seconds, used=seconds)
            return Outcome(status=TrialStatus.TIMEOUT, error=cause, fit_seconds=seconds)
        return replace(outcome, fit_seconds=seconds, predict_seconds=0.0)


def trial_limits(cpu_seconds: float) -> Limits:
    """Return what a trial may use before it is killed; within it `RecordingObjective` measures more exactly."""
    return Limits(seconds=WALL_FACTOR * cpu_seconds, cpu_seconds=cpu_seconds + 0.5, memory_mib=MEMORY_MIB)


def split_rows(
    y: np.ndarray, n_rows: int, *, classes: bool, seed: int = SEED
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ascending row numbers for training (60 %), validation (20 %) and test (20 %), drawn from all rows.

    Classes are spread evenly over the parts, unless one of them has fewer rows than there are classes. A class of which
    a single row is left cannot be spread: the row trains, and where rows are drawn from a larger table it is not drawn.
    """
    from sklearn.model_selection import train_test_split

    def cut(rows: np.ndarray, size: float | int) -> tuple[np.ndarray, np.ndarray]:
        codes, counts = np.unique(y[rows], return_counts=True)  # not all codes are among the rows
        lone = rows[np.isin(y[rows], codes[counts == 1])] if classes else rows[:0]
        common = np.setdiff1d(rows, lone)
        n_other = size if isinstance(size, int) else int(np.ceil(size * len(common)))
        if n_other >= len(common):
            return lone, common
        even = classes and min(n_other, len(common) - n_other) >= np.sum(counts > 1)
        kept, other = train_test_split(common, test_size=size, random_state=seed, stratify=y[common] if even else None)
        return np.sort(np.concatenate([kept, lone])), np.sort(other)

    rows = np.arange(len(y))
    if len(y) > n_rows:
        rows = cut(rows, n_rows)[1]
    rest, test = cut(rows, 0.2)
    train, validation = cut(rest, 0.25)
    return train, validation, test


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
    y, task_type = data.y, data.task_type
    train, validation, test = split_rows(y, n_rows, classes=task_type.is_classification)
    if not task_type.is_classification:
        y = (y - y[train].mean()) / y[train].std()
    judged = np.sort(np.concatenate([validation, test]))
    space = data.make_space(space_name, len(train))
    prepared = (folder / "prepared").absolute()
    if not is_complete(prepared):
        data.prepare(prepared, y, [Fold(train, judged)], space, seed=SEED)
    objective = CrossValidationObjective(
        folder=prepared,
        space=space,
        metric=get_metric("accuracy" if task_type.is_classification else "mse", task_type),
        keep_model=False,
    )
    executor = WorkerProcessExecutor(n_workers, limits=trial_limits(limit_seconds), n_threads=1)
    with RunStore(folder) as store:
        try:
            # The lookahead is fixed: random search sees the pending trials, so any number of workers draws the same.
            study = Study(space.configuration_space, "random", seed=SEED, lookahead=64, store=store)
            print(f"{folder.name}: {len(study.history)} of {n_configurations} configurations are finished", flush=True)
            study.optimize(
                RecordingObjective(objective=objective, limit_seconds=limit_seconds),
                f"{n_configurations}trials",
                executor=executor,
            )
        finally:
            executor.shutdown()
        observations = list(study.history)
    shape = next(o.predictions.shape for o in observations if o.predictions is not None)
    predictions = np.full((len(observations), *shape), np.nan, dtype=np.float32)
    for i, o in enumerate(observations):
        if o.predictions is not None:
            predictions[i] = o.predictions
    history = RecordedHistory(
        dataset=table.name,
        space_name=space_name,
        task_type=task_type,
        space=space.configuration_space,
        configurations=tuple(o.trial.configuration for o in observations),
        statuses=tuple(o.status for o in observations),
        seconds=np.array([min(o.fit_seconds or o.duration_seconds, limit_seconds) for o in observations]),
        validation=predictions[:, np.searchsorted(judged, validation)],
        test=predictions[:, np.searchsorted(judged, test)],
        y_validation=y[validation],
        y_test=y[test],
        facts={
            "n_rows": len(train) + len(judged),
            "n_columns": space.profile.n_columns,
            "n_classes": space.profile.n_classes,
            "limit_cpu_seconds": limit_seconds,
            "seed": SEED,
            "versions": versions(),
            "command": f"python -m benchmarks record --space {space_name} --tables {table.name} "
            f"--configurations {n_configurations} --rows {n_rows} --limit {limit_seconds:g}",
        },
    )
    path = save_recorded(history, out)
    failed = len(history) - len(history.succeeded)
    print(
        f"{path}: {len(history)} configurations ({failed} failed), {path.stat().st_size / 1e6:.2f} MB, "
        f"median {np.median(history.seconds):.2f} s, sum {history.seconds.sum() / 60:.0f} CPU minutes",
        flush=True,
    )
    return path


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
