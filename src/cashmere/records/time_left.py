"""How much time is left, as a strategy sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLeft:
    """What is left of the time of a study whose budget is time.

    Attributes
    ----------
    share : float
        Share of the planned work that is left, in [0, 1]. It follows from the recorded seconds of the trials, so that
        the same history gives the same decision.
    seconds : float
        Wall seconds until the end; infinite unless it is so near that the trial decided without them would hardly be
        finished.
    """

    share: float
    seconds: float = float("inf")
