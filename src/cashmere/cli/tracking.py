"""``cashmere mlflow``: log a run to MLflow."""

from __future__ import annotations

from cashmere.cli.app import app
from cashmere.cli.terminal import RunFolder, say, typed_errors


@app.command()
def mlflow(folder: RunFolder) -> None:
    """Log a finished run to MLflow, with its report and model.

    The variables MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME determine where.
    """
    with typed_errors():
        from cashmere.tracking import log_to_mlflow

        say(False, f"Logged to MLflow as run {log_to_mlflow(folder)}")
