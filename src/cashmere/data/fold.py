"""One split of the training rows, and the rows that several validate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Row numbers of one split, ascending if made by `make_folds`.

    Attributes
    ----------
    train, validation : arrays of int64
        Rows to fit on and rows to compute the loss on; they do not overlap.
    """

    train: IntArray
    validation: IntArray


def validation_rows(folds: Sequence[Fold]) -> IntArray:
    """Return the rows that folds validate, ascending: the order of out-of-fold predictions."""
    return np.unique(np.concatenate([fold.validation for fold in folds]))
