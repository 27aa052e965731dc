"""Log a finished run to MLflow: settings, curves, report, leaderboard, and a model that MLflow can serve."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from cashmere.data.schema import TableSchema
from cashmere.exceptions import MissingDependencyError, TrackingError
from cashmere.model import mlflow_model
from cashmere.model.files import find_model
from cashmere.model.predictor import Predictor
from cashmere.model.probe import typical_row
from cashmere.model.requirements import model_requirements
from cashmere.report import summarise_run, write_report
from cashmere.storage import run_leaderboard

_BATCH = 1000
"""How many metric values MLflow accepts at a time."""


def log_to_mlflow(folder: str | Path) -> str:
    """Log a finished run to MLflow, and return the id of the MLflow run.

    MLflow's own settings, such as the variables ``MLFLOW_TRACKING_URI`` and ``MLFLOW_EXPERIMENT_NAME``, determine
    where. Logged are

    - the settings as parameters, and the digest and the version as tags;
    - as metrics by trial, its score (``trial_log_loss``), the best score so far (``best_log_loss``), and the score of
      the ensemble (``ensemble_log_loss``); as single metrics, the cross-fitted score, the latency and the size;
    - ``report.html`` and ``leaderboard.csv``;
    - the model, for ``mlflow.pyfunc.load_model``, with its signature, an artificial row as example, and the
      requirements from `cashmere.model.requirements`. No training rows are logged, except those that a member stores,
      as nearest neighbours do.

    Parameters
    ----------
    folder : path
        The directory of a finished run. It is logged to MLflow's active run, or to a new one if none is active.

    Raises
    ------
    MissingDependencyError
        If MLflow is not installed.
    TrackingError
        If MLflow rejects the run, or cannot be reached.
    RunDirectoryError, CorruptStoreError, ModelFileError
        If the folder is not a run directory, or is damaged.
    """
    try:
        import mlflow
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise MissingDependencyError("mlflow-skinny", "Logging to MLflow", "mlflow") from error
    folder = Path(folder)
    summary = summarise_run(folder)
    model = find_model(folder)
    predictor = Predictor.load(model)
    requirements = model_requirements(model)
    board, _ = run_leaderboard(folder)
    report = write_report(folder)
    try:
        with contextlib.ExitStack() as stack:
            active = mlflow.active_run() or stack.enter_context(mlflow.start_run(run_name=summary["run"]))
            mlflow.log_params(summary["settings"])
            tags = {"digest": summary["digest"], "version": summary["versions"].get("cashmere-automl")}
            mlflow.set_tags({f"cashmere.{name}": value for name, value in tags.items()})
            mlflow.log_artifact(str(report))
            mlflow.log_text(board.to_csv(index=False), "leaderboard.csv")
            mlflow.pyfunc.log_model(
                name="model",
                loader_module=mlflow_model.__name__,
                data_path=str(model),
                signature=_signature(predictor),
                input_example=typical_row(predictor),
                pip_requirements=requirements,
            )
            # After the model, because MLflow would log existing metrics again with it.
            metrics = [mlflow.entities.Metric(*value) for value in _metrics(summary)]
            for first in range(0, len(metrics), _BATCH):
                mlflow.MlflowClient().log_batch(active.info.run_id, metrics=metrics[first : first + _BATCH])
            return str(active.info.run_id)
    except MlflowException as error:
        raise TrackingError(
            f"MLflow does not accept the run {folder} ({error}). Check MLFLOW_TRACKING_URI, and that you "
            "may write there."
        ) from error


_REFUSED = re.compile(r"[^\w\-. :/]")
"""Characters that no name of an MLflow metric may have, such as those of ``<lambda>``."""


def _metrics(summary: Mapping[str, Any]) -> Iterator[tuple[str, float, int, int]]:
    """Yield key, value, time in milliseconds since 1970, and step of each metric."""
    began = datetime.fromisoformat(summary["created"]).timestamp()
    headline, resources, curves = summary["headline"], summary["resources"], summary["curves"]
    metric = "loss" if summary["metric"]["is_loss"] else _REFUSED.sub("_", summary["metric"]["name"])

    def at(seconds: float | None) -> int:
        return int(1000 * (began + (seconds or 0.0)))

    for point in curves["trials"]:
        for key, value in ((f"trial_{metric}", point["score"]), (f"best_{metric}", point["best_score"])):
            if value is not None:
                yield key, value, at(point["seconds"]), point["trial"]
    for point in curves["ensemble"]:
        yield f"ensemble_{metric}", point["score"], at(point["seconds"]), point["trial"]
    single = {
        f"cross_fitted_{metric}": headline["cross_fitted_score"],
        f"baseline_{metric}": headline["baseline_score"],
        "failed_trials": headline["failures"],
        **{name: resources[name] for name in ("single_row_ms", "batch_rows_per_second", "model_bytes")},
    }
    for key, value in single.items():
        if value is not None:
            yield key, value, at(headline["seconds"]), 0


def _signature(predictor: Predictor) -> Any:
    """Describe inputs and outputs for MLflow.

    MLflow only checks the names of columns. The model checks their content, and accepts more: missing values, or whole
    numbers among others.
    """
    from mlflow.models import ModelSignature, infer_signature
    from mlflow.types.schema import AnyType, ColSpec, DataType, ParamSchema, ParamSpec, Schema

    schema: TableSchema = predictor.schema
    columns = [ColSpec(AnyType(), column.name, required=column.dropped is None) for column in schema.columns]
    outputs = infer_signature(model_output=predictor.predict(typical_row(predictor))).outputs
    is_classification = predictor.target.task_type.is_classification
    proba = ParamSchema([ParamSpec("proba", DataType.boolean, False)]) if is_classification else None
    return ModelSignature(Schema(columns), outputs, proba)
