"""How well recordings answer for configurations that they do not hold.

    python -m benchmarks emulator

A fifth of the configurations of a recording is kept from its emulator, five times, so that each is answered once.
Judged are the order of their losses (Kendall's tau), the losses themselves (the median factor between the answered and
the true one: below 1, answers are too good, as those of ensembles would be), and the predictions: the distance of
answered ones from true ones, and beside it that of another configuration of the same algorithm, drawn at random.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.recordings.emulator import Emulator
from benchmarks.recordings.finding import add_recordings_argument, find_recordings
from benchmarks.recordings.recorded_history import RecordedHistory, load_recorded
from benchmarks.runs.row_file import RowFile
from cashmere.analysis import kendall_tau
from cashmere.base.arrays import FloatArray
from cashmere.evaluation.metrics import default_metric
from cashmere.records.trial import TrialStatus
from cashmere.space.space import ALGORITHM

N_PARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswers:
    """The answers of one recording's emulators.

    Attributes
    ----------
    recording : str
        Which one.
    power : float
        Of the weights, see `Emulator`.
    answered : int
        Configurations that succeeded and for which success was answered.
    tau : float
        Kendall's tau of their losses, log loss or RMSE.
    factor : float
        Median of answered loss / true loss.
    best_factor : float
        The same among the tenth with the lowest true losses.
    distance, of_algorithm : float
        Mean distance of predictions from the true ones: of answers, and of a random configuration of the same
        algorithm.
    failures_found, failures_false : float
        Share of the failures, and of the successes, for which a failure is answered.
    """

    recording: str
    power: float
    answered: int
    tau: float
    factor: float
    best_factor: float
    distance: float
    of_algorithm: float
    failures_found: float
    failures_false: float


def judge(history: RecordedHistory, power: float) -> JudgedAnswers:
    """Answer for every configuration by an emulator that does not know it."""
    metric = default_metric(history.task_type)
    y = np.concatenate([history.y_validation, history.y_test])
    truth = np.concatenate([history.validation, history.test], axis=1)
    rng = np.random.default_rng(0)
    part = rng.permutation(len(history)) % N_PARTS
    algorithms = np.array([configuration[ALGORITHM] for configuration in history.configurations])
    failed = np.array([status is not TrialStatus.SUCCESS for status in history.statuses])
    losses, distances, others, denied = [], [], [], np.zeros(len(history), dtype=np.bool_)
    for k in range(N_PARTS):
        known = np.flatnonzero(part != k)
        emulator = Emulator(history, known, power=power)
        for i in np.flatnonzero(part == k):
            answer = emulator(history.configurations[i])
            denied[i] = answer.predictions is None
            if answer.predictions is None or failed[i]:
                continue
            losses.append((metric.loss(y, answer.predictions, None), metric.loss(y, truth[i], None)))
            distances.append(_distance(answer.predictions, truth[i]))
            alike = known[(algorithms[known] == algorithms[i]) & ~failed[known]]
            if len(alike):
                others.append(_distance(truth[rng.choice(alike)], truth[i]))
    answered, true = np.array(losses).T
    factors = answered / true
    return JudgedAnswers(
        recording=history.name,
        power=power,
        answered=len(losses),
        tau=kendall_tau(answered, true),
        factor=float(np.median(factors)),
        best_factor=float(np.median(factors[true <= np.quantile(true, 0.1)])),
        distance=float(np.mean(distances)),
        of_algorithm=float(np.mean(others)),
        failures_found=float(denied[failed].mean()) if failed.any() else float("nan"),
        failures_false=float(denied[~failed].mean()),
    )


def _distance(one: FloatArray, other: FloatArray) -> float:
    """Return the distance of two predictions: of probabilities that of the DivBO paper, of values the RMSE."""
    squares = np.square(np.asarray(one, dtype=np.float64) - other)
    if squares.ndim == 1:
        return float(np.sqrt(squares.mean()))
    return float(np.sqrt(squares.sum(axis=-1) / 2).mean())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings_argument(parser)
    parser.add_argument("--powers", type=float, nargs="+", default=[1.0, 2.0], help="of the weights")
    parser.add_argument("--out", type=Path, default=Path(".replay/emulator.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(width=160), RowFile(arguments.out, JudgedAnswers)
    done = file.keys("recording", "power")
    recordings = find_recordings(arguments.recordings)
    for recording in recordings:
        history = load_recorded(recording.path)
        for power in arguments.powers:
            if (history.name, power) not in done:
                file.add([judge(history, power)])
    rows = file.frame(recording=[recording.name for recording in recordings], power=arguments.powers)
    console.print(rows.astype({"answered": int}).to_string(index=False))
