"""Haste: how much sooner the paths of the first configurations end if a budget is short for a table."""

from __future__ import annotations

_LEISURELY = 20_000
"""Cells (rows x columns x classes) per second of the budget up to which nothing is hastened: with its usual learning
rate, LightGBM then takes about a fifth of the computing time of two workers for five folds."""

_MOST = 3.0
"""Greatest haste; docs/benchmarks.md#in-haste has figures."""


def haste(n_cells: int, seconds: float | None) -> float:
    """Return by what factor the paths of the first configurations should be shorter than usual.

    Boosters learn at rates that are best when time is plentiful. With three times the rate, a booster alone is slightly
    worse, but the mean of those of several folds is as good, in a third of the time (docs/benchmarks.md#in-haste).

    Parameters
    ----------
    n_cells : int
        Rows x columns x classes of the table: about proportional to the time of one round of boosting.
    seconds : float or None
        Time budget of the run; None if there is none.

    Returns
    -------
    float
        From 1 to 3.

    Examples
    --------
    >>> haste(6430 * 36 * 6, seconds=600), round(haste(6430 * 36 * 6, seconds=30), 1), haste(6430 * 36 * 6, seconds=10)
    (1.0, 2.3, 3.0)
    """
    if seconds is None:
        return 1.0
    return min(_MOST, max(1.0, n_cells / (_LEISURELY * seconds)))
