"""Records of a search: what to run (`Trial`), what happened (`Observation`), and all in order (`History`)."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import Float64, FloatArray
from cashmere.records.added_features import AddedFeatures
from cashmere.records.cause import Cause
from cashmere.records.loss import Loss
from cashmere.records.origin import Origin
from cashmere.records.path import FollowedPath
from cashmere.records.time_left import TimeLeft
from cashmere.records.work_budget import WorkBudget

if TYPE_CHECKING:  # predicting needs no ConfigSpace
    import pandas as pd
    from ConfigSpace import Configuration

FOLD_RACING = ("none", "forgiving")
"""When to stop trials early, see `cashmere.study.Study`."""


UNKNOWN = Origin.other("")
"""The origin of configurations whose strategy does not name one."""


class TrialStatus(StrEnum):
    """How a trial ended."""

    SUCCESS = "success"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    ERROR = "error"
    STOPPED = "stopped"
    """Stopped early, after some of its folds (`Trial.stop_above`): neither a score nor a failure."""
    ABORTED = "aborted"
    """Stopped by the user or the deadline; never stored, but decided and run again on resume."""


def configuration_key(configuration: Configuration) -> str:
    """Return a short text that is equal for configurations with equal active values.

    Returns
    -------
    str
        16 hexadecimal digits (64 bits of SHA-256 over the sorted active values).
    """
    values = {name: value.item() if isinstance(value, np.generic) else value for name, value in configuration.items()}
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """The decision of a strategy.

    Attributes
    ----------
    configuration : Configuration
        The point of the search space to evaluate.
    origin : Origin
        How it was chosen; a string is accepted, too.
    fidelity : float
        Share of the training rows, in (0, 1]. A study with rungs of rows sets it.
    """

    configuration: Configuration
    origin: Origin = UNKNOWN
    fidelity: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.origin, str):  # custom strategies may pass a text
            object.__setattr__(self, "origin", Origin.parse(self.origin))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A numbered decision to evaluate a configuration.

    Attributes
    ----------
    number : int
        Position in the study, from 0.
    configuration : Configuration
        The point of the search space.
    seed : int
        Seed of the learner, in [0, 2**31).
    origin : Origin
        Copied from the `Suggestion`.
    fidelity : float
        Share of the training rows, in (0, 1].
    stop_above : float
        The objective may stop once the mean loss of the folds so far exceeds this; infinity means never. Not stored.
    """

    number: int
    configuration: Configuration
    seed: int
    origin: Origin = UNKNOWN
    fidelity: float = 1.0
    stop_above: float = float("inf")

    def __post_init__(self) -> None:
        if self.number < 0 or not 0 < self.fidelity <= 1:
            raise ValueError(
                f"number must be at least 0 and fidelity in (0, 1]; got {self.number} and {self.fidelity}."
            )

    @property
    def key(self) -> str:
        """Key of the configuration, see `configuration_key`."""
        return configuration_key(self.configuration)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a trial, as returned by an executor.

    Attributes
    ----------
    status : TrialStatus
        How it ended.
    loss : float or None
        Mean validation loss over all folds; None unless the status is success.
    fold_losses : tuple of float
        One loss per fold, in fold order.
    predictions : array or None
        Out-of-fold (or holdout) predictions in validation-row order, float32: class probabilities
        ``(n_validation, n_classes)`` or values ``(n_validation,)``.
    model : bytes or None
        The fitted fold models, serialised by `cashmere.model.archives`.
    duration_seconds, fit_seconds, predict_seconds : float
        Wall time of the whole trial, of fitting, and of predicting the validation rows.
    memory_mib : float or None
        Peak resident memory, measured from outside.
    error : Cause or None
        Cause of a failure. A string is accepted, too: a summary in the first line, possibly followed by a traceback.
    path : FollowedPath or None
        The path that the trial followed, if its algorithm has a path parameter.
    cut_short : Cause or None
        What stopped a successful trial before its end; loss, predictions and model are those of its last checkpoint.
    features : AddedFeatures or None
        Cost of the columns that it added to its table, if any.
    """

    status: TrialStatus
    loss: float | None = None
    fold_losses: tuple[float, ...] = ()
    predictions: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    model: bytes | None = field(default=None, repr=False)
    duration_seconds: float = 0.0
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    memory_mib: float | None = None
    error: Cause | None = None
    path: FollowedPath | None = None
    cut_short: Cause | None = None
    features: AddedFeatures | None = None

    def __post_init__(self) -> None:
        if isinstance(self.error, str):  # custom objectives may pass a text
            object.__setattr__(self, "error", Cause.other(self.error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A trial and its outcome, as kept in the history.

    Attributes
    ----------
    trial : Trial
        What was run.
    outcome : Outcome
        What happened. Fitted models are left out; they are only on disk.
    finished_at : float
        Seconds since the study began, summed over resumes. For reports; strategies must not read it.
    """

    trial: Trial
    outcome: Outcome
    finished_at: float = 0.0

    @property
    def succeeded(self) -> bool:
        """Whether the trial finished with a loss."""
        return self.outcome.status is TrialStatus.SUCCESS

    @property
    def status(self) -> TrialStatus:
        """How the trial ended."""
        return self.outcome.status

    @property
    def loss(self) -> float | None:
        """Mean validation loss over all folds; None unless the trial succeeded."""
        return self.outcome.loss

    @property
    def fold_losses(self) -> tuple[float, ...]:
        """One loss per fold, in fold order."""
        return self.outcome.fold_losses

    @property
    def predictions(self) -> NDArray[np.float32] | None:
        """Out-of-fold predictions, read-only; in very large runs memory-mapped from the run directory."""
        return self.outcome.predictions

    @property
    def duration_seconds(self) -> float:
        """Wall time of the whole trial."""
        return self.outcome.duration_seconds

    @property
    def fit_seconds(self) -> float:
        """Wall time of fitting."""
        return self.outcome.fit_seconds

    @property
    def predict_seconds(self) -> float:
        """Wall time of predicting the validation rows."""
        return self.outcome.predict_seconds

    @property
    def memory_mib(self) -> float | None:
        """Peak resident memory, measured from outside."""
        return self.outcome.memory_mib

    @property
    def error(self) -> Cause | None:
        """Cause of a failure, see `Outcome`."""
        return self.outcome.error


@dataclass(frozen=True, kw_only=True)
class History(Sequence[Observation]):
    """Ordered, read-only observations of a study: everything a strategy may use.

    Attributes
    ----------
    observations : tuple of Observation
        Committed observations in trial order, including failures.
    pending : tuple of Trial
        Trials that are decided but whose outcomes may not be used yet.
    worst_loss : float or None
        Largest possible loss of the metric; None if it is unbounded.
    baseline_loss : float
        Loss of the constant predictor; NaN if unknown.
    metric : Loss or None
        The metric to minimise. Strategies that search for an ensemble need it, `targets` and the observations'
        predictions.
    targets : (n_validation,) array or None
        Targets of the validation rows: class codes, or numbers for regression.
    row_weights : (n_validation,) array or None
        Weights of the validation rows.
    budget : WorkBudget or None
        Total work planned for the study; None if unknown.
    time_left : TimeLeft or None
        Time left, if the budget is a time without a number of trials: strategies then weigh the cost of trials.
        Otherwise None.
    """

    observations: tuple[Observation, ...] = ()
    pending: tuple[Trial, ...] = ()
    worst_loss: float | None = None
    baseline_loss: float = float("nan")
    metric: Loss | None = field(default=None, compare=False)
    targets: Float64 | None = field(default=None, repr=False, compare=False)
    row_weights: Float64 | None = field(default=None, repr=False, compare=False)
    budget: WorkBudget | None = None
    time_left: TimeLeft | None = None

    @overload
    def __getitem__(self, index: int) -> Observation: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Observation, ...]: ...
    def __getitem__(self, index: int | slice) -> Observation | tuple[Observation, ...]:
        return self.observations[index]

    def __len__(self) -> int:
        return len(self.observations)

    def __iter__(self) -> Iterator[Observation]:
        return iter(self.observations)

    @functools.cached_property
    def successes(self) -> tuple[Observation, ...]:
        """Observations with a loss."""
        return tuple(o for o in self.observations if o.succeeded)

    @functools.cached_property
    def failures(self) -> tuple[Observation, ...]:
        """Observations that failed: error, timeout, memory."""
        return tuple(o for o in self.observations if not o.succeeded and o.status is not TrialStatus.STOPPED)

    @functools.cached_property
    def incumbent(self) -> Observation | None:
        """The successful observation with the lowest loss (the earliest in a tie), or None."""
        return min(self.successes, key=lambda o: (o.loss, o.trial.number), default=None)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Trials of all observations, then the pending ones: everything decided so far."""
        return (*(o.trial for o in self.observations), *self.pending)

    @functools.cached_property
    def seen(self) -> frozenset[str]:
        """Keys of all configurations decided so far; none of them should be suggested again."""
        return frozenset(trial.key for trial in self.trials)

    @functools.cached_property
    def failure_loss(self) -> float:
        """Loss that stands for a failed trial (docs/papers/problem.md#failed-trials).

        The worst possible loss of a bounded metric; else the worst finite loss seen, at least that of the
        constant predictor. This is the one place where failures get a number.
        """
        if self.worst_loss is not None:
            return self.worst_loss
        finite = [o.loss for o in self.successes if o.loss is not None and np.isfinite(o.loss)]
        if np.isfinite(self.baseline_loss):
            finite.append(self.baseline_loss)
        return max(finite, default=1.0)

    @functools.cached_property
    def stopped_loss(self) -> float:
        """Loss that stands for a trial that was stopped early: the worst finite loss of a success."""
        return max(
            (o.loss for o in self.successes if o.loss is not None and np.isfinite(o.loss)), default=self.failure_loss
        )

    @functools.cached_property
    def losses(self) -> FloatArray:
        """Loss of every observation, shape ``(n_observations,)``; see `failure_loss` and `stopped_loss`."""
        losses = [o.loss if o.loss is not None else self._substitute(o) for o in self.observations]
        return np.array(losses, dtype=np.float64)

    def frame(self) -> pd.DataFrame:
        """Return the observations as a data frame, see `cashmere.records.trials_frame.trials_frame`."""
        from cashmere.records.trials_frame import trials_frame

        names = ("status", "loss", "fold_losses", "duration_seconds", "fit_seconds", "memory_mib", "error")
        return trials_frame(
            {
                **{name: getattr(o.trial, name) for name in ("number", "configuration", "origin", "seed", "fidelity")},
                **{name: getattr(o, name) for name in names},
                "finished_at": o.finished_at,
            }
            for o in self.observations
        )

    def _substitute(self, observation: Observation) -> float:
        return self.stopped_loss if observation.status is TrialStatus.STOPPED else self.failure_loss
