"""mljar-supervised's `AutoML` in the mode ``Compete``, as its authors compare it: tuned models, an ensemble, stacking.

Płońska and Płoński (2021), MLJAR: state-of-the-art automated machine learning framework for tabular data.
"""

from __future__ import annotations

import time

from exchange import folder_bytes, read_task, write_predictions
from supervised.automl import AutoML

if __name__ == "__main__":
    task = read_task()
    start = time.monotonic()
    model = AutoML(
        results_path=str(task.folder / "mljar"),
        mode="Compete",
        ml_task={"binary": "binary_classification", "multiclass": "multiclass_classification"}.get(
            task.kind, task.kind
        ),
        eval_metric="logloss" if task.is_classification else "rmse",
        total_time_limit=max(1, round(task.seconds_left)),
        n_jobs=task.threads,
        random_state=task.seed,
        explain_level=0,
        verbose=0,
    )
    model.fit(task.X, task.y)
    fit_seconds = time.monotonic() - start
    if task.is_classification:  # mljar sorts classes that look like numbers as numbers: only the names of columns tell
        predictions = model.predict_all(task.X_test).drop(columns="label")
        predictions.columns = predictions.columns.str.removeprefix("prediction_")
    else:
        predictions = model.predict(task.X_test)
    predict_seconds = time.monotonic() - start - fit_seconds
    write_predictions(
        task,
        predictions,
        predictions.columns if task.is_classification else None,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        model_bytes=folder_bytes(task.folder / "mljar"),
        models=len(model.get_leaderboard()),
        packages=["mljar-supervised", "lightgbm", "catboost", "xgboost", "scikit-learn"],
    )
