"""Ensembles for metrics of predicted classes: chosen by the metric itself, or by their probabilities.

    python -m benchmarks label-metrics

From pools of recorded configurations, an ensemble is chosen on the validation rows by the metric, by the Brier score,
by the log loss, and as the mean of five choices by the Brier score, each without a fifth of the rows. The same rows
then give decision thresholds for the metric, except for accuracy. Test rows judge.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.recordings.finding import add_recordings_argument, find_recordings
from benchmarks.recordings.recorded_history import RECORDED, RECORDED_LARGE, RecordedHistory, load_recorded
from benchmarks.recordings.redrawn_split import redraw_split
from benchmarks.runs.row_file import RowFile
from cashmere.base.arrays import Float64
from cashmere.ensembles import select_ensemble
from cashmere.ensembles.threshold import as_certain, decide, tune_thresholds
from cashmere.evaluation.metrics import METRICS, Metric

POOL = 40
"""Number of configurations from which an ensemble is chosen."""

SIZE = 25
PARTS = 5

WAYS = ("by_brier", "by_log_loss", "by_mean")
"""What is compared with the choice by the metric."""

METRIC_NAMES = ("accuracy", "balanced_accuracy", "f1", "f1_macro", "g_mean", "mcc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenBy:
    """Test losses, 1 - metric, of ensembles from one pool.

    Attributes
    ----------
    recording, metric : str
        Name of the recording; metric of the thresholds and the losses.
    seed : int
        Of the split and the pool.
    rarest : float
        Share of the rarest class.
    by_metric, by_brier, by_log_loss, by_mean : float
        Losses if the ensemble is chosen by the metric, the Brier score, the log loss, and as the mean of five choices
        by the Brier score.
    """

    recording: str
    metric: str
    seed: int
    rarest: float
    by_metric: float
    by_brier: float
    by_log_loss: float
    by_mean: float


def judge(history: RecordedHistory, metric_name: str, seed: int) -> ChosenBy:
    """Choose ensembles from one pool, and judge them; F1 is that of the rarer class."""
    split = _rarer_last(redraw_split(history, seed))
    rng = np.random.default_rng(seed)
    pool = rng.choice(split.succeeded, min(POOL, len(split.succeeded)), replace=False)
    validation, test = (part[pool].astype(np.float64) for part in (split.validation, split.test))
    y, y_test = split.y_validation, split.y_test
    part = rng.permutation(len(y)) % PARTS

    def weights(by: str, rows: np.ndarray | slice = slice(None)) -> Float64:
        return select_ensemble(validation[:, rows], y[rows], METRICS[by], size=SIZE, tie="secondary").weights

    def loss(weights: Float64) -> float:
        combined, unseen = (np.tensordot(weights, each, 1) for each in (validation, test))
        return _decided_loss(combined, y, unseen, y_test, METRICS[metric_name])

    return ChosenBy(
        recording=history.name,
        metric=metric_name,
        seed=seed,
        rarest=float(np.bincount(y_test).min() / len(y_test)),
        by_metric=loss(weights(metric_name)),
        by_brier=loss(weights("brier")),
        by_log_loss=loss(weights("log_loss")),
        by_mean=loss(np.mean([weights("brier", part != k) for k in range(PARTS)], axis=0)),
    )


def _rarer_last(history: RecordedHistory) -> RecordedHistory:
    """Exchange two classes if the second is the more frequent one."""
    y, y_test = history.y_validation, history.y_test
    if history.validation.shape[2] != 2 or 2 * y.sum() <= len(y):
        return history
    return replace(
        history,
        validation=history.validation[:, :, ::-1],
        test=history.test[:, :, ::-1],
        y_validation=1 - y,
        y_test=1 - y_test,
    )


def _decided_loss(combined: Float64, y: np.ndarray, unseen: Float64, y_test: np.ndarray, metric: Metric) -> float:
    """Return the loss on test rows with thresholds from validation rows; accuracy takes the most probable class."""
    thresholds = None
    if metric != METRICS["accuracy"]:
        thresholds = tune_thresholds(combined, y, metric, rng=np.random.default_rng(0)).thresholds
    codes = decide(unseen / unseen.sum(axis=1, keepdims=True), thresholds)
    return metric.loss(y_test, as_certain(codes, unseen.shape[1]), None)


def log_ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """Return logarithms of the ratios of mean losses to the choice by the metric, a row per metric and recording."""
    losses = rows.groupby(["metric", "recording"])[["by_metric", *WAYS]].mean()
    return losses[list(WAYS)].div(losses["by_metric"], axis=0).transform(np.log)


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the changes of the loss in per cent against the choice by the metric, by metric.

    Means and numbers are over recordings, of each the mean loss of its pools.
    """
    logs = log_ratios(rows)
    changes = {}
    for way in WAYS:
        by_metric = logs[way].groupby("metric")
        changes[way, "mean %"] = 100 * np.expm1(by_metric.mean())
        changes[way, "lower"] = by_metric.agg(lambda values: (values < 0).sum()).astype(int)
        changes[way, "of"] = by_metric.size()
    return pd.DataFrame(changes).round(2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings_argument(parser, [str(RECORDED_LARGE), str(RECORDED)])
    parser.add_argument("--pools", type=int, default=10, help="ensembles per recording and metric")
    parser.add_argument("--out", type=Path, default=Path(".replay/label_metrics.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(width=140), RowFile(arguments.out, ChosenBy)
    done = file.keys("recording", "metric", "seed")
    for recording in find_recordings(arguments.recordings):
        history = load_recorded(recording.path)
        if not history.task_type.is_classification:
            continue
        for metric in METRIC_NAMES:
            if metric == "f1" and history.validation.shape[2] > 2:
                continue
            seeds = [seed for seed in range(arguments.pools) if (history.name, metric, seed) not in done]
            file.add(judge(history, metric, seed) for seed in seeds)
    console.print(summarise(file.frame(seed=range(arguments.pools))).to_string())
