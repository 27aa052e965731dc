"""The trials in a part of a search space, as its inner strategy sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cashmere.records.trial import History


def history_of_part(history: History, is_inside: Sequence[bool]) -> History:
    """Return the history of some of the trials; configurations remain those of the whole space.

    Parameters
    ----------
    history : History
        The history of the whole space.
    is_inside : sequence of bool
        For each of ``history.trials``, pending ones last, whether it is kept.
    """
    n = len(history)
    observations = tuple(o for o, inside in zip(history, is_inside[:n], strict=True) if inside)
    pending = tuple(trial for trial, inside in zip(history.pending, is_inside[n:], strict=True) if inside)
    return replace(history, observations=observations, pending=pending)
