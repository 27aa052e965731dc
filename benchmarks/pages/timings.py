"""The numbers of how long parts of a run take."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    yield _trees_of_lightgbm()
    yield _suggestions("volcano", (50, 250, 1000))
    yield _suggestions("sklearn12", (100, 250))
    yield from _steps_of_realmlp()


def _trees_of_lightgbm() -> Body:
    rows = kept("lightgbm_time")
    settings = list(dict.fromkeys(rows["setting"]))
    lines = []
    for (table, n_rows, columns, classes), of in rows.groupby(["table", "rows", "columns", "n_classes"], sort=False):
        taken = of.set_index("setting")["microseconds"]
        lines.append(
            row(table, f"{n_rows:,}", str(columns), str(classes), *(f"{taken[name]:.0f}" for name in settings))
        )
    return Body(header=row("table", "rows", "columns", "classes", *settings), lines=tuple(lines))


def _suggestions(space: str, counts: tuple[int, ...]) -> Body:
    rows = kept("decision_seconds")
    rows = rows[rows["space"] == space]
    seconds = rows.set_index(["strategy", "observations"])["median"]
    lines = []
    for strategy in dict.fromkeys(rows["strategy"]):
        taken = [seconds[strategy, n] for n in counts]
        lines.append(row(f"`{strategy}`", *(f"{s:.3f}" if s >= 0.001 else f"{s:.4f}" for s in taken)))
    return Body(header=row("strategy", f"{counts[0]} observations", *map(str, counts[1:])), lines=tuple(lines))


def _steps_of_realmlp() -> Iterator[Statement | Body]:
    rows = kept("realmlp_time")
    before = rows[rows["columns"] == 0].set_index("what")["milliseconds"] / 1000
    yield Statement(
        text="which takes {both:.1f} s before its first step, in each worker process: {imported:.1f} to be imported, "
        "{made:.1f} to make its optimiser",
        values={"both": before.sum(), "imported": before["import"], "made": before["optimiser"]},
    )
    steps = rows[rows["columns"] > 0].pivot(index=["columns", "n_classes"], columns="what", values="milliseconds")
    yield Body(
        header="| columns | classes | numpy | PyTorch |",
        lines=tuple(
            row(str(columns), str(classes), f"{of['numpy']:.1f}", f"{of['PyTorch']:.1f}")
            for (columns, classes), of in steps.iterrows()
        ),
    )
