from __future__ import annotations

import errno
import os
import sqlite3

import pytest

from cashmere.exceptions import RunDirectoryError
from cashmere.storage.write_failures import write_failures_explained


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").touch()
    return folder


def failing_with(error, folder):
    with pytest.raises(RunDirectoryError) as caught, write_failures_explained(folder):
        raise error
    assert caught.value.__cause__ is error
    return str(caught.value)


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), sqlite3.OperationalError("database or disk is full")],
    ids=["file", "database"],
)
def test_full_disk_asks_for_space(run, error):
    text = failing_with(error, run)
    assert "its disk is full. Free some space, then continue with `cashmere resume" in text


def test_a_limit_on_file_sizes_is_named_beside_a_full_disk(run):
    text = failing_with(OSError(errno.EFBIG, os.strerror(errno.EFBIG)), run)
    assert "its disk is full, or a limit on file sizes (ulimit -f) is reached. Free some space or raise it" in text


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_lost_permission_is_explained(run, number):
    text = failing_with(OSError(number, os.strerror(number), str(run / "table.npz")), run)
    assert f"({os.strerror(number)}). Permit writing" in text


def test_read_only_database_is_explained(run):
    error = sqlite3.OperationalError("attempt to write a readonly database")
    assert "Permit writing" in failing_with(error, run)


def test_moved_directory_is_explained(run):
    run.rename(run.with_name("moved"))
    error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(run / "model" / "manifest.json"))
    text = failing_with(error, run)
    assert "no longer there: it was moved or deleted" in text and "its new path" in text


def test_run_that_has_not_begun_must_be_started_again(tmp_path):
    (tmp_path / "run").mkdir()
    text = failing_with(OSError(errno.ENOSPC, "No space left on device"), tmp_path / "run")
    assert text.endswith("Free some space, then start the run again.")


def test_errors_about_other_files_pass(run):
    with pytest.raises(FileNotFoundError), write_failures_explained(run):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(run.parent / "costs.csv"))
