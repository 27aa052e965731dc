"""Evaluate the same configurations on many tables, once, for everything that learns from other tables.

Work in progress lies in a folder: ``configurations.json``, and per table ``<name>.jsonl`` with the settings in its
first line and one line per evaluation. A collection that was stopped or killed goes on from there.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.util import generate_grid
from filelock import FileLock, Timeout

from cashmere.arrays import AnyArray, IntArray
from cashmere.data.frames import to_frame
from cashmere.data.prepared import prepare_folds
from cashmere.data.reading import read_table
from cashmere.data.resampling import Fold
from cashmere.data.rows import canonical_rows
from cashmere.data.schema import infer_schema
from cashmere.data.target import TargetCoding
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.limits import Limits
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.exceptions import (
    CorruptStoreError,
    DataError,
    InconsistentResumeError,
    InvalidParameterError,
    RunDirectoryError,
    RunLockedError,
    UnknownNameError,
)
from cashmere.executors import WorkerProcessExecutor, run_trial
from cashmere.leaderboard import read_description, stored_metric
from cashmere.metalearning.observations import SourceObservations, SourceTable
from cashmere.predictor import versions
from cashmere.space.restriction import lift, restrict
from cashmere.space.space import ALGORITHM, Space
from cashmere.space.spaces import SpaceFactory, make_space
from cashmere.store import RunStore, plain_values, write_atomically
from cashmere.trial import Outcome, Trial, TrialStatus

METRIC = "accuracy"
OTHER_METRIC = "log_loss"

TRAINING_SHARE = 0.7
WALL_FACTOR = 20.0
"""Wall seconds after which an evaluation is stopped that does not compute, per CPU second of its limit.

Large, so that the losses do not depend on what else a busy machine has to do.
"""

_FORMAT = "cashmere source evaluations"
_VERSION = 1
_BATCH = 25
_BATCH_SECONDS = 0.5
"""A worker begins no further evaluation of a batch after this time: what a kill can lose, and what it costs to send
work back and forth (50 ms), both stay small beside it."""

_MEMORY_MIB = 4096.0
_REPORT_SECONDS = 30.0
_REFERENCE = TaskProfile(task_type=TaskType.MULTICLASS, n_rows=700, n_columns=20, n_classes=3)
"""Task for which configurations are drawn. Numeric columns only: no choice among encodings is drawn then, and all
tables get the default encoding."""

_NOT_OFFERED = "not offered"
"""Status of a configuration that the space does not have for a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A table in a file.

    Attributes
    ----------
    name : str
        What it is called in results and in the folder of work.
    path : Path
        What `cashmere.data.reading.read_table` reads.
    origin : str
        Tables with the same origin share raw data.
    task_type : TaskType or None
        Kind of target, where known.
    target : str
        Name of the column to predict.
    """

    name: str
    path: Path
    origin: str
    task_type: TaskType | None = None
    target: str = "target"

    def read(self) -> tuple[pd.DataFrame, AnyArray]:
        """Return features and labels.

        Raises
        ------
        DataError
            If the file cannot be read, has no such column or nothing beside it, or is no classification.
        """
        frame = read_table(self.path)
        if self.target not in frame.columns:
            columns = ", ".join(map(str, frame.columns[:10]))
            raise DataError(f"{self.path} has no column {self.target!r} to predict. It holds {columns}.")
        labels = frame.pop(self.target).to_numpy()
        if frame.shape[1] == 0:
            raise DataError(f"{self.path} has no column beside the target {self.target!r}.")
        coding = TargetCoding.from_target(labels, None if self.task_type is None else "classification")
        if not coding.task_type.is_classification:
            raise DataError(f"{self.path} is a regression; expected classes in column {self.target!r}.")
        return to_frame(frame), labels


def find_tables(folder: str | Path, *, group: str | None = None, target: str = "target") -> list[SourceFile]:
    """Return the tables of a folder.

    Parameters
    ----------
    folder : path
        With a ``manifest.json``, a list of objects with ``name``, ``file`` and, where wanted, ``task``, ``origin`` and
        ``group`` (a text or a list of texts), its tables in that order; without, all files that `read_table` knows, by
        name. A table without origin is its own.
    group : str, optional
        Only the tables of this group of the manifest.
    target : str
        Name of the column to predict in every table.

    Raises
    ------
    DataError
        If the folder or the manifest cannot be used, or no table is left.
    """
    folder = Path(folder)
    manifest = folder / "manifest.json"
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder. Expected one with tables.")
    if manifest.exists():
        found = _from_manifest(manifest, group, target)
    elif group is not None:
        raise DataError(f"{folder} has no manifest.json that says which tables belong to the group {group!r}.")
    else:
        paths = sorted(p for p in folder.iterdir() if re.search(r"\.(csv|tsv|arff)(\.gz)?$|\.(parquet|pq)$", p.name))
        names = [path.name.partition(".")[0] for path in paths]
        found = [
            SourceFile(name=n, path=p, origin=n, target=target) for n, p in zip(names, paths, strict=True)
        ]  # fmt: skip
    if not found:
        raise DataError(f"{folder} holds no table{'' if group is None else f' of the group {group!r}'}.")
    names = [table.name for table in found]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"{folder}: several tables are called {', '.join(repeated)}. Give them different names.")
    return found


def _from_manifest(path: Path, group: str | None, target: str) -> list[SourceFile]:
    found = []
    groups: set[str] = set()
    try:
        for entry in json.loads(path.read_text(encoding="utf-8")):
            belongs = entry.get("group") or ()
            own = {belongs} if isinstance(belongs, str) else set(belongs)
            groups |= own
            if group is not None and group not in own:
                continue
            name = str(entry["name"])
            if not re.fullmatch(r"\w[\w .,+()-]*", name):
                raise ValueError(f"the name {name!r} cannot be the name of a file")
            task = entry.get("task")
            found.append(
                SourceFile(
                    name=name,
                    path=path.parent / entry["file"],
                    origin=str(entry.get("origin") or name),
                    task_type=None if task is None else TaskType(task),
                    target=target,
                )
            )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise DataError(f"{path} is no list of tables with name, file, task, origin and group ({problem}).") from error
    if group is not None and group not in groups:
        raise UnknownNameError("group", group, groups)
    return found


# ---------------------------------------------------------------- what is evaluated


def draw_configurations(space: Space, n_per_algorithm: int, seed: int) -> list[dict[str, Any]]:
    """Draw configurations of every algorithm of a space.

    Parameters
    ----------
    space : Space
        Its algorithms are drawn from one after the other.
    n_per_algorithm : int
        Distinct configurations of each; an algorithm that has no more than these is listed completely.
    seed : int
        Of the draws; the draws of an algorithm depend on its name and sub-space only.

    Returns
    -------
    list of dict
        Active values by name of the hyper-parameter, in the order of the algorithms; of each the default
        configuration comes first.
    """
    drawn: list[dict[str, Any]] = []
    for default in space.default_configurations():
        name = default[ALGORITHM]
        part = restrict(space.configuration_space, {ALGORITHM: [name]})
        found = {_key(values): values for values in [plain_values(default)]}
        for configuration in _candidates(part, n_per_algorithm, _seed_of(seed, name)):
            if len(found) == n_per_algorithm:
                break
            values = plain_values(lift(configuration, space.configuration_space))
            found.setdefault(_key(values), values)
        drawn += found.values()
    return drawn


def _candidates(part: ConfigurationSpace, n: int, seed: int) -> Iterator[Configuration]:
    """Yield all configurations of a small space in random order, else random ones, some of them equal."""
    most = part.estimate_size()  # an upper bound where there are conditions
    if most <= 100 * n:
        steps = {name: int(hp.size) for name, hp in part.items() if np.isfinite(hp.size)}
        grid = sorted(generate_grid(part, steps), key=lambda configuration: _key(plain_values(configuration)))
        order: Sequence[int] = np.random.default_rng(seed).permutation(len(grid)).tolist()
        yield from (grid[i] for i in order)
        return
    part.seed(seed)
    for _ in range(100):
        yield from part.sample_configuration(max(2, n))


def _key(values: Mapping[str, Any]) -> str:
    return json.dumps(dict(values), sort_keys=True)


def _seed_of(seed: int, *parts: str | int) -> int:
    """Return a seed in [0, 2**31) that belongs to texts and numbers."""
    words = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in parts]
    return int(np.random.SeedSequence([seed, *words]).generate_state(1)[0]) % 2**31


def draw_rows(labels: AnyArray, n_rows: int, seed: int) -> IntArray:
    """Draw rows with all classes in proportion; fewer than asked for only where the table has no more.

    A class of which a table has a single row is left out where rows are drawn.

    Parameters
    ----------
    labels : (n,) array
        Classes.
    n_rows : int
        How many are wanted.
    seed : int
        Of the draw.

    Returns
    -------
    (min(n, n_rows),) int array
        Ascending row numbers.
    """
    rows = np.arange(len(labels))
    return rows if len(rows) <= n_rows else _cut(rows, labels, n_rows, seed)[1]


def holdout(y: IntArray, seed: int) -> Fold:
    """Return 70 % of the rows, rounded down, to train on, the others to validate; all classes in proportion.

    A class with a single row trains. With fewer validation rows than classes the cut is random.

    References
    ----------
    spec/latent.md 5.8, recovered from Table 2 of the paper.
    """
    return Fold(*_cut(np.arange(len(y)), y, len(y) - int(TRAINING_SHARE * len(y)), seed))


def _cut(rows: IntArray, labels: AnyArray, n_other: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the rows without `n_other` drawn ones, and these, both ascending."""
    from sklearn.model_selection import train_test_split

    classes, counts = np.unique(labels[rows], return_counts=True)
    is_lone = np.isin(labels[rows], classes[counts == 1])
    lone, common = rows[is_lone], rows[~is_lone]
    if min(n_other, len(common) - n_other) < max(1, int(np.sum(counts > 1))):
        mixed = np.random.default_rng(seed).permutation(rows)
        return np.sort(mixed[n_other:]), np.sort(mixed[:n_other])
    kept, other = train_test_split(common, test_size=n_other, random_state=seed, stratify=labels[common])
    return np.sort(np.concatenate([kept, lone])), np.sort(other)


# ---------------------------------------------------------------- inside the workers


class _OverLimitError(BaseException):
    """Raised inside a learner by the clock; no ``except Exception`` of a library holds it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchObjective:
    """Evaluates several trials in one call of a worker; their results stand in a file, one line each.

    Whatever ends the worker, the finished lines stay, and the first trial without a line is the one to blame.

    Attributes
    ----------
    objective : CrossValidationObjective
        Evaluates a single trial by `METRIC`.
    trials : tuple of Trial
        Evaluated in this order, until the batch has taken half a second; the others may be sent again.
    y : (n_validation,) array
        Class codes of the validation rows.
    limit_seconds : float
        CPU seconds of one evaluation; wall time where the system has no such clock.
    results : Path
        The file.
    """

    objective: CrossValidationObjective
    trials: tuple[Trial, ...]
    y: AnyArray
    limit_seconds: float
    results: Path

    def __call__(self, trial: Trial) -> Outcome:
        """Evaluate the batch; `trial` is of no interest, and the outcome says only that the worker is alive."""
        end = time.perf_counter() + _BATCH_SECONDS
        with self.results.open("a", encoding="utf-8") as file:
            for each in self.trials:
                file.write(json.dumps(self._evaluate(each)) + "\n")
                file.flush()
                if time.perf_counter() > end:
                    break
        return Outcome(status=TrialStatus.SUCCESS, loss=0.0)

    def _evaluate(self, trial: Trial) -> dict[str, Any]:
        start = time.process_time()
        try:
            _limit_cpu_time(self.limit_seconds)
            outcome = run_trial(self.objective, trial)
        except _OverLimitError:
            outcome = Outcome(status=TrialStatus.TIMEOUT)
        finally:
            _limit_cpu_time(0.0)
        seconds = time.process_time() - start
        if seconds > self.limit_seconds:
            outcome = Outcome(status=TrialStatus.TIMEOUT)
        if outcome.status is not TrialStatus.SUCCESS:
            return _failure(trial.number, outcome, min(seconds, self.limit_seconds))
        other = get_metric(OTHER_METRIC, self.objective.metric.task_types[0])
        return {
            "number": trial.number,
            "status": outcome.status.value,
            "loss": outcome.loss,
            OTHER_METRIC: other.loss(self.y, np.asarray(outcome.predictions)),
            "seconds": round(seconds, 4),
        }


def _limit_cpu_time(seconds: float) -> None:
    """Interrupt this process after so many CPU seconds, and end it one later if that has not helped; 0: do neither.

    The interruption is a Python exception and spares the worker, but native code does not hear it; the second signal
    needs no interpreter: nobody handles it, so it ends the process.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGPROF, _raise_over_limit)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds + 1 if seconds else 0.0)


def _raise_over_limit(number: int, frame: object) -> None:
    raise _OverLimitError


def _failure(number: int, outcome: Outcome, seconds: float) -> dict[str, Any]:
    record = {"number": number, "status": outcome.status.value, "seconds": round(seconds, 4)}
    lines = (outcome.error or "").strip().splitlines()
    return {**record, "error": lines[0][:300]} if lines else record


# ---------------------------------------------------------------- the work on one table


class _Journal:
    """The file of one table: settings in the first line, then a line per evaluation."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.records: dict[int, dict[str, Any]] = {}
        found = _read_journal(path)
        if found is None:
            path.write_text(json.dumps({"format": _FORMAT, "version": _VERSION, **header}) + "\n", encoding="utf-8")
            return
        begun, self.records, length = found
        _check_same(path, begun["settings"], header["settings"])
        with path.open("r+b") as file:
            file.truncate(length)  # what a kill left of a line

    def add(self, records: Iterable[dict[str, Any]]) -> None:
        """Write records and remember them."""
        records = list(records)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        self.records |= {record["number"]: record for record in records}


def _read_journal(path: Path) -> tuple[dict[str, Any], dict[int, dict[str, Any]], int] | None:
    """Return header, records and the length of what is whole; None if there is not even a header.

    Raises
    ------
    CorruptStoreError
        If the file is foreign, of a newer version, or damaged before its last line.
    """
    if not path.exists():
        return None
    content = path.read_bytes()
    content = content[: content.rfind(b"\n") + 1]
    if not content:
        return None
    try:
        header, *records = [json.loads(line) for line in content.splitlines()]
        if header["format"] != _FORMAT or header["version"] > _VERSION:
            raise ValueError(f"expected {_FORMAT!r}, version {_VERSION} at most")
        return header, {record["number"]: record for record in records}, len(content)
    except (ValueError, KeyError, TypeError) as error:
        text = f"is damaged or foreign ({type(error).__name__}: {error}). Delete it to evaluate this table again."
        raise CorruptStoreError(path, text) from error


def _check_same(path: Path, begun: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    differing = [name for name in asked if begun.get(name) != asked[name]]
    if differing:
        before = ", ".join(f"{name}={begun.get(name)!r}" for name in differing)
        now = ", ".join(f"{name}={asked[name]!r}" for name in differing)
        text = f"was begun with {before}, and is now asked to go on with {now}. Give the same, or another folder."
        raise InconsistentResumeError(path, text)


class _TableWork:
    """A table that is being evaluated."""

    def __init__(
        self,
        source: SourceFile,
        journal: _Journal,
        configurations: Sequence[Mapping[str, Any]],
        *,
        space: str | SpaceFactory,
        n_rows: int,
        seed: int,
        scratch: Path,
    ) -> None:
        self.journal = journal
        self.n_configurations = len(configurations)
        self.running = 0
        frame, labels = source.read()
        rows = draw_rows(labels, n_rows, _seed_of(seed, source.name, "rows"))
        target = TargetCoding.from_target(labels[rows], "classification")
        table = canonical_rows(frame.iloc[rows].reset_index(drop=True), target.encode(labels[rows]))
        schema = infer_schema(table.frame)
        fold = holdout(table.y, _seed_of(seed, source.name, "holdout"))
        profile = TaskProfile(
            task_type=target.task_type,
            n_rows=len(fold.train),
            n_columns=len(schema.used),
            n_classes=target.n_classes,
            has_categories=schema.has_categories,
        )
        made = make_space(space, profile)
        self._folder = scratch / source.name
        prepare_folds(
            self._folder, schema.code(table.frame), table.y, [fold], sorted(made.encodings),
            task_type=target.task_type, seed=seed,
        )  # fmt: skip
        metric = get_metric(METRIC, target.task_type)
        self._objective = CrossValidationObjective(folder=self._folder, space=made, metric=metric, keep_model=False)
        self._y = table.y[fold.validation]
        self._batches = deque(self._open_batches(made, configurations, seed, source.name))

    def _open_batches(
        self, space: Space, configurations: Sequence[Mapping[str, Any]], seed: int, name: str
    ) -> Iterator[tuple[Trial, ...]]:
        """Yield what is left to do; a batch has one algorithm, so that those of fast ones are long."""
        batch: list[Trial] = []
        for number, values in enumerate(configurations):
            if number in self.journal.records:
                continue
            configuration = _in_space(space, values)
            if configuration is None:
                self.journal.add([{"number": number, "status": _NOT_OFFERED, "seconds": 0.0}])
                continue
            if batch and (len(batch) == _BATCH or batch[0].configuration[ALGORITHM] != values[ALGORITHM]):
                yield tuple(batch)
                batch = []
            batch.append(Trial(number=number, configuration=configuration, seed=_seed_of(seed, name, number)))
        if batch:
            yield tuple(batch)

    def next_batch(self, results: Path, limit_seconds: float) -> BatchObjective | None:
        """Return the next batch, or None if all are done or on their way."""
        if not self._batches:
            return None
        self.running += 1
        return BatchObjective(
            objective=self._objective,
            trials=self._batches.popleft(),
            y=self._y,
            limit_seconds=limit_seconds,
            results=results,
        )

    def tell(self, batch: BatchObjective, outcome: Outcome) -> None:
        """Keep what a batch has brought; what it did not get to is done next."""
        self.running -= 1
        found = batch.results.read_bytes() if batch.results.exists() else b""
        batch.results.unlink(missing_ok=True)
        records = [json.loads(line) for line in found.splitlines(keepends=True) if line.endswith(b"\n")]
        done = {record["number"] for record in records}
        left = [trial for trial in batch.trials if trial.number not in done]
        if left and outcome.status not in (TrialStatus.SUCCESS, TrialStatus.ABORTED):
            seconds = outcome.duration_seconds
            if outcome.status is TrialStatus.ERROR and seconds >= batch.limit_seconds:
                outcome = Outcome(status=TrialStatus.TIMEOUT)  # ended by its own clock
            records.append(_failure(left.pop(0).number, outcome, min(seconds, batch.limit_seconds)))
        self.journal.add(records)
        if left:
            self._batches.appendleft(tuple(left))

    @property
    def is_finished(self) -> bool:
        """Whether every configuration has its line."""
        return len(self.journal.records) == self.n_configurations

    def close(self) -> None:
        """Delete the prepared rows."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def summary(self) -> str:
        """Return the result in a few words."""
        records = self.journal.records.values()
        failed = sum(record["status"] != TrialStatus.SUCCESS for record in records)
        seconds = sum(record["seconds"] for record in records)
        return f"{len(records)} configurations ({failed} failed), {seconds:.0f} CPU seconds"


def _in_space(space: Space, values: Mapping[str, Any]) -> Configuration | None:
    """Return the configuration with these values, other choices at their defaults; None if the space has none such."""
    try:
        return space.completed(values)
    except (UnknownNameError, ValueError):
        return None


# ---------------------------------------------------------------- the whole


def collect(
    tables: Sequence[SourceFile],
    *,
    space: str | SpaceFactory,
    n_configurations: int,
    n_rows: int,
    limit_seconds: float,
    work: Path,
    n_workers: int,
    seed: int,
    progress: Callable[[str], None] = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
) -> SourceObservations:
    """Evaluate the same configurations of a space on many classification tables.

    Each table is cut down to `n_rows` rows, of which 70 % train and the others validate; classes keep their shares.
    The loss is 1 - accuracy, and the log loss of the same predictions is kept beside it. A table that cannot be used
    is left out.

    Parameters
    ----------
    tables : sequence of SourceFile
        From `find_tables`; evaluated in this order.
    space : str or callable
        See `make_space`.
    n_configurations : int
        Of each algorithm, see `draw_configurations`.
    n_rows : int
        At most, of each table.
    limit_seconds : float
        CPU seconds of one evaluation; one that waits instead is ended after `WALL_FACTOR` times as long.
    work : Path
        Folder of work in progress. What is there already is not evaluated again.
    n_workers : int
        Worker processes of one thread each. The losses do not depend on it.
    seed : int
        Of everything random; the same table, configuration and seed give the same loss.
    progress : callable, optional
        Told a line of text for every table, and from time to time.
    stop : callable, optional
        Asked often; once it says True, what is running is given up.

    Returns
    -------
    SourceObservations
        Of the tables that are complete, in their order.

    Raises
    ------
    InconsistentResumeError
        If the folder was begun with other settings or other contents of a table; the text names them.
    CorruptStoreError
        If a file of the folder is damaged.
    RunLockedError
        If another process works in the folder.
    """
    check = {"n_configurations": n_configurations, "n_rows": n_rows, "n_workers": n_workers}
    for parameter, value in check.items():
        if value < (10 if parameter == "n_rows" else 1):
            raise InvalidParameterError(parameter, value, f"at least {10 if parameter == 'n_rows' else 1}")
    work = work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    with _locked(work):
        name, configurations = _settle_configurations(work, space, n_configurations, seed)
        settings = {
            "space": name,
            "configurations": f"{zlib.crc32(json.dumps(configurations).encode()):08x}",
            "rows": n_rows,
            "limit_seconds": limit_seconds,
            "seed": seed,
            "metric": METRIC,
        }
        scratch = work / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()

        def begin(source: SourceFile) -> _TableWork | None:
            """Return the work that is left on a table, or None if it is complete."""
            if not source.path.is_file():
                raise DataError(f"{source.path}: there is no such file.")
            content = f"{zlib.crc32(source.path.read_bytes()):08x}"
            header = {
                "table": source.name,
                "origin": source.origin,
                "settings": {**settings, "target": source.target, "content": content},
                "versions": versions(),
            }
            journal = _Journal(work / f"{source.name}.jsonl", header)
            if len(journal.records) == len(configurations):
                return None
            return _TableWork(
                source, journal, configurations, space=space, n_rows=n_rows, seed=seed, scratch=scratch
            )  # fmt: skip

        limits = Limits(seconds=WALL_FACTOR * limit_seconds + _BATCH_SECONDS, memory_mib=_MEMORY_MIB)
        executor = WorkerProcessExecutor(n_workers, limits=limits, n_threads=1)
        try:
            _work_through(tables, begin, executor, scratch, limit_seconds, progress, stop)
        finally:
            executor.shutdown()
            shutil.rmtree(scratch, ignore_errors=True)
    return read_work(work, [table.name for table in tables])


def _work_through(
    tables: Sequence[SourceFile],
    begin: Callable[[SourceFile], _TableWork | None],
    executor: WorkerProcessExecutor,
    scratch: Path,
    limit_seconds: float,
    progress: Callable[[str], None],
    stop: Callable[[], bool],
) -> None:
    """Keep the workers busy until all tables are complete; the next table begins before the last one has ended."""
    upcoming = deque(tables)
    active: list[_TableWork] = []
    running: dict[Future[Outcome], tuple[_TableWork, BatchObjective]] = {}
    start = last_report = time.monotonic()
    n_batches = n_finished = 0

    def next_batch() -> tuple[_TableWork, BatchObjective] | None:
        while not stop():
            for table in active:
                batch = table.next_batch(scratch / f"{n_batches}.jsonl", limit_seconds)
                if batch is not None:
                    return table, batch
            if not upcoming:
                return None
            source = upcoming.popleft()
            try:
                begun = begin(source)
            except DataError as error:
                progress(f"{source.name}: left out. {error}")
                continue
            if begun is not None:
                active.append(begun)
        return None

    while not stop():
        while len(running) <= executor.n_workers and (ready := next_batch()) is not None:
            n_batches += 1
            trial = ready[1].trials[0]
            running[executor.submit(ready[1], trial)] = ready
        if not running:
            return
        done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            table, batch = running.pop(future)
            table.tell(batch, future.result())
        for table in [table for table in active if table.is_finished]:
            active.remove(table)
            table.close()
            n_finished += 1
            left = (time.monotonic() - start) / n_finished * (len(upcoming) + len(active))
            progress(
                f"{table.journal.path.stem}: {table.summary()}; {len(upcoming) + len(active)} tables and "
                f"about {_clock(left)} left"
            )
            last_report = time.monotonic()
        if active and time.monotonic() - last_report > _REPORT_SECONDS:
            last_report = time.monotonic()
            progress(f"{active[0].journal.path.stem}: {active[0].summary()} up to now")
    executor.shutdown()
    for future, (table, batch) in running.items():
        if not future.cancelled():
            table.tell(batch, future.result())


def _clock(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


@contextmanager
def _locked(work: Path) -> Iterator[None]:
    lock = FileLock(work / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        text = "another process collects observations in this folder. Wait for it to end, or stop it first."
        raise RunLockedError(work, text) from None
    try:
        yield
    finally:
        lock.release()


def _settle_configurations(
    work: Path, space: str | SpaceFactory, n_configurations: int, seed: int
) -> tuple[str, list[dict[str, Any]]]:
    """Return the name of the space and the configurations that the folder was begun with, or draw them."""
    path = work / "configurations.json"
    reference = make_space(space, _REFERENCE)
    settings = {"space": reference.name, "per_algorithm": n_configurations, "seed": seed}
    if path.exists():
        stored = _read_configurations(path)
        _check_same(path, stored["settings"], settings)
        return reference.name, stored["configurations"]
    configurations = draw_configurations(reference, n_configurations, seed)
    content = {"format": _FORMAT, "version": _VERSION, "settings": settings, "configurations": configurations}
    write_atomically(path, json.dumps(content, indent=1).encode())
    return reference.name, configurations


def _read_configurations(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT or content["version"] > _VERSION:
            raise ValueError(f"expected {_FORMAT!r}, version {_VERSION} at most")
        if not {"space", "per_algorithm", "seed"} <= content["settings"].keys():
            raise ValueError("settings are missing")
        list(content["configurations"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        text = f"is missing, damaged or foreign ({type(error).__name__}: {error}). Restore it, or take another folder."
        raise CorruptStoreError(path, text) from error
    return content


def read_work(work: str | Path, names: Sequence[str] | None = None) -> SourceObservations:
    """Return the observations of all complete tables of a folder of work; a collection may be going on there.

    Parameters
    ----------
    work : path
        See `collect`.
    names : sequence of str, optional
        Tables that are wanted, in the order wanted; all, by name, by default.

    Raises
    ------
    CorruptStoreError
        If the folder is none, or a file is damaged.
    """
    work = Path(work)
    content = _read_configurations(work / "configurations.json")
    configurations = content["configurations"]
    tables = []
    for name in sorted(path.stem for path in work.glob("*.jsonl")) if names is None else names:
        found = _read_journal(work / f"{name}.jsonl")
        if found is not None and len(found[1]) == len(configurations):
            header, records, _ = found
            ordered = [records[number] for number in range(len(configurations))]

            def column(key: str, ordered: Sequence[Mapping[str, Any]] = ordered) -> AnyArray:
                return np.array([record.get(key, np.nan) for record in ordered], dtype=np.float64)

            tables.append(
                SourceTable(
                    name=name,
                    origin=header["origin"],
                    configurations=np.arange(len(configurations)),
                    losses=column("loss"),
                    seconds=column("seconds"),
                    metric=METRIC,
                    other_losses={OTHER_METRIC: column(OTHER_METRIC)},
                )
            )
    return SourceObservations(
        space=content["settings"]["space"], metric=METRIC, configurations=tuple(configurations), tables=tuple(tables)
    )


# ---------------------------------------------------------------- the user's own runs


def read_runs(folders: Iterable[str | Path], *, space: str) -> SourceObservations:
    """Return the trials of classification runs as observations, one table per run.

    Runs on the same training rows get the same origin. Trials that were given up after some folds are left out; a
    configuration that was tried twice counts with its first trial.

    Parameters
    ----------
    folders : iterable of path
        Run directories; they are only read, and a run may be going on.
    space : str
        Name of the space that every run must have searched.

    Raises
    ------
    RunDirectoryError
        If a folder is not that of a run, or its space or task is another one.
    CorruptStoreError
        If a file is damaged.
    """
    configurations: dict[str, Mapping[str, Any]] = {}
    positions: dict[str, int] = {}
    tables = []
    for folder in map(Path, folders):
        run, schema = read_description(folder)
        settings, task = run.get("settings") or {}, (schema.get("target") or {}).get("task_type")
        searched = "an own one" if "space" in settings.get("own_objects", ()) else repr(settings.get("space"))
        if searched != repr(space):
            raise RunDirectoryError(folder, f"searched another space ({searched}); expected {space!r}.")
        if task not in (TaskType.BINARY, TaskType.MULTICLASS):
            raise RunDirectoryError(folder, f"is a run of the task {task!r}; observations are of classifications.")
        rows = folder / "table.npz"
        if not rows.exists():
            raise RunDirectoryError(folder, "holds no table.npz with the training rows; it is not a complete run.")
        metric = stored_metric(settings, task)
        with RunStore(folder, read_only=True) as store:
            trials = {_key(row["configuration"]): row for row in reversed(store.rows()) if row["status"] != "stopped"}
        ordered = sorted(trials.values(), key=lambda row: row["number"])
        for row in ordered:
            key = _key(row["configuration"])
            positions.setdefault(key, len(configurations))
            configurations.setdefault(key, row["configuration"])
        tables.append(
            SourceTable(
                name=f"{folder.resolve().name}-{run.get('id', '')}",
                origin=f"run-{zlib.crc32(rows.read_bytes()):08x}",
                configurations=np.array([positions[_key(row["configuration"])] for row in ordered], dtype=np.int64),
                losses=np.array([np.nan if row["loss"] is None else row["loss"] for row in ordered], dtype=np.float64),
                seconds=np.array([row["duration_seconds"] for row in ordered], dtype=np.float64),
                metric="own" if metric is None else metric.name,
            )
        )
    return SourceObservations(
        space=space, metric=METRIC, configurations=tuple(configurations.values()), tables=tuple(tables)
    )
