"""Compare variants with one of them, by the losses of runs on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.statistics.ranks_and_tests import bootstrap_interval


def compare_variants(
    rows: pd.DataFrame, reference: str, *, averaged: Sequence[str], per: Sequence[str] = ()
) -> pd.DataFrame:
    """Compare variants with one of them, each on the runs that both have done.

    Parameters
    ----------
    rows : DataFrame
        Runs: ``table``, ``seed``, ``variant``, the loss ``test``, and the columns named here.
    reference : str
        The variant to compare with.
    averaged : sequence of str
        Columns of which the mean of each variant is added, to two digits.
    per : sequence of str
        Columns by which runs are told apart beside the variant, such as the share of the budget.

    Returns
    -------
    DataFrame
        A row per variant (and value of `per`): geometric mean over tables of the ratio of test losses (each table the
        mean over seeds of its logarithm), its interval of 90 % by bootstrap over tables, and tables on which the
        variant is better.
    """
    cells = ["table", "seed", *per]
    base = rows[rows["variant"] == reference].set_index(cells)["test"].rename("reference")
    joined = rows.join(base, on=cells).dropna(subset=["test", "reference"])
    joined["log_ratio"] = np.log(joined["test"] / joined["reference"])
    compared = []
    for values, found in joined.groupby(["variant", *per], sort=False):
        of_tables = found.groupby("table")["log_ratio"].mean().to_numpy()
        rng = np.random.default_rng(0)
        low, high = np.exp(bootstrap_interval(of_tables, rng, level=0.9, method="percentile"))
        what: dict[Any, Any] = dict(zip(["variant", *per], values, strict=True))
        compared.append(
            {
                **what,
                "ratio": float(np.exp(of_tables.mean())),
                "low": low,
                "high": high,
                "better": int((of_tables < 0).sum()),
                "tables": len(of_tables),
                **found[list(averaged)].mean().round(2).to_dict(),
            }
        )
    return pd.DataFrame(compared)


def compared_cells(row: Mapping[Any, Any], reference: str) -> list[str]:
    """Return ratio, interval and wins of a row of `compare_variants` for a table; nothing for the reference."""
    if row["variant"] == reference:
        return ["", "", ""]
    interval = f"{row['low']:.3f}-{row['high']:.3f}" if row["tables"] > 1 else "one table"
    return [f"{row['ratio']:.4f}", interval, f"{row['better']}/{row['tables']}"]
