"""Checks of the numbers among the options of a strategy."""

from __future__ import annotations

from cashmere.exceptions import InvalidParameterError


def check_at_least(strategy: object, **least: float) -> None:
    """Raise if an option is smaller than its least value, or NaN.

    Parameters
    ----------
    strategy : object
        Holds the options as attributes.
    **least
        The least value of each, by name.

    Raises
    ------
    InvalidParameterError
        For the first that is too small.
    """
    for name, bound in least.items():
        value = getattr(strategy, name)
        if not value >= bound:
            raise InvalidParameterError(name, value, f"at least {bound}")


def check_positive(strategy: object, *names: str) -> None:
    """Raise if an option is not positive, or NaN.

    Parameters
    ----------
    strategy : object
        Holds the options as attributes.
    *names
        The options.

    Raises
    ------
    InvalidParameterError
        For the first that is not.
    """
    for name in names:
        value = getattr(strategy, name)
        if not value > 0:
            raise InvalidParameterError(name, value, "positive")
