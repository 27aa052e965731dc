"""Another split of a recording: which of the rows that no learner has seen choose the ensemble, and which judge it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.recordings.recorded_history import RecordedHistory
from cashmere.base.arrays import BoolArray


def redraw_split(history: RecordedHistory, seed: int) -> RecordedHistory:
    """Return a recording whose validation and test rows are drawn anew.

    Parameters
    ----------
    history : RecordedHistory
        Its validation and test rows together are the rows that no learner has seen.
    seed : int
        Seed of the draw.

    Returns
    -------
    RecordedHistory
        As many validation and as many test rows as before, drawn from the same rows; every class has about the same
        share of both.
    """
    y = np.concatenate([history.y_validation, history.y_test])
    is_validation = draw_rows(y, len(history.y_validation), seed, classes=history.task_type.is_classification)
    predictions = np.concatenate([history.validation, history.test], axis=1)
    return replace(
        history,
        validation=predictions[:, is_validation],
        test=predictions[:, ~is_validation],
        y_validation=y[is_validation],
        y_test=y[~is_validation],
    )


def draw_rows(y: np.ndarray, n: int, seed: int, *, classes: bool) -> BoolArray:
    """Draw n rows: at equal steps from a random beginning, through all of them in random order, sorted by class.

    Parameters
    ----------
    y : (n_rows,) array
        Class codes or values.
    n : int
        Number of rows to draw.
    seed : int
        Seed of the draw.
    classes : bool
        Whether `y` holds classes.

    Returns
    -------
    (n_rows,) bool array
        True for the n rows.
    """
    rng = np.random.default_rng([seed, len(y)])
    order = rng.permutation(len(y))
    if classes:
        order = order[np.argsort(y[order], kind="stable")]
    beginning = rng.random()
    passed = np.floor(np.arange(len(y) + 1) * (n / len(y)) + beginning)
    passed[-1] = passed[0] + n  # against rounding
    drawn = np.zeros(len(y), dtype=np.bool_)
    drawn[order] = np.diff(passed) > 0
    return drawn
