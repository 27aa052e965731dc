"""The decisions of a study: which configuration is tried next, and who says so."""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.base.pace import Pace
from cashmere.base.threads import one_blas_thread
from cashmere.exceptions import StrategyError
from cashmere.protocols import BatchStrategy, Strategy
from cashmere.records.budget import Deadline
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion, Trial, configuration_key
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies.shared.drawing import draw_suggestion
from cashmere.strategies.shared.first_configurations import best_per_second
from cashmere.strategies.shared.last_seconds import decide_in_time
from cashmere.strategies.shared.promotion import on_all_rows, promotion
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of
from cashmere.study.state import StudyState

_FIRST_RESULT_SECONDS = 3.0
"""With less time left, a trial is only started if it is likely to end, even if it would have earlier results."""

_DECIDING_SHARE = 0.25
"""Under a time budget, decisions may take this share of the seconds of trials; beyond it, random draws replace them. If
trials take a tenth of a second, several of them are worth more than one good decision."""

_DECIDING_SECONDS = 2.0
"""Seconds that decisions may take in any case."""

_BATCHES_FROM = 64
"""Lookahead from which strategies decide several trials at once."""

_BATCHES_IN_LOOKAHEAD = 8
"""Batches in a lookahead. As the lookahead is twice the workers, a batch is enough for a quarter of them."""

_EARLY_SHARE = 0.4
"""Share of the planned time during which configurations are promoted only if enough others were tried, too."""

_DECIDING = "deciding"

_NO_FAILED_FIT = (-1, -1, 0.0)
"""Numbers of committed and decided trials for which no decision fitted, and into how many seconds."""


class Decisions:
    """Decides the next trial of a study, by the first of several sources that has a decision.

    These are, in order: a stored trial, if its decision cannot be repeated; a promotion to more rows; the warm start;
    the batch that the strategy has decided; the strategy, or a random draw in its place if it takes too long.

    Parameters
    ----------
    state : StudyState
        What is decided and known; only read.
    strategy : Strategy
        Decides what nothing else does.
    space : ConfigurationSpace or SpaceEncoder
        The search space.
    seed, warm_start, rungs, largest_share
        See `Study`.

    Attributes
    ----------
    seconds : dict of int to float
        How long decisions took, by trial number; those of a batch count for its first trial.
    """

    def __init__(
        self,
        state: StudyState,
        strategy: Strategy,
        space: SearchSpace,
        *,
        seed: int,
        warm_start: Sequence[Configuration] | Mapping[Configuration, float],
        rungs: Sequence[float],
        largest_share: Callable[[Configuration], float] | None,
    ) -> None:
        self._strategy = strategy
        self.seconds: dict[int, float] = {}
        self._state, self._space, self._seed = state, space, seed
        self._gains = dict(warm_start) if isinstance(warm_start, Mapping) else dict.fromkeys(warm_start, 1.0)
        self._warm_start = tuple(warm_start)
        self._rungs, self._largest_share = tuple(rungs), largest_share
        self._pace = Pace()
        self._decision: Suggestion | None = None
        self._batch: deque[Suggestion] = deque()
        self._n_insufficient = -1
        self._failed_fit = _NO_FAILED_FIT

    def next(self, *, seconds_left: float = math.inf) -> Suggestion | None:
        """Return the decision on the next trial, the same until `forget`; None if it needs more outcomes.

        Parameters
        ----------
        seconds_left : float
            Wall seconds until the search ends, in which a promoted trial must be able to use its rows.

        Raises
        ------
        StrategyError
            If the strategy has seen all outcomes and still returns None, or if it returns a batch of the wrong size.
        """
        if self._decision is None:
            self._decision = (
                self._stored_decision()
                or self._promotion(seconds_left)
                or self._next_warm_start()
                or self._next_of_batch()
                or self._ask_strategy()
            )
        return self._decision

    def forget(self) -> None:
        """Forget the decision, since its trial has been made."""
        self._decision, self._n_insufficient = None, -1

    def forget_all(self) -> None:
        """Forget the rest of the batch, too, since trials have been taken back, and that nothing has fitted."""
        self.forget()
        self._batch.clear()
        self._failed_fit = _NO_FAILED_FIT

    @property
    def can_repeat(self) -> bool:
        """Whether a resumed study takes the same decisions again."""
        return not self._state.is_by_arrival and len(self._rungs) == 1

    @property
    def longest_seconds(self) -> float:
        """A bound on the time that the next decision takes; 0 before the first one."""
        return self._pace.bound(_DECIDING, expected=0.0)

    # ------------------------------------------------------------ stored trials, promotions, warm start

    def _stored_decision(self) -> Suggestion | None:
        """Return the decision on a trial that is stored already, unless it can be made again."""
        if self.can_repeat or (stored := self._state.arrived.get(len(self._state.decided))) is None:
            return None
        trial = stored.trial
        return Suggestion(configuration=trial.configuration, origin=trial.origin, fidelity=trial.fidelity)

    def _promotion(self, seconds_left: float) -> Suggestion | None:
        """Return the configuration to try on more rows, or None if none deserves it."""
        if len(self._rungs) == 1:
            return None
        planned = None if self._state.plan is None else self._state.plan.worker_seconds
        return promotion(
            self._history_of_all(),
            self._rungs,
            is_late=planned is not None and self._state.spent_seconds > _EARLY_SHARE * planned,
            seconds_left=seconds_left,
            largest_share=self._largest_share,
        )

    def _next_warm_start(self) -> Suggestion | None:
        """Return the next configuration to evaluate before the strategy is asked, or None if none is left."""
        if (configuration := self._first_warm_start_left()) is None:
            return None
        return Suggestion(configuration=configuration, origin=Origin(OriginKind.WARM_START), fidelity=self._rungs[0])

    def _first_warm_start_left(self) -> Configuration | None:
        state = self._state
        number = len(state.decided)
        if len(self._rungs) > 1:
            number = sum(trial.origin.kind is not OriginKind.PROMOTED for trial in state.decided)
        if number >= len(self._warm_start):
            return None
        if state.planned_seconds is None:
            return self._warm_start[number]
        decided = {trial.key for trial in state.decided}
        left = [c for c in self._warm_start if configuration_key(c) not in decided]
        if not left:
            return None
        n_known = state.n_shown_to(len(state.decided))
        time_left = state.time_left(n_known)
        return best_per_second(
            left,
            [self._gains[c] for c in left],
            observations=state.committed[:n_known],
            encoder=self._encoder,
            seconds=state.planned_seconds * time_left.share if time_left is not None else math.inf,
            share=self._rungs[0],
        )

    # ------------------------------------------------------------ the strategy

    def _ask_strategy(self) -> Suggestion | None:
        """Return the suggestion of the strategy, or None if it needs more outcomes; if it takes too long, draw one.

        The strategy first sees the outcomes that the lookahead reveals, then one more at a time until they suffice. So
        what it finally sees does not depend on which ones have arrived.
        """
        state, number = self._state, len(self._state.decided)
        for visible in range(max(state.n_shown_to(number), self._n_insufficient + 1), len(state.committed) + 1):
            clock = Deadline(None)
            history = self._history_for_strategy(visible, state.pending(visible))
            rng = self._rng(number)
            if self._decides_too_long:
                decided = self._encoder.encode(trial.configuration for trial in history.trials)
                suggestion: Suggestion | None = draw_suggestion(self._encoder, decided, rng)
            else:
                with one_blas_thread(), self._errors_explained(number):
                    suggestion = self._strategy.suggest(history, rng)
            self._note_seconds(number, clock.elapsed)
            if suggestion is not None:
                return replace(self._checked(suggestion, number), fidelity=self._rungs[0])
            self._n_insufficient = visible
            if visible == number:
                raise StrategyError(
                    f"{self._who} returned None for trial {number} although every outcome is known. "
                    "suggest() may return None only while trials are pending; else it must return a Suggestion.",
                    strategy=self._strategy,
                )
        return None

    def _next_of_batch(self) -> Suggestion | None:
        """Return the next decision of the batch; if none is left, decide the next batch. None without batches.

        In the order of trials, batches begin at fixed numbers and see what the lookahead reveals to their first trial.
        So a resumed study takes the same decisions again, even in the middle of a batch.
        """
        if not self._batch:
            if self._batch_size == 1 or self._decides_too_long:
                return None
            clock, number = Deadline(None), len(self._state.decided)
            n_passed = 0 if not self.can_repeat else (number - len(self._warm_start)) % self._batch_size
            visible = self._state.n_shown_to(number - n_passed)
            pending = [trial for trial in self._state.pending(visible) if trial.number < number - n_passed]
            history = self._history_for_strategy(visible, pending)
            assert isinstance(self._strategy, BatchStrategy)
            with one_blas_thread(), self._errors_explained(number):
                together = self._strategy.suggest_batch(history, self._rng(number - n_passed), self._batch_size)
            if len(together) != self._batch_size:
                raise StrategyError(
                    f"{self._who} was asked for {self._batch_size} suggestions and returned {len(together)}. "
                    "suggest_batch() must return as many as it is asked for.",
                    strategy=self._strategy,
                )
            self._batch.extend(self._checked(each, number) for each in together[n_passed:])
            self._note_seconds(number, clock.elapsed)
        return replace(self._batch.popleft(), fidelity=self._rungs[0])

    def _checked(self, suggestion: object, number: int) -> Suggestion:
        """Return what a strategy has returned if it is a suggestion in the space.

        Raises
        ------
        StrategyError
            If it is anything else, such as a bare configuration, or its configuration is not in the space.
        """
        if not isinstance(suggestion, Suggestion) or not isinstance(suggestion.configuration, Mapping):
            found = type(getattr(suggestion, "configuration", suggestion)).__name__
            raise StrategyError(
                f"{self._who} returned {'a configuration' if isinstance(suggestion, Suggestion) else 'an object'} of "
                f"the type {found} for trial {number}. suggest() must return a Suggestion: "
                "Suggestion(configuration=..., origin=...).",
                strategy=self._strategy,
            )
        configuration, space = suggestion.configuration, self._encoder.space
        if isinstance(configuration, Configuration) and configuration.config_space is space:
            return suggestion
        unknown = [name for name in configuration if name not in space]
        if unknown:
            raise StrategyError(
                f"{self._who} suggested a configuration of another space for trial {number}: this space has no "
                f"{unknown[0]!r}. Make the strategy with the space of the study.",
                strategy=self._strategy,
            )
        try:
            checked = Configuration(space, values=dict(configuration))
        except (ValueError, TypeError, KeyError) as error:
            raise StrategyError(
                f"{self._who} suggested a configuration for trial {number} that is not in the space: "
                f"{_what_is_wrong(configuration, space, error)}. Suggest configurations of the space that the strategy "
                "was made with.",
                strategy=self._strategy,
            ) from error
        return suggestion if isinstance(configuration, Configuration) else replace(suggestion, configuration=checked)

    @property
    def _who(self) -> str:
        return type(self._strategy).__name__

    @contextmanager
    def _errors_explained(self, number: int) -> Iterator[None]:
        """Add to an error of a strategy which decision it is from."""
        try:
            yield
        except Exception as error:
            error.add_note(f"{self._who} was deciding trial {number}.")
            raise

    @functools.cached_property
    def _batch_size(self) -> int:
        """Number of decisions that are taken together."""
        if self._state.lookahead < _BATCHES_FROM or not isinstance(self._strategy, BatchStrategy):
            return 1
        return self._state.lookahead // _BATCHES_IN_LOOKAHEAD if self._strategy.decides_in_batches else 1

    @property
    def _decides_too_long(self) -> bool:
        """Whether decisions have taken more than their share of a time budget in this call."""
        if self._state.planned_seconds is None:
            return False
        allowed = max(_DECIDING_SECONDS, _DECIDING_SHARE * self._state.spent_seconds)
        return sum(self.seconds.values()) > allowed

    def _note_seconds(self, number: int, seconds: float) -> None:
        self.seconds[number] = self.seconds.get(number, 0.0) + seconds
        self._pace.note(_DECIDING, seconds)

    # ------------------------------------------------------------ the last seconds

    def fit_into(
        self, seconds: float, *, has_checkpoints: Callable[[Configuration], bool] | None, or_shorter: bool = True
    ) -> bool:
        """Replace the decision, if necessary, by one whose trial is likely to end in time; see `Study.fit_into`."""
        if (decision := self.next()) is None:
            return False
        state, number = self._state, len(self._state.decided)
        if state.planned_seconds is None or not math.isfinite(seconds) or number in state.arrived:
            return True
        if seconds > _FIRST_RESULT_SECONDS and has_checkpoints is not None and has_checkpoints(decision.configuration):
            return True
        if self.nothing_fits and seconds <= self._failed_fit[2]:
            return False
        with one_blas_thread():
            in_time = decide_in_time(
                decision,
                seconds,
                strategy=self._strategy if or_shorter else None,
                history=self._history_of_all(),
                encoder=self._encoder,
                rng=self._rng(number),
                rungs=self._rungs,
            )
        if in_time is None:
            self._failed_fit = (len(state.committed), number, seconds)
            return False
        if in_time is not decision:
            origin = Origin(OriginKind.LAST_SECONDS, str(in_time.origin))
            in_time = replace(in_time, origin=origin)
        self._decision = in_time
        return True

    @property
    def nothing_fits(self) -> bool:
        """Whether `fit_into` has found no decision, and nothing has happened since."""
        return self._failed_fit[:2] == (len(self._state.committed), len(self._state.decided))

    # ------------------------------------------------------------ what all sources share

    def _history_of_all(self) -> History:
        """Return all that is committed, whatever the lookahead: such decisions depend on the clock anyway."""
        n_known = len(self._state.committed)
        return self._state.history(n_known, self._state.pending(n_known))

    def _history_for_strategy(self, end: int, pending: Sequence[Trial]) -> History:
        """Return the history as strategies see it: with one loss per configuration, as if on all rows."""
        history = self._state.history(end, pending)
        return history if len(self._rungs) == 1 else on_all_rows(history, self._rungs)

    def _rng(self, number: int) -> np.random.Generator:
        return np.random.default_rng(seeds_of(self._seed, number)[0])

    @functools.cached_property
    def _encoder(self) -> SpaceEncoder:
        return encoder_of(self._space)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the callable that a run has passed."""
        return {**self.__dict__, "_largest_share": None}


def seeds_of(seed: int, number: int) -> list[np.random.SeedSequence]:
    """Return the seeds of the strategy and of the learner for a trial, from the seed of the study."""
    return np.random.SeedSequence(seed, spawn_key=(number,)).spawn(2)


def _what_is_wrong(configuration: Mapping[str, Any], space: ConfigurationSpace, error: Exception) -> str:
    """Name the first value that is not allowed, or else what ConfigSpace says."""
    for name, value in configuration.items():
        if not space[name].legal_value(value):
            return f"{name!r} is {value!r} ({' '.join(str(space[name]).partition(', ')[2].split())})"
    return " ".join(str(error).split())
