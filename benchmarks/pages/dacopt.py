"""The numbers of the experiments of DACOpt."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.dacopt.results import HYPEROPT
from benchmarks.experiments.dacopt.tables import contest_pairs
from benchmarks.pages.how_good import dacopt_scores
from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("dacopt1")
    published = dacopt_scores().set_index(["table", "strategy"])["published"]
    first = rows[rows["seed"] == 0].pivot(index="table", columns="strategy", values="validation")
    strategies = ("dac_hb", "dac_hh", "dac_sb", "dac_sh", "bo4ml", HYPEROPT, "random")
    order = [table for table in dict.fromkeys(rows["table"]) if first.loc[table].count() > 1]
    lines = []
    for table in order:
        cells = []
        for name in strategies:
            score, said = first.loc[table, name], published.get((table, name), np.nan)
            text = "" if np.isnan(score) else f"{score:.4f}"
            cells.append(text if np.isnan(said) or not text else f"{text} ({said:.4f})")
        lines.append(row(table, *cells))
    yield Body(
        header="| table | `dac_hb` | `dac_hh` | `dac_sb` | `dac_sh` | `bo4ml` | `tpe`, independent | `random` |",
        lines=tuple(lines),
    )
    means = rows[rows["strategy"] == "dac_hb"].groupby("table")["validation"].mean()
    yield Statement(
        text="The means of the three repeats of `dac_hb` are {0:.4f}, {1:.4f}, {2:.4f}, {3:.4f} and {4:.4f} on these "
        "tables, {rest:.4f} on yeast-1_vs_7.",
        values={**{str(i): means[table] for i, table in enumerate(order)}, "rest": means["yeast-1_vs_7"]},
    )
    pairs = contest_pairs(rows.rename(columns={"validation": "score"}), tuple(dict.fromkeys(rows["strategy"])))
    yield Body(
        header="| contest | alone | table | repeats | contest's score | alone | difference | won/tied/lost |",
        lines=tuple(row(f"`{contest}`", f"`{alone}`", *rest) for contest, alone, *rest in pairs),
    )
    scores = dacopt_scores()
    scores = scores.assign(above=scores["mean"] - scores["published"]).dropna(subset=["above"])
    on_glass = scores[scores["table"] == "glass1"].set_index("strategy")["above"]
    yield Statement(
        text="its baselines are at most {least:.4f} below the published means and {mean:.3f} above on average, but "
        "{bo4ml:.3f} and {tpe:.3f} above on glass1",
        values={
            "least": -scores["above"].min(),
            "mean": scores["above"].mean(),
            "bo4ml": on_glass["bo4ml"],
            "tpe": on_glass[HYPEROPT],
        },
    )
    vehicle = first.loc["vehicle1"].dropna()
    yield Statement(
        text="on vehicle1 it has {random:.3f}, all others at least {others:.3f}",
        values={"random": vehicle["random"], "others": vehicle.drop("random").min()},
    )
