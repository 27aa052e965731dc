"""The numbers of learners that learn logarithms of targets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.logarithms import ENSEMBLE
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row

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
        values={
            "less": 100 * (1 - np.exp(np.log(ratios).mean())),
            "better": int((ratios < 1).sum()),
            "n": len(ratios),
        },
    )
    means = np.exp(np.log(of_squared).mean())
    yield Statement(
        text="Under `rmse`, they have {more:.1f} % more, and ensembles of both {both:.1f} % more",
        values={"more": 100 * (means["on_logarithms"] - 1), "both": 100 * (means["on_both"] - 1)},
    )
