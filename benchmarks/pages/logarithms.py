"""The numbers of learners that learn logarithms of targets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.logarithms import ENSEMBLE
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row
from cashmere.evaluation.metrics import SKEWED

NEGATIVE = ("bank-marketing:V6",)
"""Targets of which some are negative, so that no logarithms are learned."""

WHOLE_RUNS = "| target | skewness | `mae`: values | logarithms | ratio | trials | `mape`: values | logarithms | ratio |"
HEADER = "| target | skewness | `rmsle`: values | logarithms | ratio | `rmse`: logarithms | both |"


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("logarithms")
    ensembles: Frame = rows[rows["learner"] == ENSEMBLE]
    own, squared = (ensembles[ensembles["metric"] == name].set_index("table") for name in ("rmsle", "rmse"))
    ratios = own["on_logarithms"] / own["on_values"]
    of_squared = squared[["on_logarithms", "on_both"]].div(squared["on_values"], axis=0)
    yield Body(
        header=HEADER,
        lines=tuple(
            row(
                name,
                f"{own.loc[name, 'skewness']:.1f}",
                *(f"{own.loc[name, column]:.4g}" for column in ("on_values", "on_logarithms")),
                *(f"{value:.3f}" for value in (ratios[name], *of_squared.loc[name])),
            )
            for name in own.index
        ),
    )
    yield Statement(
        text="Under `rmsle`, ensembles of logarithms have {less:.1f} % less loss on average, and less on "
        "{better:word} of {n:word} targets",
        values={"less": 100 * (1 - _mean(ratios)), **_counts(ratios)},
    )
    yield Statement(
        text="Under `rmse`, they have {more:.1f} % more, and ensembles of both {both:.1f} % more",
        values={
            name: 100 * (_mean(of_squared[column]) - 1)
            for name, column in (("more", "on_logarithms"), ("both", "on_both"))
        },
    )
    yield from _whole_runs(kept("skewed_targets"))


def _whole_runs(rows: Frame) -> Iterator[Statement | Body]:
    """Yield what whole runs under absolute errors gain, on targets whose logarithms they learn."""
    rows = rows[(rows["skewness"] >= SKEWED) & ~rows["table"].isin(NEGATIVE)]
    skewness = rows.groupby("table", sort=False)["skewness"].first()
    losses, ratios = {}, {}
    for metric in ("mae", "mape"):
        of_metric: Frame = rows[rows["variant"].str.startswith(f"{metric}/")].assign(
            learned=lambda found: found["variant"].str.partition("/")[2]
        )
        losses[metric] = of_metric.pivot(index="table", columns="learned", values="test")
        ratios[metric] = losses[metric]["logarithms"] / losses[metric]["median"]
    trials = rows.pivot(index="table", columns="variant", values="trials")
    lines = []
    for name, value in skewness.items():
        cells = [f"{value:.1f}"]
        for metric, of_metric in losses.items():
            found = [of_metric.loc[name, each] for each in ("median", "logarithms")] if name in of_metric.index else []
            cells += [f"{each:.4g}" for each in found] + [f"{ratios[metric][name]:.3f}"] if found else [""] * 3
            if metric == "mae":
                cells.append(", ".join(f"{trials.loc[name, f'mae/{each}']:.0f}" for each in ("median", "logarithms")))
        lines.append(row(str(name), *cells))
    yield Body(header=WHOLE_RUNS, lines=tuple(lines))
    yield Statement(
        text="`mae` is {less:.1f} % lower on average, and lower on {better:word} of {n:word} targets",
        values={"less": 100 * (1 - _mean(ratios["mae"])), **_counts(ratios["mae"])},
    )
    yield Statement(
        text="`mape` would be {more:.1f} % higher, and lower on {better:word} of {n:word}",
        values={"more": 100 * (_mean(ratios["mape"]) - 1), **_counts(ratios["mape"])},
    )


def _mean(ratios: Frame) -> float:
    return float(np.exp(np.log(ratios).mean()))


def _counts(ratios: Frame) -> dict[str, int]:
    return {"better": int((ratios < 1).sum()), "n": len(ratios)}
