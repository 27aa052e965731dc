"""The package itself with default settings, in the environment that the benchmark runs in."""

from __future__ import annotations

import pickle
import time

from exchange import read_task, write_predictions

from cashmere import AutoClassifier, AutoRegressor

if __name__ == "__main__":
    task = read_task()
    start = time.monotonic()
    model = (AutoClassifier if task.is_classification else AutoRegressor)(
        budget=f"{task.seconds_left:.1f}s",
        metric=task.metric,
        n_workers=task.threads,
        random_state=task.seed,
    ).fit(task.X, task.y)
    fit_seconds = time.monotonic() - start
    predictions = model.predict_proba(task.X_test) if task.is_classification else model.predict(task.X_test)
    predict_seconds = time.monotonic() - start - fit_seconds
    write_predictions(
        task,
        predictions,
        model.classes_ if task.is_classification else None,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        model_bytes=len(pickle.dumps(model)),
        models=len(model.study_.history),
        packages=["cashmere-automl", "scikit-learn", "lightgbm"],
        first_model_seconds=min((o.finished_at for o in model.study_.history.successes), default=None),
    )
