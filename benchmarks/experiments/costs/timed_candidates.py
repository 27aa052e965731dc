"""Seconds of candidates and of first configurations: configurations of the space ``default`` on tables."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from ConfigSpace import Configuration

from benchmarks.experiments.followed_candidates import first_candidates
from benchmarks.experiments.learners import offered_candidates
from benchmarks.tables.manifest import find_tables
from benchmarks.tables.search_table import SearchTable
from cashmere.records.trial import TrialStatus
from cashmere.space.encoding import SpaceEncoder


@dataclass(frozen=True, kw_only=True, eq=False)
class TimedCandidates:
    """Seconds of candidates on a table.

    Attributes
    ----------
    name, origin : str
        Of the table; tables of the same origin come from the same data.
    n_classes : int
        Of the table; 1 for values.
    configurations : tuple of Configuration
        The candidates.
    seconds : (n,) array
        CPU seconds of each on all folds.
    """

    name: str
    origin: str
    n_classes: int
    configurations: tuple[Configuration, ...]
    seconds: np.ndarray

    def __len__(self) -> int:
        return len(self.configurations)

    @functools.cached_property
    def encoder(self) -> SpaceEncoder:
        """The space that they belong to."""
        return SpaceEncoder(self.configurations[0].config_space)

    @property
    def statuses(self) -> tuple[TrialStatus, ...]:
        """All have succeeded: failures have no row."""
        return (TrialStatus.SUCCESS,) * len(self)


def read_candidates(path: Path, data: Path | None) -> list[TimedCandidates]:
    """Read rows of the commands `learners` or `first-seconds`; `data` is the folder of their tables."""
    rows = pd.read_csv(path)
    found = []
    for table in find_tables(data, list(rows["table"].unique())):
        of_table = rows[rows["table"] == table.name]
        searched = SearchTable.read(table)
        space = searched.make_space("default", len(searched.y))
        offered = {**offered_candidates(space), **first_candidates(space)}
        keys = list(zip(of_table["algorithm"], of_table["candidate"], strict=True))
        known = [key in offered for key in keys]  # the space may have changed since
        found.append(
            TimedCandidates(
                name=table.name,
                origin=str(of_table["origin"].iloc[0]),
                n_classes=searched.target.n_classes,
                configurations=tuple(space.completed(offered[key]) for key in keys if key in offered),
                seconds=of_table["cpu_seconds"].to_numpy()[known],
            )
        )
    return found
