"""Signs that a table to predict is made otherwise than that in training: columns without values, or with other ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray
from cashmere.base.text import counted
from cashmere.data.column import Column, ColumnKind
from cashmere.data.far_values import far_values_hint
from cashmere.data.schema import CodedTable

_LEAST_VALUES = 20
"""Fewer values of a column that are missing or unknown may be chance, as where a service predicts row by row."""

_OFTEN_MISSING = 0.5
"""A column that misses more than this share of its values in training may have no value in a whole later table."""

_SHOWN = 3


def unknown_values_hint(frame: pd.DataFrame, coded: CodedTable) -> str | None:
    """Return a warning about columns without any value, or without one known from training, and about far numbers.

    Parameters
    ----------
    frame : DataFrame
        A table to predict.
    coded : CodedTable
        What the schema makes of it. No value of a text or a number is unknown; they may all be missing.

    Returns
    -------
    str or None
        None if nothing is doubtful, and for few rows.

    Examples
    --------
    >>> from cashmere.data.inference import infer_schema
    >>> schema = infer_schema(pd.DataFrame({"paid": ["on time", "late"] * 20, "sum": range(40)}))
    >>> table = pd.DataFrame({"paid": ["1", "0"] * 20, "sum": range(40)})
    >>> unknown_values_hint(table, schema.code(table)).partition(":")[0]
    "None of the 40 values of column 'paid' was known in training"
    >>> table = pd.DataFrame({"paid": ["late"] * 40, "sum": [None] * 40})
    >>> unknown_values_hint(table, schema.code(table)).partition(":")[0]
    "Column 'sum' has no value in these 40 rows"
    """
    if len(coded) < _LEAST_VALUES:
        return None
    sentences = [*_unknown(frame, coded), *_missing(coded), far_values_hint(coded)]
    return " ".join(sentence for sentence in sentences if sentence is not None) or None


def _unknown(frame: pd.DataFrame, coded: CodedTable) -> Iterator[str]:
    """Yield sentences about columns that have values, but none that is known."""
    doubted = False
    for column, values in _columns(coded):
        n_unknown = coded.unseen.get(column.name, 0)
        if n_unknown < _LEAST_VALUES or not _are_missing(values):
            continue
        if column.kind is ColumnKind.DATE:
            known = f"it had dates such as {column.notation.example}"
        else:
            more = len(column.categories) - _SHOWN
            known = f"it had {_listed(column.categories)}" + (f" and {more} more" if more > 0 else "")
        found = f" and now has {_listed(frame[column.name].dropna().unique().tolist())}" if column.name in frame else ""
        doubted = True
        which = f"{counted(n_unknown, 'value')} of column {column.name!r}"
        yield f"None of the {which} was known in training: {known}{found}."
    if doubted:
        yield "They are treated as missing; write them as in the training table."


def _missing(coded: CodedTable) -> Iterator[str]:
    """Yield sentences about columns that have no values, although most rows had one in training."""
    for column, values in _columns(coded):
        if column.missing is None or column.missing > _OFTEN_MISSING or column.name in coded.unseen:
            continue
        if _are_missing(values):
            share = "each" if column.missing == 0 else f"{1 - column.missing:.1%}"
            yield (
                f"Column {column.name!r} has no value in these {counted(len(coded), 'row')}: in training, {share} of "
                "the rows had one. Look for what was lost on the way."
            )


def _columns(coded: CodedTable) -> Iterator[tuple[Column, AnyArray]]:
    """Yield each used column with its values or texts."""
    end, texts = 0, iter(coded.texts)
    for column in coded.schema.used:
        if column.kind is ColumnKind.TEXT:
            yield column, np.asarray(next(texts)[:])
        else:
            yield column, coded.values[:, end]
        end += len(column.value_names)


def _are_missing(values: AnyArray) -> bool:
    """Return whether no row has a number or a text; the first row mostly tells."""
    absent = (lambda some: some == "") if values.dtype == object else np.isnan
    return bool(absent(values[:1]).all() and absent(values).all())


def _listed(values: Sequence[object]) -> str:
    return ", ".join(repr(str(value)) for value in values[:_SHOWN])
