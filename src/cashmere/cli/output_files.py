"""Write the output files of commands: completely or not at all, without formulas that a spreadsheet would run."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING

from cashmere.base.files import write_atomically
from cashmere.exceptions import InvalidParameterError, OutputError

if TYPE_CHECKING:
    import pandas as pd

_CSV = (".csv", ".csv.gz")
_PARQUET = (".parquet", ".pq")
_FORMULA_STARTS = "=+-@\uff1d\uff0b\uff0d\uff20\t\r\n\0"
"""Characters that start a formula in spreadsheets, the last four only in some; the middle four are full-width."""


def check_output(path: Path, *, others: tuple[str, ...] = ()) -> None:
    """Check that an output can be written, before the work begins.

    Parameters
    ----------
    path : path
        Where to write.
    others : tuple of str
        Endings that the command accepts besides those of CSV and Parquet.

    Raises
    ------
    InvalidParameterError
        If the ending is unknown.
    OutputError
        If the folder is missing, or `path` exists and is not a file.
    """
    if not path.name.lower().endswith((*_CSV, *_PARQUET, *others)):
        listed = ", ".join((*_CSV, *others))
        raise InvalidParameterError("--output", str(path), f"a file name that ends in {listed} or .parquet")
    if not path.parent.is_dir():
        raise OutputError(path, f"cannot be written: there is no folder {path.parent}. Make it first.")
    if path.exists() and not path.is_file():
        raise OutputError(path, "is no regular file. Name a new file, or one to be replaced.")


def write_table(frame: pd.DataFrame, path: Path, *, keep_formulas: bool = False) -> int:
    """Write a table as CSV or Parquet, by the ending of its name.

    In Parquet, values of a column of several types become texts.

    Parameters
    ----------
    frame : DataFrame
        Its index is not written.
    path : path
        An output that `check_output` has passed; replaced if it exists.
    keep_formulas : bool
        Write texts in CSV as they are, even where a spreadsheet would run them. Parquet keeps all texts.

    Returns
    -------
    int
        How many texts were given a ``'`` in front because a spreadsheet would run them.

    Raises
    ------
    OutputError
        If the file cannot be written; what was there before then stays.
    """
    n_changed = 0
    if path.name.lower().endswith(_PARQUET):
        buffer = io.BytesIO()
        with_one_type_per_column(frame).to_parquet(buffer, index=False)
        data = buffer.getvalue()
    else:
        if not keep_formulas:
            frame, n_changed = without_formulas(frame)
        text = frame.to_csv(index=False)
        if "\r" in text:  # pandas does not quote it, although readers start a new line there
            text = frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)
        data = text.encode("utf-8", errors="replace")
        data = gzip.compress(data, mtime=0) if path.name.lower().endswith(".gz") else data
    write_output(path, data)
    return n_changed


def with_one_type_per_column(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn the values of columns of several types into texts; missing ones stay missing.

    Examples
    --------
    >>> import pandas as pd
    >>> with_one_type_per_column(pd.DataFrame({"value": [1.5, "red", True]}))["value"].tolist()
    ['1.5', 'red', 'True']
    """
    import pandas as pd

    mixed = [name for name in frame if pd.api.types.infer_dtype(frame[name], skipna=True).startswith("mixed")]
    frame = frame.copy(deep=False)
    for name in mixed:  # unlike assign, for columns of any name
        frame[name] = frame[name].map(str, na_action="ignore")
    return frame


def write_output(path: Path, data: bytes) -> None:
    """Write a file completely or not at all.

    Raises
    ------
    OutputError
        If that fails, for example because the disk is full.
    """
    try:
        write_atomically(path, data)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(path, f"cannot be written ({reason}). Choose another place, or make room.") from error


def without_formulas(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    r"""Put a ``'`` before texts and column names that a spreadsheet would run; numbers stay numbers.

    Returns
    -------
    (DataFrame, int)
        The table, and how many cells and names were changed.

    Examples
    --------
    >>> import pandas as pd
    >>> safe, n_changed = without_formulas(pd.DataFrame({"a": ["=1+1", "-1.5", "-", "x"], "b": [-1, 2, 3, 4]}))
    >>> safe["a"].tolist(), safe["b"].tolist(), n_changed
    (["'=1+1", '-1.5', '-', 'x'], [-1, 2, 3, 4], 1)
    """
    import pandas as pd

    names = [f"'{name}" if _is_formula(name) else name for name in frame.columns]
    safe = frame.set_axis(names, axis=1)
    n_changed = sum(map(_is_formula, frame.columns))
    for position, dtype in enumerate(frame.dtypes):
        if pd.api.types.is_numeric_dtype(dtype):
            continue
        column = frame.iloc[:, position].astype(object)
        found = column.isin([value for value in column.unique() if _is_formula(value)])
        if found.any():
            safe.isetitem(position, column.where(~found, "'" + column.astype(str)).to_numpy())
            n_changed += int(found.sum())
    return safe, n_changed


def _is_formula(value: object) -> bool:
    start = value.lstrip(" ") if isinstance(value, str) else ""
    if len(start) < 2 or start[0] not in _FORMULA_STARTS:
        return False
    try:
        float(start)
    except ValueError:
        return True
    return False
