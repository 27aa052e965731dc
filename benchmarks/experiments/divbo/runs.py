"""Runs of the experiments on ensembles: one strategy searches one table, everything it could report is judged.

A table is split into 60 % training, 20 % validation and 20 % test rows, by the seed alone, so that all strategies of a
seed have the same rows; they also begin with the same random trials. Learners are fitted on the training rows, and the
same fitted learners are judged on the test rows, whose targets no search ever sees.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import psutil
from ConfigSpace import Configuration, ConfigurationSpace

from benchmarks.experiments.divbo.report_forms import Members, Report, Row, make_report, rounded
from benchmarks.recordings.record import RecordingObjective, split_rows, trial_limits
from benchmarks.recordings.replay_runs import code_digest
from benchmarks.runs import suite_runs
from benchmarks.runs.circumstances import describe_circumstances
from benchmarks.runs.suite_runs import SuiteKey
from benchmarks.tables.manifest import BenchmarkTable
from benchmarks.tables.search_table import SearchTable
from cashmere.data.resampling import Fold
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import Metric, get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.execution.limits import MIB
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.budget import Budget
from cashmere.records.trial import History, Outcome
from cashmere.records.work_budget import WorkBudget
from cashmere.study import Study

N_COMMON = 5
"""Random trials that all strategies of a seed begin with: docs/papers/baselines.md#common-random-trials."""


@runtime_checkable
class KeepsEnsemble(Protocol):
    """A strategy that keeps its own ensemble, such as `ensemble_optimisation`."""

    def members(self, history: History) -> tuple[int, ...]:
        """Return the numbers of the trials whose mean prediction it reports, repetitions included."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleRun:
    """A finished run.

    Attributes
    ----------
    key : SuiteKey
        Which run it is.
    metric : str
        Name of what is minimised.
    unit : float
        One of the losses here, in the units of the target: values are standardised before the search.
    losses, test_losses : list of float or None
        Of every trial; None for failures.
    statuses, origins : list of str
        How every trial ended; where its configuration came from.
    cpu_seconds, suggest_seconds : list of float
        CPU seconds of fitting and predicting, wall seconds of deciding, of every trial.
    training_seconds, seconds : float
        Wall seconds of all trials, and of the whole run.
    deciding_cpu_seconds : float
        CPU seconds of deciding.
    memory_mib : dict of str to float or None
        Largest resident memory of ``"training"``, and of the process that is ``"deciding"``.
    forms, updates, minimum_diversity, disagreement, member_loss
        See `benchmarks.experiments.divbo.report_forms.Report`.
    code : str
        Digest of the code that decided, see `benchmarks.recordings.replay_runs.code_digest`.
    circumstances : dict of str to str
        Where and when it was made (of a replay: judged), see `benchmarks.runs.circumstances`.
    """

    key: SuiteKey
    metric: str
    unit: float
    losses: list[float | None]
    test_losses: list[float | None]
    statuses: list[str]
    origins: list[str]
    cpu_seconds: list[float]
    suggest_seconds: list[float]
    training_seconds: float
    seconds: float
    deciding_cpu_seconds: float
    memory_mib: dict[str, float | None]
    forms: dict[str, list[Row]]
    updates: dict[str, list[int]]
    minimum_diversity: list[float | None]
    disagreement: list[float | None]
    member_loss: float | None
    code: str
    circumstances: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, key: SuiteKey, metric: Metric, history: History, report: Report, **rest: Any) -> EnsembleRun:
        """Combine what is known about a run; `rest` holds the attributes that neither history nor report has."""
        return cls(
            key=key,
            metric=metric.name,
            losses=[None if o.loss is None else rounded(o.loss) for o in history],
            statuses=[o.status.value for o in history],
            origins=[str(o.trial.origin) for o in history],
            cpu_seconds=[round(o.fit_seconds, 3) for o in history],
            **asdict(report),
            **rest,
        )


def protocol_of(task_type: TaskType, *, metric: str, rows: int, trial_seconds: float) -> suite_runs.Protocol:
    """Return the protocol for one kind of target; `metric` is that of regressions, classes have the error rate."""
    return suite_runs.Protocol(
        name="ensembles",
        space="volcano",
        metric="accuracy" if task_type.is_classification else metric,
        resampling="60/20/20",
        test_share=0.2,
        rows=rows,
        trial_seconds=trial_seconds,
    )


def common_start(space: ConfigurationSpace, seed: int) -> tuple[Configuration, ...]:
    """Return the configurations that random search begins with."""
    study = Study(space, "random", seed=seed, lookahead=N_COMMON)
    return tuple(study.ask().configuration for _ in range(N_COMMON))


def search(protocol: suite_runs.Protocol, table: BenchmarkTable, key: SuiteKey) -> EnsembleRun:
    """Make one run in this process; its trials run in one worker process, strictly one after the other."""
    clock = time.perf_counter()
    n_trials = Budget.parse(key.budget).trials or 0
    data = SearchTable.read(table)
    metric = get_metric(protocol.metric, data.task_type)
    is_classification = data.task_type.is_classification
    train, validation, test = split_rows(data.y, protocol.rows, classes=is_classification, seed=key.seed)
    y, unit = data.y, 1.0
    if not is_classification:
        spread = float(y[train].std())
        y, unit = (y - y[train].mean()) / spread, spread**2 if metric.name == "mse" else spread
    hidden = y.copy()
    hidden[test] = y[train[0]]
    judged = np.sort(np.concatenate([validation, test]))
    is_validation = np.isin(judged, validation)
    space = data.make_space(protocol.space, len(train))
    predicted: list[np.ndarray | None] = []
    deciding = deciding_mib = training_mib = 0.0
    with tempfile.TemporaryDirectory(prefix="cashmere-suite-") as folder:
        data.prepare(Path(folder), hidden, [Fold(train, judged)], space, seed=key.seed)
        objective = RecordingObjective(
            objective=CrossValidationObjective(folder=Path(folder), space=space, metric=metric, keep_model=False),
            limit_seconds=protocol.trial_seconds,
        )
        executor = WorkerProcessExecutor(1, limits=trial_limits(protocol.trial_seconds), n_threads=1)
        try:
            study = Study(
                space.configuration_space,
                key.strategy,
                seed=key.seed,
                warm_start=common_start(space.configuration_space, key.seed),
                plan=WorkBudget(trials=n_trials),
                worst_loss=metric.worst_loss,
                baseline_loss=_constant_loss(metric, y[train], y[validation], data.target.n_classes),
                metric=metric,
                targets=y[validation].astype(np.float64),
            )
            while len(study.history) < n_trials:
                start = time.process_time()
                trial = study.ask()
                deciding += time.process_time() - start
                deciding_mib = max(deciding_mib, psutil.Process().memory_info().rss / MIB)
                outcome = executor.submit(objective, trial).result()
                training_mib = max(training_mib, outcome.memory_mib or 0.0)
                if study.tell(trial, _seen(outcome, is_validation, y[validation], metric)):
                    predicted.append(None if outcome.predictions is None else outcome.predictions[~is_validation])
        finally:
            executor.shutdown()
    history = study.history
    report = make_report(history, predicted, y[test], metric, members_of(study.strategy))
    return EnsembleRun.of(
        key,
        metric,
        history,
        report,
        unit=unit,
        suggest_seconds=[round(study.suggest_seconds.get(n, 0.0), 3) for n in range(n_trials)],
        training_seconds=round(sum(o.duration_seconds for o in history), 2),
        seconds=round(time.perf_counter() - clock, 2),
        deciding_cpu_seconds=round(deciding, 2),
        memory_mib={"training": round(training_mib, 1), "deciding": round(deciding_mib, 1)},
        code=code_digest(),
        circumstances=describe_circumstances(),
    )


def members_of(strategy: object) -> Members | None:
    """Return the function that gives the ensemble of a strategy, if it keeps one."""
    return strategy.members if isinstance(strategy, KeepsEnsemble) else None


def _seen(outcome: Outcome, is_validation: np.ndarray, y: np.ndarray, metric: Metric) -> Outcome:
    """Return what the search may see of an outcome: nothing about the test rows."""
    if outcome.predictions is None:
        return outcome
    predictions = outcome.predictions[is_validation]
    loss = metric.loss(y, predictions, None)
    return replace(outcome, predictions=predictions, loss=loss, fold_losses=(loss,))


def _constant_loss(metric: Metric, train: np.ndarray, validation: np.ndarray, n_classes: int) -> float:
    """Return the loss of the class shares, or the mean, of the training rows."""
    if metric.needs == "values":
        return metric.loss(validation, np.full(len(validation), train.mean()), None)
    shares = np.bincount(train, minlength=n_classes) / len(train)
    return metric.loss(validation, np.tile(shares, (len(validation), 1)), None)
