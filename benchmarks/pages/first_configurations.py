"""The numbers of what searches of the space ``default`` begin with: added columns, categories, RealMLP, the opening."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.experiments.learners import best_without, by_origin, held_out, log_ratios
from benchmarks.experiments.networks import chosen_by_others
from benchmarks.experiments.opening.study import compared
from benchmarks.experiments.swaps import CHANGES
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row, signed

LEARNERS = ("lightgbm", "xgboost", "catboost")

ALGORITHMS = {
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "hist_gradient_boosting": "histogram boosting",
    "random_forest": "random forest",
    "extra_trees": "extra trees",
    "linear": "logistic regression, ridge",
    "mlp": "MLP",
    "svm": "support vectors",
}

CHOSEN = {
    "extra trees": "extremely randomised splits",
    "single rows": "leaves of single rows",
    "more columns": "more columns per split",
    "quantiles": "scaling by quantiles",
    "slow": "learning rate 0.04",
    "hard": "harder",
}
"""Names of candidates on the page."""

LINEAR = ("logistic_regression", "ridge")

CLIPPING = {
    "extra_trees": "extra trees",
    "linear": "linear model",
    "mlp": "MLP",
    "knn": "neighbours",
    "svm": "support vectors",
    "ensemble": "ensemble",
}
"""Learners that clip outliers, and the ensemble, on the page."""

CONTRIBUTING = {
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "hist_gradient_boosting": "histograms",
    "random_forest": "forest",
    "extra_trees": "extra trees",
    "linear": "linear",
    "mlp": "MLP",
    "knn": "neighbours",
    "svm": "support vectors",
}
"""Algorithms in the table of contributions."""

ORDERS = {
    "opening": "the opening (defaults, then learnt), then draws",
    "defaults, then any": "defaults, then any candidate in random order",
    "without defaults": "an opening that need not begin with the defaults, then draws",
    "random": "draws in random order",
}


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    yield _defaults()
    yield _categories()
    yield from _outliers()
    yield from _contributions()
    yield from _swaps()
    yield from _opening()
    yield from _networks()
    yield from _features()


def _change(ratios: Frame) -> Frame:
    return 100 * (ratios - 1)


def _defaults() -> Body:
    rows = kept("learners")
    chosen = [best_without(log_ratios(rows, "instead"), tables) for tables in by_origin(rows).values() for _ in tables]
    alone, instead = held_out(rows, "loss"), held_out(rows, "instead")
    lines = []
    for name, text in ALGORITHMS.items():
        counts = Counter(each[name] for each in chosen)
        cells = [
            signed(float(100 * np.expm1(mean)), 2)
            for part in (alone, instead)
            for mean in (part.loc[name].mean(), part.loc[name].median())
        ]
        names = ", ".join(f"{CHOSEN.get(candidate, candidate)} ({n})" for candidate, n in counts.most_common())
        lines.append(row(text, names, *cells))
    return Body(
        header="| algorithm | chosen by the others (tables) | alone | median | ensemble, instead | median |",
        lines=tuple(lines),
    )


def _features() -> Iterator[Statement | Body]:
    means = kept("features").groupby(["learner", "features", "table"])["test_loss"].mean()
    columns = [means[name, "arithmetic"] / means[name, "none"] for name in LEARNERS]
    columns += [means["ensemble", kind] / means["ensemble", "none"] for kind in ("again", "arithmetic")]
    changes = [_change(ratios) for ratios in columns]
    tables = sorted(changes[0].index)
    lines = [row(table, *(signed(change[table], 1) for change in changes)) for table in tables]
    lines.append(row("mean", *(signed(change.mean(), 1) for change in changes)))
    yield Body(
        header="| table | LightGBM | XGBoost | CatBoost | ensemble, other seeds added | ensemble, features added |",
        lines=tuple(lines),
    )
    again = [_change(means[name, "again"] / means[name, "none"]) for name in LEARNERS]
    yield Statement(
        text="another seed alone changes the loss of a booster by {least:.1f} to {most:+.1f} %",
        values={"least": min(of.min() for of in again), "most": max(of.max() for of in again)},
    )


def _categories() -> Body:
    rows = kept("categories").set_index("table").sort_index()
    ratios = [
        rows["own_loss"] / rows["levels_loss"],
        rows["own_pool"] / rows["levels_pool"],
        rows["both_pool"] / rows["levels_pool"],
    ]
    seconds = rows["own_seconds"] / rows["levels_seconds"]
    lines = [
        row(table, *(signed(_change(ratio[table]), 1) for ratio in ratios), f"x {seconds[table]:.1f}")
        for table in rows.index
    ]
    means = [float(np.exp(np.log(of).mean())) for of in (*ratios, seconds)]
    lines.append(row("mean", *(signed(_change(mean), 1) for mean in means[:-1]), f"x {means[-1]:.1f}"))
    return Body(header="| table | alone | ensemble, instead | ensemble, both | CPU seconds |", lines=tuple(lines))


def _outliers() -> Iterator[Statement | Body]:
    rows = kept("outliers")
    rows = rows.assign(
        change=np.log(rows["clipped"] / rows["kept"]), learner=rows["algorithm"].replace(LINEAR, "linear")
    )
    changes = rows.pivot_table(index="table", columns="learner", values="change")[list(CLIPPING)]
    means = pd.DataFrame({"mean": changes.mean(), "median": changes.median()}).T
    yield Body(
        header="| table | " + " | ".join(CLIPPING.values()) + " |",
        lines=tuple(
            row(str(name), *("" if np.isnan(change) else signed(100 * np.expm1(change), 1) for change in of_row))
            for name, of_row in pd.concat([changes, means]).iterrows()
        ),
    )
    others, seconds = changes.drop("eeg"), rows[rows["algorithm"] == "ensemble"]
    yield Statement(
        text="Without eeg, the mean for extra trees is {trees:.1f} %, for neighbours {neighbours:.1f} %, and for the "
        "ensemble {ensemble:.2f} %, which is lower on {better} of {tables} tables. Clipping and its effects "
        "change the CPU seconds of these learners by {seconds:+.0f} %",
        values={
            "trees": 100 * np.expm1(others["extra_trees"].mean()),
            "neighbours": 100 * np.expm1(others["knn"].mean()),
            "ensemble": 100 * np.expm1(others["ensemble"].mean()),
            "better": int((others["ensemble"] < 0).sum()),
            "tables": len(others),
            "seconds": 100 * (seconds["clipped_seconds"].sum() / seconds["kept_seconds"].sum() - 1),
        },
    )


def _contributions() -> Iterator[Statement | Body]:
    rows = kept("contributions")
    rows = rows.assign(
        learner=rows["algorithm"].replace(LINEAR, "linear"),
        change=np.log(rows["everyone"] / rows["without"]),
        share=100 * rows["seconds"] / (rows["seconds"] + rows["others_seconds"]),
    )
    by_table = rows.pivot_table(index="table", columns="learner", values=["change", "share"], sort=False)
    means = pd.DataFrame({"mean": by_table.mean(), "median": by_table.median()}).T
    lines = []
    for name, of_row in pd.concat([by_table, means]).iterrows():
        cells = [
            f"{signed(100 * np.expm1(of_row['change', learner]), 1)} ({of_row['share', learner]:.0f})"
            for learner in CONTRIBUTING
        ]
        lines.append(row(str(name), *cells))
    yield Body(header="| table | " + " | ".join(CONTRIBUTING.values()) + " |", lines=tuple(lines))


def _swaps() -> Iterator[Statement | Body]:
    rows = kept("swaps")
    changes = pd.DataFrame(
        {
            (change, kind): of_change.set_index("table")[kind] / of_change.set_index("table")["ensemble"]
            for change, of_change in rows.groupby("change", sort=False)
            for kind in ("instead", "beside")
        }
    )
    leaves, sums = CHANGES
    shown = 100 * (changes[[(leaves, "instead"), (sums, "instead"), (sums, "beside")]] - 1)
    logs: Frame = np.log1p(shown / 100)
    means = pd.DataFrame({"mean": 100 * np.expm1(logs.mean()), "median": 100 * np.expm1(logs.median())}).T
    yield Body(
        header="| table | extra trees, leaves of two rows instead | neighbours, sums instead | and beside |",
        lines=tuple(
            row(str(name), *(signed(change, 1) for change in of_row))
            for name, of_row in pd.concat([shown, means]).iterrows()
        ),
    )


def _networks() -> Iterator[Statement | Body]:
    rows = kept("networks")
    narrow = rows[rows["variant"] == "narrow"].set_index("table")
    lines = []
    for each in rows[rows["variant"] == "default"].itertuples():
        other = narrow.loc[each.table]
        lines.append(
            row(
                each.table, str(each.n_rows), signed(_change(each.loss / each.mlp), 1),
                signed(_change(each.loss / each.lightgbm), 1), signed(_change(each.beside / each.without), 2),
                signed(_change(other["beside"] / other["without"]), 2), f"{each.cpu_seconds:.1f}",
                f"{other['cpu_seconds']:.1f}", f"{each.pool_seconds:.1f}",
            )
        )  # fmt: skip
    yield Body(
        header="| table | rows | to MLP | to LightGBM | ensemble | ensemble, narrow | seconds | narrow | the others |",
        lines=tuple(lines),
    )
    wide = rows[rows["variant"] == "default"]
    yield Statement(
        text="Alone it beats our MLP on {mlp:word} of {n:word} tables and LightGBM on {lightgbm:word}.",
        values={
            "mlp": int((wide["loss"] < wide["mlp"]).sum()),
            "n": len(wide),
            "lightgbm": int((wide["loss"] < wide["lightgbm"]).sum()),
        },
    )
    logs = np.log(rows["beside"] / rows["without"]).set_axis(pd.MultiIndex.from_frame(rows[["table", "variant"]]))
    own = logs.xs("default", level="variant")
    chosen = [logs[table, variant] for table, variant in chosen_by_others(rows).items()]
    yield Statement(
        text="{mean:+.2f} % in the mean, {median:+.2f} % in the median; if tables of other origins choose between the "
        "two widths, {chosen:+.2f} %. It takes {own:.0f} CPU seconds in all, the thirteen others together "
        "{others:.0f}.",
        values={
            "mean": 100 * np.expm1(own.mean()),
            "median": 100 * np.expm1(own.median()),
            "chosen": 100 * np.expm1(np.mean(chosen)),
            "own": wide["cpu_seconds"].sum(),
            "others": wide["pool_seconds"].sum(),
        },
    )


def _opening() -> Iterator[Statement | Body]:
    found = compared(kept("opening")).set_index(["order", "seconds"])
    seconds = sorted(found.index.get_level_values("seconds").unique())
    lines = []
    for order, text in ORDERS.items():
        of = [found.loc[(order, second)] for second in seconds]
        lines.append(row(text, *(f"{each['ratio']:.3f} ({each['low']:.3f} to {each['high']:.3f})" for each in of)))
    yield Body(header=row("begins with", *(f"{second:g} s" for second in seconds)), lines=tuple(lines))
    learnt = [found.loc[("opening", second)] for second in seconds]
    yield Statement(
        text="It is better than the reference on {b0}, {b1}, {b2} and {b3} tables and worse on {w0}, {w1}, {w2} "
        "and {w3}",
        values={f"b{i}": int(of["better"]) for i, of in enumerate(learnt)}
        | {f"w{i}": int(of["worse"]) for i, of in enumerate(learnt)},
    )
