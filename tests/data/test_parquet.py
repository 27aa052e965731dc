"""Parquet files read as pandas reads them, and within a bound."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cashmere.data.parquet import read_parquet
from cashmere.data.reading import read_table
from cashmere.exceptions import BudgetTooShortError, ColumnTypeError, DataError

LONG = "x" * 1_000_000
REPEATED = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array([LONG]))


def repeated_by_reference(path):
    """Write one text of a megabyte for 100,000 rows, declared as plain texts: 100 GB in all."""
    schema = pa.schema({"a": REPEATED.type})
    options = {"store_schema": False, "dictionary_pagesize_limit": 2**30, "compression": "zstd"}
    with pq.ParquetWriter(path, schema, **options) as writer:
        writer.write_table(pa.table({"a": REPEATED}))


def repeated_as_differences(path):
    texts = pa.table({"a": [LONG] * 60})
    pq.write_table(texts, path, use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"}, compression="zstd")


CHILD = """
import resource, sys
from pathlib import Path
from cashmere.data.parquet import read_parquet
from cashmere.exceptions import DataError

resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
try:
    read_parquet(Path(sys.argv[1]), sys.argv[1], limit=2**25)
except DataError as error:
    status = Path("/proc/self/status").read_text()
    print(error.column, int(status.partition("VmHWM:")[2].split()[0]) // 1024, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from /proc")
@pytest.mark.parametrize("write", [repeated_by_reference, repeated_as_differences])
def test_repeated_texts_are_not_expanded(tmp_path, write):
    path = tmp_path / "t.parquet"
    write(path)
    assert path.stat().st_size < 2_000_000
    child = subprocess.run([sys.executable, "-c", CHILD, path], capture_output=True, text=True, check=True)
    column, peak_mib, message = child.stdout.split(" ", 2)
    assert column == "a" and "expands to more than 32 MiB in column 'a'" in message
    assert int(peak_mib) < 1000


def test_the_limit_counts_all_columns(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": ["x" * 1000] * 100, "b": ["y" * 1000] * 100}), path)
    assert read_parquet(path, "t", limit=202_000).shape == (100, 2)
    with pytest.raises(DataError, match=r"^t: .* in column 'b'") as caught:
        read_parquet(path.read_bytes(), "t", limit=150_000)
    assert caught.value.column == "b"


def test_texts_of_extension_types_are_counted(tmp_path):
    json = pytest.importorskip("pyarrow", minversion="19").json_()
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": pa.array([f'{{"a": "{LONG}"}}'] * 100, json)}), path, compression="zstd")
    assert read_parquet(path, "t", limit=200_000_000).shape == (100, 1)
    with pytest.raises(DataError, match="in column 'a'"):
        read_parquet(path, "t", limit=90_000_000)


def test_categories_count_once(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"a": pd.Categorical(["x" * 1000, "y" * 1000] * 500)})
    frame.to_parquet(path)
    pd.testing.assert_frame_equal(read_parquet(path, "t", limit=20_000), frame)


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_every_encoding_gives_the_same_frame(tmp_path, encoding):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"a.b": ["x", None, "é"] * 50, "n": range(150)}, index=pd.RangeIndex(5, 155, name="row"))
    pq.write_table(
        pa.Table.from_pandas(frame), path, row_group_size=40, use_dictionary=False, column_encoding={"a.b": encoding}
    )
    pd.testing.assert_frame_equal(read_parquet(path, "t"), pd.read_parquet(path))


def test_all_types_are_read_as_pandas_reads_them(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {
        "text": pa.array(["x", None, "yy"] * 10),
        "long": pa.array(["x", None, "yy"] * 10, pa.large_string()),
        "bytes": pa.array([b"x", None, b"yy"] * 10),
        "category": pa.array(["x", None, "yy"] * 10).dictionary_encode(),
        "time": pa.array([0, None, 1] * 10, pa.timestamp("us", "UTC")),
        "identifier": pa.array([b"x" * 16, None, b"y" * 16] * 10, pa.binary(16)),
        "number": pa.array([0.5, None, 1.0] * 10),
    }
    pq.write_table(pa.table(columns), path, row_group_size=7)
    pd.testing.assert_frame_equal(read_parquet(path, "t"), pd.read_parquet(path))


def test_groups_of_rows_are_read_in_steps(tmp_path, monkeypatch):
    monkeypatch.setattr("cashmere.data.parquet._CELLS_AT_A_TIME", 40)
    path = tmp_path / "t.parquet"
    texts = [f"x{i // 6}" for i in range(30)]
    frame = pd.DataFrame({"text": texts, "category": pd.Categorical(texts), "number": range(30)})
    frame.index = pd.RangeIndex(5, 35, name="row")
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=7)
    steps = []
    read = read_parquet(path, "t", check=lambda n_read, n_cells: steps.append((n_read, n_cells)))
    pd.testing.assert_frame_equal(read, frame)
    assert steps == [(42, 90), (84, 90), *[(90, 90)] * 4]  # two groups at a time; then each column


def test_reading_can_be_stopped(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": ["x"] * 100}), path)

    def too_late(n_read, n_cells):
        raise BudgetTooShortError(60.0, 61.0, share_read=n_read / n_cells)

    with pytest.raises(BudgetTooShortError):
        read_table(path, check=too_late)


def test_a_table_without_rows_is_read(tmp_path):
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, pa.schema({"a": pa.string(), "n": pa.int64()})):
        pass
    pd.testing.assert_frame_equal(read_parquet(path, "t"), pd.read_parquet(path))


def test_a_table_of_an_extension_type_without_rows_is_read(tmp_path):
    json = pytest.importorskip("pyarrow", minversion="19").json_()
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, pa.schema({"a": json})):
        pass
    assert read_parquet(path, "t").shape == (0, 1)


@pytest.mark.parametrize("value", [["x"], {"a": "x"}, [[{"a": ["x"]}]]])
def test_cells_of_several_values_are_refused_before_they_are_read(tmp_path, value):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"n": [1], "a": [value]}), path)
    with pytest.raises(ColumnTypeError, match=r"^t: column 'a' holds .* Expected one number, text"):
        read_parquet(path, "t")


def test_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([["x"], ["y"]], names=["a", "a"]), path)
    with pytest.raises(ValueError, match="'a'"):
        read_parquet(path, "t")
