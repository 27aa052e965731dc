"""Convert every accepted form of a feature table to one: a pandas DataFrame with text column names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray
from cashmere.exceptions import ColumnTypeError, DataError, SchemaError

_DENSE_LIMIT_BYTES = 2 * 2**30


def to_frame(X: object, *, columns: Sequence[str] | None = None, all_finite: bool = True) -> pd.DataFrame:
    """Return the features as a DataFrame.

    Parameters
    ----------
    X : (n_rows, n_columns) table
        pandas or polars DataFrame, Arrow table, numpy array, scipy sparse matrix or array, list of lists.
    columns : sequence of str, optional
        Names for the columns of an `X` that has none; ``x0, x1, ...`` by default.
    all_finite : bool
        Whether infinity is refused in all columns. A model refuses it only in those that it uses, see
        `TableSchema.code`.

    Returns
    -------
    pandas.DataFrame
        `X` itself when it is a DataFrame that needs no change; never a deep copy.

    Raises
    ------
    DataError
        If `X` is not two-dimensional, is empty, is complex, holds infinities or repeats a column name, or if a
        sparse `X` needs 2 GiB or more in dense form. Messages follow scikit-learn's.
    ColumnTypeError
        If column names mix text and other types.

    Examples
    --------
    >>> to_frame([[1, "a"], [2, "b"]])
       x0 x1
    0   1  a
    1   2  b
    """
    if _root(X) == "polars" or (_root(X) == "pyarrow" and hasattr(X, "column_names")):
        try:
            X = _from_polars(X) if _root(X) == "polars" else _from_arrow(X)
        except DataError:
            raise
        except Exception as error:  # lazy frames are computed only now, and fail in many ways
            text = str(error).partition("\n")[0]
            raise DataError(
                f"The {_root(X)} table cannot be read ({type(error).__name__}: {text}). Convert it to pandas first."
            ) from error
    frame = _from_pandas(X) if isinstance(X, pd.DataFrame) else _from_array(X, columns)
    if all_finite:
        for name in frame:
            check_finite(str(name), frame[name])
    return frame


def feature_names(X: object) -> NDArray[np.object_] | None:
    """Return the column names of a table if they are text, else None; like scikit-learn's ``feature_names_in_``.

    Raises
    ------
    ColumnTypeError
        If column names mix text and other types.
    """
    names: list[Any]
    if isinstance(X, pd.DataFrame):
        names = list(X.columns)
    elif _root(X) == "polars" and hasattr(X, "collect_schema"):
        names = list(X.collect_schema().names())
    elif _root(X) == "pyarrow" and hasattr(X, "column_names"):
        names = list(X.column_names)
    else:
        return None
    types = sorted({type(name).__qualname__ for name in names})
    if len(types) > 1 and any(isinstance(name, str) for name in names):
        raise ColumnTypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{types} as feature name / column name types. Convert them with X.columns = X.columns.astype(str)."
        )
    return np.array(names, dtype=object) if names and isinstance(names[0], str) else None


def has_labels(X: object) -> bool:
    """Return whether the columns of a table have labels of any type, other than their positions.

    Examples
    --------
    >>> has_labels(pd.DataFrame({10: [1.0], 20: [2.0]}))
    True
    >>> has_labels(pd.DataFrame([[1.0, 2.0]]))
    False
    """
    if feature_names(X) is not None:
        return True
    labels: list[Any] = list(X.columns) if isinstance(X, pd.DataFrame) else []
    return labels != list(range(len(labels)))


def _root(X: object) -> str:
    return type(X).__module__.partition(".")[0]


def _from_polars(X: Any) -> object:
    if hasattr(X, "collect"):
        X = X.collect()
    return X.to_numpy() if X.__class__.__name__ == "Series" else X.to_pandas()


def _from_arrow(X: Any) -> object:
    _check_names(list(X.column_names))
    return X.to_pandas()


def _check_names(names: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        listed = ", ".join(map(repr, repeated[:10]))
        raise DataError(
            f"Column names must differ, but {listed} occurs more than once. Rename or remove the copies.",
            column=repeated[0],
        )


def _from_pandas(frame: pd.DataFrame) -> pd.DataFrame:
    n_rows, n_columns = frame.shape
    if n_columns == 0:
        raise DataError(f"Found array with 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required.")
    if n_rows == 0:
        raise DataError(f"Found array with 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is required.")
    names = [str(name) for name in frame.columns]
    feature_names(frame)
    _check_names(names)
    if any(not isinstance(name, str) for name in frame.columns):
        frame = frame.copy(deep=False)
        frame.columns = pd.Index(names)
    for name, dtype in frame.dtypes.items():
        if getattr(dtype, "kind", "") == "c":
            raise DataError(
                f"Complex data not supported: column {name!r}. Split it into two columns.", column=str(name)
            )
    changed = {str(name): plain for name in frame if (plain := _plain(frame[name])) is not None}
    if changed:
        frame = frame.copy(deep=False)
        for name, plain in changed.items():  # unlike assign, for columns of any name
            frame[name] = plain
    return frame


def _plain(series: pd.Series[Any]) -> pd.Series[Any] | None:
    """Return a column in a form that all libraries know, or None if it already is."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype != (known := _known_dtype(dtype)):
        return series.astype(known)
    if isinstance(dtype, pd.ArrowDtype) and _is_dictionary(dtype):
        return series.astype(object).astype("category")
    return None


def _known_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in the byte order of the machine; numbers of more than 64 bits become those of 64."""
    return np.dtype(np.float64) if dtype.kind == "f" and dtype.itemsize > 8 else dtype.newbyteorder("=")


def _is_dictionary(dtype: pd.ArrowDtype) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(dtype.pyarrow_dtype))


def _from_array(X: Any, columns: Sequence[str] | None) -> pd.DataFrame:
    from scipy import sparse
    from sklearn.utils.validation import check_array

    is_sparse: bool = sparse.issparse(X)
    if is_sparse:
        size = int(np.prod(X.shape, dtype=np.int64)) * 8
        if size >= _DENSE_LIMIT_BYTES:
            raise DataError(
                f"The sparse table of shape {X.shape} needs {size / 2**30:.1f} GiB in dense form; at most "
                f"{_DENSE_LIMIT_BYTES / 2**30:.0f} GiB are allowed. Reduce its dimensions first, for example with "
                "sklearn.decomposition.TruncatedSVD."
            )
        X = _checked(X).toarray()
        X = X if np.iscomplexobj(X) else X.astype(np.float64)
    if isinstance(X, np.matrix):
        X = np.asarray(X)
    if isinstance(X, Mapping) or (isinstance(X, (list, tuple)) and X and isinstance(X[0], Mapping)):
        raise DataError(
            "Expected 2D array, got dictionaries instead. Pass a DataFrame: pandas.DataFrame([row]) for a single row, "
            "pandas.DataFrame(rows) for a list of rows, pandas.DataFrame(columns) for a dictionary of columns."
        )
    if X is None or isinstance(X, str | PathLike):
        what = "nothing (None)" if X is None else f"the text {str(X)[:100]!r}"
        raise DataError(
            f"Expected 2D array, got {what} instead. Read the file first, for example with pandas.read_csv."
        )
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise DataError("Complex data not supported: X holds complex numbers. Split them into two columns each.")
    if isinstance(X, np.ma.MaskedArray) and X.ndim == 2:
        X = pd.DataFrame(X).to_numpy()  # masked cells are missing; check_array takes the values behind the mask
    try:
        if isinstance(X, (list, tuple)) and np.asarray(X).dtype.kind in "USOM":
            X = np.array(X, dtype=object)  # keeps columns of numbers apart from columns of text
        array: AnyArray = check_array(X, dtype=None, ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        kind = ColumnTypeError if isinstance(error, TypeError) else DataError
        raise kind(without_values(str(error))) from error
    if array.dtype.kind in "UT":
        array = array.astype(object)
    array = array.astype(_known_dtype(array.dtype), copy=False)
    if columns is not None and len(columns) != array.shape[1]:
        raise SchemaError(f"X has {array.shape[1]} features, but {len(columns)} features are expected as input.")
    names = list(columns) if columns is not None else [f"x{i}" for i in range(array.shape[1])]
    try:
        frame = pd.DataFrame(array, columns=pd.Index(names, dtype=object))
    except OverflowError as error:  # pandas 2, for integers larger than any float
        raise DataError(f"The table cannot be read ({error}). Replace the number by a smaller one.") from error
    return frame.infer_objects() if array.dtype == object else frame


def _checked(X: Any) -> Any:
    """Return the sparse matrix if all indices are in range; for others, SciPy would write outside its memory."""
    from scipy import sparse

    if X.format == "coo":
        coordinates = X.coords if hasattr(X, "coords") else (X.row, X.col)  # until SciPy 1.12
        places = zip(coordinates, X.shape, strict=True)
        inside = all(not len(index) or (index.min() >= 0 and index.max() < n) for index, n in places)
        if not inside:
            raise DataError(f"The sparse table of shape {X.shape} has indices outside. Build it again.")
        return X
    try:
        X = X if X.format in ("csr", "csc", "bsr") else sparse.csr_array(X)
        X.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"The sparse table of shape {X.shape} is damaged ({error}). Build it again.") from error
    return X


def without_values(message: str) -> str:
    r"""Remove the values of an array, possibly thousands, from a message of scikit-learn.

    Examples
    --------
    >>> without_values("Expected 2D array, got 1D array instead:\narray=[1. 2.].\nReshape your data.")
    'Expected 2D array, got 1D array instead. Reshape your data.'
    """
    text = re.sub(r":?\n(array=.*\.|[\[(].*[\])])\n", ". ", message, flags=re.DOTALL).strip()
    return " ".join(text.split())


def check_finite(name: str, series: pd.Series[Any]) -> None:
    """Raise an `infinity_error` if a column of floats, by its type, holds an infinity."""
    if getattr(series.dtype, "kind", "") == "f":
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(values).any():
            raise infinity_error(name)


def infinity_error(column: str) -> DataError:
    """Return the error for an infinite number in a feature column, worded as in scikit-learn."""
    return DataError(
        f"Input X contains infinity or a value too large for dtype('float64') in column {column!r}. "
        "Replace it by NaN (missing) or by a finite number.",
        column=column,
    )
