"""TPOT's `TPOTClassifier` and `TPOTRegressor` with default settings but one: pipelines evolved by genetic programming.

Olson et al. (2016), Evaluation of a tree-based pipeline optimization tool for automating data science. Categories and
gaps need its default preprocessing (imputation, one column per level).
"""

from __future__ import annotations

import pickle
import time

from exchange import read_task, write_predictions
from tpot import TPOTClassifier, TPOTRegressor


def main() -> None:
    """Fit, and leave predictions and facts."""
    task = read_task()
    start = time.monotonic()
    kind, scorer = (
        (TPOTClassifier, "neg_log_loss") if task.is_classification else (TPOTRegressor, "neg_root_mean_squared_error")
    )
    model = kind(
        scorers=[scorer],
        preprocessing=True,
        categorical_features=list(task.X.select_dtypes("category").columns),
        max_time_mins=task.seconds_left / 60,
        # While evaluations run, it looks at the clock only when the time of one of them is over; 10 minutes by default.
        max_eval_time_mins=task.seconds_left / 60 / 6,
        n_jobs=task.threads,
        random_state=task.seed,
        verbose=0,
    )
    # Its classes are numbers from 0 on.
    classes = sorted(task.y.unique()) if task.is_classification else None
    model.fit(task.X, task.y if classes is None else task.y.map({name: code for code, name in enumerate(classes)}))
    fit_seconds = time.monotonic() - start
    predictions = model.predict_proba(task.X_test) if task.is_classification else model.predict(task.X_test)
    predict_seconds = time.monotonic() - start - fit_seconds
    write_predictions(
        task,
        predictions,
        classes,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        model_bytes=len(pickle.dumps(model.fitted_pipeline_)),
        models=len(model.evaluated_individuals),
        packages=["TPOT", "lightgbm", "xgboost", "scikit-learn"],
    )


if __name__ == "__main__":  # its worker processes import this module
    main()
