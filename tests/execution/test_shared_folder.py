from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from processes import running, wait_until

from cashmere.execution.shared_folder import SharedFolder

pytest.importorskip("fcntl")

USE = """
import os, sys, time
from pathlib import Path
from cashmere.execution.shared_folder import SharedFolder

def fill(folder):
    time.sleep(0.2)
    (folder / f"filled-by-{os.getpid()}").touch()

folder = SharedFolder(Path(sys.argv[1]), fill)
print(*(path.name for path in folder.files.iterdir()), flush=True)
sys.stdin.read()
"""


@contextmanager
def process_using(path):
    """Start a process that uses a folder until its input ends."""
    pipe = subprocess.PIPE
    with running([sys.executable, "-c", USE, path], stdin=pipe, stdout=pipe, text=True) as process:
        yield process


def write(folder):
    (folder / "file").write_text("content")


def test_processes_fill_the_folder_once_and_the_last_of_them_removes_it(tmp_path):
    path = tmp_path / "shared"
    with process_using(path) as first, process_using(path) as second:
        seen = [first.stdout.readline(), second.stdout.readline()]
        assert seen[0] == seen[1]
        assert len(seen[0].split()) == 1
        first.kill()
        first.wait()
        time.sleep(0.3)
        assert (path / "files").exists()
        second.kill()
    wait_until(lambda: not list(tmp_path.iterdir()))


def test_folder_that_nobody_uses_any_more_is_filled_again(tmp_path):
    path = tmp_path / "shared"
    for _ in range(3):
        folder = SharedFolder(path, write)
        assert (folder.files / "file").read_text() == "content"
        folder.leave()
        folder.leave()  # calling it again does no harm
    wait_until(lambda: not list(tmp_path.iterdir()))


def test_folder_that_cannot_be_filled_is_removed(tmp_path):
    def fail(folder):
        (folder / "half").touch()
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        SharedFolder(tmp_path / "shared", fail)
    wait_until(lambda: not list(tmp_path.iterdir()))
