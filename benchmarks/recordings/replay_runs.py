"""Finished replays on disk, and the worker processes that add the missing ones.

A run is the replay of one strategy with one seed on one recording. It is appended to a file of JSON lines as soon as it
is known. A longer run can stand in for a shorter one, unless the strategy plans by the number of trials, as contests
and rising bandits do.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ConfigSpace import Configuration

from benchmarks.recordings.emulator import Emulator
from benchmarks.recordings.learned_opening import load_opening
from benchmarks.recordings.recorded_history import RecordedHistory, folder_of, load_recorded
from benchmarks.recordings.redrawn_split import redraw_split
from benchmarks.recordings.replay import ReplayObjective, ensemble_curve, replay, replay_free
from benchmarks.runs.code_digest import PACKAGE, digest_of, package_files
from benchmarks.runs.finished_runs import Failure, FinishedRuns
from benchmarks.runs.parallel import make_runs
from cashmere.base.text import is_dotted_path
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import CorruptStoreError
from cashmere.records.space_names import present_space_name
from cashmere.strategies.making import factory_of
from cashmere.strategies.shared.factories import options_of

CODE_FOLDERS = (
    *("acquisition", "contests", "costs", "ensembles", "metalearning", "space", "strategies", "study", "surrogates"),
)
CODE_FILES = ("evaluation/metrics.py", "pretraining/opening_choice.py", "records/loss.py", "records/trial.py")
"""Folders and files of the package whose code decides what a strategy suggests and how it is judged."""

OWN_FILES = (
    *("emulator.py", "learned_opening.py", "quantised_predictions.py", "recorded_history.py", "redrawn_split.py"),
    *("replay.py", "timed_replay.py"),
)
"""Files beside this one that decide, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What is known about a recorded history without reading its arrays.

    Attributes
    ----------
    path : Path
        The file.
    name : str
        Name in results, see `RecordedHistory`.
    table, space : str
        Names of both.
    digest : str
        Digest of the bytes of the file: a new recording needs new runs.
    task_type : TaskType
        Kind of target.
    n_configurations : int
        Number of recorded configurations.
    """

    path: Path
    name: str
    table: str
    space: str
    digest: str
    task_type: TaskType
    n_configurations: int

    @classmethod
    def of(cls, path: Path) -> Recording:
        """Read the description of a file."""
        try:
            with zipfile.ZipFile(path) as archive:
                description = json.loads(archive.read("description.json"))
            table, space = description["dataset"], present_space_name(description["space"], description["version"])
            return cls(
                path=path,
                name=f"{folder_of(path, table, space)}{table}-{space}",
                table=table,
                space=space,
                digest=hashlib.sha256(path.read_bytes()).hexdigest()[:12],
                task_type=TaskType(description["task_type"]),
                n_configurations=len(description["statuses"]),
            )
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise CorruptStoreError(path, f"is not a recorded history ({error}). Record it again.") from error


def opening_sources(target: Recording, kept: Iterable[Recording]) -> str:
    """Return a digest of those recordings that the opening of one may be learned from: with others it may differ."""
    digest = hashlib.sha256()
    for other in kept:
        is_alike = other.task_type.is_classification == target.task_type.is_classification
        if is_alike and other.space == target.space and other.table != target.table:
            digest.update(other.digest.encode())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """What is replayed.

    Attributes
    ----------
    recording, digest : str
        A recording, and the digest of its file.
    metric : str
        Full name.
    strategy : str
        With its options.
    seed : int
        Of the search and the split.
    candidates : str
        ``recorded``, or ``free`` in the space.
    opening : bool
        Whether it begins with what was learned from recordings of other tables.
    sources : str
        Digest of these, see `opening_sources`; empty without an opening, and in earlier runs.
    lookahead : int
        Of the study.
    """

    recording: str
    digest: str
    metric: str
    strategy: str
    seed: int
    candidates: str = "recorded"
    opening: bool = False
    sources: str = ""
    lookahead: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished replay.

    Attributes
    ----------
    key : RunKey
        What was replayed.
    trials : int
        How many.
    chosen : list of int
        Positions in the recording, in order; empty if candidates were free.
    suggest_seconds : float
        Seconds of deciding, all trials together.
    curve : list of dict
        Rows of `benchmarks.recordings.replay.ensemble_curve`.
    code : str
        Digest of the code that decided, see `code_digest`.
    """

    key: RunKey
    trials: int
    chosen: list[int]
    suggest_seconds: float
    curve: list[dict[str, float]]
    code: str


@dataclass(slots=True)
class RunFiles:
    """The runs of a folder, in one file of JSON lines per recording and metric."""

    folder: Path
    _files: dict[tuple[str, str], FinishedRuns[RunKey, Run]] = field(default_factory=dict)

    def load(self, recordings: Iterable[tuple[str, str]]) -> None:
        """Read the runs of pairs of recording and metric."""
        for recording, metric in recordings:
            self._file(recording, metric)

    def find(self, key: RunKey, n_trials: int) -> Run | None:
        """Return the run if it is long enough."""
        known = {run.trials: run for run in self._file(key.recording, key.metric).find_all(key)}
        if n_trials in known or plans_by_budget(key.strategy):
            return known.get(n_trials)
        longest = max(known, default=0)
        return known[longest] if longest > n_trials else None

    def add(self, run: Run) -> None:
        """Append a run to its file."""
        self._file(run.key.recording, run.key.metric).add(run)

    def forget(self, keys: Iterable[RunKey]) -> int:
        """Remove runs from their files; return how many there were."""
        by_file: dict[tuple[str, str], list[RunKey]] = {}
        for key in keys:
            by_file.setdefault((key.recording, key.metric), []).append(key)
        return sum(self._file(*name).forget(found) for name, found in by_file.items())

    def _file(self, recording: str, metric: str) -> FinishedRuns[RunKey, Run]:
        if (recording, metric) not in self._files:
            path = self.folder / f"{recording}-{metric}.jsonl"
            self._files[recording, metric] = FinishedRuns(path, Run, RunKey)
        return self._files[recording, metric]


def plans_by_budget(strategy: str) -> bool:
    """Return whether a strategy, by name with its options, decides by the planned number of trials."""
    return "budget" in (options_of(factory_of(strategy)) or {})


def deciding_code() -> dict[str, Path]:
    """Return the files of the code that decides, by a name that is the same on every machine."""
    files = {name: path for folder in CODE_FOLDERS for name, path in package_files(folder).items()}
    files |= {name: PACKAGE / name for name in CODE_FILES}
    return files | {f"benchmarks/recordings/{name}": Path(__file__).with_name(name) for name in OWN_FILES}


@functools.cache
def code_digest(*others: str) -> str:
    """Return a digest of the code that decides; runs of other digests may be out of date.

    Parameters
    ----------
    *others : str
        Files of the benchmarks that decide, too, such as ``"experiments/costs/rules.py"``.
    """
    own = {f"benchmarks/{name}": Path(__file__).parents[1] / name for name in others}
    return digest_of(deciding_code() | own)


@functools.cache
def code_of(strategy: str) -> str:
    """Return a digest of the code that decides with a strategy: that of `code_digest`, and the file of your own one."""
    if not is_dotted_path(strategy):
        return code_digest()
    own = inspect.getsourcefile(inspect.unwrap(factory_of(strategy)))
    return digest_of(deciding_code() | ({} if own is None else {Path(own).name: Path(own)}))


@functools.lru_cache(maxsize=2)
def load_objective(path: Path, digest: str, metric: str, seed: int) -> ReplayObjective:
    """Load a recording as an objective, its split redrawn by the seed; the strategies of a seed share it."""
    history = redraw_split(_load(path, digest), seed)
    return ReplayObjective.of(history, get_metric(metric, history.task_type))


@functools.lru_cache(maxsize=1)
def load_emulator(path: Path, digest: str, seed: int) -> Emulator:
    """Return the emulator of a recording whose split is redrawn by the seed; the strategies of a seed share it."""
    return Emulator(redraw_split(_load(path, digest), seed))


@functools.lru_cache(maxsize=9)
def _load(path: Path, digest: str) -> RecordedHistory:
    """Load a recording, once per process; the digest detects one that was made again."""
    return load_recorded(path)


@functools.lru_cache(maxsize=32)
def _load_opening(path: Path, digest: str, metric: str) -> list[Configuration]:
    """Return the opening of a recording, chosen once per process."""
    return load_opening(_load(path, digest), metric)


def run_missing(
    missing: Sequence[tuple[Recording, RunKey]],
    *,
    n_trials: int,
    n_workers: int,
    scheduler: str | None = None,
    report: Callable[[Run | Failure[RunKey]], None],
) -> None:
    """Replay in worker processes of one thread each; every result is reported when it arrives.

    Parameters
    ----------
    missing : sequence of (Recording, RunKey)
        What to do, in this order.
    n_trials, n_workers : int
        Trials per run; processes.
    scheduler : str, optional
        Address of the Dask cluster that has the processes.
    report : callable
        Called in this process, with one result at a time. When it raises, or on Ctrl+C, the workers are ended.
    """
    make_run = functools.partial(_replay, n_trials=n_trials)
    tasks = [(recording.path.absolute(), key) for recording, key in missing]
    make_runs(tasks, make_run, n_workers=n_workers, scheduler=scheduler, report=report)


def _replay(path: Path, key: RunKey, *, n_trials: int) -> Run:
    code = code_of(key.strategy)
    if key.candidates == "free":
        emulator = load_emulator(path, key.digest, key.seed)
        metric = get_metric(key.metric, emulator.history.task_type)
        found, seconds = replay_free(emulator, metric, key.strategy, seed=key.seed, n_trials=n_trials)
        rows = ensemble_curve(found, metric, list(range(len(found))))
        return Run(key=key, trials=n_trials, chosen=[], suggest_seconds=seconds, curve=rows, code=code)
    objective = load_objective(path, key.digest, key.metric, key.seed)
    metric = get_metric(key.metric, objective.history.task_type)
    opening = _load_opening(path, key.digest, key.metric) if key.opening else []
    chosen, seconds = replay(
        objective,
        metric,
        key.strategy,
        seed=key.seed,
        n_trials=n_trials,
        opening=opening[:n_trials],
        lookahead=key.lookahead,
    )
    curve: list[dict[str, Any]] = ensemble_curve(objective.history, metric, chosen)
    return Run(key=key, trials=n_trials, chosen=chosen, suggest_seconds=seconds, curve=curve, code=code)
