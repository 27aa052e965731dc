"""The numbers of the latent space: pre-training, searches on new tables, sources that agree, live runs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.experiments.latent.left_out import AFTER, summarise
from benchmarks.pages.formats import bold_lowest
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.statistics.ranks_and_tests import (
    friedman_test,
    nemenyi_critical_difference,
    signed_rank_test,
    wilcoxon_holm,
)

LATENT = {
    "latent": "`latent` (ranked networks)",
    "latent_random": "random networks (`embedding=random`)",
    "latent_scratch": "without pre-training (`embedding=scratch`)",
    "bandit_bo": "`bandit_bo`",
    "random": "`random`",
}


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    yield from _overlap()
    yield from _latent()
    yield from _latent_tests()
    yield _left_out()
    yield _latent_live()


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


def _latent_tests() -> Iterator[Statement]:
    """Yield how `latent` compares with the other strategies on the means over seeds."""
    rows = kept("latent")
    losses: dict[int, Frame] = {
        n: rows.groupby(["table", "strategy"])[f"loss_{n}"].mean().unstack().round(9) for n in (30, 60)
    }
    accuracies = 1 - losses[60].mean()
    yield Statement(
        text="ours after 60 decisions is {latent:.4f}, {bandit_bo:.4f} and {random:.4f}, with other splits and "
        "configurations. Friedman's test over our {n:word} strategies has p = {p:.3f}",
        values={
            **accuracies[["latent", "bandit_bo", "random"]].to_dict(),
            "n": len(accuracies),
            "p": friedman_test(losses[60].to_numpy()).p_value,
        },
    )
    yield Statement(
        text="(critical difference {difference:.2f})",
        values={"difference": nemenyi_critical_difference(len(accuracies), len(losses[60]))},
    )
    against = {n: wilcoxon_holm(of, "latent")["wilcoxon_p"] for n, of in losses.items()}
    yield Statement(
        text="the difference is within the noise (p = {p30:.2f} after 30, {p60:.2f} after 60). At 60, it is second, as "
        "hoped. It is better than `random` (p = {random:.3f})",
        values={"p30": against[30]["bandit_bo"], "p60": against[60]["bandit_bo"], "random": against[60]["random"]},
    )


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


def _left_out() -> Body:
    found = summarise(kept("left_out"), "bandit_bo")
    lines = []
    for name, of in found.iterrows():
        p = [f"{of[f'p {n}']:.2f}" for n in AFTER]
        lines.append(
            row(f"`{name}`", *(f"{of[f'after {n}']:.3f}" for n in AFTER), *(["", "", ""] if name == "bandit_bo" else p))
        )
    return Body(header="| strategy | 10 decisions | 20 | 30 | p 10 | 20 | 30 |", lines=tuple(lines))
