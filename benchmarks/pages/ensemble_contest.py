"""The numbers of the contest for the ensemble: against other searches, and without each of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row, signed
from benchmarks.statistics import comparison

PARTS: tuple[comparison.Part, ...] = ("validation", "test")
AFTER = (60, 150)

WHOLE = "contest"
OTHERS = {"optdivbo": "`optdivbo`", "bo": "`bo`", "ensemble_gain": "`ensemble_gain`", "random": "`random`"}
WITHOUT = {
    "no_opening": "the opening",
    "no_contest": "the contest (`optdivbo` with the opening)",
    "no_diversity": "diversity (`max_weight=0`)",
    "no_share": "trials for dropped algorithms (`random_fraction=0`)",
    "best_loss": "the ensemble as judge (`judged_by=best_loss`)",
}


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    yield ranks_and_differences(kept("ensemble_contest"), WHOLE, {WHOLE: "`ensemble_contest` and opening"} | OTHERS)
    yield _ablation(kept("ensemble_contest_parts"))
    yield from _findings(kept("ensemble_contest"))


def summary() -> Statement:
    """Return the line of the table of docs/how_good.md."""
    return Statement(
        text="{seeds} seeds, {recordings:word} recordings, log loss or MSE on test rows: `ensemble_contest` with an "
        "opening has rank {rank_contest:.2f} of five, `optdivbo` {rank_optdivbo:.2f}, `ensemble_gain` "
        "{rank_ensemble_gain:.2f}, `bo` {rank_bo:.2f}, `random` {rank_random:.2f}; Holm's p {p_optdivbo:.2f}, "
        "{p_ensemble_gain:.2f}, {p_bo:.2f} and {p_random:.2f}",
        values=ranks_and_p(kept("ensemble_contest"), WHOLE),
    )


def ranks_and_p(runs: Frame, reference: str) -> dict[str, float]:
    """Return the fields of a summary: ``seeds``, ``recordings``, ``rank_*``, and ``p_*`` against a strategy."""
    ranks = comparison.average_ranks(runs, AFTER[-1], "test")
    tests: Frame = comparison.across_recordings(runs, AFTER[-1], "test", reference)
    values = {"seeds": runs["seed"].nunique(), "recordings": runs["recording"].nunique()}
    values |= {f"rank_{name}": ranks[name] for name in ranks.index}
    return values | {f"p_{name}": tests.loc[name, "holm_p"] for name in tests.index}


def wins_and_p(runs: Frame, reference: str) -> dict[str, float]:
    """Return on how many of ``all`` recordings a strategy is better than each of the others, and Holm's p, by part."""
    values: dict[str, float] = {"all": runs["recording"].nunique()}
    for part in PARTS:
        found: Frame = comparison.across_recordings(runs, AFTER[-1], part, reference)
        for name in found.index:
            # The test counts from the side of the others.
            values |= {f"{part}_{name}": found.loc[name, "losses"], f"{part}_{name}_p": found.loc[name, "holm_p"]}
    return values


def ranks_and_differences(runs: Frame, reference: str, shown: Mapping[str, str], *, first: str = "strategy") -> Body:
    """Return the table of average ranks, and of the differences of test losses from those of a strategy.

    Parameters
    ----------
    runs : DataFrame
        Rows of replays.
    reference : str
        Label of the strategy that the others are compared with.
    shown : mapping of str to str
        What the table calls the strategies, by label, in the order of its rows.
    first : str
        Heading of the first column, which makes the table the only one of its kind in the page.
    """
    ranks = [comparison.average_ranks(runs, n, part) for part in PARTS for n in AFTER]
    differences = _compared(runs, reference)
    lines = []
    for name, called in shown.items():
        cells = ["" for _ in AFTER] if name == reference else [differences["test", n][name] for n in AFTER]
        lines.append(row(called, *(f"{of[name]:.2f}" for of in ranks), *cells))
    return Body(
        header=f"| {first} | validation 60 | 150 | test 60 | 150 trials | test loss after 60, p | after 150, p |",
        lines=tuple(lines),
    )


def _ablation(runs: Frame) -> Body:
    differences = _compared(runs, WHOLE)
    lines = [
        row(shown, *(differences[part, n][name] for part in PARTS for n in AFTER)) for name, shown in WITHOUT.items()
    ]
    return Body(
        header="| without | validation loss after 60, p | after 150, p | test loss after 60, p | after 150, p |",
        lines=tuple(lines),
    )


def _findings(runs: Frame) -> Iterator[Statement]:
    values = wins_and_p(runs, WHOLE)
    yield Statement(
        text="After 150 trials its validation loss is lower than that of `bo` on {validation_bo:word} of {all:word} "
        "recordings (Holm's p {validation_bo_p:.3f}), than that of `random` on {validation_random:word} "
        "({validation_random_p:.3f}) and than that of `optdivbo` on {validation_optdivbo:word} "
        "({validation_optdivbo_p:.3f})",
        values=values,
    )
    yield Statement(
        text="Its test loss is lower than that of `bo` on {test_bo:word}, of `random` on {test_random:word} and of "
        "`optdivbo` on {test_optdivbo:word}",
        values=values,
    )


def _compared(runs: Frame, reference: str) -> dict[tuple[comparison.Part, int], dict[str, str]]:
    return {(part, n): differences_after(runs, n, part, reference) for part in PARTS for n in AFTER}


def differences_after(runs: Frame, n_trials: int, part: comparison.Part, reference: str) -> dict[str, str]:
    """Return by how much the losses of the others differ from that of a strategy, and Holm's p, as text by label."""
    table: Frame = comparison.relative_differences(runs, n_trials, part, reference)
    tests: Frame = comparison.across_recordings(runs, n_trials, part, reference)
    found = {}
    for name in tests.index:
        low, middle, high = (signed(table.loc[(name, "")][each], 1) for each in ("low", "difference", "high"))
        found[name] = f"{middle} % [{low}, {high}], {tests.loc[name, 'holm_p']:.2f}"
    return found
