"""Whether methods differ, as tables and as a picture, for their losses on tables of any kind."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from benchmarks.reporting.critical_difference import critical_difference_diagram
from benchmarks.reporting.table import Table
from benchmarks.statistics import ranks_and_tests as statistics
from benchmarks.statistics.ranks_and_tests import LEVEL


def rank_test_table(losses: Mapping[str, pd.DataFrame], reference: str, *, title: str) -> Table:
    """Return average ranks with intervals, Nemenyi's test against one method, and Friedman's over all.

    Parameters
    ----------
    losses : mapping of str to DataFrame
        By what they are losses of (``validation``, ``test``): rows tables, columns methods, at least two each, smaller
        is better; missing ones come last. All with the same rows and columns.
    reference : str
        A column.
    title : str
        Title of the table.
    """
    first = next(iter(losses.values()))
    cells: dict[str, list[str]] = {name: [] for name in first.columns}
    said = []
    for part, frame in losses.items():
        ranks, test = statistics.rank_methods(frame), statistics.friedman_test(frame)
        p_values = statistics.nemenyi_p_values(test.average_ranks, len(frame))[frame.columns.get_loc(reference)]
        rng = np.random.default_rng(0)
        for i, name in enumerate(frame.columns):
            low, high = statistics.bootstrap_interval(ranks[:, i], rng)
            p_value = "-" if name == reference else f"{p_values[i]:.2g}"
            cells[name] += [f"{test.average_ranks[i]:.2f} [{low:.2f}, {high:.2f}]", p_value]
        said.append(
            f"{part} chi-squared {test.chi2:.2f}, p {test.p_value:.2g} (Iman and Davenport: F {test.f:.2f}, "
            f"p {test.f_p_value:.2g})"
        )
    return Table(
        title=title,
        columns=("strategy", *(head for part in losses for head in (f"{part} rank", f"p against {reference}"))),
        rows=tuple((name, *row) for name, row in cells.items()),
        note=f"Whether there is any difference, by Friedman's test over {len(first)} tables: {'; '.join(said)}. "
        "Average ranks of means with 95 % bootstrap intervals (BCa) over tables. p by Nemenyi's test, corrected for "
        f"all pairs: at most {LEVEL} where ranks are {_critical_difference(first):.2f} or more apart.",
    )


def verdict_rows(losses: pd.DataFrame, means: pd.DataFrame, reference: str) -> list[tuple[str, str, str, str, str]]:
    """Compare one method with each of the others.

    Parameters
    ----------
    losses : DataFrame
        Rows pairs of table and repeat, with the table as the first level of the index; columns methods.
    means : DataFrame
        Over repeats: rows tables, columns methods.
    reference : str
        A column.

    Returns
    -------
    list of tuple of str
        The other method; tables on which `reference` is better, the same and worse by Wilcoxon's signed-rank test over
        repeats; tables on which its mean is lower, equal and higher; p of that test over tables, and after Holm's rule.
    """
    counts = statistics.count_verdicts(statistics.wilcoxon_by_table(losses, reference))
    across = statistics.wilcoxon_holm(means, reference)
    rows = []
    for name in counts.index.astype(str):
        count, cells = counts.loc[name], ("-", "-", "-")
        if name in across.index:
            test = across.loc[name]
            cells = (
                f"{test['losses']:.0f}/{test['ties']:.0f}/{test['wins']:.0f}",
                f"{test['wilcoxon_p']:.3f}",
                f"{test['holm_p']:.3f}",
            )
        # Counted from the other's view, so that better and worse change places.
        rows.append((name, f"{count['worse']}/{count['same']}/{count['better']}", *cells))
    return rows


def verdict_note(losses: pd.DataFrame, reference: str) -> str:
    """Return sentences that explain the rows of `verdict_rows`."""
    repeats = losses.groupby(level=0).size()
    return (
        f"Better/same/worse: tables on which {reference} differs by the two-sided Wilcoxon signed-rank test over "
        f"{repeats_text(repeats)}, p <= {LEVEL} (fewer than six cannot show a difference). The rest counts each of "
        f"{len(repeats)} tables once, by its mean; no p can be below {statistics.smallest_p_value(len(repeats)):.2g}."
    )


def repeats_text(counts: pd.Series) -> str:
    """Return the number of repeats in words: one number, or from the smallest to the largest."""
    few, many = int(counts.min()), int(counts.max())
    return f"{few} repeat{'s' if few != 1 else ''}" if few == many else f"{few} to {many} repeats"


def rank_diagram(losses: pd.DataFrame, *, title: str) -> str:
    """Return the critical-difference diagram (Nemenyi, level 0.05) of losses: rows tables, columns methods."""
    ranks = dict(zip(losses.columns, statistics.average_ranks(losses).tolist(), strict=True))
    return critical_difference_diagram(ranks, _critical_difference(losses), title=title)


def _critical_difference(losses: pd.DataFrame) -> float:
    n_tables, n_methods = losses.shape
    return statistics.nemenyi_critical_difference(n_methods, n_tables, LEVEL)
