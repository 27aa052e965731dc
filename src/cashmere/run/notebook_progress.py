"""Show the progress of a search in a notebook: one output that changes in place."""

from __future__ import annotations

import html
import math
import sys
import time
from collections.abc import Callable
from typing import Any

from cashmere.base.text import clean_text, counted
from cashmere.charts.sparkline import sparkline
from cashmere.run.progress import Status, shown_clock, shown_number

_ENSEMBLE, _SINGLE = "#1b8a83", "#c76a0c"
"""Colours that are legible on white and on the dark grey of notebooks."""


def runs_in_kernel() -> bool:
    """Return whether this process is the kernel of a notebook, unlike IPython in a terminal.

    This imports nothing: a kernel has already imported IPython.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class NotebookProgress:
    """One display with scores, trials, the time left and a curve. It is updated in place, and stays at the end.

    Parameters
    ----------
    interval : float
        Minimum seconds between two updates within a phase.
    """

    def __init__(self, *, interval: float = 1.0) -> None:
        self._interval = interval
        self._last = -math.inf
        self._status = Status()
        self._best: list[tuple[float, float]] = []
        self._ensemble: list[tuple[float, float]] = []
        self._handle: Any = None

    def update(self, status: Status) -> None:
        """Update the display if it is time."""
        now = time.monotonic()
        _extend(self._best, status.trials, status.best_score)
        _extend(self._ensemble, status.trials, status.ensemble_score)
        is_new_phase = status.phase != self._status.phase
        self._status = status
        if self._handle is None or is_new_phase or now - self._last >= self._interval:
            self._last = now
            self._show()

    def close(self) -> None:
        """Show the last state, without bar and time left."""
        if self._handle is not None:
            self._status = self._status.ended()
            self._show()

    def _show(self) -> None:
        from IPython.display import display

        bundle = {"text/html": self._page(), "text/plain": clean_text(self._status.line())}
        show: Callable[..., Any] = display
        if self._handle is None:
            self._handle = show(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)

    def _page(self) -> str:
        status, metric = self._status, html.escape(clean_text(self._status.metric))
        failed = f", {status.failures:,} failed" if status.failures else ""
        left = "" if status.seconds_left is None else f" · {shown_clock(status.seconds_left)} left"
        bar = ""
        if status.phase != "ended":
            bar = f'<progress max="1" value="{status.fraction:.3f}" style="width: 260px"></progress><br>'
        curves = [
            ([*points, (status.trials, points[-1][1])], colour)
            for points, colour in ((self._best, _SINGLE), (self._ensemble, _ENSEMBLE))
            if points
        ]
        curve = sparkline(curves, title="scores of the best single model and of the ensemble, over the trials")
        return (
            f'<div style="font-variant-numeric: tabular-nums">cashmere, {status.phase}: '
            f"{counted(status.trials, 'trial')}{failed}{left}<br>{bar}"
            f'{metric}: <b style="color: {_ENSEMBLE}">ensemble {shown_number(status.ensemble_score)}</b>, '
            f'<span style="color: {_SINGLE}">best single {shown_number(status.best_score)}</span><br>{curve}</div>'
        )


def _extend(curve: list[tuple[float, float]], trials: int, score: float | None) -> None:
    """Add a point if the score has changed."""
    if score is not None and math.isfinite(score) and (not curve or curve[-1][1] != score):
        curve.append((trials, score))
