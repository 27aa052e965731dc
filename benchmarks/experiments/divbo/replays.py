"""The experiments on ensembles from replays of recordings: everything reported follows from what was chosen."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from benchmarks.experiments.divbo.report_forms import make_report
from benchmarks.experiments.divbo.runs import EnsembleRun, members_of
from benchmarks.recordings.replay import constant_prediction
from benchmarks.recordings.replay_runs import Recording, Run, load_objective
from benchmarks.runs.circumstances import describe_circumstances
from benchmarks.runs.suite_runs import SuiteKey
from cashmere.evaluation.metrics import get_metric
from cashmere.records.budget import Budget
from cashmere.records.trial import History, Observation, Trial
from cashmere.records.work_budget import WorkBudget
from cashmere.strategies import make_strategy


def replay_key(recording: Recording, run: Run, n_trials: int) -> SuiteKey:
    """Return the key of a replay's report: another recording or other choices are another run."""
    words = json.dumps([recording.digest, run.key.metric, run.chosen[:n_trials]])
    return SuiteKey(
        suite="recorded",
        protocol=hashlib.sha256(words.encode()).hexdigest()[:8],
        table=recording.table,
        strategy=run.key.strategy,
        seed=run.key.seed,
        budget=str(Budget(trials=n_trials)),
    )


def report_replay(path: Path, run: Run, key: SuiteKey) -> EnsembleRun:
    """Judge a replay, up to the number of trials in the key's budget.

    Regression targets are standardised in recordings, so losses have no unit. Seconds of deciding are known only for
    the whole replay and are divided equally among the trials.
    """
    n_trials = Budget.parse(key.budget).trials or 0
    objective = load_objective(path, run.key.digest, run.key.metric, run.key.seed)
    recorded = objective.history
    metric = get_metric(run.key.metric, recorded.task_type)
    chosen = run.chosen[:n_trials]
    trials = [
        Trial(number=n, configuration=recorded.configurations[position], seed=0) for n, position in enumerate(chosen)
    ]
    history = History(
        observations=tuple(Observation(trial=trial, outcome=objective(trial)) for trial in trials),
        worst_loss=metric.worst_loss,
        baseline_loss=metric.loss(recorded.y_validation, constant_prediction(recorded), None),
        metric=metric,
        targets=recorded.y_validation.astype(np.float64),
        budget=WorkBudget(trials=run.trials),
    )
    test = [recorded.test[position] if o.succeeded else None for position, o in zip(chosen, history, strict=True)]
    strategy = make_strategy(run.key.strategy, recorded.encoder)
    report = make_report(history, test, recorded.y_test, metric, members_of(strategy))
    training = sum(o.fit_seconds for o in history)
    suggest_seconds = run.suggest_seconds / run.trials
    return EnsembleRun.of(
        key,
        metric,
        history,
        report,
        unit=1.0,
        suggest_seconds=[round(suggest_seconds, 3)] * n_trials,
        training_seconds=round(training, 2),
        seconds=round(training + suggest_seconds * n_trials, 2),
        deciding_cpu_seconds=round(suggest_seconds * n_trials, 2),
        memory_mib={"training": None, "deciding": None},
        code=run.code,
        circumstances=describe_circumstances(),
    )
