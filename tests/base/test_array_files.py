from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from cashmere.base.array_files import (
    array_of,
    map_archived,
    map_array,
    open_arrays,
    reserve_rows,
    write_array,
    write_arrays,
    write_rows,
)
from cashmere.base.files import open_regular


def npy(array, **changes) -> bytes:
    """Return the content of a ``.npy`` file, with `changes` to its header."""
    buffer = io.BytesIO()
    header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(buffer, header | changes)
    return buffer.getvalue() + array.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.array([True, False]),
        np.array(["a", "bcd", ""]),
        np.array(3),
        np.empty((0, 4)),
        np.arange(5, dtype=">i8"),
    ],
)
def test_arrays_come_back(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", first=array, second=array)
    with (tmp_path / "b.npz").open("wb") as file:
        write_arrays(file, {"first": array, "second": array})
    content, buffer = (tmp_path / "a.npy").read_bytes(), io.BytesIO()
    write_array(buffer, array)
    assert buffer.getvalue() == content
    read = array_of(content)
    with open_regular(tmp_path / "a.npy") as file:
        mapped = map_array(file, "c")
    with open_arrays(tmp_path / "a.npz", limit=10_000) as arrays:
        assert list(arrays) == ["first", "second"]
        unpacked = arrays["second"]
    with open_arrays(tmp_path / "b.npz", limit=10_000) as arrays:
        assert list(arrays) == ["first", "second"]
        written_by_us = arrays["second"]
    for found in (read, mapped, unpacked, written_by_us):
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype
        assert found.flags.f_contiguous == array.flags.f_contiguous
    assert not read.flags.writeable or not read.size
    assert mapped.flags.writeable


NUMBERS = np.arange(6.0)
FORGED = {
    "no magic": b"odd" * 100,
    "empty": b"",
    "truncated header": npy(NUMBERS)[:50],
    "truncated numbers": npy(NUMBERS)[:-1],
    "longer than promised": npy(NUMBERS) + b"0",
    "huge": npy(NUMBERS, shape=(10**12,)),
    "overflowing": npy(NUMBERS, shape=(2**40, 2**40)),
    "negative": npy(NUMBERS, shape=(-6,)),
    "twice negative": npy(NUMBERS, shape=(-2, -3)),
    "many dimensions": npy(NUMBERS, shape=(1,) * 60 + (6,)),
    "shape of texts": npy(NUMBERS, shape=("6",)),
    "objects": npy(NUMBERS, descr="|O"),
    "structure": npy(NUMBERS, descr=[("a", "<f8")]),
    "bytes": npy(NUMBERS, descr="|S8"),
    "raw": npy(NUMBERS, descr="|V8"),
    "dates": npy(NUMBERS, descr="<M8[D]"),
    "no width": npy(NUMBERS, descr="<U0"),
    "unknown type": npy(NUMBERS, descr="<q99"),
    "nested header": b"\x93NUMPY\x01\x00" + (4000).to_bytes(2, "little") + b"(" * 4000,
    "minus signs": b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"-" * 8999 + b"1",
    "long header": b"\x93NUMPY\x02\x00" + (2**32 - 1).to_bytes(4, "little") + b" " * 100,
    "version": b"\x93NUMPY\x09\x00" + npy(NUMBERS)[8:],
    "code": npy(NUMBERS).replace(b"'shape': (6,)", b"'shape': ().x"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_arrays_are_refused(tmp_path, name):
    path = tmp_path / "a.npy"
    path.write_bytes(FORGED[name])
    with pytest.raises(ValueError, match=r"header|it h"):
        array_of(FORGED[name])
    with pytest.raises(ValueError, match=r"header|it h"), open_regular(path) as file:
        map_array(file)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", FORGED[name])
    with pytest.raises(ValueError, match=r"header|it h"), open_arrays(tmp_path / "a.npz", limit=100_000) as arrays:
        arrays["a"]
    with pytest.raises(ValueError, match=r"header|it h"):
        map_archived(tmp_path / "a.npz", "a")


def test_compressed_parts_are_refused_unless_expected(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros(100_000))
    with pytest.raises(ValueError, match="compressed"), open_arrays(tmp_path / "a.npz", limit=10**6):
        pass
    with pytest.raises(ValueError, match="would unpack"), open_arrays(tmp_path / "a.npz", limit=10**5, compressed=True):
        pass
    with open_arrays(tmp_path / "a.npz", limit=10**6, compressed=True) as arrays:
        assert arrays["a"].sum() == 0


def test_parts_that_overlap_are_refused(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.npy", npy(np.zeros(1000)))
        for number in range(50):  # all of them the same bytes
            copied = zipfile.ZipInfo(f"b{number}.npy")
            first = archive.infolist()[0]
            copied.header_offset, copied.file_size = first.header_offset, first.file_size
            copied.compress_size, copied.CRC = first.compress_size, first.CRC
            archive.filelist.append(copied)
            archive.NameToInfo[copied.filename] = copied
        archive._didModify = True
    with pytest.raises(ValueError, match="would unpack"), open_arrays(buffer.getvalue(), limit=10**9):
        pass


@pytest.mark.parametrize("array", [np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)), np.arange(5)])
def test_parts_of_an_archive_can_be_mapped(tmp_path, array):
    np.savez(tmp_path / "a.npz", first=np.arange(3), second=array)
    mapped = map_archived(tmp_path / "a.npz", "second")
    assert isinstance(mapped, np.memmap) and not mapped.flags.writeable
    np.testing.assert_array_equal(mapped, array)
    with pytest.raises(KeyError):
        map_archived(tmp_path / "a.npz", "third")


def test_compressed_and_cut_archives_are_not_mapped(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", first=np.arange(300))
    with pytest.raises(ValueError, match="compressed"):
        map_archived(tmp_path / "a.npz", "first")
    np.savez(tmp_path / "b.npz", first=np.arange(300))
    content = (tmp_path / "b.npz").read_bytes()
    (tmp_path / "b.npz").write_bytes(content[:500] + content[1500:])
    with pytest.raises((ValueError, zipfile.BadZipFile)):
        map_archived(tmp_path / "b.npz", "first")


def test_rows_can_be_written_later(tmp_path):
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        reserve_rows(file, (5, 2), np.float32)
    rows = np.arange(4, dtype=np.float32).reshape(2, 2)
    write_rows(path, rows, 1)
    np.testing.assert_array_equal(np.load(path), [[0, 0], [0, 1], [2, 3], [0, 0], [0, 0]])
    for bad, start in [(rows, 4), (rows.astype(np.float64), 0), (rows[:, :1], 0)]:
        with pytest.raises(ValueError, match="do not fit in"):
            write_rows(path, bad, start)
    (tmp_path / "link.npy").symlink_to(path)
    with pytest.raises(OSError, match="link"):
        write_rows(tmp_path / "link.npy", rows, 0)
