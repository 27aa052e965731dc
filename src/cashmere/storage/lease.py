"""Decide which process may write a run directory, even if machines share it.

The rules
---------
1. A directory has epochs (`cashmere.storage.epochs`). Only what belongs to the present one, the highest, is read.
2. The writer of an epoch holds its lease, a file that it creates exclusively (which network file systems guarantee,
   too), touches regularly, and removes at the end. So an epoch has one writer at a time.
3. A lease that was left behind passes on within its epoch only if its holder has certainly ended: it ran on this
   machine since the machine was started, saw the directory through the same mount, and its lock, which ends with a
   process, is free. Locks of other machines prove nothing, nor do those of two containers with separate mounts.
4. Any other lease ends its epoch once it has expired without renewal: its holder may be dead, cut off, or only
   suspended. Whoever creates the lease of the next epoch continues, with a copy of the database.
5. Before and after each write, a holder checks that its epoch is still the present one. If it is not, the write went
   to files that nobody reads, and `LeaseLostError` ends its work.

Ages are differences of the times of two files, so the clock of the file system counts: clocks of machines differ.
A wrong clock can end an epoch early. That costs its holder the work, but never mixes the work of two processes.

Not covered: ``model/``, ``report.html``, ``prepared/`` and ``logs/``. They are derived from the rest, and a resumed run
makes them again.
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
"""How long a writer may be silent before another may take over. Swapping and slow disks take seconds."""

_RENEWALS = 6
"""How often a lease is renewed before it would expire."""

_LONGEST_SECONDS = 600.0
"""Longest lease that is believed, as the file may come from a stranger."""

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
        The present epoch.
    lock : FileLock
        Its lock, acquired.
    record : dict
        Content of the file.
    """

    def __init__(self, folder: Path, epoch: int, lock: FileLock, record: _Record) -> None:
        self._folder, self.epoch, self._lock, self._record = folder, epoch, lock, record
        self._lock_of_end: FileLock | None = None
        self._released = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="cashmere-lease", daemon=True)
        try:
            self._renewing.start()
        except BaseException:  # Ctrl+C: a thread that goes on would hold the lock
            self.release()
            raise

    @classmethod
    def take(cls, folder: Path, *, seconds: float = LEASE_SECONDS) -> Self:
        """Become the writer of a directory.

        Parameters
        ----------
        folder : Path
            It exists.
        seconds : float
            How long this process may be silent before another may take over.

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
        """Raise if another process has become the writer.

        Raises
        ------
        LeaseLostError
            If one has; the error names it.
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
        """Begin another epoch that nobody will write, so that the directory can be removed before `release`.

        Raises
        ------
        LeaseLostError
            If another process has become the writer.
        """
        # Without the lock, a process on this machine would take the lease for one that was left behind.
        self._lock_of_end = _lock(self._folder, self.epoch + 1)
        try:
            if self._lock_of_end is None:
                raise RunLockedError(self._folder, "is being taken over by another process. Wait for it to end.")
            _make(self._folder, self.epoch + 1, self._record)
        except RunLockedError:
            self.check()
            raise

    def release(self) -> None:
        """Let others write."""
        if self._released.is_set():
            return
        self._released.set()
        if self._renewing.ident is not None:
            self._renewing.join()
        with contextlib.suppress(OSError):
            path = lease_path(self._folder, self.epoch)
            if (found := _read(path)) is not None and found["token"] == self._record["token"]:
                path.unlink()
        for lock in (self._lock, self._lock_of_end):
            if lock is not None:
                lock.release()

    def _renew(self) -> None:
        while not self._released.wait(self._record["seconds"] / _RENEWALS):
            with contextlib.suppress(OSError):  # moved, or no longer permitted: the next write will say so
                os.utime(lease_path(self._folder, self.epoch))


def is_written_elsewhere(folder: Path) -> bool:
    """Return whether a process on another machine holds the lease of a directory, or has left it behind."""
    try:
        found = _read(lease_path(folder, present_epoch(folder)))
    except OSError:
        return False
    return found is not None and found["machine"] != this_machine(folder)


def this_machine(folder: Path) -> str:
    """Return a text that distinguishes this machine, with its mount of a folder, from others and from earlier boots.

    Processes with the same text see each other's locks in the folder.
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
    """Return the content of a lease; None without one. A lease that is damaged or unfinished has an unknown holder."""
    try:
        content = read_file(path, limit=_LEASE_BYTES)
    except FileNotFoundError:
        return None
    try:
        return checked(parse_json(content), _Record)
    except ValueError:
        return {"token": "", "machine": "", "host": "", "process": 0, "seconds": LEASE_SECONDS}


def _make(folder: Path, epoch: int, record: _Record) -> None:
    """Create the lease of an epoch; raise if there is one."""
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
    except BaseException:  # such as a full disk
        path.unlink(missing_ok=True)
        raise


def _encoded(record: _Record) -> bytes:
    return json.dumps(record).encode()


def _check_over(folder: Path, epoch: int, record: _Record | None) -> None:
    """Raise if a holder may still be working, or has not begun its run."""
    age = None if record is None else _age(lease_path(folder, epoch))
    if record is None or age is None:  # its holder is just starting or ending, or is an earlier version without leases
        raise RunLockedError(folder, "is in use by another process. Wait for it to end, or stop it first.")
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


def _age(path: Path) -> float | None:
    """Return the seconds since a file was touched, by the clock of its file system; None if it is gone."""
    probe = path.with_name(f".lease.{secrets.token_hex(8)}.tmp")
    try:
        probe.touch(exist_ok=False)
        now = probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return None


def _who(record: _Record | None) -> str:
    if record is None or not record["host"]:
        return "an unknown process"
    return f"process {record['process']} on {clean_text(record['host'], 80)}"
