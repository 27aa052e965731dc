"""LightAutoML's `TabularUtilizedAutoML`, which uses the whole time for configurations of `TabularAutoML` in turn.

Vakhrushev et al. (2021), LightAutoML: AutoML solution for a large financial services ecosystem.
"""

from __future__ import annotations

import pickle
import time

import numpy as np
from exchange import read_task, write_predictions
from lightautoml.automl.presets.tabular_presets import TabularUtilizedAutoML
from lightautoml.tasks import Task

KINDS = {"binary": "binary", "multiclass": "multiclass", "regression": "reg"}

if __name__ == "__main__":
    task = read_task()
    start = time.monotonic()
    model = TabularUtilizedAutoML(
        task=Task(KINDS[task.kind]),
        timeout=max(1, round(task.seconds_left)),
        cpu_limit=task.threads,
        reader_params={"n_jobs": task.threads, "cv": 5, "random_state": task.seed},
        random_state=task.seed,
    )
    # Its classes are numbers from 0 on.
    classes = sorted(task.y.unique()) if task.is_classification else None
    codes = task.y if classes is None else task.y.map({name: code for code, name in enumerate(classes)}).astype(int)
    model.fit_predict(task.X.assign(target=codes), roles={"target": "target"}, verbose=0)
    fit_seconds = time.monotonic() - start
    predictions = model.predict(task.X_test).data
    predict_seconds = time.monotonic() - start - fit_seconds
    if task.kind == "binary":
        predictions = np.column_stack([1 - predictions, predictions])
    elif task.kind == "regression":
        predictions = predictions[:, 0]
    write_predictions(
        task,
        predictions,
        classes,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        model_bytes=len(pickle.dumps(model)),
        models=len(model.outer_pipes),
        packages=["lightautoml", "lightgbm", "catboost", "torch", "scikit-learn"],
    )
