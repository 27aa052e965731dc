"""A recorded history without any learning: noisy guesses of the target, better near x = 0.7."""

from __future__ import annotations

import numpy as np
from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace, UniformFloatHyperparameter

from benchmarks.recordings.recorded_history import RecordedHistory
from cashmere.data.task import TaskType
from cashmere.records.trial import TrialStatus


def make_recording(
    task_type: TaskType = TaskType.BINARY, *, n: int = 30, n_rows: int = 40, failures: tuple[int, ...] = (3,)
) -> RecordedHistory:
    rng = np.random.default_rng(0)
    space = ConfigurationSpace(
        space=[CategoricalHyperparameter("algorithm", ["near", "far"]), UniformFloatHyperparameter("x", 0.0, 1.0)]
    )
    configurations = tuple(
        Configuration(space, values={"algorithm": ("near", "far")[i % 2], "x": float(np.round(rng.random(), 6))})
        for i in range(n)
    )
    n_classes = {TaskType.BINARY: 2, TaskType.MULTICLASS: 4, TaskType.REGRESSION: 0}[task_type]
    y = rng.normal(size=2 * n_rows) if not n_classes else np.arange(2 * n_rows) % n_classes
    parts = []
    for configuration in configurations:
        quality = 2 - abs(configuration["x"] - 0.7) - (configuration["algorithm"] == "far")
        if not n_classes:
            parts.append(y + rng.normal(size=len(y)) / (1 + quality))
            continue
        logits = quality * np.eye(n_classes)[y] + rng.normal(size=(len(y), n_classes))
        parts.append(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
    predictions = np.array(parts, dtype=np.float32)
    predictions[list(failures)] = np.nan
    return RecordedHistory(
        dataset="made",
        space_name="small",
        task_type=task_type,
        space=space,
        configurations=configurations,
        statuses=tuple(TrialStatus.TIMEOUT if i in failures else TrialStatus.SUCCESS for i in range(n)),
        seconds=np.round(rng.random(n), 3),
        validation=predictions[:, :n_rows],
        test=predictions[:, n_rows:],
        y_validation=y[:n_rows],
        y_test=y[n_rows:],
        facts={"limit_cpu_seconds": 10.0},
    )
