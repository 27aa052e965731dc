"""The durable memory of a study: one SQLite row per finished trial, arrays and models in separate files."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from cashmere.base.files import write_atomically
from cashmere.exceptions import CorruptStoreError, RunDirectoryError, RunLockedError, UnknownNameError
from cashmere.records.cause import Cause
from cashmere.records.origin import Origin
from cashmere.records.trial import Observation, Outcome, Trial, TrialStatus
from cashmere.storage.facts import FACT_NAMES, RunFacts

STORE_VERSION = 1

_HELD_BYTES = 2**30
"""Limit of the predictions kept in memory: those of 6500 trials on 20000 rows with two classes."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS trials (
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
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class RunStore:
    """The files of one run directory that change while a study runs.

    Arrays are written first, then the row that names them; rows are committed with ``synchronous=FULL`` in WAL mode.
    So a kill at any instant leaves every finished trial readable, and at worst a file without a row, which is
    overwritten when the trial runs again. Only one process may hold a store open for writing.

    Parameters
    ----------
    folder : path
        The run directory; created if missing.
    read_only : bool
        Open without taking the lock; `add` is then refused.

    Raises
    ------
    RunLockedError
        If another process works in the directory.
    CorruptStoreError
        If the database is damaged or of a newer version.
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        self.folder = Path(folder)
        self._lock: FileLock | None = None
        self._held_bytes = 0
        if read_only:
            if not (self.folder / "run.sqlite").exists():
                raise RunDirectoryError(self.folder, "holds no run.sqlite. Expected the directory of a cashmere run.")
        else:
            for name in ("predictions", "members", "logs"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.folder / "lock")
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise RunLockedError(
                    self.folder, "is in use by another process. Wait for it to end, or stop it first."
                ) from None
        try:
            self._database = self._open_database(read_only)
        except BaseException:
            self._release()
            raise

    def _open_database(self, read_only: bool) -> sqlite3.Connection:
        path = self.folder / "run.sqlite"
        try:
            database = sqlite3.connect(path, isolation_level=None, timeout=10.0)
            try:
                if not read_only:
                    database.execute("PRAGMA journal_mode=WAL")
                    database.execute("PRAGMA synchronous=FULL")
                verdict = database.execute("PRAGMA quick_check").fetchone()[0]
                if verdict != "ok":
                    raise sqlite3.DatabaseError(verdict)
                version = database.execute("PRAGMA user_version").fetchone()[0]
                if version > STORE_VERSION:
                    raise CorruptStoreError(
                        path, f"was written by a newer cashmere (store version {version}). Upgrade cashmere."
                    )
                if not read_only:
                    database.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version={STORE_VERSION};COMMIT;")
            except BaseException:
                database.close()
                raise
        except sqlite3.DatabaseError as error:
            text = f"is damaged ({error}). Restore it from a copy, or start a new run in another directory."
            raise CorruptStoreError(path, text) from error
        return database

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and release the lock."""
        self._database.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    # ------------------------------------------------------------ trials

    def predictions_path(self, number: int) -> Path:
        """Return the path of a trial's predictions."""
        return self.folder / "predictions" / f"{number:06d}.npy"

    @property
    def baseline_path(self) -> Path:
        """Path of the constant predictor."""
        return self.folder / "members" / "baseline.skops"

    def member_path(self, number: int) -> Path:
        """Return the path of a trial's fitted models."""
        return self.folder / "members" / f"{number:06d}.skops"

    def add(self, trial: Trial, outcome: Outcome, *, finished_at: float) -> Observation:
        """Store a finished trial durably and return its observation."""
        crc = None
        predictions = None
        if outcome.predictions is not None:
            buffer = io.BytesIO()
            np.save(buffer, outcome.predictions, allow_pickle=False)
            crc = zlib.crc32(buffer.getvalue())
            write_atomically(self.predictions_path(trial.number), buffer.getvalue())
            predictions = self._open_predictions(self.predictions_path(trial.number))
        if outcome.model is not None:
            write_atomically(self.member_path(trial.number), outcome.model)
        observation = Observation(
            trial=trial, outcome=replace(outcome, predictions=predictions, model=None), finished_at=finished_at
        )
        self._database.execute(
            "INSERT INTO trials VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                trial.number,
                json.dumps(plain_values(trial.configuration)),
                trial.seed,
                trial.origin.to_json(),
                trial.fidelity,
                outcome.status.value,
                outcome.loss,
                json.dumps(outcome.fold_losses),
                outcome.duration_seconds,
                outcome.fit_seconds,
                outcome.predict_seconds,
                outcome.memory_mib,
                None if outcome.error is None else outcome.error.to_json(),
                finished_at,
                crc,
                None if outcome.model is None else len(outcome.model),
            ),
        )
        return observation

    def load(self, space: ConfigurationSpace) -> dict[int, Observation]:
        """Return all stored observations by trial number.

        Raises
        ------
        CorruptStoreError
            If a row cannot be read in this space, or a prediction file is missing or damaged.
        """
        return {o.trial.number: o for o in self._load(space)}

    def _load(self, space: ConfigurationSpace) -> Iterator[Observation]:
        database_path = self.folder / "run.sqlite"
        self._database.row_factory = sqlite3.Row
        try:
            rows = self._database.execute("SELECT * FROM trials ORDER BY number").fetchall()
        except sqlite3.DatabaseError as error:
            raise CorruptStoreError(database_path, f"cannot be read ({error}). Restore it from a copy.") from error
        finally:
            self._database.row_factory = None
        for row in rows:
            try:
                configuration = Configuration(space, values=json.loads(row["configuration"]))
            except Exception as error:
                text = (
                    f"trial {row['number']} holds a configuration that does not fit the search space ({error}). "
                    "Was the run made with another version or another space?"
                )
                raise CorruptStoreError(database_path, text) from error
            trial = Trial(
                number=row["number"],
                configuration=configuration,
                seed=row["seed"],
                origin=Origin.parse(row["origin"]),
                fidelity=row["fidelity"],
            )
            yield Observation(
                trial=trial,
                outcome=Outcome(
                    status=TrialStatus(row["status"]),
                    loss=row["loss"],
                    fold_losses=tuple(json.loads(row["fold_losses"])),
                    predictions=None if row["predictions_crc"] is None else self._read_predictions(row),
                    duration_seconds=row["duration_seconds"],
                    fit_seconds=row["fit_seconds"],
                    predict_seconds=row["predict_seconds"],
                    memory_mib=row["memory_mib"],
                    error=_cause(row),
                ),
                finished_at=row["finished_at"],
            )

    def rows(self) -> list[dict[str, Any]]:
        """Return the committed trials as dictionaries, in trial order; no search space is needed.

        ``origin`` is an `Origin`, ``error`` a `Cause` or None.

        Trials stored ahead of an unfinished one are left out: they count when their turn comes.
        """
        cursor = self._database.execute("SELECT * FROM trials ORDER BY number")
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
        rows = [row for position, row in enumerate(rows) if row["number"] == position]
        for row in rows:
            row["configuration"] = json.loads(row["configuration"])
            row["origin"] = Origin.parse(row["origin"])
            row["error"] = _cause(row)
            row["fold_losses"] = json.loads(row["fold_losses"])
        return rows

    def _read_predictions(self, row: sqlite3.Row) -> Any:
        path = self.predictions_path(row["number"])
        try:
            if zlib.crc32(path.read_bytes()) != row["predictions_crc"]:
                raise ValueError("its checksum differs from the one stored with the trial")
            return self._open_predictions(path)
        except (OSError, ValueError, EOFError) as error:
            text = f"cannot be used: {error}. Restore it from a copy, or start a new run in another directory."
            raise CorruptStoreError(path, text) from error

    def _open_predictions(self, path: Path) -> NDArray[np.float32]:
        """Read predictions into memory, or map them beyond the limit: each mapped file keeps a descriptor open."""
        size = path.stat().st_size
        mapped = self._held_bytes + size > _HELD_BYTES
        self._held_bytes += 0 if mapped else size
        array: NDArray[np.float32] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
        array.flags.writeable = False
        return array

    def prune_members(self, keep: Collection[int], *, limit_mib: float, losses: dict[int, float]) -> list[int]:
        """Delete models, worst loss first, until `members/` is under its limit; never those in `keep`.

        Returns
        -------
        list of int
            Numbers of the trials whose models were deleted; they can no longer enter an ensemble.
        """
        sizes = {int(path.stem): path.stat().st_size for path in (self.folder / "members").glob("[0-9]*.skops")}
        excess = sum(sizes.values()) - limit_mib * 2**20
        deleted: list[int] = []
        for number in sorted(sizes.keys() - set(keep), key=lambda n: -losses.get(n, np.inf)):
            if excess <= 0:
                break
            self.member_path(number).unlink()
            excess -= sizes[number]
            deleted.append(number)
        return deleted

    # ------------------------------------------------------------ facts

    def set_fact(self, name: str, value: object) -> None:
        """Store a small JSON value under one of the names of `RunFacts`."""
        if name not in FACT_NAMES:
            raise UnknownNameError("fact", name, FACT_NAMES)
        self._database.execute("INSERT OR REPLACE INTO facts VALUES (?,?)", (name, json.dumps(value)))

    def facts(self) -> RunFacts:
        """Return all stored facts."""
        rows: list[tuple[str, str]] = []
        with contextlib.suppress(sqlite3.OperationalError):  # an empty file, opened for reading
            rows = self._database.execute("SELECT name, value FROM facts").fetchall()
        return RunFacts.from_stored({name: json.loads(value) for name, value in rows})


def _cause(row: sqlite3.Row | dict[str, Any]) -> Cause | None:
    return None if row["error"] is None else Cause.parse(row["error"])


def plain_values(configuration: Configuration) -> dict[str, Any]:
    """Return the active values as plain Python objects, sorted by name."""
    return {
        name: value.item() if isinstance(value, np.generic) else value for name, value in sorted(configuration.items())
    }
