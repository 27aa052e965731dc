"""A table cut into 60 % training, 20 % validation and 20 % test rows, its values standardised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from benchmarks.tables.search_table import SearchTable
from cashmere.data.fold import Fold

SEED = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class ThreeParts:
    """Rows and targets of a table for trials that fit on one part and predict the two others.

    Attributes
    ----------
    train, validation, test : int arrays
        Ascending row numbers.
    y : (n_rows,) array
        Class codes, or values less the mean of the training rows and divided by their `spread`.
    spread : float
        Standard deviation of the training values; 1 for classes.
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    y: np.ndarray
    spread: float

    @classmethod
    def of(cls, data: SearchTable, *, n_rows: int, seed: int = SEED) -> Self:
        """Cut a table by the seed; `n_rows` are drawn from a larger one."""
        is_classification = data.task_type.is_classification
        train, validation, test = split_rows(data.y, n_rows, classes=is_classification, seed=seed)
        y, spread = data.y, 1.0
        if not is_classification:
            spread = float(y[train].std())
            y = (y - y[train].mean()) / spread
        return cls(train=train, validation=validation, test=test, y=y, spread=spread)

    @property
    def fold(self) -> Fold:
        """The fold that trains on the first part and predicts the other two, their rows merged in ascending order."""
        return Fold(self.train, np.sort(np.concatenate([self.validation, self.test])))


def split_rows(
    y: np.ndarray, n_rows: int, *, classes: bool, seed: int = SEED
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ascending row numbers for training (60 %), validation (20 %) and test (20 %), drawn from all rows.

    Classes are spread evenly over the parts, unless one of them has fewer rows than there are classes. A class of which
    a single row is left cannot be spread: the row trains, and where rows are drawn from a larger table it is not drawn.
    """
    from sklearn.model_selection import train_test_split

    def cut(rows: np.ndarray, size: float | int) -> tuple[np.ndarray, np.ndarray]:
        codes, counts = np.unique(y[rows], return_counts=True)  # not all codes are among the rows
        lone = rows[np.isin(y[rows], codes[counts == 1])] if classes else rows[:0]
        common = np.setdiff1d(rows, lone)
        n_other = size if isinstance(size, int) else int(np.ceil(size * len(common)))
        if n_other >= len(common):
            return lone, common
        even = classes and min(n_other, len(common) - n_other) >= np.sum(counts > 1)
        kept, other = train_test_split(common, test_size=size, random_state=seed, stratify=y[common] if even else None)
        return np.sort(np.concatenate([kept, lone])), np.sort(other)

    rows = np.arange(len(y))
    if len(y) > n_rows:
        rows = cut(rows, n_rows)[1]
    rest, test = cut(rows, 0.2)
    train, validation = cut(rest, 0.25)
    return train, validation, test
