from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

import pytest

from cashmere.base.files import (
    check_folder,
    failures_as,
    is_regular,
    open_regular,
    own_folder,
    read_file,
    reason,
    remove_leftovers,
    write_atomically,
    writing,
    written_name,
)
from cashmere.exceptions import ArtefactError, CorruptStoreError


@pytest.fixture
def canary(tmp_path):
    """A file outside the folder, which nobody may change."""
    path = tmp_path / "outside" / "canary"
    path.parent.mkdir()
    path.write_bytes(b"sings")
    yield path
    assert path.read_bytes() == b"sings"
    assert [p.name for p in path.parent.iterdir()] == ["canary"]


def test_regular_file_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b"content")
    assert read_file(tmp_path / "a", limit=7) == b"content"
    assert is_regular(tmp_path / "a")


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder", "device", "socket"])
def test_anything_else_is_refused_without_waiting(tmp_path, canary, kind):
    path = tmp_path / "odd"
    if kind == "link":
        path.symlink_to(canary)
    elif kind == "dangling":
        path.symlink_to(tmp_path / "nowhere")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    else:
        path = type(path)("/dev/zero")
    with pytest.raises(OSError, match=r"link|pipe|folder"):
        read_file(path, limit=100)
    assert not is_regular(path)


def test_link_that_appears_after_the_check_is_not_followed(tmp_path, canary, monkeypatch):
    path = tmp_path / "swapped"
    path.symlink_to(canary)
    monkeypatch.setattr("cashmere.base.files.check_regular", lambda path: None)
    with pytest.raises(OSError, match="symbolic"):
        open_regular(path)


@pytest.mark.parametrize("size", [11, 2**40])
def test_large_files_are_refused_before_they_are_read(tmp_path, size):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(size)  # sparse
    with pytest.raises(OSError, match=f"holds {size} bytes; expected at most 10"):
        read_file(tmp_path / "large", limit=10)


def test_writing_replaces_a_link_and_not_its_target(tmp_path, canary):
    path = tmp_path / "file"
    path.symlink_to(canary)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert not path.is_symlink()


def test_names_of_temporary_files_are_unpredictable(tmp_path, canary):
    for name in (".file.tmp", "file.tmp"):
        (tmp_path / name).symlink_to(canary)
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    names = set()
    for _ in range(3):
        with writing(tmp_path / "file") as file:
            names.add(file.name)
    assert len(names) == 3


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    write_atomically(tmp_path / "file", b"old")
    with pytest.raises(KeyboardInterrupt), writing(tmp_path / "file") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_files_of_killed_writers_are_removed_and_no_others(tmp_path, canary):
    ours = [".run.json.tmp", ".run.json.0123456789abcdef.tmp"]
    others = [".hidden", "notes.tmp", "run.json", ".tmp"]
    for name in ours + others:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".link.0123456789abcdef.tmp").symlink_to(canary)
    remove_leftovers(tmp_path, of=["another"])
    remove_leftovers(tmp_path, older_than=3600)
    assert (tmp_path / ours[0]).exists()
    remove_leftovers(tmp_path, of={"run.json"})
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "outside") == sorted(
        [*others, ".link.0123456789abcdef.tmp"]
    )
    assert written_name(ours[1]) == "run.json"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks of this kind")
def test_files_of_killed_writers_are_removed_and_those_of_living_ones_stay(tmp_path):
    with writing(tmp_path / "file") as file:
        file.write(b"half")
        file.flush()
        killed = tmp_path / ".file.0123456789abcdef.tmp"
        killed.write_bytes(b"half")
        for path in tmp_path.iterdir():
            os.utime(path, (time.time() - 10, time.time() - 10))
        remove_leftovers(tmp_path, older_than=3600)
        assert [path.name for path in tmp_path.iterdir()] == [Path(file.name).name]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_folder_that_is_a_link_is_refused(tmp_path, canary):
    (tmp_path / "logs").symlink_to(canary.parent)
    with pytest.raises(OSError, match="link to another folder"):
        own_folder(tmp_path / "logs")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="not a folder"):
        check_folder(tmp_path / "file")
    assert own_folder(tmp_path / "a" / "b").is_dir()
    assert own_folder(tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize("error", [ValueError("odd"), MemoryError(), RecursionError("deep"), OSError(5, "broken")])
def test_every_failure_becomes_an_error_that_names_the_file(tmp_path, error):
    text = rf"file: cannot be read(: it is damaged or foreign)? \({reason(error)}\)\. Try again\."
    with (
        pytest.raises(CorruptStoreError, match=text),
        failures_as(CorruptStoreError, tmp_path / "file", "Try again."),
    ):
        raise error


def test_our_own_errors_pass(tmp_path):
    with pytest.raises(ArtefactError), failures_as(CorruptStoreError, tmp_path, "Try again."):
        raise ArtefactError(tmp_path, "is odd.")
