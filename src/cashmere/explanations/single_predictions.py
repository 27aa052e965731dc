"""Explain single predictions of a model: what each column contributes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import BoolArray, FloatArray, IntArray
from cashmere.base.sklearn_settings import with_default_sklearn
from cashmere.data.schema import CodedTable
from cashmere.ensembles.threshold import decide
from cashmere.exceptions import InvalidParameterError, MissingParameterError
from cashmere.explanations.explaining import finished_model
from cashmere.explanations.shapley import shapley_values
from cashmere.explanations.unseen_rows import SourceColumn, map_rows, source_columns, take_coded
from cashmere.explanations.words import words_of_text
from cashmere.model.description import read_schema
from cashmere.model.predictor import Predictor

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
    words : DataFrame
        One row per explained row and different word of its texts, those that change the prediction most first:
        ``row``, ``column``, ``word`` and ``change``, the prediction minus that without the word.
    target : str
        Name of the target.
    is_probability : bool
        Whether predictions are probabilities of classes, and not values of the target.
    """

    predictions: pd.DataFrame
    contributions: pd.DataFrame
    words: pd.DataFrame
    target: str
    is_probability: bool


@with_default_sklearn
def explain_predictions(
    model: str | Path | Predictor,
    table: Any,
    *,
    background: Any = None,
    paths: int = 100,
    seed: int = 0,
    trusted: Iterable[str] = (),
) -> ExplainedPredictions:
    """Estimate what each column contributes to the predictions for the rows of a table: Shapley values.

    The model is used as it is deployed. Each row costs ``paths * (n_columns + 1)`` predictions, and one for each of the
    first 200 different words of its texts; the rows to compare with are predicted once.

    Parameters
    ----------
    model : path or Predictor
        The directory of a run with a final ensemble, or a model folder inside one, such as ``model-refined``; with
        `background`, also a model folder elsewhere, or a loaded model.
    table : table
        The rows to explain, as for `Predictor.predict`.
    background : table, optional
        Rows to compare with, such as training rows; 500 are drawn from more. By default, training rows of the run.
    paths : int
        Number of sampled paths per row, at least 2. Four times as many halve the standard errors.
    seed : int
        Seed for the paths and the rows to compare with. Rows are explained independently of each other.
    trusted : iterable of str
        Types of custom algorithms to accept, see `Predictor.load`.

    Returns
    -------
    ExplainedPredictions

    Raises
    ------
    MissingParameterError
        If there is no background, and the model is not in a run directory.
    RunDirectoryError
        If the run has no final ensemble, or its model is the constant predictor.
    CorruptStoreError, ModelFileError
        If a file is damaged.
    SchemaError
        If a table lacks a column.
    DataError
        If the background has no rows.
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
    predictor, compared = _model_and_background(model, background, seed, trusted)
    target_name = str(predictor.information.get("target") or "target")
    columns = source_columns(predictor.schema)
    frame = predictor.schema.frame_of(table)
    rows = predictor.schema.code(frame)
    if not predictor.schema.named:  # columns are matched by position
        frame = frame.set_axis([column.name for column in predictor.schema.columns], axis=1)
    labels = predictor.target.labels() if predictor.target.task_type.is_classification else None
    before = predictor.predict_coded(compared)
    found, summaries, words = [], [], []
    for i in range(len(rows)):
        row = rows.take(np.array([i]))
        output = _output(predictor, row)
        predict = _Mixture(predictor=predictor, row=row, background=compared, columns=columns, output=output)
        rng = np.random.default_rng([seed, 1])
        one = shapley_values(predict, len(columns), _followed(before, output), n_paths=paths, rng=rng)
        summaries.append(
            {
                "row": i,
                "output": target_name if labels is None else labels[output],
                "prediction": float(_followed(predictor.predict_coded(row), output)[0]),
                "base": one.base,
            }
        )
        order = np.argsort(-np.abs(one.values), kind="stable")
        found += [
            {
                "row": i,
                "column": columns[j].name,
                "value": frame[columns[j].column].iloc[i],
                "contribution": float(one.values[j]),
                "standard_error": float(one.standard_errors[j]),
            }
            for j in order
        ]
        for column in columns:
            if column.text is not None:
                words += [(i, column.name, *one) for one in _words(predictor, row, column.text, output)]
    return ExplainedPredictions(
        predictions=pd.DataFrame(summaries, columns=["row", "output", "prediction", "base"]),
        contributions=pd.DataFrame(found, columns=["row", "column", "value", "contribution", "standard_error"]),
        words=pd.DataFrame(words, columns=["row", "column", "word", "change"]),
        target=target_name,
        is_probability=labels is not None,
    )


def _model_and_background(
    model: str | Path | Predictor, background: Any, seed: int, trusted: Iterable[str]
) -> tuple[Predictor, CodedTable]:
    """Return the model, and rows to compare with."""
    rng = np.random.default_rng([seed, 0])
    if background is not None:
        predictor = model if isinstance(model, Predictor) else Predictor.load(model, trusted=trusted)
        frame = predictor.schema.frame_of(background)
        chosen = np.sort(rng.permutation(len(frame))[:_BACKGROUND_ROWS])
        return predictor, predictor.schema.code(frame.iloc[chosen].reset_index(drop=True))
    if isinstance(model, Predictor):
        raise _no_rows()
    folder = Path(model)
    if _is_model_only(folder):
        predictor = Predictor.load(folder, trusted=trusted)
        folder = folder.resolve().parent
        if not (folder / "run.json").exists() or read_schema(folder) != predictor.schema:
            raise _no_rows()
    else:
        predictor = finished_model(folder, trusted)[2]
    table = map_rows(folder, predictor)
    chosen = np.sort(rng.permutation(len(table.y))[:_BACKGROUND_ROWS])
    return predictor, take_coded(folder, table, chosen, predictor)


def _no_rows() -> MissingParameterError:
    return MissingParameterError(
        "background",
        "A model without its run directory has no rows to compare with. Pass some rows of the training table as "
        "background (--background).",
    )


def _is_model_only(folder: Path) -> bool:
    return not (folder / "run.json").exists() and (folder / "manifest.json").exists()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Mixture:
    """Predicts background rows with some columns taken from a row, see `shapley_values`."""

    predictor: Predictor
    row: CodedTable
    background: CodedTable
    columns: list[SourceColumn]
    output: int | None

    def __call__(self, mask: BoolArray, starts: IntArray) -> FloatArray:
        mixed = self.background.take(starts)
        values = np.array(mixed.values, dtype=np.float64)
        texts = [np.array(text, dtype=object) for text in mixed.texts]
        own_texts = self.row.take_texts(slice(None))
        for j, column in enumerate(self.columns):
            taken = mask[:, j]
            if column.text is not None:
                texts[column.text][taken] = own_texts[column.text][0]
            for place in column.places:
                values[taken, place] = self.row.values[0, place]
        coded = CodedTable(values=values, texts=tuple(texts), schema=self.row.schema)
        return _followed(self.predictor.predict_coded(coded), self.output)


def _words(predictor: Predictor, row: CodedTable, number: int, output: int | None) -> list[tuple[str, float]]:
    """Return what the words of one text of a row add to its prediction."""

    def predict(texts: list[str]) -> FloatArray:
        repeated = row.take(np.zeros(len(texts), dtype=np.int64))
        others = (*repeated.texts[:number], np.array(texts, dtype=object), *repeated.texts[number + 1 :])
        return _followed(predictor.predict_coded(replace(repeated, texts=others)), output)

    return words_of_text(str(row.take_texts(slice(None))[number][0]), predict)


def _output(predictor: Predictor, row: CodedTable) -> int | None:
    """Return the class whose probability is explained: the positive of two, or the predicted; None for values."""
    if not predictor.target.task_type.is_classification:
        return None
    if len(predictor.classes_) == 2:
        return predictor.target.positive
    return int(decide(predictor.predict_coded(row), predictor.thresholds)[0])


def _followed(outputs: FloatArray, output: int | None) -> FloatArray:
    """Return the values, or the probabilities of a class."""
    p = np.asarray(outputs, dtype=np.float64)
    return p if output is None else np.asarray(p[:, output] / p.sum(axis=1))
