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
        Wall-clock seconds until the end; infinite unless the end is so near that a trial decided without them would
        hardly finish.
    """

    share: float
    seconds: float = float("inf")
