"""A folder that processes of one machine use together: it is filled once, and goes with the last of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_KEEPER = """
import fcntl, os, shutil, sys
if os.fork():
    os._exit(0)
folder, path = sys.argv[1:]
users = os.open(path, os.O_RDWR)
fcntl.flock(users, fcntl.LOCK_EX)
if os.path.samestat(os.fstat(users), os.stat(path)):  # else another keeper was faster
    gone = f"{folder}-{os.getpid()}-gone"
    os.rename(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)
"""
"""Waits, as a process of its own, until nobody uses a folder, then removes it: first by its name, at one stroke."""


class SharedFolder:
    """Use a folder together with other processes of this machine. Each has its own object.

    Parameters
    ----------
    path : Path
        The folder; the one above it exists.
    fill : callable
        Writes the files into the folder that it is given; called by one process, while the others wait for it.

    Attributes
    ----------
    files : Path
        Where the files are.

    Raises
    ------
    OSError
        If the folder cannot be made; what `fill` raises.

    Notes
    -----
    Who uses the folder holds a lock, shared, which the system takes away when a process ends, however that came. The
    process that fills it starts a keeper, which waits for the same lock alone. Not on Windows.
    """

    def __init__(self, path: Path, fill: Callable[[Path], None]) -> None:
        import fcntl

        self.files = path / "files"
        self._users = -1
        while self._users < 0:
            path.mkdir(mode=0o700, exist_ok=True)
            with suppress(FileNotFoundError):  # its keeper is removing it
                self._users = _lock_of_users(path / "users")
        try:
            filling = os.open(path / "filling", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(filling, fcntl.LOCK_EX)
                if not (path / "filled").exists():
                    self._start_keeper(path)
                    self.files.mkdir(exist_ok=True)
                    fill(self.files)
                    (path / "filled").touch()
            finally:
                os.close(filling)
        except BaseException:
            self.leave()
            raise

    @staticmethod
    def _start_keeper(path: Path) -> None:
        # It divides itself, in a session of its own: what ends the children of this process does not find it.
        command = [sys.executable, "-I", "-S", "-c", _KEEPER, str(path), str(path / "users")]
        quiet = subprocess.DEVNULL
        subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, cwd="/", start_new_session=True, check=True)

    def leave(self) -> None:
        """Use the folder no more; its files may be gone from now on."""
        users, self._users = self._users, -1
        if users >= 0:
            os.close(users)


def _lock_of_users(path: Path) -> int:
    """Return a descriptor that holds the shared lock.

    Raises
    ------
    FileNotFoundError
        If the folder is being removed.
    """
    import fcntl

    users = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(users, fcntl.LOCK_SH)
        if not os.path.samestat(os.fstat(users), path.stat()):
            raise FileNotFoundError(path)
    except BaseException:
        os.close(users)
        raise
    return users
