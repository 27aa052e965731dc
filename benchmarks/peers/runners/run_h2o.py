"""H2O AutoML with default settings: random search over boosters, forests, networks and linear models, then stacking.

LeDell and Poirier (2020), H2O AutoML: scalable automatic machine learning, AutoML workshop at ICML. Needs Java.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path

import h2o
from exchange import read_task, write_predictions
from h2o.automl import H2OAutoML


def free_port() -> int:
    """Return a port that is free now, and whose successor H2O takes too."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    task = read_task()
    start = time.monotonic()
    h2o.init(
        port=free_port(),
        bind_to_localhost=True,
        nthreads=task.threads,
        ice_root=str(task.folder),
        log_dir=str(task.folder),
        name=f"cashmere_{task.folder.name}",
        strict_version_check=False,
    )
    h2o.no_progress()
    # Classes by number: H2O renames columns of probabilities whose class has a number as its name.
    classes = sorted(task.y.unique()) if task.is_classification else []
    y = task.y.map({name: f"class{i}" for i, name in enumerate(classes)}) if classes else task.y
    kinds = {name: "enum" if task.X[name].dtype == "category" else "real" for name in task.X.columns}
    train = h2o.H2OFrame(task.X.assign(target=y), column_types=kinds | {"target": "enum" if classes else "real"})
    test = h2o.H2OFrame(task.X_test, column_types=kinds)
    model = H2OAutoML(
        max_runtime_secs=max(1, round(task.seconds_left)),
        seed=task.seed,
        sort_metric="logloss" if classes else "RMSE",
    )
    model.train(y="target", training_frame=train)
    fit_seconds = time.monotonic() - start
    predictions = model.leader.predict(test).as_data_frame()
    predict_seconds = time.monotonic() - start - fit_seconds
    write_predictions(
        task,
        predictions[[f"class{i}" for i in range(len(classes))] if classes else "predict"].to_numpy(),
        classes,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        model_bytes=Path(h2o.save_model(model.leader, str(task.folder / "model"))).stat().st_size,
        models=model.leaderboard.nrow,
        packages=["h2o"],
    )
    h2o.cluster().shutdown()
