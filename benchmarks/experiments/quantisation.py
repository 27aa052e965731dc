"""What storing predictions as steps does to the losses of ensembles.

    python -m benchmarks quantisation

The older recordings hold float16 predictions. From pools of their configurations, ensembles are chosen and judged
twice: on what the file holds, and on what would come back from a file of today.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.recordings.finding import find_recordings
from benchmarks.recordings.quantised_predictions import to_codes, to_predictions, value_step
from benchmarks.recordings.recorded_history import RecordedHistory, load_recorded
from benchmarks.recordings.redrawn_split import redraw_split
from benchmarks.recordings.replay import ensemble_losses
from benchmarks.runs.row_file import RowFile
from cashmere.evaluation.metrics import get_metric

POOL = 100
"""Number of configurations from which an ensemble is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTwice:
    """An ensemble from one pool.

    Attributes
    ----------
    recording, metric : str
        Name of the recording; metric of the choice and the losses.
    seed : int
        Of the split and the pool.
    validation, test : float
        Losses with the predictions of the file.
    validation_in_steps, test_in_steps : float
        Losses if they are stored as steps.
    """

    recording: str
    metric: str
    seed: int
    validation: float
    test: float
    validation_in_steps: float
    test_in_steps: float


def in_steps(history: RecordedHistory) -> RecordedHistory:
    """Return a recording with the predictions that would come back from a file."""
    kept = np.concatenate([history.validation, history.test], axis=1)
    there = kept[history.succeeded]
    y = np.concatenate([history.y_validation, history.y_test])
    step = 0.0 if history.task_type.is_classification else value_step(there, y)
    back = kept.copy()
    back[history.succeeded] = to_predictions(to_codes(there, history.task_type, step), history.task_type, step)
    n = len(history.y_validation)
    return replace(history, validation=back[:, :n], test=back[:, n:])


def judge(history: RecordedHistory, metric_name: str, seeds: Iterable[int]) -> Iterable[JudgedTwice]:
    """Choose and judge ensembles, each from a pool of another seed."""
    metric = get_metric(metric_name, history.task_type)
    forms = (history, in_steps(history))
    for seed in seeds:
        pool = np.random.default_rng(seed).choice(history.succeeded, POOL, replace=False).tolist()
        ((exact,), (rounded,)) = (ensemble_losses(redraw_split(form, seed), metric, pool, [POOL]) for form in forms)
        yield JudgedTwice(
            recording=history.name,
            metric=metric.name,
            seed=seed,
            validation=exact["validation"],
            test=exact["test"],
            validation_in_steps=rounded["validation"],
            test_in_steps=rounded["test"],
        )


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the changes of the losses in per cent: the mean and the largest, by recording and metric."""
    changed = {f"{part} %": 100 * (rows[f"{part}_in_steps"] / rows[part] - 1) for part in ("validation", "test")}
    grouped = rows.assign(**changed).groupby(["metric", "recording"])
    changes = {}
    for part in ("validation %", "test %"):
        changes[f"{part}, mean"] = grouped[part].mean()
        changes[f"{part}, largest"] = grouped[part].agg(lambda values: values.abs().max())
    return pd.DataFrame(changes).round(3)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pools", type=int, default=10, help="ensembles per recording and metric")
    parser.add_argument("--out", type=Path, default=Path(".replay/quantisation.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(width=140), RowFile(arguments.out, JudgedTwice)
    done = file.keys("recording", "metric", "seed")
    for recording in find_recordings([]):
        if (history := load_recorded(recording.path)).searches:
            continue  # its predictions are steps already
        for metric in ("log_loss", "accuracy") if history.task_type.is_classification else ("mse",):
            seeds = [seed for seed in range(arguments.pools) if (history.name, metric, seed) not in done]
            file.add(judge(history, metric, seeds))
    console.print(summarise(file.frame(seed=range(arguments.pools))).to_string())
