"""The numbers of docs/benchmarks.md that come from kept rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.pages import (
    ablation,
    absolute_errors,
    all_rows,
    coverage,
    dacopt,
    defaults_of_fit,
    deviances,
    divbo_tables,
    ensemble_contest,
    first_configurations,
    free_candidates,
    label_metrics,
    large_tables,
    larger_recordings,
    last_steps,
    latent_space,
    logarithms,
    many_levels,
    match,
    newest_fold,
    rare_classes,
    real_runs,
    refining,
    surrogates,
    temperatures,
    texts,
    three_folds,
    timings,
    trials,
)
from benchmarks.pages.formats import bold_lowest
from benchmarks.pages.how_good import gain_over_single, p_of_ten, p_without_one, replayed
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row, signed
from benchmarks.statistics import comparison
from benchmarks.statistics.ranks_and_tests import count_verdicts, friedman_test, signed_rank_test, wilcoxon_holm

PAGE = "docs/benchmarks.md"
EXPLANATIONS = (
    "| peer | what runs |",
    "| question | function |",
    "| rule | meaning |",
    "| column | meaning |",
)
"""Tables of the page without results."""

PARTS: tuple[comparison.Part, comparison.Part] = ("validation", "test")


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page that hold results of kept rows."""
    yield _lightgbm()
    yield from match.parts()
    yield from large_tables.parts()
    yield from first_configurations.parts()
    yield from trials.parts()
    yield from timings.parts()
    yield from surrogates.parts()
    yield from _replays_by_log_loss()
    yield from _replays_by_error()
    yield from _replays_of_models()
    yield from ensemble_contest.parts()
    yield from larger_recordings.parts()
    yield from free_candidates.parts()
    yield from divbo_tables.parts()
    yield from dacopt.parts()
    yield from latent_space.parts()
    yield _curve()
    yield from _loss_tau()
    yield from defaults_of_fit.parts()
    yield from real_runs.parts()
    yield from last_steps.parts()
    yield from all_rows.parts()
    yield from three_folds.parts()
    yield from refining.parts()
    yield from ablation.parts()
    yield from absolute_errors.parts()
    yield from deviances.parts()
    yield from logarithms.parts()
    yield from many_levels.parts()
    yield from texts.parts()
    yield from temperatures.parts()
    yield from rare_classes.parts()
    yield from label_metrics.parts()
    yield from coverage.parts()
    yield from newest_fold.parts()
    yield _deadline()
    yield _positions()
    yield _quantisation()
    yield _emulator()


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
    losses: dict[str, Frame] = {part: comparison.mean_losses(runs, 250, part) for part in PARTS}
    on_satimage = {part: 100 * (of["ensemble_gain"] / of["bo"] - 1)["satimage-volcano"] for part, of in losses.items()}
    yield Statement(
        text="on satimage it has the lowest validation loss ({validation:.1f} %) and the highest test loss "
        "({test:+.1f} %)",
        values=on_satimage,
    )
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
        "as by log loss [above](#results). It is fragile: without one of the recordings p is {low:.3f} to {high:.3f}, "
        "and with `divbo_fixed` as a tenth {ten:.3f}. Against `bo` alone it is not significant ({wins} recordings won, "
        "{ties} tied, {losses} lost; p {own:.2f}, after Holm's rule {holm:.1f}).",
        values={
            "p": tests["validation"].p_value,
            "f": tests["validation"].f_p_value,
            "low": min(without),
            "high": max(without),
            "ten": p_of_ten(),
            "wins": int(pair["wins"]),
            "ties": int(pair["ties"]),
            "losses": int(pair["losses"]),
            "own": pair["wilcoxon_p"],
            "holm": pair["holm_p"],
        },
    )
    yield Statement(text="**On test rows they do not** (p {p:.2f}).", values={"p": tests["test"].p_value})
    gain = gain_over_single(runs)
    better = (gain > 0).sum()
    yield Statement(
        text="on {random} (`random`) to {divbo} (`divbo`) of the {n:word} recordings, by {least:.0f} to "
        "{most:.0f} % on average",
        values={
            "random": better.min(),
            "divbo": better.max(),
            "n": len(gain),
            "least": 100 * gain.mean().min(),
            "most": 100 * gain.mean().max(),
        },
    )
    both = kept("replay_accuracy")
    both = both[both["strategy"].isin(["divbo", "divbo_fixed"])]
    fixed: dict[str, Frame] = {
        part: comparison.relative_differences(both, 250, part, "divbo").loc[("divbo_fixed", "")] for part in PARTS
    }
    values = {f"{part}_{name}": float(fixed[part][name]) for part in PARTS for name in ("difference", "low", "high")}
    verdicts = {
        part: count_verdicts(comparison.wilcoxon_by_recording(both, 250, part, "divbo")).loc["divbo_fixed"]
        for part in PARTS
    }
    assert [list(of) for of in verdicts.values()] == [[0, 8, 1], [0, 9, 0]], "the page says so in words"
    yield Statement(
        text="better on none; {validation_difference:+.1f} % [{validation_low:+.1f}, {validation_high:+.1f}] and "
        "{test_difference:+.1f} % [{test_low:+.1f}, {test_high:+.1f}].",
        values=values,
    )


def _curve() -> Body:
    means = kept("surrogate_curve").pivot_table(index="observations", columns="surrogate", values="tau")
    order = ("boosters on pairs", "XGBoost on pairs", "forest on pairs", "forest of predictions", "forest of losses")
    return Body(
        header="| observations | boosters on pairs | XGBoost on pairs | forest on pairs | forest of predictions (ours) "
        "| forest of losses |",
        lines=tuple(row(str(n), *(f"{of[name]:.2f}" for name in order)) for n, of in means.iterrows()),
    )


def _replays_of_models() -> Iterator[Statement | Body]:
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
    yield Body(
        header="| strategy | validation 60 | 150 | test 60 | 150 trials | validation, difference and p | test |",
        lines=tuple(lines),
    )
    losses: Frame = comparison.mean_losses(runs, 150, "validation")
    yield Statement(
        text="its validation loss is lower on {better:word} of {n:word} recordings",
        values={"better": int((losses["bo_predictions"] < losses["bo"]).sum()), "n": len(losses)},
    )


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


def _deadline() -> Body:
    runs = kept("deadline")
    lines = []
    for case, found in runs.groupby("case", sort=False):
        over = found["seconds"] - found["budget"]
        lines.append(row(f"`{case}`", f"{len(found)}", f"{over.min():+.1f} s", f"{over.max():+.1f} s"))
    return Body(header="| case | runs | earliest end | latest end |", lines=tuple(lines))


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
