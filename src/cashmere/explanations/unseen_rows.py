"""Validation rows with the models that have not seen them: predict them again with other values in some columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cashmere.analysis.recorded import validation_rows
from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.base.files import failures_as
from cashmere.data.column import ColumnKind
from cashmere.data.row_structure import StructureKind
from cashmere.data.schema import CodedTable, TableSchema, take_rows
from cashmere.data.task import Encoding
from cashmere.ensembles import choose_rows
from cashmere.exceptions import CorruptStoreError
from cashmere.model.many_rows import predict_in_threads
from cashmere.model.predictor import Predictor
from cashmere.storage.directory import RESTORE, TrainingRows


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """A column of the user's table, or a recurring part of its dates, and where its values are in the coded table.

    Attributes
    ----------
    name : str
        Its name, such as ``"age"`` or ``"sold.weekday"``.
    kind : ColumnKind
        How its values are understood.
    categories : tuple of str
        Levels of a categorical column, by code.
    places : tuple of int
        Its columns of `CodedTable.values`: none for text, several for a date.
    text : int or None
        Its number among the text columns.
    offset : float
        What has been subtracted from its numbers, see `Column.offset`.
    dates : str or None
        The column whose dates it is a part of.
    """

    name: str
    kind: ColumnKind
    categories: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    text: int | None = None
    offset: float = 0.0
    dates: str | None = None

    @property
    def column(self) -> str:
        """The name of the column in the table."""
        return self.name if self.dates is None else self.dates


def source_columns(schema: TableSchema) -> list[SourceColumn]:
    """Return the used columns of a table, in its order; parts of dates that recur one by one."""
    found: list[SourceColumn] = []
    n_values, n_texts = 0, 0
    for column in schema.used:
        is_text = column.kind is ColumnKind.TEXT
        width = len(column.value_names)
        if column.parts:
            found += [
                SourceColumn(name=name, kind=ColumnKind.NUMERIC, places=(n_values + i,), dates=column.name)
                for i, name in enumerate(column.value_names)
            ]
            n_values += width
            continue
        found.append(
            SourceColumn(
                name=column.name,
                kind=column.kind,
                categories=column.categories,
                places=tuple(range(n_values, n_values + width)),
                text=n_texts if is_text else None,
                offset=column.offset,
            )
        )
        n_values, n_texts = n_values + width, n_texts + is_text
    return found


@dataclass(kw_only=True, eq=False)
class UnseenRows:
    """Some validation rows of a run, each with the models of a fold that has not trained on it.

    Attributes
    ----------
    predictor : Predictor
        The ensemble.
    values, texts
        The rows as `CodedTable` holds them.
    y : (n_rows,) array
        Class codes or values.
    weight : (n_rows,) array or None
        Row weights.
    fold : (n_rows,) int array
        Fold whose models predict each row: the first that validates it.
    group : (n_rows,) int array
        Group of each row; without groups, each row forms its own.
    n_validation_rows : int
        Number of validation rows of the run.
    """

    predictor: Predictor
    values: FloatArray
    texts: tuple[AnyArray, ...]
    y: AnyArray
    weight: FloatArray | None
    fold: IntArray
    group: IntArray
    n_validation_rows: int
    _of_texts: dict[int, NDArray[np.float32]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def draw(
        cls, folder: Path, predictor: Predictor, settings: Mapping[str, Any], *, n_rows: int, seed: int
    ) -> UnseenRows:
        """Draw a given number of validation rows of a run, spread evenly over the targets.

        Raises
        ------
        RunDirectoryError, CorruptStoreError
            If the stored rows cannot be read, or do not match the model.
        """
        table = map_rows(folder, predictor)
        validation = validation_rows(folder, settings, predictor.target.task_type.value)
        if len(table.y) <= validation.rows[-1] or min(map(len, predictor.models.values())) < len(validation.folds):
            raise CorruptStoreError(folder, f"holds a model of other folds than its rows were split into. {RESTORE}")
        chosen = choose_rows(validation.y, n_rows, np.random.default_rng(seed))
        rows = validation.rows[chosen]
        fold = np.full(len(table.y), -1, dtype=np.int64)
        for k in reversed(range(len(validation.folds))):
            fold[validation.folds[k]] = k
        coded = take_coded(folder, table, rows, predictor)
        grouped = table.structure is not None and table.structure.kind is StructureKind.GROUPS
        group = table.structure.codes[rows] if grouped and table.structure is not None else np.arange(len(rows))
        return cls(
            predictor=predictor,
            values=coded.values,
            texts=coded.take_texts(slice(None)),
            y=validation.y[chosen],
            weight=None if validation.weight is None else validation.weight[chosen],
            fold=fold[rows],
            group=np.unique(group, return_inverse=True)[1],
            n_validation_rows=len(validation.rows),
        )

    def predict(
        self, values: FloatArray | None = None, rows: IntArray | None = None, texts: tuple[AnyArray, ...] | None = None
    ) -> Float64:
        """Predict rows as the model would, each with the models that have not seen it.

        Parameters
        ----------
        values : (n, n_value_columns) array, optional
            Coded values; by default those of the rows.
        rows : (n,) int array, optional
            Row that each entry stands for; by default all rows in their order.
        texts : tuple of (n,) arrays, optional
            Text columns; by default those of the rows.

        Returns
        -------
        (n, n_classes) or (n,) array
            Calibrated probabilities that sum to one, or numbers for regression.
        """
        rows = np.arange(len(self)) if rows is None else rows
        values = take_rows(self.values, rows) if values is None else values
        fold = self.fold[rows]
        result: Float64 | None = None
        for k in np.unique(fold).tolist():
            own = np.flatnonzero(fold == k)
            own_texts = None if texts is None else tuple(text[own] for text in texts)
            part = self._predict_by(k, take_rows(values, own), rows[own], own_texts)
            if result is None:
                result = np.empty((len(rows), *part.shape[1:]))
            result[own] = part
        assert result is not None  # there is a row
        return result

    def _predict_by(self, k: int, values: FloatArray, rows: IntArray, texts: tuple[AnyArray, ...] | None) -> Float64:
        """Predict with the models of one fold."""
        model = self.predictor
        any_encoder = next(iter(model.encoders[k].values()))
        of_texts = self._text_columns(k)[rows] if texts is None else any_encoder.text_columns(texts, len(rows))
        prepared: dict[Encoding, NDArray[np.float32]] = {}
        stack = []
        for number in model.ensemble.members:
            fold_model = model.models[number][k]
            encoding = fold_model.encoding
            if encoding not in prepared:
                prepared[encoding] = model.encoders[k][encoding].transform_values(values, of_texts)
            stack.append(predict_in_threads(fold_model, prepared[encoding], n_threads=1))
        combined = model.combine(stack).astype(np.float64)
        return combined if combined.ndim == 1 else combined / combined.sum(axis=1, keepdims=True)

    def _text_columns(self, k: int) -> NDArray[np.float32]:
        """Return the columns made from the texts of all rows: this is slow, and few columns are text, so only once."""
        if k not in self._of_texts:
            any_encoder = next(iter(self.predictor.encoders[k].values()))
            self._of_texts[k] = any_encoder.text_columns(self.texts, len(self))
        return self._of_texts[k]


def chosen_outputs(predictions: AnyArray, outputs: Sequence[int] | None) -> Float64:
    """Return the probabilities of some classes, or values, as columns."""
    return np.asarray(predictions[:, None] if outputs is None else predictions[:, list(outputs)], dtype=np.float64)


def map_rows(folder: Path, predictor: Predictor) -> TrainingRows:
    """Map the training rows of a run into memory: few of them are needed, and there may be millions.

    Raises
    ------
    CorruptStoreError
        If the file is damaged, or does not have the columns and classes of the model.
    """
    table = TrainingRows.read(folder / "table.npz", mapped=True)
    schema, target = predictor.schema, predictor.target
    fits = (table.values.shape[1], len(table.texts)) == (len(schema.value_names), len(schema.text_names))
    if target.task_type.is_classification:
        fits = fits and table.y.dtype.kind == "i" and 0 <= table.y.min() <= table.y.max() < target.n_classes
    if not fits:
        raise _does_not_fit(folder)
    return table


def take_coded(folder: Path, table: TrainingRows, rows: IntArray, predictor: Predictor) -> CodedTable:
    """Take some of the rows that `map_rows` has mapped.

    Raises
    ------
    CorruptStoreError
        If they have levels that are not those of the model, or texts that cannot be read.
    """
    values = take_rows(table.values, rows)
    for column in source_columns(predictor.schema):
        n_levels = len(column.categories) or 2 * (column.kind is ColumnKind.BOOLEAN)
        if n_levels:
            codes = values[:, column.places[0]]
            codes = codes[~np.isnan(codes)]
            if not ((codes >= 0) & (codes < n_levels) & (codes == np.floor(codes))).all():
                raise _does_not_fit(folder)
    with failures_as(CorruptStoreError, folder / "table.npz", RESTORE):
        texts = tuple(np.asarray(text[rows], dtype=object) for text in table.texts)
    return CodedTable(values=values, texts=texts, schema=predictor.schema)


def _does_not_fit(folder: Path) -> CorruptStoreError:
    return CorruptStoreError(folder / "table.npz", f"does not hold the columns and classes of the model. {RESTORE}")
