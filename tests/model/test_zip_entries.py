"""Archives are packed on disk, and unpacked within bounds."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from cashmere.model.zip_entries import SCHEMA, packed, stored_entries, unpacked, unpacked_size

WORDS = b" ".join(str(i).encode() for i in range(5000))
ENTRIES = {"1.npy": b"small", "2.npy": np.random.default_rng(0).bytes(5000), SCHEMA: WORDS}


def stored(content: dict[str, bytes]) -> bytes:
    """Return an archive as skops writes it."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name, data in content.items():
            file.writestr(name, data)
    return written.getvalue()


def entries(data: bytes) -> dict[str, bytes]:
    return {name: bytes(entry) for name, entry in stored_entries(data).items()}


def test_what_is_packed_comes_back():
    found = packed(ENTRIES)
    assert len(found) < 0.8 * len(stored(ENTRIES))
    assert entries(unpacked(found)) == ENTRIES


def test_entries_that_deflation_would_hardly_shrink_are_not_packed():
    weights = np.random.default_rng(0).normal(size=50_000).astype(np.float32)
    given = {SCHEMA: b"{}", "1.npy": weights.tobytes(), "2.npy": np.round(weights, 1).tobytes()}
    with zipfile.ZipFile(io.BytesIO(packed(given))) as file:
        methods = {info.filename: info.compress_type for info in file.infolist()}
    assert methods == {SCHEMA: zipfile.ZIP_STORED, "1.npy": zipfile.ZIP_STORED, "2.npy": zipfile.ZIP_DEFLATED}
    assert entries(unpacked(packed(given))) == given


def test_small_entries_are_not_packed():
    with zipfile.ZipFile(io.BytesIO(packed(ENTRIES))) as file:
        methods = {info.filename: info.compress_type for info in file.infolist()}
    assert methods[SCHEMA] == zipfile.ZIP_DEFLATED and methods["1.npy"] == zipfile.ZIP_STORED


def test_archives_of_earlier_versions_are_read_as_they_are():
    plain = stored(ENTRIES)
    assert unpacked(plain) is plain


def test_zeros_stay_as_they_are():
    zeros = {SCHEMA: b"{}", "1.npy": bytes(10**6)}
    assert packed(zeros) == stored(zeros)


def test_what_would_not_be_read_is_not_written(monkeypatch):
    monkeypatch.setattr("cashmere.model.zip_entries.MAX_ENTRIES", 2)
    with pytest.raises(ValueError, match="at most 2 arrays"):
        packed(ENTRIES)


def test_what_unpacks_to_many_times_its_size_is_refused():
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(SCHEMA, bytes(10**6))
    with pytest.raises(ValueError, match="32 times its size"):
        unpacked(written.getvalue())


def test_size_is_known_before_unpacking(tmp_path):
    path = tmp_path / "archive"
    path.write_bytes(packed(ENTRIES))
    assert unpacked_size(path) == sum(map(len, ENTRIES.values()))
    path.write_bytes(b"no archive")
    assert unpacked_size(path) == 10
