"""The numbers of how certain a mean of models should be."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row, signed

WAYS = ("clear", "temperature", "sharper")


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("temperatures")
    run = ["table", "variant", "seed"]
    tests = rows.pivot(index=run, columns="way", values="test")
    changes = 100 * tests[list(WAYS)].div(tests["none"], axis=0) - 100
    runs = changes.join(rows.groupby(run)[["n_train", "best"]].first()).reset_index()
    runs["folds"] = runs["variant"].str.removesuffix("fold").astype(int)
    mean = runs.groupby(["n_train", "table", "folds"])[[*WAYS, "best"]].mean()
    lines, last = [], ""
    for n_rows, table, folds in mean.index:
        of = mean.loc[(n_rows, table, folds)]
        named = ("", "") if table == last else (table, f"{n_rows}")
        cells = (signed(of[way], 2) if abs(of[way]) >= 0.005 else "0" for way in WAYS)
        lines.append(row(*named, str(folds), *cells, f"{of['best']:.2f}"))
        last = table
    every = mean[list(WAYS)].mean()
    lines.append(row("**mean**", "", "", *(signed(every[way], 2) for way in WAYS), f"{mean['best'].mean():.2f}"))
    yield Body(
        header="| table | rows | folds | clear only | temperature | **sharper** | best temperature |",
        lines=tuple(lines),
    )
    yield Statement(
        text="Sharpened calibrations lower the test loss in {lower} of {n} runs, clear ones in {clear}, fitted "
        "temperatures in {fitted}; the best temperature is below 1 in {below}.",
        values={
            "n": len(runs),
            "lower": int((runs["sharper"] < 0).sum()),
            "clear": int((runs["clear"] < 0).sum()),
            "fitted": int((runs["temperature"] < 0).sum()),
            "below": int((runs["best"] < 1).sum()),
        },
    )
