"""Whether what was computed for an earlier history can be kept."""

from __future__ import annotations

from cashmere.records.trial import History


def continues(history: History, earlier: History) -> bool:
    """Return whether a history begins with the observations of an earlier one and judges them alike.

    Objects are compared by identity: caches may be lost, but never be wrong.
    """
    beginning = history.observations[: len(earlier)]
    return (
        len(beginning) == len(earlier)
        and all(one is other for one, other in zip(beginning, earlier, strict=True))
        and history.metric is earlier.metric
        and history.targets is earlier.targets
        and history.row_weights is earlier.row_weights
    )
