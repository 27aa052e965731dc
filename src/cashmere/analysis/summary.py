"""The summary of a run's diversity for the report, as plain data and within a bounded time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.analysis.diversity import mean_over_pairs, pairwise_disagreement, pairwise_diversity
from cashmere.analysis.recorded import RecordedPredictions, read_predictions
from cashmere.analysis.trajectory import PoolTrajectory, pool_updates, trace_pool
from cashmere.base.arrays import AnyArray
from cashmere.ensembles.kernels import make_kernel
from cashmere.evaluation.metrics import Metric
from cashmere.exceptions import CashmereError

LEAST_TRIALS = 8
"""Smallest number of successful trials whose course shows anything."""

MEDIAN_WINDOW = 15
MEMBERS_SHOWN = 25

_ROWS = (1000, 500)
"""Validation rows used: normally, and if selection is slow."""

_VALUES = 100_000
_BYTES = 2**28
_NANOSECONDS = 4e8
"""Time limit for building the pools. The time is estimated, not measured, so that a run always gets the same report."""

_NANOSECONDS_OF_KERNEL = {"log_loss": 3.0, "roc_auc": 40.0}
_LEAST_POOLS = 8

_TOO_LARGE = "Repeating the selection would take too long for this report; use cashmere.analysis instead."


def summarise_diversity(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    metric: Metric | None,
    members: Sequence[int],
    size: int = 25,
) -> dict[str, Any]:
    """Return how the ensemble of a run grew and how much its members differ; never make a report fail.

    Parameters
    ----------
    folder : Path
        The run directory.
    rows : sequence of dict
        From `RunStore.rows`.
    metric : Metric or None
        None for a custom metric, which cannot choose an ensemble here.
    members : sequence of int
        Trials of the final ensemble, largest weight first; empty while there is none. Negative numbers are no trials.
    size : int
        Picks of the selection.

    Returns
    -------
    dict
        ``course``: None, or per trial the ``minimum`` diversity with its running ``median`` and the mean ``member``
        loss, each a list of [trial number, number]; ``updates`` of the ensemble over the last trials, if known.
        ``matrix``: None, or the diversity of all pairs of ``members``. ``why_not``: the text to show instead of a
        missing course. ``in_target_units``: True if diversity is in units of the target, False if in [0, 1].
    """
    summary: dict[str, Any] = {
        "course": None,
        "why_not": None,
        "members": [],
        "matrix": None,
        "disagreement": None,
        "mean_diversity": None,
        "in_target_units": False,
    }
    good = [row for row in rows if row["status"] == "success" and row["predictions_crc"] is not None]
    if not good:
        summary["why_not"] = "No predictions were recorded."
        return summary
    try:
        _add_course(summary, folder, rows, metric, size, n_good=len(good))
        _add_matrix(summary, folder, [n for n in members if 0 <= n < len(rows)])
    except (CashmereError, OSError, ValueError, LookupError, TypeError, ArithmeticError):
        summary["why_not"] = "The predictions recorded in the run directory cannot be read."
    return summary


def _add_course(
    summary: dict[str, Any],
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    metric: Metric | None,
    size: int,
    *,
    n_good: int,
) -> None:
    if metric is None:
        summary["why_not"] = "The growth of the ensemble cannot be drawn for a custom metric."
        return
    if n_good < LEAST_TRIALS:
        summary["why_not"] = f"The growth of the ensemble is drawn from {LEAST_TRIALS} successful trials on."
        return
    if sum(path.stat().st_size for path in (folder / "predictions").glob("[0-9]*.npy")) > _BYTES:
        summary["why_not"] = _TOO_LARGE
        return
    recorded = read_predictions(folder, max_rows=_ROWS[0], max_values=_VALUES)
    n_rows, n_pools = _affordable(recorded, metric, n_good, size)
    if n_pools < min(_LEAST_POOLS, n_good):
        summary["why_not"] = _TOO_LARGE
        return
    trajectory = trace_pool(
        recorded.predictions,
        recorded.losses if metric.is_mean else _joined_losses(recorded, metric),
        recorded.y,
        metric,
        weight=recorded.weight,
        size=size,
        tie="secondary",
        max_rows=n_rows,
        max_pools=n_pools,
    )
    summary["course"] = _course(trajectory)
    summary["in_target_units"] = next(p.ndim == 1 for p in recorded.predictions if p is not None)


def _joined_losses(recorded: RecordedPredictions, metric: Metric) -> list[float]:
    """Compute losses on all rows together, like those of ensembles; the recorded ones are means over folds."""
    y, weight = recorded.y, recorded.weight
    return [
        np.nan if p is None or not np.isfinite(p).all() else metric.loss(y, p, weight) for p in recorded.predictions
    ]


def _affordable(recorded: RecordedPredictions, metric: Metric, n_good: int, size: int) -> tuple[int, int]:
    """Return how many rows to use and how many pools to build."""
    shape = next(prediction.shape for prediction in recorded.predictions if prediction is not None)
    width = shape[1] if len(shape) == 2 else 1
    weight = None if recorded.weight is None else recorded.weight.astype(np.float64)
    kernel = make_kernel(metric, recorded.y, shape, weight)
    # Measured nanoseconds per candidate, row and pick.
    unit = 60.0 * width if kernel is None else _NANOSECONDS_OF_KERNEL.get(metric.name, 1.2 * width + 1)
    for n_rows in (min(limit, len(recorded.y)) for limit in _ROWS):
        # All pools: each trial is judged once per pick. About a quarter of the trials change the pool, each with half
        # of all trials as candidates on average. With more than two classes, the diversity takes time as well.
        pairs = 1200 * n_good * n_rows if width > 2 else 0
        if n_good * size * n_rows * (15 + unit * n_good / 8) + pairs <= _NANOSECONDS:
            return n_rows, len(recorded.predictions)
    # On the grid of `trace_pool`, a third of the trials are candidates on average, and every pool changes.
    return n_rows, int(_NANOSECONDS / (unit * n_rows * size * n_good / 3))


def _course(trajectory: PoolTrajectory) -> dict[str, Any]:
    minimum, losses = trajectory.minimum_diversity, trajectory.member_losses
    known = np.flatnonzero(np.isfinite(minimum))
    medians = [np.median(minimum[known[max(0, i + 1 - MEDIAN_WINDOW) : i + 1]]) for i in range(len(known))]
    return {
        "minimum": [[int(t), float(minimum[t])] for t in known],
        "median": [[int(t), float(m)] for t, m in zip(known, medians, strict=True)][MEDIAN_WINDOW // 3 :],
        "member": [[int(t), float(losses[t])] for t in np.flatnonzero(np.isfinite(losses))],
        "updates": [
            {
                **pool_updates(trajectory, last=last)._asdict(),
                "last": last,
                "exact": bool(trajectory.built[-last:].all()),
            }
            for last in (50, 100)
            if last <= len(trajectory)
        ],
        "n_rows": trajectory.n_rows,
    }


def _add_matrix(summary: dict[str, Any], folder: Path, members: Sequence[int]) -> None:
    shown = list(members[:MEMBERS_SHOWN])
    if len(shown) < 2:
        return
    recorded = read_predictions(folder, max_rows=_ROWS[0], max_values=_VALUES, trials=shown)
    found: list[tuple[int, AnyArray]] = [(n, p) for n in shown if (p := recorded.predictions[n]) is not None]
    if len(found) < 2:
        return
    stack = np.stack([prediction for _, prediction in found])
    matrix = pairwise_diversity(stack, row_weights=recorded.weight)
    if not np.isfinite(matrix).all():
        return
    summary["members"] = [number for number, _ in found]
    summary["matrix"] = matrix.tolist()
    summary["mean_diversity"] = mean_over_pairs(matrix)
    summary["in_target_units"] = stack.ndim == 2
    if stack.ndim == 3:
        summary["disagreement"] = mean_over_pairs(pairwise_disagreement(stack))
