"""Whether more search makes the ensemble worse where few rows validate, and whether a rule would notice.

    python -m benchmarks patience

Recorded configurations arrive one after the other, in random order, after the first of each algorithm. After every few
of them an ensemble is chosen on some of the validation rows and judged on the test rows. A rule stops when the
cross-fitted loss, which a run knows too, has not improved for a stretch. Rules are compared with going on to the end,
and with stopping at a fixed number.
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

from benchmarks.experiments.last_step import Pool, mean_of_parts, mixed
from benchmarks.recordings.finding import add_recordings_argument, find_recordings
from benchmarks.recordings.recorded_history import RecordedHistory, load_recorded
from benchmarks.recordings.redrawn_split import redraw_split
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.ensembles import WeightedEnsemble, select_ensemble
from cashmere.ensembles.pool import ValidationPool, cross_fitted_predictions
from cashmere.evaluation.metrics import default_metric
from cashmere.space.space import ALGORITHM

_STEP = 10
"""Configurations between two choices of the ensemble."""

_LEAST_ROWS_OF_MEAN, _LEAST_TRIALS_OF_MEAN = 200, 20
"""Numbers from which on runs average five selections, see `cashmere.run.ensemble_builder`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPool:
    """What was known after some configurations, and how good the ensemble was.

    Attributes
    ----------
    recording : str
        Which one.
    rows, seed, candidates : int
        Validation rows; the order; configurations so far.
    cross_fitted, test : float
        Losses of the ensemble: cross-fitted, on test rows.
    """

    recording: str
    rows: int
    seed: int
    candidates: int
    cross_fitted: float
    test: float


def judge(history: RecordedHistory, *, rows: int, seed: int, most: int) -> Iterable[JudgedPool]:
    """Let configurations arrive in random order, and judge the ensemble after every few; the seed splits the rows."""
    history = redraw_split(history, seed)
    metric = default_metric(history.task_type)
    rng = np.random.default_rng([seed, rows])
    kept = np.sort(rng.permutation(len(history.y_validation))[:rows])
    y = history.y_validation[kept]
    order = _order(history, rng)[:most]
    predictions = [history.validation[i][kept].astype(np.float64) for i in order]
    losses = np.array([metric.loss(y, prediction, None) for prediction in predictions])
    for n in judged_after(history, most):
        pool = Pool(predictions=predictions[:n], y=y, metric=metric, losses=losses[:n])
        unseen = _unseen(pool, np.random.default_rng(seed))
        if len(y) >= _LEAST_ROWS_OF_MEAN and n >= _LEAST_TRIALS_OF_MEAN:
            weights = mean_of_parts(pool, 5, np.random.default_rng(seed))
        else:
            weights = pool.selected()
        yield JudgedPool(
            recording=history.name,
            rows=rows,
            seed=seed,
            candidates=n,
            cross_fitted=round(metric.loss(y, unseen, None), 6),
            test=round(metric.loss(history.y_test, mixed(history.test[order[:n]], weights), None), 6),
        )


def judged_after(history: RecordedHistory, most: int) -> range:
    """Return the numbers of configurations after which ensembles are judged."""
    return range(_STEP, min(most, len(history.succeeded)) + 1, _STEP)


def _order(history: RecordedHistory, rng: np.random.Generator) -> list[int]:
    """Return a random order in which every algorithm comes once before any comes twice."""
    drawn: list[int] = rng.permutation(history.succeeded).tolist()
    seen: set[str] = set()
    first = []
    for i in drawn:
        name = str(history.configurations[i].get(ALGORITHM, ""))
        if name not in seen:
            seen.add(name)
            first.append(i)
    return [*first, *(i for i in drawn if i not in set(first))]


def _unseen(pool: Pool, rng: np.random.Generator) -> FloatArray:
    def build(stacks: Sequence[AnyArray], rows: ValidationPool) -> WeightedEnsemble:
        chosen = select_ensemble(stacks, rows.y, pool.metric, tie="secondary").weights
        members = np.flatnonzero(chosen)
        return WeightedEnsemble(tuple(members.tolist()), tuple(chosen[members].tolist()))

    unseen = cross_fitted_predictions(build, pool.predictions, ValidationPool(y=pool.y), rng=rng)
    assert unseen is not None  # there are 50 rows and more
    return unseen.predictions


# What the rows say ---------------------------------------------------------------------------------------------------


def stop_after(candidates: Sequence[int], cross_fitted: Sequence[float], *, least: int, stretch: float) -> int:
    """Return the position at which a rule stops.

    Parameters
    ----------
    candidates : sequence of int
        Ascending numbers of configurations.
    cross_fitted : sequence of float
        The loss at each.
    least : int
        Configurations before which it never stops.
    stretch : float
        It stops after this multiple of the number with the lowest loss, without a lower one; infinite to never stop.
    """
    best = 0
    for i, n in enumerate(candidates):
        if cross_fitted[i] < cross_fitted[best]:
            best = i
        if n >= least and n >= stretch * candidates[best]:
            return i
    return len(candidates) - 1


RULES = {
    "to the end": (0, np.inf),
    "40 at most": (40, 0.0),
    "80 at most": (80, 0.0),
    "40, then 1.5 x": (40, 1.5),
    "40, then 2 x": (40, 2.0),
    "40, then 3 x": (40, 3.0),
    "80, then 2 x": (80, 2.0),
}
"""Least number of configurations, and stretch."""


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, per rule and number of validation rows, the change of the test loss against going on, and where it ends.

    Parameters
    ----------
    rows : DataFrame
        Rows of `JudgedPool`.
    """
    found = []
    for (recording, n_rows, seed), run in rows.groupby(["recording", "rows", "seed"]):
        run = run.sort_values("candidates")
        test = run["test"].to_numpy()
        for rule, (least, stretch) in RULES.items():
            numbers = run["candidates"].astype(int).to_list()
            end = stop_after(numbers, run["cross_fitted"].to_list(), least=least, stretch=stretch)
            change = float(np.log(test[end] / test[-1]))
            found.append((recording, n_rows, seed, rule, change, numbers[end]))
    frame = pd.DataFrame(found, columns=["recording", "rows", "seed", "rule", "change", "end"])
    means = frame.groupby(["rows", "rule", "recording"], sort=False)[["change", "end"]].mean().reset_index()
    grouped = means.groupby(["rows", "rule"], sort=False)
    return pd.DataFrame(
        {
            "mean %": grouped["change"].mean().map(np.expm1) * 100,
            "median %": grouped["change"].median().map(np.expm1) * 100,
            "worst %": grouped["change"].max().map(np.expm1) * 100,
            "best %": grouped["change"].min().map(np.expm1) * 100,
            "end": grouped["end"].mean(),
        }
    ).reset_index()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings_argument(parser)
    parser.add_argument("--rows", type=int, nargs="+", default=[60, 100, 200, 400], help="validation rows")
    parser.add_argument("--most", type=int, default=200, help="configurations at the end")
    parser.add_argument("--seeds", type=int, default=4, help="orders")
    parser.add_argument("--out", type=Path, default=Path(".replay/patience.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, JudgedPool)
    done = file.keys("recording", "rows", "seed", "candidates")
    recordings = find_recordings(arguments.recordings)
    with until_interrupted(console):
        for recording in recordings:
            history = load_recorded(recording.path)
            for rows in arguments.rows:
                for seed in range(arguments.seeds):
                    # What was judged after fewer configurations than now wanted stays as it is.
                    if not {(history.name, rows, seed, n) for n in judged_after(history, arguments.most)} <= done:
                        found = judge(history, rows=rows, seed=seed, most=arguments.most)
                        file.add(each for each in found if (history.name, rows, seed, each.candidates) not in done)
            console.print(f"{history.name} is judged")
    names = [recording.name for recording in recordings]
    kept = file.frame(recording=names, rows=arguments.rows, seed=range(arguments.seeds))
    kept = kept[kept["candidates"] <= arguments.most]
    if kept.empty:
        return
    shown = Table("rows", "rule", "mean %", "median %", "worst %", "best %", "end", title="test loss against the end")
    for row in summarise(kept).to_dict("records"):
        changes = (f"{row[name]:+.2f}" for name in ("mean %", "median %", "worst %", "best %"))
        shown.add_row(f"{row['rows']:g}", str(row["rule"]), *changes, f"{row['end']:.0f}")
    console.print(shown)
