"""Parquet files, read within a bound, because a few kilobytes can stand for a table of any size.

A file may store a text once and refer to it from every row, or store only how each text differs from the one before.
Arrow expands all of them before anybody can check their size. So texts are read as they are stored, by reference, and
expanded only when their total length is known.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cashmere.data.expansion import expansion_error, expansion_limit
from cashmere.exceptions import ColumnTypeError

if TYPE_CHECKING:
    import pandas as pd

_NOT_BY_REFERENCE = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
"""Encodings of texts that Arrow can only expand; the first stores differences."""

_BATCH_BYTES = 2**26
"""About this many bytes of texts in these encodings are expanded at a time, to measure them."""

_POINTER = 8

_CELLS_AT_A_TIME = 4_000_000
"""Row groups are read together until they have this many cells. A group is never divided: most writers limit them to
about a million rows."""

ReadingCheck = Callable[[int, int], object]
"""Called while a table is read, with the cells read so far and those of the whole table; may raise to stop reading."""


def go_on(n_read: int, n_cells: int) -> None:
    """Never stop reading; a `ReadingCheck`."""


def read_parquet(
    source: Path | bytes, name: str, *, limit: int | None = None, check: ReadingCheck = go_on
) -> pd.DataFrame:
    """Read a Parquet file as `pandas.read_parquet` does, unless it expands beyond a limit.

    Parameters
    ----------
    source : Path or bytes
        The file, or its content.
    name : str
        Its name in messages.
    limit : int, optional
        Most bytes that the cells may take; by default `expansion_limit` of the size of the file.
    check : ReadingCheck
        Called between the steps, each of a few million cells or a column.

    Raises
    ------
    DataError
        If they would take more, or a column holds lists or other values of several parts.
    Exception
        Whatever Arrow raises on a damaged file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    limit = expansion_limit(size) if limit is None else limit

    def opened(**options: Any) -> Any:
        return pq.ParquetFile(io.BytesIO(source) if isinstance(source, bytes) else source, **options)

    with opened() as file:
        fields = list(file.schema_arrow)
        n_cells = len(fields) * file.metadata.num_rows
        for field in fields:
            if pa.types.is_nested(field.type):  # it could hold more values than there are rows
                raise ColumnTypeError(
                    f"{name}: column {field.name!r} holds values of the type {str(field.type)[:100]}. Expected one "
                    "number, text, date or truth value in each cell. Take it apart, or leave it out.",
                    column=field.name,
                )
        taken = sum(_width(field.type) for field in fields) * file.metadata.num_rows
        if max(taken, sum(chunk.total_uncompressed_size for chunk in _chunks(file))) > limit:
            raise expansion_error(name, size, limit)
        by_reference, others = _text_paths(file)
        for path in others:
            for column in _batches(file, path):
                if taken + (n_bytes := _text_bytes(column)) > limit:
                    raise expansion_error(name, size, limit, column=path)
                taken += n_bytes
                check(n_cells, n_cells)
    with opened(read_dictionary=by_reference) as file:
        table = _read_in_steps(file, check)
    for position, field in enumerate(fields):
        column = table.column(position)
        check(n_cells, n_cells)
        if field.name in others:
            continue
        stays = pa.types.is_dictionary(field.type)  # categories, which pandas keeps by reference, too
        n_bytes = sum(_text_bytes(chunk.dictionary if stays else chunk) for chunk in column.chunks)
        taken += n_bytes
        if taken > limit:
            raise expansion_error(name, size, limit, column=field.name)
        if pa.types.is_dictionary(column.type) and not stays:
            kind = pa.large_string() if n_bytes >= 2**31 else column.type.value_type
            table = table.set_column(position, field.with_type(kind), column.cast(kind))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def return_freed_memory() -> None:
    """Return memory to the system that Arrow has freed but keeps: it may have held frames."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()


def _read_in_steps(file: Any, check: ReadingCheck) -> Any:
    """Read a file a few row groups at a time."""
    import pyarrow as pa

    n_columns, n_rows = len(file.schema_arrow), 0
    parts: list[Any] = []
    groups: list[int] = []
    waiting = 0
    for group in range(file.metadata.num_row_groups):
        groups.append(group)
        waiting += file.metadata.row_group(group).num_rows
        if waiting * n_columns < _CELLS_AT_A_TIME and group + 1 < file.metadata.num_row_groups:
            continue
        parts.append(file.read_row_groups(groups, use_pandas_metadata=True))
        n_rows += waiting
        groups, waiting = [], 0
        check(n_rows * n_columns, file.metadata.num_rows * n_columns)
    return pa.concat_tables(parts) if parts else file.read(use_pandas_metadata=True)


def _chunks(file: Any) -> Iterator[Any]:
    """Yield the metadata of each chunk: a column of a row group."""
    for group in range(file.metadata.num_row_groups):
        yield from map(file.metadata.row_group(group).column, range(file.metadata.num_columns))


def _width(kind: Any) -> int:
    """Return how many bytes a value of an Arrow type takes in a frame at least."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:  # a text: at least a reference
        return _POINTER


def _text_paths(file: Any) -> tuple[list[str], list[str]]:
    """Return the text columns: those that can be read by reference, and the others."""
    import pyarrow as pa

    columns = [file.schema.column(i) for i in range(len(file.schema))]
    paths = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    if len(set(paths)) < len(paths):
        raise ValueError(f"two columns are called {max(paths, key=paths.count)!r}")
    others = {chunk.path_in_schema for chunk in _chunks(file) if _NOT_BY_REFERENCE.intersection(chunk.encodings)}
    others |= {field.name for field in file.schema_arrow if isinstance(field.type, pa.BaseExtensionType)}
    return [path for path in paths if path not in others], [path for path in paths if path in others]


def _batches(file: Any, path: str) -> Iterator[Any]:
    """Yield a column in batches small enough that none takes much more than `_BATCH_BYTES`."""
    sizes = (chunk.total_uncompressed_size for chunk in _chunks(file) if chunk.path_in_schema == path)
    largest = max(sizes, default=0)  # a file without rows has no chunks
    for batch in file.iter_batches(batch_size=max(1, _BATCH_BYTES // max(1, largest)), columns=[path]):
        yield batch.column(0)


def _text_bytes(array: Any) -> int:
    """Return how many bytes the texts in an Arrow array take once expanded."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    kind = array.type
    if pa.types.is_dictionary(kind):
        if not _is_text(kind.value_type):
            return 0
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(pc.take(lengths, array.indices)).as_py() or 0)
    return int(pc.sum(pc.binary_length(array)).as_py() or 0) if _is_text(kind) else 0


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    )
