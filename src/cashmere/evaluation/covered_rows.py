"""How many rows with a known target lie within their predicted intervals or sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray, BoolArray, Float64, IntArray
from cashmere.data.labels import label_text
from cashmere.model.predictor import Predictor

ALL_ROWS = "all rows"


def covered_rows(
    predictor: Predictor,
    frame: pd.DataFrame,
    y: AnyArray,
    coverage: float,
    *,
    by_class: bool = False,
    weight: Float64 | None = None,
    divisions: Sequence[AnyArray] = (),
) -> pd.DataFrame:
    """Compare the coverage that intervals or sets promise with that on some rows.

    Parameters
    ----------
    predictor : Predictor
        The fitted ensemble.
    frame : DataFrame of n_rows
        The features.
    y : (n_rows,) array
        Class codes or values.
    coverage : float
        Promised share of rows, above 0 and below 1.
    by_class : bool
        Whether it is promised for each class, see `Predictor.predict_set`.
    weight : (n_rows,) array, optional
        Row weights; rows of weight 0 do not count.
    divisions : sequence of (n_rows,) array of str
        Names of the subgroup of each row, by one or several columns.

    Returns
    -------
    DataFrame
        A row for all rows, for each class, and for each subgroup. Columns: ``part`` (``"all rows"``, ``"class"``,
        ``"subgroup"``), ``name`` of the class or subgroup, ``n_rows``, ``coverage`` (share of these rows whose interval
        or set contains the target), ``size`` (mean width of the intervals, or mean number of classes in the sets).

    Raises
    ------
    InvalidParameterError, UsageError
        As `Predictor.predict_interval` and `Predictor.predict_set`.
    """
    is_classification = predictor.target.task_type.is_classification
    if is_classification:
        sets = predictor.predict_set(frame, coverage, by_class=by_class)
        inside, size = sets[np.arange(len(y)), y.astype(np.int64)], sets.sum(axis=1)
    else:
        lower, upper = predictor.predict_interval(frame, coverage).T
        inside, size = (lower <= y) & (y <= upper), upper - lower
    weights = np.ones(len(y)) if weight is None else weight
    return pd.DataFrame(
        [
            {
                "part": part,
                "name": name,
                "n_rows": len(rows),
                "coverage": float(np.average(inside[rows], weights=weights[rows])),
                "size": float(np.average(size[rows], weights=weights[rows])),
            }
            for part, name, rows in _parts(y, predictor.target.classes, weights > 0, divisions)
        ]
    )


def _parts(
    y: AnyArray, classes: Sequence[Any], counted: BoolArray, divisions: Sequence[AnyArray]
) -> Iterator[tuple[str, str, IntArray]]:
    """Yield kind, name and rows of each part that has rows."""
    yield ALL_ROWS, "", np.flatnonzero(counted)
    for code, label in enumerate(classes):
        rows = np.flatnonzero(counted & (y == code))
        if len(rows):
            yield "class", label_text(label), rows
    for subgroups in divisions:
        for name in np.unique(subgroups[counted]):
            yield "subgroup", str(name), np.flatnonzero(counted & (subgroups == name))
