"""A quick look for a column that leaks the target, at the start of a run."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.data.column import ColumnKind
from cashmere.data.column_values import LARGEST
from cashmere.data.schema import CodedTable
from cashmere.data.task import TaskType
from cashmere.inspection.solo_skill import LEAST_ROWS, PARTS, draw_rows, solo_skill, target_matrix

ALONE = 0.95
"""Skill from which a column is suspected of leaking the target."""

_CELLS = 200_000
_ROWS = 2_000
"""Most cells and most rows of the look: fewer than `inspect_table` takes, since it is part of every run."""

_ROWS_DRAWN_FROM = 100_000
"""With more rows, sorting them by class would take longer than the look."""

_TOGETHER = 0.9
"""Skill that a tree of all columns has if one of them reaches `ALONE`; it sees levels only as numbers."""

_MAIN_SHARE = 0.5
"""Share of what such a tree explains that is due to that column."""


def leak_hint(coded: CodedTable, y: AnyArray, task_type: TaskType) -> str | None:
    """Return a warning about a column that predicts the target nearly alone; None if there is none.

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
    It takes milliseconds: only the main column of a tree that predicts well is judged on its own.
    """
    n_columns = coded.values.shape[1]
    if len(coded) < LEAST_ROWS or n_columns == 0:
        return None
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(len(y), min(len(y), _ROWS_DRAWN_FROM), replace=False))
    rows = some[draw_rows(y[some], max(LEAST_ROWS * PARTS, min(_ROWS, _CELLS // n_columns)), task_type, rng)]
    values, targets, part = coded.values[rows], target_matrix(y[rows], task_type), rng.permutation(len(rows)) % PARTS
    suspect = _main_column(values, targets, part)
    if suspect is None or coded.schema.value_columns[suspect].kind is ColumnKind.DATE:
        return None
    skill = solo_skill(values[:, suspect], targets, part, n_levels=int(coded.n_levels[suspect]))
    if skill < ALONE:
        return None
    return (
        f"Column {coded.schema.value_columns[suspect].name!r} predicts the target nearly alone (skill {skill:.3f}). If "
        "it is known only after the target, it leaks: leave it out. cashmere inspect shows the skill of every column."
    )


def _main_column(values: FloatArray, targets: Float64, part: IntArray) -> int | None:
    """Return the column that explains most in trees of all columns, if these predict well."""
    from sklearn.tree import DecisionTreeRegressor

    values = values.clip(-LARGEST, LARGEST)  # trees read float32
    left = total = 0.0
    shares = np.zeros(values.shape[1])
    for number in range(PARTS):
        held_out = part == number
        tree = DecisionTreeRegressor(min_samples_leaf=5, max_leaf_nodes=64, random_state=0)
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds them up in its checks
            tree.fit(values[~held_out], targets[~held_out])
            predicted = tree.predict(values[held_out]).reshape(-1, targets.shape[1])
        shares += tree.feature_importances_ / PARTS
        left += float(np.square(targets[held_out] - predicted).sum())
        total += float(np.square(targets[held_out] - targets[~held_out].mean(axis=0)).sum())
    main = int(np.argmax(shares))
    return main if left < (1 - _TOGETHER) * total and shares[main] > _MAIN_SHARE else None
