"""The zip file around an archive: its entries, unpacked within bounds."""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA = "schema.json"
"""The entry that describes the objects of an archive."""

MAX_ENTRIES = 1_000_000
"""Gradient boosting of 300 rounds, 26 classes and 5 folds has 160 thousand."""

MOST_BYTES = 2**32
"""Total size of the entries of an archive, 4 GiB: the limit for the models of all trials of a run."""

_MOST_TIMES = 32
"""How many times larger than the archive its entries may be."""

_LEAST_TO_PACK = 1024
"""Size of the smallest entries that are deflated, in bytes; for smaller ones, it costs more than it saves."""

_LEAST_SAVED, _SAMPLE_BYTES = 0.1, 8192
"""Share of its bytes that deflation must save an entry, judged by bytes from its middle. The weights of networks are as
good as random: deflation saves 7 %, and takes two thirds of the time of writing a model."""

_NAME = re.compile(r"[0-9]{1,20}\.np[yz]|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.bin")
_LOCAL_HEADER = struct.Struct("<4s22xHH")


def packed(entries: Mapping[str, bytes | memoryview]) -> bytes:
    """Return an archive of entries, the larger ones deflated at the fastest level, where this saves something.

    All are stored as they are if `unpacked` would refuse the result for being too small, as with arrays of zeros.

    Parameters
    ----------
    entries : mapping of str to bytes
        The content of each entry.

    Raises
    ------
    ValueError
        If there are more entries, or more bytes in them, than would be read.
    """
    size = sum(map(len, entries.values()))
    _check_size(len(entries), size)
    found = _archive(entries, least_to_pack=_LEAST_TO_PACK)
    if size > _MOST_TIMES * len(found):
        return _archive(entries, least_to_pack=math.inf)
    return found


def _check_size(n_entries: int, n_bytes: int) -> None:
    if n_entries > MAX_ENTRIES or n_bytes > MOST_BYTES:
        raise ValueError(
            f"A model of {n_entries} arrays and {n_bytes} bytes is too large; at most {MAX_ENTRIES} arrays and "
            f"{MOST_BYTES} bytes are read."
        )


def _archive(entries: Mapping[str, bytes | memoryview], least_to_pack: float) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, entry in entries.items():
            is_packed = len(entry) >= least_to_pack and _shrinks(entry)
            method = zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED
            archive.writestr(name, entry, compress_type=method, compresslevel=1)
    return written.getvalue()


def entry_of(data: bytes, name: str) -> bytes:
    """Return an entry of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(name)


def joined(archives: Sequence[tuple[bytes, Mapping[str, str]]], schema: bytes) -> bytes:
    """Return an archive of the entries of several, as they are packed, and one schema for all of them.

    Parameters
    ----------
    archives : sequence of (bytes, mapping)
        Archives, each with new names of those of its entries that need one.
    schema : bytes
        Takes the place of their schemas.

    Raises
    ------
    ValueError
        If there are more entries, or more bytes in them, than would be read.
    """
    written = io.BytesIO()
    n_bytes = len(schema)
    with zipfile.ZipFile(written, "w") as archive:
        for data, names in archives:
            with zipfile.ZipFile(io.BytesIO(data)) as part:
                infos = [info for info in part.infolist() if info.filename != SCHEMA]
            for info in infos:
                _, start = _after_header(data, info.header_offset)
                info.filename, info.header_offset = names.get(info.filename, info.filename), written.tell()
                written.write(info.FileHeader())
                written.write(memoryview(data)[start : start + info.compress_size])
                archive.filelist.append(info)
                n_bytes += info.file_size
        archive.start_dir = written.tell()
        method = zipfile.ZIP_DEFLATED if len(schema) >= _LEAST_TO_PACK else zipfile.ZIP_STORED
        archive.writestr(SCHEMA, schema, compress_type=method, compresslevel=1)
        _check_size(len(archive.filelist), n_bytes)
    return written.getvalue()


def _shrinks(entry: bytes | memoryview) -> bool:
    """Return whether deflation seems to be worth its time."""
    start = max(0, (len(entry) - _SAMPLE_BYTES) // 2)
    sample = entry[start : start + _SAMPLE_BYTES]
    return len(zlib.compress(sample, 1)) <= (1 - _LEAST_SAVED) * len(sample)


def unpacked(data: bytes) -> bytes:
    """Return an archive with its entries uncompressed: itself if they already are, as in earlier versions.

    Parameters
    ----------
    data : bytes
        The archive; its entries are stored or deflated.

    Raises
    ------
    ValueError
        If it is not a zip file, or its entries claim to be larger than 32 times the archive, or than 4 GiB. None is
        unpacked beyond its claim. The text continues "... is not read because".
    """
    infos = _directory(data)
    if all(info.compress_type == zipfile.ZIP_STORED for info in infos):
        return data
    if sum(info.file_size for info in infos) > min(MOST_BYTES, _MOST_TIMES * len(data)):
        raise ValueError(f"it would unpack to more than {MOST_BYTES} bytes, or than {_MOST_TIMES} times its size")
    written = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(written, "w") as plain:
            for info in infos:
                with archive.open(info) as entry:
                    plain.writestr(info.filename, entry.read(info.file_size))  # without a limit, more may come out
    except Exception as error:  # damaged content raises all kinds of errors
        raise ValueError(f"it cannot be unpacked ({error})") from error
    return written.getvalue()


def unpacked_size(path: Path) -> int:
    """Return the size of the entries of an archive by its directory, but at most what `unpacked` allows.

    For any other file, return its size.
    """
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            return min(_MOST_TIMES * size, sum(info.file_size for info in archive.infolist()))
    except Exception:  # a damaged zip file fails in many ways; it will be refused
        return size


def stored_entries(data: bytes) -> dict[str, memoryview]:
    """Return the entries of an archive as views of its bytes.

    Entries must be uncompressed, see `unpacked`, so that they cannot be larger than the file.

    Parameters
    ----------
    data : bytes
        The archive.

    Raises
    ------
    ValueError
        If it is not a zip file, or an entry is compressed, encrypted, named unlike those that skops writes, named
        twice, or shares bytes with another. The text continues "... is not read because".
    """
    infos = _directory(data)
    entries: dict[str, memoryview] = {}
    view = memoryview(data)
    total = 0
    for info in infos:
        name = info.filename
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise ValueError(f"its entry {name!r} is compressed; expected entries stored as they are")
        start = info.header_offset
        if start < 0 or start + _LOCAL_HEADER.size > len(data):
            raise ValueError(f"its entry {name!r} lies outside the file")
        signature, start = _after_header(data, start)
        total += info.file_size
        if signature != b"PK\x03\x04" or start + info.file_size > len(data) or total > len(data):
            raise ValueError(f"its entry {name!r} lies outside the file or inside another entry")
        entries[name] = view[start : start + info.file_size]
    if SCHEMA not in entries:
        raise ValueError(f"it has no entry {SCHEMA!r}")
    return entries


def _after_header(data: bytes, start: int) -> tuple[bytes, int]:
    """Return the signature of the local header at a position, and the position after it."""
    signature, name_length, extra_length = _LOCAL_HEADER.unpack_from(data, start)
    return signature, start + _LOCAL_HEADER.size + name_length + extra_length


def _directory(data: bytes) -> list[zipfile.ZipInfo]:
    """Return the directory of a zip file; raise for names that skops does not write, repeated or encrypted entries."""
    if (n_entries := data.count(b"PK\x01\x02")) > MAX_ENTRIES:  # before a record of each is made
        raise ValueError(f"it has {n_entries} entries; at most {MAX_ENTRIES} are expected")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
    except Exception as error:  # a damaged zip file fails in many ways, with struct.error and the like
        raise ValueError(f"it is not a zip file ({error})") from error
    seen: set[str] = set()
    for info in infos:
        name = info.filename
        if name != SCHEMA and not _NAME.fullmatch(name):
            raise ValueError(f"it has an entry named {name[:100]!r}, as no archive of cashmere has")
        if name in seen:
            raise ValueError(f"it has two entries named {name!r}")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits:
            raise ValueError(f"its entry {name!r} is encrypted or packed in another way than by deflation")
        seen.add(name)
    return infos


def with_schema(entries: Mapping[str, memoryview], schema: Mapping[str, Any]) -> bytes:
    """Return an archive with the same entries and another schema, uncompressed."""
    return _archive({**entries, SCHEMA: json.dumps(schema).encode()}, least_to_pack=math.inf)
