"""The contracts everything else plugs into. Read this first.

A *strategy* decides the next trial from the history, an *executor* runs it, an *objective* is what it runs, a
*diversity surrogate* predicts how configurations go together. None of them keeps state that could not be
thrown away at any moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol, Self, runtime_checkable

import numpy as np

from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.records.loss import Loss
from cashmere.records.trial import History, Outcome, Suggestion, Trial


@runtime_checkable
class Strategy(Protocol):
    """Decides which configuration to evaluate next, from the history alone."""

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion | None:
        """Return the next decision; None if it cannot be taken before more pending trials are observed.

        A pure function: the same history and the same state of `rng` give the same suggestion, in any process.
        It must survive failed observations, avoid the configurations in ``history.seen`` and never read clocks.
        Who answers None is asked again with one more outcome; without pending trials there must be an answer.

        Parameters
        ----------
        history : History
            All committed observations and the pending trials.
        rng : numpy.random.Generator
            The only source of randomness; made for this trial from the study's seed and the trial's number.
        """
        ...


@runtime_checkable
class MetricCheck(Protocol):
    """What a strategy offers besides `Strategy` if its options do not suit every metric."""

    def check_metric(self, metric: Loss) -> None:
        """Refuse a metric, before the first trial.

        Raises
        ------
        InvalidParameterError
            Naming the option that does not suit the metric.
        """
        ...


@runtime_checkable
class TableAware(Protocol):
    """What a strategy offers besides `Strategy` if it has learned from other tables and looks for similar ones."""

    def for_table(self, meta_features: Mapping[str, float]) -> Strategy:
        """Return the strategy for the table at hand.

        Parameters
        ----------
        meta_features : mapping of str to float
            From `cashmere.metalearning.meta_features`; NaN where a number is not defined.
        """
        ...


class DiversitySurrogate(Protocol):
    """Predicts how the predictions of an encoded configuration go together with those of the observations."""

    def fit(
        self,
        X: FloatArray,
        predictions: Sequence[FloatArray],
        y: AnyArray,
        rng: np.random.Generator,
        *,
        row_weights: FloatArray | None = None,
    ) -> Self:
        """Learn from successful observations.

        Parameters
        ----------
        X : (n, d) array
            Their encoded configurations.
        predictions : sequence of n arrays (n_rows, n_classes) or (n_rows,)
            Their predictions of the validation rows.
        y : (n_rows,) array
            Targets of these rows.
        rng : numpy.random.Generator
            Source of randomness.
        row_weights : (n_rows,) array, optional
            Weights of these rows.
        """
        ...

    def sample_pairs(self, candidates: FloatArray, members: IntArray) -> FloatArray:
        """Draw the measure between candidates and some of the observations.

        Parameters
        ----------
        candidates : (n_candidates, d) array
            Encoded configurations.
        members : (n_members,) int array
            Positions among the observations given to `fit`.

        Returns
        -------
        (n_samples, n_candidates, n_members) array
            Each sample is coherent: it holds for all pairs together.
        """
        ...


class Objective(Protocol):
    """What a trial runs; it must be picklable by cloudpickle and is called inside a worker."""

    def __call__(self, trial: Trial) -> Outcome:
        """Evaluate the trial's configuration. Exceptions are turned into failed outcomes by the executor."""
        ...


class Executor(Protocol):
    """Runs trials, somewhere, at most `n_workers` at a time."""

    n_workers: int

    def submit(self, objective: Objective, trial: Trial) -> Future[Outcome]:
        """Queue a trial.

        The future always ends with an `Outcome`, failures included; it never raises, except
        `concurrent.futures.CancelledError` after `shutdown`.
        """
        ...

    def shutdown(self) -> None:
        """Stop at once: running trials are killed with their children, queued ones cancelled."""
        ...
