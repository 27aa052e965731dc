"""Finished runs of the experiments of DACOpt beside the published numbers, as frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from benchmarks.published import PUBLISHED
from benchmarks.runs.suite_runs import Protocol, SuiteRun
from benchmarks.statistics import comparison
from benchmarks.tables.manifest import BenchmarkTable

HYPEROPT = "tpe:density=independent"
"""The paper's Hyperopt."""

PAPER_NAMES = {
    "dac_hb:b_first=10,schedule=authors": "DAC-HB",
    "dac_hh:b_first=10,schedule=authors": "DAC-HH",
    "dac_sb:b_first=10,authors_z=True": "DAC-SB",
    "dac_sh:b_first=10,authors_z=True": "DAC-SH",
    "bo4ml": "BO4ML",
    HYPEROPT: "Hyperopt",
}
"""Strategies with the options of the paper's runs, and what it calls them. Others have no published score."""

PROPOSED = ("dac_hb", "dac_hh", "dac_sb", "dac_sh")
"""The paper's own strategies, with any options; all others are baselines."""

INSIDE = {"dac_hb": "bo4ml", "dac_sb": "bo4ml", "dac_hh": HYPEROPT, "dac_sh": HYPEROPT}
"""The strategy inside each contest, which could also search the whole space alone."""

N_CHECKPOINTS = 500
RENAMED = {"haberman": "haberman_keel"}
"""Tables that have another name in the paper."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """What strategies reached under one protocol.

    Attributes
    ----------
    protocol : Protocol
        The experiment. With test rows, the loss on them counts, else the lowest of the search.
    runs : sequence of SuiteRun
        At least one.
    published : DataFrame
        See `published_means`.
    wanted : tuple of str
        Strategies in the order they are shown. The others are compared with the first that has runs.
    rows : int or None
        Most rows of a table; None for all.
    """

    protocol: Protocol
    runs: Sequence[SuiteRun]
    published: pd.DataFrame
    wanted: tuple[str, ...]
    rows: int | None = None

    @property
    def strategies(self) -> list[str]:
        """Strategies that have runs."""
        there = {run.key.strategy for run in self.runs}
        return [strategy for strategy in self.wanted if strategy in there]

    @property
    def part(self) -> comparison.Part:
        """The loss that counts."""
        return "test" if self.protocol.test_share else "validation"

    @property
    def n_trials(self) -> int:
        """Number of trials of the longest run."""
        return max(len(run.curve) for run in self.runs)

    @property
    def scores(self) -> pd.DataFrame:
        """Scores of all runs, more is better: columns table, strategy, seed and score; 0 without any success."""
        losses = [reported_loss(run, self.protocol) for run in self.runs]
        return pd.DataFrame(
            {
                "table": [run.key.table for run in self.runs],
                "strategy": [run.key.strategy for run in self.runs],
                "seed": [run.key.seed for run in self.runs],
                "score": [0.0 if loss is None else 1.0 - loss for loss in losses],
            }
        )

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Losses at up to `N_CHECKPOINTS` checkpoints, as `benchmarks.statistics.comparison` expects them.

        Holds only pairs of table and seed for which every strategy with runs has one. A run that ended earlier than the
        longest keeps its last loss. The test loss is known at the last checkpoint only.
        """
        at = checkpoints(self.n_trials, N_CHECKPOINTS)
        parts = []
        for run in sorted(self.runs, key=lambda run: self.wanted.index(run.key.strategy)):
            test = np.full(len(at), np.nan)
            test[-1] = np.nan if run.test is None else run.test
            parts.append(
                pd.DataFrame(
                    {
                        "recording": run.key.table,
                        "strategy": run.key.strategy,
                        "seed": run.key.seed,
                        "trials": at,
                        "validation": held(np.array(run.curve, dtype=float), at),
                        "test": test,
                    }
                )
            )
        return comparison.paired(pd.concat(parts, ignore_index=True))

    @cached_property
    def pairs(self) -> set[tuple[str, int]]:
        """Pairs of table and seed that `frame` has."""
        return set(zip(self.frame["recording"], self.frame["seed"], strict=True))

    @property
    def missing_note(self) -> str:
        """Sentences on what `frame` leaves out, each after a space; empty if nothing is."""
        said = []
        if absent := [strategy for strategy in self.wanted if strategy not in self.strategies]:
            said.append(f"No runs of {', '.join(absent)}.")
        pairs = {(run.key.table, run.key.seed) for run in self.runs}
        kept = self.pairs
        if kept != pairs:
            tables = list(dict.fromkeys(run.key.table for run in self.runs))
            text = f"{len(kept)} of {len(pairs)} pairs of table and repeat count, those with a run of every strategy"
            lost = [name for name in tables if name not in {table for table, _ in kept}]
            said.append(f"{text}; none of {', '.join(lost)}." if lost else f"{text}.")
        return "".join(f" {text}" for text in said)

    def seconds(self, strategy: str, table: str) -> np.ndarray:
        """Return the mean wall seconds that had passed after each trial up to `n_trials`, of the runs in `frame`."""
        at = np.arange(1, self.n_trials + 1)
        mean: np.ndarray = np.mean([held(_seconds(run), at) for run in self._paired(strategy, table)], axis=0)
        return mean

    def length(self, strategy: str, table: str) -> float:
        """Return the mean number of trials of the runs in `frame`."""
        return float(np.mean([len(run.curve) for run in self._paired(strategy, table)]))

    def without_times(self) -> int:
        """Return how many runs in `frame` did not record when their trials ended."""
        return sum(not run.finished_at for run in self.runs if (run.key.table, run.key.seed) in self.pairs)

    def _paired(self, strategy: str, table: str) -> list[SuiteRun]:
        mine = [run for run in self.runs if (run.key.strategy, run.key.table) == (strategy, table)]
        return [run for run in mine if (table, run.key.seed) in self.pairs]


def published_means(experiment: Protocol, tables: Sequence[BenchmarkTable]) -> pd.DataFrame:
    """Return the published scores: rows tables (our names), columns the paper's methods."""
    frame = _read_published(experiment)
    if "openml_id" in frame:  # names are cut short in the paper; of two tasks on one data set the first counts
        frame["table"] = frame["openml_id"].map({table.openml_id: table.name for table in tables})
    return frame.pivot_table(index="table", columns="method", values="mean", aggfunc="first")


def published_tables(experiment: Protocol, known: dict[str, BenchmarkTable]) -> tuple[list[BenchmarkTable], list[str]]:
    """Return the tables of the paper that are known, in its order, and its names of the others.

    Parameters
    ----------
    experiment : Protocol
        Protocol of the paper.
    known : dict of str to BenchmarkTable
        A folder's tables by name.
    """
    frame = _read_published(experiment)
    if "openml_id" in frame:
        by_id = {table.openml_id: table for table in known.values()}
        rows = frame.drop_duplicates("openml_id")
        found = [(name, by_id.get(number)) for number, name in zip(rows["openml_id"], rows["table"], strict=True)]
    else:
        found = [(name, known.get(name)) for name in frame["table"].unique()]
    return [table for _, table in found if table], [name for name, table in found if table is None]


def published_mean(published: pd.DataFrame, table: str, strategy: str) -> float:
    """Return the paper's score of one of our strategies, NaN if it has none."""
    method = PAPER_NAMES.get(strategy)
    if method is None or method not in published or table not in published.index:
        return float("nan")
    return float(published[method].to_dict()[table])


def reported_loss(run: SuiteRun, protocol: Protocol) -> float | None:
    """Return the loss that counts."""
    return run.test if protocol.test_share else run.curve[-1]


def checkpoints(n_trials: int, n_points: int) -> np.ndarray:
    """Return evenly spaced numbers of trials, about as many as requested, the last of them `n_trials`.

    Examples
    --------
    >>> checkpoints(9, 5).tolist()
    [1, 3, 5, 7, 9]
    """
    step = -(-n_trials // n_points)
    return np.arange(n_trials, 0, -step)[::-1]


def held(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the values after these numbers of trials; the last value holds from its trial on."""
    held_values: np.ndarray = values[np.minimum(at, len(values)) - 1]
    return held_values


def _seconds(run: SuiteRun) -> np.ndarray:
    """Return the seconds after every trial; where they were not recorded, equal shares of the total."""
    if run.finished_at:
        return np.array(run.finished_at)
    return np.linspace(0, run.suggest_seconds + run.fit_seconds, len(run.curve) + 1)[1:]


def _read_published(experiment: Protocol) -> pd.DataFrame:
    frame = pd.read_csv(PUBLISHED / f"{experiment.name}.csv")
    return frame if "openml_id" in frame else frame.assign(table=frame["table"].replace(RENAMED))
