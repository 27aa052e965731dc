"""The numbers of what `fit` does by default: strategies in short runs, and the number of folds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.experiments.defaults import summarise
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row, signed
from benchmarks.statistics.ranks_and_tests import signed_rank_test

SEVERAL_KINDS = ("MagicTelescope", "bank-marketing", "phoneme")
"""Tables with runs of 30 s with every kind of resampling."""

CELLS = {
    "bank-marketing": 33_908 * 16 * 2,
    "first-order-theorem-proving": 2000 * 51 * 6,
    "satimage": 2000 * 36 * 6,
    "pendigits": 2000 * 16 * 10,
    "connect-4": 2000 * 42 * 3,
    "eye_movements": 2000 * 27 * 3,
}
"""Rows that are fitted times columns times classes, of tables with slow trials."""

WIDE = {
    "cnae-9": (810, 856 * 9),
    "mfeat-pixel": (1500, 240 * 10),
    "mfeat-factors": (1500, 216 * 10),
    "mfeat-fourier": (1500, 76 * 10),
    "mfeat-zernike": (1500, 47 * 10),
    "vowel": (742, 12 * 11),
    "texture": (4125, 40 * 11),
    "letter": (15_000, 16 * 26),
    "optdigits": (4215, 64 * 10),
    "first-order-theorem-proving": (4584, 51 * 6),
    "satimage": (4822, 36 * 6),
    "pendigits": (8244, 16 * 10),
}
"""Most rows that are fitted, and columns times classes, of tables with many of these."""

_BANDS = (50, 100, 200, 400, 2000)
"""Thousands of cells per CPU second."""


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    yield _strategies_on_colic()
    yield _optdivbo_beside_bo()
    yield from _two_minutes()
    yield _ten_minutes()
    yield _kinds_of_resampling()
    yield _slow_trials()
    yield _few_rows()
    yield _eight_folds()
    yield from _means_of_eight_folds()


def _strategies_on_colic() -> Body:
    runs = kept("defaults").query("table == 'colic' and rows == 800")
    lines = []
    for strategy in sorted(runs["variant"].unique()):
        of = runs[runs["variant"] == strategy].sort_values("share")
        end = of.iloc[-1]
        cells = (f"{end['trials']}", f"{end['most_tried']:.2f}", f"{end['families']}", f"{end['deciding']:.1f}")
        lines.append(row(f"`{strategy}`", *cells, ", ".join(f"{loss:.3f}" for loss in of["test"])))
    return Body(
        header="| | trials | share of the algorithm with most | families in the ensemble | seconds for decisions "
        "| test loss at 3.75, 7.5, 15, 30 s |",
        lines=tuple(lines),
    )


def _optdivbo_beside_bo() -> Statement:
    runs = kept("defaults").query("budget == 30 and rows == 4000 and share == 1 and variant in ('bo', 'optdivbo')")
    runs = runs.drop_duplicates(["table", "variant"], keep="last").set_index(["table", "variant"]).unstack()
    both = runs[runs["test"].notna().all(axis=1)]
    change = 100 * np.expm1(np.log(both["test"]["optdivbo"] / both["test"]["bo"]))
    return Statement(
        text="`optdivbo` has {mean:.2f} % less test loss than `bo` in the mean and {median:.2f} % in the median, "
        "between {least:.1f} and {most:+.1f} %: with {fewest:.0f} to {longest:.0f} trials",
        values={
            "mean": -change.mean(),
            "median": -change.median(),
            "least": change.min(),
            "most": change.max(),
            "fewest": both["trials"].min(axis=None),
            "longest": both["trials"].max(axis=None),
        },
    )


def _two_minutes() -> Iterator[Statement | Body]:
    """Yield what runs of 120 CPU seconds say of three strategies, where all three have ended."""
    runs = kept("defaults_in_time")
    ends = runs[runs["share"] == 1].pivot_table(index=["table", "seed"], columns="variant", values="test").dropna()
    complete = runs.set_index(["table", "seed"]).loc[ends.index].reset_index()
    compared: Frame = summarise(complete, "optdivbo").set_index(["variant", "share"])
    lines = []
    for strategy in ("optdivbo", "bo", "ensemble_gain"):
        of = compared.loc[strategy]
        end = of.loc[1.0]
        changes = [
            f"{signed(100 * (moment.ratio - 1), 1)} % [{signed(100 * (moment.low - 1), 1)}, "
            f"{signed(100 * (moment.high - 1), 1)}]"
            for moment in of.sort_index().itertuples()
        ]
        compared_with_it = (*changes, f"{end['better']:.0f} of {end['tables']:.0f}")
        if strategy == "optdivbo":
            compared_with_it = ("",) * len(compared_with_it)
        tried = (f"{end['trials']:.0f}", f"{100 * end['most_tried']:.0f} %", f"{end['deciding']:.1f}")
        lines.append(row(f"`{strategy}`", *compared_with_it, *tried))
    yield Body(
        header="| | 15 s | 30 s | 60 s | 120 s | lower on | trials | of one algorithm | seconds for decisions |",
        lines=tuple(lines),
    )
    changes = np.log(ends.div(ends["optdivbo"], axis=0)).groupby("table").mean()
    yield Statement(
        text="{runs} runs of each on {tables:word} tables. By Wilcoxon's test over tables, `bo` differs from "
        "`optdivbo` with p {p_bo:.2f}, `ensemble_gain` with p {p_gain:.2f}",
        values={
            "runs": len(ends),
            "tables": len(changes),
            "p_bo": signed_rank_test(changes["bo"].to_numpy())[0],
            "p_gain": signed_rank_test(changes["ensemble_gain"].to_numpy())[0],
        },
    )


def _ten_minutes() -> Statement:
    """Return what runs of 600 CPU seconds say of two strategies, where both have ended."""
    runs = kept("defaults_in_time_longer")
    ends = runs[runs["share"] == 1].pivot_table(index="table", columns="variant", values="test").dropna()
    compared: Frame = summarise(runs[runs["table"].isin(ends.index)], "optdivbo").set_index(["variant", "share"])
    of = compared.loc[("bo", 1.0)]
    change = 100 * ends["bo"] / ends["optdivbo"] - 100
    return Statement(
        text="on {tables:word} tables with one seed, `bo` has {ratio:.3f} of the test loss of `optdivbo` in the mean "
        "({least:+.1f} to {most:+.1f} %), with {ours:.0f} trials against {theirs:.0f}",
        values={
            "tables": len(ends),
            "ratio": of["ratio"],
            "least": change.min(),
            "most": change.max(),
            "ours": of["trials"],
            "theirs": compared.loc[("optdivbo", 1.0), "trials"],
        },
    )


def _kinds_of_resampling() -> Body:
    runs = kept("defaults").query("budget == 30 and rows == 4000")
    runs = runs.drop_duplicates(["table", "variant", "share"], keep="first")
    of = runs.set_index(["table", "variant", "share"])
    columns = [("", 0.125), ("/holdout", 0.125), ("", 1.0), ("/3fold", 1.0), ("/holdout", 1.0)]
    return Body(
        header="| | five folds, 3.75 s | holdout, 3.75 s | five folds, 30 s | three folds, 30 s | holdout, 30 s |",
        lines=tuple(
            row(table, *(_loss_and_trials(of.loc[(table, f"optdivbo{kind}", share)]) for kind, share in columns))
            for table in SEVERAL_KINDS
        ),
    )


def _slow_trials() -> Body:
    runs = kept("defaults").query("rows == 40000 or (rows == 2000 and budget == 24)")
    lines = []
    for table, cells in CELLS.items():
        of = runs[runs["table"] == table].set_index(["share", "variant"])
        for share in (1.0, 0.5, 0.25):
            found = {kind: of.loc[share].T.get(f"optdivbo/{kind}") for kind in ("5fold", "3fold", "holdout")}
            best = min(each["test"] for each in found.values() if each is not None)
            shown = ["" if of is None else _loss_and_trials(of, bold=of["test"] == best) for of in found.values()]
            thousands = cells / (of["budget"].iloc[0] * share) / 1000
            lines.append(row(table if share == 1 else "", f"{thousands:.0f}", *shown))
    return Body(
        header="| | cells per second, thousands | five folds | three folds | holdout |",
        lines=tuple(lines),
    )


def _few_rows() -> Body:
    runs = kept("folds_of_few_rows")
    fitted = [min(rows, WIDE[table][0]) for table, rows in zip(runs["table"], runs["rows"], strict=True)]
    cells = np.array(fitted) * [WIDE[table][1] for table in runs["table"]]
    runs = runs.assign(
        kind=runs["variant"].str.partition("/")[2], thousands=cells / runs["budget"] / runs["share"] / 1000
    )
    losses = runs.set_index(["rows", "table", "seed", "thousands", "kind"])["test"].unstack()
    changes = np.log(losses[["3fold", "5fold"]].div(losses["holdout"], axis=0)).dropna(how="all").reset_index()
    changes["band"] = np.searchsorted(_BANDS, changes["thousands"])
    of_tables = changes.groupby(["rows", "band", "table"])[["3fold", "5fold"]].mean()
    shown = []
    for (rows, band), of in of_tables.groupby(level=["rows", "band"]):
        below = "up to 50" if band == 0 else f"{_BANDS[band - 1]} to {_BANDS[band]}"
        means = (_change(of[kind]) for kind in ("3fold", "5fold"))
        shown.append(row(f"{rows:,}", below, *means))
    return Body(
        header="| rows, at most | cells per second, thousands | three folds | five folds |",
        lines=tuple(shown),
    )


def _change(logs: pd.Series) -> str:
    """Return the mean change of tables in per cent, and on how many of them it is lower."""
    logs = logs.dropna()
    if not len(logs):
        return ""
    return f"{signed(100 * np.expm1(logs.mean()), 1)} % ({(logs < 0).sum()} of {len(logs)})"


def _loss_and_trials(of: Frame, *, bold: bool = False) -> str:
    loss = f"{of['test']:.3f}" if of["test"] >= 1 else f"{of['test']:.4f}"
    return f"**{loss}** ({of['trials']})" if bold else f"{loss} ({of['trials']})"


def _eight_beside_five(chosen: str = "rows == 1000") -> Frame:
    """Return the ends of runs with five and with eight folds, a row per table, the best for eight folds first."""
    runs = kept("defaults").query(f"{chosen} and share == 1")
    runs = runs.assign(folds=runs["variant"].str.extract(r"/(\d)fold", expand=False))
    both = runs.set_index(["table", "folds"])[["test", "trials"]].unstack()
    both = both[both["test"].notna().all(axis=1)]
    both[("change", "")] = both["test"]["8"] / both["test"]["5"] - 1
    return both.sort_values(("change", ""))


def _eight_folds() -> Body:
    lines = []
    for table, of in _eight_beside_five().iterrows():
        cells = [f"{of['test'][folds]:.4f} ({of['trials'][folds]:.0f})" for folds in ("5", "8")]
        lines.append(row(str(table), *cells, f"{signed(100 * of['change', ''], 1)} %"))
    return Body(header="| | five folds | eight folds | |", lines=tuple(lines))


def _means_of_eight_folds() -> Iterator[Statement]:
    change = _eight_beside_five()["change", ""]
    yield Statement(
        text="they are better on {better:word} tables and worse on {worse:word} (ratio {ratio:.3f}, without vowel "
        "{without:.3f})",
        values={
            "better": int((change < 0).sum()),
            "worse": int((change > 0).sum()),
            "ratio": _mean_ratio(change),
            "without": _mean_ratio(change.drop("vowel")),
        },
    )
    change = _eight_beside_five("rows == 2000 and budget == 60")["change", ""]
    yield Statement(
        text="With 60 CPU seconds and up to 2,000 rows, eight folds are better on {better:word} of {n:word} tables "
        "(ratio {ratio:.3f})",
        values={"better": int((change < 0).sum()), "n": len(change), "ratio": _mean_ratio(change)},
    )


def _mean_ratio(change: pd.Series) -> float:
    return float(np.exp(np.log1p(change).mean()))
