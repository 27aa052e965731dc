"""One split of the training rows."""

from __future__ import annotations

from dataclasses import dataclass

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
