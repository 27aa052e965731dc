"""Test error of the ensemble against LightGBM with default parameters, on the same split of real tables.

    python -m benchmarks.experiments.first_light --data DIR --budgets 50trials 60s --seeds 0

One row per table, budget and seed is added to a file as soon as it is known; rows that it has are not made again. The
test rows are used only at the end.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables

TABLES = ["colic", "eucalyptus", "satimage", "bank-marketing", "wine_quality"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run beside LightGBM.

    Attributes
    ----------
    table, task, rows, columns
        What was fitted; all of its rows.
    budget, seed
        Of the run; the seed also draws the test rows.
    metric : str
        Of the losses.
    ensemble_loss, lightgbm_loss, single_loss : float
        On test rows, except the last: the lowest validation loss of a trial.
    ensemble_error, lightgbm_error : float
        Error rates on test rows; for values the loss again.
    validation_loss, cross_fitted_loss : float
        Of the ensemble, on the rows that chose it and cross-fitted; NaN if unknown.
    trials, failures : int
        All trials, and those that failed.
    seconds, lightgbm_seconds : float
        Wall seconds.
    date, machine : str
        When and where.
    """

    table: str
    task: str
    rows: int
    columns: int
    budget: str
    seed: int
    metric: str
    ensemble_loss: float
    lightgbm_loss: float
    single_loss: float
    ensemble_error: float
    lightgbm_error: float
    validation_loss: float
    cross_fitted_loss: float
    trials: int
    failures: int
    seconds: float
    lightgbm_seconds: float
    date: str
    machine: str


def evaluate(truth: Any, prediction: Any, probabilities: Any, labels: Any) -> tuple[float, float]:
    """Return (loss, error): log loss and error rate, or RMSE twice."""
    from sklearn.metrics import log_loss

    if probabilities is None:
        rmse = float(np.sqrt(np.mean((truth - prediction) ** 2)))
        return rmse, rmse
    return float(log_loss(truth, probabilities, labels=labels)), float(np.mean(truth != prediction))


def lightgbm_default(
    X_train: pd.DataFrame, y_train: Any, X_test: pd.DataFrame, y_test: Any
) -> tuple[float, float, float]:
    from lightgbm import LGBMClassifier, LGBMRegressor

    start = time.perf_counter()
    X_train, X_test = (X.rename(columns={name: f"c{i}" for i, name in enumerate(X.columns)}) for X in (X_train, X_test))
    classification = y_train.dtype.kind not in "fi"
    model = (LGBMClassifier if classification else LGBMRegressor)(verbose=-1, random_state=0).fit(X_train, y_train)
    probabilities = model.predict_proba(X_test) if classification else None
    result = evaluate(y_test, model.predict(X_test), probabilities, getattr(model, "classes_", None))
    return *result, time.perf_counter() - start


def run(table: BenchmarkTable, budget: str, seed: int) -> ComparedRun:
    from sklearn.model_selection import train_test_split

    from cashmere import AutoClassifier, AutoRegressor

    X, target = table.read()
    classification = table.is_classification
    y = target.to_numpy()
    if classification:
        y = y.astype(str)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, random_state=seed, stratify=y if classification else None
    )
    start = time.perf_counter()
    model = (AutoClassifier if classification else AutoRegressor)(budget=budget, random_state=seed).fit(
        X_train, y_train
    )
    seconds = time.perf_counter() - start
    probabilities = model.predict_proba(X_test) if classification else None
    loss, error = evaluate(y_test, model.predict(X_test), probabilities, getattr(model, "classes_", None))
    reference, reference_error, reference_seconds = lightgbm_default(X_train, y_train, X_test, y_test)
    information = model._predictor.information
    cross_fitted = information["cross_fitted_loss"]
    return ComparedRun(
        table=table.name,
        task=table.task_type.value,
        rows=len(X),
        columns=X.shape[1],
        budget=budget,
        seed=seed,
        metric=information["metric"],
        ensemble_loss=loss,
        lightgbm_loss=reference,
        single_loss=float(model.leaderboard_["loss"].min()),
        ensemble_error=error,
        lightgbm_error=reference_error,
        validation_loss=information["ensemble_loss"],
        cross_fitted_loss=np.nan if cross_fitted is None else cross_fitted,
        trials=len(model.study_.history),
        failures=len(model.failures_),
        seconds=round(seconds, 1),
        lightgbm_seconds=round(reference_seconds, 2),
        date=date.today().isoformat(),
        machine=f"{os.cpu_count()} cores, Python {platform.python_version()}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--budgets", nargs="+", default=["50trials", "60s"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--out", type=Path, default=Path(".replay/first_light.csv"), help="rows; grows")
    arguments = parser.parse_args()
    console, file = Console(width=160), RowFile(arguments.out, ComparedRun)
    done = file.keys("table", "budget", "seed")
    with until_interrupted(console):
        for seed in arguments.seeds:
            for table in find_tables(arguments.data, arguments.tables):
                for budget in arguments.budgets:
                    if (table.name, budget, seed) not in done:
                        found = run(table, budget, seed)
                        file.add([found])
                        console.print(_described(found), highlight=False)


def _described(found: ComparedRun) -> str:
    better = "better" if found.ensemble_loss <= found.lightgbm_loss else "WORSE"
    return (
        f"{found.table:<16} {found.budget:<9} seed {found.seed}  {found.metric}: ensemble {found.ensemble_loss:.4f} "
        f"LightGBM {found.lightgbm_loss:.4f} {better:<6}  error {found.ensemble_error:.4f} / "
        f"{found.lightgbm_error:.4f}  {found.trials} trials, {found.failures} failed, {found.seconds} s"
    )


if __name__ == "__main__":
    main()
