"""FLAML's `AutoML` with default settings: cheap configurations first, the best single model at the end.

Wang et al. (2021), FLAML: a fast and lightweight AutoML library, MLSys.
"""

from __future__ import annotations

import pickle
import time

from exchange import read_task, write_predictions
from flaml import AutoML

if __name__ == "__main__":
    task = read_task()
    start = time.monotonic()
    model = AutoML()
    model.fit(
        task.X,
        task.y,
        task="classification" if task.is_classification else "regression",
        metric=task.metric,
        time_budget=task.seconds_left,
        n_jobs=task.threads,
        seed=task.seed,
        log_file_name=str(task.folder / "flaml.log"),
        log_type="all",  # a line per model, not only those that were better
        verbose=0,
    )
    fit_seconds = time.monotonic() - start
    predictions = model.predict_proba(task.X_test) if task.is_classification else model.predict(task.X_test)
    predict_seconds = time.monotonic() - start - fit_seconds
    lines = (task.folder / "flaml.log").read_text().splitlines()
    write_predictions(
        task,
        predictions,
        model.classes_ if task.is_classification else None,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        model_bytes=len(pickle.dumps(model)),
        models=sum('"record_id"' in line for line in lines),
        packages=["flaml", "lightgbm", "xgboost-cpu", "scikit-learn"],
    )
