"""The order in which a search uses the outcomes of its trials."""

from __future__ import annotations

from enum import StrEnum

from cashmere.exceptions import InvalidParameterError

NOT_REPEATABLE = "outcomes were used as they arrived: another run with this seed differs"
"""What is said beside the digest of a run in which they were."""


class Order(StrEnum):
    """When the outcome of a trial may be used.

    Examples
    --------
    >>> Order.parse("arrival").is_repeatable
    False
    """

    TRIALS = "trials"
    """After those of all trials with lower numbers, and when the lookahead shows it: the same seed, the same run."""
    ARRIVAL = "arrival"
    """As soon as it is there: no trial waits for a slow one before it, and no two runs are equal."""

    @classmethod
    def parse(cls, text: str, parameter: str = "order") -> Order:
        """Read an order, the value of some parameter.

        Raises
        ------
        InvalidParameterError
            If there is none of that name.
        """
        if text not in list(cls):
            raise InvalidParameterError(parameter, text, "'trials' or 'arrival'")
        return cls(text)

    @property
    def is_repeatable(self) -> bool:
        """Whether a number of trials and a seed determine a run."""
        return self is Order.TRIALS
