"""The numbers of learning the median under absolute errors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row

HEADER = (
    "| target | skewness | constant | `mae`: mean | median | ratio | trials "
    "| constant | `mape`: mean | median | ratio |"
)


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("absolute_errors")
    of_target = {metric: _losses(rows, metric) for metric in ("mae", "mape")}
    lines = []
    for target, skewness in rows.groupby("table", sort=False)["skewness"].first().items():
        cells: list[str] = []
        for metric, losses in of_target.items():
            if target in losses.index:
                shown = losses.loc[target]
                cells += [f"{shown[name]:.4g}" for name in ("constant", "mean", "median")]
                cells.append(f"{shown['ratio']:.3f}")
            else:
                cells += [""] * 4
            if metric == "mae":
                counts = rows[rows["table"] == target].set_index("variant")["trials"]
                cells.append(f"{counts['mae/mean']}, {counts['mae/median']}")
        lines.append(row(str(target), f"{skewness:.1f}", *cells))
    yield Body(header=HEADER, lines=tuple(lines))
    for metric, losses in of_target.items():
        yield Statement(
            text=f"`{metric}` on other rows is {{less:.1f}} % lower in the median, and lower on {{better:word}} of "
            "{n:word} targets, by {mean:.1f} % on average; the ratios lie between {least:.3f} and {most:.3f}",
            values={
                "less": 100 * (1 - losses["ratio"].median()),
                "mean": 100 * float(1 - np.exp(np.log(losses["ratio"]).mean())),
                "better": int((losses["ratio"] < 1).sum()),
                "n": len(losses),
                "least": losses["ratio"].min(),
                "most": losses["ratio"].max(),
            },
        )
    worse = of_target["mape"]
    yield Statement(
        text="worse than the best constant of the training rows on {mean:word} targets, now on {median:word}",
        values={name: int((worse[name] > worse["constant"]).sum()) for name in ("mean", "median")},
    )


def _losses(rows: Frame, metric: str) -> Frame:
    """Return losses on test rows: a row per target, columns ``constant``, ``mean``, ``median`` and ``ratio``."""
    of_metric = rows[rows["variant"].str.startswith(f"{metric}/")]
    found: Frame = of_metric.assign(learned=of_metric["variant"].str.partition("/")[2]).pivot(
        index="table", columns="learned", values="test"
    )
    constant = of_metric.groupby("table")["constant"].first()
    return found.assign(constant=constant, ratio=found["median"] / found["mean"])
