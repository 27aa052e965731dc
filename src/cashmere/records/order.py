"""The order in which a search uses the outcomes of its trials."""

from __future__ import annotations

from enum import StrEnum

from cashmere.exceptions import InvalidParameterError

NOT_REPEATABLE = "outcomes were used as they arrived: another run with this seed differs"
"""Shown beside the digest of such a run."""


class Order(StrEnum):
    """When the outcome of a trial may be used.

    Examples
    --------
    >>> Order.parse("arrival").is_repeatable
    False
    """

    TRIALS = "trials"
    """After the outcomes of all earlier trials, once the lookahead reveals it: same seed, same run."""
    ARRIVAL = "arrival"
    """As soon as it arrives: no trial waits for a slow earlier one, and no two runs are equal."""

    @classmethod
    def parse(cls, text: str, parameter: str = "order") -> Order:
        """Read an order given as the value of `parameter`.

        Raises
        ------
        InvalidParameterError
            If there is no order of that name.
        """
        if text not in list(cls):
            raise InvalidParameterError(parameter, text, "'trials' or 'arrival'")
        return cls(text)

    @property
    def is_repeatable(self) -> bool:
        """Whether a number of trials and a seed determine a run."""
        return self is Order.TRIALS
