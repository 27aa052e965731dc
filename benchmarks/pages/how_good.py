"""The numbers of docs/how_good.md."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.ablation import changes
from benchmarks.experiments.dacopt.results import PAPER_NAMES
from benchmarks.pages import all_rows, ensemble_contest, free_candidates, match
from benchmarks.pages.kept_rows import PUBLISHED, Frame, kept
from benchmarks.pages.statement import Statement
from benchmarks.statistics import comparison
from benchmarks.statistics.ranks_and_tests import friedman_test, signed_rank_test, wilcoxon_holm

PAGE = "docs/how_good.md"

GIVEN = (
    r"\d{4}-\d\d-\d\d",  # the date of the measurements
    r"hoped for.*",
    r"DACOpt1?",
    r"250 trials, 20 seeds",
    r"50 trials and 60 s",
    r"\(which ones\)",
    r"with 60 trials and 3 repeats",
    r"with more than 1,000 training rows",
    r"up to 30 trials",
    r"\| 2\.5 times fewer than `bo` \|",
    r"And after 60 trials on tables",
    r"at most 0\.3 s per suggestion",
    r"within 0\.01; yes \|",
    r"bo4ml",
    r"F1",
    r"A search of 20 s was to be as good as one of 60 s",
    r"45 tables are too few to rank networks by meta-features\*\*; the paper has 161",
    r"one seed and 60 s",
    r"from 300 validation rows on",
    r"first everywhere, p below 0\.05",
    r"after (150|250) trials",
    r"with 100 trials",
    r"of at most 1,500 rows",
    r"20 seeds",
    r"of `bo` after 250 on",
    r"at (250|50) observations",
    r"in 1/",
    r"of 250 decisions",
    r"puma32H",
    r"H2O",
    r"in 60 s\?",
    r"on 85 % of twenty tables, average rank at most 1\.4",
    r"at most 45,000 rows",
    r"within 0\.0\d+ ",
)
"""Texts whose numbers are settings, aims, names or facts about other work."""


def statements() -> Iterator[Statement]:
    """Yield the parts of the page that hold results."""
    yield from _lightgbm()
    yield match.summary()
    yield match.seeds_summary()
    yield match.further_summary()
    yield match.five_minutes_summary()
    yield match.others_summary()
    yield from _parts()
    yield from _papers_methods()
    yield from _searches()
    yield ensemble_contest.summary()
    yield free_candidates.summary()
    yield free_candidates.summary_of_known_seconds()
    yield from _last_steps()
    yield from _dacopt()
    yield from _latent()
    yield from _surrogates()
    yield from _faults()
    yield from _stuck()
    yield from _time()


def _lightgbm() -> Iterator[Statement]:
    rows = kept("first_light")
    judged = rows[rows["task"] != "regression"]
    values = {
        "better": int((rows["ensemble_loss"] < rows["lightgbm_loss"]).sum()),
        "runs": len(rows),
        "tables": rows["table"].nunique(),
        "fewer": int((judged["ensemble_error"] < judged["lightgbm_error"]).sum()),
        "judged": len(judged),
    }
    yield Statement(
        text="by the loss it optimises in {better:word} of {runs:word} runs, and by error rate, which it does not "
        "optimise, in {fewer:word} of {judged:word}.",
        values=values,
    )
    yield Statement(
        text="lower log loss or RMSE in {better} of {runs} runs ({tables:word} tables, 50 trials and 60 s), lower "
        "error rate in {fewer} of {judged}",
        values=values,
    )


def divbo_losses(part: str, methods: tuple[str, ...]) -> Frame:
    """Return mean losses after all trials on tables: rows tables, columns methods of the paper."""
    rows = kept("divbo")
    rows = rows[rows["method"].isin(methods) & (rows["trials"] == rows["trials"].max())]
    return rows.groupby(["table", "method"])[part].mean().unstack()[list(methods)]


NINE = ("RS", "BO", "RB", "EO", "NES", "RS-ES", "BO-ES", "RB-ES", "DivBO")


def _papers_methods() -> Iterator[Statement]:
    test = divbo_losses("test", NINE)
    ranks = test.round(9).rank(axis=1).mean()
    assert round(ranks["RS-ES"], 2) == round(ranks["DivBO"], 2), "the page says that they are the same"
    yield Statement(
        text="average rank {divbo:.2f} of {n:word}, the same as RS-ES; NES {nes:.2f}, BO-ES {bo:.2f}; no significant "
        "difference (smallest p {p:.2f})",
        values={
            "divbo": ranks["DivBO"],
            "n": len(NINE),
            "nes": ranks["NES"],
            "bo": ranks["BO-ES"],
            "p": wilcoxon_holm(test, "DivBO")["wilcoxon_p"].min(),
        },
    )
    gains = {
        (part, single): int((of[f"{single}-ES" if single != "DivBO-" else "DivBO"] < of[single]).sum())
        for part in ("validation", "test")
        for of in [divbo_losses(part, (*NINE, "DivBO-"))]
        for single in ("RS", "BO", "RB", "DivBO-")
    }
    n_tables = len(test)
    assert all(gains["validation", single] == n_tables for single in ("RS", "BO", "RB", "DivBO-"))
    assert gains["test", "RS"] == gains["test", "BO"] == gains["test", "RB"]
    yield Statement(
        text="lower validation error everywhere; lower test error on {divbo} of {n} tables for DivBO, on {others} of "
        "{n2} for random search, `bo` and rising bandits",
        values={"divbo": gains["test", "DivBO-"], "n": n_tables, "others": gains["test", "RS"], "n2": n_tables},
    )


def replayed() -> Frame:
    """Return the replays by error rate or squared error, of the nine searches."""
    rows = kept("replay_accuracy")
    return rows[rows["strategy"] != "divbo_fixed"]


def gain_over_single(runs: Frame) -> Frame:
    """Return the share of the best single model's test loss that the ensemble saves after 250 trials.

    Rows are recordings, columns strategies; both losses are means over seeds.
    """
    last = runs[runs["trials"] == 250]
    means = last.groupby(["strategy", "recording"])[["test", "single_test"]].mean()
    return (1 - means["test"] / means["single_test"]).unstack(0)


def p_of_ten() -> float:
    """Return Friedman's p of the losses on validation rows after 250 trials with `divbo_fixed`, a variant, as well."""
    return float(friedman_test(comparison.mean_losses(kept("replay_accuracy"), 250, "validation").to_numpy()).p_value)


def p_without_one(losses: Frame) -> list[float]:
    """Return Friedman's p without each of the recordings."""
    return [friedman_test(losses.drop(index=name).to_numpy()).p_value for name in losses.index]


def _searches() -> Iterator[Statement]:
    runs = replayed()
    losses = {part: comparison.mean_losses(runs, 250, part) for part in ("validation", "test")}
    ranks = {part: comparison.average_ranks(runs, 250, part) for part in ("validation", "test")}
    p = {part: friedman_test(table.to_numpy()).p_value for part, table in losses.items()}
    without = p_without_one(losses["validation"])
    assert ranks["validation"].idxmin() == "optdivbo"
    shared = {"rank": ranks["validation"]["optdivbo"], "p": p["validation"], "low": min(without), "high": max(without)}
    shared["ten"] = p_of_ten()
    yield Statement(
        text="`optdivbo` finds the lowest validation losses (average rank {rank:.2f} of nine; Friedman's p {p:.2f}, "
        "but {low:.3f} to {high:.3f} when one recording is left out, and {ten:.2f} with `divbo_fixed` as a tenth)",
        values=shared,
    )
    yield Statement(
        text="on validation rows `optdivbo` (rank {rank:.2f}; Friedman's p {p:.2f}, without one recording {low:.3f} to "
        "{high:.3f}, with `divbo_fixed` {ten:.2f}); on test rows the ranks do not differ significantly (p "
        "{p_test:.2f}): `divbo` {divbo:.2f}, `bo` {bo:.2f}, `optdivbo` {optdivbo:.2f}, `random` {random:.2f}",
        values=shared
        | {"p_test": p["test"]}
        | {name: ranks["test"][name] for name in ("divbo", "bo", "optdivbo", "random")},
    )
    gain = gain_over_single(runs)
    counts = (gain > 0).sum()
    yield Statement(
        text="on test rows of {low} to {high} of the nine recordings, by {least:.0f} to {most:.0f} % on average after "
        "250 trials",
        values={
            "low": counts.min(),
            "high": counts.max(),
            "least": 100 * gain.mean().min(),
            "most": 100 * gain.mean().max(),
        },
    )
    yield Statement(
        text="**The ensemble itself pays**: {least:.0f} to {most:.0f} % less test loss than the best single model",
        values={"least": 100 * gain.mean().min(), "most": 100 * gain.mean().max()},
    )
    by_log_loss = kept("replay")
    early = comparison.mean_losses(by_log_loss, 100, "validation")
    late = comparison.mean_losses(by_log_loss, 250, "validation")
    yield Statement(
        text="with 100 trials `optdivbo` has the validation loss of `bo` after 250 on {n} of {all} recordings",
        values={"n": int((early["optdivbo"] <= late["bo"]).sum()), "all": len(early)},
    )
    seconds = by_log_loss[by_log_loss["trials"] == 250].groupby("strategy")["suggest_seconds"].mean()
    yield Statement(
        text="{bo:.2f} (`bo`) to {gain:.2f} s (`ensemble_gain`) on average of 250 decisions in replays",
        values={"bo": seconds["bo"], "gain": seconds["ensemble_gain"]},
    )


def _last_steps() -> Iterator[Statement]:
    rows = kept("last_step")
    rows = rows[(rows["rule"] == "the same, picked twice or more") & (rows["rows"] >= 300)]
    changes = rows.groupby(["rows", "candidates"])["change"].mean()
    yield Statement(
        text="{least:.1f} to {most:.1f} % less test loss on average of {n:word} recordings, never more than "
        "{worst:.1f} % worse",
        values={
            "least": -changes.max(),
            "most": -changes.min(),
            "n": rows["recording"].nunique(),
            "worst": rows["change"].max(),
        },
    )
    rows = kept("spare_time")
    rows = rows[rows["rows"] <= 1500]
    losses = rows.pivot_table(index=["table", "budget"], columns="way", values="test_loss", sort=False)
    change = 100 * losses.div(losses["none"], axis=0) - 100
    repeats, second = change["repeats, only these"], change["second layer"]
    yield Statement(
        text="{mean:.1f} % less test loss on average of {n:word} tables of at most 1,500 rows (median {median:.1f} %), "
        "better on {better:word} of {runs:word} runs; more trials: nothing; a second layer: {low:+.1f} to {high:+.1f} "
        "%",
        values={
            "mean": -repeats.mean(),
            "median": -repeats.median(),
            "n": rows["table"].nunique(),
            "better": int((repeats < 0).sum()),
            "runs": len(repeats),
            "low": second.min(),
            "high": second.max(),
        },
    )
    yield Statement(
        text="lower test loss on {better} of {n} tables with more than 1,000 training rows, by {median:.1f} % in the "
        "median",
        values=all_rows.gain(),
    )


def dacopt_scores() -> Frame:
    """Return our geometric means, mean over repeats, beside the published ones."""
    ours = kept("dacopt1").groupby(["table", "strategy"])["validation"].agg(["mean", "count"]).reset_index()
    published = kept("dacopt1", PUBLISHED).rename(columns={"mean": "published"})
    ours["method"] = ours["strategy"].map(PAPER_NAMES)
    return ours.merge(published, on=["table", "method"], how="left")


def _dacopt() -> Iterator[Statement]:
    scores = dacopt_scores()
    beside = (scores["mean"] - scores["published"]).dropna()
    rows = kept("dacopt1").pivot_table(index=["table", "seed"], columns="strategy", values="validation")
    pairs = (rows["dac_hb"] - rows["bo4ml"]).dropna()
    yield Statement(
        text="`bo4ml` and `tpe`, the paper's baselines, one run on each of five and four tables: {near:word} of "
        "{n:word} within 0.01 of the geometric mean or better, {mean:.3f} better on average; `dac_hb`, which contains "
        "`bo4ml`, is behind it on {behind:word} of {pairs:word} tables",
        values={
            "near": int((beside >= -0.01).sum()),
            "n": len(beside),
            "mean": beside.mean(),
            "behind": int((pairs < 0).sum()),
            "pairs": len(pairs),
        },
    )
    first = rows.xs(0, level="seed").dropna(subset=["random"])
    yield Statement(
        text="On {n:word} of {m:word} tables of DACOpt, random search scores lower than all other strategies.",
        values={"n": int((first["random"] == first.min(axis=1)).sum()), "m": len(first)},
    )


def _latent() -> Iterator[Statement]:
    rows = kept("latent").groupby(["strategy", "table"])["loss_10"].mean().unstack(0)
    change = rows["latent"] / rows["latent_scratch"] - 1
    yield Statement(
        text="{less:.1f} % less loss after ten decisions than without it (p {p:.2f} by relative differences, "
        "{absolute:.2f} by absolute ones)",
        values={
            "less": -100 * change.mean(),
            "p": signed_rank_test(change.to_numpy())[0],
            "absolute": signed_rank_test((rows["latent"] - rows["latent_scratch"]).to_numpy())[0],
        },
    )


def _surrogates() -> Iterator[Statement]:
    rows = kept("surrogate_tau")
    tau = rows[rows["observations"] == 250].groupby("surrogate")["to_pool"].mean()
    seconds = kept("surrogate_seconds")
    seconds = seconds[seconds["observations"] == 250].pivot(
        index=["recording", "measure", "seed"], columns="surrogate", values="cpu_seconds"
    )
    yield Statement(
        text="it orders the pairs that the search asks for better (tau {forest:.2f} against {pairs:.2f} at 250 "
        "observations) in 1/{ratio:.0f} of the time",
        values={
            "forest": tau["prediction"],
            "pairs": tau["pairwise"],
            "ratio": (seconds["pairwise"] / seconds["prediction"]).median(),
        },
    )


def _faults() -> Iterator[Statement]:
    rows = kept("faults_kills")
    killed = rows[rows["kind"].str.startswith(("coordinator killed", "coordinator and workers killed"))]
    assert (killed["outcome"] == "ok").all()
    yield Statement(text="{n} kills of the coordinator: no finished trial lost or repeated", values={"n": len(killed)})


def _stuck() -> Iterator[Statement]:
    rows = kept("defaults")
    rows = rows[(rows["table"] == "colic") & (rows["share"] == 1.0)].set_index("variant")
    most = rows["trials"] * rows["most_tried"]
    yield Statement(
        text="Of {bo} trials on colic it gave {most} to one algorithm, `optdivbo` {own} of {all}.",
        values={
            "bo": rows["trials"]["bo"],
            "most": round(most["bo"]),
            "own": round(most["optdivbo"]),
            "all": rows["trials"]["optdivbo"],
        },
    )
    rows = kept("divbo")
    rows = rows[(rows["table"] == "puma32H") & rows["method"].isin(["RS", "BO", "RB", "EO", "NES", "DivBO"])]
    worst = rows.loc[rows.loc[rows["method"] == "BO", "test"].idxmax()]
    others = rows[(rows["seed"] == worst["seed"]) & (rows["method"] != "BO")]["test"]
    yield Statement(
        text="on puma32H it once ended at {bo:.0f} % error where all others had {low:.0f} to {high:.0f} %",
        values={"bo": 100 * worst["test"], "low": 100 * others.min(), "high": 100 * others.max()},
    )


def _time() -> Iterator[Statement]:
    change: Frame = changes(kept("ablation"), "before")["everything, a third of the time"].dropna()
    yield Statement(
        text="it is on {n:word} of {m:word} tables, and {behind:.1f} % behind in the median",
        values={"n": int((change <= 0).sum()), "m": len(change), "behind": change.median()},
    )


def _parts() -> Iterator[Statement]:
    changed: Frame = changes(kept("ablation_parts"), "everything")
    mean = 100 * (np.exp(np.log1p(changed / 100).mean()) - 1)
    yield Statement(
        text="on {n:word} tables that chose none of them: with LightGBM alone {lightgbm:+.1f} % test loss, with the "
        "best trial instead of an ensemble {single:+.1f} %, without calibration {calibration:+.1f} %, without first "
        "configurations {first:+.1f} %, without networks {networks:+.1f} %, without added columns {features:+.1f} %",
        values={
            "n": len(changed),
            "lightgbm": mean["LightGBM alone"],
            "single": mean["best trial alone"],
            "calibration": mean["no calibration"],
            "first": mean["without first configurations"],
            "networks": mean["without networks"],
            "features": mean["without features"],
        },
    )
