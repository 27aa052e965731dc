"""The first sheet of a workbook of Excel or OpenDocument, read as a table."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

import pandas as pd

from cashmere.data.expansion import expansion_error, expansion_limit
from cashmere.exceptions import DataError, MissingDependencyError

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def read_spreadsheet(path: Path, *, missing: Collection[str]) -> pd.DataFrame:
    """Read the first sheet, whose first row with content holds the names of the columns.

    Columns without a name and without content are left out, and so are rows without content. Errors such as ``#N/A``
    are missing values.

    Parameters
    ----------
    path : Path
        The workbook.
    missing : collection of str
        Texts that mean missing; `with_levels` brings back those that a model knows as levels.

    Returns
    -------
    pandas.DataFrame
        Texts, numbers, booleans, dates and times as the cells hold them.

    Raises
    ------
    DataError
        If the file is damaged or protected, the sheet is empty, or a column with content has no name.
    MissingDependencyError
        Without the extra ``excel``.
    """
    cells = _cells(path)
    return _typed(cells.mask(cells.map(lambda cell: isinstance(cell, str) and cell.strip() in missing)))


def with_levels(path: Path, frame: pd.DataFrame, levels: Mapping[int, Collection[str]]) -> pd.DataFrame:
    """Return a table as read, with the cells that are levels of categories as they are written.

    Parameters
    ----------
    path : Path
        The workbook that the table was read from.
    frame : DataFrame
        Its table.
    levels : mapping
        The levels by position of the column.
    """
    cells = _cells(path)
    for i, known in levels.items():
        written = cells.iloc[:, i]
        is_level = written.map(lambda cell, known=known: isinstance(cell, str) and cell.strip() in known)
        frame.isetitem(i, frame.iloc[:, i].astype(object).mask(is_level, written).array)
    return frame


def _cells(path: Path) -> pd.DataFrame:
    """Return the cells under the names, in columns of objects; empty ones are None."""
    _check_expansion(path)
    try:
        import python_calamine  # noqa: F401  # pandas asks for it later, and says less
    except ImportError as error:
        raise MissingDependencyError("python-calamine", f"Reading {path.suffix} files", "excel") from error
    try:
        sheet = pd.read_excel(
            path, sheet_name=0, header=None, dtype=object, keep_default_na=False, na_values=[], engine="calamine"
        )
    except Exception as error:  # of the reader, which has no common type: damaged, protected, not a workbook, ...
        raise DataError(
            f"{path}: the file cannot be read as a workbook ({type(error).__name__}: {error}). Save it again, without "
            "a password, or save the sheet as CSV."
        ) from error
    is_empty = sheet.isna() | sheet.map(lambda cell: isinstance(cell, str) and not cell.strip())
    sheet = sheet.astype(object).mask(is_empty, None)
    rows = (~is_empty).any(axis=1)
    sheet, is_empty = sheet[rows], is_empty[rows]
    if not len(sheet):
        raise DataError(f"{path}: the first sheet is empty. Expected a row of column names, and at least one more row.")
    has_content = ~is_empty.all(axis=0)
    sheet, names = sheet.loc[:, has_content], sheet.iloc[0][has_content]
    if names.isna().any():
        position = int(names.index[names.isna()][0]) + 1
        raise DataError(
            f"{path}: column {position} has no name in the first row of the first sheet. Expected the names of all "
            "columns there, and nothing above or beside the table, such as a title or a total."
        )
    sheet = sheet.iloc[1:].reset_index(drop=True)
    sheet.columns = pd.Index([str(name).strip() for name in names])
    return sheet


def _check_expansion(path: Path) -> None:
    """Raise for an archive that would expand beyond any table."""
    if not zipfile.is_zipfile(path):  # the older formats are not compressed
        return
    size = path.stat().st_size
    limit = expansion_limit(size)
    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: the file is damaged ({error}). Save or download it again.") from error
    if total > limit:
        raise expansion_error(str(path), size, limit)


def _typed(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with the types of their columns; texts without blanks around them."""
    frame = cells.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    return frame.infer_objects()
