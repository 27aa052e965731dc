"""Members of the final ensemble, fitted again: on other splits of the rows if these are few, otherwise on all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from pathlib import Path

import numpy as np

from cashmere.costs.latest import mean_seconds_of_latest
from cashmere.data.fold import Fold, validation_rows
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.row_structure import is_in_time
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.model.files import Encoders
from cashmere.protocols import Executor
from cashmere.records.budget import Budget
from cashmere.records.trial import History, Observation, Outcome, Trial
from cashmere.run.ensemble_builder import BASELINE
from cashmere.run.members import Members
from cashmere.run.run_directory import MOST_REPEATED_ROWS, RunDirectory

_MOST = 2
"""Default number of repeats, and the number of fits on all rows."""

LARGEST_SHARE = 0.2
"""Largest share of a time budget for them."""

LEAST_TRIALS = 8
"""With fewer finished trials, time is worth more for the search, which may not have tried all first configurations yet,
than for fits on all rows. On tables where fits paid, 10 trials or more had finished when the fits began, but those that
are running must know of the time for fits when they begin."""

_LATE_SHARE = 0.5
"""When the search ends, workers are busy with trials that take longer than expected. The rest of them is about half of
the mean duration of the latest trials: in two runs of a minute on phoneme, workers were free after 1 to 3.5 seconds,
where trials took 4.8."""

_COMPARED_ROWS = 2000
"""Maximum number of rows on which a model of all rows is compared with those of the folds."""

_SEED_STEP = 1_000_003
"""Difference between the seeds of two fits on all rows; larger than the number of folds, which have their own seeds."""

_MARGIN = 1.5
"""A repeat begins if this many times the seconds of its trial are left. If that holds for none, the shortest that may
still end in time begins: hardly anything else could use the last seconds."""

_POLL_SECONDS = 0.05

Choice = tuple[History, Mapping[int, float]]
"""All trials, and the weight of each member of the ensemble chosen from them."""


class Repeats:
    """Fits the members of an ensemble again on other splits or on all rows, and adds the models of these to them.

    With few rows, the models of one split differ from those of another by chance. A member with the models of several
    splits predicts their mean. With more rows, it matters more that each fold model lacks a part of them: a member that
    is fitted on all rows predicts with these models alone. Each of these fits counts as a split with a single fold.

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
    preparing_seconds : float
        Time it took to prepare these folds.

    Attributes
    ----------
    most : int
        Maximum number of other splits, or of fits on all rows.
    on_all_rows : bool
        Whether members are fitted on all rows instead of on other splits.
    """

    def __init__(
        self,
        run: RunDirectory,
        budget: Budget | None,
        members: Members,
        encoders: Encoders,
        *,
        preparing_seconds: float = 0.0,
    ) -> None:
        self._run, self._budget, self._members = run, budget, members
        self.on_all_rows = run.first_refit is not None
        self.most = _how_many(run, budget)
        self._encoders = {0: encoders}
        # What an extra fit takes compared with the trial, and preparing its rows compared with those of the folds.
        self._share = len(run.rows.y) / sum(len(fold.train) for fold in run.splits) if self.on_all_rows else 1.0
        self._preparing_seconds = self._share * preparing_seconds if self.on_all_rows else 0.0

    def encoders(self, n_splits: int) -> Encoders:
        """Return the encoders of the first splits, fold after fold."""
        return [fold for split in range(n_splits) for fold in self._encoders_of(split)]

    def _encoders_of(self, split: int) -> Encoders:
        split = min(split, 1) if self.on_all_rows else split
        if split not in self._encoders:
            run, seed = self._run, self._seed(split)
            task_type = run.target.task_type
            self._encoders[split] = prepare_folds(
                self._folder(split),
                run.coded_table,
                run.rows.y,
                self._folds(seed),
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

    def _folds(self, seed: int) -> list[Fold]:
        y = self._run.rows.y
        if self.on_all_rows:
            compared = np.unique(np.linspace(0, len(y) - 1, min(len(y), _COMPARED_ROWS)).astype(np.int64))
            return [Fold(train=np.arange(len(y)), validation=compared)]
        task_type, resampling = self._run.target.task_type, self._run.settings.resampling
        return make_folds(y, task_type, resampling, seed=seed, structure=self._run.rows.structure)

    def _folder(self, split: int) -> Path:
        name = "all-rows" if self.on_all_rows else f"split{split}"
        return (self._run.folder / "prepared" / name).absolute()

    def _objective(self, split: int, member: Observation, n_threads: int) -> CrossValidationObjective:
        return CrossValidationObjective(
            folder=self._folder(split),
            space=self._run.space,
            metric=self._run.metric,
            n_threads=n_threads,
            followed=member.outcome.path if self.on_all_rows else None,
        )

    def _trial(self, split: int, member: Observation) -> Trial:
        trial = replace(member.trial, stop_above=float("inf"))
        # The first fit on all rows has the seed of the first fold.
        return replace(trial, seed=(trial.seed + (split - 1) * _SEED_STEP) % 2**31) if self.on_all_rows else trial

    def reserved_seconds(self, history: History, weights: Mapping[int, float]) -> float:
        """Return how many seconds the search should leave for repeats; 0 without a time budget, or with few trials."""
        if self._budget is None or self._budget.seconds is None:
            return 0.0
        is_urgent = self._run.settings.refit is True or is_in_time(self._run.rows.structure)
        if self.on_all_rows and not is_urgent and len(history) < LEAST_TRIALS:
            return 0.0
        waiting = self._waiting(history, weights)
        if self.on_all_rows:  # second fits use what is left of the time
            adding = self._members.adding_seconds
            seconds = [self._expected_seconds(o) + adding(o.trial.number) for split, o in waiting if split == 1]
        else:
            seconds = [self._expected_seconds(o) for _, o in waiting]
        if not seconds:
            return 0.0
        preparing = self._preparing_seconds if 1 not in self._encoders else 0.0
        waiting_for_workers = _LATE_SHARE * mean_seconds_of_latest(history.observations)
        needed = preparing + waiting_for_workers + sum(seconds) / self._run.settings.workers
        return min(LARGEST_SHARE * self._budget.seconds, needed)

    def _expected_seconds(self, member: Observation) -> float:
        return self._share * member.duration_seconds

    def fit(
        self,
        choice: Choice,
        executor: Executor,
        *,
        late: Callable[[], Choice | None],
        n_busy: Callable[[], int],
        seconds_left: Callable[[], float],
        stop: Callable[[], bool],
        on_tick: Callable[[], object],
    ) -> None:
        """Fit members again, largest weights first, until all are done or the time is over.

        Trials that are still running have until then, too. A repeat that ends too late to be kept in time is dropped.

        Parameters
        ----------
        choice : Choice
            All trials, and the weight of each member by trial number.
        executor : Executor
            Fits them.
        late : callable
            Returns another choice if trials have ended meanwhile; None if not. Called about twenty times a second.
        n_busy : callable
            Returns how many of its workers still run trials.
        seconds_left : callable
            Returns the wall-clock seconds left for this step.
        stop : callable
            Returns whether to give up.
        on_tick : callable
            Called about twenty times a second.
        """
        if 1 not in self._encoders and _MARGIN * self._preparing_seconds > seconds_left():
            return
        waiting = list(self._waiting(*choice))
        begun: set[tuple[int, int]] = set()
        running: dict[Future[Outcome], Observation] = {}
        ended: list[tuple[Observation, Outcome]] = []
        while seconds_left() > 0 and not stop():
            can_change = n_busy() > 0
            if (latest := late()) is not None:
                waiting = [each for each in self._waiting(*latest) if (each[0], each[1].trial.number) not in begun]
            while len(running) + n_busy() < executor.n_workers:
                in_work = {each.trial.number for each in (*running.values(), *(each for each, _ in ended))}
                ready = {
                    position: self._expected_seconds(member) + self._members.adding_seconds(member.trial.number)
                    for position, (split, member) in enumerate(waiting)
                    if self._members.splits(member.trial.number) == split  # splits of one member are added in order
                    and member.trial.number not in in_work
                }
                if (position := next_in_time(ready, seconds_left())) is None:
                    break
                split, member = waiting.pop(position)
                begun.add((split, member.trial.number))
                self._encoders_of(split)
                objective = self._objective(split, member, getattr(executor, "n_threads", 1))
                running[executor.submit(objective, self._trial(split, member))] = member
            if ended:  # keeping models takes time: only now that all workers are busy again
                member, outcome = ended.pop(0)
                if seconds_left() >= self._members.adding_seconds(member.trial.number):
                    self._keep(member, outcome)
            elif not running:
                if not can_change:
                    break
                time.sleep(_POLL_SECONDS)
            done, _ = wait(running, timeout=0 if ended else _POLL_SECONDS, return_when=FIRST_COMPLETED)
            ended += [(running.pop(future), future.result()) for future in done]
            on_tick()

    def _waiting(self, history: History, weights: Mapping[int, float]) -> Iterator[tuple[int, Observation]]:
        """Yield each split and member to fit, split after split."""
        numbers = [n for n in sorted(weights, key=lambda n: -weights[n]) if n != BASELINE and self._members.is_own(n)]
        # The ensemble has trials as they arrive, the history in order: those after a long one may still be missing.
        known = {observation.trial.number: observation for observation in history}
        observations = [known[number] for number in numbers if number in known]
        splits = range(1, self.most + 1)
        for split, each in ((split, each) for split in splits for each in observations):
            is_whole = each.outcome.cut_short is None or (self.on_all_rows and each.outcome.path is not None)
            if is_whole and self._members.splits(each.trial.number) <= split:
                yield split, each

    def _keep(self, observation: Observation, outcome: Outcome) -> None:
        """Keep the models of another split, or of all rows, if the trial was completed."""
        predictions, expected = outcome.predictions, observation.predictions
        if predictions is None or expected is None or outcome.model is None or outcome.cut_short is not None:
            return
        if self.on_all_rows:
            # On rows that it has seen, a sound model is at least as good as one of a fold on rows that this has not.
            if outcome.loss is not None and outcome.loss <= max(observation.fold_losses):
                self._members.add_split(observation, outcome.model, expected, on_all_rows=True)
        elif predictions.shape == expected.shape:
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
    has_time = budget.seconds is not None and budget.trials is None
    if run.first_refit is not None:
        return _MOST if has_time or run.settings.refit is True else 0
    if len(validation_rows(run.splits)) < len(run.rows.y):  # another split would predict other rows
        return 0
    if not isinstance(repeats, str):
        return int(repeats)
    is_named = isinstance(run.settings.resampling, str)
    return _MOST if is_named and has_time and len(run.rows.y) <= MOST_REPEATED_ROWS else 0
