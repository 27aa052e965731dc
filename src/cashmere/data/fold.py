"""One split of the training rows, and the rows that several validate."""

from __future__ import annotations

import hashlib
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


def fold_digest(folds: Sequence[Fold]) -> str:
    """Return a fingerprint of the rows of folds and of the order of the folds, the same on every machine.

    Examples
    --------
    >>> first, second = np.array([0, 1]), np.array([2, 3])
    >>> fold_digest([Fold(first, second)]) == fold_digest([Fold(second, first)])
    False
    """
    digest = hashlib.sha256()
    for part in (part for fold in folds for part in (fold.train, fold.validation)):
        digest.update(len(part).to_bytes(8, "little"))  # so that rows cannot move to the next part unnoticed
        digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()
