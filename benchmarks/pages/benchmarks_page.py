"""The numbers of docs/benchmarks.md that come from kept rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from benchmarks.experiments.dacopt.results import HYPEROPT
from benchmarks.experiments.dacopt.tables import contest_pairs
from benchmarks.experiments.latent.left_out import AFTER, summarise
from benchmarks.pages import (
    ablation,
    coverage,
    defaults_of_fit,
    ensemble_contest,
    first_configurations,
    free_candidates,
    large_tables,
    larger_recordings,
    match,
    newest_fold,
    real_runs,
    refining,
    surrogates,
    trials,
)
from benchmarks.pages.how_good import NINE, dacopt_scores, divbo_losses, p_without_one, replayed
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row, signed
from benchmarks.statistics import comparison
from benchmarks.statistics.ranks_and_tests import count_verdicts, friedman_test, signed_rank_test, wilcoxon_holm

PAGE = "docs/benchmarks.md"
PARTS: tuple[comparison.Part, comparison.Part] = ("validation", "test")


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page that hold results of kept rows."""
    yield _lightgbm()
    yield from match.parts()
    yield from large_tables.parts()
    yield from first_configurations.parts()
    yield from trials.parts()
    yield from surrogates.parts()
    yield from _replays_by_log_loss()
    yield from _replays_by_error()
    yield _replays_of_models()
    yield from ensemble_contest.parts()
    yield from larger_recordings.parts()
    yield from free_candidates.parts()
    yield from _divbo()
    yield from _dacopt()
    yield from _latent()
    yield from _overlap()
    yield _left_out()
    yield _latent_live()
    yield _curve()
    yield from _loss_tau()
    yield from defaults_of_fit.parts()
    yield from real_runs.parts()
    yield _last_step()
    yield _spare_time()
    yield _spare_time_of_longer_tables()
    yield from refining.parts()
    yield from ablation.parts()
    yield from coverage.parts()
    yield from newest_fold.parts()
    yield _deadline()
    yield _positions()
    yield _quantisation()
    yield _emulator()


def bold_lowest(values: Iterable[float], form: str) -> list[str]:
    """Return numbers, the lowest of them bold."""
    shown = [format(value, form) for value in values]
    lowest = min(map(float, shown))
    return [f"**{text}**" if float(text) == lowest else text for text in shown]


def _lightgbm() -> Body:
    lines = []
    for each in kept("first_light").itertuples():
        errors = ["-", "-"]
        if each.task != "regression":
            errors = [f"{100 * error:.1f} %" for error in (each.ensemble_error, each.lightgbm_error)]
        lines.append(
            row(
                each.table, f"{each.rows} x {each.columns}", each.task, each.budget, each.metric,
                f"{each.ensemble_loss:.4f}", f"{each.lightgbm_loss:.4f}", *errors,
                f"{each.trials} ({each.failures})", f"{each.seconds:.0f}",
            )
        )  # fmt: skip
    return Body(
        header="| table | rows x columns | task | budget | metric | ensemble | LightGBM | error of ensemble | "
        "error of LightGBM | trials (failed) | seconds |",
        lines=tuple(lines),
    )


def _ranks(runs: Frame, columns: Sequence[tuple[comparison.Part, int]]) -> dict[str, list[str]]:
    """Return average ranks by strategy, the lowest of each column bold."""
    ranks = [comparison.average_ranks(runs, n, part) for part, n in columns]
    cells = [bold_lowest(series, ".2f") for series in ranks]
    return {str(name): [column[i] for column in cells] for i, name in enumerate(ranks[0].index)}


def _against(runs: Frame, part: comparison.Part, reference: str) -> dict[str, tuple[str, Frame]]:
    """Return verdicts over seeds, and the difference with its interval, by strategy."""
    counts = count_verdicts(comparison.wilcoxon_by_recording(runs, 250, part, reference))
    differences = comparison.relative_differences(runs, 250, part, reference)
    return {str(name): ("/".join(map(str, counts.loc[name])), differences.loc[(name, "")]) for name in counts.index}


def _replays_by_log_loss() -> Iterator[Body | Statement]:
    runs = kept("replay")
    columns = [(part, n) for part in PARTS for n in (50, 100, 250)]
    yield Body(
        header="| strategy | validation 50 | 100 | 250 trials | test 50 | 100 | 250 trials |",
        lines=tuple(row(f"`{name}`", *cells) for name, cells in _ranks(runs, columns).items()),
    )
    found = [_against(runs, part, "bo") for part in PARTS]
    yield Body(
        header="| strategy | validation | difference | test | difference |",
        lines=tuple(
            row(f"`{name}`", *(cell for of in found for cell in (of[name][0], _interval(of[name][1], 2))))
            for name in found[0]
        ),
    )
    early, late = (comparison.mean_losses(runs, n, "validation") for n in (100, 250))
    yield Statement(
        text="with 100 trials it has the validation loss of `bo` after 250 on {n} of {all} recordings",
        values={"n": int((early["optdivbo"] <= late["bo"]).sum()), "all": len(early)},
    )
    losses = {part: comparison.mean_losses(runs, 250, part) for part in PARTS}
    yield Statement(
        text="Friedman's p is {validation:.2f} on validation rows and {test:.2f} on test rows",
        values={part: friedman_test(table.to_numpy()).p_value for part, table in losses.items()},
    )


def _interval(of: Frame, digits: int) -> str:
    low, high = (f"{of[name]:+.{digits}f}" for name in ("low", "high"))
    return f"{of['difference']:+.{digits}f} % [{low}, {high}]"


def _replays_by_error() -> Iterator[Body | Statement]:
    runs = replayed()
    columns: list[tuple[comparison.Part, int]] = [*(("validation", n) for n in (50, 100, 250)), ("test", 250)]
    found = [_against(runs, part, "bo") for part in PARTS]
    seconds = runs[runs["trials"] == 250].groupby("strategy")["suggest_seconds"].mean()
    lines = []
    for name, cells in _ranks(runs, columns).items():
        pairs = [(of[name][0], _interval(of[name][1], 1)) if name in of else ("", "") for of in found]
        lines.append(row(f"`{name}`", *cells, *(cell for pair in pairs for cell in pair), f"{seconds[name]:.3f}"))
    yield Body(
        header="| strategy | validation 50 | 100 | 250 | test 250 | validation +/=/- | difference | test +/=/- | "
        "difference | s per decision |",
        lines=tuple(lines),
    )
    losses = {part: comparison.mean_losses(runs, 250, part) for part in PARTS}
    tests = {part: friedman_test(table.to_numpy()) for part, table in losses.items()}
    without = p_without_one(losses["validation"])
    pair: Frame = wilcoxon_holm(losses["validation"], "bo").loc["optdivbo"]
    yield Statement(
        text="(Friedman's p {p:.3f}; Iman and Davenport's {f:.3f}), and `optdivbo` is first at all three checkpoints, "
        "as by log loss [above](#results). It is fragile: without one of the recordings p is {low:.3f} to {high:.3f}. "
        "Against `bo` alone it is not significant ({wins} recordings won, {ties} tied, {losses} lost; p {own:.2f}, "
        "after Holm's rule {holm:.1f}).",
        values={
            "p": tests["validation"].p_value,
            "f": tests["validation"].f_p_value,
            "low": min(without),
            "high": max(without),
            "wins": int(pair["wins"]),
            "ties": int(pair["ties"]),
            "losses": int(pair["losses"]),
            "own": pair["wilcoxon_p"],
            "holm": pair["holm_p"],
        },
    )
    yield Statement(text="**On test rows they do not** (p {p:.2f}).", values={"p": tests["test"].p_value})
    both = kept("replay_accuracy")
    both = both[both["strategy"].isin(["divbo", "divbo_fixed"])]
    fixed: dict[str, Frame] = {
        part: comparison.relative_differences(both, 250, part, "divbo").loc[("divbo_fixed", "")] for part in PARTS
    }
    values = {f"{part}_{name}": float(fixed[part][name]) for part in PARTS for name in ("difference", "low", "high")}
    yield Statement(
        text="better on none; {validation_difference:+.1f} % [{validation_low:+.1f}, {validation_high:+.1f}] and "
        "{test_difference:+.1f} % [{test_low:+.1f}, {test_high:+.1f}].",
        values=values,
    )


def _divbo() -> Iterator[Body]:
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


def _dacopt() -> Iterator[Statement | Body]:
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


LATENT = {
    "latent": "`latent` (ranked networks)",
    "latent_random": "random networks (`embedding=random`)",
    "latent_scratch": "without pre-training (`embedding=scratch`)",
    "bandit_bo": "`bandit_bo`",
    "random": "`random`",
}


def _latent() -> Iterator[Statement | Body]:
    rows = kept("latent")
    eight = ["latent", "bandit_bo", "smac", "pretrain_bo", "as_ml", "ahs_ml", "rb_smac", "random"]
    cells: dict[str, list[str]] = {name: [] for name in eight}
    for n in (10, 20, 30, 60):
        losses = rows[rows["strategy"].isin(eight)].pivot(
            index=["table", "seed"], columns="strategy", values=f"loss_{n}"
        )
        of_means = losses.groupby(level="table").mean().round(9).rank(axis=1).mean()[eight]
        within = losses.round(9).rank(axis=1).groupby(level="table").mean().mean()[eight]
        shown = zip(eight, bold_lowest(of_means, ".2f"), bold_lowest(within, ".2f"), strict=True)
        for name, mean, single in shown:
            cells[name].append(f"{mean} ({single})")
    printed = {"latent": "**2.25**", "bandit_bo": "4.50", "smac": "4.78", "pretrain_bo": "5.56", "as_ml": "4.34",
               "ahs_ml": "4.95", "rb_smac": "3.30", "random": "6.33"}  # fmt: skip
    names = {"latent": "`latent` (ranked networks)"}
    yield Body(
        header="| strategy | 10 decisions | 20 | 30 | 60 | the paper's, at the end |",
        lines=tuple(row(names.get(name, f"`{name}`"), *cells[name], printed[name]) for name in eight),
    )
    yield from _latent_differences(rows)
    means = rows.groupby("strategy")[[f"loss_{n}" for n in (0, 10, 20, 30, 60)]].mean().loc[list(LATENT)]
    columns = [
        [f"{value:.4f}" for value in means[name]] if name == "loss_0" else bold_lowest(means[name], ".4f")
        for name in means
    ]
    yield Body(
        header="| mean loss after | 0 decisions | 10 | 20 | 30 | 60 |",
        lines=tuple(row(text, *(column[i] for column in columns)) for i, text in enumerate(LATENT.values())),
    )


def _latent_differences(rows: Frame) -> Iterator[Statement]:
    """Yield what `latent` gains over two ablations, by the means over seeds of every table."""
    means = rows.groupby(["table", "strategy"])[[f"loss_{n}" for n in (10, 30, 60)]].mean()
    values: dict[str, float] = {}
    for other in ("scratch", "random"):
        for n in (10, 30, 60):
            of = means[f"loss_{n}"].unstack()
            differences = (of["latent"] - of[f"latent_{other}"]).round(12)
            values |= {
                f"{other}_less_{n}": -100 * (of["latent"] / of[f"latent_{other}"] - 1).mean(),
                f"{other}_lower_{n}": int((differences < 0).sum()),
                f"{other}_higher_{n}": int((differences > 0).sum()),
                f"{other}_p_{n}": signed_rank_test(differences.to_numpy())[0],
            }
    for other, begin in (
        ("scratch", "after 10 decisions the loss is on average {less_10:.1f} % lower than without it"),
        ("random", "After 10 decisions their loss is on average {less_10:.1f} % lower"),
    ):
        text = begin + (
            " (lower on {lower_10} tables, higher on {higher_10}; p {p_10:.2f}), after 30 it is {less_30:.1f} % lower "
            "({lower_30}, {higher_30}; p {p_30:.2f}), after 60 no longer ({lower_60}, {higher_60}; p {p_60:.2f})"
        )
        mine = {name.removeprefix(f"{other}_"): value for name, value in values.items() if name.startswith(other)}
        yield Statement(text=text, values=mine)


def _overlap() -> Iterator[Statement | Body]:
    """Yield how pre-trained networks rank configurations, and how far they hide algorithms."""
    medians = kept("latent_overlap").groupby(["capped", "table", "lambda_adv"]).median(numeric_only=True)
    medians = medians.groupby(["capped", "lambda_adv"]).median()
    lines = []
    for measure, reference, text, other in (
        ("rank_correlation", "rank_correlation_of_means", "rank correlation", "each algorithm's mean loss"),
        ("accuracy", "accuracy_by_loss", "accuracy", "from the true losses alone"),
    ):
        for capped, word in ((False, "losses as they are"), (True, "capped")):
            of = medians.loc[capped]
            cells = [f"{value:.2f}" for value in of[measure]]
            lines.append(row(f"{text}, {word}", *cells, f"{of[reference].iloc[0]:.2f}: {other}"))
    yield Body(header="| | λ = 0 | 0.1 | 1 | 10 | for comparison |", lines=tuple(lines))
    accuracy = medians.loc[False, "accuracy"]
    yield Statement(
        text="{on:.3f} of the pairs of algorithms are told apart, {off:.3f} without it",
        values={"on": accuracy[0.1], "off": accuracy[0.0]},
    )
    amazon = kept("latent_overlap").query("table == 'amazon_employee'")
    amazon = amazon.groupby(["capped", "lambda_adv"])["rank_correlation"].median()
    for capped, text in (
        (False, "amazon_employee: {0:.2f}, {1:.2f}, {2:.2f}, {3:.2f}"),
        (True, "capped, they are {0:.2f}, {1:.2f}, {2:.2f} and {3:.2f} there"),
    ):
        yield Statement(text=text, values={str(i): value for i, value in enumerate(amazon[capped])})


def _latent_live() -> Body:
    rows = kept("latent_live").set_index(["table", "strategy"])
    lines = []
    for table in dict.fromkeys(rows.index.get_level_values("table")):
        of = rows.loc[table]
        cells = [
            f"{of.loc[name, 'validation']:.3f} ({of.loc[name, 'deciding'] / of.loc[name, 'trials']:.2f})"
            for name in ("latent", "bandit_bo", "random")
        ]
        lines.append(row(str(table), *cells))
    return Body(header="| table | `latent` | `bandit_bo` | `random` |", lines=tuple(lines))


def _curve() -> Body:
    means = kept("surrogate_curve").pivot_table(index="observations", columns="surrogate", values="tau")
    order = ("boosters on pairs", "XGBoost on pairs", "forest on pairs", "forest of predictions", "forest of losses")
    return Body(
        header="| observations | boosters on pairs | XGBoost on pairs | forest on pairs | forest of predictions (ours) "
        "| forest of losses |",
        lines=tuple(row(str(n), *(f"{of[name]:.2f}" for name in order)) for n, of in means.iterrows()),
    )


def _replays_of_models() -> Body:
    runs = kept("replay_models")
    ranks = [comparison.average_ranks(runs, n, part) for part in PARTS for n in (60, 150)]
    tables = {part: comparison.relative_differences(runs, 150, part, "bo") for part in PARTS}
    tests = {part: comparison.across_recordings(runs, 150, part, "bo") for part in PARTS}
    lines = []
    for name in dict.fromkeys(runs["strategy"]):
        cells = ["", ""]
        if name != "bo":
            found = [(tables[part].loc[(name, "")], tests[part].loc[name, "wilcoxon_p"]) for part in PARTS]
            cells = [f"{d['difference']:+.1f} % [{d['low']:+.1f}, {d['high']:+.1f}], {p:.3f}" for d, p in found]
        lines.append(row(f"`{name}`", *(f"{of[name]:.2f}" for of in ranks), *cells))
    return Body(
        header="| strategy | validation 60 | 150 | test 60 | 150 trials | validation, difference and p | test |",
        lines=tuple(lines),
    )


def _left_out() -> Body:
    found = summarise(kept("left_out"), "bandit_bo")
    lines = []
    for name, of in found.iterrows():
        p = [f"{of[f'p {n}']:.2f}" for n in AFTER]
        lines.append(
            row(f"`{name}`", *(f"{of[f'after {n}']:.3f}" for n in AFTER), *(["", "", ""] if name == "bandit_bo" else p))
        )
    return Body(header="| strategy | 10 decisions | 20 | 30 | p 10 | 20 | 30 |", lines=tuple(lines))


def _loss_tau() -> Iterator[Statement | Body]:
    rows = kept("loss_tau")
    means = rows.groupby(["observations", "model"], sort=False)[["tau", "within", "success_auc"]].mean()
    yield Body(
        header="| observations | learned from | tau | within one deviation | AUC of success |",
        lines=tuple(
            row(str(n), name, f"{of['tau']:.3f}", f"{of['within']:.2f}", f"{of['success_auc']:.2f}".replace("nan", "-"))
            for (n, name), of in means.iterrows()
        ),
    )
    values: dict[str, float] = {"all": rows["recording"].nunique()}
    for n in (60, 200):
        tables = rows[rows["observations"] == n].pivot_table(index="recording", columns="model", values="tau")
        gain = tables["predictions"] - tables["losses"]
        values |= {f"better{n}": (gain > 0).sum(), f"p{n}": signed_rank_test(gain.to_numpy())[0]}
    yield Statement(
        text="The forest grown on predictions orders unseen configurations better on {better60:word} of {all:word} "
        "recordings after 60 observations (p {p60:.3f}, Wilcoxon's test over recordings) and on {better200:word} after "
        "200 (p {p200:.3f})",
        values=values,
    )


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


def _deadline() -> Body:
    runs = kept("deadline")
    lines = []
    for case, found in runs.groupby("case", sort=False):
        over = found["seconds"] - found["budget"]
        lines.append(row(f"`{case}`", f"{len(found)}", f"{over.min():+.1f} s", f"{over.max():+.1f} s"))
    return Body(header="| case | runs | earliest end | latest end |", lines=tuple(lines))


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


WAYS = ("search", "second layer", "repeats, same weights", "repeats, chosen again", "repeats, only these")


LONGER = 9000
"""Rows drawn from each of the longer tables, to learn from and to judge on."""


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


POSITIONS = {
    "rounds two earlier": "rounds: two before the best",
    "rounds one later": "rounds: one after the best",
    "rounds best and one later": "rounds: the best and one after",
    "trees best and four earlier": "trees: the best and four before",
    "epochs best and one later": "epochs: the best and one after",
    "two neighbours": "neighbours: two instead of the best",
    "rounds one later, two neighbours": "rounds one after, two neighbours",
}


def _positions() -> Body:
    means = kept("positions").pivot_table(index="rule", columns="table", values="loss")
    change = 100 * means.div(means.loc["best"], axis=1) - 100
    return Body(
        header="| positions in the pool | abalone | churn | cpu_act | credit-g | phoneme | satimage | mean |",
        lines=tuple(
            row(text, *(signed(value, 2) for value in [*change.loc[rule], change.loc[rule].mean()]))
            for rule, text in POSITIONS.items()
        ),
    )


def _quantisation() -> Body:
    rows = kept("quantisation")
    lines = []
    for metric, of in rows.groupby("metric", sort=False):
        cells = []
        for part in PARTS:
            change = 100 * (of[f"{part}_in_steps"] / of[part] - 1)
            cells += [f"{signed(change.mean(), 3)} %", f"{change.abs().max():.2f} %"]
        lines.append(row(str(metric), str(len(of)), *cells))
    return Body(
        header="| metric | ensembles | change of the validation loss, mean | largest | change of the test loss, mean | "
        "largest |",
        lines=tuple(lines),
    )


def _emulator() -> Body:
    rows = kept("emulator")
    columns = ("tau", "factor", "best_factor", "distance", "of_algorithm", "failures_found", "failures_false")
    return Body(
        header="| recording | answered | tau | ratio | of the best tenth | distance | same algorithm | "
        "failures found | false |",
        lines=tuple(
            row(of["recording"], str(of["answered"]), *(f"{of[name]:.2f}".replace("nan", "-") for name in columns))
            for _, of in rows[rows["power"] == 2].sort_values("recording").iterrows()
        ),
    )
