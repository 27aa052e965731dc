"""Replays of recorded histories under a budget of time, on simulated workers.

A trial takes its recorded CPU seconds and `OVERHEAD_SECONDS`; a worker that becomes free gets the next decision at
once. As in a run, the first trials are one configuration of each algorithm, and what a strategy sees follows from the
lookahead. Nothing is waited for, so a replay is the same on every machine. With free candidates, an emulator says what
a trial takes; there is one worker, and the first trials, too, are the strategy's.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ConfigSpace import Configuration

from benchmarks.recordings.emulator import Answer, Emulator, as_recording
from benchmarks.recordings.recorded_history import RecordedHistory
from benchmarks.recordings.replay import ReplayObjective, constant_prediction, ensemble_losses, outcome_of
from cashmere.costs.predicted import OVERHEAD_SECONDS
from cashmere.evaluation.metrics import Metric
from cashmere.protocols import Strategy
from cashmere.records.trial import Outcome, Trial
from cashmere.records.work_budget import WorkBudget
from cashmere.space.space import ALGORITHM
from cashmere.strategies import make_strategy
from cashmere.study import Study

N_WORKERS = 2
LOOKAHEAD = 8
"""As in a run on two cores."""


@dataclass(frozen=True, kw_only=True)
class TimedReplay:
    """What a strategy chose in the time it had.

    Attributes
    ----------
    chosen : list of int
        Positions in the recording of the trials that ended in time, in the order in which they ended.
    ended_at : list of float
        Simulated seconds at which they ended, ascending.
    busy_seconds : float
        Total seconds of these trials.
    seconds : float
        The budget.
    """

    chosen: list[int]
    ended_at: list[float]
    busy_seconds: float
    seconds: float

    def number_at(self, share: float) -> int:
        """Return how many trials had ended after a share of the budget."""
        return int(np.searchsorted(self.ended_at, share * self.seconds, side="right"))


def total_seconds(history: RecordedHistory) -> float:
    """Return the seconds of one worker for all configurations of a recording."""
    return float(history.seconds.sum()) + OVERHEAD_SECONDS * len(history)


def timed_replay(
    objective: ReplayObjective, metric: Metric, strategy: Strategy, *, seed: int, seconds: float, weighs_costs: bool
) -> TimedReplay:
    """Run one study on a recorded history until its time is up.

    Parameters
    ----------
    objective : ReplayObjective
        The recording.
    metric : Metric
        Metric of the losses.
    strategy : Strategy
        Searches the recording.
    seed : int
        Seed of the study.
    seconds : float
        Budget in simulated seconds, during which `N_WORKERS` workers run side by side.
    weighs_costs : bool
        Whether the study knows that its budget is a time; otherwise it decides as with a budget of trials.
    """
    history = objective.history
    study = Study(
        history.encoder,
        strategy,
        seed=seed,
        lookahead=LOOKAHEAD,
        warm_start=one_of_each(history, seed),
        plan=WorkBudget(worker_seconds=seconds * N_WORKERS) if weighs_costs else None,
        worst_loss=metric.worst_loss,
        baseline_loss=metric.loss(history.y_validation, constant_prediction(history), None),
        metric=metric,
        targets=history.y_validation.astype(np.float64),
    )
    clock, running = 0.0, list[tuple[float, int, Trial, Outcome]]()
    chosen, ended_at = list[int](), list[float]()
    while True:
        while len(running) < N_WORKERS and len(study.history) + LOOKAHEAD < len(history) and study.can_ask():
            if not study.fit_into(seconds - clock):
                break
            trial = study.ask()
            outcome = objective(trial)
            heapq.heappush(running, (clock + outcome.duration_seconds + OVERHEAD_SECONDS, trial.number, trial, outcome))
        if not running or running[0][0] > seconds:
            busy = float(history.seconds[chosen].sum()) + OVERHEAD_SECONDS * len(chosen)
            return TimedReplay(chosen=chosen, ended_at=ended_at, busy_seconds=busy, seconds=seconds)
        clock, _, trial, outcome = heapq.heappop(running)
        study.tell(trial, outcome)
        chosen.append(objective.position_of[trial.key])
        ended_at.append(clock)


def seconds_of_average(history: RecordedHistory, n_trials: int) -> float:
    """Return the seconds of one worker for some configurations that take as long as those of a recording on average."""
    return n_trials * total_seconds(history) / len(history)


def timed_free_replay(
    emulator: Emulator, metric: Metric, strategy: str, *, seed: int, seconds: float
) -> tuple[RecordedHistory, list[float], float]:
    """Run one study whose candidates are free, and which knows its budget of time, until that is up.

    Parameters
    ----------
    emulator : Emulator
        Answers.
    metric : Metric
        Metric of the losses.
    strategy : str
        Name, with options.
    seed : int
        Seed of the study.
    seconds : float
        Budget in simulated seconds of one worker.

    Returns
    -------
    RecordedHistory
        A recording of the trials that ended in time, in order, with the emulator's answers.
    list of float
        Simulated seconds at which they ended, ascending.
    float
        The seconds of deciding, which are real.
    """
    history = emulator.history
    study = Study(
        history.space,
        make_strategy(strategy, history.space),
        seed=seed,
        lookahead=1,
        plan=WorkBudget(worker_seconds=seconds),
        worst_loss=metric.worst_loss,
        baseline_loss=metric.loss(history.y_validation, constant_prediction(history), None),
        metric=metric,
        targets=history.y_validation.astype(np.float64),
    )
    answers, ended_at, clock = list[tuple[Configuration, Answer]](), list[float](), 0.0
    while study.fit_into(seconds - clock):
        trial = study.ask()
        answer = emulator(trial.configuration)
        clock += answer.seconds + OVERHEAD_SECONDS
        if clock > seconds:
            break
        answers.append((trial.configuration, answer))
        ended_at.append(clock)
        study.tell(trial, outcome_of(answer, history, metric))
    return as_recording(history, answers), ended_at, float(sum(study.suggest_seconds.values()))


def one_of_each(history: RecordedHistory, seed: int) -> list[Configuration]:
    """Return a recorded configuration of each algorithm, drawn at random, in the order of the space."""
    rng = np.random.default_rng([seed, len(history)])
    drawn = [history.configurations[i] for i in rng.permutation(len(history))]
    first = {c[ALGORITHM]: c for c in reversed(drawn)}
    codes = history.encoder.encode(first.values())[:, history.encoder.names.index(ALGORITHM)]
    return [list(first.values())[i] for i in np.argsort(codes)]


def losses_over_time(
    history: RecordedHistory, metric: Metric, replayed: TimedReplay, shares: Sequence[float]
) -> list[dict[str, float]]:
    """Return the losses of the ensemble after shares of the budget, ascending; see `losses_after`."""
    counts = [replayed.number_at(share) for share in shares]
    rows = losses_after(history, metric, replayed.chosen, counts)
    return [{"share": share} | row for share, row in zip(shares, rows, strict=True)]


def losses_after(
    history: RecordedHistory, metric: Metric, chosen: Sequence[int], counts: Sequence[int]
) -> list[dict[str, float]]:
    """Return the losses of the ensemble after some numbers of trials.

    Parameters
    ----------
    history : RecordedHistory
        What was replayed.
    metric : Metric
        Chooses the ensemble on the validation rows and judges it.
    chosen : sequence of int
        Positions of the trials, in order.
    counts : sequence of int
        Numbers of trials, ascending, from 0.

    Returns
    -------
    list of dict
        For each of them ``trials``, and the losses ``validation`` and ``test`` of the ensemble, those of the constant
        predictor while there is none.
    """
    constant = constant_prediction(history)[:1]
    losses = {
        part: metric.loss(y, np.repeat(constant, len(y), axis=0), None)
        for part, y in (("validation", history.y_validation), ("test", history.y_test))
    }
    known = {row["trials"]: row for row in ensemble_losses(history, metric, chosen, sorted({*counts} - {0}))}
    rows = []
    for n in counts:
        if n in known:
            losses = {part: known[n][part] for part in ("validation", "test")}
        rows.append({"trials": n} | losses)
    return rows
