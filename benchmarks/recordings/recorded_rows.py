"""The rows of a table that is recorded: those to learn from, those that steer searches, and the unseen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from benchmarks.recordings.redrawn_split import draw_rows
from benchmarks.tables.search_table import SearchTable
from cashmere.base.arrays import IntArray
from cashmere.data.fold import Fold

TRAINING_SHARE, STEERING_SHARE = 0.6, 0.2
"""Shares of all rows, and of the remaining ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MostRows:
    """Largest number of rows of each kind."""

    training: int = 2000
    steering: int = 1000
    validation: int = 2000
    test: int = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedRows:
    """Row numbers of a table, ascending, and its targets.

    Attributes
    ----------
    training : int array
        Learners are fitted on them.
    steering : int array
        By their loss, searches find configurations. They are not recorded: what a replay sees has chosen nothing.
    validation, test : int arrays
        Recorded.
    y : (n_rows,) array
        Class codes, or values less the mean of the training rows and divided by their standard deviation.
    """

    training: IntArray
    steering: IntArray
    validation: IntArray
    test: IntArray
    y: np.ndarray

    @classmethod
    def of(cls, data: SearchTable, most: MostRows, *, seed: int) -> Self:
        """Draw the rows, stratified by class."""
        classes = data.task_type.is_classification

        def draw(rows: IntArray, n: int) -> tuple[IntArray, IntArray]:
            drawn = draw_rows(data.y[rows], n, seed, classes=classes)
            return rows[drawn], rows[~drawn]

        rows = np.arange(len(data.y))
        training, rest = draw(rows, min(most.training, int(TRAINING_SHARE * len(rows))))
        steering, rest = draw(rest, min(most.steering, int(STEERING_SHARE * len(rest))))
        validation, rest = draw(rest, min(most.validation, len(rest) // 2))
        test = rest if len(rest) <= most.test else draw(rest, most.test)[0]
        y = data.y
        if not classes:
            y = (y - y[training].mean()) / y[training].std()
        return cls(training=training, steering=steering, validation=validation, test=test, y=y)

    @property
    def unseen(self) -> IntArray:
        """The recorded rows, ascending."""
        return np.sort(np.concatenate([self.validation, self.test]))

    @property
    def fold(self) -> Fold:
        """The fold that trains on the training rows and predicts all others, in ascending order."""
        return Fold(self.training, np.sort(np.concatenate([self.steering, self.unseen])))
