"""One LightGBM with default parameters, stopped early on a tenth of the rows or when the time is up."""

from __future__ import annotations

import time

import lightgbm
import numpy as np
from exchange import read_task, write_predictions
from lightgbm.callback import CallbackEnv, EarlyStopException
from sklearn.model_selection import train_test_split

LEARNING_RATE = 0.05
MAX_ROUNDS = 10_000
PATIENCE = 100
"""Rounds without a lower loss after which no tree is added."""

SHARE_OF_TIME = 0.9
"""What is left is for predicting the test rows."""


if __name__ == "__main__":
    task = read_task()
    start = time.monotonic()
    end = start + SHARE_OF_TIME * task.seconds_left
    classes, y = np.unique(task.y, return_inverse=True) if task.is_classification else (None, task.y.to_numpy())
    train, validation = train_test_split(
        np.arange(len(y)), test_size=0.1, random_state=task.seed, stratify=y if task.is_classification else None
    )
    metrics = {"binary": "binary_logloss", "multiclass": "multi_logloss", "regression": "rmse"}
    parameters = {
        "objective": task.kind,
        "metric": metrics[task.kind],
        "num_class": len(classes) if task.kind == "multiclass" else 1,
        "learning_rate": LEARNING_RATE,
        "num_threads": task.threads,
        "seed": task.seed,
        "verbosity": -1,
    }

    def stop_in_time(state: CallbackEnv) -> None:
        """End training when the time is up; earlier rounds are kept."""
        if time.monotonic() > end:
            raise EarlyStopException(state.iteration, state.evaluation_result_list)

    parts = [lightgbm.Dataset(task.X.iloc[rows], y[rows]) for rows in (train, validation)]
    model = lightgbm.train(
        parameters,
        parts[0],
        MAX_ROUNDS,
        valid_sets=[parts[1]],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False), stop_in_time],
    )
    fit_seconds = time.monotonic() - start
    predictions = np.asarray(model.predict(task.X_test))
    predict_seconds = time.monotonic() - start - fit_seconds
    if task.kind == "binary":
        predictions = np.column_stack([1 - predictions, predictions])
    write_predictions(
        task,
        predictions,
        classes,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        model_bytes=len(model.model_to_string().encode()),
        models=1,
        packages=["lightgbm"],
    )
