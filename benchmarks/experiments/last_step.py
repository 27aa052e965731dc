"""What the last step of a run brings: from many predictions to one.

    python -m benchmarks last-step

Pools of recorded configurations choose ensembles on some of the validation rows, by several rules; the test rows judge
them. Rules differ in the candidates that they admit, in the weights that they give, and in how they calibrate.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.recordings.finding import add_recordings_argument, find_recordings
from benchmarks.recordings.recorded_history import RecordedHistory, load_recorded
from benchmarks.recordings.redrawn_split import redraw_split
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from cashmere.base.arrays import AnyArray, Float64, FloatArray
from cashmere.ensembles import WeightedEnsemble, select_ensemble
from cashmere.ensembles.calibration import (
    FLOOR,
    Calibration,
    can_calibrate,
    centre_of,
    choose_calibration,
    fit_temperature,
)
from cashmere.ensembles.pool import ValidationPool, cross_fitted_predictions
from cashmere.evaluation.metrics import Metric, default_metric

REFERENCE = "25 picks"
"""Greedy selection with replacement among all candidates, as runs do it."""

_SMALL_WEIGHT = 0.012
"""Between one pick and two of the 125 that five selections make."""

_STEPS = 100
"""Steps of projected gradients; the members hardly change after 30."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRule:
    """A rule on one recording, means over pools.

    Attributes
    ----------
    recording : str
        Which one.
    rows, candidates : int
        Validation rows that chose (all if there are fewer); size of the pools.
    rule : str
        See `judge`.
    pools : int
        How many were drawn.
    loss : float
        On test rows.
    change : float
        Of the loss against the reference, in per cent; from the mean of logarithms.
    members : float
        Distinct candidates in the ensemble.
    """

    recording: str
    rows: int
    candidates: int
    rule: str
    pools: int
    loss: float
    change: float
    members: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What a rule sees: predictions of candidates for the rows that choose."""

    predictions: list[Float64]
    y: AnyArray
    metric: Metric
    losses: Float64

    def selected(self, among: Sequence[int] | None = None, *, rows: AnyArray | None = None, size: int = 25) -> Float64:
        """Return the weights of all candidates, selected greedily among some of them on some of the rows."""
        positions = list(range(len(self.predictions)) if among is None else among)
        kept = slice(None) if rows is None else rows
        stacks = [self.predictions[i][kept] for i in positions]
        weights = np.zeros(len(self.predictions))
        weights[positions] = select_ensemble(stacks, self.y[kept], self.metric, size=size, tie="secondary").weights
        return weights

    def best(self, n: int) -> list[int]:
        """Return the positions of the lowest losses."""
        order: list[int] = np.argsort(self.losses, kind="stable")[:n].tolist()
        return order

    def mixed(self, weights: Float64) -> Float64:
        """Return the weighted mean of the predictions."""
        return mixed(self.predictions, weights)


def mixed(predictions: Sequence[FloatArray] | FloatArray, weights: Float64) -> Float64:
    """Return the mean of the predictions with weights that sum to one."""
    members = np.flatnonzero(weights).tolist()
    return np.asarray(sum(weights[i] * np.asarray(predictions[i], dtype=np.float64) for i in members))


def partly_equal(weights: Float64, share: float) -> Float64:
    """Shrink the weights of the members towards equal ones."""
    return (1 - share) * weights + share * (weights > 0) / np.count_nonzero(weights)


def mean_of_parts(pool: Pool, n_parts: int, rng: np.random.Generator) -> Float64:
    """Return the mean weights of selections that each leave one part of the rows out."""
    part = rng.permutation(len(pool.y)) % n_parts
    return np.asarray(np.mean([pool.selected(rows=part != k) for k in range(n_parts)], axis=0))


def mean_of_resamples(pool: Pool, n_resamples: int, rng: np.random.Generator) -> Float64:
    """Return the mean weights of selections that each see as many rows as there are, drawn with replacement."""
    n_rows = len(pool.y)
    return np.asarray(
        np.mean([pool.selected(rows=rng.integers(0, n_rows, n_rows)) for _ in range(n_resamples)], axis=0)
    )


def quadratic_choice(pool: Pool, n: int, diversity: float) -> list[int]:
    """Choose members by their losses and the correlations of their errors, as PSEO chooses them before its layers.

    The binary programme min (1 - d) l'z / n + d z'C z / n^2 over subsets of n, with losses l scaled by the distance of
    the median from the best and correlations C of the errors, is relaxed to weights in [0, 1/n] that sum to one; the n
    largest are taken. The paper relaxes it to a semi-definite programme instead.
    """
    errors = np.array([_errors(prediction, pool.y) for prediction in pool.predictions])
    covariance = errors @ errors.T + 1e-9 * np.eye(len(errors))
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    spread = np.median(pool.losses) - pool.losses.min()
    losses = np.minimum((pool.losses - pool.losses.min()) / max(spread, 1e-12), 3.0)
    weights = np.full(len(losses), 1 / len(losses))
    step = 1 / (2 * diversity * np.linalg.eigvalsh(correlation)[-1])
    for _ in range(_STEPS):
        slope = (1 - diversity) * losses + 2 * diversity * correlation @ weights
        weights = nearest_weights(weights - step * slope, 1 / n)
    chosen: list[int] = np.argsort(-weights, kind="stable")[:n].tolist()
    return chosen


def _errors(prediction: Float64, y: AnyArray) -> Float64:
    if prediction.ndim == 1:
        return np.asarray(prediction - y)
    return np.asarray(prediction - np.eye(prediction.shape[1])[np.asarray(y, dtype=np.int64)]).ravel()


def nearest_weights(point: Float64, most: float) -> Float64:
    """Return the nearest point with entries in [0, most] that sum to one: shift and clip, by bisection."""
    low, high = point.min() - most, point.max()
    for _ in range(40):
        shift = (low + high) / 2
        low, high = (shift, high) if np.clip(point - shift, 0, most).sum() > 1 else (low, shift)
    return np.asarray(np.clip(point - low, 0, most))


def rules(pool: Pool, rng: np.random.Generator) -> Iterable[tuple[str, Float64, Calibration | None]]:
    """Yield the name, the weights and the calibration of every rule, the reference first."""
    whole = pool.selected()
    yield REFERENCE, whole, None
    yield "10 picks", pool.selected(size=10), None
    yield "50 picks", pool.selected(size=50), None
    for n in (10, 25, 50):
        if n < len(pool.predictions):
            yield f"among the best {n}", pool.selected(pool.best(n)), None
    yield "a quarter of the weight equal", partly_equal(whole, 0.25), None
    yield "half of the weight equal", partly_equal(whole, 0.5), None
    yield "mean of two halves", mean_of_parts(pool, 2, rng), None
    five = mean_of_parts(pool, 5, rng)
    yield "mean of five without a fifth", five, None
    often = np.where(five * 5 * 25 > 1.5, five, 0.0)
    yield "the same, picked twice or more", often / often.sum(), None
    for n, diversity in ((10, 0.2), (10, 0.5), (25, 0.2), (25, 0.5)):
        if n < len(pool.predictions):
            yield f"PSEO: {n}, diversity {diversity}", pool.selected(quadratic_choice(pool, n, diversity)), None
    if can_calibrate(pool.metric.name):
        yield "temperature from the rows that chose", whole, temperature_of(pool.mixed(whole), pool.y)
        unseen = _unseen(pool, rng)
        yield "temperature from other rows", whole, temperature_of(unseen, pool.y)
        yield "calibrated if clear", whole, choose_calibration(unseen, pool.y, pool.metric.name, rng=rng)
    resampled = mean_of_resamples(pool, 20, rng)
    often = np.where(resampled > _SMALL_WEIGHT, resampled, 0.0)
    yield "mean of twenty bootstrap samples, without small weights", often / often.sum(), None


def temperature_of(probabilities: Float64, y: AnyArray) -> Calibration:
    """Return the temperature with the lowest log loss, whether or not it helps elsewhere."""
    logs, w = np.log(np.maximum(probabilities, FLOOR)), np.full(len(y), 1 / len(y))
    scales, offsets = fit_temperature(logs, np.asarray(y, dtype=np.int64), w, centre=centre_of(logs, w))
    return Calibration(scales=tuple(scales.tolist()), offsets=tuple(offsets.tolist()), gain=0.0)


def _unseen(pool: Pool, rng: np.random.Generator) -> Float64:
    def build(stacks: Sequence[AnyArray], rows: ValidationPool) -> WeightedEnsemble:
        chosen = select_ensemble(stacks, rows.y, pool.metric, tie="secondary").weights
        members = np.flatnonzero(chosen)
        return WeightedEnsemble(tuple(members.tolist()), tuple(chosen[members].tolist()))

    unseen = cross_fitted_predictions(build, pool.predictions, ValidationPool(y=pool.y), rng=rng)
    assert unseen is not None  # there are 50 rows and more
    return unseen.predictions


def judge(recording: RecordedHistory, *, rows: int, candidates: int, n_pools: int) -> list[JudgedRule]:
    """Draw splits and pools of a recording and rows to choose on, and judge every rule on the test rows."""
    metric = default_metric(recording.task_type)
    losses: dict[str, list[float]] = {}
    members: dict[str, list[int]] = {}
    for seed in range(n_pools):
        history = redraw_split(recording, seed)
        rng = np.random.default_rng([seed, rows, candidates])
        drawn = rng.choice(history.succeeded, min(candidates, len(history.succeeded)), replace=False)
        kept = np.sort(rng.permutation(len(history.y_validation))[:rows])
        y, predictions = history.y_validation[kept], [history.validation[i][kept].astype(np.float64) for i in drawn]
        own = np.array([metric.loss(y, prediction, None) for prediction in predictions])
        for rule, weights, calibration in rules(Pool(predictions=predictions, y=y, metric=metric, losses=own), rng):
            test = mixed(history.test[drawn], weights)
            test = test if calibration is None else calibration.apply(test)
            losses.setdefault(rule, []).append(metric.loss(history.y_test, test, None))
            members.setdefault(rule, []).append(int(np.count_nonzero(weights)))
    logarithms = {rule: np.mean(np.log(found)) for rule, found in losses.items()}
    return [
        JudgedRule(
            recording=recording.name,
            rows=rows,
            candidates=candidates,
            rule=rule,
            pools=n_pools,
            loss=round(float(np.mean(found)), 6),
            change=round(100 * float(np.expm1(logarithms[rule] - logarithms[REFERENCE])), 3),
            members=round(float(np.mean(members[rule])), 2),
        )
        for rule, found in losses.items()
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings_argument(parser)
    parser.add_argument("--rows", type=int, nargs="+", default=[50, 100, 300, 1000], help="validation rows that choose")
    parser.add_argument("--candidates", type=int, nargs="+", default=[30, 100], help="sizes of the pools")
    parser.add_argument("--pools", type=int, default=10, help="pools of each size, per recording and number of rows")
    parser.add_argument("--out", type=Path, default=Path(".replay/last_step.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, JudgedRule)
    done = file.keys("recording", "rows", "candidates", pools=arguments.pools)
    recordings = find_recordings(arguments.recordings)
    with until_interrupted(console):
        for recording in recordings:
            history = load_recorded(recording.path)
            for rows in arguments.rows:
                for candidates in arguments.candidates:
                    if (history.name, rows, candidates) not in done:
                        file.add(judge(history, rows=rows, candidates=candidates, n_pools=arguments.pools))
            console.print(f"{history.name} is judged")
    wanted = {"rows": arguments.rows, "candidates": arguments.candidates, "pools": arguments.pools}
    kept = file.frame(recording=[recording.name for recording in recordings], **wanted)
    for (candidates, rows), found in kept.groupby(["candidates", "rows"]):
        console.print(_table(found, title=f"test loss in per cent: pools of {candidates:g}, {rows:g} rows"))


def _table(rows: pd.DataFrame, *, title: str) -> Table:
    """Show the change by each rule: mean and median over recordings, and the worst."""
    shown = Table("rule", "mean", "median", "worst", "members", title=title)
    for rule, found in rows.groupby("rule", sort=False):
        change = found["change"]
        numbers = (f"{value:+.2f}" for value in (change.mean(), change.median(), change.max()))
        shown.add_row(str(rule), *numbers, f"{found['members'].mean():.1f}")
    return shown
