"""LightGBM tuned by Optuna's TPE as its users do: five folds, early stopping, the best configuration fitted on all.

Akiba et al. (2019), Optuna: a next-generation hyperparameter optimization framework, KDD. The ranges are those of
Optuna's LightGBM example, and the learning rate.
"""

from __future__ import annotations

import time
from typing import Any

import lightgbm
import numpy as np
import optuna
from exchange import Task, read_task, write_predictions
from sklearn.model_selection import KFold, StratifiedKFold

N_FOLDS = 5
MAX_ROUNDS = 2000
PATIENCE = 50
"""Rounds without a lower loss after which no tree is added."""


def suggest(trial: optuna.Trial) -> dict[str, Any]:
    """Return the parameters of a trial."""
    return {
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
        "lambda_l1": trial.suggest_float("lambda_l1", 1e-8, 10.0, log=True),
        "lambda_l2": trial.suggest_float("lambda_l2", 1e-8, 10.0, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 2, 256),
        "feature_fraction": trial.suggest_float("feature_fraction", 0.4, 1.0),
        "bagging_fraction": trial.suggest_float("bagging_fraction", 0.4, 1.0),
        "bagging_freq": trial.suggest_int("bagging_freq", 1, 7),
        "min_child_samples": trial.suggest_int("min_child_samples", 5, 100),
    }


class Objective:
    """Mean loss over the folds. The number of trees is the mean of those at which the folds stopped."""

    def __init__(self, task: Task, y: np.ndarray, fixed: dict[str, Any]) -> None:
        self._task, self._y, self._fixed = task, y, fixed
        folds = (StratifiedKFold if task.is_classification else KFold)(N_FOLDS, shuffle=True, random_state=task.seed)
        self._folds = list(folds.split(task.X, y))
        self._slowest_fit = 0.0

    def __call__(self, trial: optuna.Trial) -> float:
        """Return the loss of a trial, or end the search when its time is up."""
        parameters = self._fixed | suggest(trial)
        losses, rounds = [], []
        for train, validation in self._folds:
            # The last fit is on all rows and may be as slow as any so far: the time for it is kept, twice over.
            if trial.number and self._task.seconds_left < 3 * self._slowest_fit + 0.5:
                trial.study.stop()
                raise optuna.TrialPruned
            start = time.monotonic()
            parts = [lightgbm.Dataset(self._task.X.iloc[rows], self._y[rows]) for rows in (train, validation)]
            model = lightgbm.train(
                parameters,
                parts[0],
                MAX_ROUNDS,
                valid_sets=[parts[1]],
                callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
            )
            self._slowest_fit = max(self._slowest_fit, time.monotonic() - start)
            losses.append(next(iter(model.best_score["valid_0"].values())))
            rounds.append(model.best_iteration)
        trial.set_user_attr("rounds", round(float(np.mean(rounds))))
        return float(np.mean(losses))


if __name__ == "__main__":
    task = read_task()
    start = time.monotonic()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    classes, y = np.unique(task.y, return_inverse=True) if task.is_classification else (None, task.y.to_numpy())
    metrics = {"binary": "binary_logloss", "multiclass": "multi_logloss", "regression": "rmse"}
    fixed = {
        "objective": task.kind,
        "metric": metrics[task.kind],
        "num_class": len(classes) if task.kind == "multiclass" else 1,
        "num_threads": task.threads,
        "seed": task.seed,
        "verbosity": -1,
    }
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=task.seed))
    study.optimize(Objective(task, y, fixed), timeout=task.seconds_left)
    best = study.best_trial
    model = lightgbm.train(fixed | best.params, lightgbm.Dataset(task.X, y), best.user_attrs["rounds"])
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
        models=len(study.trials),
        packages=["optuna", "lightgbm"],
    )
