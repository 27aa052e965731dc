"""Replays of recorded histories: a strategy's 250 trials on a real table in seconds.

A strategy searches a `RecordedHistory` as if it were the search space: only recorded configurations can be suggested,
and their outcomes are looked up. Or it searches the space itself, and an emulator answers. The command that replays
many strategies is `benchmarks.recordings.replay_study`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from ConfigSpace import Configuration

from benchmarks.recordings.emulator import Answer, Emulator, as_recording
from benchmarks.recordings.recorded_history import RecordedHistory
from cashmere.ensembles import IncrementalSelection
from cashmere.evaluation.metrics import Metric
from cashmere.protocols import Strategy
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus, configuration_key
from cashmere.records.work_budget import WorkBudget
from cashmere.strategies import make_strategy
from cashmere.study import Study

EVERY = 5
"""Trials between two evaluations of the ensemble."""


class ConfigurationError(Exception):
    """A strategy has suggested a configuration that was not recorded."""


@dataclass(frozen=True, eq=False)
class ReplayObjective:
    """Answers trials from a recorded history.

    Attributes
    ----------
    history : RecordedHistory
        Where the answers come from.
    losses : (N,) array
        Validation loss of each configuration, NaN for failures.
    position_of : dict of str to int
        Position of each configuration by its key.
    """

    history: RecordedHistory
    losses: np.ndarray
    position_of: dict[str, int]

    @classmethod
    def of(cls, history: RecordedHistory, metric: Metric) -> ReplayObjective:
        """Compute the losses of all configurations under a metric."""
        losses = np.full(len(history), np.nan)
        for i in history.succeeded:
            losses[i] = metric.loss(history.y_validation, history.validation[i], None)
        keys = [configuration_key(configuration) for configuration in history.configurations]
        return cls(history, losses, dict(zip(keys, range(len(keys)), strict=True)))

    def __call__(self, trial: Trial) -> Outcome:
        """Return what was recorded of the trial's configuration.

        Raises
        ------
        ConfigurationError
            If it was not recorded.
        """
        i = self.position_of.get(trial.key)
        if i is None:
            raise ConfigurationError(
                f"a configuration that is not in the recording {self.history.name} was suggested. Replay with free "
                "candidates (--free), or draw and decode with encoder_of(space), which knows those that are."
            )
        seconds = float(self.history.seconds[i])
        status = self.history.statuses[i]
        if status is not TrialStatus.SUCCESS:
            cause = Cause(kind=CauseKind.OTHER, text="failed when it was recorded")
            return Outcome(status=status, error=cause, duration_seconds=seconds)
        return Outcome(
            status=status,
            loss=float(self.losses[i]),
            fold_losses=(float(self.losses[i]),),
            predictions=self.history.validation[i],
            duration_seconds=seconds,
            fit_seconds=seconds,
        )


def replay(
    objective: ReplayObjective,
    metric: Metric,
    strategy: str,
    *,
    seed: int,
    n_trials: int,
    opening: Sequence[Configuration] = (),
    lookahead: int = 1,
) -> tuple[list[int], float]:
    """Run one study on a recorded history; return the positions chosen, in order, and the seconds of deciding.

    The first trials are those of the opening, if there is one.
    """
    history = objective.history
    study = _study(history, metric, make_strategy(strategy, history.encoder), seed, n_trials, opening, lookahead)
    while len(study.history) < n_trials:
        trial = study.ask()
        study.tell(trial, objective(trial))
    chosen = [objective.position_of[o.trial.key] for o in study.history]
    return chosen, float(sum(study.suggest_seconds.values()))


def replay_free(
    emulator: Emulator, metric: Metric, strategy: str, *, seed: int, n_trials: int
) -> tuple[RecordedHistory, float]:
    """Run one study whose candidates are free in the space of a recording.

    Returns
    -------
    RecordedHistory
        A recording of what was chosen, in order, with the emulator's answers.
    float
        The seconds of deciding.
    """
    history = emulator.history
    study = _study(history, metric, make_strategy(strategy, history.space), seed, n_trials)
    answers: list[tuple[Configuration, Answer]] = []
    while len(study.history) < n_trials:
        trial = study.ask()
        answer = emulator(trial.configuration)
        answers.append((trial.configuration, answer))
        study.tell(trial, outcome_of(answer, history, metric))
    return as_recording(history, answers), float(sum(study.suggest_seconds.values()))


def _study(
    history: RecordedHistory,
    metric: Metric,
    strategy: Strategy,
    seed: int,
    n_trials: int,
    opening: Sequence[Configuration] = (),
    lookahead: int = 1,
) -> Study:
    return Study(
        history.space,
        strategy,
        seed=seed,
        lookahead=lookahead,
        warm_start=opening,
        plan=WorkBudget(trials=n_trials),
        worst_loss=metric.worst_loss,
        baseline_loss=metric.loss(history.y_validation, constant_prediction(history), None),
        metric=metric,
        targets=history.y_validation.astype(np.float64),
    )


def outcome_of(answer: Answer, history: RecordedHistory, metric: Metric) -> Outcome:
    """Return what an emulator's answer is for a study."""
    if answer.predictions is None:
        cause = Cause(kind=CauseKind.OTHER, text="would have failed when it was recorded")
        return Outcome(status=answer.status, error=cause, duration_seconds=answer.seconds)
    predictions = answer.predictions[: len(history.y_validation)].astype(np.float32)
    loss = metric.loss(history.y_validation, predictions, None)
    return Outcome(
        status=answer.status,
        loss=loss,
        fold_losses=(loss,),
        predictions=predictions,
        duration_seconds=answer.seconds,
        fit_seconds=answer.seconds,
    )


def constant_prediction(history: RecordedHistory) -> np.ndarray:
    """Return the class shares or the mean of the validation rows, for every row."""
    if not history.task_type.is_classification:
        return np.full(len(history.y_validation), history.y_validation.mean())
    shares = np.bincount(history.y_validation, minlength=history.validation.shape[2]) / len(history.y_validation)
    return np.tile(shares, (len(history.y_validation), 1))


def ensemble_curve(
    history: RecordedHistory, metric: Metric, chosen: list[int], *, every: int = EVERY, size: int = 25
) -> list[dict[str, float]]:
    """Return the losses of the ensemble after every few trials.

    Parameters
    ----------
    history : RecordedHistory
        What was replayed.
    metric : Metric
        Chooses the ensemble on the validation rows and judges it.
    chosen : list of int
        Positions of the trials, in order.
    every, size : int
        Trials between two rows; members of the ensemble, counted with repetition.

    Returns
    -------
    list of dict
        ``trials``; losses ``validation`` and ``test`` of the ensemble, ``single_validation`` and ``single_test`` of the
        best single configuration; ``members``, the distinct ones; ``seconds`` the configurations took. Rows begin when
        one configuration has succeeded.
    """
    return ensemble_losses(history, metric, chosen, range(every, len(chosen) + 1, every), size=size)


def ensemble_losses(
    history: RecordedHistory, metric: Metric, chosen: Sequence[int], counts: Iterable[int], *, size: int = 25
) -> list[dict[str, float]]:
    """Return the losses of the ensemble after some numbers of trials, ascending; see `ensemble_curve`."""
    succeeded = set(history.succeeded.tolist())
    selection = IncrementalSelection(history.y_validation, metric, size=size, tie="secondary")
    rows = []
    for n in counts:
        there = [i for i in dict.fromkeys(chosen[:n]) if i in succeeded]
        if not there:
            continue
        result = selection.select(there, [history.validation[i] for i in there])
        test = sum(w * history.test[i].astype(np.float64) for i, w in zip(there, result.weights, strict=True) if w > 0)
        # The first step of the selection takes the best single configuration.
        best = there[int(result.order[0])]
        rows.append(
            {
                "trials": n,
                "validation": float(result.trajectory[-1]),
                "test": metric.loss(history.y_test, test, None),
                "single_validation": float(result.trajectory[0]),
                "single_test": metric.loss(history.y_test, history.test[best], None),
                "members": len(result.members),
                "seconds": float(history.seconds[chosen[:n]].sum()),
            }
        )
    return rows
