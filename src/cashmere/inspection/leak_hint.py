"""A quick look for a column that leaks the target, at the start of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.data.column import ColumnKind
from cashmere.data.schema import CodedTable
from cashmere.data.task import TaskType
from cashmere.inspection.solo_skill import (
    FINE,
    LEAST_ROWS,
    PARTS,
    draw_rows,
    fit_tree,
    solo_skill,
    target_matrix,
    text_skill,
)

_ALONE = 0.9
"""Skill from which a column is suspected of leaking the target: a flag that is wrong in one row of a hundred has about
0.94. Of 128 tables, five have a column that reaches it; the next ones have 0.88 and 0.83."""

_ALONE_FOR_RARE = 0.5
"""The same if a class is rare: honest columns explain little of so few rows."""

ALONE_FOR_TEXT = 0.93
"""The same for texts, also if a class is rare: honest ones may tell much, those of mails whether they are spam 0.73."""

_RARE_SHARE = 0.05
"""If one of two classes has a smaller share of the rows, a model that never predicts it seems good."""

_CELLS = 200_000
_ROWS = 2_000
"""Most cells and most rows of the look: fewer than `inspect_table` takes, since it is part of every run."""

_ROWS_DRAWN_FROM = 100_000
"""With more rows, sorting them by class would take longer than the look."""

_LOST_TOGETHER = 0.05
"""How much less skill than its main column a tree of all columns may have; it sees levels only as numbers."""

_MAIN_SHARE = 0.5
"""Share of what such a tree explains that is due to that column."""


def has_rare_class(counts: Sequence[int] | IntArray) -> bool:
    """Return whether one of two classes is rare, given the rows of each class."""
    return len(counts) == 2 and bool(min(counts) < _RARE_SHARE * sum(counts))


def suspicion(*, for_rare: bool) -> tuple[float, str]:
    """Return the skill from which a column is suspected, and what it is said to predict alone."""
    return (_ALONE_FOR_RARE, "much of a rare class") if for_rare else (_ALONE, "the target nearly")


def leak_hint(coded: CodedTable, y: AnyArray, task_type: TaskType) -> str | None:
    """Return a warning about a column that predicts the target, or a rare class, alone; None if there is none.

    Parameters
    ----------
    coded : CodedTable
        The features. Dates are left out: of their rows, those of nearby days are alike.
    y : (n_rows,) array
        Class codes or values.
    task_type : TaskType
        How to read `y`.

    Notes
    -----
    It takes milliseconds, and tenths of a second for a column of texts: only these, and the main column of a tree that
    predicts well, are judged on their own.
    """
    n_columns = coded.values.shape[1]
    if len(coded) < LEAST_ROWS or n_columns + len(coded.texts) == 0:
        return None
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(len(y), min(len(y), _ROWS_DRAWN_FROM), replace=False))
    rows = some[draw_rows(y[some], max(LEAST_ROWS * PARTS, min(_ROWS, _CELLS // max(1, n_columns))), task_type, rng)]
    values, targets, part = coded.values[rows], target_matrix(y[rows], task_type), rng.permutation(len(rows)) % PARTS
    is_rare = task_type is TaskType.BINARY and has_rare_class(np.bincount(y[some]))
    alone, predicted = suspicion(for_rare=is_rare)
    for name, text in zip(coded.schema.text_names, coded.take_texts(rows), strict=True):
        if (skill := text_skill(text, targets, part)) >= ALONE_FOR_TEXT:
            return _warning(name, "the target nearly", skill)
    suspect = _main_column(values, targets, part, alone - _LOST_TOGETHER) if n_columns else None
    if suspect is None or coded.schema.value_columns[suspect].kind is ColumnKind.DATE:
        return None
    skill = solo_skill(values[:, suspect], targets, part, n_levels=int(coded.n_levels[suspect]))
    return _warning(coded.schema.value_columns[suspect].name, predicted, skill) if skill >= alone else None


def _warning(name: str, predicted: str, skill: float) -> str:
    return (
        f"Column {name!r} predicts {predicted} alone (skill {skill:.3f}). If it is known only after the target, it "
        "leaks: leave it out. cashmere inspect (inspect_table) shows the skill of every column."
    )


def _main_column(values: FloatArray, targets: Float64, part: IntArray, least: float) -> int | None:
    """Return the column that explains most in trees of all columns, if these have at least some skill."""
    left = total = 0.0
    shares = np.zeros(values.shape[1])
    for number in range(PARTS):
        held_out = part == number
        predicted, importances = fit_tree(values[~held_out], targets[~held_out], values[held_out], **FINE)
        shares += importances / PARTS
        left += float(np.square(targets[held_out] - predicted).sum())
        total += float(np.square(targets[held_out] - targets[~held_out].mean(axis=0)).sum())
    main = int(np.argmax(shares))
    return main if left <= (1 - least) * total and shares[main] > _MAIN_SHARE else None
