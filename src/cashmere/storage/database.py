"""The SQLite file of a run, opened so that even a malicious one can do no harm.

A database can hold more than rows: views and triggers run statements, and a damaged tree can keep a reader busy
forever. So a file must have exactly our tables, is read under limits, and only the process that continues the run opens
it for writing.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cashmere.base.files import check_only_name, check_regular, open_regular, reason, writing
from cashmere.exceptions import CorruptStoreError, RunDirectoryError, RunLockedError
from cashmere.storage.directory import RESTORE
from cashmere.storage.epochs import present_database
from cashmere.storage.lease import is_written_elsewhere
from cashmere.storage.write_failures import moved

STORE_VERSION = 4

_TABLES_OF_VERSION_1 = {
    "trials": """CREATE TABLE trials (
    number INTEGER PRIMARY KEY,
    configuration TEXT NOT NULL,      -- JSON of the active values
    seed INTEGER NOT NULL,
    origin TEXT NOT NULL,             -- see Origin.parse
    fidelity REAL NOT NULL,
    status TEXT NOT NULL,
    loss REAL,
    fold_losses TEXT NOT NULL,        -- JSON list
    duration_seconds REAL NOT NULL,
    fit_seconds REAL NOT NULL,
    predict_seconds REAL NOT NULL,
    memory_mib REAL,
    error TEXT,                       -- see Cause.parse
    finished_at REAL NOT NULL,        -- seconds since the study began, summed over resumes
    predictions_crc INTEGER,          -- CRC-32 of the file in predictions/, NULL without predictions
    member_bytes INTEGER              -- size of the file in members/, NULL without model
)""",
    "facts": "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
}

_PATHS = """CREATE TABLE paths (
    number INTEGER PRIMARY KEY,       -- of the trial
    parameter TEXT,                   -- NULL without a path parameter
    positions TEXT,                   -- JSON list
    losses TEXT,                      -- JSON list
    chosen REAL,
    cut_short TEXT                    -- see Cause.parse
)"""

_FEATURES = """CREATE TABLE features (
    number INTEGER PRIMARY KEY,       -- of a trial that added columns to its table
    columns INTEGER NOT NULL,
    seconds REAL NOT NULL
)"""

_EPOCHS = """CREATE TABLE epochs (
    number INTEGER PRIMARY KEY,       -- of a trial that was not stored in the first epoch
    epoch INTEGER NOT NULL
)"""

_ADDED = {1: {}, 2: {"paths": _PATHS}, 3: {"features": _FEATURES}, 4: {"epochs": _EPOCHS}}
"""Tables that each version of the store added to those of the first."""

_TABLES = {
    version: _TABLES_OF_VERSION_1 | {name: sql for v in range(1, version + 1) for name, sql in _ADDED[v].items()}
    for version in _ADDED
}
"""Tables by version of the store."""

MOST_BYTES = 2**30
"""Largest database: a trial takes less than a kilobyte."""

_LONGEST_VALUE = 2**26
"""Largest row, in bytes; the curve of the ensemble takes less than 100 bytes per trial."""

_SECONDS = 60.0
"""Time limit for reading; a hundred thousand trials take a second."""

_LOCK_SECONDS = 10.0
"""How long to wait for another program to release the file."""

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: _LONGEST_VALUE,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}

_LOG_HEADER_BYTES = 32
"""With two random numbers, which SQLite changes: https://sqlite.org/fileformat2.html#walformat."""

_ATTEMPTS = 5
"""How often to try to read a database that somebody begins to write meanwhile."""

Result = TypeVar("Result")


def open_for_writing(path: Path, *, must_exist: bool) -> sqlite3.Connection:
    """Open the database of a run to continue it; the caller holds the lock of the directory.

    Parameters
    ----------
    path : Path
        The file; created if missing.
    must_exist : bool
        Whether to refuse a file that is missing or has no tables yet.

    Raises
    ------
    RunDirectoryError
        If it cannot be opened: no permission, locked, disk full.
    CorruptStoreError
        If it is damaged, missing although it must exist, foreign, or of a newer version.
    """
    is_there = _check_files(path, written=True)
    has_log = _has_log(path)
    if must_exist and not is_there:
        text = "is missing, although the run has begun: its trials are lost with it."
        raise CorruptStoreError(path, f"{text} {RESTORE}")
    if not is_there:
        _make(path)
    with failures_explained(path):
        database = _connect(path, "mode=rw" if is_there else "mode=rwc")
        try:
            with _limited(database):
                if _is_empty(database) and not must_exist:
                    database.execute("PRAGMA journal_mode=WAL")
                    tables = ";".join(_TABLES[STORE_VERSION].values())
                    database.executescript(f"BEGIN;{tables};PRAGMA user_version={STORE_VERSION};COMMIT;")
                version = _check(database, path, is_whole=is_there and not has_log)
                if version < STORE_VERSION:
                    lacking = (sql for name, sql in _TABLES[STORE_VERSION].items() if name not in _TABLES[version])
                    database.executescript(f"BEGIN;{';'.join(lacking)};PRAGMA user_version={STORE_VERSION};COMMIT;")
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")
        except BaseException:
            database.close()
            raise
    return database


def _make(path: Path) -> None:
    """Make an empty database with the rights of other new files; SQLite lets its log have the same.

    One made by SQLite could never be written by the group, so nobody else could continue the run.
    """
    with contextlib.suppress(OSError):  # SQLite tries again, and its error is explained
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))


def read(folder: Path, reader: Callable[[sqlite3.Connection], Result]) -> Result:
    """Return what `reader` finds in the database of a run, without changing it.

    The run may be at work, here or on another machine, and the directory read-only.

    Raises
    ------
    RunDirectoryError
        If it is missing or cannot be opened: no permission, locked.
    CorruptStoreError
        If it is damaged, foreign or of a newer version, or takes too long to read.
    """
    for attempt in range(_ATTEMPTS):
        path = present_database(folder)
        before = _stamp(path)
        try:
            if not _check_files(path):
                raise RunDirectoryError(folder, "holds no run.sqlite. Expected the directory of a cashmere run.")
            if is_written_elsewhere(folder):
                # The other machine may hold parts of the log in memory, which this one cannot see.
                with _copied(path) as copy:
                    return _read_once(copy, reader, is_at_work=False)
            result = _read_once(path, reader, is_at_work=before.has_log)
        except (RunDirectoryError, FileNotFoundError):
            # Somebody may have begun to write, or has taken over and removed the database of the earlier epoch.
            if attempt == _ATTEMPTS - 1 or (present_database(folder) == path and _stamp(path) == before):
                raise
        else:
            if before.has_log or _stamp(path) == before:
                return result
    raise RunDirectoryError(path, "changes all the time. Wait until the run is at work or has ended, then try again.")


def copy_database(source: Path, destination: Path) -> None:
    """Copy the database of an epoch that may still be written, completely and atomically; errors as for `read`."""
    _check_files(source)
    with _copied(source) as copy, open_regular(copy) as old, writing(destination) as new:
        shutil.copyfileobj(old, new)


@contextlib.contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """Copy a database for the block, with the content of its log; leave the original untouched, ignore its locks.

    The original may be written meanwhile. What is appended to the log does no harm, as SQLite reads it up to the last
    complete transaction. But when the log has been moved into the database, it begins anew.
    """
    with tempfile.TemporaryDirectory(prefix="cashmere-") as folder:
        copy = Path(folder) / path.name
        for _ in range(_ATTEMPTS):
            before, has_log = _generation(path), _has_log(path)
            for ending in ("", "-wal"):
                _beside(copy, ending).unlink(missing_ok=True)
                with contextlib.suppress(FileNotFoundError), open_regular(_beside(path, ending)) as file:
                    _beside(copy, ending).write_bytes(file.read(MOST_BYTES))
            if _generation(path) == before:
                break
        else:
            raise RunDirectoryError(path, "changes all the time. Try again later.")
        with (
            failures_explained(path),
            contextlib.closing(_connect(copy, "mode=rw")) as database,
            _limited(database),
        ):
            _check(database, path, is_whole=not has_log)
        yield copy  # closing the last connection has moved the log into the file


def _generation(path: Path) -> bytes | _Stamp:
    """Return the header of the log of a database, which differs each time it begins anew; its stamp without a log."""
    with contextlib.suppress(FileNotFoundError), open_regular(_beside(path, "-wal")) as log:
        if header := log.read(_LOG_HEADER_BYTES):
            return header
    return _stamp(path)


def _read_once(path: Path, reader: Callable[[sqlite3.Connection], Result], *, is_at_work: bool) -> Result:
    # Without a log beside it, the file is complete. Then SQLite needs no log, which this user may not be permitted to
    # create and which would be left behind; `read` notices if somebody has begun to write meanwhile.
    options = "mode=ro" if is_at_work else "mode=ro&immutable=1"
    with (
        failures_explained(path),
        contextlib.closing(_connect(path, options)) as database,
        _limited(database),
    ):
        database.execute("BEGIN")  # one state for all statements: the run may store trials between them
        _check(database, path, is_whole=not is_at_work)
        return reader(database)


@dataclass(frozen=True, slots=True)
class _Stamp:
    """State of a database file that changes when somebody writes."""

    has_log: bool
    numbers: tuple[int, ...]


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
        return _Stamp(_has_log(path), (found.st_ino, found.st_size, found.st_mtime_ns))
    except FileNotFoundError:
        return _Stamp(False, ())


def _has_log(path: Path) -> bool:
    """Return whether anything is in the log beside a database.

    A reader leaves an empty log behind if the writer has closed the database just before it opened it.
    """
    try:
        return _beside(path, "-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def remove(path: Path) -> None:
    """Remove the database of a run that has not begun; the caller holds the lock of the directory."""
    for ending in ("", "-wal", "-shm", "-journal"):
        _beside(path, ending).unlink(missing_ok=True)


def _check_files(path: Path, *, written: bool = False) -> bool:
    """Raise for links, pipes and huge files among the files of a database; return whether it exists.

    A database that will be written must not have a second name either, see `check_only_name`.
    """
    for each in (path, _beside(path, "-wal"), _beside(path, "-shm")):
        try:
            (check_only_name if written else check_regular)(each)
            size = each.stat().st_size
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CorruptStoreError(each, f"cannot be used ({reason(error)}). {RESTORE}") from error
        if size > MOST_BYTES:
            text = f"holds {size} bytes, more than the database of a run can have ({MOST_BYTES}). {RESTORE}"
            raise CorruptStoreError(each, text)
    journal = _beside(path, "-journal")
    if journal.exists() or journal.is_symlink():  # it may name other files, which SQLite would delete
        text = "is not a file of cashmere: another program has changed run.sqlite and was interrupted."
        raise CorruptStoreError(journal, f"{text} {RESTORE}")
    return path.exists()


def _connect(path: Path, options: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{options}"
    database = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_LOCK_SECONDS)
    try:
        for limit, value in _LIMITS.items():
            database.setlimit(limit, value)
        database.execute("PRAGMA trusted_schema=OFF")
        database.execute("PRAGMA cell_size_check=ON")
    except BaseException:
        database.close()
        raise
    return database


@contextlib.contextmanager
def _limited(database: sqlite3.Connection) -> Iterator[None]:
    """Interrupt statements that take longer than any on the database of a run should."""
    end = time.monotonic() + _SECONDS
    database.set_progress_handler(lambda: time.monotonic() > end, 10_000)
    try:
        yield
    finally:
        database.set_progress_handler(None, 0)


def _check(database: sqlite3.Connection, path: Path, *, is_whole: bool) -> int:
    """Raise if a database is damaged, of a newer version, or holds anything but our tables; return its version.

    Without a log, the file must be whole: SQLite would read zeros where it was cut short.
    """
    size = database.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[0]
    if is_whole and path.stat().st_size < size:
        raise CorruptStoreError(path, f"is cut short: it holds {path.stat().st_size} bytes of {size}. {RESTORE}")
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version > STORE_VERSION:
        raise CorruptStoreError(path, f"was written by a newer cashmere (store version {version}). Upgrade cashmere.")
    found = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 10").fetchall()
    expected = [("table", name, name, _normal(sql)) for name, sql in _TABLES.get(version, {}).items()]
    expected += [("index", "sqlite_autoindex_facts_1", "facts", "")]
    normal = [(kind, name, table, _normal(sql or "")) for kind, name, table, sql in found]
    if sorted(normal) != sorted(expected):
        held = ", ".join(f"{kind} {name}"[:40] for kind, name, _, _ in found[:5]) or "nothing"
        text = f"is not the database of a run: expected the tables of cashmere, but it holds {held}"
        raise CorruptStoreError(path, f"{text}. {RESTORE}")
    verdict = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise CorruptStoreError(path, f"is damaged ({verdict[:300]}). {RESTORE}")
    return int(version)


def _is_empty(database: sqlite3.Connection) -> bool:
    return database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def _normal(sql: str) -> str:
    """Return a statement without comments, which have changed between versions, and line ends."""
    return " ".join(re.sub(r"--[^\n]*", "", sql).split())


@contextlib.contextmanager
def failures_explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite or about values into ours, which tell damage from missing rights, locks and full disks."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(path, error) from error
    except MemoryError as error:  # also for SQLITE_NOMEM
        raise RunDirectoryError(path, "cannot be read: there is not enough memory. Close other programs.") from error
    except (ValueError, RecursionError) as error:
        raise CorruptStoreError(path, f"holds what no run stores ({reason(error)}). {RESTORE}") from error


def _explained(path: Path, error: sqlite3.Error) -> RunDirectoryError:
    if not path.parent.exists():
        return RunDirectoryError(path.parent, moved(str(error)))
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # higher bits hold details, such as the call
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            text = f"is locked by another program, which did not release it within {_LOCK_SECONDS:g} s. Close that "
            return RunLockedError(path, text + "program, then try again.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            text = f"cannot be opened: this user lacks the right to read or write it, or to write next to it ({error})."
            return RunDirectoryError(path, f"{text} Copy the whole directory to a place where you may write.")
        case sqlite3.SQLITE_FULL:
            return RunDirectoryError(path, "cannot be written: the disk is full. Free some space, then resume the run.")
        case sqlite3.SQLITE_IOERR:
            text = f"cannot be read or written: the disk or the network reports an error ({error})."
            return RunDirectoryError(path, f"{text} Copy the whole directory to another disk.")
        case sqlite3.SQLITE_INTERRUPT:
            return CorruptStoreError(path, f"takes more than {_SECONDS:g} s to read, so it is damaged. {RESTORE}")
        case _:
            return CorruptStoreError(path, f"is damaged ({str(error)[:300]}). {RESTORE}")
