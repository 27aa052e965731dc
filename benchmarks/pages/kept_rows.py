"""The kept rows, as frames."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pandas as pd

RESULTS = Path(__file__).parents[1] / "results"
PUBLISHED = Path(__file__).parents[1] / "published"


Frame = Any
"""A data frame or a column. By the stubs of pandas every cell may be a date, bytes or an interval."""


@functools.cache
def kept(name: str, folder: Path = RESULTS) -> Frame:
    """Return the rows of a file in `benchmarks/results`."""
    return pd.read_csv(folder / f"{name}.csv")
