"""Broken and strange inputs for `fit` and `predict`, each with the outcome that is promised for it.

A case is a change of one good table (`GOOD`). It is used twice: `fit` learns from it; `predict` gives it, without its
target, to a model of the good table. An outcome is ``"model"``, ``"predictions"`` or ``"ERROR: text"`` with one of our
own errors and a part of its message, usually the column or the line.

``python tests/faults/broken_tables.py`` writes ``docs/broken_tables.md`` from these cases.
"""

from __future__ import annotations

import bz2
import datetime as dt
import decimal
import fractions
import gzip
import json
import os
import struct
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

MODEL, PREDICTED = "model", "predictions"
BASE_MIB, TIMES_SIZE, COLUMN_BYTES = 64, 40, 4096
"""Bound of the memory that reading a file takes: MiB, times its expanded size, and bytes for each column."""
N = 60
TARGET = "target"
ROWS = [[i * 0.5, "abc"[i % 3], "yes" if i % 2 else "no"] for i in range(N)]
GOOD = pd.DataFrame(ROWS, columns=["size", "kind", TARGET])
TEXT = GOOD.to_csv(index=False)
LINES = TEXT.splitlines()
X, Y = GOOD.drop(columns=TARGET), GOOD[TARGET]


@dataclass(frozen=True)
class Case:
    """An input and what becomes of it.

    Attributes
    ----------
    group, name : str
        What the input is.
    build : callable
        Folder -> path of a file, or the pair (features, target).
    fit, predict : str
        Outcomes.
    slow : bool
        Takes seconds.
    """

    group: str
    name: str
    build: Callable[[Path], Any]
    fit: str
    predict: str
    slow: bool = False


CASES: list[Case] = []
_group = ""


def group(name: str) -> None:
    global _group
    _group = name


def case(name: str, build: Callable[[Path], Any], fit: str, predict: str, *, slow: bool = False) -> None:
    CASES.append(Case(_group, name, build, fit, predict, slow))


def file(content: str | bytes, name: str = "table.csv") -> Callable[[Path], Path]:
    """Build a file; text is written as UTF-8 with its line ends as they are."""

    def build(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        return path

    return build


def gz(content: bytes) -> Callable[[Path], Path]:
    return file(content, "table.csv.gz")


def table(make: Callable[[], Any], y: Any = Y) -> Callable[[Path], tuple[Any, Any]]:
    """Build Python objects, when they are needed: features and target."""
    return lambda folder: (make(), y)


def column(make: Callable[[], Any], name: str = "size") -> Callable[[Path], tuple[Any, Any]]:
    """Build a frame in which one column has other values, kept as they are if they are a list."""

    def build(folder: Path) -> tuple[Any, Any]:
        values = make()
        return X.assign(**{name: pd.Series(values, dtype=object) if type(values) is list else values}), Y

    return build


def target(make: Callable[[], Any]) -> Callable[[Path], tuple[Any, Any]]:
    """Build the good features with another target."""
    return lambda folder: (X, make())


def cells(values: list[str], name: str = "size") -> Callable[[Path], Path]:
    """Build a CSV file in which a column holds these texts, again and again."""
    frame = GOOD.astype({name: object})
    frame[name] = [values[i % len(values)] for i in range(N)]
    return file(frame.to_csv(index=False))


def header(names: list[str]) -> Callable[[Path], Path]:
    """Build a CSV file with other column names (the last is the target) and as many columns as there are names."""
    rows = [[*([row[0], row[1]] * len(names))[: len(names) - 1], row[2]] for row in ROWS]
    return file(pd.DataFrame(rows, columns=names).to_csv(index=False))


def line(number: int, text: str) -> Callable[[Path], Path]:
    """Build a CSV file in which one line is another; line 1 is the header."""
    return file("\n".join([*LINES[: number - 1], text, *LINES[number:]]) + "\n")


def parquet(content: Any, **options: Any) -> Callable[[Path], Path]:
    """Build a Parquet file from a frame or an Arrow table."""

    def build(folder: Path) -> Path:
        made = content() if callable(content) else content
        path = folder / "table.parquet"
        pq.write_table(made if isinstance(made, pa.Table) else pa.Table.from_pandas(made), path, **options)
        return path

    return build


TEXT_VIEW = pa.string_view() if int(pa.__version__.partition(".")[0]) >= 21 else pa.large_string()
"""The first Arrow that writes views is 21."""


def arrow(values: Any, type_: pa.DataType | None = None, name: str = "size") -> Callable[[Path], Path]:
    """Build a Parquet file in which a column is of an Arrow type."""
    good = pa.Table.from_pandas(GOOD, preserve_index=False)
    made = pa.array([values[i % len(values)] for i in range(N)], type_)
    return parquet(good.set_column(good.column_names.index(name), name, made))


def arff(changes: dict[str, str] | None = None, rows: list[str] | None = None) -> Callable[[Path], Path]:
    text = "@relation good\n@attribute size numeric\n@attribute kind {a,b,c}\n@attribute target {no,yes}\n@data\n"
    for old, new in (changes or {}).items():
        assert old in text
        text = text.replace(old, new)
    return file(text + "\n".join(rows or LINES[1:]) + "\n", "table.arff")


def damaged(build: Callable[[Path], Path], change: Callable[[bytearray], bytes]) -> Callable[[Path], Path]:
    """Build a file, then change its bytes."""

    def build_damaged(folder: Path) -> Path:
        path = build(folder)
        path.write_bytes(change(bytearray(path.read_bytes())))
        return path

    return build_damaged


class Hostile:
    """A value whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Unequal:
    """A value that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = object.__hash__


# ---------------------------------------------------------------- files of text

group("Encodings of CSV")
ACCENTS = TEXT.replace("kind", "größe").replace("a", "é")
case("UTF-8 with accents", file(TEXT.replace(",a,", ",é,")), MODEL, PREDICTED)
case("UTF-8 with a byte-order mark", file(TEXT.encode("utf-8-sig")), MODEL, PREDICTED)
case("two byte-order marks", file(b"\xef\xbb\xbf" + TEXT.encode("utf-8-sig")), MODEL, PREDICTED)
case(
    "byte-order mark before a quoted name",
    file(TEXT.replace("size", '"size"', 1).encode("utf-8-sig")),
    MODEL,
    PREDICTED,
)
case(
    "byte-order mark only",
    file(b"\xef\xbb\xbf"),
    "DataError: the first line holds no column names",
    "DataError: the first line holds no column names",
)
case("UTF-16 with a byte-order mark", file(TEXT.encode("utf-16")), MODEL, PREDICTED)
case("UTF-16, big-endian, with a byte-order mark", file(b"\xfe\xff" + TEXT.encode("utf-16-be")), MODEL, PREDICTED)
case(
    "UTF-16 without a byte-order mark",
    file(TEXT.encode("utf-16-le")),
    "DataError: line 1: expected text",
    "DataError: line 1: expected text",
)
case(
    "UTF-16, cut in the middle of a letter",
    file(TEXT.encode("utf-16")[:-1]),
    "DataError: line 61: expected text in UTF-16 as before",
    "DataError: line 61: expected text in UTF-16 as before",
)
case("UTF-32 with a byte-order mark", file(TEXT.encode("utf-32")), MODEL, PREDICTED)
case("Windows-1252", file(TEXT.replace(",a,", ",é€,").encode("cp1252")), MODEL, PREDICTED)
case(
    "Latin-1 with bytes that Windows-1252 lacks",
    file(TEXT.replace(",a,", ",\x81é,").encode("latin-1")),
    MODEL,
    PREDICTED,
)
case("Mac Roman", file(TEXT.replace(",a,", ",é,").encode("mac-roman")), MODEL, PREDICTED)
case("Shift JIS", file(TEXT.replace(",a,", ",東京,").encode("shift-jis")), MODEL, PREDICTED)
case("GB 18030", file(TEXT.replace(",a,", ",北京,").encode("gb18030")), MODEL, PREDICTED)
case("EBCDIC", file(TEXT.encode("cp500")), "DataError: the table has no rows", "DataError: the table has no rows")
case(
    "UTF-8, cut in the middle of a letter",
    file((TEXT + "1,é").encode()[:-1]),
    "DataError: line 62: record 61 has 2 fields",
    "DataError: line 62: record 61 has 2 fields",
)
case(
    "UTF-8 with one line of Windows-1252",
    file(TEXT.replace("\n", "é\n", 1).encode() + b"1.5,\xe9,no\n"),
    "DataError: line 62: expected text in UTF-8 as before",
    "DataError: line 62: expected text in UTF-8 as before",
)
case("lone surrogates", file(TEXT.replace(",a,", ",\ud800,")), MODEL, PREDICTED)
case(
    "NUL in a cell",
    file(TEXT.replace(",a,", ",a\0b,")),
    "DataError: line 2: expected text",
    "DataError: line 2: expected text",
)
case(
    "NUL in a name",
    file(TEXT.replace("size", "si\0ze", 1)),
    "DataError: line 1: expected text",
    "DataError: line 1: expected text",
)
case(
    "NUL bytes at the end (lost write)",
    file(TEXT.encode() + bytes(4096)),
    "DataError: line 62: expected text",
    "DataError: line 62: expected text",
)
case("NUL bytes only", file(bytes(4096)), "DataError: line 1: expected text", "DataError: line 1: expected text")
case(
    "random bytes",
    file(np.random.default_rng(0).bytes(5000)),
    "DataError: line 2: record 1 has 3 fields",
    "DataError: line 2: record 1 has 3 fields",
)
case(
    "zip archive called .csv",
    lambda folder: _zip(folder / "table.csv"),
    "DataError: expected text, found a zip archive or a spreadsheet",
    "DataError: expected text, found a zip archive or a spreadsheet",
)
case(
    "gzip called .csv",
    file(gzip.compress(TEXT.encode())),
    "DataError: expected text, found a gzip archive",
    "DataError: expected text, found a gzip archive",
)
case(
    "bzip2 called .csv",
    file(bz2.compress(TEXT.encode())),
    "DataError: expected text, found a bzip2 archive",
    "DataError: expected text, found a bzip2 archive",
)
case(
    "Parquet called .csv",
    lambda folder: parquet(GOOD)(folder).rename(folder / "table.csv"),
    "DataError: expected text, found a Parquet file",
    "DataError: expected text, found a Parquet file",
)
case(
    "PNG called .csv",
    file(b"\x89PNG\r\n\x1a\n" + np.random.default_rng(1).bytes(500)),
    "DataError: expected text, found a picture",
    "DataError: expected text, found a picture",
)
case(
    "PDF called .csv",
    file(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<\n/Type /Catalog\n>>\n"),
    "DataError: expected text, found a PDF document",
    "DataError: expected text, found a PDF document",
)
case(
    "SQLite called .csv",
    file(b"SQLite format 3\0" + bytes(1000)),
    "DataError: expected text, found an SQLite database",
    "DataError: expected text, found an SQLite database",
)
case(
    "web page called .csv",
    file("<!DOCTYPE html>\n<html>\n<body>404 Not Found</body>\n</html>\n"),
    "DataError: expected text, found a web page",
    "DataError: expected text, found a web page",
)
case(
    "JSON called .csv",
    file(json.dumps({"size": [1, 2], "target": ["no", "yes"]})),
    "DataError: expected text, found a JSON document",
    "DataError: expected text, found a JSON document",
)
case(
    "JSON lines called .csv",
    file('{"size": 1, "target": "no"}\n{"size": 2, "target": "yes"}\n'),
    "DataError: expected text, found a JSON document",
    "DataError: expected text, found a JSON document",
)

group("Lines of CSV")
case("old Macintosh line ends", file(TEXT.replace("\n", "\r")), MODEL, PREDICTED)
case("Windows line ends", file(TEXT.replace("\n", "\r\n")), MODEL, PREDICTED)
case("mixed line ends", file(TEXT.replace("\n", "\r\n", 30)), MODEL, PREDICTED)
case("no line end at the end", file(TEXT.rstrip("\n")), MODEL, PREDICTED)
case("empty lines between", file(TEXT.replace("\n", "\n\n")), MODEL, PREDICTED)
case("lines of blanks at the end", file(TEXT + "   \n \n"), MODEL, PREDICTED)
case("empty lines first", file("\n\n" + TEXT), MODEL, PREDICTED)
case("Unicode line separators in cells", file(TEXT.replace(",a,", ",a\u2028b,")), MODEL, PREDICTED)
case("next-line characters in cells", file(TEXT.replace(",a,", ",a\x85b,")), MODEL, PREDICTED)
case("form feeds and other separators in cells", file(TEXT.replace(",a,", ",a\f\v\x1c\x1eb,")), MODEL, PREDICTED)
case("line breaks in quoted cells", file(TEXT.replace(",a,", ',"a\nb",')), MODEL, PREDICTED)
case("Windows line breaks in quoted cells", file(TEXT.replace(",a,", ',"a\r\nb",')), MODEL, PREDICTED)
case(
    "carriage returns in cells without quotes",
    file(TEXT.replace(",a,", ",a\rb,")),
    "DataError: line 2: record 1 has 2 fields",
    "DataError: line 2: record 1 has 2 fields",
)
case(
    "end-of-file character at the end",
    file(TEXT + "\x1a"),
    "DataError: line 62: record 61 has 1 field",
    "DataError: line 62: record 61 has 1 field",
)
case(
    "one data row",
    file("\n".join(LINES[:2]) + "\n"),
    "DataError: Classifier can't train when only one class is present: all 1 rows are",
    PREDICTED,
)
case("two data rows, one of each class", file("\n".join(LINES[:3]) + "\n"), MODEL, PREDICTED)
case("header only", file(LINES[0] + "\n"), "DataError: the table has no rows", "DataError: the table has no rows")
case("empty file", file(""), "DataError: the file is empty", "DataError: the file is empty")
case(
    "blanks only",
    file("  \n \n"),
    "DataError: the first line holds no column names",
    "DataError: the first line holds no column names",
)
case(
    "comments first",
    file("# made by a machine\n# in 2024\n" + TEXT),
    "DataError: line 3: record 2 has 3 fields",
    "DataError: line 3: record 2 has 3 fields",
)
case(
    "title first",
    file("Sales of the year\n" + TEXT),
    "DataError: line 2: record 1 has 3 fields",
    "DataError: line 2: record 1 has 3 fields",
)
case(
    "units below the names",
    file("\n".join([LINES[0], "cm,-,-", *LINES[1:]]) + "\n"),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "header again in the middle",
    line(30, LINES[0]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "total below",
    file(TEXT + "Total: 885\n"),
    "DataError: line 62: record 61 has 1 field",
    "DataError: line 62: record 61 has 1 field",
)
case(
    "note of a spreadsheet first (sep=,)",
    file("sep=,\n" + TEXT),
    "DataError: line 2: record 1 has 3 fields",
    "DataError: line 2: record 1 has 3 fields",
)

group("Delimiters and quotes of CSV")
case("semicolons", file(TEXT.replace(",", ";")), MODEL, PREDICTED)
case("semicolons and decimal commas", file(TEXT.replace(",", ";").replace(".", ",")), MODEL, PREDICTED)
case(
    "semicolons, and commas that may separate thousands",
    file("\n".join(["size;kind;target", *(f"{i + 1},000;{kind};{label}" for i, (_, kind, label) in enumerate(ROWS))])),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("tabs", file(TEXT.replace(",", "\t")), MODEL, PREDICTED)
case("bars", file(TEXT.replace(",", "|")), MODEL, PREDICTED)
case(
    "blanks",
    file(TEXT.replace(",", " ")),
    "UnknownNameError: Unknown column 'target'. Known: size kind target",
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case(
    "carets",
    file(TEXT.replace(",", "^")),
    "UnknownNameError: Unknown column 'target'. Known: size^kind^target",
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case(
    "colons",
    file(TEXT.replace(",", ":")),
    "UnknownNameError: Unknown column 'target'. Known: size:kind:target",
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case(
    "two-letter delimiters",
    file(TEXT.replace(",", "::")),
    "UnknownNameError: Unknown column 'target'. Known: size::kind::target",
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case(
    "control characters as delimiters",
    file(TEXT.replace(",", "\x01")),
    "UnknownNameError: Unknown column 'target'",
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case(
    "columns of fixed width",
    file("\n".join("".join(f"{c:<12}" for c in s.split(",")) for s in LINES)),
    "UnknownNameError: Unknown column 'target'. Known: size        kind        target",
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case("Markdown table", file("\n".join(f"| {s.replace(',', ' | ')} |" for s in LINES)), MODEL, PREDICTED)
case("bars at both ends", file("\n".join(f"|{s.replace(',', '|')}|" for s in LINES)), MODEL, PREDICTED)
case(
    "semicolons in the header, commas below",
    file(TEXT.replace(LINES[0], LINES[0].replace(",", ";"))),
    "DataError: line 2: record 1 has 1 field",
    "DataError: line 2: record 1 has 1 field",
)
case(".tsv with commas", file(TEXT, "table.tsv"), MODEL, PREDICTED)
case("row numbers without a name first", file(GOOD.to_csv()), MODEL, PREDICTED)
case("delimiter at the end of all lines", file(TEXT.replace("\n", ",\n")), MODEL, PREDICTED)
case(
    "delimiter at the end of all lines but the first",
    file(TEXT.replace("\n", ",\n").replace(",\n", "\n", 1)),
    "DataError: line 2: record 1 has 4 fields",
    "DataError: line 2: record 1 has 4 fields",
)
case(
    "short row",
    line(30, "1.5,a"),
    "DataError: line 30: record 29 has 2 fields",
    "DataError: line 30: record 29 has 2 fields",
)
case(
    "long row",
    line(30, "1.5,a,no,4"),
    "DataError: line 30: record 29 has 4 fields",
    "DataError: line 30: record 29 has 4 fields",
)
case("row of delimiters", line(30, ",,"), "DataError: Input y contains NaN: 1 missing value", PREDICTED)
case(
    "header of delimiters",
    line(1, ",,"),
    "DataError: the first line holds no column names",
    "DataError: the first line holds no column names",
)
case(
    "header shorter than the rows",
    line(1, "size,target"),
    "DataError: line 2: record 1 has 3 fields",
    "DataError: line 2: record 1 has 3 fields",
)
case(
    "quote that is never closed, first row",
    line(2, '0.0,"a,no'),
    "DataError: line 61: record 1 has 2 fields",
    "DataError: line 61: record 1 has 2 fields",
)
case(
    "quote that is never closed, last row",
    line(61, '29.5,"c,yes'),
    "DataError: line 61: record 60 has 2 fields",
    "DataError: line 61: record 60 has 2 fields",
)
case(
    "quote that is never closed, header",
    line(1, 'size,"kind,target'),
    "DataError: line 1: a quote is opened among the column names",
    "DataError: line 1: a quote is opened among the column names",
)
case("stray quote in a cell", line(30, '14.0,a"b,no'), MODEL, PREDICTED)
case("text after a quoted cell", line(30, '14.0,"a"b,no'), MODEL, PREDICTED)
case("single quotes", file(TEXT.replace(",a,", ",'a',")), MODEL, PREDICTED)
case("typographic quotes", file(TEXT.replace(",a,", ",“a”,")), MODEL, PREDICTED)
case("quotes escaped by a backslash", file(TEXT.replace(",a,", ',"say \\"hi\\"",')), MODEL, PREDICTED)
case("everything quoted", file(GOOD.to_csv(index=False, quoting=1)), MODEL, PREDICTED)
case("quotes with blanks around", file(TEXT.replace(",a,", ', "a" ,')), MODEL, PREDICTED)
case(
    "delimiter in a quoted name",
    file(TEXT.replace("kind", '"ki,nd"', 1)),
    MODEL,
    "SchemaError: lacks 1 column it had in training: 'kind'",
)

group("Column names")
case(
    "name that repeats",
    header(["size", "size", TARGET]),
    "DataError: column names must differ, but 'size' occurs",
    "DataError: column names must differ, but 'size' occurs",
)
case(
    "names that repeat but for blanks",
    header(["size", " size ", TARGET]),
    "DataError: column names must differ, but 'size' occurs",
    "DataError: column names must differ, but 'size' occurs",
)
case("names that differ in case", header(["size", "Size", "kind", TARGET]), MODEL, PREDICTED)
case("look-alike names (Cyrillic)", header(["size", "sizе", "kind", TARGET]), MODEL, PREDICTED)
case("composed and decomposed accents", header(["size", "kind", "é", "e\u0301", TARGET]), MODEL, PREDICTED)
case(
    "zero-width character in a name",
    header(["si\u200bze", "kind", TARGET]),
    MODEL,
    "SchemaError: lacks 1 column it had in training: 'size'",
)
case("empty name", header(["size", "kind", "", TARGET]), MODEL, PREDICTED)
case("two empty names", header(["size", "kind", "", "", TARGET]), MODEL, PREDICTED)
case(
    "no header",
    file("\n".join(LINES[1:]) + "\n"),
    "UnknownNameError: Unknown column 'target'. Known: 0.0, a, no",
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case("names that pandas would make (a, a.1)", header(["size", "kind", "a", "a.1", TARGET]), MODEL, PREDICTED)
case("names like missing values", header(["size", "kind", "nan", "None", "NA", TARGET]), MODEL, PREDICTED)
case(
    "names like ours",
    header(["size", "kind", "prediction", "proba_yes", "x0", "weight", "values", "__class__", "fold", "index", TARGET]),
    MODEL,
    PREDICTED,
)
case("names like parts of dates", header(["size", "kind", "when", "when.year", "when.day", TARGET]), MODEL, PREDICTED)
case("name of a megabyte", header(["size", "kind", "x" * 1_000_000, TARGET]), MODEL, PREDICTED)
case("name with line breaks and escapes", header(["size", "kind", "a\nb\x1b[31mc\r", TARGET]), MODEL, PREDICTED)
case(
    "names with markup, JSON and formulas",
    header(["size", "kind", "<b>", '{"a":[1]}', "[/b]", "=1+1", TARGET]),
    MODEL,
    PREDICTED,
)
case(
    "target twice",
    header(["size", TARGET, TARGET]),
    "DataError: column names must differ, but 'target' occurs",
    "DataError: column names must differ, but 'target' occurs",
)
case(
    "target missing",
    header(["size", "kind", "label"]),
    "UnknownNameError: Unknown column 'target'. Known: kind, label, size",
    PREDICTED,
)
case(
    "target in another case",
    header(["size", "kind", "Target"]),
    "UnknownNameError: Unknown column 'target'. Did you mean 'Target'",
    PREDICTED,
)
case("blanks around the target's name", header(["size", "kind", " target "]), MODEL, PREDICTED)
case(
    "target only",
    file("target\n" + "no\nyes\n" * 30),
    "DataError: There is no column beside the target 'target'",
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case("target among the features, too", header(["size", "kind", "target_copy", TARGET]), MODEL, PREDICTED)

group("Values in CSV")
case("infinity", cells(["1", "inf", "2"]), "DataError: in column 'size'", "DataError: in column 'size'")
case(
    "negative infinity, written out",
    cells(["1", "-Infinity", "2"]),
    "DataError: in column 'size'",
    "DataError: in column 'size'",
)
case(
    "number above the largest float",
    cells(["1", "1e400", "2"]),
    "DataError: in column 'size'",
    "DataError: in column 'size'",
)
case(
    "integer of 400 digits", cells(["1", "9" * 400, "2"]), "DataError: in column 'size'", "DataError: in column 'size'"
)
case("integers of 30 digits", cells(["1", "1" + "0" * 29, "2"]), MODEL, PREDICTED)
case("integers above 2**64", cells(["18446744073709551616", "2", "3"]), MODEL, PREDICTED)
case("integers above 2**63", cells(["9223372036854775809", "2", "3"]), MODEL, PREDICTED)
case("integers that floats cannot tell apart", cells(["9007199254740993", "9007199254740992"]), MODEL, PREDICTED)
case(
    "1e30 and 5e-324",
    cells(["1e30", "5e-324", "-1e30"]),
    MODEL,
    PREDICTED,
)
case("negative zero", cells(["-0.0", "0.0", "1"]), MODEL, PREDICTED)
case(
    "one text in a column of numbers",
    line(30, "many,b,no"),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "numbers, text and truth values",
    cells(["1", "two", "True", "", "4.5"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "thousands separators",
    cells(["1,234", "2,345.5", "3"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("decimal commas", cells(["0,5", "1,5", "2"]), MODEL, "SchemaError: Column 'size' must hold numbers as in training")
case(
    "percent signs and currencies",
    cells(["50%", "€5", "$7"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "hexadecimal numbers", cells(["0x1F", "0x2A"]), MODEL, "SchemaError: Column 'size' must hold numbers as in training"
)
case(
    "underscores in numbers",
    cells(["1_000", "2_000"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "full-width and Arabic digits",
    cells(["１２", "٣٤"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("leading zeros", cells(["007", "010", "100"]), MODEL, PREDICTED)
case("complex numbers", cells(["1+2j", "3-1j"]), MODEL, "SchemaError: Column 'size' must hold numbers as in training")
case(
    "spellings of missing",
    cells(["1", "NA", "n/a", "null", "NaN", "?", "-", "#DIV/0!", "None", ""]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "spellings of missing in the target",
    cells(["no", "yes", "NA"], TARGET),
    "DataError: Input y contains NaN: 20 missing value",
    PREDICTED,
)
case("a column all missing", cells([""]), MODEL, PREDICTED)
case("a column all question marks", cells(["?"]), MODEL, PREDICTED)
case("all features missing", file("size,kind,target\n" + ",,no\n,,yes\n" * 30), MODEL, PREDICTED)
case("blank texts", cells(["a", " ", "\t", ""], "kind"), MODEL, PREDICTED)
case("a constant column", cells(["1"]), MODEL, PREDICTED)
case(
    "dates before 1678 and after 2262",
    cells(["0001-01-01", "1500-06-01", "9999-12-31"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "years of five digits",
    cells(["12024-01-01", "99999-12-31"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "dates that do not exist",
    cells(["2024-02-30", "2024-13-01", "2023-02-29"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "mixed time zones",
    cells(["2024-01-01T00:00+02:00", "2024-01-02T00:00-05:00", "2024-06-03T00:00Z"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "mixed ways to write dates",
    cells(["2024-01-02", "03/04/2024", "5 May 2024"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "leap seconds and hour 24",
    cells(["2016-12-31T23:59:60", "2016-12-31T24:00:00"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "times without dates",
    cells(["12:30", "23:59:59"]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("formulas and commands", cells(["=cmd|' /C calc'!A0", "$(id)", "`id`"], "kind"), MODEL, PREDICTED)
case("terminal escapes", cells(["\x1b[31ma", "\x07b", "c\x08"], "kind"), MODEL, PREDICTED)
case("right-to-left marks", cells(["\u202ea", "\u2066b", "c"], "kind"), MODEL, PREDICTED)
case("emoji and joined letters", cells(["👩‍👩‍👧", "🇺🇳", "क्ष"], "kind"), MODEL, PREDICTED)
case("lists and dictionaries as text", cells(["[1, 2]", "{'a': 1}"], "kind"), MODEL, PREDICTED)
case("a long text of one word", cells(["x" * 10_000, "y"], "kind"), MODEL, PREDICTED)

group("Targets")
case(
    "target with a gap",
    file(TEXT.replace(",no\n", ",\n", 1)),
    "DataError: Input y contains NaN: 1 missing value",
    PREDICTED,
)
case("target all missing", cells([""], TARGET), "DataError: Input y contains NaN: 60 missing value", PREDICTED)
case(
    "one class",
    cells(["yes"], TARGET),
    "DataError: Classifier can't train when only one class is present: all 60 rows are",
    PREDICTED,
)
case("one row per class", cells([f"class {i}" for i in range(N)], TARGET), MODEL, PREDICTED)
case("1,000 classes", table(lambda: pd.concat([X] * 50), np.arange(3000) // 3), MODEL, PREDICTED, slow=True)
case(
    "infinity in the target",
    target(lambda: np.where(np.arange(N) % 2, 1.0, np.inf)),
    "DataError: Input y contains infinity or a value too large for dtype",
    PREDICTED,
)
case("fractions as classes", target(lambda: np.arange(N) / 7), "DataError: Unknown label type: continuous", PREDICTED)
case(
    "numbers and text as classes",
    target(lambda: np.array([1, "a"] * 30, dtype=object)),
    "DataError: Unknown label type: the target holds int, str",
    PREDICTED,
)
case("complex target", target(lambda: np.arange(N) * 1j), "DataError: Complex data not supported", PREDICTED)
case(
    "dates as classes",
    target(lambda: pd.to_datetime(["2024-01-01", "2024-01-02"] * 30)),
    "DataError: Unknown label type: the target holds datetime64",
    PREDICTED,
)
case(
    "time spans as classes",
    target(lambda: pd.to_timedelta(["1d", "2d"] * 30)),
    "DataError: Unknown label type: the target holds timedelta64",
    PREDICTED,
)
case(
    "periods as classes",
    target(lambda: pd.Series(pd.period_range("2024", periods=2, freq="D").tolist() * 30)),
    "DataError: Unknown label type: the target holds Period",
    PREDICTED,
)
case("lists as classes", target(lambda: [[1], [2]] * 30), MODEL, PREDICTED)
case(
    "dictionaries as classes",
    target(lambda: pd.Series([{"a": 1}, {"b": 2}] * 30)),
    "DataError: Unknown label type: the target holds dict",
    PREDICTED,
)
case(
    "bytes as classes",
    target(lambda: np.array([b"no", b"yes"] * 30)),
    "DataError: Unknown label type: the target holds bytes_",
    PREDICTED,
)
case(
    "tuples as classes",
    target(lambda: pd.Series([(1, 2), (3, 4)] * 30)),
    "DataError: Unknown label type: the target holds tuple",
    PREDICTED,
)
case(
    "None among the classes",
    target(lambda: ["no", None, "yes"] * 20),
    "DataError: Input y contains NaN: 20 missing value",
    PREDICTED,
)
case(
    "pd.NA among the classes",
    target(lambda: pd.Series(["no", pd.NA, "yes"] * 20, dtype="string")),
    "DataError: Input y contains NaN: 20 missing value",
    PREDICTED,
)
case("integers above 2**64 as classes", target(lambda: np.array([2**70, 2**71] * 30, dtype=object)), MODEL, PREDICTED)
case(
    "classes that differ in a NUL only",
    target(lambda: ["a", "a\0"] * 30),
    "DataError: The label 'a\\x00' of the target holds a NUL",
    PREDICTED,
)
case("classes that differ in blanks only", target(lambda: ["a", "a "] * 30), MODEL, PREDICTED)
case(
    "classes with lone surrogates",
    target(lambda: ["\ud800", "b"] * 30),
    "DataError: The label '\\ud800' of the target holds half of a letter",
    PREDICTED,
)
case(
    "a class of 100,000 letters",
    target(lambda: ["x" * 100_000, "y"] * 30),
    "DataError: A label of the target is 100000 characters long",
    PREDICTED,
)
case("classes like formulas and escapes", target(lambda: ["=1+1", "\x1b[31m"] * 30), MODEL, PREDICTED)
case(
    "two target columns",
    target(lambda: GOOD[[TARGET, "kind"]]),
    "DataError: y should be a 1d array, got an array of shape",
    PREDICTED,
)
case("target as one column of a frame", target(lambda: GOOD[[TARGET]].to_numpy().ravel()), MODEL, PREDICTED)
case(
    "target as a sparse matrix",
    target(lambda: sparse.csr_matrix(np.arange(N) % 2)),
    "ColumnTypeError: Sparse data was passed for y, but dense data is required",
    PREDICTED,
)
case(
    "target as a dictionary",
    target(lambda: dict(enumerate(Y))),
    "DataError: y should be a 1d array, got an array of shape",
    PREDICTED,
)
case(
    "target as one text",
    target(lambda: "yes" * 20),
    "DataError: y should be a 1d array, got an array of shape",
    PREDICTED,
)
case("target as a number", target(lambda: 1), "DataError: y should be a 1d array, got an array of shape", PREDICTED)
case(
    "target as a generator",
    lambda folder: (X, (v for v in Y)),
    "DataError: y should be a 1d array, got an array of shape",
    PREDICTED,
)
case(
    "target of another length",
    target(lambda: Y[:-1]),
    "DataError: Found input variables with inconsistent numbers of samples: [60, 59]",
    PREDICTED,
)
case(
    "no target",
    target(lambda: None),
    "MissingParameterError: This AutoClassifier estimator requires y to be passed, but the target",
    PREDICTED,
)
case("target as a polars Series", target(lambda: pl.Series(Y.tolist())), MODEL, PREDICTED)
case("target as an Arrow array", target(lambda: pa.array(Y.tolist())), MODEL, PREDICTED)
case(
    "target with a level that does not occur",
    target(lambda: pd.Categorical(Y, ["no", "yes", "never"])),
    MODEL,
    PREDICTED,
)
case("decimals as classes", target(lambda: [decimal.Decimal(1), decimal.Decimal(2)] * 30), MODEL, PREDICTED)

group("Compressed files")
case("gzip", gz(gzip.compress(TEXT.encode())), MODEL, PREDICTED)
case("gzip in two parts", gz(gzip.compress(TEXT[:300].encode()) + gzip.compress(TEXT[300:].encode())), MODEL, PREDICTED)
case(
    "gzip, truncated",
    gz(gzip.compress(TEXT.encode())[:-20]),
    "DataError: the compressed file is damaged",
    "DataError: the compressed file is damaged",
)
case(
    "gzip, checksum wrong",
    damaged(gz(gzip.compress(TEXT.encode())), lambda b: bytes(b[:-8]) + b"12345678"),
    "DataError: the compressed file is damaged",
    "DataError: the compressed file is damaged",
)
case(
    "gzip, damaged in the middle",
    damaged(gz(gzip.compress(TEXT.encode())), lambda b: bytes(b[:40] + b[50:])),
    "DataError: the compressed file is damaged",
    "DataError: the compressed file is damaged",
)
case(
    "gzip, rubbish behind",
    gz(gzip.compress(TEXT.encode()) + b"rubbish"),
    "DataError: the compressed file is damaged",
    "DataError: the compressed file is damaged",
)
case(
    "gzip of nothing",
    gz(gzip.compress(b"")),
    "DataError: the first line holds no column names",
    "DataError: the first line holds no column names",
)
case(
    "gzip of gzip",
    gz(gzip.compress(gzip.compress(TEXT.encode()))),
    "DataError: expected text, found a gzip archive",
    "DataError: expected text, found a gzip archive",
)
case(
    "text called .gz",
    gz(TEXT.encode()),
    "DataError: the compressed file is damaged",
    "DataError: the compressed file is damaged",
)
case(
    "gzip header only",
    gz(b"\x1f\x8b\x08"),
    "DataError: the compressed file is damaged",
    "DataError: the compressed file is damaged",
)
case(
    "gzip bomb: 1 GiB of NUL bytes in a megabyte",
    lambda folder: _bomb(folder, b"\0"),
    "DataError: line 2: expected text, found a NUL byte",
    "DataError: line 2: expected text, found a NUL byte",
    slow=True,
)
case(
    "gzip bomb: 1 GiB of rows in a megabyte",
    lambda folder: _bomb(folder, b"1,a,no\n"),
    "DataError: expands to more than 256 MiB",
    "DataError: expands to more than 256 MiB",
    slow=True,
)
case(
    "zip archive",
    lambda folder: _zip(folder / "table.csv.zip"),
    "DataError: unknown suffix '",
    "DataError: unknown suffix '",
)
case(
    "bzip2",
    file(bz2.compress(TEXT.encode()), "table.csv.bz2"),
    "DataError: unknown suffix '",
    "DataError: unknown suffix '",
)

group("Parquet")
case("good Parquet", parquet(GOOD), MODEL, PREDICTED)
case(
    "truncated",
    damaged(parquet(GOOD), lambda b: bytes(b[: len(b) // 2])),
    "DataError: the file cannot be read as Parquet",
    "DataError: the file cannot be read as Parquet",
)
case(
    "name of the writer overwritten",
    damaged(parquet(GOOD), lambda b: bytes(b[:-30] + bytes(22) + b[-8:])),
    MODEL,
    PREDICTED,
)
case(
    "length of the footer too large",
    damaged(parquet(GOOD), lambda b: bytes(b[:-8] + struct.pack("<I", 2**31 - 1) + b[-4:])),
    "DataError: the file cannot be read as Parquet",
    "DataError: the file cannot be read as Parquet",
)
case(
    "page damaged",
    damaged(parquet(GOOD), lambda b: bytes(b[:10] + bytes(40) + b[50:])),
    "DataError: the file cannot be read as Parquet",
    "DataError: the file cannot be read as Parquet",
)
case(
    "magic number only",
    file(b"PAR1PAR1", "table.parquet"),
    "DataError: the file cannot be read as Parquet",
    "DataError: the file cannot be read as Parquet",
)
case(
    "CSV called .parquet",
    file(TEXT, "table.parquet"),
    "DataError: the file cannot be read as Parquet",
    "DataError: the file cannot be read as Parquet",
)
case(
    "description for pandas damaged",
    parquet(lambda: pa.Table.from_pandas(GOOD).replace_schema_metadata({b"pandas": b"{"})),
    "DataError: JSONDecodeError",
    "DataError: JSONDecodeError",
)
case(
    "description for pandas of another table",
    parquet(
        lambda: pa.Table.from_pandas(GOOD).replace_schema_metadata(
            pa.Table.from_pandas(pd.DataFrame({"z": [1]}, index=["a"])).schema.metadata
        )
    ),
    MODEL,
    PREDICTED,
)
case("no rows", parquet(GOOD[:0]), "DataError: the table has no rows", "DataError: the table has no rows")
case(
    "no columns",
    parquet(lambda: pa.table({})),
    "DataError: the table has no columns",
    "DataError: the table has no columns",
)
case(
    "repeated names",
    parquet(lambda: pa.table([[1, 2], [3, 4], ["no", "yes"]], names=["size", "size", TARGET])),
    "DataError: column names must differ, but 'size' occurs",
    "DataError: column names must differ, but 'size' occurs",
)
case("empty name", parquet(GOOD.assign(**{"": 1.0})), MODEL, PREDICTED)
case(
    "target as the row index",
    parquet(GOOD.set_index(TARGET)),
    "UnknownNameError: Unknown column 'target'. Known: kind, size",
    PREDICTED,
)
case(
    "rows with several indices",
    parquet(GOOD.set_index(["kind", "size"], drop=False).rename_axis(["i", "j"])),
    MODEL,
    PREDICTED,
)
case(
    "lists",
    arrow([[1, 2], [3]]),
    "ColumnTypeError: column 'size' holds values of the type list<",
    "ColumnTypeError: column 'size' holds values of the type list<",
)
case(
    "structures",
    arrow([{"a": 1}, {"a": 2}]),
    "ColumnTypeError: column 'size' holds values of the type struct<",
    "ColumnTypeError: column 'size' holds values of the type struct<",
)
case(
    "maps",
    arrow([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    "ColumnTypeError: column 'size' holds values of the type map<",
    "ColumnTypeError: column 'size' holds values of the type map<",
)
case(
    "lists of structures of lists",
    arrow([[{"a": [1]}], []]),
    "ColumnTypeError: column 'size' holds values of the type list<",
    "ColumnTypeError: column 'size' holds values of the type list<",
)
case(
    "bytes",
    arrow([b"\x00\xff", b"a"]),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "bytes of fixed length (UUID)",
    arrow([uuid.UUID(int=i).bytes for i in range(3)], pa.binary(16)),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("decimals", arrow([decimal.Decimal("1.50"), decimal.Decimal("2.25")], pa.decimal128(10, 2)), MODEL, PREDICTED)
case(
    "decimals of 76 digits",
    arrow([decimal.Decimal(10) ** 70, decimal.Decimal(1)], pa.decimal256(76, 0)),
    MODEL,
    PREDICTED,
)
case("unsigned 64-bit integers", arrow([2**64 - 1, 0, 1], pa.uint64()), MODEL, PREDICTED)
case(
    "half floats with infinity",
    arrow(np.array([np.inf, 1, 2], dtype=np.float16), pa.float16()),
    "DataError: in column 'size'",
    "DataError: in column 'size'",
)
case("floats with NaN and null", arrow([float("nan"), None, 1.0]), MODEL, PREDICTED)
case("nulls only", arrow([None], pa.null()), MODEL, PREDICTED)
case("truth values with null", arrow([True, False, None]), MODEL, PREDICTED)
case("texts of unlimited length (large_string)", arrow(["a", "b"], pa.large_string(), "kind"), MODEL, PREDICTED)
case("text views", arrow(["a", "b"], TEXT_VIEW, "kind"), MODEL, PREDICTED)
case("dictionaries with null", arrow(["a", None, "b"], pa.dictionary(pa.int8(), pa.string()), "kind"), MODEL, PREDICTED)
case(
    "dates after 2262",
    arrow([dt.date(9999, 12, 31), dt.date(1, 1, 1)]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "time stamps in seconds after 2262",
    arrow([253402300799, 0], pa.timestamp("s")),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "time stamps outside all calendars",
    arrow([2**53, 0], pa.timestamp("us")),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "time stamps with a zone",
    arrow([0, 10**9], pa.timestamp("us", "Europe/Berlin")),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "time stamps with an unknown zone",
    arrow([0, 10**9], pa.timestamp("us", "Mars/Olympus")),
    "DataError: the file cannot be read as Parquet",
    "DataError: the file cannot be read as Parquet",
)
case(
    "times of day",
    arrow([dt.time(12, 30), dt.time(1, 2)]),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("time spans", arrow([1, 2], pa.duration("ns")), MODEL, PREDICTED)
case(
    "one value for 40,000,000 rows",
    lambda folder: _parquet_bomb(folder),
    "DataError: the compressed file of 330030 bytes expands to more than 256 MiB, whic",
    "DataError: the compressed file of 330030 bytes expands to more than 256 MiB, whic",
)
case(
    "one text of 1 MB for 1,000 rows",
    lambda folder: _text_bomb(folder),
    "DataError: expands to more than 256 MiB in column 'kind', which no table should",
    "DataError: expands to more than 256 MiB in column 'kind', which no table should",
)
case(
    "folder called .parquet",
    lambda folder: _folder(folder / "table.parquet"),
    "DataError: expected a file, found a directory",
    "DataError: expected a file, found a directory",
)

group("ARFF")
case("good ARFF", arff(), MODEL, PREDICTED)
case(
    "no @data",
    arff({"@data": "% data"}),
    "DataError: line 6: expected an ARFF declaration",
    "DataError: line 6: expected an ARFF declaration",
)
case(
    "attribute without a type",
    arff({"size numeric": "size"}),
    "DataError: line 2: expected '@attribute NAME TYPE'",
    "DataError: line 2: expected '@attribute NAME TYPE'",
)
case("unknown type", arff({"size numeric": "size relational"}), "DataError: column 'size'", "DataError: column 'size'")
case("list of levels not closed", arff({"{a,b,c}": "{a,b,c"}), MODEL, PREDICTED)
case(
    "empty list of levels",
    arff({"{a,b,c}": "{}"}),
    "DataError: line 6: column 'kind'",
    "DataError: line 6: column 'kind'",
)
case("level that repeats", arff({"{a,b,c}": "{a,b,c,a}"}), MODEL, PREDICTED)
case(
    "value that is no level",
    arff({"{a,b,c}": "{a,b}"}),
    "DataError: line 8: column 'kind'",
    "DataError: line 8: column 'kind'",
)
case(
    "text as number",
    arff(rows=[*LINES[1:], "many,a,no"]),
    "DataError: line 66: column 'size'",
    "DataError: line 66: column 'size'",
)
case(
    "infinity as number",
    arff(rows=[*LINES[1:], "inf,a,no"]),
    "DataError: in column 'size'",
    "DataError: in column 'size'",
)
case(
    "number above the largest float as number",
    arff(rows=[*LINES[1:], "1e400,a,no"]),
    "DataError: in column 'size'",
    "DataError: in column 'size'",
)
case(
    "integer of 30 digits",
    arff({"numeric": "integer"}, rows=[f"{10**29 + i},a,{'no' if i % 2 else 'yes'}" for i in range(N)]),
    MODEL,
    PREDICTED,
)
case("fraction as integer", arff({"numeric": "integer"}), MODEL, PREDICTED)
case(
    "too few values",
    arff(rows=[*LINES[1:], "1.0,a"]),
    "DataError: line 66: expected 3 values",
    "DataError: line 66: expected 3 values",
)
case(
    "quote that is never closed",
    arff(rows=[*LINES[1:], "1.0,'a,no"]),
    "DataError: line 66: column 'kind'",
    "DataError: line 66: column 'kind'",
)
case(
    "a megabyte of blanks in a quoted line",
    arff({"{a,b,c}": "string"}, rows=[*LINES[1:], f"1.0,'a'{' ' * 1_000_000}b,no"]),
    MODEL,
    PREDICTED,
)
case("sparse rows", arff(rows=[f"{{0 {i},2 {'no' if i % 2 else 'yes'}}}" for i in range(N)]), MODEL, PREDICTED)
case(
    "sparse row with a column too many",
    arff(rows=[*LINES[1:], "{7 1}"]),
    "DataError: line 66: expected 'INDEX VALUE' with an index below 3",
    "DataError: line 66: expected 'INDEX VALUE' with an index below 3",
)
case(
    "sparse row with a negative column",
    arff(rows=[*LINES[1:], "{-1 1}"]),
    "DataError: line 66: expected 'INDEX VALUE' with an index below 3",
    "DataError: line 66: expected 'INDEX VALUE' with an index below 3",
)
case(
    "row weights",
    arff(rows=[f"{s}, {{2}}" for s in LINES[1:]]),
    "DataError: line 6: expected 3 values",
    "DataError: line 6: expected 3 values",
)
case(
    "date that does not exist",
    arff({"size numeric": "size date"}, rows=["2024-02-30,a,no"] * N),
    "DataError: line 6: column 'size'",
    "DataError: line 6: column 'size'",
)
case(
    "dates beyond range",
    arff(
        {"size numeric": "size date"},
        rows=[f"{y},a,{z}" for y, z in [("9999-12-31", "no"), ("0001-01-01", "yes")] * 30],
    ),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "UTF-16 ARFF",
    lambda folder: file((arff()(folder)).read_text().encode("utf-16"), "table.arff")(folder),
    MODEL,
    PREDICTED,
)
case(
    "CSV called .arff",
    file(TEXT, "table.arff"),
    "DataError: line 1: expected an ARFF declaration",
    "DataError: line 1: expected an ARFF declaration",
)

group("Paths")
case(
    "missing file",
    lambda folder: folder / "gone.csv",
    "DataError: there is no such file",
    "DataError: there is no such file",
)
case(
    "folder",
    lambda folder: _folder(folder / "table.csv"),
    "DataError: expected a file, found a directory",
    "DataError: expected a file, found a directory",
)
case(
    "named pipe",
    lambda folder: _pipe(folder / "table.csv"),
    "DataError: expected a regular file, found a pipe, a socket or a device",
    "DataError: expected a regular file, found a pipe, a socket or a device",
)
case(
    "link to a device",
    lambda folder: _link(folder / "table.csv", "/dev/zero"),
    "DataError: expected a regular file, found a pipe, a socket or a device",
    "DataError: expected a regular file, found a pipe, a socket or a device",
)
case(
    "link to itself",
    lambda folder: _link(folder / "table.csv", folder / "table.csv"),
    "DataError: cannot be read",
    "DataError: cannot be read",
)
case("unknown ending", file(TEXT, "table.xml"), "DataError: unknown suffix '", "DataError: unknown suffix '")
case(
    "CSV called .xlsx",
    file(TEXT, "table.xlsx"),
    "DataError: the file cannot be read as a workbook",
    "DataError: the file cannot be read as a workbook",
)
case("no ending", file(TEXT, "table"), "DataError: unknown suffix ''", "DataError: unknown suffix ''")
case("ending in capitals", file(TEXT, "TABLE.CSV"), MODEL, PREDICTED)
case(
    "name of a file with escapes",
    file("", "a\x1b[31m\nb.csv"),
    "DataError: the file is empty",
    "DataError: the file is empty",
)
case(
    "path with a NUL",
    lambda folder: Path(f"{folder}/a\0b.csv"),
    "DataError: cannot be read",
    "DataError: cannot be read",
)
case(
    "path too long",
    lambda folder: folder / ("x" * 5000 + ".csv"),
    "DataError: cannot be read",
    "DataError: cannot be read",
)
case(
    "web address",
    lambda folder: Path("https://example.org/table.csv"),
    "DataError: https:/example",
    "DataError: https:/example",
)

group("Arrays and lists in Python")
case(
    "None",
    table(lambda: None),
    "DataError: Expected 2D array, got nothing (None) instead",
    "DataError: Expected 2D array, got nothing (None) instead",
)
case(
    "text",
    table(lambda: "size"),
    "DataError: Expected 2D array, got the text 'size' instead",
    "DataError: Expected 2D array, got the text 'size' instead",
)
case(
    "number",
    table(lambda: 1.5),
    "DataError: Expected 2D array, got scalar array instead",
    "DataError: Expected 2D array, got scalar array instead",
)
case(
    "dictionary of lists",
    table(lambda: X.to_dict("list")),
    "DataError: Expected 2D array, got dictionaries instead",
    "DataError: Expected 2D array, got dictionaries instead",
)
case(
    "list of dictionaries",
    table(lambda: X.to_dict("records")),
    "DataError: Expected 2D array, got dictionaries instead",
    "DataError: Expected 2D array, got dictionaries instead",
)
case("list of lists", table(lambda: X.to_numpy().tolist()), MODEL, PREDICTED)
case(
    "empty list",
    table(lambda: [], []),
    "DataError: Expected 2D array, got 1D array instead",
    "DataError: Expected 2D array, got 1D array instead",
)
case(
    "list of empty lists",
    table(lambda: [[]] * N),
    "DataError: Found array with 0 feature",
    "DataError: Found array with 0 feature",
)
case(
    "ragged list",
    table(lambda: [[1, 2], [3]] * 30),
    "DataError: setting an array element with a sequence",
    "DataError: setting an array element with a sequence",
)
case(
    "list of lists of lists",
    table(lambda: [[[1], [2]]] * N),
    "DataError: Found array with dim 3, while dim <= 2 is required",
    "DataError: Found array with dim 3, while dim <= 2 is required",
)
case(
    "generator",
    lambda folder: (([1, 2] for _ in range(N)), Y),
    "DataError: Expected 2D array, got scalar array instead",
    "DataError: Expected 2D array, got scalar array instead",
)
case(
    "set",
    table(lambda: {1, 2, 3}),
    "DataError: Expected 2D array, got scalar array instead",
    "DataError: Expected 2D array, got scalar array instead",
)
case(
    "one dimension",
    table(lambda: np.arange(N)),
    "DataError: Expected 2D array, got 1D array instead",
    "DataError: Expected 2D array, got 1D array instead",
)
case(
    "three dimensions",
    table(lambda: np.zeros((N, 2, 2))),
    "DataError: Found array with dim 3, while dim <= 2 is required",
    "DataError: Found array with dim 3, while dim <= 2 is required",
)
case(
    "no dimension",
    table(lambda: np.array(3.0)),
    "DataError: Expected 2D array, got scalar array instead",
    "DataError: Expected 2D array, got scalar array instead",
)
case(
    "one row in one dimension (predict)",
    table(lambda: np.array([1.0, 2.0])),
    "DataError: Expected 2D array, got 1D array instead",
    "DataError: Expected 2D array, got 1D array instead",
)
case("numbers in an array", table(lambda: np.random.default_rng(0).normal(size=(N, 2))), MODEL, PREDICTED)
case(
    "complex array",
    table(lambda: np.ones((N, 2)) * 1j),
    "DataError: Complex data not supported",
    "DataError: Complex data not supported",
)
case(
    "array with infinity",
    table(lambda: np.where(np.eye(N, 2) > 0, np.inf, 1.0)),
    "DataError: in column 'x0'",
    "DataError: in column 'size'",
)
case("float32 near its limit", table(lambda: np.full((N, 2), 3e38, dtype=np.float32) * np.arange(2)), MODEL, PREDICTED)
case(
    "long doubles beyond float64",
    table(lambda: np.full((N, 2), np.longdouble("1e4000"))),
    "DataError: in column 'x0'",
    "DataError: in column 'size'",
)
case("unsigned 64-bit integers", table(lambda: np.full((N, 2), 2**64 - 1, dtype=np.uint64)), MODEL, PREDICTED)
case("big-endian numbers", table(lambda: np.arange(2 * N).reshape(N, 2).astype(">f8")), MODEL, PREDICTED)
case(
    "read-only array in Fortran order",
    table(lambda: _read_only(np.asfortranarray(np.arange(2.0 * N).reshape(N, 2)))),
    MODEL,
    PREDICTED,
)
case(
    "structured array",
    table(lambda: np.array([(1.0, 2)] * N, dtype=[("a", float), ("b", int)])),
    "DataError: Expected 2D array, got 1D array instead",
    "DataError: Expected 2D array, got 1D array instead",
)
case(
    "masked array",
    table(lambda: np.ma.masked_array(np.arange(2.0 * N).reshape(N, 2), mask=np.eye(N, 2) > 0)),
    MODEL,
    PREDICTED,
)
case(
    "matrix",
    lambda folder: (np.asmatrix(np.arange(2.0 * N).reshape(N, 2)), Y),
    MODEL,
    PREDICTED,
)
case(
    "dates in an array",
    table(lambda: np.full((N, 2), "2024-01-01", dtype="datetime64[s]")),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("time spans in an array", table(lambda: np.full((N, 2), 5, dtype="timedelta64[s]")), MODEL, PREDICTED)
case(
    "bytes in an array",
    table(lambda: np.full((N, 2), b"a")),
    "ColumnTypeError: Column 'x0': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("texts in an array", table(lambda: X.to_numpy().astype(str)), MODEL, PREDICTED)
case("objects in an array", table(lambda: X.to_numpy(dtype=object)), MODEL, PREDICTED)
case(
    "arrays in cells of an array",
    table(lambda: _array_of([np.arange(2), np.arange(3)])),
    "ColumnTypeError: Column 'x0': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "Python integers of 400 digits",
    table(lambda: _array_of([10**400, 1])),
    "DataError: in column 'x0'",
    "DataError: in column 'size'",
)

group("Sparse matrices in Python")
SPARSE = sparse.random(N, 5, density=0.3, format="csr", random_state=0)
for kind in ("csr", "csc", "coo", "bsr", "dok", "lil", "dia"):
    case(
        f"{kind} matrix",
        table(lambda kind=kind: SPARSE.asformat(kind)),
        MODEL,
        "SchemaError: X has 5 features, but AutoClassifier is expecting 2 features as input",
    )
case(
    "sparse array",
    table(lambda: sparse.csr_array(SPARSE)),
    MODEL,
    "SchemaError: X has 5 features, but AutoClassifier is expecting 2 features as input",
)
case(
    "sparse with NaN",
    table(lambda: sparse.csr_matrix(np.where(np.eye(N, 5) > 0, np.nan, 0.0))),
    MODEL,
    "SchemaError: X has 5 features, but AutoClassifier is expecting 2 features as input",
)
case(
    "sparse with infinity",
    table(lambda: sparse.csr_matrix(np.where(np.eye(N, 5) > 0, np.inf, 0.0))),
    "DataError: in column 'x0'",
    "SchemaError: X has 5 features",
)
case(
    "sparse complex",
    table(lambda: SPARSE * 1j),
    "DataError: Complex data not supported",
    "DataError: Complex data not supported",
)
case(
    "sparse truth values",
    table(lambda: SPARSE.astype(bool)),
    MODEL,
    "SchemaError: X has 5 features, but AutoClassifier is expecting 2 features as input",
)
case(
    "sparse without rows",
    table(lambda: sparse.csr_matrix((0, 5)), []),
    "DataError: Found array with 0 sample",
    "DataError: Found array with 0 sample",
)
case(
    "sparse without columns",
    table(lambda: sparse.csr_matrix((N, 0))),
    "DataError: Found array with 0 feature",
    "DataError: Found array with 0 feature",
)
case(
    "sparse, far too large when dense",
    table(lambda: sparse.csr_matrix((10**9, 10**9))),
    "DataError: The sparse table of shape",
    "DataError: The sparse table of shape",
)
case(
    "sparse with indices out of range",
    table(lambda: _bad_sparse()),
    "DataError: The sparse table of shape",
    "DataError: The sparse table of shape",
)

group("Frames in Python")
case(
    "no rows",
    table(lambda: X[:0], Y[:0]),
    "DataError: Found array with 0 sample",
    "DataError: Found array with 0 sample",
)
case(
    "no columns", table(lambda: X[[]]), "DataError: Found array with 0 feature", "DataError: Found array with 0 feature"
)
case(
    "one row",
    table(lambda: X[:1], Y[:1]),
    "DataError: Classifier can't train when only one class is present: all 1 rows are",
    PREDICTED,
)
case(
    "repeated names",
    table(lambda: X.set_axis(["a", "a"], axis=1)),
    "DataError: Column names must differ, but 'a' occurs",
    "DataError: Column names must differ, but 'a' occurs",
)
case(
    "names of two levels",
    table(lambda: X.set_axis(pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]), axis=1)),
    MODEL,
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case(
    "names of several types",
    table(lambda: X.set_axis(["a", 1], axis=1)),
    "ColumnTypeError: Feature names are only supported if all input features have string nam",
    "ColumnTypeError: Feature names are only supported if all input features have string nam",
)
case(
    "names that are equal as text",
    table(lambda: X.set_axis([1, "1"], axis=1)),
    "ColumnTypeError: Feature names are only supported if all input features have string nam",
    "ColumnTypeError: Feature names are only supported if all input features have string nam",
)
case("numbers as names", table(lambda: X.set_axis([0, 1], axis=1)), MODEL, PREDICTED)
case(
    "None as a name",
    table(lambda: X.set_axis([None, "kind"], axis=1)),
    "ColumnTypeError: Feature names are only supported if all input features have string nam",
    "ColumnTypeError: Feature names are only supported if all input features have string nam",
)
case(
    "NaN as a name",
    table(lambda: X.set_axis([np.nan, 1.0], axis=1)),
    MODEL,
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case(
    "dates as names",
    table(lambda: X.set_axis(pd.to_datetime(["2024-01-01", "2024-01-02"]), axis=1)),
    MODEL,
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case(
    "bytes as names",
    table(lambda: X.set_axis([b"a", b"b"], axis=1)),
    MODEL,
    "SchemaError: lacks 2 columns it had in training: 'size'",
)
case(
    "lone surrogate as a name",
    table(lambda: X.set_axis(pd.Index(["\ud800", "kind"], dtype=object), axis=1)),
    MODEL,
    "SchemaError: lacks 1 column it had in training: 'size'",
)
case(
    "lone surrogates in cells",
    column(lambda: ["\ud800", "b"] * 30, "kind"),
    "DataError: Column 'kind' holds half of a letter",
    PREDICTED,
)
case("rows with repeated indices", table(lambda: X.set_axis([7] * N)), MODEL, PREDICTED)
case(
    "rows with indices of two levels",
    table(lambda: X.set_axis(pd.MultiIndex.from_product([[1, 2], range(30)]))),
    MODEL,
    PREDICTED,
)
case(
    "lists in cells",
    column(lambda: [[1, 2]] * N),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "dictionaries in cells",
    column(lambda: [{"a": 1}] * N),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "sets in cells",
    column(lambda: [{1, 2}] * N),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "arrays in cells",
    column(lambda: [np.arange(3)] * N),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "frames in cells",
    column(lambda: [X] * N),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "functions in cells",
    column(lambda: [len] * N),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "bytes in cells",
    column(lambda: [b"a", b"b"] * 30),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "tuples in cells",
    column(lambda: [(1, 2)] * N),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "one list in the last cell",
    column(lambda: [*range(N - 1), [1]]),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "objects without a text in cells",
    column(lambda: [Hostile() for _ in range(N)]),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "objects that cannot be compared in cells",
    column(lambda: [Unequal() for _ in range(N)]),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "complex numbers in cells",
    column(lambda: [1 + 2j] * N),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("complex column", column(lambda: np.arange(N) * 1j), "DataError: column 'size'", "DataError: column 'size'")
case("decimals in cells", column(lambda: [decimal.Decimal(i) / 4 for i in range(N)]), MODEL, PREDICTED)
case(
    "infinite decimals in cells",
    column(lambda: [decimal.Decimal("Infinity"), decimal.Decimal(1)] * 30),
    "DataError: in column 'size'",
    "DataError: in column 'size'",
)
case(
    "decimals that signal in cells",
    column(lambda: [decimal.Decimal("sNaN"), decimal.Decimal(1)] * 30),
    "ColumnTypeError: Column 'size' cannot be read",
    "ColumnTypeError: Column 'size' cannot be read",
)
case(
    "fractions in cells",
    column(lambda: [fractions.Fraction(i, 3) for i in range(N)]),
    "SchemaError: Column 'size' must hold numbers as in training",
    PREDICTED,
)
case(
    "integers of 400 digits in cells",
    column(lambda: [10**400, 1] * 30),
    "DataError: in column 'size'",
    "DataError: in column 'size'",
)
case("integers above 2**64 in cells", column(lambda: [2**70 + i for i in range(N)]), MODEL, PREDICTED)
case(
    "texts, numbers and None in cells",
    column(lambda: [1, "two", None, 4.0, True] * 12),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("None only", column(lambda: [None] * N), MODEL, PREDICTED)
case("NaT only", column(lambda: pd.to_datetime([None] * N)), MODEL, PREDICTED)
case("infinity", column(lambda: [np.inf, 1.0] * 30), "DataError: in column 'size'", "DataError: in column 'size'")
case(
    "infinity in a nullable column",
    column(lambda: pd.array([np.inf, None] * 30, dtype="Float64")),
    "DataError: in column 'size'",
    "DataError: in column 'size'",
)
case("nullable integers with NA", column(lambda: pd.array([1, None, 3] * 20, dtype="Int64")), MODEL, PREDICTED)
case(
    "nullable truth values with NA",
    column(lambda: pd.array([True, None, False] * 20, dtype="boolean")),
    MODEL,
    PREDICTED,
)
case(
    "Arrow texts with NA",
    column(lambda: pd.array(["a", None, "b"] * 20, dtype="string[pyarrow]"), "kind"),
    MODEL,
    PREDICTED,
)
case(
    "Arrow lists",
    column(lambda: pd.array([[1], [2]] * 30, dtype=pd.ArrowDtype(pa.list_(pa.int64())))),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "Arrow structures",
    column(lambda: pd.array([{"a": 1}] * N, dtype=pd.ArrowDtype(pa.struct({"a": pa.int64()})))),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "Arrow decimals",
    column(lambda: pd.array([decimal.Decimal("1.5"), None] * 30, dtype=pd.ArrowDtype(pa.decimal128(5, 2)))),
    MODEL,
    PREDICTED,
)
case(
    "Arrow bytes",
    column(lambda: pd.array([b"a", b"b"] * 30, dtype=pd.ArrowDtype(pa.binary()))),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "Arrow dates",
    column(lambda: pd.array([dt.date(2024, 1, 1), None] * 30, dtype=pd.ArrowDtype(pa.date32()))),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "Arrow times of day",
    column(lambda: pd.array([dt.time(1), dt.time(2)] * 30, dtype=pd.ArrowDtype(pa.time64("us")))),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "Arrow dictionaries",
    column(lambda: pd.array(["a", "b"] * 30, dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))), "kind"),
    MODEL,
    PREDICTED,
)
case("categories that are numbers", column(lambda: pd.Categorical([1.5, 2.5] * 30)), MODEL, PREDICTED)
case(
    "categories that are intervals",
    column(lambda: pd.cut(np.arange(N), 4)),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("categories that are lists as text and numbers", column(lambda: pd.Categorical(["1", 1] * 30)), MODEL, PREDICTED)
case("category without levels", column(lambda: pd.Categorical([None] * N)), MODEL, PREDICTED)
case(
    "ordered categories",
    column(lambda: pd.Categorical(["low", "high"] * 30, ["low", "high"], ordered=True), "kind"),
    MODEL,
    PREDICTED,
)
case(
    "intervals",
    column(lambda: pd.interval_range(0, N)),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("periods", column(lambda: pd.period_range("2024", periods=N, freq="D")), MODEL, PREDICTED)
case(
    "periods beyond range",
    column(lambda: pd.PeriodIndex.from_ordinals(np.arange(N) + 10_000, freq="Y")),
    MODEL,
    PREDICTED,
)
case("time spans", column(lambda: pd.to_timedelta(np.arange(N), unit="h")), MODEL, PREDICTED)
case(
    "time zones",
    column(lambda: pd.date_range("2024-03-30", periods=N, freq="h", tz="Europe/Berlin")),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "mixed time zones",
    column(lambda: [pd.Timestamp("2024-01-01", tz=z) for z in ("UTC", "Asia/Tokyo")] * 30),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "time stamps with and without a zone",
    column(lambda: [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02", tz="UTC")] * 30),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "Python dates beyond range",
    column(lambda: [dt.date(1, 1, 1), dt.date(9999, 12, 31)] * 30),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "time stamps in seconds beyond range",
    column(lambda: np.array(["0001-01-01", "9999-12-31"] * 30, dtype="datetime64[s]")),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "times of day",
    column(lambda: [dt.time(1), dt.time(2)] * 30),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "sparse columns",
    table(lambda: pd.DataFrame.sparse.from_spmatrix(SPARSE)),
    MODEL,
    "SchemaError: X has 5 features, but AutoClassifier is expecting 2 features as input",
)
case("frame of a derived class", table(lambda: type("Frame", (pd.DataFrame,), {})(X)), MODEL, PREDICTED)
case(
    "Series as a table",
    table(lambda: X["size"]),
    "DataError: Expected a 2-dimensional container but got <class 'pandas",
    "DataError: Expected a 2-dimensional container but got <class 'pandas",
)
case("the target in the features", table(lambda: GOOD), MODEL, PREDICTED)
case("constant columns only", table(lambda: X.assign(size=1, kind="a")), MODEL, PREDICTED)
case("cells of 10 MB", table(lambda: X.assign(kind=["x" * 10_000_000, "y"] * 30)), MODEL, PREDICTED, slow=True)
case(
    "10,000 columns",
    table(lambda: _wide(10_000)),
    MODEL,
    "SchemaError: lacks 2 columns it had in training: 'size'",
    slow=True,
)
case(
    "100,000 levels",
    table(lambda: _levels(100_000), np.arange(200_000) % 2),
    MODEL,
    "SchemaError: lacks 2 columns it had in training: 'size'",
    slow=True,
)

group("polars and Arrow in Python")
POLARS = pl.DataFrame(X.to_dict("list"))
case("polars frame", table(lambda: POLARS), MODEL, PREDICTED)
case("polars lazy frame", table(lambda: POLARS.lazy()), MODEL, PREDICTED)
case(
    "polars lazy frame that fails",
    table(lambda: POLARS.lazy().select("gone")),
    "DataError: The polars table cannot be read",
    "DataError: The polars table cannot be read",
)
case(
    "polars Series",
    table(lambda: POLARS["size"]),
    "DataError: Expected 2D array, got 1D array instead",
    "DataError: Expected 2D array, got 1D array instead",
)
case(
    "polars lists",
    table(lambda: POLARS.with_columns(size=pl.Series([[1], [2]] * 30))),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "polars structures",
    table(lambda: POLARS.with_columns(size=pl.Series([{"a": 1}] * N))),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "polars objects",
    table(lambda: POLARS.with_columns(size=pl.Series([object()] * N, dtype=pl.Object))),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case("polars nulls", table(lambda: POLARS.with_columns(size=pl.Series([None] * N))), MODEL, PREDICTED)
case("polars categories", table(lambda: POLARS.with_columns(pl.col("kind").cast(pl.Categorical))), MODEL, PREDICTED)
case(
    "polars decimals",
    table(lambda: POLARS.with_columns(size=pl.Series([decimal.Decimal("1.5")] * N))),
    MODEL,
    PREDICTED,
)
case(
    "polars times of day",
    table(lambda: POLARS.with_columns(size=pl.Series([dt.time(1), dt.time(2)] * 30))),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "polars time zones",
    table(lambda: POLARS.with_columns(size=pl.Series([0, 1] * 30).cast(pl.Datetime("us", "UTC")))),
    MODEL,
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "polars bytes",
    table(lambda: POLARS.with_columns(size=pl.Series([b"a", b"b"] * 30))),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "polars infinity",
    table(lambda: POLARS.with_columns(size=pl.Series([float("inf"), 1.0] * 30))),
    "DataError: in column 'size'",
    "DataError: in column 'size'",
)
case("Arrow table", table(lambda: pa.table(X.to_dict("list"))), MODEL, PREDICTED)
case(
    "Arrow table with repeated names",
    table(lambda: pa.table([[1] * N, [2] * N], names=["a", "a"])),
    "DataError: Column names must differ, but 'a' occurs",
    "DataError: Column names must differ, but 'a' occurs",
)
case("Arrow record batch", table(lambda: pa.RecordBatch.from_pandas(X)), MODEL, PREDICTED)
case(
    "Arrow table with lists",
    table(lambda: pa.table({"size": [[1], [2]] * 30, "kind": ["a", "b"] * 30})),
    "ColumnTypeError: Column 'size': argument must be a string or a number",
    "SchemaError: Column 'size' must hold numbers as in training",
)
case(
    "Arrow array",
    table(lambda: pa.array([1.0] * N)),
    "DataError: Expected 2D array, got 1D array instead",
    "DataError: Expected 2D array, got 1D array instead",
)


def _zip(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("table.csv", TEXT)
    return path


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _link(path: Path, to: str | Path) -> Path:
    path.symlink_to(to)
    return path


def _bomb(folder: Path, content: bytes) -> Path:
    """Write a small gzip file that expands to 1 GiB."""
    chunk = content * (2**20 // len(content))
    path = folder / "table.csv.gz"
    with gzip.open(path, "wb", compresslevel=9) as stream:
        stream.write(b"size,kind,target\n")
        for _ in range(1024):
            stream.write(chunk)
    return path


def _parquet_bomb(folder: Path) -> Path:
    """Write a small Parquet file of 40 million rows, which repeats one value."""
    path = folder / "table.parquet"
    rows = 2**22
    one = pa.table({"size": np.zeros(rows), TARGET: np.zeros(rows, dtype=bool)})
    with pq.ParquetWriter(path, one.schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(one)
    return path


def _text_bomb(folder: Path) -> Path:
    """Write a small Parquet file that refers to one long text from every row."""
    path = folder / "table.parquet"
    rows = pa.array([0] * 1000, pa.int32())
    texts = pa.DictionaryArray.from_arrays(rows, pa.array(["x" * 2**20]))
    one = pa.table({"size": np.zeros(1000), "kind": texts, TARGET: np.zeros(1000, dtype=bool)})
    with pq.ParquetWriter(path, one.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(one)
    return path


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _array_of(values: list[Any]) -> Any:
    array = np.empty((N, 2), dtype=object)
    for i in range(N):
        array[i, 0], array[i, 1] = values[i % len(values)], i
    return array


def _bad_sparse() -> Any:
    matrix = SPARSE.copy()
    matrix.indices[3] = 1_000_000
    return matrix


def _wide(n_columns: int) -> pd.DataFrame:
    values = np.random.default_rng(0).normal(size=(N, n_columns))
    return pd.DataFrame(values, columns=[f"c{i}" for i in range(n_columns)])


def _levels(n_levels: int) -> pd.DataFrame:
    return pd.DataFrame({"level": pd.Categorical([f"level {i // 2}" for i in range(2 * n_levels)]), "x": 1.5})


PAGE = Path(__file__).parents[2] / "docs" / "broken_tables.md"
INTRODUCTION = f"""# Broken tables

How {len(CASES)} broken and strange inputs are handled. Each is a modification of one good table (columns `size`, `kind`
and the target `target`). `fit` learns from it: with `cashmere fit` if it is a file, with `AutoClassifier` if it is an
object. `predict` passes it to a model of the good table. Either this works, or it raises an error from
`cashmere.exceptions`; its message contains the text shown here, and says what was expected, what was found and what to
try. A test checks all of them.

Reading a text file takes at most {BASE_MIB} MiB of memory, plus {TIMES_SIZE} times its size (uncompressed, if it is
compressed), plus {COLUMN_BYTES // 1024} KiB for each column. A compressed file may expand to 256 MiB or to 100 times
its size, whichever is more; so may a Parquet file, whose expanded size is what its cells take in a table.

`python tests/faults/broken_tables.py` writes this page.
"""


def page() -> str:
    """Return the page of outcomes."""
    lines = [INTRODUCTION]
    groups = list(dict.fromkeys(each.group for each in CASES))
    for name in groups:
        lines += [f"## {name}\n", "| input | `fit` | `predict` |", "| --- | --- | --- |"]
        lines += [f"| {c.name} | {_shown(c.fit)} | {_shown(c.predict)} |" for c in CASES if c.group == name]
        lines.append("")
    return "\n".join(lines)


def _shown(outcome: str) -> str:
    kind, colon, text = outcome.partition(": ")
    return f"`{kind}`: {text.replace('|', chr(92) + '|').replace('*', chr(92) + '*')}" if colon else kind


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
