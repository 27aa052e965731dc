"""Check that what a trial returns can be stored and used as its outcome."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import cast

import numpy as np

from cashmere.execution.messages import unpack
from cashmere.records.added_features import AddedFeatures
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.path import FollowedPath
from cashmere.records.trial import Outcome, TrialStatus

_MOST_NUMBERS = 10_000
"""Maximum number of folds, and of positions on a path; a store with more could not be read."""

_LONGEST_NAME = 1000

_LARGEST, _MOST_SECONDS = 1.7e308, 1e12
"""Largest numbers that a store reads, see `cashmere.base.json_files`."""


def restored_outcome(answer: bytes) -> Outcome:
    """Return the outcome that a worker has sent, or a failure that says why it cannot be used."""
    try:
        outcome = unpack(answer)
    except Exception as error:
        return Outcome(status=TrialStatus.ERROR, error=_unusable_because_of(error))
    problem = why_unusable(outcome)
    return outcome if problem is None else Outcome(status=TrialStatus.ERROR, error=problem)


def restored_checkpoint(answer: bytes) -> Outcome:
    """Return a checkpoint that a worker has sent, or a failure that says why it cannot be used."""
    outcome = restored_outcome(answer)
    if outcome.status is TrialStatus.SUCCESS:
        return outcome
    problem = outcome.error
    if problem is None or problem.kind not in (CauseKind.UNUSABLE, CauseKind.NOT_FINITE):
        problem = _unusable(f"its status is {outcome.status.value}, not success")
    return Outcome(status=TrialStatus.ERROR, error=replace(problem, text=f"checkpoint: {problem.text}"))


def outcome_of(result: Outcome | float) -> Outcome:
    """Return a number as a successful outcome with this loss, anything else as it is: `why_unusable` judges that.

    Examples
    --------
    >>> outcome_of(0.25).loss
    0.25
    """
    if isinstance(result, Real) and not isinstance(result, bool):
        return Outcome(status=TrialStatus.SUCCESS, loss=float(result))
    return cast(Outcome, result)


def why_unusable(outcome: object) -> Cause | None:
    """Return why a study cannot store an outcome or a strategy cannot use it; None if they can.

    Whatever reading a store refuses must be refused here: a single such trial would make the run unreadable. The study
    checks the number of predictions, because it knows the validation rows.

    Parameters
    ----------
    outcome : object
        What a trial returned, of any type.
    """
    try:
        return _problem_of(outcome)
    except Exception as error:  # parts of the wrong type
        return _unusable_because_of(error)


def _problem_of(outcome: object) -> Cause | None:
    if not isinstance(outcome, Outcome):
        example = "Outcome(status=TrialStatus.SUCCESS, loss=...)"
        return _unusable(
            f"it is of the type {type(outcome).__name__}, neither a number nor an Outcome such as {example}"
        )
    if not isinstance(outcome.status, TrialStatus):
        return _unusable(f"its status is of the type {type(outcome.status).__name__}, not a TrialStatus")
    seconds = (outcome.duration_seconds, outcome.fit_seconds, outcome.predict_seconds)
    if not all(_is_finite(value) and 0 <= value <= _MOST_SECONDS for value in seconds):
        return _unusable(f"its seconds are no numbers from 0 to {_MOST_SECONDS:g}")
    if not _is_finite(memory := outcome.memory_mib or 0.0) or memory < 0:
        return _unusable("its memory is no finite number of at least 0")
    if not isinstance(outcome.fold_losses, tuple) or len(outcome.fold_losses) > _MOST_NUMBERS:
        return _unusable(f"fold_losses is no tuple of at most {_MOST_NUMBERS} numbers")
    if outcome.status is TrialStatus.SUCCESS and not _is_finite(outcome.loss):
        return Cause(kind=CauseKind.NOT_FINITE, text=f"the loss is {outcome.loss}, not a finite number")
    if outcome.loss is not None and not _is_finite(outcome.loss):
        return _unusable(f"its status is {outcome.status.value}, and its loss {outcome.loss}, not a finite number")
    if not all(_is_number(loss) for loss in outcome.fold_losses):
        return _unusable("fold_losses holds something else than numbers")
    if not isinstance(outcome.model, bytes | None):
        return _unusable(f"its model is of the type {type(outcome.model).__name__}, not bytes")
    return (
        _why_cause_is_unusable("error", outcome.error)
        or _why_cause_is_unusable("cut_short", outcome.cut_short)
        or _why_predictions_are_unusable(outcome.predictions)
        or _why_path_is_unusable(outcome.path)
        or _why_features_are_unusable(outcome.features)
    )


def _why_cause_is_unusable(name: str, cause: object) -> Cause | None:
    if cause is None:
        return None
    if not isinstance(cause, Cause):
        return _unusable(f"{name} is of the type {type(cause).__name__}, not a Cause")
    has_numbers = all(isinstance(value, int | float | None) for value in (cause.limit, cause.used))
    if not isinstance(cause.kind, CauseKind) or not isinstance(cause.text, str) or not has_numbers:
        return _unusable(f"{name} holds something else than a CauseKind, a text and numbers")
    return None


def _why_predictions_are_unusable(predictions: object) -> Cause | None:
    if predictions is None:
        return None
    if not isinstance(predictions, np.ndarray) or predictions.dtype.kind != "f":
        found = predictions.dtype if isinstance(predictions, np.ndarray) else type(predictions).__name__
        return _unusable(f"its predictions are {found}, not an array of floating point numbers")
    if predictions.ndim not in (1, 2) or predictions.size == 0:
        return _unusable(f"its predictions have the shape {predictions.shape}, not (n_validation,) or with n_classes")
    if not np.isfinite(predictions).all():
        return Cause(kind=CauseKind.NOT_FINITE, text="its predictions hold NaN or infinity")
    return None


def _why_path_is_unusable(path: object) -> Cause | None:
    if path is None:
        return None
    if not isinstance(path, FollowedPath) or not isinstance(path.parameter, str):
        return _unusable(f"its path is of the type {type(path).__name__}, not a FollowedPath")
    positions, losses = path.positions, path.losses
    if len(path.parameter) > _LONGEST_NAME or not len(positions) == len(losses) <= _MOST_NUMBERS:
        return _unusable("its path has a long name, too many positions, or not one loss for each")
    if not all(map(_is_finite, (*positions, *losses))) or path.chosen not in positions:
        return _unusable("its path holds something else than finite numbers, or chose none of its positions")
    return None


def _why_features_are_unusable(added: object) -> Cause | None:
    if added is None:
        return None
    if not isinstance(added, AddedFeatures):
        return _unusable(f"its features are of the type {type(added).__name__}, not AddedFeatures")
    if not isinstance(added.columns, int) or not 0 < added.columns <= _MOST_NUMBERS:
        return _unusable("its features are no number of columns")
    if not _is_finite(added.seconds) or not 0 <= added.seconds <= _MOST_SECONDS:
        return _unusable("its features hold something else than seconds")
    return None


def _unusable_because_of(error: Exception) -> Cause:
    return _unusable(f"{type(error).__name__}: {error}"[:1000])


def _unusable(text: str) -> Cause:
    return Cause(kind=CauseKind.UNUSABLE, text=f"no usable outcome: {text}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    return _is_number(value) and abs(float(value)) <= _LARGEST  # type: ignore[arg-type]  # a number
