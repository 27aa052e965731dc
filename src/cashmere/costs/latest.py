"""How long trials take at present."""

from __future__ import annotations

from collections.abc import Sequence

from cashmere.records.trial import Observation

_LATEST = 20


def mean_seconds_of_latest(observations: Sequence[Observation]) -> float:
    """Return the mean wall seconds of the latest trials, at most twenty; 0 without any.

    Parameters
    ----------
    observations : sequence of Observation
        All trials so far, in order.
    """
    latest = observations[-_LATEST:]
    return sum(observation.duration_seconds for observation in latest) / max(1, len(latest))
