"""Signs that a table to predict is written otherwise than the one in training: columns without a known value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cashmere.base.text import counted
from cashmere.data.schema import CodedTable, ColumnKind

_LEAST_VALUES = 20
"""Fewer unknown values of a column may be chance, as where a service predicts row by row."""

_SHOWN = 3


def unknown_values_hint(frame: pd.DataFrame, coded: CodedTable) -> str | None:
    """Return a warning about columns of which no value is known from training; None if there are none.

    Parameters
    ----------
    frame : DataFrame
        A table to predict.
    coded : CodedTable
        What the schema makes of it. Columns of texts and of numbers are not looked at: no value of theirs is unknown.

    Examples
    --------
    >>> from cashmere.data.schema import infer_schema
    >>> schema = infer_schema(pd.DataFrame({"paid": ["on time", "late"] * 20}))
    >>> table = pd.DataFrame({"paid": ["1", "0"] * 20})
    >>> unknown_values_hint(table, schema.code(table)).partition(":")[0]
    "None of the 40 values of column 'paid' was known in training"
    """
    sentences, end = [], 0
    for column in coded.schema.used:
        start, end = end, end + len(column.value_names)
        n_unknown = coded.unseen.get(column.name, 0)
        if n_unknown < _LEAST_VALUES or not np.isnan(coded.values[:, start:end]).all():
            continue
        if column.kind is ColumnKind.DATE:
            known = "it had dates such as 2024-01-31"
        else:
            more = len(column.categories) - _SHOWN
            known = f"it had {_listed(column.categories)}" + (f" and {more} more" if more > 0 else "")
        found = f" and now has {_listed(frame[column.name].dropna().unique().tolist())}" if column.name in frame else ""
        sentences.append(
            f"None of the {counted(n_unknown, 'value')} of column {column.name!r} was known in training: "
            f"{known}{found}."
        )
    if not sentences:
        return None
    return f"{' '.join(sentences)} They are treated as missing; write them as in the training table."


def _listed(values: Sequence[object]) -> str:
    return ", ".join(repr(str(value)) for value in values[:_SHOWN])
