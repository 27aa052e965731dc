"""A sheet of a workbook of Excel or OpenDocument, read as a table."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

import pandas as pd

from cashmere.base.caller import level_of_caller
from cashmere.base.text import first_of
from cashmere.data.decimal_commas import (
    decimal_comma_columns,
    has_decimal_points,
    separates_thousands,
    texts_among_numbers,
    with_decimal_points,
)
from cashmere.data.expansion import expansion_error, expansion_limit
from cashmere.exceptions import DataError, LeftOutWarning, MissingDependencyError, UnknownNameError

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")

_NAMED = 5
"""Most names of sheets in a warning."""


_NOT_IN_NAMES = frozenset("/\\")
"""No sheet has these in its name, unlike a URL with a port."""


def split_sheet(source: str | Path) -> tuple[Path, str | None]:
    """Return the path of a file, and the name of a sheet if one follows: ``book.xlsx:Data``.

    Parameters
    ----------
    source : str or Path
        A path. If there is a file of this whole name, no sheet is meant.

    Returns
    -------
    (Path, str or None)
        None if no sheet is named.

    Examples
    --------
    >>> path, sheet = split_sheet("book.xlsx:Data")
    >>> path.name, sheet
    ('book.xlsx', 'Data')
    >>> [split_sheet(source)[1] for source in ("book.xlsx", "C:book.xlsx", "notes.txt:Data")]
    [None, None, None]
    """
    whole = Path(source).expanduser()
    book, colon, sheet = str(source).rpartition(":")
    if not colon or not book.lower().endswith(SUFFIXES) or _NOT_IN_NAMES & set(sheet) or _is_there(whole):
        return whole, None
    return Path(book).expanduser(), sheet


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def read_cells(path: Path, sheet: str | None = None, *, quiet: bool = False) -> pd.DataFrame:
    """Read the cells of a sheet, whose first row with content holds the names of the columns.

    Columns without a name and without content are left out, and so are rows without content.

    Parameters
    ----------
    path : Path
        The workbook.
    sheet : str, optional
        Name of the sheet; by default the first.
    quiet : bool
        Whether not to warn of other sheets.

    Returns
    -------
    pandas.DataFrame
        Columns of objects: texts without blanks around them, numbers, booleans, dates and times. Empty cells, and
        errors such as ``#N/A``, are None.

    Raises
    ------
    DataError
        If the file is damaged or protected, the sheet is empty, or a column with content has no name.
    UnknownNameError
        If there is no such sheet.
    MissingDependencyError
        Without the extra ``excel``.

    Warns
    -----
    LeftOutWarning
        If no sheet is named, and others than the first have content, too.
    """
    _check_expansion(path)
    try:
        import python_calamine  # noqa: F401  # pandas asks for it later, and says less
    except ImportError as error:
        raise MissingDependencyError("python-calamine", f"Reading {path.suffix} files", "excel") from error
    try:
        with pd.ExcelFile(path, engine="calamine") as book:
            names = [str(name) for name in book.sheet_names]
            read = names[0] if sheet is None else sheet
            others = [] if sheet is not None or quiet else [name for name in names[1:] if _has_content(book, name)]
            if read in names:
                cells = pd.read_excel(
                    book, sheet_name=read, header=None, dtype=object, keep_default_na=False, na_values=[]
                )
    except Exception as error:  # of the reader, which has no common type: damaged, protected, not a workbook, ...
        raise DataError(
            f"{path}: the file cannot be read as a workbook ({type(error).__name__}: {error}). Save it again, without "
            "a password, or save the sheet as CSV."
        ) from error
    if read not in names:
        raise UnknownNameError("sheet", read, names)
    if others:
        warnings.warn(
            LeftOutWarning(
                f"{path}: read the sheet {read!r}; others: {first_of(others, most=_NAMED)}. To read another: "
                f"{f'{path}:{others[0]}'!r}."
            ),
            stacklevel=level_of_caller(),
        )
    return _table_of(cells, path, read)


def _has_content(book: pd.ExcelFile, name: str) -> bool:
    """Return whether any cell of a sheet is filled; reading it by pandas would take several times as long."""
    return book.book.get_sheet_by_name(name).start is not None


def _table_of(sheet: pd.DataFrame, path: Path, name: str) -> pd.DataFrame:
    """Return the rows below the names of the columns."""
    sheet = sheet.astype(object).map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    is_empty = sheet.isna() | (sheet == "")
    sheet = sheet.mask(is_empty, None)
    rows = (~is_empty).any(axis=1)
    sheet, is_empty = sheet[rows], is_empty[rows]
    if not len(sheet):
        raise DataError(
            f"{path}: the sheet {name!r} is empty. Expected a row of column names, and at least one more row."
        )
    has_content = ~is_empty.all(axis=0)
    sheet, names = sheet.loc[:, has_content], sheet.iloc[0][has_content]
    if names.isna().any():
        position = int(names.index[names.isna()][0]) + 1
        raise DataError(
            f"{path}: column {position} has no name in the first row of the sheet {name!r}. Expected the names of all "
            "columns there, and nothing above or beside the table, such as a title or a total."
        )
    sheet = sheet.iloc[1:].reset_index(drop=True)
    sheet.columns = pd.Index([str(each) for each in names])
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


def convert_decimal_commas(frame: pd.DataFrame, *, expected: bool, numeric: Collection[int] | None = None) -> None:
    """Replace texts with decimal commas by numbers, by the rules for text files.

    Parameters
    ----------
    frame : DataFrame
        From `with_types`; changed in place. With decimal commas, ``frame.attrs["decimal"]`` becomes a comma, unless
        other texts have decimal points.
    expected : bool
        Whether the table of the model had decimal commas.
    numeric : collection of int, optional
        The columns that are numbers in a model.
    """
    texts = {i: cells for i in range(frame.shape[1]) if (cells := texts_among_numbers(frame.iloc[:, i])) is not None}
    found = decimal_comma_columns(frame, numeric=numeric)
    plain = (cells for cells in texts.values() if pd.to_numeric(cells.dropna(), errors="coerce").notna().all())
    is_mixed = any(map(has_decimal_points, plain))
    if not found:
        if not expected or is_mixed:
            return
        found = decimal_comma_columns(frame, expected=True, numeric=numeric)
    if not is_mixed:
        frame.attrs["decimal"] = ","
    for i, cells in texts.items():
        if i not in found and not separates_thousands(cells):
            continue
        read = with_decimal_points(frame.iloc[:, i], is_numeric=None if numeric is None else i in numeric)
        if read is not None:
            frame.isetitem(i, read.array)


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
