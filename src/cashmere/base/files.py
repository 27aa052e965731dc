"""Files in folders that may come from strangers: read only if regular and of bounded size, written whole or not at all.

A received folder may hold links, pipes and devices under the names of our files. No function here follows a link in
the last part of a path, and `own_folder` refuses sub-folders that are links. Nothing here guards against somebody who
changes the folder while we work in it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from cashmere.exceptions import CashmereError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NOT_FOLLOWING = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for its other end
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

_TEMPORARY = re.compile(r"\.(?P<name>.+?)(?:\.[0-9a-f]{16})?\.tmp")
"""Names of temporary files; earlier versions wrote them without digits."""

_GRACE_SECONDS = 1.0
"""Age up to which a temporary file may still be unlocked although its writer is alive."""

MOST_BYTES = 2**36
"""Limit of files whose contents are mapped or read as large arrays: 64 GiB."""


@contextlib.contextmanager
def failures_as(kind: Callable[[Path, str], CashmereError], path: Path, advice: str) -> Iterator[None]:
    """Turn any failure to read a file into an error that names the file.

    This includes lack of memory and too deep recursion, which damaged and forged files cause. Our own errors pass.

    Parameters
    ----------
    kind : type of error
        Takes a path and a text.
    path : Path
        The file.
    advice : str
        What to try, in one or more sentences, unless the file is a link.
    """
    try:
        yield
    except CashmereError:
        raise
    except Exception as error:
        what = "" if isinstance(error, OSError | MemoryError) else ": it is damaged or foreign"
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            advice = "If it is yours, copy the files themselves: `cp -rL FOLDER COPY` replaces links by them."
        raise kind(path, f"cannot be read{what} ({reason(error)}). {advice}") from error


def reason(error: BaseException) -> str:
    """Return what went wrong in a few words, for a message that names the file itself."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error)
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


# ---------------------------------------------------------------- read


def open_regular(path: Path, *, limit: int = MOST_BYTES) -> io.BufferedReader:
    """Open a regular file for reading.

    Parameters
    ----------
    path : Path
        The file.
    limit : int
        Largest size in bytes.

    Raises
    ------
    OSError
        If it is missing, a link, a pipe, a device or a folder, or too large.
    """
    check_regular(path)  # first, because merely opening some devices has effects
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NOT_FOLLOWING))  # noqa: SIM115
    try:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if found.st_size > limit:
            raise OSError(errno.EFBIG, f"it holds {found.st_size} bytes; expected at most {limit}", str(path))
    except BaseException:
        file.close()
        raise
    return file


def read_file(path: Path, *, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; errors as for `open_regular`.

    Check and parse what this returns: when opened again, the file may be a different one.
    """
    with open_regular(path, limit=limit) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def check_regular(path: Path) -> None:
    """Reject a path that is not a regular file; errors as for `open_regular`."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "it is a link, and links are not followed", str(path))
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
        raise OSError(errno.EINVAL, f"it is {kind}; expected a regular file", str(path))


def check_only_name(path: Path) -> None:
    """Reject a file with another hard link: writing it in place would change it there, too.

    Raises
    ------
    OSError
        As for `open_regular`, and if another hard link to it exists.
    """
    check_regular(path)
    if (n_names := path.lstat().st_nlink) > 1:
        raise OSError(errno.EMLINK, f"it is one of {n_names} hard links to the same file; copy the folder", str(path))


def is_regular(path: Path) -> bool:
    """Return whether a path is a regular file, and not a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


# ---------------------------------------------------------------- folders


def check_folder(path: Path) -> None:
    """Reject a sub-folder that is a link or not a folder.

    Raises
    ------
    OSError
        If it is missing, a link or anything else but a folder.
    """
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "it is a link to another folder, and links are not followed", str(path))
    if not stat.S_ISDIR(mode):
        raise OSError(errno.ENOTDIR, "it is not a folder", str(path))


def own_folder(path: Path) -> Path:
    """Make a sub-folder unless it exists, and return it; errors as for `check_folder`."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(parents=True)
    check_folder(path)
    return path


# ---------------------------------------------------------------- write


@contextlib.contextmanager
def writing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` at the end of the block, complete and on disk, or not at all.

    It is written under a random name that did not exist before, so nothing is written through a link.

    Parameters
    ----------
    path : Path
        The file.
    durable : bool
        Whether it must survive a loss of power; a cache need not, and waiting for the disk takes time.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOT_FOLLOWING
    with open(temporary, "wb", opener=lambda name, _: os.open(name, flags, 0o666)) as file, _held(file):
        try:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            file.close()
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                file.close()
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


@contextlib.contextmanager
def _held(file: BinaryIO) -> Iterator[None]:
    """Lock a file until the end of the block, even if it is closed earlier, to show that its writer is alive."""
    if fcntl is None:
        yield
        return
    descriptor = os.dup(file.fileno())
    try:
        with contextlib.suppress(OSError):  # not all file systems have locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _is_held(path: Path) -> bool:
    """Return whether a process may be writing a file; True where files cannot be locked."""
    if fcntl is None:
        return True
    try:
        with open_to_change(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def open_to_change(path: Path) -> BinaryIO:
    """Open a regular file for reading and writing in place: a cache, which need not be complete at every instant.

    Raises
    ------
    OSError
        As for `check_regular`.
    """
    check_regular(path)
    return open(path, "r+b", opener=lambda name, flags: os.open(name, flags | _NOT_FOLLOWING))


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file by complete content that is safely on disk, or leave it as it is."""
    with writing(path) as file:
        file.write(data)


def written_name(name: str) -> str | None:
    """Return the final name of a temporary file; None for any other file."""
    found = _TEMPORARY.fullmatch(name)
    return None if found is None else found["name"]


def remove_leftovers(folder: Path, *, of: Collection[str] | None = None, older_than: float = 0.0) -> None:
    """Remove temporary files that killed processes have left in a folder.

    Parameters
    ----------
    folder : Path
        If the caller does not hold its lock, another process may be writing there: pass `older_than`.
    of : collection of str, optional
        Only files meant to get one of these names.
    older_than : float
        Only files unchanged for this many seconds, or for one second if they can be locked: then their writer has
        ended.
    """
    for path in folder.iterdir():
        name = written_name(path.name)
        if name is None or (of is not None and name not in of) or not is_regular(path):
            continue
        with contextlib.suppress(OSError):
            age = time.time() - path.lstat().st_mtime
            if not older_than or age > older_than or (age > _GRACE_SECONDS and not _is_held(path)):
                path.unlink()
