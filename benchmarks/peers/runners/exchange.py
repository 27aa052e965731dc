"""What a runner receives and what it leaves; the same for every runner.

A runner is called with a folder that holds ``train.parquet`` (features and the column ``target``), ``test.parquet``
(the same features, no target) and ``settings.json``. It leaves ``predictions.parquet`` (a column per class, called like
it, with probabilities; or a column ``value``) and ``facts.json`` there. This module needs only pandas and pyarrow,
because it is imported in the environment of every peer.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is to be learned.

    Attributes
    ----------
    folder : Path
        Where everything is, also for files of the peer.
    X, X_test : DataFrame
        Features; text is categorical, with the levels of the training rows.
    y : Series
        Text for classes, numbers for values.
    kind : str
        ``binary``, ``multiclass`` or ``regression``.
    metric : str
        What the predictions will be judged by: ``log_loss`` or ``rmse``.
    seconds : float
        Wall seconds of the whole run.
    seed, threads : int
        Seed of random numbers; most threads to use.
    started : float
        Value of `time.monotonic` when the task was read.
    """

    folder: Path
    X: pd.DataFrame
    y: pd.Series
    X_test: pd.DataFrame
    kind: str
    metric: str
    seconds: float
    seed: int
    threads: int
    started: float = field(default_factory=time.monotonic)

    @property
    def is_classification(self) -> bool:
        """Whether the target holds classes."""
        return self.kind != "regression"

    @property
    def seconds_left(self) -> float:
        """Wall seconds until the budget is used up."""
        return self.seconds - (time.monotonic() - self.started)


def read_task() -> Task:
    """Read the folder that the command line names."""
    folder = Path(sys.argv[1])
    train, test = (pd.read_parquet(folder / f"{part}.parquet") for part in ("train", "test"))
    settings = json.loads((folder / "settings.json").read_text())
    X, y = train.drop(columns="target"), train["target"]
    for column in X.columns:
        if not pd.api.types.is_numeric_dtype(X[column]):
            levels = sorted(X[column].dropna().astype(str).unique())
            for frame in (X, test):
                frame[column] = pd.Categorical(frame[column].astype(str).where(frame[column].notna()), levels)
    return Task(folder=folder, X=X, y=y, X_test=test, kind=settings.pop("task"), **settings)


def write_predictions(
    task: Task,
    predictions: Any,
    classes: Any,
    *,
    fit_seconds: float,
    predict_seconds: float,
    model_bytes: int,
    models: int,
    packages: list[str],
    first_model_seconds: float | None = None,
) -> None:
    """Leave predictions and facts.

    Parameters
    ----------
    task : Task
        What was read.
    predictions : array
        Probabilities ``(n_test, n_classes)``, or values ``(n_test,)``.
    classes : sequence of str or None
        Name of each column of the probabilities.
    fit_seconds : float
        Wall seconds of fitting.
    predict_seconds : float
        Wall seconds of predicting all test rows at once.
    model_bytes : int
        Size of the fitted model on disk, as the peer saves it.
    models : int
        How many were trained, as the peer counts them.
    packages : list of str
        Packages whose versions are reported.
    first_model_seconds : float, optional
        When the first model stood, in seconds after the fit began; None if the peer does not tell.
    """
    columns = [str(name) for name in classes] if task.is_classification else ["value"]
    pd.DataFrame(predictions, columns=columns).to_parquet(task.folder / "predictions.parquet")
    facts = {
        "fit_seconds": round(fit_seconds, 2),
        "seconds_per_1000": round(1000 * predict_seconds / len(task.X_test), 5),
        "model_mib": round(model_bytes / 2**20, 3),
        "models": models,
        "versions": {name: version(name) for name in packages} | {"python": sys.version.split()[0]},
    }
    if first_model_seconds is not None:
        facts["first_model_seconds"] = round(first_model_seconds, 2)
    (task.folder / "facts.json").write_text(json.dumps(facts))


def folder_bytes(folder: Path) -> int:
    """Return the size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
