"""The first sheet of a workbook of Excel or OpenDocument, read as a table."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

import pandas as pd

from cashmere.data.expansion import expansion_error, expansion_limit
from cashmere.exceptions import DataError, MissingDependencyError

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def read_cells(path: Path) -> pd.DataFrame:
    """Read the cells of the first sheet, whose first row with content holds the names of the columns.

    Columns without a name and without content are left out, and so are rows without content.

    Parameters
    ----------
    path : Path
        The workbook.

    Returns
    -------
    pandas.DataFrame
        Columns of objects: texts without blanks around them, numbers, booleans, dates and times. Empty cells, and
        errors such as ``#N/A``, are None.

    Raises
    ------
    DataError
        If the file is damaged or protected, the sheet is empty, or a column with content has no name.
    MissingDependencyError
        Without the extra ``excel``.
    """
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
    sheet = sheet.astype(object).map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    is_empty = sheet.isna() | (sheet == "")
    sheet = sheet.mask(is_empty, None)
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
    sheet.columns = pd.Index([str(name) for name in names])
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


def with_types(cells: pd.DataFrame, *, missing: Collection[str]) -> pd.DataFrame:
    """Return cells with the types of their columns; texts among `missing` mean missing."""
    return cells.mask(cells.isin(missing)).infer_objects()


def with_levels(frame: pd.DataFrame, cells: pd.DataFrame, levels: Mapping[int, Collection[str]]) -> pd.DataFrame:
    """Return a table with the cells that are levels of categories as they are written.

    Parameters
    ----------
    frame : DataFrame
        From `with_types`.
    cells : DataFrame
        What it was made from.
    levels : mapping
        The levels by position of the column.
    """
    for i, known in levels.items():
        written = cells.iloc[:, i]
        frame.isetitem(i, frame.iloc[:, i].astype(object).mask(written.isin(known), written).array)
    return frame
