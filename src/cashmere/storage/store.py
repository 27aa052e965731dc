"""The durable memory of a study: one SQLite row per finished trial, arrays and models in separate files."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import json
import os
import re
import sqlite3
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from numpy.typing import NDArray

from cashmere.base.array_files import array_of, map_array
from cashmere.base.files import (
    check_only_name,
    is_regular,
    open_regular,
    own_folder,
    reason,
    remove_leftovers,
    write_atomically,
)
from cashmere.exceptions import CorruptStoreError, RunDirectoryError, UnknownNameError
from cashmere.model.member_signature import member_signature_path, sign_member
from cashmere.records.trial import Observation, Outcome, Trial
from cashmere.storage.database import copy_database, failures_explained, open_for_writing, read, remove
from cashmere.storage.directory import FILES, RESTORE, check_new, check_sub_folders, read_run_json
from cashmere.storage.epochs import (
    FIRST,
    database_path,
    databases,
    files_before,
    lease_path,
    present_database,
    trial_stem,
)
from cashmere.storage.facts import FACT_NAMES, RunFacts, read_facts
from cashmere.storage.lease import LEASE_SECONDS, Lease
from cashmere.storage.stored_trials import read_epochs, read_trials
from cashmere.storage.write_failures import write_failures_explained

_HELD_BYTES = 2**30
"""Limit of the predictions kept in memory: those of 6500 trials on 20000 rows with two classes."""

_WRITERS = 8
"""Maximum number of outcomes whose files are written at the same time."""


class RunStore:
    """The files of one run directory that change while a study runs.

    Arrays are written first, then the row that names them; rows are committed with ``synchronous=FULL`` in WAL mode.
    So a kill at any instant leaves every finished trial readable, and at worst a file without a row, which is
    overwritten when the trial runs again. Only one process may hold a store open for writing, see
    `cashmere.storage.lease`; one that was replaced meanwhile can no longer store anything.

    Parameters
    ----------
    folder : path
        The run directory; created if missing.
    read_only : bool
        Read what is there now, without the lease and without writing anything; `add` is then not possible.
    new : bool
        Begin a run in a folder that is empty, or holds only the remains of a run that was killed before it began.
    lease_seconds : float
        How long this process may be silent before another may take over.

    Attributes
    ----------
    trained_now : set of int
        The trials whose models were stored through this object.

    Raises
    ------
    RunLockedError
        If another process works in the directory.
    RunDirectoryError
        If a file or sub-folder is a link, or cannot be opened.
    CorruptStoreError
        If the database is damaged, missing, of a newer version or of another run.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        read_only: bool = False,
        new: bool = False,
        lease_seconds: float | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._lease: Lease | None = None
        self._held_bytes = 0
        self.trained_now: set[int] = set()
        check_sub_folders(self.folder)
        if read_only:
            self._rows, self._facts, self._epochs = read(self.folder, _all_of)
            self._path = present_database(self.folder)
            self._check_identity()
            return
        self._lease = self._take_lease(LEASE_SECONDS if lease_seconds is None else lease_seconds)
        try:
            self._path = database_path(self.folder, self._lease.epoch)
            self._opened = self.folder.stat()
            if new:
                check_new(self.folder)  # again, now that no other process can begin a run here
                for path in databases(self.folder).values():
                    remove(path)
            # Leave those of the report, which is written without the lease.
            remove_leftovers(self.folder, of={*FILES, self._path.name, lease_path(self.folder, self._lease.epoch).name})
            remove_leftovers(self.folder / "predictions")
            remove_leftovers(self.folder / "members")
            self._leave_earlier_epochs()
            self._database = open_for_writing(self._path, must_exist=(self.folder / "run.json").exists())
            try:
                self._check_identity()
                with failures_explained(self._path):
                    self._epochs = read_epochs(self._database)
            except BaseException:
                self._database.close()
                raise
        except BaseException:
            self._lease.release()
            raise

    def _take_lease(self, seconds: float) -> Lease:
        try:
            for name in ("predictions", "members", "logs"):
                own_folder(self.folder / name)
            for each in (self.folder / "logs").iterdir():
                with contextlib.suppress(FileNotFoundError):
                    check_only_name(each)
            return Lease.take(self.folder, seconds=seconds)
        except OSError as error:
            text = f"cannot be used ({reason(error)}). Give this user the right to write, or choose another directory."
            raise RunDirectoryError(error.filename or self.folder, text) from error

    def _leave_earlier_epochs(self) -> None:
        """Copy the database of the previous epoch if this one has none yet; remove the files of earlier epochs."""
        assert self._lease is not None
        earlier = {n: path for n, path in databases(self.folder).items() if n < self._lease.epoch}
        if earlier and not self._path.exists():
            copy_database(earlier[max(earlier)], self._path)
        for path in files_before(self.folder, self._lease.epoch):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _check_identity(self) -> None:
        """Raise if the database is not the one with which the run began."""
        if not (self.folder / "run.json").exists():
            return
        expected, found = read_run_json(self.folder).get("store"), self.facts().store
        if expected is not None and found != expected:
            text = "has been emptied" if found is None else "belongs to another run"
            raise CorruptStoreError(self._path, f"{text}: it is not the one with which this run began. {RESTORE}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and release the lease."""
        if self._lease is not None:
            self._database.close()
            self._lease.release()

    def check_lease(self) -> None:
        """Raise if another process has taken over the store.

        Raises
        ------
        LeaseLostError
            If one has; the error names it.
        RunDirectoryError
            If the directory was moved.
        """
        self._check_place()
        if self._lease is not None:
            with write_failures_explained(self.folder):
                self._lease.check()

    @contextlib.contextmanager
    def closed_to_remove(self) -> Iterator[None]:
        """Close the store while the block removes the directory, where no other process can begin meanwhile.

        Raises
        ------
        LeaseLostError
            If one has already done so.
        """
        try:
            if self._lease is not None:
                self._lease.end_directory()
                self._database.close()
            yield
        finally:
            self.close()

    # ------------------------------------------------------------ trials

    def predictions_path(self, number: int, n_splits: int = 1) -> Path:
        """Return the path of a trial's predictions, the mean over `n_splits` splits of the rows."""
        return self._predictions_path(number, n_splits, self._epoch_of(number, n_splits))

    def _predictions_path(self, number: int, n_splits: int, epoch: int) -> Path:
        return self.folder / "predictions" / f"{trial_stem(number, n_splits, epoch)}.npy"

    @functools.cached_property
    def identity(self) -> str:
        """Name of the store, which tells the files of one run from another's; "" in runs of early versions."""
        return self.facts().store or ""

    @property
    def baseline_path(self) -> Path:
        """Path of the constant predictor."""
        return self.folder / "members" / "baseline.skops"

    def member_path(self, number: int, n_splits: int = 1) -> Path:
        """Return the path of a trial's models, fitted on `n_splits` splits of the rows."""
        return self._member_path(number, n_splits, self._epoch_of(number, n_splits))

    def _member_path(self, number: int, n_splits: int, epoch: int) -> Path:
        return self.folder / "members" / f"{trial_stem(number, n_splits, epoch)}.skops"

    def _epoch_of(self, number: int, n_splits: int) -> int:
        """Return the epoch in which a trial, or its fit on `n_splits` splits, was stored."""
        if n_splits == 1:
            return self._epochs.get(number, FIRST)
        fact = (self.facts().splits or {}).get(str(number))
        return FIRST if fact is None else fact.get("epoch", FIRST)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[int]:
        """Write in the present epoch, which is given to the block; raise if another process has taken over.

        If the directory was taken over in the middle, some of the write may count; its files are complete all the same.
        """
        assert self._lease is not None
        self.check_lease()
        try:
            yield self._lease.epoch
        except Exception:
            self.check_lease()  # its files may have been removed
            raise
        self.check_lease()

    def add(self, finished: Sequence[tuple[Trial, Outcome]], *, finished_at: float) -> list[Observation]:
        """Store finished trials durably and return their observations, in the same order.

        Several are stored in one transaction, and their files are written at the same time: most of the time is spent
        waiting for the disk, hardly longer for many files than for one.

        Parameters
        ----------
        finished : sequence of (Trial, Outcome)
            Either all of them are stored, or none.
        finished_at : float
            Seconds since the study began.

        Raises
        ------
        RunDirectoryError
            If they cannot be written: disk full, no permission, directory moved.
        LeaseLostError
            If another process has taken over.
        """
        with self._writing() as epoch:
            return self._add(finished, finished_at=finished_at, epoch=epoch)

    def _add(self, finished: Sequence[tuple[Trial, Outcome]], *, finished_at: float, epoch: int) -> list[Observation]:
        def write(trial: Trial, outcome: Outcome) -> int | None:
            if outcome.model is not None:
                write_atomically(self._member_path(trial.number, 1, epoch), outcome.model)
            if outcome.predictions is None:
                return None
            return _write_predictions(self._predictions_path(trial.number, 1, epoch), outcome.predictions)

        observations = []
        with write_failures_explained(self.folder):
            with ThreadPoolExecutor(_WRITERS) as writers:
                checksums = list(writers.map(write, *zip(*finished, strict=True)))
            for (trial, outcome), crc in zip(finished, checksums, strict=True):
                predictions = None
                if crc is not None:
                    predictions = self._read_predictions(self._predictions_path(trial.number, 1, epoch), crc)
                if outcome.model is not None:
                    sign_member(self._member_path(trial.number, 1, epoch), outcome.model, run=self.identity)
                    self.trained_now.add(trial.number)
                kept = replace(outcome, predictions=predictions, model=None)
                observations.append(Observation(trial=trial, outcome=kept, finished_at=finished_at))
        with failures_explained(self._path), self._transaction():
            for (trial, outcome), crc in zip(finished, checksums, strict=True):
                self._insert(trial, outcome, crc=crc, finished_at=finished_at, epoch=epoch)
        self._epochs |= {} if epoch == FIRST else {trial.number: epoch for trial, _ in finished}
        return observations

    def _insert(self, trial: Trial, outcome: Outcome, *, crc: int | None, finished_at: float, epoch: int) -> None:
        """Insert the rows of a trial, within a transaction."""
        values = (
            trial.number,
            json.dumps(plain_values(trial.configuration)),
            trial.seed,
            trial.origin.to_json(),
            trial.fidelity,
            outcome.status.value,
            None if outcome.loss is None else float(outcome.loss),
            _json_list(outcome.fold_losses),
            float(outcome.duration_seconds),
            float(outcome.fit_seconds),
            float(outcome.predict_seconds),
            None if outcome.memory_mib is None else float(outcome.memory_mib),
            None if outcome.error is None else outcome.error.to_json(),
            finished_at,
            crc,
            None if outcome.model is None else len(outcome.model),
        )
        self._database.execute("INSERT INTO trials VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", values)
        if outcome.path is not None or outcome.cut_short is not None:
            row = (trial.number, *_path_values(outcome))
            self._database.execute("INSERT INTO paths VALUES (?,?,?,?,?,?)", row)
        if (added := outcome.features) is not None:
            cost = (trial.number, added.columns, float(added.seconds))
            self._database.execute("INSERT INTO features VALUES (?,?,?)", cost)
        if epoch != FIRST:
            self._database.execute("INSERT INTO epochs VALUES (?,?)", (trial.number, epoch))

    def add_split(
        self, number: int, n_splits: int, *, models: bytes, predictions: NDArray[np.float32], on_all_rows: bool = False
    ) -> None:
        """Store the models and predictions of a trial that was fitted on one more split of the rows.

        Parameters
        ----------
        number : int
            Number of the trial.
        n_splits : int
            How many splits it was fitted on.
        models : bytes
            Its models on all splits.
        predictions : array
            The mean of its predictions.
        on_all_rows : bool
            Whether the fits after the first split are fits on all rows.

        Raises
        ------
        RunDirectoryError
            If they cannot be written.
        LeaseLostError
            If another process has taken over.
        """
        before = self.member_path(number, n_splits - 1), self.predictions_path(number, n_splits - 1)
        with self._writing() as epoch:
            path = self._member_path(number, n_splits, epoch)
            with write_failures_explained(self.folder):
                crc = _write_predictions(self._predictions_path(number, n_splits, epoch), predictions)
                write_atomically(path, models)
                sign_member(path, models, run=self.identity)
            # Only now do they count: a file without a fact is overwritten.
            fact = {"count": n_splits, "predictions_crc": crc} | ({"all_rows": True} if on_all_rows else {})
            fact |= {} if epoch == FIRST else {"epoch": epoch}
            self.set_fact("splits", {**(self.facts().splits or {}), str(number): fact})
        if n_splits > 2:
            for each in (*before, member_signature_path(before[0])):
                each.unlink(missing_ok=True)

    def splits(self) -> dict[int, tuple[int, NDArray[np.float32]]]:
        """Return the number of splits and the predictions of trials fitted on several, as far as their files exist.

        Raises
        ------
        CorruptStoreError
            If predictions are damaged.
        """
        found = {}
        for text, fact in (self.facts().splits or {}).items():
            number, n_splits = int(text), fact["count"]
            path = self.predictions_path(number, n_splits)
            if is_regular(path) and is_regular(self.member_path(number, n_splits)):
                found[number] = (n_splits, self._read_predictions(path, fact["predictions_crc"]))
        return found

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # some failures have already ended the transaction
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def _check_place(self) -> None:
        """Raise if the directory was moved: trials that failed because of that must not be stored."""
        with write_failures_explained(self.folder):
            if not os.path.samestat(self.folder.stat(), self._opened):
                raise FileNotFoundError(errno.ENOENT, "another directory has taken its place", str(self.folder))

    def load(self, space: ConfigurationSpace) -> dict[int, Observation]:
        """Return all stored observations by trial number.

        Raises
        ------
        CorruptStoreError
            If a row cannot be read in this space, or a prediction file is missing or damaged.
        """
        return {o.trial.number: o for o in self._load(space)}

    def _load(self, space: ConfigurationSpace) -> Iterator[Observation]:
        shape: tuple[int, ...] | None = None
        for row in self._all_rows():
            number, crc = row["number"], row["predictions_crc"]
            try:
                configuration = Configuration(space, values=row["configuration"])
            except Exception as error:
                why = " ".join(str(error).split())
                text = (
                    f"trial {number} holds a configuration that does not fit the search space {space.name!r} of this "
                    f"version ({why}). A run can only continue in the space it was made with. Use the version of "
                    "cashmere that run.json names, or start a new run in another directory."
                )
                raise CorruptStoreError(self._path, text) from error
            predictions = None if crc is None else self._read_predictions(self.predictions_path(number), crc)
            if predictions is not None and shape not in (None, predictions.shape):
                text = f"has the shape {predictions.shape}, but other trials have {shape}. {RESTORE}"
                raise CorruptStoreError(self.predictions_path(number), text)
            shape = shape if predictions is None else predictions.shape
            yield Observation(
                trial=Trial(
                    number=number,
                    configuration=configuration,
                    seed=row["seed"],
                    origin=row["origin"],
                    fidelity=row["fidelity"],
                ),
                outcome=Outcome(
                    status=row["status"],
                    loss=row["loss"],
                    fold_losses=tuple(row["fold_losses"]),
                    predictions=predictions,
                    duration_seconds=row["duration_seconds"],
                    fit_seconds=row["fit_seconds"],
                    predict_seconds=row["predict_seconds"],
                    memory_mib=row["memory_mib"],
                    error=row["error"],
                    path=row["path"],
                    cut_short=row["cut_short"],
                    features=row["features"],
                ),
                finished_at=row["finished_at"],
            )

    def rows(self) -> list[dict[str, Any]]:
        """Return the committed trials as dictionaries, in trial order; no search space is needed.

        ``origin`` is an `Origin`, ``error`` a `Cause` or None.

        Trials stored ahead of an unfinished one are left out until their turn comes.
        """
        return [row for position, row in enumerate(self._all_rows()) if row["number"] == position]

    @property
    def n_stored(self) -> int:
        """Number of stored trials, including those ahead of an unfinished one."""
        return len(self._all_rows())

    def _all_rows(self) -> list[dict[str, Any]]:
        if self._lease is None:
            return self._rows
        with failures_explained(self._path):
            return read_trials(self._database)

    def _read_predictions(self, path: Path, crc: int) -> NDArray[np.float32]:
        """Read predictions into memory; beyond the limit, map them, which keeps a descriptor open for each file."""
        try:
            with open_regular(path) as file:
                content = file.read()
                if zlib.crc32(content) != crc:
                    raise ValueError("its checksum differs from the one stored with the trial")
                is_held = self._held_bytes + len(content) <= _HELD_BYTES
                array = array_of(content) if is_held else map_array(file)
                if array.dtype.kind != "f" or array.ndim not in (1, 2):
                    raise ValueError(f"it holds an array of the type {array.dtype} and the shape {array.shape}")
        except Exception as error:
            text = f"cannot be used ({reason(error)}). {RESTORE}"
            raise CorruptStoreError(path, text) from error
        self._held_bytes += len(content) if is_held else 0
        array.flags.writeable = False
        return array

    def member_sizes(self) -> dict[int, int]:
        """Return the sizes of the models on disk, in bytes, by trial number."""
        names = [path.name for path in (self.folder / "members").iterdir()]
        numbers = {int(match[1]) for name in names if (match := re.fullmatch(r"(\d{6,9})(?:e\d+)?\.skops", name))}
        paths = {number: self.member_path(number) for number in sorted(numbers)}
        return {number: path.stat().st_size for number, path in paths.items() if is_regular(path)}

    def prune_members(self, keep: Collection[int], *, limit_mib: float, losses: dict[int, float]) -> list[int]:
        """Delete models, worst loss first, until `members/` is under its limit; keep those in `keep`.

        Returns
        -------
        list of int
            Numbers of the trials whose models were deleted; they can no longer enter an ensemble.

        Raises
        ------
        LeaseLostError
            If another process has taken over.
        """
        self.check_lease()
        sizes = self.member_sizes()
        excess = sum(sizes.values()) - limit_mib * 2**20
        deleted: list[int] = []
        for number in sorted(sizes.keys() - set(keep), key=lambda n: -losses.get(n, np.inf)):
            if excess <= 0:
                break
            self.member_path(number).unlink()
            member_signature_path(self.member_path(number)).unlink(missing_ok=True)
            excess -= sizes[number]
            deleted.append(number)
        return deleted

    # ------------------------------------------------------------ facts

    def set_fact(self, name: str, value: object) -> None:
        """Store a small JSON value under one of the names of `RunFacts`."""
        self.set_facts({name: value})

    def set_facts(self, facts: Mapping[str, object]) -> None:
        """Store several facts at once: all or none."""
        if unknown := facts.keys() - set(FACT_NAMES):
            raise UnknownNameError("fact", min(unknown), FACT_NAMES)
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        with self._writing(), failures_explained(self._path), self._database:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO facts VALUES (?,?)", rows)

    def facts(self) -> RunFacts:
        """Return all stored facts."""
        if self._lease is None:
            return self._facts
        with failures_explained(self._path):
            return read_facts(self._database)


def _all_of(database: sqlite3.Connection) -> tuple[list[dict[str, Any]], RunFacts, dict[int, int]]:
    return read_trials(database), read_facts(database), read_epochs(database)


def _write_predictions(path: Path, predictions: NDArray[np.float32]) -> int:
    """Write an array and return its checksum."""
    buffer = io.BytesIO()
    np.save(buffer, predictions, allow_pickle=False)
    write_atomically(path, buffer.getvalue())
    return zlib.crc32(buffer.getvalue())


def _path_values(outcome: Outcome) -> tuple[Any, ...]:
    """Return the columns of the table ``paths`` after the number."""
    cut_short = None if outcome.cut_short is None else outcome.cut_short.to_json()
    if (path := outcome.path) is None:
        return (None, None, None, None, cut_short)
    return (path.parameter, _json_list(path.positions), _json_list(path.losses), float(path.chosen), cut_short)


def _json_list(numbers: Sequence[float]) -> str:
    """Return numbers as JSON; custom objectives may pass those of NumPy, which neither JSON nor SQLite knows."""
    return json.dumps([float(number) for number in numbers])


def plain_values(configuration: Configuration) -> dict[str, Any]:
    """Return the active values as plain Python objects, sorted by name."""
    return {
        name: value.item() if isinstance(value, np.generic) else value for name, value in sorted(configuration.items())
    }
