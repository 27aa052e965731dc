"""The numbers of calibration on tables with rare classes."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row

HEADER = (
    "| data set | rarest class, % | log loss | around equal classes, % | around the means, % "
    "| mean probability, % of the share: none | equal | means |"
)

_RUN = ["table", "rows", "seed"]
_RARE = 0.15
"""Most of the rows that belong to a rare class."""


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    runs = _runs()
    tables = runs.groupby("table").mean().sort_values("smallest")
    lines = [
        row(
            str(name),
            f"{100 * each['smallest']:.1f}",
            f"{each['none']:.4f}",
            *(f"{each[f'{centre} change']:+.1f}" for centre in ("equal", "mean")),
            *(f"{100 * each[f'{centre} share']:.0f}" for centre in ("none", "equal", "mean")),
        )
        for name, each in tables.iterrows()
    ]
    yield Body(header=HEADER, lines=tuple(lines))
    is_rare = tables["smallest"] < _RARE
    rare, others = tables[is_rare], tables[~is_rare]
    off = {centre: 100 * (1 - rare[f"{centre} share"].median()) for centre in ("equal", "mean")}
    yield Statement(
        text="is {equal:.0f} % below its share in the median of the {n:word} tables whose rarest class has less than "
        "15 % of the rows; around the means, {mean:.0f} %",
        values={"n": len(rare), **off},
    )
    yield Statement(
        text="The log loss changes by {rare_equal:+.2f} and {rare_mean:+.2f} % there on average, by {other_equal:+.2f} "
        "and {other_mean:+.2f} % on the {n:word} other tables",
        values={
            "n": len(others),
            "rare_equal": rare["equal change"].mean(),
            "rare_mean": rare["mean change"].mean(),
            "other_equal": others["equal change"].mean(),
            "other_mean": others["mean change"].mean(),
        },
    )
    better = (runs["mean change"] < runs["equal change"] - 1e-9).sum()
    worse = (runs["mean change"] > runs["equal change"] + 1e-9).sum()
    yield Statement(
        text="Of the {n} runs, {better} are better around the means than around equal classes, and {worse} are worse",
        values={"n": len(runs), "better": int(better), "worse": int(worse)},
    )


def _runs() -> Frame:
    """Return a row per run: log loss without calibration, its changes in per cent, and mean probability by share."""
    rows = kept("rare_classes")
    losses = rows.pivot_table(index=_RUN, columns="centre", values="test")
    shares = rows.assign(of=rows["predicted"] / rows["observed"]).pivot_table(index=_RUN, columns="centre", values="of")
    found: Frame = losses.assign(smallest=rows.groupby(_RUN)["smallest"].first())
    for centre in ("equal", "mean"):
        found[f"{centre} change"] = 100 * (losses[centre] / losses["none"] - 1)
    for centre in ("none", "equal", "mean"):
        found[f"{centre} share"] = shares[centre]
    return found
