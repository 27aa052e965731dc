"""Which rows train and which validate."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray, IntArray
from cashmere.data.fold import Fold
from cashmere.data.row_structure import RowStructure
from cashmere.data.structured_folds import structured_folds, structured_holdout
from cashmere.data.task import TaskType
from cashmere.exceptions import DataError, InvalidParameterError

_FOLDS = 5
_MOST_ROWS = 20_000
"""Under a budget of trials, larger tables get a holdout."""

_MOST_ROWS_IN_TIME = 37_500
"""Under a budget of time, larger tables get a holdout: with five folds, trials would begin on rungs, which was not
tried."""

_FIVE_FOLDS, _THREE_FOLDS = 40_000, 100_000
"""Most cells (rows x columns x classes) per second of the budget: docs/benchmarks.md#few-folds-or-few-trials."""

_FEW_ROWS, _FIVE_FOLDS_OF_MORE = 5_000, 4_000
"""With more rows, five folds have fewer cells: docs/benchmarks.md#three-folds-and-fits-on-all-rows."""

_MANY_ROWS, _MOST_LENIENT = 10_000, 4.0
"""With fewer rows, three folds may have more cells in proportion, but at most so many times."""

_HOLDOUT_SHARE = 0.25
_HOLDOUT_ROWS = 20_000
_NAME_OF_FOLDS = re.compile(r"(\d+)[ -]?folds?")
_NAMES = "'auto', 'holdout', or 'Nfold' with N >= 2 (for example '5fold')"
_EXPECTED = f"{_NAMES}; or a scikit-learn splitter, or a list of pairs of row numbers (training, validation)"


def make_folds(
    y: AnyArray,
    task_type: TaskType,
    resampling: Any = "auto",
    *,
    seed: int,
    n_columns: int = 1,
    structure: RowStructure | None = None,
) -> list[Fold]:
    """Split the training rows.

    Parameters
    ----------
    y : (n_rows,) array
        Class codes or values.
    task_type : TaskType
        Classes are spread evenly over the folds; rows of a regression are only shuffled.
    resampling : str or splitter
        ``"holdout"`` (a quarter validates, at most 20000 rows: 100000 chose no better, see docs/benchmarks.md, "Large
        tables"), ``"Nfold"``, ``"auto"`` (see `choose_resampling`), an object with ``split(X, y)`` (a row may validate
        several times), or pairs of row numbers.
    seed : int
        Seed of the shuffling; ignored by a splitter.
    n_columns : int
        Width of the placeholder table that a splitter gets.
    structure : RowStructure, optional
        Groups or moments that folds respect, see `structured_folds`; not with a splitter.

    Returns
    -------
    list of Fold
        With ``"Nfold"`` every row validates exactly once, even in classes smaller than N; N is lowered to the
        number of rows. With ``"holdout"`` a class with a single row stays in training.

    Raises
    ------
    InvalidParameterError
        If `resampling` is not understood, or a splitter gives empty, overlapping or impossible rows.
    DataError
        If there is only one row, or fewer groups or moments than folds need.

    Examples
    --------
    >>> folds = make_folds(np.array([0, 0, 1, 1]), TaskType.BINARY, "2fold", seed=0)
    >>> [len(fold.validation) for fold in folds]
    [2, 2]
    """
    n_rows = len(y)
    if n_rows < 2:
        raise DataError(
            f"Found array with {n_rows} sample(s) (n_samples={n_rows}) while a minimum of 2 is required: one row "
            "to train and one to validate."
        )
    if not isinstance(resampling, str):
        return _folds_from_splitter(y, resampling, n_columns)
    check_name(resampling)
    name = resampling.strip().lower()
    if name == "auto":
        name = choose_resampling(n_rows)
    match = _NAME_OF_FOLDS.fullmatch(name)
    if structure is not None:
        rng, classes = np.random.default_rng(seed), y if task_type.is_classification else None
        if match is None:
            return [structured_holdout(structure, max(1, round(_holdout_share(n_rows) * n_rows)), rng, classes=classes)]
        return structured_folds(structure, int(match[1]), rng, classes=classes)
    rows = _shuffled(y, task_type, seed)
    if match is None:
        return [_holdout(y, rows, task_type)]
    k = min(int(match[1]), n_rows)
    fold_of = np.empty(n_rows, dtype=np.int64)
    fold_of[rows] = np.arange(n_rows) % k  # round robin spreads every class evenly
    return [Fold(np.flatnonzero(fold_of != i), np.flatnonzero(fold_of == i)) for i in range(k)]


def check_name(resampling: str) -> None:
    """Raise an `InvalidParameterError` if there is no resampling of a name.

    Examples
    --------
    >>> check_name("5fold")
    """
    name = resampling.strip().lower()
    match = _NAME_OF_FOLDS.fullmatch(name)
    if name not in ("auto", "holdout") and (match is None or int(match[1]) < 2):
        raise InvalidParameterError("resampling", resampling, _NAMES)


def choose_resampling(
    n_rows: int, n_cells: int = 0, *, seconds: float | None = None, structure: RowStructure | None = None
) -> str:
    """Choose the resampling for ``"auto"``.

    Parameters
    ----------
    n_rows : int
        Training rows.
    n_cells : int
        Rows x columns x classes: about proportional to the time of fitting a boosting machine.
    seconds : float, optional
        Time budget of the whole study.
    structure : RowStructure, optional
        Groups or moments of the rows.

    Returns
    -------
    str
        With a budget of time, ``"5fold"`` or ``"3fold"`` if they leave time for some trials: each member is then the
        mean of as many models, and a few such members are better than many of one model each. With few rows, folds
        are worth more, so three may take more of the time; with more than 5,000 rows, five take less of it, since
        members are fitted on all rows, too. Above 37,500 rows ``"holdout"``. Without a budget of time
        ``"5fold"`` up to 20,000 rows, then ``"holdout"``: 5,000 validation rows fix an error rate to about 0.5
        percentage points. Fewer folds if there are too few groups or moments.

    Examples
    --------
    >>> choose_resampling(6430, 6430 * 36 * 6, seconds=5)
    'holdout'
    >>> choose_resampling(6430, 6430 * 36 * 6, seconds=60)
    '3fold'
    >>> choose_resampling(6430, 6430 * 36 * 6, seconds=600)
    '5fold'
    """
    if seconds is None:
        wanted = _FOLDS if n_rows <= _MOST_ROWS else 1
    elif n_rows <= _MOST_ROWS_IN_TIME:
        lenience = min(_MOST_LENIENT, max(1.0, _MANY_ROWS / n_rows))
        most_of_five = _FIVE_FOLDS if n_rows <= _FEW_ROWS else _FIVE_FOLDS_OF_MORE
        limits = ((_FOLDS, most_of_five), (3, lenience * _THREE_FOLDS))
        wanted = next((n_folds for n_folds, most in limits if n_cells <= most * seconds), 1)
    else:
        wanted = 1
    if structure is not None:
        wanted = min(wanted, structure.usual_folds)
    return f"{wanted}fold" if wanted > 1 else "holdout"


def _shuffled(y: AnyArray, task_type: TaskType, seed: int) -> IntArray:
    """Return all rows in random order; in classification, class after class."""
    rows = np.random.default_rng(seed).permutation(len(y)).astype(np.int64)
    if not task_type.is_classification:
        return rows
    codes = y[rows]
    if codes.max() < 2**15:
        codes = codes.astype(np.int16)  # sorted in linear time
    return rows[np.argsort(codes, kind="stable")]


def _holdout_share(n_rows: int) -> float:
    return min(_HOLDOUT_SHARE, _HOLDOUT_ROWS / n_rows)


def _holdout(y: AnyArray, rows: IntArray, task_type: TaskType) -> Fold:
    share = _holdout_share(len(y))
    groups = [rows]
    if task_type.is_classification:
        groups = np.split(rows, np.flatnonzero(np.diff(y[rows])) + 1)
    chosen = [group[: max(1, int(len(group) * share + 0.5))] for group in groups if len(group) > 1]
    validation = np.sort(np.concatenate(chosen) if chosen else rows[-1:])
    trains = np.ones(len(y), dtype=bool)
    trains[validation] = False
    return Fold(np.flatnonzero(trains), validation)


def _folds_from_splitter(y: AnyArray, splitter: Any, n_columns: int) -> list[Fold]:
    if hasattr(splitter, "split"):
        pairs = splitter.split(np.zeros((len(y), n_columns)), y)
    elif isinstance(splitter, Iterable):
        pairs = splitter
    else:
        raise InvalidParameterError("resampling", splitter, _EXPECTED)
    try:
        folds = [_fold(pair) for pair in pairs]
    except (TypeError, ValueError) as error:  # ValueError: too few rows for the splitter, or no groups
        advice = (
            f"Its folds cannot be read: {str(error).rstrip('.')}. With groups, pass its pairs, "
            "list(splitter.split(X, y, groups)); or a number of folds, such as '5fold', and groups= to fit."
        )
        raise InvalidParameterError("resampling", splitter, _EXPECTED, advice) from error
    parts = [part for fold in folds for part in (fold.train, fold.validation)]
    if not parts or any(not len(part) or part[0] < 0 or part[-1] >= len(y) for part in parts):
        raise InvalidParameterError(
            "resampling",
            splitter,
            f"a splitter that yields non-empty training and validation rows, all below {len(y)}",
        )
    if any(len(np.intersect1d(fold.train, fold.validation)) for fold in folds):
        raise InvalidParameterError(
            "resampling", splitter, "a splitter whose training and validation rows do not overlap"
        )
    return folds


def _fold(pair: Any) -> Fold:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"expected pairs, found {type(pair).__name__}; a single split is [(training, validation)]")
    return Fold(*map(_row_numbers, pair))


def _row_numbers(rows: Any) -> IntArray:
    """Return row numbers in ascending order, each once; raise TypeError for a mask or anything else."""
    numbers = np.unique(np.asarray(rows))
    if len(numbers) and numbers.dtype.kind not in "iu":
        raise TypeError(f"expected row numbers, found {numbers.dtype}; numpy.flatnonzero turns a mask into row numbers")
    return numbers.astype(np.int64)
