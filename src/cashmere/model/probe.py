"""Two rows that fit the schema of a model, and checks of its predictions for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray, Float64
from cashmere.data.column import ColumnKind
from cashmere.data.schema import TableSchema
from cashmere.exceptions import ModelFileError
from cashmere.model.predictor import Predictor


def probe(predictor: Predictor, files: Mapping[int, Path]) -> None:
    """Let a model predict two rows.

    Parameters
    ----------
    predictor : Predictor
        The model.
    files : dict of int to Path
        The file of each member, for the error.

    Raises
    ------
    ModelFileError
        If a member or the ensemble predicts anything but finite numbers of the right shape.
    """
    frame = _rows_of(predictor)
    n_outputs = predictor.target.n_classes
    expected = (len(frame), n_outputs) if predictor.target.task_type.is_classification else (len(frame),)
    coded = predictor.schema.code(frame)
    for number, models in predictor.models.items():
        for k, model in enumerate(models):
            predicted = model.predict(predictor.encoders[k][model.encoding].transform(coded))
            if predicted.shape != expected or not np.isfinite(predicted).all():
                raise ModelFileError(
                    files[number], f"is no usable member: fold {k} of trial {number} {_fault(predicted, expected)}"
                )
    combined = predictor.predict_raw(frame)
    if combined.shape != expected or not np.isfinite(combined).all():
        first = next(iter(files.values()))
        raise ModelFileError(
            first.with_name("manifest.json"), f"describes no usable ensemble: it {_fault(combined, expected)}"
        )
    predictor.predict(frame)


def _fault(predicted: AnyArray, expected: tuple[int, ...]) -> str:
    content = "finite numbers" if np.isfinite(predicted).all() else "infinite values or NaN"
    return f"predicts {content} of shape {predicted.shape} for two rows. Expected finite numbers of shape {expected}."


def probe_rows(schema: TableSchema, medians: Float64) -> pd.DataFrame:
    """Return two rows: a typical one, and one with only missing values.

    Parameters
    ----------
    schema : TableSchema
        The columns.
    medians : (n_value_columns,) array
        A typical value of each value column that holds numbers.
    """
    typical = dict(zip(schema.value_names, medians.tolist(), strict=True))
    columns: list[pd.Series[Any]] = []
    for column in schema.columns:
        value: object = None
        if column.dropped is not None:
            pass
        elif column.kind is ColumnKind.NUMERIC:
            value = typical[column.name]
        elif column.kind is ColumnKind.BOOLEAN:
            value = True
        elif column.kind is ColumnKind.DATE:
            value = "2020-02-29T12:30:00"
        elif column.kind is ColumnKind.TEXT:
            value = "a few words of some text"
        else:
            value = column.categories[0] if column.categories else None
        kind: Any = np.float64 if isinstance(value, float) else object
        columns.append(pd.Series([value, None], dtype=kind))
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(2))
    frame.columns = pd.Index([column.name for column in schema.columns], dtype=object)
    return frame


def typical_row(predictor: Predictor) -> pd.DataFrame:
    """Return a made-up row that a model can predict, as an example of its input."""
    return _rows_of(predictor).head(1)


def _rows_of(predictor: Predictor) -> pd.DataFrame:
    return probe_rows(predictor.schema, _medians(predictor))


def _medians(predictor: Predictor) -> Float64:
    """Return the training median of each value column, 0 for columns without numbers."""
    encoder = next(iter(predictor.encoders[0].values())) if predictor.encoders and predictor.encoders[0] else None
    medians = np.zeros(len(predictor.schema.value_names))
    if encoder is not None:
        medians[encoder._numbers] = encoder._medians
    return medians
