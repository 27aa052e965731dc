"""Members of the final ensemble, fitted again on other splits of the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace

import numpy as np

from cashmere.data.fold import validation_rows
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.model.files import Encoders
from cashmere.protocols import Executor
from cashmere.records.budget import Budget
from cashmere.records.trial import History, Observation, Outcome
from cashmere.run.ensemble_builder import BASELINE
from cashmere.run.members import Members
from cashmere.run.run_directory import RunDirectory

_MOST_ROWS = 1000
"""Tables with more rows are not repeated by default: docs/benchmarks.md#spare-time."""

_MOST = 2
"""Default number of repeats."""

_SHARE = 0.2
"""Largest share of a time budget for them."""

_MARGIN = 1.5
"""A repeat begins if this many times the seconds of its trial are left. If that holds for none, the shortest that may
still end in time begins: hardly anything else could use the last seconds."""

_POLL_SECONDS = 0.05


class Repeats:
    """Fits the members of an ensemble again on other splits, and adds the models of these to them.

    With few rows, the models of one split differ from those of another by chance. A member with the models of several
    splits predicts their mean.

    Parameters
    ----------
    run : RunDirectory
        Open.
    budget : Budget or None
        Budget of this call; None if nothing is left.
    members : Members
        Keeps the models.
    encoders : Encoders
        Encoders of the folds of the first split.

    Attributes
    ----------
    most : int
        Maximum number of other splits on which members are fitted.
    """

    def __init__(self, run: RunDirectory, budget: Budget | None, members: Members, encoders: Encoders) -> None:
        self._run, self._budget, self._members = run, budget, members
        self.most = _how_many(run, budget)
        self._encoders = {0: encoders}

    def encoders(self, n_splits: int) -> Encoders:
        """Return the encoders of the first splits, fold after fold."""
        return [fold for split in range(n_splits) for fold in self._encoders_of(split)]

    def _encoders_of(self, split: int) -> Encoders:
        if split not in self._encoders:
            run, seed = self._run, self._seed(split)
            task_type = run.target.task_type
            self._encoders[split] = prepare_folds(
                self._objective(split).folder,
                run.coded_table,
                run.rows.y,
                make_folds(run.rows.y, task_type, run.settings.resampling, seed=seed, structure=run.rows.structure),
                sorted(run.space.encodings),
                task_type=task_type,
                seed=seed,
                n_classes=run.target.n_classes,
                weight=run.rows.weight,
                structure=run.rows.structure,
            )[1]
        return self._encoders[split]

    def _seed(self, split: int) -> int:
        return int(np.random.SeedSequence([self._run.settings.seed, split]).generate_state(1)[0])

    def _objective(self, split: int, n_threads: int = 1) -> CrossValidationObjective:
        folder = (self._run.folder / "prepared" / f"split{split}").absolute()
        return CrossValidationObjective(
            folder=folder, space=self._run.space, metric=self._run.metric, n_threads=n_threads
        )

    def reserved_seconds(self, history: History, weights: Mapping[int, float]) -> float:
        """Return how many seconds the search should leave for repeats; 0 without a time budget."""
        if self._budget is None or self._budget.seconds is None:
            return 0.0
        seconds = sum(o.duration_seconds for _, o in self._waiting(history, weights))
        return min(_SHARE * self._budget.seconds, seconds / self._run.settings.workers)

    def fit(
        self,
        history: History,
        weights: Mapping[int, float],
        executor: Executor,
        *,
        n_busy: Callable[[], int],
        seconds_left: Callable[[], float],
        stop: Callable[[], bool],
        on_tick: Callable[[], object],
    ) -> None:
        """Fit members on other splits, largest weights first, until all are done or the time is over.

        Trials that are still running have until then, too. A repeat that ends too late to be kept in time is dropped.

        Parameters
        ----------
        history : History
            All trials.
        weights : mapping
            Weight of each member by trial number.
        executor : Executor
            Fits them.
        n_busy : callable
            Returns how many of its workers still run trials.
        seconds_left : callable
            Returns the wall-clock seconds left for this step.
        stop : callable
            Returns whether to give up.
        on_tick : callable
            Called about twenty times a second.
        """
        waiting = list(self._waiting(history, weights))
        running: dict[Future[Outcome], Observation] = {}
        while seconds_left() > 0 and not stop():
            while len(running) + n_busy() < executor.n_workers:
                ready = {
                    position: member.duration_seconds + self._members.adding_seconds(member.trial.number)
                    for position, (split, member) in enumerate(waiting)
                    if self._members.splits(member.trial.number) == split  # splits of one member are added in order
                    and not any(member is each for each in running.values())
                }
                if (position := next_in_time(ready, seconds_left())) is None:
                    break
                split, observation = waiting.pop(position)
                self._encoders_of(split)
                objective = self._objective(split, getattr(executor, "n_threads", 1))
                trial = replace(observation.trial, stop_above=float("inf"))
                running[executor.submit(objective, trial)] = observation
            if not running:
                if not n_busy():
                    break
                time.sleep(_POLL_SECONDS)
            done, _ = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                member, outcome = running.pop(future), future.result()
                if seconds_left() >= self._members.adding_seconds(member.trial.number):
                    self._keep(member, outcome)
            on_tick()

    def _waiting(self, history: History, weights: Mapping[int, float]) -> Iterator[tuple[int, Observation]]:
        """Yield each split and member to fit, split after split."""
        numbers = [n for n in sorted(weights, key=lambda n: -weights[n]) if n != BASELINE and self._members.is_own(n)]
        # The ensemble has trials as they arrive, the history in order: those after a long one may still be missing.
        known = {observation.trial.number: observation for observation in history}
        observations = [known[number] for number in numbers if number in known]
        for split in range(1, self.most + 1):
            for each in observations:
                if each.outcome.cut_short is None and self._members.splits(each.trial.number) <= split:
                    yield split, each

    def _keep(self, observation: Observation, outcome: Outcome) -> None:
        """Keep the models of another split if the trial was completed."""
        predictions, expected = outcome.predictions, observation.predictions
        if predictions is None or expected is None or outcome.model is None or outcome.cut_short is not None:
            return
        if predictions.shape == expected.shape:
            self._members.add_split(observation, outcome.model, predictions)


def next_in_time(expected: Mapping[int, float], seconds: float) -> int | None:
    """Return the repeat to begin next: the first that is likely to end in time, otherwise the shortest that may.

    Parameters
    ----------
    expected : mapping
        Expected seconds of each repeat, in order.
    seconds : float
        Seconds until the end.

    Returns
    -------
    int or None
        Its key; None if none may end in time.
    """
    likely = (each for each in expected if _MARGIN * expected[each] < seconds)
    possible = (each for each in expected if expected[each] < seconds)
    return next(likely, min(possible, key=expected.__getitem__, default=None))


def _how_many(run: RunDirectory, budget: Budget | None) -> int:
    repeats = run.settings.repeats
    if budget is None or len(run.rungs) > 1:  # with rungs, there are many rows, and encoding them again takes long
        return 0
    if len(validation_rows(run.splits)) < len(run.rows.y):  # another split would predict other rows
        return 0
    if not isinstance(repeats, str):
        return int(repeats)
    is_named = isinstance(run.settings.resampling, str)
    has_time = budget.seconds is not None and budget.trials is None
    return _MOST if is_named and has_time and len(run.rows.y) <= _MOST_ROWS else 0
