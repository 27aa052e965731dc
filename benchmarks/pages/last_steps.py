"""The numbers of the last step of a run, and of what its last seconds are spent on."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row, signed

RULES = {
    "25 picks": "25 picks (the reference)",
    "10 picks": "10 picks",
    "50 picks": "50 picks",
    "among the best 10": "among the 10 with the lowest loss",
    "among the best 25": "among the best 25",
    "among the best 50": "among the best 50",
    "a quarter of the weight equal": "a quarter of the weight spread equally over the members",
    "half of the weight equal": "half of the weight",
    "mean of two halves": "mean of selections on two halves of the rows",
    "mean of five without a fifth": "mean of five selections, each without a fifth",
    "the same, picked twice or more": "**the same, without members picked only once**",
    "mean of twenty bootstrap samples, without small weights": "mean of selections on twenty bootstrap samples, "
    "without weights below 1.2 %",
    "PSEO: 10, diversity 0.5": "PSEO's choice of 10 members, diversity 0.5, then selection",
    "PSEO: 25, diversity 0.5": "PSEO's choice of 25 members",
    "temperature from the rows that chose": "temperature fitted to the rows that chose",
    "temperature from other rows": "temperature fitted to rows that did not choose",
    "calibrated if clear": "calibrated if that clearly helps",
}

WAYS = ("search", "second layer", "repeats, same weights", "repeats, chosen again", "repeats, only these")


LONGER = 9000
"""Rows drawn from each of the longer tables, to learn from and to judge on."""


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    yield _last_step()
    yield from _other_pools()
    yield _spare_time()
    yield _spare_time_of_longer_tables()
    yield _spare_time_of_bank_marketing()


def _last_step() -> Body:
    rows = kept("last_step")
    rows = rows[rows["candidates"] == 100]
    lines = []
    for rule, shown in RULES.items():
        of = rows[rows["rule"] == rule]
        cells = []
        for n in (50, 100, 300, 1000):
            change = of.loc[of["rows"] == n, "change"]
            cells.append("" if rule == "25 picks" else f"{signed(change.mean(), 2)} / {signed(change.max(), 2)}")
        lines.append(row(shown, *cells, f"{of.loc[of['rows'] == 1000, 'members'].mean():.1f}"))
    return Body(
        header="| rule | 50 rows | 100 rows | 300 rows | all rows | members (all rows) |",
        lines=tuple(lines),
    )


def _other_pools() -> Iterator[Statement]:
    """Yield what the rule of runs brings with few candidates, and where it brings most."""
    rows = kept("last_step").query("rule == 'the same, picked twice or more'")
    of = rows[rows["candidates"] == 30].groupby("rows")["change"].mean()
    yield Statement(
        text="With 30 candidates, the change is {0:.1f}, {1:.1f}, {2:.1f} and {3:.1f} %",
        values={str(i): of[n] for i, n in enumerate((50, 100, 300, 1000))},
    )
    few = rows[(rows["candidates"] == 100) & rows["rows"].isin([50, 100])]
    median = few.groupby("rows")["change"].median()
    yield Statement(
        text="most of all on cardiotocography, whose loss is nearly zero ({most:.0f} % with 50 and 100 rows; median of "
        "all {m50:.1f} and {m100:.1f} %)",
        values={
            "most": few[few["recording"] == "cardiotocography-volcano"]["change"].mean(),
            "m50": median[50],
            "m100": median[100],
        },
    )


def _spare_time() -> Body:
    rows = kept("spare_time")
    rows = rows[rows["drawn"] < LONGER]
    runs = rows[["table", "rows", "budget"]].drop_duplicates().sort_values(["rows", "budget"])
    test = rows.pivot(index=["table", "budget"], columns="way", values="test_loss")
    change = 100 * test.div(test["none"], axis=0) - 100
    lines = []
    for table, n, budget in runs.itertuples(index=False):
        name = f"{table} ({budget:.0f} s)" if budget > 15 else table
        lines.append(row(name, str(n), *(signed(change.loc[(table, budget), way], 2) for way in WAYS)))
    for name, of in (("**mean**", change.mean()), ("**median**", change.median())):
        lines.append(row(name, "", *(signed(of[way], 2) for way in WAYS)))
    for name, column in (("members, mean", "members"), ("CPU seconds, mean", "seconds")):
        of = rows.pivot(index=["table", "budget"], columns="way", values=column)
        if column == "seconds":
            of = of.sub(of["none"], axis=0)
        lines.append(row(name, "", *(f"{of.mean()[way]:.1f}" for way in WAYS)))
    return Body(
        header="| table | rows that learn | more trials | second layer | repeats, same weights | chosen again among "
        "all | chosen again among the repeated |",
        lines=tuple(lines),
    )


def _spare_time_of_bank_marketing() -> Statement:
    rows = kept("spare_time")
    rows = rows[rows["drawn"] > LONGER]
    losses = rows.set_index("way")[["test_loss", "unseen_loss"]]
    change = 100 * losses / losses.loc["none"] - 100
    return Statement(
        text="on all of bank-marketing, with {learn:,} rows to learn from and {seconds:.0f} CPU seconds, it has "
        "{second:.2f} % less loss on held-out rows (cross-fitted: {unseen:.2f} %), more trials {search:.2f} % less, "
        "and repeats {repeats:.2f} % more",
        values={
            "learn": rows["rows"].iloc[0],
            "seconds": rows["budget"].iloc[0],
            "second": -change.loc["second layer", "test_loss"],
            "unseen": -change.loc["second layer", "unseen_loss"],
            "search": -change.loc["search", "test_loss"],
            "repeats": change.loc["repeats, only these", "test_loss"],
        },
    )


def _spare_time_of_longer_tables() -> Body:
    rows = kept("spare_time")
    rows = rows[rows["drawn"] == LONGER]
    changes = {}
    for loss in ("test_loss", "unseen_loss"):
        losses = rows.pivot(index="table", columns="way", values=loss)
        changes[loss] = 100 * losses.div(losses["none"], axis=0) - 100
    test, n_rows = changes["test_loss"], rows.groupby("table")["rows"].first()
    columns = [
        test["search"],
        test["second layer"],
        changes["unseen_loss"]["second layer"],
        test["repeats, only these"],
    ]
    lines = [row(name, str(n_rows[name]), *(signed(of[name], 2) for of in columns)) for name in test.index]
    lines.append(row("**mean**", "", *(signed(of.mean(), 2) for of in columns)))
    lines.append(row("**median**", "", *(signed(of.median(), 2) for of in columns)))
    return Body(
        header="| table | rows that learn | more trials | second layer | its cross-fitted loss | chosen again among "
        "the repeated |",
        lines=tuple(lines),
    )
