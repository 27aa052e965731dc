"""Record histories: evaluate configurations of a space on tables, once, for all later replays.

    python -m benchmarks record --data DIR --work recording

For each table some configurations are drawn at random, and as many are found by searches, so that good regions are
dense. Learners are fitted on at most 2,000 rows. Searches see losses on up to 1,000 other rows, which are not recorded.
Validation rows (up to 2,000) and test rows (up to 10,000) are what remains; a file holds what every configuration
predicts for them. The limit counts CPU seconds, so that recordings made on a busy machine, or on many cores, agree; a
process that is stopped and continued loses nothing. Every finished configuration is kept in `--work`: repeat the
command to continue, also with more configurations, but not with other rows or limits. A table whose file is there is
left as it is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.recordings.recorded_history import RECORDED_LARGE, RecordedHistory, load_recorded, save_recorded
from benchmarks.recordings.recorded_rows import MostRows, RecordedRows
from benchmarks.runs.scheduler import add_scheduler_argument
from benchmarks.runs.search import FinishedSearch, run_search
from benchmarks.runs.search_task import SearchTask
from benchmarks.runs.trial_limit import CpuLimit
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from benchmarks.tables.search_table import SearchTable
from cashmere.base.files import write_atomically
from cashmere.base.versions import versions
from cashmere.evaluation.metrics import get_metric
from cashmere.execution.cluster import Cluster
from cashmere.execution.engines import open_cluster
from cashmere.records.budget import Budget
from cashmere.records.cause import CauseKind
from cashmere.records.trial import Observation
from cashmere.storage.store import RunStore

SEED = 0
"""Seed of the rows."""

TABLES = (
    "liver_disorders", "cmc", "credit-g", "quake", "cardiotocography", "churn", "phoneme", "wine_quality", "wind",
    "delta_elevators", "cpu_act", "eeg", "bank32nh", "puma32H", "ailerons", "pol", "2dplanes", "MagicTelescope",
    "amazon_employee", "satimage",
)  # fmt: skip
"""Recorded by default, the cheap ones first."""

SEARCHES = ("bo", "bo", "optdivbo", "optdivbo", "divbo", "tpe")
"""Strategies of searches that find configurations, in equal numbers; their seeds differ."""

_WALL_FACTOR = 10_000
"""Wall seconds per CPU second of the limit: a recording may be stopped for hours."""

_OF_THE_MACHINE = {CauseKind.WORKER_NOT_READY, CauseKind.WORKER_SLOT, CauseKind.SEARCH_ENDED, CauseKind.TIME_LIMIT}
"""Causes that say nothing about a configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSearch:
    """A search whose trials are recorded."""

    strategy: str
    seed: int
    trials: int

    @property
    def name(self) -> str:
        """Name of the search in the recording."""
        return f"{self.strategy}-{self.seed}"


def plan_searches(n_random: int, n_found: int) -> list[PlannedSearch]:
    """Return random search, and the searches that find the others in equal numbers."""
    per_search = -(-n_found // len(SEARCHES))
    found = [PlannedSearch(strategy=name, seed=1 + i, trials=per_search) for i, name in enumerate(SEARCHES)]
    return [PlannedSearch(strategy="random", seed=0, trials=n_random), *(found if n_found else ())]


def record(
    table: BenchmarkTable,
    *,
    work: Path,
    out: Path,
    space_name: str,
    searches: Sequence[PlannedSearch],
    most: MostRows,
    limit_seconds: float,
    n_workers: int,
    cluster: Cluster | None = None,
) -> Path:
    """Evaluate configurations on one table, and write the file.

    Parameters
    ----------
    table : BenchmarkTable
        What is recorded.
    work, out : Path
        Folder of work in progress, and of recorded histories.
    space_name : str
        A name of `cashmere.space.named.registry`.
    searches : sequence of PlannedSearch
        What finds the configurations.
    most : MostRows
        Largest number of rows of every kind.
    limit_seconds : float
        CPU seconds per configuration.
    n_workers : int
        Worker processes of one thread each, for random search; others decide after each trial.
    cluster : Cluster, optional
        Cluster of the workers, instead of this machine.
    """
    place = work / f"{table.name}-{space_name}"
    _check_settings(place, {**asdict(most), "limit_seconds": limit_seconds})
    data = SearchTable.read(table)
    rows = RecordedRows.of(data, most, seed=SEED)
    task = make_task(data, rows, space_name)
    found = {}
    for search in searches:
        is_random = search.strategy == "random"
        with RunStore(place / search.name) as store:
            # The lookahead is fixed: random search sees the pending trials, so any number of workers draws the same.
            found[search] = run_search(
                replace(task, seed=search.seed),
                search.strategy,
                Budget(trials=search.trials),
                limit=CpuLimit(limit_seconds, wall_factor=_WALL_FACTOR),
                n_workers=n_workers if is_random else 1,
                lookahead=64 if is_random else 1,
                cluster=cluster,
                store=store,
                announce=lambda n, search=search: print(  # type: ignore[misc]
                    f"{table.name}-{space_name}, {search.name}: {n} of {search.trials} trials are finished", flush=True
                ),
            )
    history = to_recorded(found, task, rows, dataset=table.name, space_name=space_name, limit_seconds=limit_seconds)
    path = save_recorded(history, out)
    failed = len(history) - len(history.succeeded)
    print(
        f"{path}: {len(history)} configurations ({failed} failed), {path.stat().st_size / 1e6:.2f} MB, "
        f"median {np.median(history.seconds):.2f} s, sum {history.seconds.sum() / 60:.0f} CPU minutes",
        flush=True,
    )
    return path


def _check_settings(folder: Path, settings: dict[str, float]) -> None:
    """Write what the configurations of a folder are evaluated with, or check that it is the same as before."""
    path = folder / "settings.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(settings).encode())
    elif (known := json.loads(path.read_text())) != settings:
        changed = ", ".join(
            f"{name} {known.get(name)}, not {value}" for name, value in settings.items() if known.get(name) != value
        )
        raise SystemExit(f"{folder} was begun with {changed}. Choose another --work.")


def make_task(data: SearchTable, rows: RecordedRows, space_name: str) -> SearchTask:
    """Return what is recorded: searches see the steering rows only."""
    space = data.make_space(space_name, len(rows.training))
    metric = "log_loss" if all(each.has_probabilities for each in space.algorithms) else "accuracy"
    return SearchTask(
        table=data,
        y=rows.y,
        folds=[rows.fold],
        held_out=rows.unseen,
        space=space,
        metric=get_metric(metric if data.task_type.is_classification else "mse", data.task_type),
        seed=SEED,
    )


def to_recorded(
    found: dict[PlannedSearch, FinishedSearch],
    task: SearchTask,
    rows: RecordedRows,
    *,
    dataset: str,
    space_name: str,
    limit_seconds: float,
) -> RecordedHistory:
    """Return what all configurations predicted, each once, except those that failed because of the machine."""
    kept: dict[str, tuple[PlannedSearch, Observation, np.ndarray | None]] = {}
    for search, finished in found.items():
        for o, predictions in zip(finished.history, finished.held_out, strict=True):
            if o.error is None or o.error.kind not in _OF_THE_MACHINE:
                kept.setdefault(o.trial.key, (search, o, predictions))
    shape = next(held_out.shape for _, _, held_out in kept.values() if held_out is not None)
    predictions = np.full((len(kept), *shape), np.nan, dtype=np.float32)
    for i, (_, _, held_out) in enumerate(kept.values()):
        if held_out is not None:
            predictions[i] = held_out
    observations = [o for _, o, _ in kept.values()]
    return RecordedHistory(
        dataset=dataset,
        space_name=space_name,
        task_type=task.table.task_type,
        space=task.space.configuration_space,
        configurations=tuple(o.trial.configuration for o in observations),
        statuses=tuple(o.status for o in observations),
        seconds=np.array([min(o.fit_seconds or o.duration_seconds, limit_seconds) for o in observations]),
        validation=predictions[:, np.searchsorted(rows.unseen, rows.validation)],
        test=predictions[:, np.searchsorted(rows.unseen, rows.test)],
        y_validation=rows.y[rows.validation],
        y_test=rows.y[rows.test],
        searches=tuple(search.name for search, _, _ in kept.values()),
        paths=tuple(o.outcome.path for o in observations),
        causes=tuple("" if o.error is None else str(o.error).partition("\n")[0] for o in observations),
        training_rows=rows.training,
        unseen_rows=np.concatenate([rows.validation, rows.test]),
        facts={
            "n_columns": task.space.profile.n_columns,
            "n_classes": task.space.profile.n_classes,
            "n_steering_rows": len(rows.steering),
            "limit_cpu_seconds": limit_seconds,
            "seed": SEED,
            "versions": versions(),
        },
    )


def is_recorded(path: Path, searches: Iterable[PlannedSearch]) -> bool:
    """Return whether a file holds what these searches find."""
    return path.exists() and {search.name for search in searches} <= set(load_recorded(path).searches)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--space", default="volcano")
    parser.add_argument("--configurations", type=int, default=600, help="drawn at random")
    parser.add_argument("--found", type=int, default=600, help="trials of searches, in all")
    parser.add_argument("--training-rows", type=int, default=MostRows().training, help="at most")
    parser.add_argument("--test-rows", type=int, default=MostRows().test, help="at most")
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds per configuration")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    add_scheduler_argument(parser)
    parser.add_argument("--work", type=Path, default=Path(".recording"), help="work in progress")
    parser.add_argument("--out", type=Path, default=RECORDED_LARGE)


def main(arguments: argparse.Namespace) -> None:
    searches = plan_searches(arguments.configurations, arguments.found)
    with open_cluster(arguments.scheduler, n_threads=arguments.workers) as cluster:
        for table in find_tables(arguments.data, arguments.tables):
            path = arguments.out / f"{table.name}-{arguments.space}.zip"
            if is_recorded(path, searches):
                print(f"{path} is there", flush=True)
                continue
            record(
                table,
                work=arguments.work,
                out=arguments.out,
                space_name=arguments.space,
                searches=searches,
                most=MostRows(training=arguments.training_rows, test=arguments.test_rows),
                limit_seconds=arguments.limit,
                n_workers=arguments.workers,
                cluster=cluster,
            )
