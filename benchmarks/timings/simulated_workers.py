"""Workers that sleep in simulated time: a search with hundreds of them takes only the time of its own work.

The clock runs with the real one as long as the coordinator works. When it waits for a trial, the clock jumps to the end
of the next one; while the simulation itself computes, it stands still.
"""

from __future__ import annotations

import contextlib
import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from cashmere.protocols import Objective
from cashmere.records.budget import Deadline
from cashmere.records.trial import Outcome, Trial


class SimulatedClock(Deadline):
    """Simulated seconds since the beginning; no limit."""

    def __init__(self) -> None:
        super().__init__(None)
        self.jumped = 0.0
        self._stood_still = 0.0

    @property
    def elapsed(self) -> float:
        """Simulated seconds."""
        return super().elapsed + self.jumped - self._stood_still

    @property
    def working(self) -> float:
        """Real seconds of the coordinator."""
        return super().elapsed - self._stood_still

    def jump_to(self, seconds: float) -> None:
        """Go to a later time; stay if it has passed."""
        self.jumped += max(0.0, seconds - self.elapsed)

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """Do not count the time of the block."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._stood_still += time.monotonic() - start


@dataclass(order=True, slots=True)
class _Running:
    end: float
    number: int
    trial: Trial = field(compare=False)
    future: Future[Outcome] = field(compare=False)


class SimulatedWorkers:
    """An executor whose trials take simulated time.

    Parameters
    ----------
    n_workers : int
        How many trials run at the same time.
    n_trials : int
        Number of trials that will be submitted in all.
    clock : SimulatedClock
        Tells the time.
    seconds_of : callable
        Simulated seconds of a trial.
    outcome_of : callable
        What it returns.
    is_idle : callable
        Whether the coordinator can do nothing before a trial ends.

    Attributes
    ----------
    spans : list of (float, float)
        Begin and end of each trial, in simulated seconds.
    """

    def __init__(
        self,
        n_workers: int,
        n_trials: int,
        clock: SimulatedClock,
        *,
        seconds_of: Callable[[Trial], float],
        outcome_of: Callable[[Trial], Outcome],
        is_idle: Callable[[], bool],
    ) -> None:
        self.n_workers, self._n_trials, self.clock = n_workers, n_trials, clock
        self._seconds_of, self._outcome_of, self._is_idle = seconds_of, outcome_of, is_idle
        self.spans: list[tuple[float, float]] = []
        self._n_submitted = 0
        self._waiting: deque[tuple[Trial, Future[Outcome]]] = deque()
        self._running: list[_Running] = []
        self._n_untold = 0

    @property
    def n_open(self) -> int:
        """Trials that run or wait."""
        return len(self._running) + len(self._waiting)

    @property
    def has_all(self) -> bool:
        """Whether the last trial was submitted."""
        return self._n_submitted >= self._n_trials

    def submit(self, objective: Objective, trial: Trial) -> Future[Outcome]:
        """Queue a trial."""
        with self.clock.standing_still():
            self._advance()
            self._n_submitted += 1
            future: Future[Outcome] = Future()
            if len(self._running) < self.n_workers:
                self._begin(trial, future, self.clock.elapsed)
            else:
                self._waiting.append((trial, future))
        self._go_on()
        return future

    def shutdown(self) -> None:
        """Do nothing: no trial needs to be stopped."""

    def tick(self) -> None:
        """Note that all outcomes so far were taken; end the trials whose time has come, or the next one."""
        self._n_untold = 0
        self._advance()
        self._go_on()

    def _go_on(self) -> None:
        """Go to the end of the next trial, if the coordinator has nothing else to do."""
        if self._n_untold == 0 and self._running and self._is_idle():
            self.clock.jump_to(self._running[0].end)
            self._advance()

    def _advance(self) -> None:
        with self.clock.standing_still():
            now = self.clock.elapsed
            while self._running and self._running[0].end <= now:
                ended = heapq.heappop(self._running)
                if self._waiting:  # the worker takes the next one by itself
                    self._begin(*self._waiting.popleft(), ended.end)
                ended.future.set_result(self._outcome_of(ended.trial))
                self._n_untold += 1

    def _begin(self, trial: Trial, future: Future[Outcome], now: float) -> None:
        end = now + self._seconds_of(trial)
        self.spans.append((now, end))
        heapq.heappush(self._running, _Running(end, trial.number, trial, future))

    def utilisation(self) -> float:
        """Return the share of the workers' time that trials fill until the last one begins."""
        begins = [begin for begin, _ in self.spans]
        first, last = min(begins), max(begins)
        busy = sum(min(end, last) - begin for begin, end in self.spans)
        return busy / (self.n_workers * (last - first))
