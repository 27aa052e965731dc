"""Answers for any configuration of a space, made from the recorded ones.

A forest of fully grown trees learns from the recorded configurations what they predict: the main components of the
log probabilities, or of the values, of all recorded rows. A new configuration falls into leaves that each hold a
recorded one or several. How often it meets each of them gives a weight; its predictions are the weighted mean of theirs
in log probabilities. Weights are raised to a power first, so that the most similar ones count most. A recorded
configuration is answered as recorded. `python -m benchmarks emulator` measures how good the answers are, on
configurations that were left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from ConfigSpace import Configuration

from benchmarks.recordings.recorded_history import RecordedHistory
from cashmere.base.arrays import FloatArray, IntArray
from cashmere.records.trial import TrialStatus, configuration_key
from cashmere.space.encoding.encoder import SpaceEncoder

N_TREES, N_COMPONENTS = 100, 20
POWER = 2.0
"""Power of the weights."""

_LEAST = 5e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a configuration would have done.

    Attributes
    ----------
    status : TrialStatus
        Success or timeout.
    predictions : (n_rows, n_classes) or (n_rows,) array or None
        For the validation rows, then the test rows; None for failures.
    seconds : float
        CPU seconds.
    """

    status: TrialStatus
    predictions: FloatArray | None
    seconds: float


class Emulator:
    """Answers any configuration of a recording's space.

    Parameters
    ----------
    history : RecordedHistory
        What is known.
    known : sequence of int, optional
        Positions to learn from, all by default.
    power : float
        Power of the weights.

    Attributes
    ----------
    history : RecordedHistory
        The recording.
    """

    def __init__(self, history: RecordedHistory, known: IntArray | None = None, *, power: float = POWER) -> None:
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        positions = np.arange(len(history)) if known is None else np.asarray(known)
        self._power, self._is_classification = power, history.task_type.is_classification
        self._encoder = SpaceEncoder(history.space)
        X = self._encoder.encode([history.configurations[i] for i in positions]).astype(np.float32)
        succeeded = np.isin(positions, history.succeeded)
        self._recorded = {configuration_key(history.configurations[i]): int(i) for i in positions}
        self.history = history
        self._successes = positions[succeeded]
        both = np.concatenate([history.validation, history.test], axis=1)[self._successes]
        self._scores = _to_scores(both) if self._is_classification else both.astype(np.float32)
        targets = main_components(self._scores.reshape(len(both), -1), N_COMPONENTS)
        settings = {"n_estimators": N_TREES, "random_state": 0}
        self._forest = ExtraTreesRegressor(**settings).fit(X[succeeded], targets)
        self._leaves = self._forest.apply(X[succeeded])
        self._costs = ExtraTreesRegressor(min_samples_leaf=2, **settings).fit(
            X, np.log(np.maximum(history.seconds[positions], 1e-3))
        )
        self._failures = None
        if not succeeded.all():
            self._failures = ExtraTreesClassifier(min_samples_leaf=3, **settings).fit(X, ~succeeded)

    def __call__(self, configuration: Configuration) -> Answer:
        """Answer one configuration."""
        if (i := self._recorded.get(configuration_key(configuration))) is not None:
            status, seconds = self.history.statuses[i], float(self.history.seconds[i])
            if status is not TrialStatus.SUCCESS:
                return Answer(status=status, predictions=None, seconds=seconds)
            both = np.concatenate([self.history.validation[i], self.history.test[i]])
            return Answer(status=status, predictions=both, seconds=seconds)
        x = self._encoder.encode([configuration]).astype(np.float32)
        seconds = float(np.exp(_mean_output(self._costs, x)))
        if self._failures is not None and _mean_output(self._failures, x) > 0.5:
            return Answer(status=TrialStatus.TIMEOUT, predictions=None, seconds=seconds)
        meets = self._leaves == [tree.tree_.apply(x)[0] for tree in self._forest.estimators_]
        weights = (meets / meets.sum(axis=0)).mean(axis=1) ** self._power
        there = np.flatnonzero(weights)
        mean = np.tensordot(weights[there] / weights[there].sum(), self._scores[there], axes=1)
        return Answer(
            status=TrialStatus.SUCCESS,
            predictions=_from_scores(mean) if self._is_classification else mean.astype(np.float32),
            seconds=seconds,
        )


def main_components(values: FloatArray, n: int) -> FloatArray:
    """Return the coordinates of rows along the directions in which they vary most, ``(n_rows, n)``."""
    centred = values - values.mean(axis=0)
    # Rows are fewer than columns: their inner products are the smaller matrix.
    eigenvalues, vectors = np.linalg.eigh(np.asarray(centred @ centred.T, dtype=np.float64))
    return np.asarray(vectors[:, ::-1][:, :n] * np.sqrt(np.maximum(eigenvalues[::-1][:n], 0)))


def _mean_output(forest: Any, x: FloatArray) -> float:
    """Return the last output of a forest for one row: ``predict``, or the probability of the last class.

    Equal to what the forest itself returns, which for each tree prepares a task of a thread pool: that took longer than
    the trees, and more than half of a replay of `bo`.
    """
    return float(sum(tree.tree_.predict(x)[0, -1] for tree in forest.estimators_) / len(forest.estimators_))


def _to_scores(probabilities: FloatArray) -> FloatArray:
    return np.log(np.maximum(probabilities, _LEAST)).astype(np.float32)


def _from_scores(scores: FloatArray) -> FloatArray:
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True), dtype=np.float32)


def as_recording(history: RecordedHistory, answers: list[tuple[Configuration, Answer]]) -> RecordedHistory:
    """Return a recording of configurations and their answers, in the order in which they were asked."""
    n_validation = len(history.y_validation)
    shape = (len(answers), n_validation + len(history.y_test), *history.validation.shape[2:])
    predictions = np.full(shape, np.nan, dtype=np.float32)
    for i, (_, answer) in enumerate(answers):
        if answer.predictions is not None:
            predictions[i] = answer.predictions
    return replace(
        history,
        configurations=tuple(configuration for configuration, _ in answers),
        statuses=tuple(answer.status for _, answer in answers),
        seconds=np.array([answer.seconds for _, answer in answers]),
        validation=predictions[:, :n_validation],
        test=predictions[:, n_validation:],
        searches=(),
        paths=(),
        causes=(),
    )
