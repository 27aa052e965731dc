"""Cut validation rows into parts, so that choices made on some of them can be judged on the others."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import AnyArray
from cashmere.data.fold import Fold
from cashmere.data.row_structure import RowStructure
from cashmere.data.structured_folds import structured_folds


def parts_of_rows(
    n_rows: int,
    n_parts: int,
    rng: np.random.Generator,
    structure: RowStructure | None = None,
    *,
    classes: AnyArray | None = None,
) -> list[Fold]:
    """Return for each part the rows that choose, `Fold.train`, and the rows that are judged, `Fold.validation`.

    Parameters
    ----------
    n_rows : int
        Rows to cut.
    n_parts : int
        How many parts are judged, at most.
    rng : numpy.random.Generator
        Cuts the rows.
    structure : RowStructure, optional
        Of these rows: a group is judged by choices of others, and a moment by choices on earlier ones, so that the
        older half of the rows is never judged.
    classes : (n_rows,) array, optional
        Classes over which groups are spread evenly.

    Returns
    -------
    list of Fold
        Fewer where there are not enough groups or moments; empty if rows cannot be cut.
    """
    if structure is None:
        part = rng.permutation(n_rows) % n_parts
        return [Fold(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_parts)]
    n_parts = min(n_parts, structure.most_folds)
    return structured_folds(structure, n_parts, rng, classes=classes) if n_parts else []
