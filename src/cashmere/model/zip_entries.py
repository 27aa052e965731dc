"""The zip file around an archive: its entries, without copying or unpacking them."""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

SCHEMA = "schema.json"
"""Entry that describes the objects of an archive."""

MAX_ENTRIES = 1_000_000
"""Gradient boosting of 300 rounds, 26 classes and 5 folds has 160 thousand."""

_NAME = re.compile(r"[0-9]{1,20}\.np[yz]|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.bin")
_LOCAL_HEADER = struct.Struct("<4s22xHH")


def stored_entries(data: bytes) -> dict[str, memoryview]:
    """Return the entries of an archive as views of its bytes.

    Entries must be stored as they are: what is never unpacked cannot unpack to more than the file holds.

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
    if (n_entries := data.count(b"PK\x01\x02")) > MAX_ENTRIES:  # before a record is made of each
        raise ValueError(f"it has {n_entries} entries; at most {MAX_ENTRIES} are expected")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
    except Exception as error:  # a damaged zip file fails in many ways, with struct.error and the like
        raise ValueError(f"it is not a zip file ({error})") from error
    entries: dict[str, memoryview] = {}
    view = memoryview(data)
    total = 0
    for info in infos:
        name = info.filename
        if name != SCHEMA and not _NAME.fullmatch(name):
            raise ValueError(f"it has an entry named {name[:100]!r}, as no archive of cashmere has")
        if name in entries:
            raise ValueError(f"it has two entries named {name!r}")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits or info.file_size != info.compress_size:
            raise ValueError(f"its entry {name!r} is compressed or encrypted; expected entries stored as they are")
        start = info.header_offset
        if start < 0 or start + _LOCAL_HEADER.size > len(data):
            raise ValueError(f"its entry {name!r} lies outside the file")
        signature, name_length, extra_length = _LOCAL_HEADER.unpack_from(data, start)
        start += _LOCAL_HEADER.size + name_length + extra_length
        total += info.file_size
        if signature != b"PK\x03\x04" or start + info.file_size > len(data) or total > len(data):
            raise ValueError(f"its entry {name!r} lies outside the file or inside another entry")
        entries[name] = view[start : start + info.file_size]
    if SCHEMA not in entries:
        raise ValueError(f"it has no entry {SCHEMA!r}")
    return entries


def with_schema(entries: Mapping[str, memoryview], schema: Mapping[str, Any]) -> bytes:
    """Return an archive of the same entries with another schema."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, entry in entries.items():
            archive.writestr(name, json.dumps(schema).encode() if name == SCHEMA else bytes(entry))
    return written.getvalue()
