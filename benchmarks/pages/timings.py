"""The numbers of how long parts of a run take."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    yield _trees_of_lightgbm()
    yield _suggestions("volcano", (50, 250, 1000))
    yield _suggestions("sklearn12", (100, 250))
    yield from _steps_of_realmlp()
    yield _selection()
    yield _latent()
    yield _large_start()
    yield _worker_start()
    yield from _threads()


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


def _selection() -> Body:
    rows = kept("ensemble_selection")
    return Body(
        header="| metric | CPU seconds | loop | extra memory |",
        lines=tuple(
            row(of.metric, f"{of.seconds:.1f}", f"{of.loop_seconds:.3g}", f"{of.mib:.0f} MiB")
            for of in rows.itertuples()
        ),
    )


def _latent() -> Body:
    rows = kept("latent_time").set_index(["pretrained", "observations"])
    counts = sorted(rows.index.get_level_values("observations").unique())
    lines = [
        row(text, *(f"{rows.loc[(own, n), 'fit_seconds']:.2f}, {rows.loc[(own, n), 'fit_mib']:.1f}" for n in counts))
        for own, text in ((True, "from shipped networks"), (False, "from scratch"))
    ]
    predicted = (rows.loc[(True, n)] for n in counts)
    cells = (f"{of['predict_seconds']:.3f}, {of['predict_mib']:.1f}" for of in predicted)
    lines.append(row("prediction of 2000 configurations", *cells))
    return Body(header=row("", f"{counts[0]} observations", *map(str, counts[1:])), lines=tuple(lines))


def _large_start() -> Body:
    rows = kept("large_start").set_index(["code", "rows"])
    lines = []
    for n in sorted(rows.index.get_level_values("rows").unique()):
        before, after = rows.loc[("before", n)], rows.loc[("after", n)]
        seconds = (f"{of['cpu_seconds']:.1f}" for of in (before, after))
        peaks = (f"{of['start_mib']:,.0f} MiB" for of in (before, after))
        lines.append(row(f"{n:,}", f"{after['table_mib']:.0f} MiB", *seconds, *peaks))
    return Body(
        header="| rows | its cells at 4 bytes | CPU seconds to the start: before | after | peak until then: before "
        "| after |",
        lines=tuple(lines),
    )


def _worker_start() -> Body:
    """Return the table of seconds until workers are ready, and of their memory."""
    median = kept("worker_start").groupby(["start", "workers"])[["seconds", "memory_mib"]].median()
    starts = ("spawned", "forked", "forked again")
    lines = []
    for n in sorted(median.index.get_level_values("workers").unique()):
        seconds = (f"{median.loc[(start, n), 'seconds']:.2f}" for start in starts)
        memory = (f"{median.loc[(start, n), 'memory_mib']:,.0f} MiB" for start in starts[:2])
        lines.append(row(f"{n:.0f}", *seconds, *memory))
    return Body(
        header="| workers | ready after: imports in each | forked | forked again | memory: imports in each | forked |",
        lines=tuple(lines),
    )


def _shapes(rows: Frame) -> Body:
    """Return the table of wall seconds of a fit by the size of its table, and of CPU seconds with two threads."""
    fits = rows.pivot(index=["rows", "columns"], columns=["threads", "at_once"], values=["wall_seconds", "cpu_seconds"])
    wall, cpu = fits["wall_seconds"], fits["cpu_seconds"]
    lines = []
    for shape in fits.index:
        one, two = wall.loc[shape, (1, 1)], wall.loc[shape, (2, 1)]
        more = cpu.loc[shape, (2, 1)] / cpu.loc[shape, (1, 1)]
        n_rows, n_columns = shape
        size = (f"{n_rows:,} x {n_columns}", f"{n_rows * n_columns:,}")
        lines.append(row(*size, f"{one:.2f} s", f"{two:.2f} s", f"{two / one:.2f}", f"{more:.2f}"))
    return Body(header="| rows x columns | cells | 1 thread | 2 threads | ratio | of CPU seconds |", lines=tuple(lines))


def _threads() -> Iterator[Statement | Body]:
    """Yield the seconds of a fit with one thread, with two, and beside another fit."""
    every = kept("threads")
    yield _shapes(every[every["columns"] != 30])
    rows = every[every["columns"] == 30]
    both = rows.pivot(index=["rows", "learner"], columns=["threads", "at_once"], values=["cpu_seconds", "wall_seconds"])
    seconds, wall = both["cpu_seconds"], both["wall_seconds"]
    shown = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost", "histogram": "histogram boosting"}
    lines = []
    for n_rows in sorted(rows["rows"].unique()):
        for i, (learner, name) in enumerate(shown.items()):
            of = seconds.loc[(n_rows, learner)]
            cells = (f"{of[setting]:.1f}" for setting in ((1, 1), (2, 1), (1, 2)))
            lines.append(row(f"{name}, {n_rows:,} x 30" if i == 0 else name, *cells))
    yield Body(
        header="| learner, rows x columns | 1 thread | 2 threads | 1 thread, two fits at once |", lines=tuple(lines)
    )
    change = 100 * seconds[2, 1] / seconds[1, 1] - 100
    yield Statement(
        text="Two threads take between {least:.0f} % less and {most:.0f} % more CPU seconds than one",
        values={"least": -change.min(), "most": change.max()},
    )
    ratio = wall[2, 1] / wall[1, 1]
    yield Statement(
        text="a fit with two threads took {low:.1f} to {high:.1f} times the wall seconds of one with one",
        values={"low": ratio.min(), "high": ratio.max()},
    )
