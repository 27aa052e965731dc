"""The numbers of docs/more_machines.md: how busy simulated workers are kept, and how long decisions take."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, row

PAGE = "docs/more_machines.md"

BATCHES = (1, 64)

MEMORY = "/dev/shm"
"""Where files are in memory, under Linux."""


def parts() -> Iterator[Body]:
    """Yield the parts of the page."""
    yield _simulated(kept("coordinator"))
    yield _decisions(kept("decision_seconds"))


def _simulated(runs: Frame) -> Body:
    lines = [
        row(
            f"`{run.strategy}`",
            str(run.workers),
            f"{run.trials:,}",
            f"{100 * run.stragglers:.0f} %",
            run.order,
            f"{run.utilisation:.3f}",
            f"{1e3 * run.deciding_mean_late:.1f} ms",
            f"{run.deciding_longest:.2f} s",
            f"{1e3 * run.coordinator_seconds / run.trials:.1f} ms",
            "memory" if run.folder == MEMORY else "disk",
            f"{run.memory_mib:.0f} MiB",
        )
        for run in runs.sort_values(["strategy", "workers", "stragglers", "order", "folder"]).itertuples()
    ]
    return Body(
        header="| strategy | workers | trials | slow | order | workers busy | decision: mean | longest | coordinator "
        "per trial | files in | peak memory |",
        lines=tuple(lines),
    )


def _decisions(rows: Frame) -> Body:
    seconds = rows.set_index(["strategy", "batch"])["median"]
    lines = [
        row(f"`{name}`", *(f"{1e3 * seconds[name, n]:.1f} ms" for n in BATCHES))
        for name in ("random", "bo", "optdivbo")
    ]
    return Body(header="| decisions at 5,000 observations | each of its own | 64 together |", lines=tuple(lines))
