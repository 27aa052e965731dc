"""Splits that respect the structure of the rows: whole groups, or the past before the future.

Groups are dealt to parts as in scikit-learn's `StratifiedGroupKFold`: the largest first, each to the part where its
classes are scarcest. In time, folds are those of `TimeSeriesSplit(n_folds, test_size=n_rows // (2 * n_folds))`: the
newer half of the rows validates, block after block, and each block is predicted from all rows before it; with a gap,
from those that are known when it begins, and fewer rows validate (`RowStructure.first_begin`). Blocks end between
moments.
"""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import AnyArray, IntArray
from cashmere.base.text import counted
from cashmere.data.fold import Fold
from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.exceptions import DataError


def structured_folds(
    structure: RowStructure, n_folds: int, rng: np.random.Generator, *, classes: AnyArray | None = None
) -> list[Fold]:
    """Split rows into folds.

    Parameters
    ----------
    structure : RowStructure
        Structure of all rows.
    n_folds : int
        At least 1 in time, and 2 for groups.
    rng : numpy.random.Generator
        Deals the groups; in time nothing is drawn.
    classes : (n_rows,) array, optional
        Classes to be spread evenly, as far as groups allow; by default, rows are.

    Returns
    -------
    list of Fold
        With groups, each row validates once, and no fold trains on a row of the same group. In time, all validation
        rows of a fold are later than all its training rows; the older half of the rows only trains, or with a gap more
        of them.

    Raises
    ------
    DataError
        If there are fewer groups than folds, or too few different moments.

    Examples
    --------
    >>> months = RowStructure.from_values([1, 1, 2, 2, 3, 3, 4, 4], StructureKind.TIME)
    >>> [(fold.train.tolist(), fold.validation.tolist()) for fold in structured_folds(months, 2, None)]
    [([0, 1, 2, 3], [4, 5]), ([0, 1, 2, 3, 4, 5], [6, 7])]
    """
    if n_folds > structure.most_folds:
        raise _too_few(structure, n_folds)
    if structure.kind is StructureKind.TIME:
        n_rows = len(structure.codes)
        block = max(1, _newer_rows(structure) // n_folds)
        return _chain(structure, [n_rows - left * block for left in range(n_folds, 0, -1)])
    part = _deal(structure.codes, n_folds, rng, classes)
    return [Fold(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_folds)]


def structured_holdout(
    structure: RowStructure, n_validation: int, rng: np.random.Generator, *, classes: AnyArray | None = None
) -> Fold:
    """Split rows once: some groups validate, or the newest rows.

    Parameters
    ----------
    structure, rng, classes
        As for `structured_folds`.
    n_validation : int
        Wanted number of validation rows; as groups and moments stay whole, there may be more or fewer.

    Raises
    ------
    DataError
        If there is only one group, or one moment.
    """
    if structure.most_folds < 1:
        raise _too_few(structure, 1)
    n_rows = len(structure.codes)
    if structure.kind is StructureKind.TIME:
        if structure.known is not None:
            n_validation = min(n_validation, _newer_rows(structure))
        return _chain(structure, [n_rows - n_validation])[0]
    n_parts = int(np.clip(round(n_rows / n_validation), 2, structure.most_folds))
    part = _deal(structure.codes, n_parts, rng, classes)
    chosen = np.argmin(np.abs(np.bincount(part) - n_validation))
    return Fold(np.flatnonzero(part != chosen), np.flatnonzero(part == chosen))


def _newer_rows(structure: RowStructure) -> int:
    """Return how many rows validate in time: half of them, or with a gap those from `RowStructure.first_begin` on."""
    if structure.known is None:
        return len(structure.codes) // 2
    return int(np.sum(structure.codes >= structure.first_begin))


def _too_few(structure: RowStructure, n_folds: int) -> DataError:
    n_values = int(structure.codes.max(initial=-1)) + 1
    if structure.kind is StructureKind.TIME:
        text = (
            f"There must be {n_folds + 1} different moments for {counted(n_folds, 'fold')} in time, but "
            f"{structure.name!r} holds {n_values}"
        )
        if structure.known is not None:
            text = (
                f"In {structure.name!r}, at most {counted(structure.most_folds, 'block')} of rows can be predicted "
                f"from rows that are older than the gap; {counted(n_folds, 'fold')} were asked for"
            )
    else:
        text = f"{max(n_folds, 2)} folds need as many groups, but {structure.name!r} holds {n_values}"
    return DataError(f"{text}. Use fewer folds, or rows of more {structure.kind.value}.", column=structure.name)


def _chain(structure: RowStructure, wanted: list[int]) -> list[Fold]:
    """Cut ordered rows between moments, near the wanted numbers of rows; each part but the first is a fold."""
    codes, known = structure.codes, structure.known_moments
    starts = np.cumsum(np.bincount(codes))[:-1]  # rows before each moment but the first
    earliest = int(np.argmax(known > 0)) - 1
    cuts: list[int] = []
    for number, rows in enumerate(wanted):
        nearest = int(np.abs(starts - rows).argmin())
        latest = len(starts) - len(wanted) + number  # leave a moment for each cut
        cuts.append(int(np.clip(nearest, earliest, latest)))
        earliest = cuts[-1] + 1
    begins = [cut + 1 for cut in cuts]
    ends = [*begins[1:], len(starts) + 1]
    return [
        Fold(np.flatnonzero(codes < known[begin]), np.flatnonzero((codes >= begin) & (codes < end)))
        for begin, end in zip(begins, ends, strict=True)
    ]


def _deal(codes: IntArray, n_parts: int, rng: np.random.Generator, classes: AnyArray | None) -> IntArray:
    """Return the part of each row; no part is empty if there are as many groups."""
    kinds = np.zeros(len(codes), dtype=np.int64) if classes is None else np.unique(classes, return_inverse=True)[1]
    n_groups, n_kinds = int(codes.max()) + 1, int(kinds.max()) + 1
    counts = np.bincount(codes * n_kinds + kinds, minlength=n_groups * n_kinds).reshape(n_groups, n_kinds)
    shares = counts / counts.sum(axis=0)  # of the rows of each class
    del counts  # with many groups and classes, this is much memory
    order = rng.permutation(n_groups)
    order = order[np.argsort(-shares.sum(axis=1)[order], kind="stable")]
    held, part = np.zeros((n_parts, n_kinds)), np.empty(n_groups, dtype=np.int64)
    for group in order:
        scarcity = (held * shares[group]).sum(axis=1)
        part[group] = np.lexsort((held.sum(axis=1), scarcity))[0]
        held[part[group]] += shares[group]
    return part[codes]
