"""The numbers of the experiments of DivBO on tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.pages.how_good import NINE, divbo_losses
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.statistics.ranks_and_tests import wilcoxon_holm

REPORTED = {
    "random": "RS, RS-ES",
    "bo": "BO, BO-ES",
    "rising_bandit": "RB, RB-ES",
    "ensemble_optimisation": "EO",
    "nes": "NES",
    "divbo": "DivBO, DivBO-",
}
"""Methods of the paper that are forms of a search."""


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    yield from _methods()
    yield _costs()
    yield from _forms()


def _methods() -> Iterator[Statement | Body]:
    methods = (*NINE, "DivBO-")
    published = kept("divbo_published").set_index(["table", "method"])
    test = divbo_losses("test", methods)
    tables = sorted(test.index)
    ours = test[list(NINE)].round(9).rank(axis=1).mean()
    theirs = published["published"].unstack().loc[tables, list(NINE)].round(9).rank(axis=1).mean()
    lowest = test.round(6).idxmin(axis=1)
    lines = []
    for method in methods:
        cells = []
        for table in tables:
            of = published.loc[(table, method)]
            text = f"{100 * of['test']:.2f} ± {100 * of['test_std']:.2f}"
            text += "" if np.isnan(of["published"]) else f" ({100 * of['published']:.2f})"
            is_lowest = round(test.loc[table, method], 6) == round(test.loc[table, lowest[table]], 6)
            cells.append(f"**{text}**" if is_lowest else text)
        ranks = ["-", "-"] if method == "DivBO-" else [f"{ours[method]:.2f}", f"{theirs[method]:.2f}"]
        lines.append(row(method, *cells, *ranks))
    yield Body(
        header="| method | bank32nh | cpu_act | puma32H | quake | satimage | wind | rank | paper's rank |",
        lines=tuple(lines),
    )
    against: Frame = wilcoxon_holm(test[list(NINE)], "DivBO")
    validation = divbo_losses("validation", methods).round(9).rank(axis=1).mean()
    lines = []
    for method in methods:
        quoted = {"RS": "8.72", "BO": "7.21", "EO": "6.65", "NES": "5.82", "RS-ES": "4.30", "RB-ES": "2.58",
                  "DivBO": "1.82", "DivBO-": "8.22"}.get(method, "-")  # fmt: skip
        cells = ["", "", ""]
        if method in against.index:
            of = against.loc[method]
            # The test compares the method with DivBO; the page says what DivBO has won.
            won, tied, lost = int(of["losses"]), int(of["ties"]), int(of["wins"])
            cells = [f"{won}/{tied}/{lost}", f"{of['wilcoxon_p']:.3f}", f"{of['holm_p']:.3f}"]
        lines.append(row(method, f"{validation[method]:.2f}", quoted, *cells))
    yield Body(
        header="| method | validation rank | paper's | DivBO won/tied/lost | signed-rank p | Holm p |",
        lines=tuple(lines),
    )
    ours_without = ours.drop("DivBO")
    yield Statement(
        text="DivBO has the same average rank as random search with ensemble selection ({divbo:.2f}), NES is first "
        "({nes:.2f}) and the smallest p is {p:.2f}",
        values={"divbo": ours["DivBO"], "nes": ours_without.min(), "p": against["wilcoxon_p"].min()},
    )


def _costs() -> Body:
    runs = kept("divbo").drop_duplicates(["table", "strategy", "seed"])
    lines = []
    for strategy, methods in REPORTED.items():
        of = runs[runs["strategy"] == strategy]
        seconds = [of[name].mean() for name in ("seconds", "suggest_seconds", "training_seconds")]
        lines.append(
            row(
                f"`{strategy}`", methods, f"{100 * (of['failed'] / of['trials']).mean():.1f} %", f"{seconds[0]:.0f}",
                f"{seconds[1]:.1f}", f"{seconds[2]:.1f}", f"{seconds[0] - seconds[1] - seconds[2]:.1f}",
                f"{of['cpu_seconds'].mean():.0f}", f"{of['memory_mib'].max():.0f}",
            )
        )  # fmt: skip
    return Body(
        header="| search | reported as | failed trials | wall seconds | deciding | training | rest | CPU seconds "
        "| MiB training |",
        lines=tuple(lines),
    )


def _forms() -> Iterator[Statement]:
    """Yield how ensembles from the same trials compare."""
    rows = kept("divbo")
    test: dict[str, Frame] = {
        strategy: rows[rows["strategy"] == strategy].groupby(["table", "form"])["test"].mean().unstack().round(9)
        for strategy in ("divbo", "bo")
    }
    ranks = test["divbo"][["selection", "stacking", "bagging", "bagging_uniform"]].rank(axis=1).mean()
    yield Statement(
        text="stacking of the five best has the best average rank ({stacking:.2f} of four; selection {selection:.2f}, "
        "bagging {bagging:.2f}), and with `bo`, selection of 100 is slightly better than of 25 on {better:word} of "
        "{n:word} tables",
        values={
            **ranks.to_dict(),
            "better": int((test["bo"]["selection100"] < test["bo"]["selection"]).sum()),
            "n": len(test["bo"]),
        },
    )
