"""The sizes, latencies and losses of refined models."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row

WHOLE = "of the run"


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("refining")
    models = rows[rows["members"] > 0]
    lines = [
        row(
            f"`{each.table}`",
            each.model,
            str(each.members),
            f"{each.log_loss:.4f}",
            f"{each.single_row_ms:.1f} ms",
            f"{each.rows_per_second:,.0f}",
            f"{each.n_bytes / 1e6:.2f} MB",
        )
        for each in models.itertuples()
    ]
    header = row("table", "model", "members", "log loss on unseen rows", "one row", "rows per second", "size")
    yield Body(header=header, lines=tuple(lines))
    together = rows[rows["members"] == 0].set_index("table")
    demo = together.loc["credit-g"]
    other = together.drop("credit-g").iloc[0]
    yield Statement(
        text="The models of all trials take {demo:.1f} MB instead of {demo_before:.1f} on the first table, and "
        "{other:.1f} instead of {other_before:.1f} on the second.",
        values={
            "demo": demo["n_bytes"] / 1e6,
            "demo_before": demo["earlier_bytes"] / 1e6,
            "other": other["n_bytes"] / 1e6,
            "other_before": other["earlier_bytes"] / 1e6,
        },
    )
