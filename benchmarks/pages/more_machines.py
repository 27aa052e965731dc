"""The numbers of docs/more_machines.md: how busy simulated workers are kept, and what a large lookahead costs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row, signed
from benchmarks.statistics import comparison

PAGE = "docs/more_machines.md"

LOOKAHEADS = {"optdivbo@8": "8", "optdivbo@64": "64", "optdivbo@256": "256"}
BATCHES = (1, 64)

MEMORY = "/dev/shm"
"""Folder whose files are in memory, on Linux."""

PARTS: tuple[comparison.Part, ...] = ("validation", "test")
AFTER = (60, 150)


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page."""
    yield _simulated(kept("coordinator"))
    yield _decisions(kept("decision_seconds"))
    yield from _lookahead(kept("replay_lookahead"))


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
    seconds = rows[rows["observations"] == 5000].set_index(["strategy", "batch"])["median"]
    lines = [
        row(f"`{name}`", *(f"{1e3 * seconds[name, n]:.1f} ms" for n in BATCHES))
        for name in ("random", "bo", "optdivbo")
    ]
    return Body(header="| decisions at 5,000 observations | each of its own | 64 together |", lines=tuple(lines))


def _lookahead(runs: Frame) -> Iterator[Statement | Body]:
    cells: dict[tuple[comparison.Part, int], Frame] = {
        (part, n): comparison.relative_differences(runs, n, part, "optdivbo") for part in PARTS for n in AFTER
    }
    lines = []
    for name, shown in LOOKAHEADS.items():
        found = [cells[part, n].loc[(name, "")] for part in PARTS for n in AFTER]
        shares = [
            f"{signed(each['difference'], 1)} % [{signed(each['low'], 1)}, {signed(each['high'], 1)}]" for each in found
        ]
        lines.append(row(shown, *shares))
    yield Body(
        header="| lookahead | validation loss after 60 trials | after 150 | test loss after 60 | after 150 |",
        lines=tuple(lines),
    )
    pairs = len(runs[["recording", "seed"]].drop_duplicates())
    yield Statement(
        text="mean differences from a lookahead of 1 over {pairs:word} pairs of recording and seed",
        values={"pairs": pairs},
    )
