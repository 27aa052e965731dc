"""Runs of the experiments on ensembles: one strategy searches one table, everything it could report is judged.

A table is split into 60 % training, 20 % validation and 20 % test rows, by the seed alone, so that all strategies of a
seed have the same rows; they also begin with the same random trials. Learners are fitted on the training rows, and the
same fitted learners are judged on the test rows, whose targets no search ever sees.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace

from benchmarks.experiments.divbo.report_forms import Members, Report, Row, make_report, rounded
from benchmarks.runs import suite_runs
from benchmarks.runs.circumstances import describe_circumstances
from benchmarks.runs.code_digest import package_digest
from benchmarks.runs.search import run_search
from benchmarks.runs.search_cost import RunClock
from benchmarks.runs.search_task import SearchTask
from benchmarks.runs.suite_runs import SuiteKey
from benchmarks.runs.trial_limit import CpuLimit
from benchmarks.tables.manifest import BenchmarkTable
from benchmarks.tables.search_table import SearchTable
from benchmarks.tables.three_parts import ThreeParts
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import Metric, get_metric
from cashmere.records.budget import Budget
from cashmere.records.trial import History
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
        Unit of the losses, in units of the target: values are standardised before the search.
    losses, test_losses : list of float or None
        Losses of every trial; None for failures.
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
        Digest of the package; of a replay, that of the code that decided.
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
    clock = RunClock()
    data = SearchTable.read(table)
    parts = ThreeParts.of(data, n_rows=protocol.rows, seed=key.seed)
    task = make_task(protocol, data, parts, key.seed)
    found = run_search(task, key.strategy, Budget.parse(key.budget), limit=CpuLimit(protocol.trial_seconds))
    report = make_report(found.history, found.held_out, parts.y[parts.test], task.metric, members_of(found.strategy))
    return EnsembleRun.of(
        key,
        task.metric,
        found.history,
        report,
        unit=parts.spread**2 if task.metric.name == "mse" else parts.spread,
        suggest_seconds=[round(seconds, 3) for seconds in found.suggest_seconds],
        training_seconds=round(found.training_seconds, 2),
        seconds=round(clock.seconds, 2),
        deciding_cpu_seconds=round(found.deciding_cpu_seconds, 2),
        memory_mib={part: round(mib, 1) for part, mib in found.memory_mib.items()},
        code=package_digest(),
        circumstances=describe_circumstances(),
    )


def make_task(protocol: suite_runs.Protocol, data: SearchTable, parts: ThreeParts, seed: int) -> SearchTask:
    """Return what the runs of a seed search: validation and test rows are predicted, the test rows held out."""
    metric = get_metric(protocol.metric, data.task_type)
    space = data.make_space(protocol.space, len(parts.train))
    return SearchTask(
        table=data,
        y=parts.y,
        folds=[parts.fold],
        held_out=parts.test,
        space=space,
        metric=metric,
        seed=seed,
        warm_start=common_start(space.configuration_space, seed),
        baseline_loss=_constant_loss(metric, parts.y[parts.train], parts.y[parts.validation], data.target.n_classes),
    )


def members_of(strategy: object) -> Members | None:
    """Return the function that gives the ensemble of a strategy, if it keeps one."""
    return strategy.members if isinstance(strategy, KeepsEnsemble) else None


def _constant_loss(metric: Metric, train: np.ndarray, validation: np.ndarray, n_classes: int) -> float:
    """Return the loss of the class shares, or the mean, of the training rows."""
    if metric.needs == "values":
        return metric.loss(validation, np.full(len(validation), train.mean()), None)
    shares = np.bincount(train, minlength=n_classes) / len(train)
    return metric.loss(validation, np.tile(shares, (len(validation), 1)), None)
