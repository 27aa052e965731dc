"""AutoGluon's `TabularPredictor` with the preset ``best_quality``, as its authors compare it: bagging and stacking.

What needs torch or ray is not installed, so that there are no neural networks and folds run one after the other.
Erickson et al. (2020), AutoGluon-Tabular: robust and accurate AutoML for structured data.
"""

from __future__ import annotations

import time

from autogluon.tabular import TabularPredictor
from exchange import folder_bytes, read_task, write_predictions


def run(preset: str, *further_packages: str) -> None:
    """Fit with a preset and leave predictions and facts, among them the versions of further packages."""
    task = read_task()
    start = time.monotonic()
    predictor = TabularPredictor(
        label="target",
        problem_type=task.kind,
        eval_metric="log_loss" if task.is_classification else "root_mean_squared_error",
        path=str(task.folder / "autogluon"),
        verbosity=1,
    ).fit(
        task.X.assign(target=task.y),
        time_limit=task.seconds_left,
        presets=preset,
        num_cpus=task.threads,
        num_gpus=0,
    )
    fit_seconds = time.monotonic() - start
    predictions = (predictor.predict_proba if task.is_classification else predictor.predict)(task.X_test).to_numpy()
    predict_seconds = time.monotonic() - start - fit_seconds
    write_predictions(
        task,
        predictions,
        predictor.class_labels,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        model_bytes=folder_bytes(task.folder / "autogluon"),
        models=len(predictor.model_names()),
        packages=["autogluon.tabular", "lightgbm", "catboost", "xgboost-cpu", "scikit-learn", *further_packages],
    )


if __name__ == "__main__":
    run("best_quality")
