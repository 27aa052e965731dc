"""Read a table from a file or from OpenML."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import stat
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, TextIO, cast

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray
from cashmere.base.caller import level_of_caller
from cashmere.base.text import columns_hold, counted
from cashmere.data.column import Column, ColumnKind
from cashmere.data.decimal_commas import (
    decimal_comma_columns,
    has_decimal_points,
    may_separate_thousands,
    separates_thousands,
    shows_point_thousands,
    with_decimal_points,
)
from cashmere.data.expansion import expansion_error, expansion_limit
from cashmere.data.parquet import ReadingCheck, go_on, read_parquet, return_freed_memory
from cashmere.data.schema import TableSchema
from cashmere.data.spreadsheets import SUFFIXES as SPREADSHEETS
from cashmere.data.spreadsheets import convert_decimal_commas, read_cells, split_sheet, with_levels, with_types
from cashmere.exceptions import CashmereError, ColumnKindWarning, DataError, UnknownNameError

_DELIMITERS = (",", ";", "\t", "|")
_CSV_SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".data")
_SAMPLE_RECORDS = 100
_FIRST_CELLS = 1000
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, because it begins with the mark of that
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_NO_TEXT = {
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"PK\x05\x06": "an empty zip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"PAR1": "a Parquet file",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet",
    b"SQLite format": "an SQLite database",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"%PDF": "a PDF document",
    b"<!DOCTYPE": "a web page",
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"<?xml": "an XML document",
    b'{"': "a JSON document",
    b'[{"': "a JSON document",
}
"""Beginnings of files that are not delimited text, whatever their names."""
_MISSING = "?"
_WORDS_FOR_MISSING = frozenset(
    {"NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "<NA>", "NULL", "null", "None", "NaN", "nan", "-NaN", "-nan"}
    | {"1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", _MISSING}
)
"""What is read as missing: the words of `pandas.read_csv`, and ``?``."""

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|\S+)\s+(.+)$", re.IGNORECASE)
_FIELD = re.compile(rf"\s*({_QUOTED}|[^,]*)\s*(,|$)")
_SPARSE_ENTRY = re.compile(r"([0-9]{1,9})\s+(.+)")
_SPARSE_FIELD = re.compile(rf"\s*(\d+\s+(?:{_QUOTED})|[^,]*)\s*(,|$)")
"""In sparse rows, the number of the column comes first."""


def read_table(
    source: str | Path,
    *,
    schema: TableSchema | None = None,
    labels: tuple[str, Sequence[object]] = ("", ()),
    check: ReadingCheck = go_on,
) -> pd.DataFrame:
    r"""Read a table.

    Parameters
    ----------
    source : str or path
        A delimited text file with a header line (``.csv``, ``.tsv``, ``.txt``, ``.dat``, ``.data``; the delimiter
        ``, ; \t |`` and the encoding are detected: UTF-8, Windows-1252, or UTF-16 and UTF-32 with a byte-order mark;
        ``?`` means missing, and so do the words that `pandas.read_csv` takes for missing, see `words_for_missing`), a
        Parquet file (``.parquet``, ``.pq``), an ARFF file (``.arff``), a workbook (``.xlsx``, ``.xlsm``, ``.xlsb``,
        ``.xls``, ``.ods``, see `read_cells`; its first sheet, or that of ``book.xlsx:SHEET``); text files also with
        ``.gz``; or ``openml:ID``. Numbers may have decimal commas if commas do not separate cells, see
        `decimal_comma_columns`.
    schema : TableSchema, optional
        Columns of a model. In delimited text and workbooks, cells that are levels of its categories stay as they are
        written, even if they are words for missing such as ``NA``, or numbers such as ``007``. If the training table
        had decimal commas, ``1,125`` is a bit more than one, and ``1.500`` is fifteen hundred unless others have
        decimal points.
    labels : (str, sequence)
        Name of the target of a model, and its classes: cells that are texts among these stay as they are written, too.
    check : ReadingCheck
        Called between the steps of reading a Parquet file; may raise to stop. Other files are read in one step.

    Returns
    -------
    pandas.DataFrame
        At least one row and one column, with a plain row index. For OpenML, ``frame.attrs["target"]`` is the name
        of the default target if there is exactly one. With decimal commas in all columns that have decimals,
        ``frame.attrs["decimal"]`` is a comma.

    Raises
    ------
    DataError
        If the file is missing, empty, damaged, ragged or of an unknown kind, if column names repeat, or if a compressed
        file expands to more than 256 MiB and 100 times its size. The message names the line or the column.
    UnknownNameError
        If a workbook has no sheet of the given name.

    Warns
    -----
    LeftOutWarning
        If no sheet is named, and others than the first have content, too.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("a;b\n1;x\n2;y\n")
    >>> read_table(path)
       a  b
    0  1  x
    1  2  y
    """
    if _is_openml(source):
        return _read_openml(str(source))
    path, sheet = split_sheet(source)
    kind = _kind_of(path)
    _check_file(path)
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty. Expected a header line and at least one row.")
    if kind in _CSV_SUFFIXES:
        frame = _read_csv(path, schema, labels)
    elif kind in {".parquet", ".pq"} and path.suffix.lower() == kind:
        frame = _read_parquet(path, check)
    elif kind == ".arff":
        frame = _read_arff(path)
    elif kind in SPREADSHEETS and path.suffix.lower() == kind:
        frame = _read_workbook(path, sheet, schema, labels)
    else:
        raise DataError(
            f"{path}: unknown suffix {path.suffix!r}. Expected {', '.join(_CSV_SUFFIXES)}, .arff (each also with .gz), "
            f".parquet, .pq, {', '.join(SPREADSHEETS)}. Unpack the file or save it as one of these; or, in Python, "
            "read it with pandas and pass the DataFrame."
        )
    return _not_empty(frame, str(path))


def words_for_missing(source: str | Path, frame: pd.DataFrame) -> dict[str, dict[str, int]]:
    r"""Count the words that were read as missing values in columns of text: some may be names.

    Parameters
    ----------
    source : str or path
        A table that `read_table` has read.
    frame : pandas.DataFrame
        Its result.

    Returns
    -------
    dict
        For each such column, the number of cells by word (``NA``, ``None``, ``null``, ...). Only delimited text files
        and workbooks have any. Empty cells and ``?`` do not count.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("country;size\nDE;1\nNA;NA\n;3\n")
    >>> words_for_missing(path, read_table(path))
    {'country': {'NA': 1}}
    """
    positions = [
        i
        for i, dtype in enumerate(frame.dtypes)
        if not pd.api.types.is_numeric_dtype(dtype) and frame.iloc[:, i].isna().any()
    ]
    path, sheet = split_sheet(source)
    if positions and not _is_openml(source) and path.suffix.lower() in SPREADSHEETS:
        cells: pd.DataFrame | None = read_cells(path, sheet, quiet=True).iloc[:, positions]
    else:
        cells = _cells_of_source(source, positions) if positions else None
    if cells is None:
        return {}
    found: dict[str, dict[str, int]] = {}
    for i, name in zip(positions, cells, strict=True):
        words = cells[name][frame.iloc[:, i].isna().to_numpy()].value_counts()
        counts = {str(word): int(n) for word, n in words.items() if word not in ("", _MISSING)}
        if counts:
            found[str(frame.columns[i])] = counts
    return found


def written_columns(source: str | Path, frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    r"""Return columns of a table as they are written, such as identifiers with leading zeros.

    Parameters
    ----------
    source : str or path
        A table that `read_table` has read.
    frame : pandas.DataFrame
        Its result.
    names : sequence of str
        Names of columns.

    Returns
    -------
    pandas.DataFrame
        The columns in the order of `names`: the texts of delimited files, nothing missing; the values of other files.

    Raises
    ------
    UnknownNameError
        If there is no such column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("id,size\n007,1\n,2\n")
    >>> written_columns(path, read_table(path), ["id"])["id"].tolist()
    ['007', '']
    """
    for name in names:
        if name not in frame.columns:
            raise UnknownNameError("column", name, map(str, frame.columns))
    positions = sorted({list(frame.columns).index(name) for name in names})
    cells = _cells_of_source(source, positions) if positions else None
    written = frame if cells is None else cells.set_axis(frame.columns[positions], axis=1)
    return written[list(dict.fromkeys(names))]


def as_categories(source: str | Path, frame: pd.DataFrame, names: Sequence[str]) -> None:
    r"""Replace columns by categories whose levels are what is written, such as ``01067`` where pandas has read 1067.

    Parameters
    ----------
    source : str or path
        A table that `read_table` has read.
    frame : pandas.DataFrame
        Its result; changed in place.
    names : sequence of str
        Names of columns.

    Raises
    ------
    UnknownNameError
        If there is no such column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("zip,size\n01067,1\n,2\n")
    >>> frame = read_table(path)
    >>> as_categories(path, frame, ["zip"])
    >>> frame["zip"].tolist()
    ['01067', nan]
    """
    for name, cells in written_columns(source, frame, names).items():
        levels = cells.str.strip() if pd.api.types.infer_dtype(cells, skipna=True) == "string" else cells
        frame[name] = levels.where(frame[name].notna()).astype("category")


def take_column(frame: pd.DataFrame, name: str, role: str) -> pd.Series[Any]:
    """Remove a column that is no feature from a table, and return it.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    name : str
        Name of the column.
    role : str
        What the column is, for messages: ``"target"``, ``"weights"``.

    Raises
    ------
    UnknownNameError
        If there is no such column.
    DataError
        If there is no other column.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": [1, 2], "price": [10, 20]})
    >>> take_column(frame, "price", "target").tolist(), list(frame)
    ([10, 20], ['size'])
    """
    if name not in frame.columns:
        raise UnknownNameError("column", name, map(str, frame.columns))
    if frame.shape[1] == 1:
        raise DataError(f"There is no column beside the {role} {name!r}. Expected at least one feature.", column=name)
    return frame.pop(name)


def _is_openml(source: str | Path) -> bool:
    return str(source).lower().startswith("openml:")


def _kind_of(path: Path) -> str:
    """Return the suffix that tells the kind of a file, in small letters."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])


def _check_file(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, FileNotFoundError):
            reason = f"there is no such file. Check the spelling and the working directory ({Path.cwd()})."
        else:
            reason = f"cannot be read ({getattr(error, 'strerror', None) or error}). Check the path."
        raise DataError(f"{path}: {reason}") from error
    if stat.S_ISDIR(mode):
        raise DataError(f"{path}: expected a file, found a directory. Name one file in it.")
    if not stat.S_ISREG(mode):  # reading a pipe or a device may never end
        raise DataError(
            f"{path}: expected a regular file, found a pipe, a socket or a device. Copy it to a file first."
        )


def _not_empty(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    if frame.shape[1] == 0 or frame.shape[0] == 0:
        missing = "columns" if frame.shape[1] == 0 else "rows"
        raise DataError(f"{source}: the table has no {missing}. Expected a header and at least one row of data.")
    return frame


def _unique_names(names: Sequence[str], source: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1 and name]
    if repeated:
        listed = ", ".join(map(repr, repeated[:10]))
        raise DataError(
            f"{source}: column names must differ, but {listed} occurs more than once. Rename or remove the copies.",
            column=repeated[0],
        )


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else path.open("rb")


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file, expanded within bounds."""
    size, n_bytes = path.stat().st_size, 0
    limit = expansion_limit(size)
    with _open(path) as file:
        while chunk := file.read(1 << 20):
            n_bytes += len(chunk)
            if n_bytes > limit:
                raise expansion_error(str(path), size, limit)
            yield chunk


def _encoding(path: Path) -> str:
    """Return the first encoding that decodes the whole file.

    Raises
    ------
    DataError
        If the file cannot be read to its end, is not text, or is UTF-8 except for a line.
    """
    try:
        start = next(_chunks(path), b"")
        found = next((what for sign, what in _NO_TEXT.items() if start.startswith(sign)), None)
        if found:
            raise DataError(
                f"{path}: expected text, found {found}. Unpack it or save it as CSV; Parquet files end in .parquet, "
                "compressed text in .gz."
            )
        marked = next((encoding for mark, encoding in _BYTE_ORDER_MARKS.items() if start.startswith(mark)), None)
        for encoding in (marked,) if marked else ("utf-8", "cp1252"):
            failed = _first_undecodable(path, encoding)
            if failed is None:
                return encoding
            line, is_plain = failed
            if marked or (encoding == "utf-8" and not is_plain):
                raise DataError(
                    f"{path}, line {line}: expected text in {encoding.upper()} as before, found bytes that are none. "
                    "The line is damaged or has another encoding. Save the whole file as UTF-8."
                )
    except (OSError, EOFError, zlib.error) as error:
        what = "compressed file is damaged" if path.suffix.lower() == ".gz" else "file cannot be read"
        raise DataError(f"{path}: the {what} ({error}). Compress, copy or download it again.") from error
    return "latin-1"


def _first_undecodable(path: Path, encoding: str) -> tuple[int, bool] | None:
    """Return the line where decoding fails, and whether everything before it is ASCII; None if it succeeds.

    Raises
    ------
    DataError
        If there is a NUL byte before.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    line, is_plain = 1, True
    for chunk in chain(_chunks(path), [b""]):
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            before = error.object[: error.start]
            return line + before.count(b"\n"), is_plain and before.isascii()
        if "\0" in text:
            line += text[: text.index("\0")].count("\n")
            raise DataError(
                f"{path}, line {line}: expected text, found a NUL byte. The file is damaged, or UTF-16 without a "
                "byte-order mark. Save it as UTF-8."
            )
        line += text.count("\n")
        is_plain = is_plain and text.isascii()
    return None


def _text(path: Path, encoding: str, newline: str | None = None) -> TextIO:
    """Open a text file; lines end where `io.TextIOWrapper` ends them, not at every line separator of Unicode."""
    return io.TextIOWrapper(_open(path), encoding=encoding, newline=newline)


def _records(text: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a delimited file, each with the line where it ends; skip blank lines."""
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    for record in reader:
        if len(record) > 1 or (record and record[0].strip()):
            yield reader.line_num, record


def _sniff_delimiter(path: Path, encoding: str) -> str:
    """Choose the delimiter that splits the first records into equal numbers of fields, as many as possible."""
    best, best_rank = ",", (False, 1)
    for delimiter in _DELIMITERS:
        with _text(path, encoding, newline="") as text:
            widths = [len(record) for _, record in islice(_records(text, delimiter), _SAMPLE_RECORDS)]
        rank = (len(set(widths)) == 1, widths[0] if widths else 0)
        if rank[1] > 1 and (best_rank[1] == 1 or rank > best_rank):
            best, best_rank = delimiter, rank
    return best


def _read_csv(path: Path, schema: TableSchema | None, labels: tuple[str, Sequence[object]]) -> pd.DataFrame:
    encoding = _encoding(path)
    delimiter = _sniff_delimiter(path, encoding)
    with _text(path, encoding, newline="") as text:
        _, header = next(_records(text, delimiter), (1, []))
    if not any(name.strip() for name in header):
        raise DataError(f"{path}: the first line holds no column names. Expected a header line.")
    header = [name.strip() for name in header]
    _unique_names(header, str(path))
    _check_widths(path, encoding, delimiter, len(header), limit=_SAMPLE_RECORDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = _parsed_csv(path, encoding, delimiter, na_values=[_MISSING])
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError) as error:
        _check_widths(path, encoding, delimiter, len(header))
        if "EOF inside string" in str(error):  # in any other line, the widths would differ
            raise DataError(
                f"{path}, line 1: a quote is opened among the column names and never closed. Close or remove it."
            ) from error
        raise DataError(f"{path}: cannot be read as a table ({error}). Check quotes and delimiters.") from error
    if len(frame) and frame.iloc[:, -1].isna().any():  # pandas fills short rows silently
        _check_widths(path, encoding, delimiter, len(header))
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    if delimiter != ",":
        _read_decimal_commas(frame, path, encoding, delimiter, schema)
    if (hint := _point_thousands_hint(frame, path, encoding, delimiter)) is not None:
        warnings.warn(ColumnKindWarning(hint), stacklevel=level_of_caller())
    _restore_levels(frame, _levels_to_keep(frame, schema, labels), path, encoding, delimiter)
    return frame


def _read_workbook(
    path: Path, sheet: str | None, schema: TableSchema | None, labels: tuple[str, Sequence[object]]
) -> pd.DataFrame:
    cells = read_cells(path, sheet)
    _unique_names(list(cells.columns), str(path))
    frame = with_types(cells, missing=_WORDS_FOR_MISSING)
    numeric = None if schema is None else _numeric_columns(frame, schema)
    convert_decimal_commas(frame, expected=schema is not None and schema.decimal == ",", numeric=numeric)
    return with_levels(frame, cells, _levels_to_keep(frame, schema, labels))


def _levels_to_keep(
    frame: pd.DataFrame, schema: TableSchema | None, labels: tuple[str, Sequence[object]]
) -> dict[int, set[str]]:
    """Return what is read as it is written, by position: levels of a model's categories, and its classes."""
    levels = {} if schema is None else _levels_read_otherwise(frame, schema)
    name, classes = labels
    if name in frame.columns and (texts := {label for label in classes if isinstance(label, str)}):
        levels[list(frame.columns).index(name)] = texts
    return dict(sorted(levels.items()))


def _numeric_columns(frame: pd.DataFrame, schema: TableSchema) -> set[int]:
    """Return the positions of columns that are numbers in a model."""
    return {i for i, column in _columns_of_model(frame, schema) if column.kind is ColumnKind.NUMERIC}


def _columns_of_model(frame: pd.DataFrame, schema: TableSchema) -> Iterator[tuple[int, Column]]:
    """Yield the columns of a model that a table has, each with its position there."""
    position_of = {name: i for i, name in enumerate(frame.columns)}
    for number, column in enumerate(schema.columns):
        i = position_of.get(column.name) if schema.named else number
        if i is not None and i < frame.shape[1]:
            yield i, column


def _read_decimal_commas(
    frame: pd.DataFrame, path: Path, encoding: str, delimiter: str, schema: TableSchema | None
) -> None:
    """Replace columns of numbers with decimal commas, which pandas has read as texts.

    In such a table, points separate thousands: where they may, whole numbers are replaced, too.
    """
    expected = schema is not None and schema.decimal == ","
    numeric = None if schema is None else _numeric_columns(frame, schema)
    positions = decimal_comma_columns(frame, numeric=numeric)
    if not positions and not expected:
        return
    others = [i for i in range(frame.shape[1]) if i not in positions]
    read = [i for i in others if pd.api.types.is_float_dtype(frame.dtypes.iloc[i])]
    written: Iterable[AnyArray] = _written_cells(path, encoding, delimiter, read).T.to_numpy() if read else ()
    texts = {i: pd.Series(cells).where(frame.iloc[:, i].notna()) for i, cells in zip(read, written, strict=True)}
    is_mixed = any(map(has_decimal_points, texts.values()))
    if not positions:
        if is_mixed:
            return
        positions = decimal_comma_columns(frame, expected=True, numeric=numeric)
    texts |= {
        i: frame.iloc[:, i] for i in others if pd.api.types.infer_dtype(frame.iloc[:, i], skipna=True) == "string"
    }
    for i, cells in texts.items():
        is_numeric = None if numeric is None else i in numeric
        if separates_thousands(cells) and (column := with_decimal_points(cells, is_numeric=is_numeric)) is not None:
            frame.isetitem(i, column.array)
    if not is_mixed:
        frame.attrs["decimal"] = ","
    if not positions:
        return
    # Reading them again is faster than converting texts.
    numbers = _parsed_csv(path, encoding, delimiter, usecols=positions, na_values=[_MISSING], decimal=",")
    for i, name in zip(positions, numbers, strict=True):
        is_read = pd.api.types.is_numeric_dtype(numbers[name].dtype)
        is_numeric = None if numeric is None else i in numeric
        found = numbers[name] if is_read else with_decimal_points(frame.iloc[:, i], is_numeric=is_numeric)
        if found is not None:
            frame.isetitem(i, found.array)


def _point_thousands_hint(frame: pd.DataFrame, path: Path, encoding: str, delimiter: str) -> str | None:
    """Return a warning about columns whose first cells have points that probably separate thousands, else None."""
    first = frame.head(_FIRST_CELLS)
    are_floats = first.dtypes == np.float64
    doubtful = [i for i in np.flatnonzero(are_floats).tolist() if may_separate_thousands(first.iloc[:, i].to_numpy())]
    if not doubtful:
        return None
    written = _written_cells(path, encoding, delimiter, doubtful, nrows=_FIRST_CELLS)
    found = {}
    for i, name in zip(doubtful, written, strict=True):
        cells = pd.Series(written[name].to_numpy(dtype=object)).where(first.iloc[:, i].notna().to_numpy())
        if (example := shows_point_thousands(cells)) is not None:
            found[str(frame.columns[i])] = example
    if not found:
        return None
    example = next(iter(found.values()))
    return (
        f"{columns_hold(list(found))} numbers such as {example!r} beside whole ones below 1,000, which are read as "
        f"{float(example):g} and the like. If points separate thousands, read the file with pandas.read_csv(..., "
        "decimal=',', thousands='.')."
    )


def _restore_levels(
    frame: pd.DataFrame, levels: Mapping[int, set[str]], path: Path, encoding: str, delimiter: str
) -> None:
    """Replace the values of cells that are levels of a model's categories by what is written there."""
    if not levels:
        return
    cells = _written_cells(path, encoding, delimiter, list(levels))
    for i, name in zip(levels, cells, strict=True):
        written = cells[name].str.strip()
        column = frame.iloc[:, i].astype(object).where(~written.isin(levels[i]), written)
        frame.isetitem(i, column.array)


def _levels_read_otherwise(frame: pd.DataFrame, schema: TableSchema) -> dict[int, set[str]]:
    """Return the levels of a model's categories, by position, in columns where pandas may have read them otherwise."""
    found: dict[int, set[str]] = {}
    for i, column in _columns_of_model(frame, schema):
        if not column.categories:
            continue
        levels, cells = set(column.categories), frame.iloc[:, i]
        is_text = not pd.api.types.is_numeric_dtype(cells.dtype)
        if not is_text or (levels & _WORDS_FOR_MISSING and cells.isna().any()):
            found[i] = levels
    return found


def _cells_of_source(source: str | Path, positions: list[int]) -> pd.DataFrame | None:
    """Return columns of a table as `_written_cells` does, None if it is no delimited file."""
    path, _ = split_sheet(source)
    if _is_openml(source) or _kind_of(path) not in _CSV_SUFFIXES:
        return None
    encoding = _encoding(path)
    return _written_cells(path, encoding, _sniff_delimiter(path, encoding), positions)


def _written_cells(
    path: Path, encoding: str, delimiter: str, positions: list[int], nrows: int | None = None
) -> pd.DataFrame:
    """Return columns of a delimited file, or their first rows, as texts, nothing missing."""
    return _parsed_csv(path, encoding, delimiter, usecols=positions, dtype=str, keep_default_na=False, nrows=nrows)


def _parsed_csv(path: Path, encoding: str, delimiter: str, **options: Any) -> pd.DataFrame:
    frame: pd.DataFrame = pd.read_csv(
        path, sep=delimiter, encoding=encoding, index_col=False, low_memory=False, skipinitialspace=True, **options
    )
    return frame


def _check_widths(path: Path, encoding: str, delimiter: str, width: int, *, limit: int | None = None) -> None:
    with _text(path, encoding, newline="") as text:
        for number, (line, record) in enumerate(islice(_records(text, delimiter), limit)):
            if len(record) != width:
                raise DataError(
                    f"{path}, line {line}: record {number} has {counted(len(record), 'field')}, but the header has "
                    f"{width} (delimiter {delimiter!r}). Check for missing quotes or stray delimiters there, and for "
                    "lines that are not part of the table, such as a title or totals."
                )


def _read_parquet(path: Path, check: ReadingCheck) -> pd.DataFrame:
    import pyarrow.parquet as pq

    try:
        _unique_names(pq.read_schema(path).names, str(path))
        frame = read_parquet(path, str(path), check=check)
        return_freed_memory()  # otherwise the process would keep it for the whole run
    except CashmereError:
        raise
    except Exception as error:  # of Arrow, of JSON in its header, of time zones, lack of memory, ...
        reason = f"{type(error).__name__}: {error}"
        raise DataError(
            f"{path}: the file cannot be read as Parquet ({reason}). Write or download it again."
        ) from error
    return frame.reset_index(drop=True)


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _split(text: str, pattern: re.Pattern[str] = _FIELD) -> list[str]:
    """Split an ARFF list at its commas; quoted fields keep their quotes."""
    if "'" not in text and '"' not in text:
        return [field.strip() for field in text.split(",")]
    fields, position = [], 0
    while match := pattern.match(text, position):
        fields.append(match[1].rstrip())
        position = match.end()
        if not match[2]:
            break
    return fields


def _read_arff(path: Path) -> pd.DataFrame:
    with _text(path, _encoding(path)) as text:
        return _parsed_arff(path, enumerate(text, start=1))


def _parsed_arff(path: Path, lines: Iterator[tuple[int, str]]) -> pd.DataFrame:
    names: list[str] = []
    types: list[str] = []
    for number, raw in lines:
        line = raw.strip()
        word = line.split(maxsplit=1)[0].lower() if line else ""
        if word == "@data":
            break
        if word == "@attribute":
            match = _ATTRIBUTE.match(line)
            if match is None and "{" in line:  # no blank between name and levels
                match = re.match(r"@attribute\s+([^\s{]+)\s*(\{.*)$", line, re.IGNORECASE)
            if match is None:
                raise DataError(f"{path}, line {number}: expected '@attribute NAME TYPE', found {line!r}.")
            names.append(_unquote(match[1]))
            types.append(match[2].strip())
        elif word and word[0] != "%" and word != "@relation":
            raise DataError(f"{path}, line {number}: expected an ARFF declaration, found {line[:60]!r}.")
    else:
        raise DataError(f"{path}: there is no @data line. Expected a complete ARFF file.")
    _unique_names(names, str(path))
    levels = [[_unquote(v) for v in _split(t.strip("{} \t"))] if t.startswith("{") else [] for t in types]
    rows: list[list[str | None]] = []
    numbers: list[int] = []
    for number, raw in lines:
        line = raw.strip()
        if line and line[0] != "%":
            rows.append(_arff_row(line, types, levels, f"{path}, line {number}"))
            numbers.append(number)
    content: dict[str, Any] = {}
    for i, name in enumerate(names):
        values = [row[i] for row in rows]
        content[name] = _arff_column(values, types[i], levels[i], name, path, numbers)
    return pd.DataFrame(content)


def _arff_row(line: str, types: list[str], levels: list[list[str]], place: str) -> list[str | None]:
    """Return the unquoted fields of a data row, None where missing; sparse rows are completed."""
    if line.startswith("{") and line.endswith("}"):
        row: list[str | None] = [(levels[i][0] if levels[i] else "0") for i in range(len(types))]
        for entry in filter(None, _split(line[1:-1], _SPARSE_FIELD)):
            match = _SPARSE_ENTRY.fullmatch(entry)
            if match is None or int(match[1]) >= len(row):
                raise DataError(
                    f"{place}: expected 'INDEX VALUE' with an index below {len(row)}; found {entry[:60]!r}."
                )
            row[int(match[1])] = None if match[2] == _MISSING else _unquote(match[2])
        return row
    fields = _split(line)
    if len(fields) != len(types):
        raise DataError(f"{place}: expected {len(types)} values, found {len(fields)}. Check quotes and commas.")
    return [None if field in {_MISSING, ""} else _unquote(field) for field in fields]


def _arff_column(
    values: list[str | None], type_: str, levels: list[str], name: str, path: Path, numbers: list[int]
) -> pd.Series[Any] | pd.Categorical:
    def failed(i: int, expected: str) -> DataError:
        text = f"{path}, line {numbers[i]}: column {name!r} must hold {expected}, found {values[i]!r}. Correct the row."
        return DataError(text, column=name)

    if levels:
        known = set(levels)
        for i, value in enumerate(values):
            if value is not None and value not in known:
                raise failed(i, f"one of its declared levels {levels[:10]}")
        return pd.Categorical(values, categories=list(dict.fromkeys(levels)))
    word = type_.split()[0].lower()
    column = pd.Series(values, dtype=object)
    if word == "string":
        return column
    if word == "date":
        dates = pd.to_datetime(column, errors="coerce", format="ISO8601")
        bad = np.flatnonzero(dates.isna() & column.notna())
        if bad.size:
            raise failed(int(bad[0]), "ISO dates (yyyy-mm-ddThh:mm:ss)")
        return dates
    if word not in {"numeric", "real", "integer"}:
        raise DataError(
            f"{path}: column {name!r} has the unknown ARFF type {type_!r}. "
            "Expected numeric, real, integer, string, date or a list of levels.",
            column=name,
        )
    parsed = pd.to_numeric(column, errors="coerce").astype(np.float64)
    bad = np.flatnonzero(parsed.isna() & column.notna() & (column.astype(str).str.lower() != "nan"))
    if bad.size:
        raise failed(int(bad[0]), "numbers")
    is_whole = bool(np.all((parsed == np.floor(parsed)) & (parsed.abs() <= 2**53)))  # beyond, floats have gaps
    return parsed.astype(np.int64) if word == "integer" and is_whole else parsed


def _read_openml(source: str) -> pd.DataFrame:
    from sklearn.datasets import fetch_openml

    identifier = source.partition(":")[2].strip()
    if not identifier.isdigit():
        raise DataError(f"{source}: expected 'openml:ID' with the number of a data set, for example 'openml:31'.")
    try:
        bunch = fetch_openml(data_id=int(identifier), as_frame=True, parser="auto")
    except OSError as error:
        raise DataError(
            f"{source}: OpenML cannot be reached ({error}). Connect once, so that the data set is kept in "
            "~/scikit_learn_data, or pass a file."
        ) from error
    except ValueError as error:
        raise DataError(f"{source}: OpenML has no usable table of that number ({error}). Check the number.") from error
    frame = bunch.frame
    _unique_names([str(name) for name in frame.columns], source)
    if len(bunch.target_names) == 1:
        frame.attrs["target"] = bunch.target_names[0]
    return _not_empty(frame.reset_index(drop=True), source)
