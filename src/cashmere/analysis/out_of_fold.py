"""Predictions of the ensemble of a run for rows that its models have not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.analysis.recorded import map_predictions, row_numbers, validation_rows
from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.base.files import failures_as
from cashmere.base.text import counted
from cashmere.data.task import TaskType
from cashmere.ensembles import Ensemble, choose_rows, ensemble_from_json
from cashmere.ensembles.calibration import Calibration
from cashmere.ensembles.threshold import decide
from cashmere.exceptions import CorruptStoreError, RunDirectoryError
from cashmere.storage.directory import RESTORE, read_targets
from cashmere.storage.facts import RunFacts
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import read_description, stored_metric

_BLOCK_VALUES = 20_000_000
"""Values that are combined at a time (rows times classes times members): 80 MB."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OutOfFold:
    """Targets and out-of-fold predictions of the ensemble of a run, for all or some of its validation rows.

    Each row is predicted by models that have not seen it. As for the selection score, the rows were used to choose the
    ensemble.

    Attributes
    ----------
    y : (n_rows,) array
        Class codes, or numbers for regression.
    predictions : (n_rows, n_classes) or (n_rows,) array
        Calibrated probabilities whose rows sum to one, or numbers for regression. Under a deviance, they keep the lower
        bound of the model, if the metric was given by its name.
    weight : (n_rows,) array or None
        Row weights.
    thresholds : (n_classes,) array or None
        Decision thresholds of the model, see `cashmere.ensembles.threshold.decide`.
    n_validation_rows : int
        Number of validation rows of the run, of which `y` contains all or those that were read.
    rows : (n_rows,) array of int64, or None
        Their numbers in the table, from 0, ascending. None for runs of earlier versions, which did not keep them: the
        order of the rows then depends on their content.
    """

    y: AnyArray
    predictions: Float64
    weight: FloatArray | None
    thresholds: Float64 | None
    n_validation_rows: int
    rows: IntArray | None

    def __repr__(self) -> str:
        """Return a line without the arrays, which would fill pages."""
        what = "values" if self.predictions.ndim == 1 else f"{self.predictions.shape[1]:,} classes"
        return f"{type(self).__name__}({counted(len(self.y), 'row')}, {what})"

    @property
    def decided(self) -> IntArray:
        """Codes of the predicted classes, ``(n_rows,)``."""
        return decide(self.predictions, self.thresholds)


def read_out_of_fold(folder: str | Path, *, max_rows: int | None = None, seed: int = 0) -> OutOfFold:
    """Read the out-of-fold predictions of the final ensemble of a run; the directory may be read-only.

    Parameters
    ----------
    folder : path
        The run directory.
    max_rows : int, optional
        Largest number of validation rows to read, spread evenly over the targets; by default all of them.
    seed : int
        Seed for the choice of rows.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run directory, the run has no final ensemble yet, or its model is the constant predictor.
    CorruptStoreError
        If a file is missing or damaged.

    Examples
    --------
    ::

        found = read_out_of_fold("income-run")
        table.iloc[found.rows].assign(predicted=found.decided)
        sklearn.metrics.brier_score_loss(found.y, found.predictions[:, 1])
    """
    folder = Path(folder)
    run, schema = read_description(folder)
    target: Mapping[str, Any] = schema.get("target") or {}
    with RunStore(folder, read_only=True) as store:
        facts = store.facts()
    ensemble = final_ensemble(folder, facts)
    validation = validation_rows(folder, run.get("settings") or {}, target.get("task_type"))
    y, weight = validation.y, validation.weight
    with failures_as(CorruptStoreError, folder / "schema.json", RESTORE):
        is_classification = TaskType(str(target.get("task_type"))).is_classification
        n_classes = len(target["classes"]) if is_classification else 1
        if not n_classes:
            raise ValueError("it names no class")
    rows = choose_rows(y, len(y) if max_rows is None else max_rows, np.random.default_rng(seed))
    numbers = row_numbers(folder, validation)
    if numbers is not None:
        rows = rows[np.argsort(numbers[rows])]
    members = [_member_predictions(store, facts, number, len(y)) for number in ensemble.members]
    shape = (n_classes,) if is_classification else ()
    with failures_as(CorruptStoreError, folder / "run.sqlite", RESTORE):
        calibration = None if facts.calibration is None else Calibration.from_json(facts.calibration)
        combined = np.empty((len(rows), *shape))
        step = max(1, _BLOCK_VALUES // (n_classes * len(members)))
        for start in range(0, len(rows), step):
            stack = [each[rows[start : start + step]] for each in members]
            if any(each.shape[1:] != shape or not np.isfinite(each).all() for each in stack):
                raise ValueError(f"a member's predictions are not finite numbers of the shape {(len(rows), *shape)}")
            block = ensemble.combine(stack)
            combined[start : start + step] = block if calibration is None else calibration.apply(block)
        if is_classification:
            combined /= combined.sum(axis=1, keepdims=True)
        elif (least := _least_prediction(folder, run.get("settings") or {}, target)) is not None:
            combined = np.maximum(combined, least)
        thresholds = _thresholds(facts, n_classes)
    if is_classification and not (y.dtype.kind == "i" and 0 <= y.min() <= y.max() < n_classes):
        raise CorruptStoreError(folder / "table.npz", f"holds codes of classes that schema.json lacks. {RESTORE}")
    return OutOfFold(
        y=y[rows],
        predictions=combined,
        weight=None if weight is None else weight[rows],
        thresholds=thresholds,
        n_validation_rows=len(y),
        rows=None if numbers is None else numbers[rows],
    )


def final_ensemble(folder: Path, facts: RunFacts) -> Ensemble:
    """Return the final ensemble of a run.

    Raises
    ------
    RunDirectoryError
        If there is none yet, or it is the constant predictor.
    CorruptStoreError
        If the stored ensemble is damaged.
    """
    if facts.ensemble is None:
        text = "holds no final ensemble yet. Wait for the run to end, or continue it with `cashmere resume`."
        raise RunDirectoryError(folder, text)
    with failures_as(CorruptStoreError, folder / "run.sqlite", RESTORE):
        ensemble = ensemble_from_json(facts.ensemble)
    if min(ensemble.members) < 0:
        text = (
            "holds a model that predicts a constant: no trial has succeeded. Continue it with `cashmere resume DIR "
            "--budget 10m`."
        )
        raise RunDirectoryError(folder, text)
    return ensemble


def _member_predictions(store: RunStore, facts: RunFacts, number: int, n_rows: int) -> AnyArray:
    """Return the predictions by which a member was chosen: their mean over the splits that it was fitted on."""
    split = (facts.splits or {}).get(str(number))
    n_splits = 1 if split is None else split["count"]
    path = store.predictions_path(number, n_splits)
    if n_splits > 1 and not path.exists():
        path = store.predictions_path(number)
    return map_predictions(path, n_rows)


def _least_prediction(folder: Path, settings: Mapping[str, Any], target: Mapping[str, Any]) -> float | None:
    """Return what the model predicts at least; None if it has no such bound."""
    metric = stored_metric(settings, target.get("task_type"))
    return None if metric is None else metric.least_prediction(*read_targets(folder / "table.npz"))


def _thresholds(facts: RunFacts, n_classes: int) -> Float64 | None:
    stored = (facts.decision or {}).get("thresholds")
    if stored is None:
        return None
    thresholds = np.array(stored, dtype=np.float64)
    if thresholds.shape != (n_classes,) or not (thresholds >= 0).all() or not np.isfinite(thresholds).all():
        raise ValueError(f"the decision thresholds are not {n_classes} numbers of at least 0")
    return thresholds
