"""The relative costs of algorithms: the table that comes with the package, made from recordings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.recordings.recorded_history import RecordedHistory
from cashmere.base.files import write_atomically
from cashmere.costs.predicted import OVERHEAD_SECONDS
from cashmere.costs.relative import RELATIVE_COSTS
from cashmere.records.trial import TrialStatus

_RIDGE = 0.1
"""Weight of the assumption that an algorithm is of average cost; it decides only between equally good solutions."""


def relative_costs(histories: Sequence[RecordedHistory]) -> dict[str, float]:
    """Return the logarithm of the relative cost of each algorithm, such that their mean is 0.

    The mean log seconds of an algorithm on a table are taken as a sum of one term of the table and one of the
    algorithm (least squares), so that algorithms recorded on different tables can be compared through those that
    share a table with both.

    Parameters
    ----------
    histories : sequence of RecordedHistory
        Trials that met a limit count with the limit; errors do not count.
    """
    means = {(table, name): value for table, h in enumerate(histories) for name, value in _mean_log_seconds(h).items()}
    names = sorted({name for _, name in means})
    design = np.zeros((len(means), len(histories) + len(names)))
    for row, (table, name) in enumerate(means):
        design[row, [table, len(histories) + names.index(name)]] = 1.0
    ridge = _RIDGE * np.hstack([np.zeros((len(names), len(histories))), np.eye(len(names))])
    values = np.concatenate([list(means.values()), np.zeros(len(names))])
    solution, *_ = np.linalg.lstsq(np.concatenate([design, ridge]), values)
    costs = solution[len(histories) :]
    return dict(zip(names, (costs - costs.mean()).tolist(), strict=True))


def write_relative_costs(costs: Mapping[str, float], histories: Sequence[RecordedHistory]) -> Path:
    """Write the table of the package, with its provenance; return its path."""
    content = {
        "provenance": "python -m benchmarks costs --write, from CPU seconds of " + ", ".join(h.name for h in histories),
        "relative_costs": {name: round(float(np.exp(cost)), 3) for name, cost in costs.items()},
    }
    write_atomically(RELATIVE_COSTS, (json.dumps(content, indent=2) + "\n").encode())
    return RELATIVE_COSTS


def _mean_log_seconds(history: RecordedHistory) -> dict[str, float]:
    names = np.array([str(configuration["algorithm"]) for configuration in history.configurations])
    counted = np.array([status is not TrialStatus.ERROR for status in history.statuses])
    logs = np.log(history.seconds + OVERHEAD_SECONDS)
    return {str(name): float(logs[counted & (names == name)].mean()) for name in np.unique(names[counted])}
