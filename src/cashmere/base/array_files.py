"""Arrays in ``.npy`` and ``.npz`` files: only numbers and texts, and exactly as long as their headers say."""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray
from cashmere.base.files import open_regular, open_to_change

_HEADER_BYTES = 10_000
"""Size of the largest header accepted, because numpy parses it as Python text; ours have 128 bytes."""

_MOST_DIMENSIONS = 4

_ZIP_HEADER_BYTES, _LENGTHS_IN_ZIP = 30, 26
"""Size of a part's header in a zip file without its name and extra fields; the offset of their lengths in it."""


def array_of(content: bytes | NDArray[np.uint8]) -> AnyArray:
    """Return the array in the content of a ``.npy`` file, without a copy; bytes give a read-only array.

    Raises
    ------
    ValueError
        If it is not an array of numbers or texts, or not as long as its header says.
    """
    head = io.BytesIO(bytes(content[: 2 * _HEADER_BYTES]))
    shape, in_columns, dtype = _header(head, len(content))
    size = math.prod(shape)
    order: Literal["F", "C"] = "F" if in_columns else "C"
    if size == 0:
        return np.empty(shape, dtype, order)
    return np.frombuffer(content, dtype, count=size, offset=head.tell()).reshape(shape, order=order)


def _header(file: IO[bytes], n_bytes: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read and check the header of a file of `n_bytes`; leave the file at its first value."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        version = np.lib.format.read_magic(file)
        shape, in_columns, dtype = readers[version](file, max_header_size=_HEADER_BYTES)
    except Exception as error:  # numpy parses Python text, which fails in many ways
        raise ValueError(f"its header is not that of a .npy file ({type(error).__name__})") from error
    if dtype.kind not in "biufU" or dtype.itemsize == 0:
        raise ValueError(f"it holds values of type {dtype}; expected numbers or texts")
    if len(shape) > _MOST_DIMENSIONS or any(length < 0 for length in shape):
        raise ValueError(f"it has the shape {shape}; expected at most {_MOST_DIMENSIONS} dimensions")
    expected = math.prod(shape) * dtype.itemsize
    if n_bytes - file.tell() != expected:
        raise ValueError(f"it holds {n_bytes - file.tell()} bytes of numbers; its header promises {expected}")
    return shape, in_columns, dtype


def map_array(file: BinaryIO, mode: Literal["r", "c"] = "r") -> AnyArray:
    """Map the array in an open ``.npy`` file into memory, once its header is checked; see `numpy.memmap` for `mode`.

    Raises
    ------
    ValueError
        As for `array_of`.
    """
    file.seek(0)
    shape, in_columns, dtype = _header(file, os.fstat(file.fileno()).st_size)
    return np.memmap(file, dtype, mode, offset=file.tell(), shape=shape, order="F" if in_columns else "C")


def write_array(file: IO[bytes], array: AnyArray) -> None:
    """Write a ``.npy`` file as `numpy.save` does, whose error does not say that the disk is full."""
    whole = array if array.flags.f_contiguous else np.ascontiguousarray(array)
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(whole))
    if whole.size:
        file.write(whole.reshape(-1, order="A").view(np.uint8).data)


def reserve_rows(file: BinaryIO, shape: tuple[int, int], dtype: type[np.generic]) -> None:
    """Begin a ``.npy`` file whose rows `write_rows` writes later; until then they are zeros that take no space."""
    kind = np.dtype(dtype)
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    file.truncate(file.tell() + math.prod(shape) * kind.itemsize)


def write_rows(path: Path, rows: AnyArray, start: int) -> None:
    """Write rows into a ``.npy`` file, beginning at row `start`.

    Raises
    ------
    OSError, ValueError
        As for `map_array`; if the file has other columns or fewer rows; if the disk is full.
    """
    with open_to_change(path) as file:
        shape, in_columns, dtype = _header(file, os.fstat(file.fileno()).st_size)
        if in_columns or dtype != rows.dtype or shape[1:] != rows.shape[1:] or start + len(rows) > shape[0]:
            raise ValueError(f"it holds {shape} values of type {dtype}; {rows.shape} of {rows.dtype} do not fit in")
        file.seek(file.tell() + start * rows[:1].nbytes)
        file.write(np.ascontiguousarray(rows).data)


def write_arrays(file: BinaryIO, arrays: Mapping[str, AnyArray]) -> None:
    """Write a ``.npz`` file that is not compressed, as `numpy.savez` does but without copies of large arrays."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                write_array(part, array)


def map_archived(path: Path, name: str) -> AnyArray:
    """Map one array of a ``.npz`` file into memory, read-only; its checksum is not verified.

    Raises
    ------
    OSError, ValueError, KeyError, zipfile.BadZipFile
        As for `open_arrays`; if the array is compressed or not in the file.
    """
    with open_regular(path) as file, zipfile.ZipFile(file) as archive:
        size = file.seek(0, io.SEEK_END)
        check_archive(archive, limit=size, compressed=False)
        part = archive.getinfo(f"{name}.npy")
        file.seek(part.header_offset + _LENGTHS_IN_ZIP)
        start = part.header_offset + _ZIP_HEADER_BYTES + sum(struct.unpack("<HH", file.read(4)))
        file.seek(start)
        if start + part.file_size > size:
            raise ValueError(f"its part {name!r} ends after the file")
        shape, in_columns, dtype = _header(file, start + part.file_size)
        return np.memmap(file, dtype, "r", offset=file.tell(), shape=shape, order="F" if in_columns else "C")


@contextmanager
def open_arrays(source: Path | bytes, *, limit: int, compressed: bool = False) -> Iterator[Mapping[str, AnyArray]]:
    """Open a ``.npz`` file; each array is read on access.

    Parameters
    ----------
    source : Path or bytes
        The file, or its content.
    limit : int
        Largest size in bytes of all arrays together.
    compressed : bool
        Whether parts may be compressed; others take as much memory as they take on disk.

    Raises
    ------
    OSError, ValueError, zipfile.BadZipFile
        If it is not such a file. Reading an array raises the errors of `array_of`.
    """
    with (
        io.BytesIO(source) if isinstance(source, bytes) else open_regular(source, limit=limit) as file,
        zipfile.ZipFile(file) as archive,
    ):
        size = file.seek(0, io.SEEK_END)  # uncompressed parts exceed the file only if they overlap
        check_archive(archive, limit=limit if compressed else min(limit, size), compressed=compressed)
        yield _Arrays(archive)


class _Arrays(Mapping[str, AnyArray]):
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = {n.removesuffix(".npy"): n for n in archive.namelist() if n.endswith(".npy")}

    def __getitem__(self, name: str) -> AnyArray:
        information = self._archive.getinfo(self._names[name])
        with self._archive.open(information) as file:
            _header(file, information.file_size)
        with self._archive.open(information) as file:
            array: AnyArray = np.lib.format.read_array(file, allow_pickle=False)
            return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def check_archive(archive: zipfile.ZipFile, *, limit: int, compressed: bool) -> None:
    """Reject a zip file that would take more memory than expected.

    Raises
    ------
    ValueError
        If it has too many parts, parts of the same name, compressed or encrypted ones, or too much in them.
    """
    parts = archive.infolist()
    if len(parts) > 10_000 or len({part.filename for part in parts}) < len(parts):
        raise ValueError(f"it has {len(parts)} parts, or several of the same name")
    methods = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} if compressed else {zipfile.ZIP_STORED}
    for part in parts:
        if part.compress_type not in methods or part.flag_bits & 1:
            raise ValueError(f"its part {part.filename[:100]!r} is compressed or encrypted in a way that is not ours")
        if part.compress_type == zipfile.ZIP_STORED and part.file_size != part.compress_size:
            raise ValueError(f"its part {part.filename[:100]!r} has two different sizes")
    if (total := sum(part.file_size for part in parts)) > limit:
        raise ValueError(f"it would unpack to {total} bytes; expected at most {limit}")
