"""Explain single predictions of a run's model: what each column contributes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import BoolArray, FloatArray, IntArray
from cashmere.data.frames import to_frame
from cashmere.data.schema import CodedTable, take_rows
from cashmere.ensembles.threshold import decide
from cashmere.exceptions import InvalidParameterError
from cashmere.explanations.explaining import finished_model
from cashmere.explanations.shapley import shapley_values
from cashmere.explanations.unseen_rows import SourceColumn, source_columns
from cashmere.storage.directory import TrainingRows

_BACKGROUND_ROWS = 500
"""Training rows that explained rows are compared with, at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplainedPredictions:
    """What the columns contribute to some predictions.

    Attributes
    ----------
    predictions : DataFrame
        One row per explained row: ``row`` (its position), ``output`` (the class whose probability is explained: the
        second of two, or the predicted one of more; the target for regression), ``prediction`` and ``base`` (the mean
        prediction of the training rows it is compared with).
    contributions : DataFrame
        One row per explained row and column, those that contribute most first: ``row``, ``column``, ``value`` (as
        given), ``contribution`` (in units of the prediction; they sum to ``prediction - base``) and
        ``standard_error``.
    """

    predictions: pd.DataFrame
    contributions: pd.DataFrame


def explain_predictions(
    folder: str | Path, table: Any, *, paths: int = 100, seed: int = 0, trusted: Iterable[str] = ()
) -> ExplainedPredictions:
    """Estimate what each column contributes to the predictions for the rows of a table: Shapley values.

    The model of the run is used as it is deployed. Each row costs ``paths * (n_columns + 1)`` predictions.

    Parameters
    ----------
    folder : path
        The directory of a run with a final ensemble.
    table : table
        The rows to explain, as for `Predictor.predict`.
    paths : int
        Number of sampled paths per row, at least 2. Four times as many halve the standard errors.
    seed : int
        Seed for the paths and the training rows to compare with. Rows are explained independently of each other.
    trusted : iterable of str
        Types of custom algorithms to accept, see `Predictor.load`.

    Returns
    -------
    ExplainedPredictions

    Raises
    ------
    RunDirectoryError
        If the folder is not a run, has no final ensemble, or its model is the constant predictor.
    SchemaError
        If the table lacks a column.
    InvalidParameterError
        If there are fewer than two paths.

    Examples
    --------
    ::

        explained = cashmere.explain_predictions("income-run", new_rows.head(1))
        explained.contributions.head()
    """
    if paths < 2:
        raise InvalidParameterError("paths", paths, "a whole number of at least 2")
    folder = Path(folder)
    settings, _, predictor = finished_model(folder, trusted)
    columns = source_columns(predictor.schema)
    frame = to_frame(table, columns=[column.name for column in predictor.schema.columns])
    rows = predictor.schema.code(frame)
    background = _background(folder, predictor.schema, seed)
    is_classification = predictor.target.task_type.is_classification
    labels = predictor.target.labels() if is_classification else None
    found, summaries = [], []
    for i in range(len(rows)):
        row = rows.take(np.array([i]))
        output = None
        prediction = _probabilities(predictor.predict_coded(row)) if is_classification else predictor.predict_coded(row)
        if labels is not None:
            output = 1 if len(labels) == 2 else int(decide(prediction, predictor.thresholds)[0])

        def predict(mask: BoolArray, starts: IntArray, *, row: CodedTable = row, output: int | None = output) -> Any:
            mixed = predictor.predict_coded(_mixed(row, background, columns, mask, starts))
            return mixed if output is None else _probabilities(mixed)[:, output]

        rng = np.random.default_rng([seed, 1])
        one = shapley_values(predict, len(columns), len(background), n_paths=paths, rng=rng)
        summaries.append(
            {
                "row": i,
                "output": str(settings.get("target_name") or "target") if labels is None else labels[output],
                "prediction": float(prediction[0] if output is None else prediction[0, output]),
                "base": one.base,
            }
        )
        order = np.argsort(-np.abs(one.values), kind="stable")
        found += [
            {
                "row": i,
                "column": columns[j].name,
                "value": frame[columns[j].name].iloc[i],
                "contribution": float(one.values[j]),
                "standard_error": float(one.standard_errors[j]),
            }
            for j in order
        ]
    return ExplainedPredictions(
        predictions=pd.DataFrame(summaries, columns=["row", "output", "prediction", "base"]),
        contributions=pd.DataFrame(found, columns=["row", "column", "value", "contribution", "standard_error"]),
    )


def _background(folder: Path, schema: Any, seed: int) -> CodedTable:
    """Draw some of the training rows."""
    stored = TrainingRows.read(folder / "table.npz")
    rng = np.random.default_rng([seed, 0])
    rows = np.sort(rng.permutation(len(stored.y))[:_BACKGROUND_ROWS])
    return CodedTable(
        values=take_rows(stored.values, rows),
        texts=tuple(np.asarray(text[rows], dtype=object) for text in stored.texts),
        schema=schema,
    )


def _mixed(
    row: CodedTable, background: CodedTable, columns: list[SourceColumn], mask: BoolArray, starts: IntArray
) -> CodedTable:
    """Return background rows with the masked columns taken from a row."""
    mixed = background.take(starts)
    values = np.array(mixed.values, dtype=np.float64)
    texts = [np.array(text, dtype=object) for text in mixed.texts]
    own_texts = row.take_texts(slice(None))
    for j, column in enumerate(columns):
        taken = mask[:, j]
        if column.text is not None:
            texts[column.text][taken] = own_texts[column.text][0]
        for place in column.places:
            values[taken, place] = row.values[0, place]
    return CodedTable(values=values, texts=tuple(texts), schema=row.schema)


def _probabilities(outputs: FloatArray) -> FloatArray:
    p = np.asarray(outputs, dtype=np.float64)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
