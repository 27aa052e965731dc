"""Runs of a suite: strategies search real tables under one protocol, many times, in worker processes.

A run is one strategy with one seed on one table. It is appended to a file of JSON lines as soon as it is finished, so
that an interrupted suite continues where it was stopped.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from benchmarks.runs.circumstances import describe_circumstances
from benchmarks.runs.code_digest import package_digest
from benchmarks.runs.search import run_search
from benchmarks.runs.search_cost import RunClock
from benchmarks.runs.search_task import SearchTask
from benchmarks.runs.trial_limit import WallLimit
from benchmarks.tables.manifest import BenchmarkTable
from benchmarks.tables.search_table import SearchTable
from cashmere.data.fold import Fold
from cashmere.data.resampling import make_folds
from cashmere.evaluation.metrics import get_metric
from cashmere.records.budget import Budget
from cashmere.records.trial import History

DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How the runs of a suite are made and judged.

    Attributes
    ----------
    name : str
        Name of the suite.
    space, metric, resampling : str
        As in `cashmere.AutoClassifier`; the loss of a trial is the mean over the folds.
    test_share : float
        Share of the rows, drawn for every seed and stratified by class, on which the best configuration is judged
        after it was fitted on all others; 0 judges by the folds alone.
    rows : int
        Largest number of rows; a larger table is reduced by a stratified draw.
    trial_seconds : float
        Wall seconds after which a trial is stopped.
    """

    name: str
    space: str
    metric: str
    resampling: str
    test_share: float = 0.0
    rows: int = 10_000
    trial_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteKey:
    """Which run of a suite: the protocol (a digest of it too), table, strategy, seed and budget."""

    suite: str
    protocol: str
    table: str
    strategy: str
    seed: int
    budget: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """A finished run that reports its best configuration.

    Attributes
    ----------
    key : SuiteKey
        Identifies the run.
    curve : list of float or None
        Lowest loss after every trial; None before the first success.
    failed : int
        Number of trials without a loss.
    test : float or None
        Loss of the best configuration on the test rows, if the protocol has any.
    seconds, suggest_seconds, fit_seconds : float
        Wall seconds of the run, of deciding and of all trials together.
    best : dict
        Values of the best configuration.
    finished_at : list of float
        Wall seconds from the start of the search to the end of every trial; empty in runs made before this was kept, as
        are the following.
    cpu_seconds : float or None
        CPU seconds of the process that decides and of those that train, including start-up.
    memory_mib : dict of str to float
        Largest resident memory seen: of ``"deciding"`` after each trial, of ``"training"`` during it.
    circumstances : dict of str to str
        Where, when and with what the run was made, see `benchmarks.runs.circumstances`.
    code : str
        Digest of the package.
    """

    key: SuiteKey
    curve: list[float | None]
    failed: int
    test: float | None
    seconds: float
    suggest_seconds: float
    fit_seconds: float
    best: dict[str, Any]
    finished_at: list[float] = field(default_factory=list)
    cpu_seconds: float | None = None
    memory_mib: dict[str, float] = field(default_factory=dict)
    circumstances: dict[str, str] = field(default_factory=dict)
    code: str = ""


def make_key(protocol: Protocol, table: str, strategy: str, seed: int, budget: Budget) -> SuiteKey:
    """Return the key of a run."""
    digest = hashlib.sha256(json.dumps(asdict(protocol), sort_keys=True).encode()).hexdigest()[:8]
    return SuiteKey(suite=protocol.name, protocol=digest, table=table, strategy=strategy, seed=seed, budget=str(budget))


def search(protocol: Protocol, table: BenchmarkTable, key: SuiteKey) -> SuiteRun:
    """Make one run in this process; its trials run in one worker process, strictly one after the other."""
    clock = RunClock()
    task = make_task(protocol, table, key.seed)
    found = run_search(task, key.strategy, Budget.parse(key.budget), limit=WallLimit(protocol.trial_seconds))
    best = found.history.incumbent
    return SuiteRun(
        key=key,
        curve=best_so_far(found.history),
        failed=len(found.history.failures),
        test=found.final_loss,
        seconds=round(clock.seconds, 2),
        suggest_seconds=round(sum(found.suggest_seconds), 3),
        fit_seconds=round(found.training_seconds, 2),
        best={} if best is None else {k: _plain(v) for k, v in dict(best.trial.configuration).items()},
        finished_at=[round(o.finished_at, 2) for o in found.history],
        cpu_seconds=round(clock.cpu_seconds, 2),
        memory_mib={part: round(mib, 1) for part, mib in found.memory_mib.items()},
        circumstances=describe_circumstances(),
        code=package_digest(),
    )


def make_task(protocol: Protocol, table: BenchmarkTable, seed: int) -> SearchTask:
    """Return the task that the runs of a seed search."""
    data = SearchTable.read(table)
    train, test = _split(data.y, protocol, seed, classes=data.task_type.is_classification)
    inner = make_folds(data.y[train], data.task_type, protocol.resampling, seed=seed, n_columns=data.frame.shape[1])
    return SearchTask(
        table=data,
        y=data.y,
        folds=[Fold(train[fold.train], train[fold.validation]) for fold in inner],
        final_fold=Fold(train, test) if len(test) else None,
        space=data.make_space(protocol.space, len(train)),
        metric=get_metric(protocol.metric, data.task_type),
        seed=seed,
    )


def best_so_far(history: History) -> list[float | None]:
    """Return the lowest loss after every trial, None before the first success."""
    losses = [np.inf if o.loss is None else o.loss for o in history]
    return [round(float(loss), DIGITS) if np.isfinite(loss) else None for loss in np.minimum.accumulate(losses)]


def _split(y: np.ndarray, protocol: Protocol, seed: int, *, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return ascending row numbers for the search and for the test."""
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(y))
    if len(y) > protocol.rows:
        rows, _ = train_test_split(rows, train_size=protocol.rows, random_state=seed, stratify=y if classes else None)
    if protocol.test_share == 0:
        return np.sort(rows), rows[:0]
    train, test = train_test_split(
        rows, test_size=protocol.test_share, random_state=seed, stratify=y[rows] if classes else None
    )
    return np.sort(train), np.sort(test)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
