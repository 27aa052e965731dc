"""The numbers of boosters that learn a deviance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

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
    yield _any_leaf()


def _any_leaf() -> Statement:
    """Say what the least weight of a leaf brings, over the boosters with leaves of any weight."""
    keys = ["table", "variant", "algorithm"]
    before, now = (kept(name).set_index(keys)["own"] for name in ("deviances_any_leaf", "deviances"))
    change = 100 * np.expm1(np.log(now / before).groupby(["algorithm", "variant"]).mean())
    return Statement(
        text="in the mean it lowers the deviance of XGBoost by {xgboost_gamma:.1f} % under `gamma` and by "
        "{xgboost_tweedie:.1f} % under `tweedie`, that of LightGBM by {lightgbm_gamma:.1f} and "
        "{lightgbm_tweedie:.1f} %",
        values={
            f"{booster}_{metric}": -change[booster, metric]
            for booster in ("xgboost", "lightgbm")
            for metric in ("gamma", "tweedie")
        },
    )
