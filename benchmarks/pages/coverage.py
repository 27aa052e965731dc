"""The numbers of the coverage of intervals and sets."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows: Frame = kept("coverage")
    rows = rows[rows["variant"] == "auto"]
    asked = sorted(rows["coverage"].unique())
    lines = []
    for table, found in rows.groupby("table", sort=False):
        by = found.groupby("coverage")
        covered, size = by["covered"].mean(), by["size"].mean()
        counts = found.iloc[0]
        cells = [f"{covered[each]:.3f}" for each in asked] + [f"{size[each]:.2f}" for each in asked]
        lines.append(row(str(table), f"{counts['n_train']:,.0f}", f"{counts['n_test']:,.0f}", *cells))
    yield Body(
        header="| table | fitted on | judged on | 80 % | 90 % | 95 % | size at 80 % | 90 % | 95 % |", lines=tuple(lines)
    )
    mean = rows.groupby("coverage")["covered"].mean()
    yield Statement(
        text="On average, {low:.3f}, {middle:.3f} and {high:.3f} of the rows are covered",
        values=dict(zip(("low", "middle", "high"), (mean[each] for each in asked), strict=True)),
    )
