"""The arrays in an archive, whose headers are checked before numpy or scipy read them."""

from __future__ import annotations

import ast
import functools
import io
import math
import re
import struct
import zipfile
from typing import Any

import numpy as np

MAX_SPARSE_BYTES = 2**29
"""Largest sparse array, unpacked. These have their own compression inside an archive."""

_MAGIC = b"\x93NUMPY\x01\x00"
_MAX_HEADER = 4096
_MAX_SIDES = 8
_PLAIN_HEADER = re.compile(
    r"\{'descr': '([<|][biuf][1248])', 'fortran_order': (?:True|False), "
    r"'shape': \(((?:\d{1,15}, ?)*(?:\d{1,15})?)\), \} *\n"
)
_SPARSE_PARTS = {"format", "shape", "data", "indices", "indptr"}


def array_form(entry: memoryview | bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return dtype and shape of a ``.npy`` entry after checking its header against its length.

    Parameters
    ----------
    entry : memoryview or bytes
        The whole entry.

    Raises
    ------
    ValueError
        If the header is not one that numpy writes for numbers, truth values or records of these, or the length of the
        entry does not fit it.
    """
    if entry[:8] != _MAGIC or len(entry) < 10:
        raise ValueError("an array has no header of numpy's format 1.0")
    (length,) = struct.unpack_from("<H", entry, 8)
    if length > _MAX_HEADER or len(entry) < 10 + length:
        raise ValueError("the header of an array is longer than the array or than expected")
    dtype, shape = _header(bytes(entry[10 : 10 + length]))
    expected = 10 + length + math.prod(shape) * dtype.itemsize
    if len(entry) != expected:
        raise ValueError(f"an array of shape {shape} and type {dtype} takes {expected} bytes but has {len(entry)}")
    return dtype, shape


@functools.lru_cache(maxsize=10_000)
def _header(text: bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
    header = text.decode("latin1")
    if (plain := _PLAIN_HEADER.fullmatch(header)) and plain[2].count(",") <= _MAX_SIDES:
        return np.dtype(plain[1]), tuple(int(size) for size in plain[2].replace(" ", "").split(",") if size)
    try:
        content = ast.literal_eval(header)
        if set(content) != {"descr", "fortran_order", "shape"} or type(content["fortran_order"]) is not bool:
            raise ValueError("keys")
        shape = content["shape"]
        if (
            type(shape) is not tuple
            or len(shape) > _MAX_SIDES
            or any(type(n) is not int or not 0 <= n < 10**15 for n in shape)
        ):
            raise ValueError("shape")
        dtype = np.lib.format.descr_to_dtype(content["descr"])
    except Exception as error:  # Python and numpy raise all kinds of errors for a strange text
        raise ValueError(f"the header of an array cannot be read: {header[:100]!r}") from error
    fields = [dtype] if dtype.fields is None else [field[0] for field in dtype.fields.values()]
    if any(field.kind not in "biuf" or field.itemsize > 8 or not field.isnative for field in fields):
        raise ValueError(f"an array has the type {dtype}; expected numbers, truth values or records of these")
    return dtype, shape


def read_array(entry: memoryview | bytes) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the array of a ``.npy`` entry without copying it; raises as `array_form` does."""
    dtype, shape = array_form(entry)
    (length,) = struct.unpack_from("<H", entry, 8)
    order: Any = "F" if b"'fortran_order': True" in bytes(entry[10 : 10 + length]) else "C"
    return np.ndarray(shape, dtype=dtype, buffer=entry, offset=10 + length, order=order)


def check_sparse(entry: memoryview | bytes, kind: str) -> None:
    """Check a sparse array that skops has written: a zip file of the parts of a CSR array.

    Parameters
    ----------
    entry : memoryview or bytes
        The whole ``.npz`` entry.
    kind : str
        ``csr_matrix`` or ``csr_array``.

    Raises
    ------
    ValueError
        If a part is missing, damaged or too large, or an index does not fit the shape.
    """
    parts = _sparse_parts(entry)
    if parts.keys() - {"_is_array"} != _SPARSE_PARTS or ("_is_array" in parts) != (kind == "csr_array"):
        raise ValueError(f"a sparse array has the parts {sorted(parts)}; expected those of a {kind}")
    if parts.pop("format") != _text_array(b"csr"):
        raise ValueError("a sparse array is not in the format 'csr'")
    parts.pop("_is_array", None)
    arrays = {name: read_array(part) for name, part in parts.items()}
    data, indices, indptr, shape = (arrays[name] for name in ("data", "indices", "indptr", "shape"))
    if any(array.dtype.kind != "i" or array.ndim != 1 for array in (indices, indptr, shape)) or len(shape) != 2:
        raise ValueError("the shape or an index of a sparse array is not a list of whole numbers")
    n_rows, n_columns = (int(n) for n in shape)
    if (
        data.ndim != 1
        or data.dtype.kind not in "biuf"
        or len(data) != len(indices)
        or min(n_rows, n_columns) < 0
        or len(indptr) != n_rows + 1
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or (np.diff(indptr) < 0).any()
    ):
        raise ValueError("the parts of a sparse array do not fit each other")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_columns):
        raise ValueError(f"a sparse array of {n_columns} columns has an index outside of them")


def _sparse_parts(entry: memoryview | bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(entry)) as archive:
            infos = archive.infolist()
            if len(infos) > len(_SPARSE_PARTS) + 1 or sum(info.file_size for info in infos) > MAX_SPARSE_BYTES:
                raise ValueError(f"it has too many parts or would unpack to more than {MAX_SPARSE_BYTES} bytes")
            if len({info.filename for info in infos}) != len(infos) or any(
                info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                for info in infos
            ):
                raise ValueError("it has two parts of one name, or one that is encrypted or compressed in another way")
            parts = {}
            for info in infos:
                with archive.open(info) as file:
                    # Without a limit, a part would be unpacked completely, whatever its announced size.
                    parts[info.filename.removesuffix(".npy")] = file.read(info.file_size)
            return parts
    except Exception as error:  # a damaged zip file fails in many ways
        raise ValueError(f"a sparse array is damaged ({error})") from error


def _text_array(text: bytes) -> bytes:
    """Return the ``.npy`` form of a text, as scipy writes the name of a format."""
    file = io.BytesIO()
    np.save(file, np.array(text), allow_pickle=False)
    return file.getvalue()
