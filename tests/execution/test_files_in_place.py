from __future__ import annotations

import os

import numpy as np
import pytest

from cashmere.execution.files_in_place import FilesInPlace


@pytest.fixture
def described(tmp_path):
    """Return the description of two files, one of which is mostly a hole."""
    matrix = np.lib.format.open_memmap(tmp_path / "matrix.npy", "w+", np.float32, (20_000, 1000))
    matrix[12_345] = 7
    matrix.flush()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.txt").write_text("text")
    return FilesInPlace.describe({name: tmp_path / name for name in ("matrix.npy", "below/a.txt")})


def test_files_are_copied_with_their_holes(described, tmp_path):
    assert described.are_visible()
    described.write(tmp_path / "copy")
    assert (tmp_path / "copy" / "below" / "a.txt").read_text() == "text"
    copy = tmp_path / "copy" / "matrix.npy"
    assert copy.stat().st_blocks * 512 < 40 * 2**20 < copy.stat().st_size
    np.testing.assert_array_equal(np.load(copy, mmap_mode="r"), np.load(tmp_path / "matrix.npy", mmap_mode="r"))


def test_relative_paths_are_seen_from_other_folders(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("text")
    monkeypatch.chdir(tmp_path)
    described = FilesInPlace.describe({"a.txt": (tmp_path / "a.txt").relative_to(tmp_path)})
    monkeypatch.chdir("/")
    assert described.are_visible()


@pytest.mark.parametrize("change", ["gone", "longer", "other content", "a folder"])
def test_other_files_at_the_same_paths_are_not_taken_for_them(described, tmp_path, change):
    path = tmp_path / "below" / "a.txt"
    if change in ("gone", "a folder"):
        path.unlink()
    if change == "a folder":
        path.mkdir()
    if change == "longer":
        path.write_text("longer text")
    if change == "other content":
        path.write_text("tcxt")
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert not described.are_visible()
