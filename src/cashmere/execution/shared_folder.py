"""A folder that processes on one machine share: the first one fills it, and it is removed after the last one."""

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
"""Program of a process that waits until nobody uses a folder, then removes it, after an atomic renaming."""


class SharedFolder:
    """Share a folder with other processes on this machine, each with its own object.

    Parameters
    ----------
    path : Path
        The folder; the one above it exists.
    fill : callable
        Writes the files into the folder that it is given; one process calls it while the others wait.

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
    Each user of the folder holds a shared lock, which the system releases when the process ends for any reason. The
    process that fills the folder starts a keeper, which waits for the exclusive lock. Not on Windows.
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
        # It forks in a new session, so that whatever kills the children of this process does not find it.
        command = [sys.executable, "-I", "-S", "-c", _KEEPER, str(path), str(path / "users")]
        quiet = subprocess.DEVNULL
        subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, cwd="/", start_new_session=True, check=True)

    def leave(self) -> None:
        """Stop using the folder; its files may disappear from now on."""
        users, self._users = self._users, -1
        if users >= 0:
            os.close(users)


def _lock_of_users(path: Path) -> int:
    """Take the shared lock and return the descriptor that holds it.

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
