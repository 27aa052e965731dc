"""The contracts that all parts implement. Read this first.

A *strategy* decides the next trial from the history, an *executor* runs it, an *objective* evaluates it, a *diversity
surrogate* predicts how well configurations complement each other. None of them keeps state that could not be dropped at
any moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

import numpy as np
from ConfigSpace import Configuration

from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.records.loss import Loss
from cashmere.records.trial import History, Outcome, Suggestion, Trial


@runtime_checkable
class Strategy(Protocol):
    """Decide which configuration to evaluate next, from the history alone."""

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion | None:
        """Return the next decision; None if it cannot be taken before more pending trials are observed.

        A pure function: the same history and the same state of `rng` give the same suggestion, in any process.
        It must survive failed observations, avoid the configurations in ``history.seen`` and never read clocks.
        After None it is asked again with one more outcome; without pending trials it must return a suggestion.

        Parameters
        ----------
        history : History
            All committed observations and the pending trials.
        rng : numpy.random.Generator
            The only source of randomness; created for this trial from the study's seed and the trial's number.
        """
        ...


@runtime_checkable
class BatchStrategy(Protocol):
    """An addition to `Strategy` for strategies that can take many decisions from one look at the history.

    A study asks for batches where hundreds of workers wait for decisions (`cashmere.study.Study`).
    """

    @property
    def decides_in_batches(self) -> bool:
        """Whether the strategy can do so with its options."""
        ...

    def suggest_batch(self, history: History, rng: np.random.Generator, n: int) -> Sequence[Suggestion]:
        """Return the next n decisions, which differ from each other; a pure function like `Strategy.suggest`.

        Parameters
        ----------
        history : History
            As for `Strategy.suggest`.
        rng : numpy.random.Generator
            The only source of randomness.
        n : int
            How many, at least 1.
        """
        ...


@runtime_checkable
class MetricCheck(Protocol):
    """An addition to `Strategy` for strategies whose options do not suit every metric."""

    def check_metric(self, metric: Loss) -> None:
        """Raise before the first trial if the strategy cannot use a metric.

        Raises
        ------
        InvalidParameterError
            If an option does not suit the metric; the message names it.
        """
        ...


@runtime_checkable
class TableAware(Protocol):
    """An addition to `Strategy` for strategies that have learned from other tables and look for similar ones."""

    def for_table(self, meta_features: Mapping[str, float]) -> Strategy:
        """Return the strategy for the table at hand.

        Parameters
        ----------
        meta_features : mapping of str to float
            From `cashmere.metalearning.meta_features`; NaN where a number is undefined.
        """
        ...


class DiversitySurrogate(Protocol):
    """Predict how well the predictions of a configuration complement those of the observations."""

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
            Their predictions for the validation rows.
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
            Each sample is coherent over all pairs.
        """
        ...


class Objective(Protocol):
    """The function that a trial runs; it must be picklable by cloudpickle and is called inside a worker."""

    def __call__(self, trial: Trial) -> Outcome | float:
        """Evaluate the trial's configuration: return its outcome, or just its loss.

        Exceptions are turned into failed outcomes by the executor.
        """
        ...


class Supervisor(Protocol):
    """What a running trial can ask, and report before it has finished."""

    def seconds_left(self) -> float:
        """Return the seconds until the trial will be stopped; infinity without a limit."""
        ...

    def wants_checkpoint(self) -> bool:
        """Return whether `keep` is worth its time now."""
        ...

    def keep(self, outcome: Outcome) -> None:
        """Hand over what the trial has achieved so far, which becomes its outcome if it is stopped."""
        ...


@runtime_checkable
class SupervisedObjective(Protocol):
    """An addition to `Objective` for functions whose trials have a result before they end."""

    def has_checkpoints(self, configuration: Configuration) -> bool:
        """Return whether trials of a configuration have such results."""
        ...

    def run(self, trial: Trial, supervisor: Supervisor) -> Outcome:
        """Evaluate the trial's configuration, as `Objective.__call__` does."""
        ...


@runtime_checkable
class PortableObjective(Protocol):
    """An addition to `Objective` for functions that read files, so that their trials can run on other machines."""

    def files(self) -> Mapping[str, Path]:
        """Return the files that trials read, by their paths with slashes below a folder."""
        ...

    def in_folder(self, folder: Path) -> Objective:
        """Return the same function for a machine that has the files in this folder."""
        ...


class Executor(Protocol):
    """Run trials, at most `n_workers` at a time."""

    n_workers: int

    def submit(self, objective: Objective, trial: Trial) -> Future[Outcome]:
        """Queue a trial.

        The future always ends with an `Outcome`, failures included; it never raises, except
        `concurrent.futures.CancelledError` after `shutdown`, and `ClusterError` if no trial can be run any more.

        Raises
        ------
        UsageError
            After `shutdown`, if trials run in other processes.
        """
        ...

    def shutdown(self) -> None:
        """Stop immediately: kill running trials with their children, cancel queued ones."""
        ...
