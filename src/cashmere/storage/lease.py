"""Which process may write a run directory, also where machines share it.

The rules
---------
1. A directory has epochs (`cashmere.storage.epochs`). Only what belongs to the present one, the highest, is read.
2. The writer of an epoch holds its lease, a file that it makes exclusively (which network file systems guarantee, too),
   touches all the time, and removes at the end. So an epoch has one writer at a time.
3. A lease that is left behind passes on within its epoch only if its holder has certainly ended: it was on this machine
   since it was started, saw the directory through the same mount, and its lock, which ends with a process, is free.
   Locks of other machines prove nothing, nor do those that two containers on one machine take in mounts of their own.
4. Any other lease ends its epoch when it was not renewed for as long as it lasts: its holder may be dead, cut off, or
   stopped and come back. Whoever makes the lease of the next epoch goes on, with a copy of the database.
5. A holder looks before and after each write whether its epoch is still the present one. If it is not, the write went
   to files that nobody reads, and `LeaseLostError` ends its work.

Ages are measured by the clock of the file system, from the times of two files on it: clocks of machines differ.
A wrong clock can end an epoch early. That costs its holder the work, but never mixes the work of two.

Not covered: ``model/``, ``report.html``, ``prepared/`` and ``logs/``. They are derived from the rest, and made again by
a resume.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import socket
import threading
import uuid
from pathlib import Path
from typing import Annotated, Self, TypedDict

from filelock import FileLock, Timeout
from msgspec import Meta

from cashmere.base.files import check_only_name, read_file, write_atomically
from cashmere.base.json_files import Count, ShortText, checked, parse_json
from cashmere.base.text import clean_text
from cashmere.exceptions import LeaseLostError, RunLockedError
from cashmere.storage.epochs import lease_path, lock_path, present_epoch

LEASE_SECONDS = 60.0
"""How long a writer may not answer before another may take over. Swapping and slow disks take seconds."""

_RENEWALS = 6
"""How often a lease is renewed while it lasts."""

_LONGEST_SECONDS = 600.0
"""Longest lease that is believed: the file may come from a stranger."""

_LEASE_BYTES = 10_000

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class _Record(TypedDict):
    """Content of a lease."""

    token: ShortText
    machine: ShortText
    host: ShortText
    process: Count
    seconds: Annotated[float, Meta(gt=0, le=_LONGEST_SECONDS)]


class Lease:
    """The right to write a run directory, held by this process until `release`; see the rules of this module.

    Parameters
    ----------
    folder : Path
        The run directory.
    epoch : int
        The present one.
    lock : FileLock
        Acquired.
    record : dict
        What the file holds.
    """

    def __init__(self, folder: Path, epoch: int, lock: FileLock, record: _Record) -> None:
        self._folder, self.epoch, self._lock, self._record = folder, epoch, lock, record
        self._released = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="cashmere-lease", daemon=True)
        self._renewing.start()

    @classmethod
    def take(cls, folder: Path, *, seconds: float = LEASE_SECONDS) -> Self:
        """Become the writer of a directory.

        Parameters
        ----------
        folder : Path
            It exists.
        seconds : float
            How long this process may not answer before another may take over.

        Raises
        ------
        RunLockedError
            If another process is the writer, or may be.
        OSError
            If a file cannot be used: no permission, or a link.
        """
        epoch = present_epoch(folder)
        record: _Record = {
            "token": secrets.token_hex(16),
            "machine": this_machine(folder),
            "host": socket.gethostname(),
            "process": os.getpid(),
            "seconds": seconds,
        }
        lock = _lock(folder, epoch)
        try:
            found = _read(lease_path(folder, epoch))
            if found is None and lock is not None:
                _make(folder, epoch, record)
            elif found is not None and lock is not None and found["machine"] == record["machine"]:
                write_atomically(lease_path(folder, epoch), _encoded(record))
            else:
                _check_over(folder, epoch, found)
                if lock is not None:
                    lock.release()
                epoch += 1
                lock = _lock(folder, epoch)
                if lock is None:
                    raise RunLockedError(folder, "is being taken over by another process. Wait for it to end.")
                _make(folder, epoch, record)
            if present_epoch(folder) != epoch:
                raise RunLockedError(folder, "has just been taken over by another process. Wait for it to end.")
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        return cls(folder, epoch, lock, record)

    def check(self) -> None:
        """Refuse to go on if another process has become the writer.

        Raises
        ------
        LeaseLostError
            Naming that process.
        """
        present = present_epoch(self._folder)
        found = _read(lease_path(self._folder, present))
        if present != self.epoch or found is None or found["token"] != self._record["token"]:
            raise LeaseLostError(
                self._folder,
                f"was taken over by {_who(found)}, because this process did not renew its lease of "
                f"{self._record['seconds']:g} s: was it stopped, or its machine suspended? What it had stored before "
                "counts; what it did since is refused. The run continues there: resume it when that process has ended.",
            )

    def end_directory(self) -> None:
        """Begin another epoch that nobody will write, so that the directory can be removed.

        Raises
        ------
        LeaseLostError
            If another process has become the writer.
        """
        try:
            _make(self._folder, self.epoch + 1, self._record)
        except RunLockedError:
            self.check()
            raise

    def release(self) -> None:
        """Let others write."""
        if self._released.is_set():
            return
        self._released.set()
        self._renewing.join()
        with contextlib.suppress(OSError):
            path = lease_path(self._folder, self.epoch)
            if (found := _read(path)) is not None and found["token"] == self._record["token"]:
                path.unlink()
        self._lock.release()

    def _renew(self) -> None:
        while not self._released.wait(self._record["seconds"] / _RENEWALS):
            with contextlib.suppress(OSError):  # moved, or no right any more: the next write will say so
                os.utime(lease_path(self._folder, self.epoch))


def is_written_elsewhere(folder: Path) -> bool:
    """Return whether a process on another machine holds the lease of a directory, or has left it behind."""
    try:
        found = _read(lease_path(folder, present_epoch(folder)))
    except OSError:
        return False
    return found is not None and found["machine"] != this_machine(folder)


def this_machine(folder: Path) -> str:
    """Return what tells this machine, with its mount of a folder, from others, and from itself before it was restarted.

    Two processes for which it is the same see each other's locks in the folder.
    """
    return f"{_this_boot()} device {folder.stat().st_dev:x}"


@functools.cache
def _this_boot() -> str:
    try:
        return f"boot {_BOOT_ID.read_text().strip()}"
    except OSError:  # not Linux
        return f"{socket.gethostname()} {uuid.getnode():x}"


def _lock(folder: Path, epoch: int) -> FileLock | None:
    """Return the lock of an epoch, acquired; None if a process on this machine has it."""
    path = lock_path(folder, epoch)
    with contextlib.suppress(FileNotFoundError):
        check_only_name(path)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return None
    return lock


def _read(path: Path) -> _Record | None:
    """Return what a lease says; None if there is none. One that is damaged or being made has an unknown holder."""
    try:
        content = read_file(path, limit=_LEASE_BYTES)
    except FileNotFoundError:
        return None
    try:
        return checked(parse_json(content), _Record)
    except ValueError:
        return {"token": "", "machine": "", "host": "", "process": 0, "seconds": LEASE_SECONDS}


def _make(folder: Path, epoch: int, record: _Record) -> None:
    """Make the lease of an epoch, unless there is one."""
    path = lease_path(folder, epoch)
    try:
        file = path.open("xb")
    except FileExistsError:
        raise RunLockedError(folder, "has just been taken by another process. Wait for it to end.") from None
    try:
        with file:
            file.write(_encoded(record))
            file.flush()
            os.fsync(file.fileno())
    except BaseException:  # a full disk
        path.unlink(missing_ok=True)
        raise


def _encoded(record: _Record) -> bytes:
    return json.dumps(record).encode()


def _check_over(folder: Path, epoch: int, record: _Record | None) -> None:
    """Refuse to take over from a holder that may still work, or from one that has not begun its run."""
    if record is None:  # its holder is just beginning, or is an earlier version without leases
        raise RunLockedError(folder, "is in use by another process. Wait for it to end, or stop it first.")
    age = _age(lease_path(folder, epoch))
    if abs(age) < record["seconds"]:  # a time in the future was not written by a renewal
        left = record["seconds"] - age
        raise RunLockedError(
            folder,
            f"is in use by {_who(record)}, another process. Wait for it to end, or stop it first. If it cannot be "
            f"reached any more, try again in {left:.0f} s.",
        )
    if not (folder / "run.json").exists():
        raise RunLockedError(
            folder,
            f"was left by {_who(record)} before its run had begun, and that process may come back. Choose another "
            "directory.",
        )


def _age(path: Path) -> float:
    """Return the seconds since a file was touched, by the clock of its file system."""
    probe = path.with_name(f".lease.{secrets.token_hex(8)}.tmp")
    try:
        probe.touch(exist_ok=False)
        return probe.stat().st_mtime - path.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)


def _who(record: _Record | None) -> str:
    if record is None or not record["host"]:
        return "an unknown process"
    return f"process {record['process']} on {clean_text(record['host'], 80)}"
