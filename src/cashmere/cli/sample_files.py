"""Predictions in the form of another file, such as the sample submission of a competition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray, Float64
from cashmere.base.text import counted, first_of
from cashmere.data.labels import label_text, without_zero_decimals
from cashmere.data.reading import read_table, written_columns
from cashmere.evaluation.metrics import METRICS
from cashmere.exceptions import DataError
from cashmere.model.predictor import Predictor

_NAMED = 5
"""Most names in an error."""


def like_sample(
    sample: Path,
    table: str | Path,
    frame: pd.DataFrame,
    predictor: Predictor,
    predictions: AnyArray,
    probabilities: Float64 | None,
) -> pd.DataFrame:
    """Return the columns of a sample with the predictions of a table, in the order of the sample's rows.

    Columns of the sample that the table has identify its rows, and are copied as the table writes them. The others are
    predictions: a column per class if they are called like the classes, also with the same letters before each; or one
    column, with the probability of the positive one of two classes if the metric of the run is computed from
    probabilities and the sample does not show classes there, and with the prediction itself otherwise.

    Parameters
    ----------
    sample : path
        A table.
    table, frame
        The table that was predicted, and how `read_table` has read it.
    predictor : Predictor
        The model.
    predictions : (n_rows,) array
        Labels or numbers.
    probabilities : (n_rows, n_classes) array or None
        None for regression.

    Raises
    ------
    DataError
        If the sample has other rows than the table, or columns that are no predictions of this model.
    """
    wanted = read_table(sample)
    names = [str(name) for name in wanted.columns]
    target = str(predictor.information.get("target"))
    identifiers = [name for name in names if name in frame.columns and name != target]
    others = [name for name in names if name not in identifiers]
    columns = _predicted(sample, wanted[others], predictor, predictions, probabilities)
    kept = written_columns(table, frame, identifiers)
    rows = _rows(sample, written_columns(sample, wanted, identifiers), kept, len(wanted))
    written = {name: kept[name].to_numpy() for name in identifiers} | columns
    return pd.DataFrame({name: written[name][rows] for name in names})


def _predicted(
    sample: Path,
    wanted: pd.DataFrame,
    predictor: Predictor,
    predictions: AnyArray,
    probabilities: Float64 | None,
) -> dict[str, AnyArray]:
    """Return the predictions for each of these columns of the sample."""
    names = [str(name) for name in wanted.columns]
    labels = [] if probabilities is None else [label_text(label) for label in predictor.classes_]
    if probabilities is not None and len(names) == len(labels):
        place = {label: k for k, label in enumerate(labels)}
        for label in labels:
            before = names[0].removesuffix(label)
            if names[0].endswith(label) and {before + each for each in labels} == set(names):
                return {name: probabilities[:, place[name[len(before) :]]] for name in names}
    if len(names) == 1:
        column, metric = wanted.iloc[:, 0], METRICS.get(str(predictor.information.get("metric")))
        is_scored_by_probability = metric is not None and metric.needs == "probabilities"
        if probabilities is None or len(labels) != 2 or not is_scored_by_probability or _shows_classes(column, labels):
            return {names[0]: _as_written(predictions, column)}
        return {names[0]: probabilities[:, predictor.target.positive]}
    found = f"{sample} has {counted(len(names), 'column')} that the table lacks" + (
        f": {first_of(names, most=_NAMED)}" if names else ""
    )
    lacking = [label for label in labels if label not in names]
    if 0 < len(lacking) < len(labels):
        strange = [name for name in names if name not in labels]
        found = f"{sample} lacks {first_of(lacking, most=_NAMED)}" + (
            f", but has {first_of(strange, most=_NAMED)}" if strange else ""
        )
    classes = f", or one for each class: {first_of(labels, most=_NAMED)}" if labels else ""
    raise DataError(f"{found}. Expected one column for the predictions{classes}.")


def _shows_classes(column: pd.Series[Any], labels: Sequence[str]) -> bool:
    """Return whether a column of a sample holds classes: a single number might also stand for a probability."""
    shown = {_identifier(value) for value in column.dropna().unique()}
    is_text = not pd.api.types.is_numeric_dtype(column.dtype)
    return bool(shown) and shown <= {_identifier(label) for label in labels} and (is_text or len(shown) > 1)


def _as_written(predictions: AnyArray, column: pd.Series[Any]) -> AnyArray:
    """Return whole predictions without decimals if the column of the sample has none."""
    is_whole = pd.api.types.is_integer_dtype(column.dtype) and np.issubdtype(predictions.dtype, np.floating)
    if is_whole and np.isfinite(predictions).all() and (predictions == np.round(predictions)).all():
        return predictions.astype(np.int64)
    return predictions


def _rows(sample: Path, wanted: pd.DataFrame, kept: pd.DataFrame, n_wanted: int) -> AnyArray:
    """Return the row of the table for each row of the sample."""
    n_rows = len(kept)
    if kept.shape[1] == 0:
        if n_wanted != n_rows:
            raise DataError(
                f"{sample} has {counted(n_wanted, 'row')}, but the table has {n_rows:,}. Without a column that both "
                "have, they must be as many."
            )
        return np.arange(n_rows)
    by = first_of(list(kept.columns), most=_NAMED)
    given, own = (pd.MultiIndex.from_frame(each.map(_identifier)) for each in (wanted, kept))
    if not own.is_unique:
        if given.equals(own):
            return np.arange(n_rows)
        raise DataError(f"{by} of the table are not unique, so its rows cannot be put in the order of {sample}.")
    rows = own.get_indexer(given)
    if (rows < 0).any() or len(given) != n_rows or not given.is_unique:
        missing = given[rows < 0].tolist()
        lacked = f", which by {by} lacks {len(missing):,} of them, such as " if missing else ""
        shown = ", ".join(map(repr, missing[0])) if missing else ""
        raise DataError(
            f"{sample} has other rows than the table: {counted(n_wanted, 'row')}, the table {n_rows:,}{lacked}{shown}. "
            "Predict the table that belongs to the sample."
        )
    return np.asarray(rows)


def _identifier(value: object) -> str:
    return without_zero_decimals(label_text(value))
