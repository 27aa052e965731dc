"""How well the seconds of configurations are predicted, and the tables of relative costs.

    python -m benchmarks costs
    python -m benchmarks costs --candidates learners.csv first_seconds.csv --data DIR
    python -m benchmarks costs ... --write

On every recorded table the model of `cashmere.costs` learns from the first trials in random order and predicts the
others. The relative costs of algorithms come from the *other* tables (leave one table out). With `--candidates` the
same for configurations of the space ``default`` whose seconds `python -m benchmarks learners` and `first-seconds` have
measured (leave one origin out). `--write` makes the table of the package from all of them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
from ConfigSpace import Configuration
from rich.console import Console

from benchmarks.experiments.costs.relative_costs import (
    relative_costs,
    relative_costs_of_choices,
    write_relative_costs,
)
from benchmarks.experiments.costs.timed_candidates import read_candidates
from benchmarks.recordings.recorded_history import RECORDED, load_recorded
from benchmarks.reporting.table import Table
from benchmarks.tables.manifest import add_data_argument
from cashmere.costs.predicted import OVERHEAD_SECONDS, PredictedSeconds
from cashmere.costs.relative import FOLLOWED, SEARCHED, log_relative_costs
from cashmere.records.trial import Observation, Outcome, Trial, TrialStatus
from cashmere.space.encoding import SpaceEncoder

COUNTS = (1, 5, 20, 50, 100, 200)
"""Trials to learn from; those after the largest number are predicted."""

COUNTS_OF_CANDIDATES = (1, 5, 10, 20)
"""The same for candidates, of which a table has at most 49."""

UPPER = 1.2816
"""Standard deviations of the 90 % quantile of a normal distribution."""


class TimedConfigurations(Protocol):
    """Configurations of one table, each with its seconds and how it ended."""

    @property
    def name(self) -> str:
        """Name of the table."""
        ...

    @property
    def encoder(self) -> SpaceEncoder:
        """Their space."""
        ...

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """All of them."""
        ...

    @property
    def statuses(self) -> tuple[TrialStatus, ...]:
        """How each ended."""
        ...

    @property
    def seconds(self) -> np.ndarray:
        """CPU seconds of each."""
        ...


def calibration(
    history: TimedConfigurations, costs: Mapping[str, float], *, seed: int, counts: tuple[int, ...] = COUNTS
) -> list[dict[str, float]]:
    """Return the errors of predictions after some numbers of trials in random order.

    Parameters
    ----------
    history : TimedConfigurations
        The table.
    costs : mapping of str to float
        Logarithm of the relative cost by algorithm and choice.
    seed : int
        Seed of the order of trials.
    counts : tuple of int
        Trials to learn from, ascending.

    Returns
    -------
    list of dict
        ``trials``; ``error``, the root mean square of log predicted - log true seconds; ``factor``, the median of
        max(predicted / true, true / predicted); ``below``, the share of true seconds below the predicted 90 % quantile;
        ``milliseconds`` for learning and predicting. Trials that failed are learnt from, but not predicted.
    """
    order = np.random.default_rng(seed).permutation(len(history.seconds))
    rest = np.array([i for i in order[counts[-1] :] if history.statuses[i] is TrialStatus.SUCCESS])
    observations = tuple(observed(history, int(i)) for i in order[: counts[-1]])
    rows = history.encoder.encode(history.configurations[i] for i in rest)
    true = np.log(history.seconds[rest] + OVERHEAD_SECONDS)
    found = []
    for n in counts:
        clock = time.perf_counter()
        predicted = PredictedSeconds.learn(history.encoder, observations[:n], relative_costs=costs)
        mean, std = predicted.log_seconds(rows)
        seconds = time.perf_counter() - clock
        errors = mean - true
        found.append(
            {
                "trials": n,
                "error": float(np.sqrt(np.mean(np.square(errors)))),
                "factor": float(np.exp(np.median(np.abs(errors)))),
                "below": float(np.mean(true <= mean + UPPER * std)),
                "milliseconds": 1000 * seconds,
            }
        )
    return found


def observed(history: TimedConfigurations, i: int) -> Observation:
    """Return a recorded configuration as an observation of a run, without predictions."""
    trial = Trial(number=i, configuration=history.configurations[i], seed=0)
    outcome = Outcome(status=history.statuses[i], duration_seconds=float(history.seconds[i]))
    return Observation(trial=trial, outcome=outcome)


def make_table(frame: pd.DataFrame) -> Table:
    """Return the means over tables and orders."""
    measures = ["error", "factor", "below", "milliseconds"]
    means = frame.groupby(["trials", "prior"])[measures].mean().reset_index()
    return Table(
        title="Predicted seconds",
        columns=("trials", "prior", "error of log", "median factor", "below 90 % bound", "ms"),
        rows=tuple(
            (str(n), str(prior), f"{error:.2f}", f"{factor:.2f}", f"{below:.2f}", f"{milliseconds:.1f}")
            for n, prior, error, factor, below, milliseconds in means.itertuples(index=False, name=None)
        ),
        note="Means over tables and orders. Priors come from the other tables, except that `none` knows nothing.",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--candidates", type=Path, nargs="+", help="rows of `learners` and `first-seconds`, instead of the recordings"
    )
    add_data_argument(parser)
    parser.add_argument("--orders", type=int, default=20, help="random orders of the trials of each table")
    parser.add_argument("--out", type=Path, help="file for the means of each table (csv)")
    parser.add_argument("--write", action="store_true", help="make the table of relative costs of the package")


def main(arguments: argparse.Namespace) -> None:
    of = _of_recordings if arguments.candidates is None else _of_candidates
    rows = of(arguments)
    if not rows:
        return
    frame = pd.DataFrame(rows)
    console, table = Console(), make_table(frame)
    console.print(table.to_rich())
    console.print(table.note)
    if arguments.out is not None:
        means = frame.groupby(["recording", "prior", "trials"])[["error", "factor", "below"]].mean()
        means.round(4).to_csv(arguments.out)


def _of_recordings(arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Judge the recordings, or write their table and return nothing."""
    histories = [load_recorded(path) for path in sorted(RECORDED.glob("*.zip"))]
    if arguments.write:
        names = ", ".join(history.name for history in histories)
        provenance = f"python -m benchmarks costs --write, from CPU seconds of {names}"
        print(write_relative_costs(SEARCHED, relative_costs(histories), provenance))
        return []
    rows = []
    for history in histories:
        others = relative_costs([other for other in histories if other is not history]).with_classes(1)
        rows += _judged(history, {"recordings": others, "none": {}}, COUNTS, arguments.orders)
    return rows


def _of_candidates(arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Judge the candidates, or write their table and return nothing."""
    tables = [table for path in arguments.candidates for table in read_candidates(path, arguments.data)]
    if arguments.write:
        files = " ".join(path.name for path in arguments.candidates)
        command = f"python -m benchmarks costs --candidates {files} --write"
        names = dict.fromkeys(table.name for table in tables)
        provenance = f"{command}, from CPU seconds of {', '.join(names)}"
        print(write_relative_costs(FOLLOWED, relative_costs_of_choices(tables), provenance))
        return []
    rows = []
    for table in tables:
        others = [other for other in tables if other.origin != table.origin]
        costs = {
            "algorithms": relative_costs_of_choices(others, with_choices=False, with_classes=False),
            "choices": relative_costs_of_choices(others, with_classes=False),
            "classes": relative_costs_of_choices(others),
        }
        priors = {"none": {}, "recordings": log_relative_costs("classic")}
        priors |= {name: each.with_classes(table.n_classes) for name, each in costs.items()}
        counts = tuple(count for count in COUNTS_OF_CANDIDATES if count <= len(table) // 2)
        rows += _judged(table, priors, counts, arguments.orders)
    return rows


def _judged(
    history: TimedConfigurations, priors: Mapping[str, Mapping[str, float]], counts: tuple[int, ...], n_orders: int
) -> list[dict[str, object]]:
    """Return the rows of one table."""
    return [
        {"recording": history.name, "prior": prior, "seed": seed, **row}
        for prior, costs in priors.items()
        for seed in range(n_orders)
        for row in calibration(history, costs, seed=seed, counts=counts)
    ]
