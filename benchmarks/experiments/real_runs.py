"""Run strategies for real, one after the other, and say where the time went.

    python -m benchmarks run --data DIR --table phoneme --trials 100 --strategies random bo divbo optdivbo

Each run fits on three quarters of the table and is judged on the rest. Times are wall seconds: of the whole run, of
deciding, of training (summed over workers) and of choosing and saving ensembles. Diversity is the minimum distance of
the last 50 suggestions to the pool before them (`cashmere.analysis`). Runs whose row is in runs.csv are shown and not
repeated; an interrupted run continues. All columns are explained in `docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.first_light import evaluate
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from cashmere import AutoClassifier, AutoRegressor
from cashmere.analysis import pool_updates, read_predictions, trace_pool
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.metrics import default_metric, get_metric
from cashmere.exceptions import CashmereError
from cashmere.records.budget import parse_seconds
from cashmere.space.named.registry import make_space
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import read_description
from cashmere.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """The settings that distinguish runs: the first columns of runs.csv, and the folder of the run.

    Attributes
    ----------
    table, strategy, metric, space, resampling : str
        Names; the strategy with its options.
    seed, trials, lookahead, workers : int
        As in `AutoClassifier`.
    limit : float
        Wall seconds of a trial.
    """

    table: str
    seed: int
    strategy: str
    trials: int
    metric: str
    space: str
    resampling: str
    lookahead: int
    workers: int
    limit: float

    @property
    def folder(self) -> Path:
        """Path of the run directory below ``--out``: the settings, then strategy and seed."""
        settings = (
            f"{self.table}-{self.trials}trials-{self.metric}-{self.space}-{self.resampling}-lookahead{self.lookahead}-"
            f"{self.workers}workers-{self.limit:g}s"
        )
        return Path(settings) / f"{self.strategy.replace(':', '-')}-{self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun(RunKey):
    """A row of runs.csv: a run and its results, which `docs/benchmarks.md` explains."""

    failed: int
    seconds: float
    deciding: float
    training: float
    ensembles: float
    validation: float
    test: float
    test_error: float
    min_diversity: float
    updates_50: int
    effective_50: int


COLUMNS = [field.name for field in fields(FinishedRun)]
RESULTS = COLUMNS[len(fields(RunKey)) :]


def run(table: BenchmarkTable, key: RunKey, out: Path) -> FinishedRun:
    """Fit one strategy on three quarters of a table, judge the ensemble on the rest."""
    from sklearn.model_selection import train_test_split

    X, target = table.read()
    y = target.to_numpy()
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, random_state=key.seed, stratify=y if table.is_classification else None
    )
    folder = out / key.folder
    model = (AutoClassifier if table.is_classification else AutoRegressor)(
        budget=f"{key.trials}trials",
        metric=key.metric,
        strategy=key.strategy,
        space=key.space,
        resampling=key.resampling,
        lookahead=key.lookahead,
        n_workers=key.workers,
        trial_timeout=key.limit,
        run_directory=folder,
        resume=True,
        random_state=key.seed,
    ).fit(X_train, y_train)
    probabilities = model.predict_proba(X_test) if table.is_classification else None
    test, test_error = evaluate(y_test, model.predict(X_test), probabilities, getattr(model, "classes_", None))
    _, schema = read_description(folder)
    metric = get_metric(key.metric, TaskType(schema["target"]["task_type"]))
    recorded = read_predictions(folder)
    trajectory = trace_pool(recorded.predictions, recorded.losses, recorded.y, metric, weight=recorded.weight)
    updates = pool_updates(trajectory, last=50)
    with RunStore(folder, read_only=True) as store:
        rows = store.rows()
        facts = store.facts()
        return FinishedRun(
            **asdict(key),
            failed=sum(row["status"] != "success" for row in rows),
            seconds=facts.elapsed_seconds,
            deciding=facts.suggest_seconds,
            training=sum(row["duration_seconds"] for row in rows),
            ensembles=facts.ensemble_seconds,
            validation=facts.ensemble_loss,
            test=test,
            test_error=test_error,
            min_diversity=float(np.nanmean(trajectory.minimum_diversity[-50:])),
            updates_50=updates.updates,
            effective_50=updates.effective,
        )


def make_keys(arguments: argparse.Namespace, table: BenchmarkTable) -> list[RunKey]:
    """Return the runs to make; an unusable setting or strategy ends the program before the first run."""
    if arguments.trials < 1:
        raise SystemExit(f"--trials must be at least 1; got {arguments.trials}.")
    lookahead = max(8, 2 * arguments.workers) if arguments.lookahead is None else arguments.lookahead
    if not 1 <= arguments.workers <= lookahead:
        raise SystemExit(f"--workers must be from 1 to the lookahead, {lookahead}; got {arguments.workers}.")
    try:
        metric = get_metric(arguments.metric or default_metric(table.task_type).name, table.task_type)
        limit = parse_seconds(arguments.limit, "--limit")
        X, target = table.read()
        profile = TaskProfile(
            task_type=table.task_type, n_rows=len(X), n_columns=X.shape[1],
            n_classes=target.nunique() if table.is_classification else 1,
        )  # fmt: skip
        space = make_space(arguments.space, profile).configuration_space
    except CashmereError as error:
        raise SystemExit(str(error)) from error
    for strategy in arguments.strategies:
        try:
            Study(space, strategy, metric=metric)
        except CashmereError as error:
            raise SystemExit(f"--strategies {strategy}: {error}") from error
    return [
        RunKey(
            table=table.name,
            seed=arguments.seed,
            strategy=strategy,
            trials=arguments.trials,
            metric=metric.name,
            space=arguments.space,
            resampling=arguments.resampling,
            lookahead=lookahead,
            workers=arguments.workers,
            limit=limit,
        )
        for strategy in dict.fromkeys(arguments.strategies)
    ]


def to_table(rows: Sequence[dict[str, Any]], title: str) -> Table:
    """Return one column per strategy, so that narrow terminals can show all numbers."""
    table = Table("strategy", title=title)
    for row in rows:
        table.add_column(row["strategy"], justify="right", overflow="fold")
    for name in RESULTS:
        values = (row[name] for row in rows)
        table.add_row(name, *(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values))
    return table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--table", required=True)
    parser.add_argument("--strategies", nargs="+", default=["random", "bo", "divbo", "optdivbo", "ensemble_gain"])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--space", default="volcano")
    parser.add_argument("--metric", help="default: log_loss or rmse")
    parser.add_argument("--resampling", default="holdout")
    parser.add_argument("--lookahead", type=int, help="1: strictly sequential, as in the papers (default: as in fit)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", default="20s", help="wall time of a trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(".replay/runs"), help="run directories, and runs.csv")


def main(arguments: argparse.Namespace) -> None:
    (table,) = find_tables(arguments.data, [arguments.table])
    keys = make_keys(arguments, table)
    console, file, rows = Console(), RowFile(arguments.out / "runs.csv", FinishedRun), []
    for key in keys:
        remark = " (finished earlier)"
        if (kept := file.frame(**asdict(key))).empty:
            file.add([run(table, key, arguments.out)])
            kept, remark = file.frame(**asdict(key)), ""
        (row,) = kept.to_dict("records")
        rows.append(row)
        console.print(f"{key.strategy}: {row['seconds']:.0f} s{remark}")
    console.print(to_table(rows, f"{arguments.table}, {arguments.trials} trials"))
