"""A small real table for demonstrations: credit-g (1000 rows, 7 numeric and 13 categorical columns, good or bad risk).

Source: Hofmann, H. (1994), Statlog (German Credit Data), UCI Machine Learning Repository,
https://doi.org/10.24432/C5NC77, licence CC BY 4.0; here as OpenML data set 31.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

DEMO_TARGET = "target"
"""Name of the target column of the demonstration table."""


def demo_table() -> pd.DataFrame:
    """Return credit-g, the target in the column `DEMO_TARGET`.

    Examples
    --------
    >>> demo_table().shape
    (1000, 21)
    """
    import pandas as pd

    with resources.as_file(resources.files(__package__) / "credit-g.parquet") as path:
        return pd.read_parquet(Path(path))
