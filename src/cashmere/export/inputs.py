"""Rows of a table as the inputs of a converted model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray
from cashmere.data.column import Column, ColumnKind
from cashmere.data.labels import other_spelling
from cashmere.data.other_columns import read_labels
from cashmere.data.schema import TableSchema
from cashmere.exceptions import ConversionError

_UNSEEN = "never seen"


def input_type(column: Column) -> np.dtype[np.generic]:
    """Return the input type of a column: strings for categories, float64 for dates and where float32 is too coarse."""
    if column.kind is ColumnKind.CATEGORICAL:
        return np.dtype(object)
    return np.dtype(np.float64 if column.kind is ColumnKind.DATE or column.offset else np.float32)


def check_columns_convert(schema: TableSchema) -> None:
    """Raise an error if columns have no counterpart in ONNX.

    Raises
    ------
    ConversionError
        If a column contains text, which ONNX cannot split into words as cashmere does, or has no name, or if no column
        is used.
    """
    reasons = {f"column {c.name!r}": "is text" for c in schema.used if c.kind is ColumnKind.TEXT}
    advice = "Fit again without such columns, or deploy the model folder: see docs/serving.md." if reasons else ""
    if not all(column.name for column in schema.used):
        reasons["a column"] = "has no name"
        advice += " " * bool(advice) + "Give every column a name, and fit again."
    if not schema.used:
        reasons["the table"] = "has no column that is used"
    if reasons:
        raise ConversionError(reasons, advice)


def onnx_inputs(schema: TableSchema, table: Any) -> dict[str, AnyArray]:
    """Convert the rows of a table into the inputs of a converted model.

    Parameters
    ----------
    schema : TableSchema
        Columns of the model, `Predictor.schema`.
    table : (n_rows, n_columns) table
        As for `Predictor.predict`.

    Returns
    -------
    dict of str to (n_rows, 1) array
        Numbers and booleans as float32, with NaN for missing, or as float64 if float32 cannot tell the numbers of the
        column apart; dates as float64, in seconds since 1970; categories as strings, with ``""`` for missing.

    Raises
    ------
    SchemaError
        If a column is missing, or its type differs from that in `fit`.
    """
    frame = schema.frame_of(table)
    whole_dates = replace(schema, columns=tuple(replace(column, parts=()) for column in schema.columns))
    coded = whole_dates.code(frame)
    position = {name: j for j, name in enumerate(coded.value_names)}
    inputs: dict[str, AnyArray] = {}
    for column in schema.used:
        if column.kind is ColumnKind.CATEGORICAL:
            series = frame[column.name] if schema.named else frame.iloc[:, _place(schema, column.name)]
            values = _as_levels(read_labels(series, column.name), column.categories)
        elif column.kind is ColumnKind.DATE:
            values = np.round(coded.values[:, position[f"{column.name}.days_since_1970"]] * 86_400, 3)
        else:
            values = coded.values[:, position[column.name]] + column.offset
        with np.errstate(over="ignore"):
            inputs[column.name] = values.astype(input_type(column))[:, None]
    return inputs


def _as_levels(labels: AnyArray, levels: tuple[str, ...]) -> AnyArray:
    known = set(levels)
    spelt = {label: other_spelling(label, known) for label in set(labels) - known}
    return np.array([spelt.get(label) or label for label in labels], dtype=object)


def _place(schema: TableSchema, name: str) -> int:
    return next(i for i, column in enumerate(schema.columns) if column.name == name)


def with_gaps_and_unseen_levels(schema: TableSchema, frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the rows with some values made missing, or replaced by unseen levels.

    Parameters
    ----------
    schema : TableSchema
        Describes the columns.
    frame : (n_rows, n_columns) DataFrame
        Rows as for `Predictor.predict`.
    rng : numpy.random.Generator
        Chooses the values: about a third become missing, and a sixth of the categories unseen.
    """
    changed = frame.astype(object)
    for place, column in enumerate(schema.columns):
        if schema.named and column.name not in changed:
            continue
        series = changed[column.name].copy() if schema.named else changed.iloc[:, place].copy()
        fate = rng.random(len(series))
        if column.kind is ColumnKind.CATEGORICAL:
            unseen = _UNSEEN
            while unseen in column.categories:
                unseen += "!"
            series[fate < 1 / 6] = unseen
            fate = fate - 1 / 6
        series[(fate >= 0) & (fate < 1 / 3)] = None
        changed[series.name] = series
    return changed
