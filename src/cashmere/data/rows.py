"""Training rows in a form that depends only on their content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, Float64, IntArray
from cashmere.base.sorting import sorted_by
from cashmere.data.inference import infer_schema
from cashmere.data.labels import may_merge
from cashmere.data.row_structure import RowStructure
from cashmere.data.schema import TableSchema
from cashmere.exceptions import DataError


@dataclass(frozen=True, kw_only=True)
class CanonicalRows:
    """Training rows in canonical form.

    Attributes
    ----------
    given : pandas.DataFrame
        The features as given.
    y : (n_rows,) array
        The target, in canonical form.
    weight : (n_rows,) array of float64, or None
        Positive weights with mean 1; None when all rows count the same.
    source : (n_rows,) array of int64
        Row number of each row in the table.
    structure : RowStructure or None
        Groups or moments of the rows.
    """

    given: pd.DataFrame
    y: AnyArray
    weight: Float64 | None
    source: IntArray
    structure: RowStructure | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """The features in canonical form, with a plain row index: a copy of the table."""
        return self.given.iloc[self.source].reset_index(drop=True)

    def schema(self, *, named: bool = True, check: Callable[[], object] = lambda: None) -> TableSchema:
        """Learn the meaning of the columns; the order of the rows does not matter, so a large table is not copied.

        Parameters
        ----------
        named, check
            See `infer_schema`.

        """
        complete = len(self.source) == len(self.given)
        calendar = "" if self.structure is None else self.structure.calendar
        return infer_schema(self.given if complete else self.frame, named=named, calendar=calendar, check=check)


def check_weight(weight: Any, n_rows: int) -> Float64:
    """Return row weights as float64.

    Raises
    ------
    DataError
        If the weights are negative, missing, infinite, all zero or not one per row.
    """
    try:
        values = np.asarray(weight, dtype=np.float64)
        values = np.where(np.ma.getmaskarray(weight), np.nan, values) if np.ma.isMaskedArray(weight) else values
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must hold one number per row ({error}).") from error
    if values.ndim == 0:
        values = np.full(n_rows, float(values))
    if values.shape != (n_rows,):
        raise DataError(f"sample_weight.shape == {values.shape}, expected {(n_rows,)}! Give one weight per row.")
    if not np.isfinite(values).all():
        what = "NaN" if np.isnan(values).any() else "infinity"
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"Input sample_weight contains {what}, first in row {row}. Give finite weights.")
    if (values < 0).any():
        row = int(np.flatnonzero(values < 0)[0])
        raise DataError(f"Negative values in data passed to `sample_weight`, first in row {row}. Use 0 or more.")
    if not values.any():
        raise DataError("Sample weights must contain at least one non-zero number, but all are 0.")
    return values


def canonical_rows(
    frame: pd.DataFrame,
    y: AnyArray,
    weight: Any = None,
    *,
    structure: RowStructure | None = None,
    keep_order: bool = False,
) -> CanonicalRows:
    """Bring training rows into a form that depends only on their content.

    Rows of weight zero are removed. The other weights are scaled to mean 1, and equal ones are left out. Rows are then
    ordered by a hash of their features, target and weight, so that nothing that follows depends on their order. Call
    this before `infer_schema`.

    Parameters
    ----------
    frame : pandas.DataFrame
        The features.
    y : (n_rows,) array
        The target, labels or codes.
    weight : (n_rows,) array-like or number, optional
        Row weights, at least 0.
    structure : RowStructure, optional
        Groups or moments of the rows; it decides the order of rows that are otherwise equal.
    keep_order : bool
        Keep the order and the number of rows, for resampling that refers to them (time series, custom row numbers).
        Weights of zero are then kept.

    Raises
    ------
    DataError
        See `check_weight`.
    ColumnTypeError
        If cells hold dicts, lists or other objects that are not plain values.
    """
    n_rows = len(frame)
    source = np.arange(n_rows, dtype=np.int64)
    kept: Float64 | None = None
    if weight is not None:
        values = check_weight(weight, n_rows)
        if not keep_order:
            source, values = source[values > 0], values[values > 0]
        if np.any(values != values[0]):
            kept = values / values.mean()
    if not keep_order:
        counted = frame if len(source) == n_rows else frame.iloc[source]
        if structure is not None and structure.calendar:
            counted = counted.drop(columns=structure.calendar)  # the order is that of earlier versions
        keys: list[AnyArray] = [_hash_target(y[source]), _hash_features(counted)]
        keys = keys if kept is None else [kept, *keys]
        order = sorted_by(keys if structure is None else [structure.codes[source], *keys])
        source, kept = source[order], None if kept is None else kept[order]
    structure = None if structure is None else structure.take(source)
    return CanonicalRows(given=frame, y=y[source], weight=kept, source=source, structure=structure)


def _hash_features(frame: pd.DataFrame) -> NDArray[np.uint64]:
    try:
        return np.asarray(pd.util.hash_pandas_object(_unmerged(frame), index=False), dtype=np.uint64)
    except UnicodeEncodeError as error:
        name = next(name for name in frame if not _is_encodable(frame[name]))
        raise DataError(
            f"Column {name!r} holds half of a letter (a lone surrogate) in {error.object[:40]!r}. Remove it.",
            column=str(name),
        ) from error
    except Exception:
        infer_schema(frame)  # its error names the column whose cells are not plain values
        raise


def _unmerged(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with texts in place of objects that hash tables may merge, see `may_merge`."""
    mixed = [name for name in frame if frame[name].dtype == object and may_merge(frame[name].to_numpy())]
    if mixed:
        infer_schema(frame[mixed])  # raises an error for cells that are not plain values
        frame = frame.copy(deep=False)
        for name in mixed:
            frame[name] = frame[name].map(str, na_action="ignore").astype(object)
    return frame


def _is_encodable(series: pd.Series[Any]) -> bool:
    try:
        pd.util.hash_pandas_object(series, index=False)
    except UnicodeEncodeError:
        return False
    return True


def _hash_target(y: AnyArray) -> NDArray[np.uint64]:
    values = y.astype(object) if y.dtype.kind == "U" else y
    hashes: NDArray[np.uint64] = pd.util.hash_array(values)
    return hashes
