"""The numbers of boosters that learn a deviance."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row

HEADER = "| metric | booster | targets | lower on | ratio: median | lowest | highest |"


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("deviances")
    rows = rows.assign(ratio=rows["own"] / rows["squared"])
    lines = []
    for (metric, booster), found in rows.groupby(["variant", "algorithm"])["ratio"]:
        numbers = (f"{found.median():.3f}", f"{found.min():.3f}", f"{found.max():.3f}")
        lines.append(row(f"`{metric}`", booster, str(len(found)), str(int((found < 1).sum())), *numbers))
    yield Body(header=HEADER, lines=tuple(lines))
    yield Statement(
        text="The deviance is lower in {better} of {n} cases, by {less:.1f} % in the median of all",
        values={
            "better": int((rows["ratio"] < 1).sum()),
            "n": len(rows),
            "less": 100 * (1 - rows["ratio"].median()),
        },
    )
    worse = {name: int((rows[name] > rows["constant"]).sum()) for name in ("squared", "own")}
    yield Statement(
        text="worse than the mean in {squared:word} cases with squared errors, and in {own} with deviances",
        values=worse,
    )
