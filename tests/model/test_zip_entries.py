"""Archives are packed on disk, and unpacked within bounds."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from cashmere.model.zip_entries import packed, stored_entries, unpacked, unpacked_size


def archive(**entries: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name, data in entries.items():
            file.writestr(name if name == "schema.json" else f"{name[1:]}.npy", data)
    return written.getvalue()


WORDS = b" ".join(str(i).encode() for i in range(5000))
PLAIN = archive(**{"schema.json": WORDS, "_1": b"small", "_2": np.random.default_rng(0).bytes(5000)})


def entries(data: bytes) -> dict[str, bytes]:
    return {name: bytes(entry) for name, entry in stored_entries(data).items()}


def test_what_is_packed_comes_back():
    found = packed(PLAIN)
    assert len(found) < 0.8 * len(PLAIN)
    assert entries(unpacked(found)) == entries(PLAIN)


def test_small_entries_are_not_packed():
    with zipfile.ZipFile(io.BytesIO(packed(PLAIN))) as file:
        methods = {info.filename: info.compress_type for info in file.infolist()}
    assert methods["schema.json"] == zipfile.ZIP_DEFLATED and methods["1.npy"] == zipfile.ZIP_STORED


def test_archives_of_earlier_versions_are_read_as_they_are():
    assert unpacked(PLAIN) is PLAIN


def test_zeros_stay_as_they_are():
    zeros = archive(**{"schema.json": b"{}", "_1": bytes(10**6)})
    assert packed(zeros) is zeros


def test_what_unpacks_to_many_times_its_size_is_refused():
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("schema.json", bytes(10**6))
    with pytest.raises(ValueError, match="32 times its size"):
        unpacked(written.getvalue())


def test_size_is_known_before_unpacking(tmp_path):
    path = tmp_path / "archive"
    path.write_bytes(packed(PLAIN))
    assert unpacked_size(path) == sum(map(len, entries(PLAIN).values()))
    path.write_bytes(b"no archive")
    assert unpacked_size(path) == 10
