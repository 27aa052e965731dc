"""Test error of the ensemble against LightGBM with default parameters, on the same split of real tables.

    python -m benchmarks.experiments.first_light --data DIR --budgets 50trials 60s --seeds 0

One row per table, budget and seed is written to ``benchmarks/results/first_light.csv`` as soon as it is known; existing
rows are not run again. The test rows are used only at the end.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import time
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables

RESULTS = Path(__file__).parents[1] / "results" / "first_light.csv"
TABLES = ["colic", "eucalyptus", "satimage", "bank-marketing", "wine_quality"]
FIELDS = [
    "table", "task", "rows", "columns", "budget", "seed", "metric", "ensemble_loss", "lightgbm_loss", "single_loss",
    "ensemble_error", "lightgbm_error", "validation_loss", "honest_loss", "trials", "failures", "seconds",
    "lightgbm_seconds", "date", "machine",
]  # fmt: skip


def evaluate(truth, prediction, probabilities, labels):
    """Return (loss, error): log loss and error rate, or RMSE twice."""
    from sklearn.metrics import log_loss

    if probabilities is None:
        rmse = float(np.sqrt(np.mean((truth - prediction) ** 2)))
        return rmse, rmse
    return float(log_loss(truth, probabilities, labels=labels)), float(np.mean(truth != prediction))


def lightgbm_default(X_train, y_train, X_test, y_test):
    from lightgbm import LGBMClassifier, LGBMRegressor

    start = time.perf_counter()
    X_train, X_test = (X.rename(columns={name: f"c{i}" for i, name in enumerate(X.columns)}) for X in (X_train, X_test))
    classification = y_train.dtype.kind not in "fi"
    model = (LGBMClassifier if classification else LGBMRegressor)(verbose=-1, random_state=0).fit(X_train, y_train)
    probabilities = model.predict_proba(X_test) if classification else None
    result = evaluate(y_test, model.predict(X_test), probabilities, getattr(model, "classes_", None))
    return *result, time.perf_counter() - start


def run(table: BenchmarkTable, budget: str, seed: int) -> dict:
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
    return {
        "table": table.name,
        "task": table.task_type.value,
        "rows": len(X),
        "columns": X.shape[1],
        "budget": budget,
        "seed": seed,
        "metric": information["metric"],
        "ensemble_loss": loss,
        "lightgbm_loss": reference,
        "single_loss": model.leaderboard_["loss"].min(),
        "ensemble_error": error,
        "lightgbm_error": reference_error,
        "validation_loss": information["ensemble_loss"],
        "honest_loss": information["cross_fitted_loss"],
        "trials": len(model.study_.history),
        "failures": len(model.failures_),
        "seconds": round(seconds, 1),
        "lightgbm_seconds": round(reference_seconds, 2),
        "date": date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--budgets", nargs="+", default=["50trials", "60s"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    tables = find_tables(arguments.data, arguments.tables)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    done = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame(columns=FIELDS)
    keys = {(r.table, r.budget, int(r.seed)) for r in done.itertuples()}
    for seed in arguments.seeds:
        for table in tables:
            for budget in arguments.budgets:
                if (table.name, budget, seed) in keys:
                    continue
                row = run(table, budget, seed)
                new = not arguments.out.exists()
                with arguments.out.open("a", newline="") as file:
                    writer = csv.DictWriter(file, FIELDS)
                    if new:
                        writer.writeheader()
                    writer.writerow(row)
                better = "better" if row["ensemble_loss"] <= row["lightgbm_loss"] else "WORSE"
                print(
                    f"{table.name:<16} {budget:<9} seed {seed}  {row['metric']}: ensemble {row['ensemble_loss']:.4f} "
                    f"LightGBM {row['lightgbm_loss']:.4f} {better:<6}  error {row['ensemble_error']:.4f} / "
                    f"{row['lightgbm_error']:.4f}  {row['trials']} trials, {row['failures']} failed, "
                    f"{row['seconds']} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
