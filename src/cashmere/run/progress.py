"""Show the progress of a search to the user."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, replace
from typing import Any, Protocol, TextIO

from cashmere.base.text import clean_text, counted
from cashmere.records.budget import Budget, Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """State of a running search.

    Attributes
    ----------
    trials, failures : int
        Finished trials, and how many of them failed.
    best_score, ensemble_score : float or None
        Validation score of the best single configuration and of the ensemble, in the metric's own direction.
    metric : str
        Name of the metric.
    fraction : float
        Share of the budget that is spent, in [0, 1].
    seconds_left : float or None
        Time left, finite; estimated from the pace under a budget of trials. None where it is not known.
    phase : str
        ``"preparing"``, ``"searching"``, ``"finishing"``, ``"ended"``, or what is waited for.
    """

    trials: int = 0
    failures: int = 0
    best_score: float | None = None
    ensemble_score: float | None = None
    metric: str = ""
    fraction: float = 0.0
    seconds_left: float | None = None
    phase: str = "searching"

    def line(self) -> str:
        """Return the state as one line of plain text."""
        left = "" if self.seconds_left is None else f", {shown_clock(self.seconds_left)} left"
        if not self.trials:
            return f"{self.phase}: no finished trials{left}"
        return (
            f"{self.phase}: {counted(self.trials, 'trial')}, {self.failures} failed, "
            f"best single {shown_number(self.best_score)}, "
            f"ensemble {shown_number(self.ensemble_score)} ({self.metric}){left}"
        )

    def finishing(self) -> Status:
        """Return the same state once the search has ended."""
        return replace(self, phase="finishing", fraction=1.0, seconds_left=None)

    def ended(self) -> Status:
        """Return the same state once the call has ended for any reason."""
        return replace(self, phase="ended", seconds_left=None)


def searching(
    budget: Budget | None,
    deadline: Deadline,
    *,
    trials: int,
    n_before: int = 0,
    failures: int,
    best_score: float | None,
    ensemble_score: float | None,
    metric: str,
) -> Status:
    """Return the state of a search; compute the share of the budget spent from the clock and the trials so far.

    Parameters
    ----------
    budget : Budget or None
        Budget of the call; None if nothing is left.
    deadline : Deadline
        Its clock.
    trials, failures, best_score, ensemble_score, metric
        See `Status`.
    n_before : int
        Trials of earlier calls, which say nothing about the pace of this one.
    """
    done, left = 0.0, None
    if deadline.seconds is not None:
        done, left = deadline.elapsed / deadline.seconds, deadline.remaining
    if budget is not None and budget.trials is not None:
        done = max(done, trials / budget.trials)
        if trials > n_before:
            pace = deadline.elapsed / (trials - n_before) * (budget.trials - trials)
            left = pace if left is None else min(left, pace)
    return Status(
        trials=trials,
        failures=failures,
        best_score=best_score,
        ensemble_score=ensemble_score,
        metric=metric,
        fraction=min(1.0, done),
        seconds_left=left,
    )


class Progress(Protocol):
    """Shows the state of a search; closed at the end."""

    def update(self, status: Status) -> None:
        """Show a new state; called often, must be cheap."""
        ...

    def close(self) -> None:
        """Clean up the display."""
        ...


class Silence:
    """Shows nothing."""

    def update(self, status: Status) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class PlainLines:
    """Prints a line at most every `interval` seconds, and one whenever the phase changes."""

    def __init__(self, stream: TextIO | None = None, *, interval: float = 10.0) -> None:
        self._stream = stream or sys.stdout
        self._interval = interval
        self._last = -math.inf
        self._phase = ""

    def update(self, status: Status) -> None:
        """Print the state if it is time."""
        now = time.monotonic()
        if status.phase != self._phase or now - self._last >= self._interval:
            self._last, self._phase = now, status.phase
            print(clean_text(status.line()), file=self._stream, flush=True)

    def close(self) -> None:
        """Do nothing: lines need no cleaning up."""


class Bar:
    """A live progress bar for terminals."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._bar: Any = RichProgress(
            TextColumn("{task.fields[phase]:<9}"),
            BarColumn(bar_width=24),
            TextColumn(
                "{task.fields[trials]} trials · {task.fields[failures]} failed · best {task.fields[best]} · "
                "ensemble [bold]{task.fields[ensemble]}[/]{task.fields[left]}"
            ),
            transient=True,
        )
        self._task = self._bar.add_task("search", total=1.0, **_fields(Status()))
        self._bar.start()

    def update(self, status: Status) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=status.fraction, **_fields(status))

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


def _fields(status: Status) -> dict[str, Any]:
    return {
        "phase": status.phase,
        "trials": status.trials,
        "failures": status.failures,
        "best": shown_number(status.best_score),
        "ensemble": shown_number(status.ensemble_score),
        "left": "" if status.seconds_left is None else f" · {shown_clock(status.seconds_left)} left",
    }


def shown_number(value: float | None) -> str:
    """Return a score with five significant digits, or a dash if it is not known."""
    return "-" if value is None else f"{value:.5g}"


def shown_clock(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours if there are any.

    Examples
    --------
    >>> shown_clock(75), shown_clock(3700)
    ('1:15', '1:01:40')
    """
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"
