"""Rough estimates of the memory and time of a search: docs/running.md#looking-at-a-table."""

from __future__ import annotations

from dataclasses import dataclass

_WORKER_MIB = (550.0, 1600.0)
"""Range per worker, with its part of the ensemble; 24 runs of the match on two workers took 600 to 1,585 each."""

_COPIES_OF_TABLE = 3.0
"""Copies of the numbers of a large table, in 32 bits: docs/benchmarks.md#large-tables."""

_MOST_ROWS = 37_500
"""Only few trials are fitted to more rows: the others see rungs."""

_SCALE, _EXPONENT, _FACTOR = 0.0137, 0.436, 3.0
"""CPU seconds of a trial as a power of the cells, by least squares on the same runs; 23 are within this factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Rough estimates of what a search takes.

    Attributes
    ----------
    workers : int
        Trials at a time.
    mib : (float, float)
        Range of the peak memory of all its processes, in MiB.
    trial_seconds : (float, float)
        Range of the mean duration of a trial, in seconds.
    """

    workers: int
    mib: tuple[float, float]
    trial_seconds: tuple[float, float]

    def trials(self, seconds: float) -> tuple[int, int]:
        """Return the range of the number of trials that fit into a time budget."""
        slowest, fastest = self.trial_seconds[1], self.trial_seconds[0]
        return max(1, int(seconds * self.workers / slowest)), max(1, int(seconds * self.workers / fastest))


def estimate(n_rows: int, n_columns: int, n_classes: int, *, workers: int) -> Estimates:
    """Estimate what a search with the defaults takes.

    Parameters
    ----------
    n_rows : int
        Training rows.
    n_columns : int
        Number of numeric columns that learners see.
    n_classes : int
        1 for regression.
    workers : int
        Trials at a time.

    Examples
    --------
    >>> estimate(1_000, 20, 2, workers=2).trials(60)
    (38, 350)
    """
    table = n_rows * max(n_columns, 1) * 4 / 2**20
    cells = min(n_rows, _MOST_ROWS) * max(n_columns, 1) * (n_classes if n_classes > 2 else 1)
    seconds = _SCALE * cells**_EXPONENT
    return Estimates(
        workers=workers,
        mib=(workers * _WORKER_MIB[0] + table, workers * _WORKER_MIB[1] + _COPIES_OF_TABLE * table),
        trial_seconds=(seconds / _FACTOR, seconds * _FACTOR),
    )
