"""Run strategies for real, one after the other, and say where the time went.

    python -m benchmarks run --data ../shared/data --table phoneme --trials 100 --strategies random bo divbo optdivbo

Each run fits on three quarters of the table and is judged on the rest. Times are wall seconds: of the whole run, of
deciding, of training (summed over workers) and of choosing and saving ensembles. Diversity is the minimum distance of
the last 50 suggestions to the pool before them (`cashmere.analysis`). All columns of runs.csv are explained in
`docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.first_light import evaluate
from cashmere import AutoClassifier, AutoRegressor
from cashmere.analysis import pool_updates, read_predictions, trace_pool
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.store import RunStore

COLUMNS = [
    "strategy", "trials", "failed", "seconds", "deciding", "training", "ensembles", "validation", "test", "test_error",
    "min_diversity", "updates_50", "effective_50",
]  # fmt: skip


def run(entry: dict[str, Any], strategy: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit one strategy on three quarters of a table, judge the ensemble on the rest."""
    from sklearn.model_selection import train_test_split

    frame = pd.read_parquet(arguments.data / entry["file"])
    X, y = frame.drop(columns="target"), frame["target"].to_numpy()
    classes = entry["task"] != "regression"
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, random_state=arguments.seed, stratify=y if classes else None
    )
    folder = arguments.out / f"{entry['name']}-{strategy.replace(':', '-')}-{arguments.seed}"
    model = (AutoClassifier if classes else AutoRegressor)(
        budget=f"{arguments.trials}trials",
        metric=arguments.metric,
        strategy=strategy,
        space=arguments.space,
        resampling=arguments.resampling,
        lookahead=arguments.lookahead,
        n_workers=arguments.workers,
        trial_timeout=arguments.limit,
        run_directory=folder,
        random_state=arguments.seed,
    ).fit(X_train, y_train)
    probabilities = model.predict_proba(X_test) if classes else None
    test, test_error = evaluate(y_test, model.predict(X_test), probabilities, getattr(model, "classes_", None))
    with RunStore(folder, read_only=True) as store:
        rows = store.rows()
        fact = store.fact
        task = TaskType(json.loads((folder / "schema.json").read_text())["target"]["task_type"])
        metric = get_metric(arguments.metric or ("log_loss" if classes else "rmse"), task)
        recorded = read_predictions(folder)
        trajectory = trace_pool(recorded.predictions, recorded.losses, recorded.y, metric, weight=recorded.weight)
        updates = pool_updates(trajectory, last=50)
        return {
            "strategy": strategy,
            "trials": len(rows),
            "failed": sum(row["status"] != "success" for row in rows),
            "seconds": fact("elapsed_seconds"),
            "deciding": fact("suggest_seconds"),
            "training": sum(row["duration_seconds"] for row in rows),
            "ensembles": fact("ensemble_seconds"),
            "validation": fact("ensemble_loss"),
            "test": test,
            "test_error": test_error,
            "min_diversity": float(np.nanmean(trajectory.minimum_diversity[-50:])),
            "updates_50": updates.updates,
            "effective_50": updates.effective,
        }


def to_table(rows: list[dict[str, Any]], title: str) -> Table:
    """Return one column per strategy, so that narrow terminals can show all numbers."""
    table = Table(COLUMNS[0], title=title)
    for row in rows:
        table.add_column(row[COLUMNS[0]], justify="right", overflow="fold")
    for name in COLUMNS[1:]:
        values = (row[name] for row in rows)
        table.add_row(name, *(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values))
    return table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with manifest.json")
    parser.add_argument("--table", required=True)
    parser.add_argument("--strategies", nargs="+", default=["random", "bo", "divbo", "optdivbo", "ensemble_gain"])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--space", default="volcano")
    parser.add_argument("--metric", help="default: log_loss or rmse")
    parser.add_argument("--resampling", default="holdout")
    parser.add_argument("--lookahead", type=int, help="1: strictly sequential, as in the papers")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", default="20s", help="wall time of a trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(".replay/runs"), help="run directories, and runs.csv")


def main(arguments: argparse.Namespace) -> None:
    manifest = {entry["name"]: entry for entry in json.loads((arguments.data / "manifest.json").read_text())}
    if arguments.table not in manifest:
        raise SystemExit(f"no table {arguments.table!r} in {arguments.data}; there are {', '.join(sorted(manifest))}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    console, rows = Console(), []
    with (arguments.out / "runs.csv").open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["table", "seed", *COLUMNS])
        for strategy in arguments.strategies:
            row = run(manifest[arguments.table], strategy, arguments)
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow({"table": arguments.table, "seed": arguments.seed, **row})
            file.flush()
            rows.append(row)
            console.print(f"{strategy}: {row['seconds']:.0f} s")
    console.print(to_table(rows, f"{arguments.table}, {arguments.trials} trials"))
