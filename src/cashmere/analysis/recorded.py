"""The predictions of a run's trials, read without the search space and without locking the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.base.array_files import map_array
from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.base.files import failures_as, open_regular
from cashmere.data.prepared import PreparedFolds
from cashmere.data.resampling import make_folds
from cashmere.data.task import TaskType
from cashmere.ensembles import choose_rows
from cashmere.exceptions import CorruptStoreError, RunDirectoryError
from cashmere.storage.directory import RESTORE, read_source, read_structure, read_targets
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import read_description


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedPredictions:
    """Validation predictions of the trials of a run, with losses, targets and weights.

    Attributes
    ----------
    predictions : tuple of (n_rows, n_classes) or (n_rows,) arrays or None
        In trial order; None for failures, and for trials that were not requested.
    losses : (n_trials,) array
        As recorded; NaN for failures.
    y : (n_rows,) array
        Class codes or values.
    weight : (n_rows,) array or None
        Row weights.
    rows : (n_rows,) array of int64, or None
        The number of each row in the table, from 0: their order depends on their content. None for runs of earlier
        versions, which did not keep them.
    folds : tuple of int arrays
        Positions, in the arrays above, of the rows that each fold validates.
    """

    predictions: tuple[AnyArray | None, ...]
    losses: FloatArray
    y: AnyArray
    weight: FloatArray | None
    rows: IntArray | None = None
    folds: tuple[IntArray, ...] = ()


def read_predictions(
    folder: str | Path,
    *,
    max_rows: int = 20_000,
    max_values: int | None = None,
    trials: Sequence[int] | None = None,
    seed: int = 0,
) -> RecordedPredictions:
    """Read the predictions of a run's trials; the run may still be in progress, and the directory read-only.

    Parameters
    ----------
    folder : path
        The run directory.
    max_rows : int
        Largest number of validation rows to read, spread evenly over the targets.
    max_values : int, optional
        Largest number of values (rows times classes) to read per trial.
    trials : sequence of int, optional
        Trials whose predictions to read; all by default.
    seed : int
        Seed for the choice of rows.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run directory, or the validation rows of a custom splitter are no longer stored.
    CorruptStoreError
        If a file is missing or damaged. Checksums are not verified: that is left to callers who act on the numbers.
    """
    folder = Path(folder)
    run, schema = read_description(folder)
    with RunStore(folder, read_only=True) as store:
        rows = store.rows()
    found = validation_rows(folder, run.get("settings") or {}, (schema.get("target") or {}).get("task_type"))
    y, weight = found.y, found.weight
    losses = np.array([np.nan if row["loss"] is None else row["loss"] for row in rows], dtype=np.float64)
    wanted = range(len(rows)) if trials is None else trials
    predictions: list[AnyArray | None] = [None] * len(rows)
    chosen: IntArray | None = None
    for number in wanted:
        if rows[number]["status"] != "success" or rows[number]["predictions_crc"] is None:
            continue
        mapped = map_predictions(store.predictions_path(number), len(y))
        if chosen is None:
            n_values = 1 if mapped.ndim == 1 else mapped.shape[1]
            limit = max_rows if max_values is None else min(max_rows, max(1, max_values // n_values))
            chosen = choose_rows(y, limit, np.random.default_rng(seed))
        predictions[number] = np.array(mapped if len(chosen) == len(y) else mapped[chosen])
    numbers, positions = row_numbers(folder, found), found.rows
    if chosen is not None:
        y, weight, positions = y[chosen], None if weight is None else weight[chosen], positions[chosen]
        numbers = None if numbers is None else numbers[chosen]
    folds = tuple(np.flatnonzero(np.isin(positions, fold)) for fold in found.folds)
    return RecordedPredictions(
        predictions=tuple(predictions), losses=losses, y=y, weight=weight, rows=numbers, folds=folds
    )


def row_numbers(folder: Path, validation: ValidationRows) -> IntArray | None:
    """Return the number in the table of each validation row of a run; None for runs of earlier versions.

    Raises
    ------
    CorruptStoreError
        If the stored numbers are those of other rows.
    """
    source = read_source(folder / "table.npz")
    if source is None:
        return None
    if len(source) <= validation.rows[-1]:
        raise CorruptStoreError(folder / "table.npz", f"numbers {len(source)} rows only. {RESTORE}")
    return source[validation.rows]


def map_predictions(path: Path, n_rows: int) -> AnyArray:
    """Map stored predictions into memory; raise `CorruptStoreError` if they are not for `n_rows` rows."""
    with failures_as(CorruptStoreError, path, "Restore it from a copy."), open_regular(path) as file:
        mapped = map_array(file)
    if mapped.dtype.kind != "f" or mapped.ndim not in (1, 2) or len(mapped) != n_rows:
        raise CorruptStoreError(path, f"holds {mapped.shape} numbers for {n_rows} rows. Restore it from a copy.")
    return mapped


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValidationRows:
    """The rows that out-of-fold predictions are for, in their order.

    Attributes
    ----------
    rows : (n_rows,) int array
        Their numbers among the training rows, ascending.
    y : (n_rows,) array
        Class codes or values.
    weight : (n_rows,) array or None
        Row weights.
    folds : tuple of int arrays
        Numbers of the rows that each fold validates.
    """

    rows: IntArray
    y: AnyArray
    weight: FloatArray | None
    folds: tuple[IntArray, ...]


def validation_rows(folder: Path, settings: Mapping[str, Any], task_type: str | None) -> ValidationRows:
    """Return the validation rows of a run, from the prepared folds or by making the folds again.

    Raises
    ------
    RunDirectoryError, CorruptStoreError
        As `read_predictions`.
    """
    try:
        prepared = PreparedFolds(folder / "prepared")
        folds, y, weight = prepared.folds, prepared.y, prepared.weight
    except RunDirectoryError:
        if "resampling" in settings.get("own_objects", ()) or task_type not in set(TaskType):
            raise
        y, weight = read_targets(folder / "table.npz")
        structure = read_structure(folder / "table.npz")
        with failures_as(CorruptStoreError, folder / "run.json", "Restore it from a copy."):
            made = make_folds(
                y,
                TaskType(task_type),
                settings.get("resampling", "auto"),
                seed=settings.get("seed", 0),
                structure=structure,
            )
        folds = tuple(made)
    with failures_as(CorruptStoreError, folder / "prepared", "Resume the run, which prepares the folds again."):
        parts = tuple(np.asarray(fold.validation) for fold in folds)
        rows = np.unique(np.concatenate(parts))
        return ValidationRows(rows=rows, y=y[rows], weight=None if weight is None else weight[rows], folds=parts)
