"""The numbers of the match with other systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from benchmarks.pages.kept_rows import RESULTS, Frame
from benchmarks.pages.statement import Body, PageError, Statement, row
from benchmarks.peers.environments import OURS
from benchmarks.peers.report import improvability, to_frame
from benchmarks.peers.runs import PeerProtocol, PeerRun
from benchmarks.peers.study import MATCH
from benchmarks.runs.finished_runs import FinishedRuns
from benchmarks.runs.suite_runs import SuiteKey
from benchmarks.statistics import ranks_and_tests as statistics

NAMES = {
    "autogluon": "AutoGluon (`best_quality`, without torch)",
    "autogluon_torch": "AutoGluon with torch",
    "flaml": "FLAML",
    "h2o": "H2O",
    "lightautoml": "LightAutoML",
    "lightgbm": "LightGBM with early stopping",
}
"""The peers that have run on all tables, and what the pages call them."""

PEERS = (OURS, *NAMES)
AUTOGLUON = ("autogluon", "autogluon_torch")
FURTHER = {
    "autogluon_portfolio": "AutoGluon's portfolio",
    "optuna_lightgbm": "Optuna with LightGBM",
    "mljar": "mljar",
    "tpot": "TPOT",
}
"""Peers that have run with the first seed only, and what the pages call them."""

LONGER_PEERS = (OURS, "autogluon")
"""Peers that have run on the slower machine, and on other tables than those of the match."""

HALF_HOUR_PEERS = (OURS, "autogluon_torch")
"""Peers that have run for 1,800 s."""

FIRST_LONGER_TABLES = ("colic", "profb", "vowel", "pc4", "churn")
"""The first tables with runs of 300 s, on the slower machine; others ran on faster ones."""

UNUSED = ("mfeat-fourier", "waveform-5000")
"""Tables of the match on which nothing of the package was ever chosen."""


LONGER_TABLES = ("nursery", "eye_movements", "MagicTelescope", "letter", "amazon_employee", "connect-4")
"""Tables beside those of the match, with more rows."""


OTHER_TABLES = ("abalone", "hill-valley", "puma32H", "satimage", "vehicle", "wine-quality-white")
"""Tables beside these, named before the first run on them."""


MORE_TABLES = (
    *("pol", "2dplanes", "wind", "ailerons", "optdigits", "pendigits", "page-blocks", "texture"),
    *("wall-robot-navigation", "cnae-9", "cjs", "colleges_usnews", "qsar-biodeg", "fri_c3_1000_25", "leaf"),
    "mfeat-karhunen",
)
"""Still more tables, named before the first comparison on them."""


UNTOUCHED = (
    *("hill-valley", "wind", "optdigits", "wall-robot-navigation", "cnae-9", "cjs", "leaf", "mfeat-karhunen"),
    "texture",
)
"""Those of `OTHER_TABLES` and `MORE_TABLES` on which nothing was chosen after the first comparison."""


def match_losses() -> Frame:
    """Return the losses of the first seed and 60 s: rows the tables of the match, columns `PEERS`."""
    return _losses("peers.jsonl", PEERS)


def _losses(
    name: str, peers: Sequence[str], seconds: float = 60.0, among: Sequence[str] = MATCH, seed: int = 0
) -> Frame:
    """Return the losses of a seed, on the tables among these on which all peers have run this long.

    Raises
    ------
    PageError
        If there is no such table.
    """
    kept = FinishedRuns(RESULTS / "match" / name, PeerRun, SuiteKey)
    protocol = PeerProtocol(seconds=seconds, threads=2)
    runs = {table: [kept.find(protocol.key(table, peer, seed)) for peer in peers] for table in among}
    tables = [table for table, of in runs.items() if all(run is not None for run in of)]
    if not tables:
        raise PageError(
            f"{name} has no table on which {', '.join(peers)} have run for {seconds:g} s, expected {', '.join(among)}. "
            "Runs with --fresh replace the rows: wait until they have ended, or restore the file."
        )
    rows = to_frame([run for table in tables for run in runs[table] if run is not None])
    return rows.pivot(index="table", columns="peer", values="loss").loc[tables, list(peers)]


def summary() -> Statement:
    """Return the sentence of the page that says how good cashmere is."""
    return Statement(
        text=f"lower loss than {_wins_of(NAMES)}; average rank {{rank:.2f}} of {{peers:word}}, the next one "
        "{next:.2f}",
        values={**_standing(match_losses()), "peers": len(PEERS)},
    )


def seeds_summary() -> Statement:
    """Return the sentence of that page on all seeds."""
    return Statement(
        text="In the {n} runs of three seeds: average rank {rank:.2f}, the next one "
        "{next:.2f}; lower loss than AutoGluon in {autogluon}, with torch in {autogluon_torch}, than FLAML in {flaml}, "
        "H2O in {h2o}, LightAutoML in {lightautoml}, LightGBM in {lightgbm}",
        values=_standing(_of_all_seeds()),
    )


def readme_summary() -> Iterator[Statement]:
    """Yield the sentence of the README."""
    yield Statement(
        text="in {n} runs of a minute on two cores, its average rank is {rank:.1f} of {peers:word}, the next one "
        "{next:.1f}",
        values={**_standing(_of_all_seeds()), "peers": len(PEERS)},
    )


def _standing(losses: Frame) -> dict[str, float]:
    """Return the number of rows, in how many the loss is lower than each peer's, and average ranks: ours, the next."""
    ranks = dict(zip(losses, statistics.rank_methods(losses).mean(axis=0), strict=True))
    rank = ranks.pop(OURS)
    wins = {peer: int(_is_better(losses[OURS], losses[peer]).sum()) for peer in ranks}
    return {"n": len(losses), **wins, "rank": rank, "next": min(ranks.values())}


def _wins_of(names: Mapping[str, str]) -> str:
    """Return the part of a sentence with the numbers of tables from `_standing`."""
    return ", ".join(f"{name} on {{{peer}}}" for peer, name in names.items()).replace("}", "} of {n}", 1)


def others_summary() -> Statement:
    """Return the sentence of that page on the tables named before the first comparison on them."""
    return Statement(
        text="lower loss than AutoGluon on {wins_now} of {n}, {median_now:.1f} % lower in the median (in the first "
        "comparison, with the code of then, on {wins}, {median:.1f} %); one seed",
        values=_then_and_now(_other_losses()),
    )


def _other_losses() -> Frame:
    """Return the losses on the tables named before the first comparison on them: then, now, and AutoGluon's."""
    tables = (*OTHER_TABLES, *MORE_TABLES)
    now = _losses("peers.jsonl", LONGER_PEERS, among=tables).rename(columns={OURS: "now", "autogluon": "theirs"})
    return now.assign(then=_losses("first_comparison.jsonl", (OURS,), among=tables)[OURS])


def _then_and_now(losses: Frame) -> dict[str, float]:
    """Return how often cashmere is ahead of AutoGluon and by how many per cent in the median, in both comparisons."""
    values: dict[str, float] = {"n": len(losses)}
    for column, ending in (("then", ""), ("now", "_now")):
        values[f"wins{ending}"] = int((losses[column] < losses["theirs"]).sum())
        values[f"median{ending}"] = 100 * (1 - float((losses[column] / losses["theirs"]).median()))
    return values


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    losses = match_losses()
    ours, n = losses[OURS], len(losses)
    yield _table("data set", losses)
    yield Statement(
        text="Against the best of the others on each table, its loss is lower on {wins} of {n}, by {median:.1f} % in "
        "the median of all",
        values={"n": n, **_against_best(losses)},
    )
    theirs, unused = losses["autogluon"], list(UNUSED)
    yield Statement(
        text="On the {n:word} tables that had no part in any choice, the loss is {ratio:.3f} of AutoGluon's, and lower "
        "on {lower:word} of them.",
        values={
            "n": len(unused),
            "ratio": _ratio(ours[unused], theirs[unused]),
            "lower": int((ours < theirs)[unused].sum()),
        },
    )
    before = _losses("cashmere_before.jsonl", (OURS,))[OURS]
    yield Statement(
        text="cashmere was better than AutoGluon on {wins} of the {n} tables, with {ratio:.3f} of its loss.",
        values={"wins": int((before < theirs).sum()), "n": n, "ratio": _ratio(before, theirs)},
    )
    yield Statement(
        text="What has changed since then has lowered its loss by {mean:.1f} % in the mean and {median:.1f} % in the "
        "median.",
        values={"mean": 100 * (1 - _ratio(ours, before)), "median": 100 * (1 - float(np.median(ours / before)))},
    )
    on_faster, on_slower = (_losses(f"{name}_machine.jsonl", AUTOGLUON) for name in ("faster", "slower"))
    yield Statement(
        text="On the slower machine, the loss of AutoGluon was {plain:.3f} times as high as on the faster one "
        "(geometric mean), with torch {torch:.3f} times",
        values={
            name: _ratio(on_slower[peer], on_faster[peer])
            for name, peer in zip(("plain", "torch"), AUTOGLUON, strict=True)
        },
    )
    most = 100 * (np.exp(np.abs(np.log(on_slower / on_faster))).max() - 1)
    yield Statement(
        text="single losses of AutoGluon by up to {plain:.0f} %, with torch by up to {torch:.0f} %",
        values={"plain": most["autogluon"], "torch": most["autogluon_torch"]},
    )
    yield from _second_parts()
    yield from _third_parts()
    yield from _further_parts()
    yield from _five_minutes_parts()
    yield _table("data set, 1,800 s", _losses("peers.jsonl", HALF_HOUR_PEERS, 1800.0))
    yield from _haste_parts()
    yield from _other_parts()


def five_minutes_summary() -> Statement:
    """Return what docs/how_good.md says about runs of 300 s."""
    losses = _losses("peers.jsonl", (OURS, *AUTOGLUON), 300.0)
    return Statement(
        text="lower loss than AutoGluon on {plain} of {n} tables, than AutoGluon with torch on {torch}; average rank "
        "{rank:.2f} of three; one seed",
        values={
            "plain": int((losses[OURS] < losses["autogluon"]).sum()),
            "torch": int((losses[OURS] < losses["autogluon_torch"]).sum()),
            "n": len(losses),
            "rank": losses.rank(axis=1)[OURS].mean(),
        },
    )


def _second_parts() -> Iterator[Statement | Body]:
    """Yield the parts on the second seed."""
    yield _table("data set, second seed", _losses("peers.jsonl", PEERS, seed=1))
    yield from _slower_parts()
    both = _of_both_seeds()
    yield Statement(
        text="In the {n} runs of both seeds, its average rank is {rank:.2f}, the next one {next:.2f}. Its loss is "
        "lower than AutoGluon's in {autogluon}, with {plain_ratio:.3f} of it (geometric mean), and lower than that of "
        "AutoGluon with torch in {autogluon_torch}, with {torch_ratio:.3f} of it. Against the best of the others in "
        "each run, its loss is lower in {wins}, by {median:.1f} % in the median of all. It has "
        "{lightgbm_ratio:.3f} of LightGBM's loss.",
        values={
            **_standing(both),
            "plain_ratio": _ratio(both[OURS], both["autogluon"]),
            "torch_ratio": _ratio(both[OURS], both["autogluon_torch"]),
            "lightgbm_ratio": _ratio(both[OURS], both["lightgbm"]),
            **_against_best(both),
        },
    )


def _slower_parts() -> Iterator[Statement]:
    """Yield the parts on the same runs, on a slower machine."""
    peers = (OURS, *AUTOGLUON)
    here, there = (_losses(name, peers, seed=1) for name in ("peers.jsonl", "slower_machine.jsonl"))
    yield Statement(
        text="the loss of cashmere was {ours:.3f} times as high (geometric mean), that of AutoGluon {plain:.3f} times, "
        "with torch {torch:.3f} times",
        values={
            name: _ratio(there[peer], here[peer]) for name, peer in zip(("ours", "plain", "torch"), peers, strict=True)
        },
    )
    yield Statement(
        text="There, cashmere was better than AutoGluon on {plain} of {n}, than AutoGluon with torch on {torch}.",
        values={
            "n": len(there),
            "plain": int((there[OURS] < there["autogluon"]).sum()),
            "torch": int((there[OURS] < there["autogluon_torch"]).sum()),
        },
    )
    before = _losses("before_leaving.jsonl", (OURS,), seed=1)[OURS]
    now = there[OURS].loc[before.index]
    yield Statement(
        text="on {n} tables with more than 1,000 rows, its loss became {ratio:.3f} times as high (geometric mean), "
        "lower on {lower}, which may be chance",
        values={"n": len(before), "ratio": _ratio(now, before), "lower": int((now < before).sum())},
    )


def _third_parts() -> Iterator[Statement | Body]:
    """Yield the parts on the third seed."""
    losses = _losses("peers.jsonl", PEERS, seed=2)
    yield _table("data set, third seed", losses)
    before = _losses("before_forks.jsonl", (OURS,), seed=2)[OURS]
    now = losses[OURS].loc[before.index]
    yield Statement(
        text="on these {n} tables, its loss became {ratio:.3f} times as high (geometric mean), lower on {lower}",
        values={"n": len(before), "ratio": _ratio(now, before), "lower": int((now < before).sum())},
    )
    every = _of_all_seeds()
    yield Statement(
        text="In the {n} runs of three seeds, its average rank is {rank:.2f}, the next one {next:.2f}; its loss is "
        "lower than AutoGluon's in {autogluon}, than that of AutoGluon with torch in {autogluon_torch}, and than the "
        "best of the others in {wins}, by {median:.1f} % in the median of all.",
        values={**_standing(every), **_against_best(every)},
    )


def further_summary() -> Statement:
    """Return what docs/how_good.md says about the peers of the first seed only."""
    losses = _losses("peers.jsonl", (OURS, *FURTHER))
    return Statement(text=f"lower loss than {_wins_of(FURTHER)}; one seed", values=_standing(losses))


def _further_parts() -> Iterator[Statement | Body]:
    """Yield the parts on the peers of the first seed only."""
    losses = _losses("peers.jsonl", (OURS, *FURTHER))
    yield _table("data set, further systems", losses)
    every = _losses("peers.jsonl", (*PEERS, *FURTHER))
    yield Statement(
        text="Among all {peers:word} systems of the first seed, its average rank is {rank:.2f}, the next one "
        "{next:.2f}, and its loss is the lowest on {wins} of {n} tables.",
        values={"peers": every.shape[1], **_standing(every), **_against_best(every)},
    )


def _against_best(losses: Frame) -> dict[str, float]:
    """Return in how many runs the loss is below the best of the others, and by how many per cent in the median."""
    of_best = losses[OURS] / losses.drop(columns=OURS).min(axis=1)
    return {"wins": int((of_best < 1).sum()), "median": 100 * (1 - float(of_best.median()))}


def _of_both_seeds() -> Frame:
    """Return the losses of the runs with either seed."""
    return pd.concat([match_losses(), _losses("peers.jsonl", PEERS, seed=1)])


def _of_all_seeds() -> Frame:
    """Return the losses of the runs with any of the three seeds."""
    return pd.concat([_of_both_seeds(), _losses("peers.jsonl", PEERS, seed=2)])


def _five_minutes_parts() -> Iterator[Statement | Body]:
    """Yield the parts on runs of 300 s."""
    losses = _losses("peers.jsonl", (OURS, *AUTOGLUON), 300.0)
    yield _table("data set, 300 s", losses)
    best = losses[list(AUTOGLUON)].min(axis=1)
    yield Statement(
        text="The loss of cashmere is lower than the lower one of AutoGluon's two on {wins:word} of {n:word} tables, "
        "and {median:.3f} times as high in the median",
        values={
            "n": len(losses),
            "wins": int((losses[OURS] < best).sum()),
            "median": float((losses[OURS] / best).median()),
        },
    )
    first = losses.loc[list(FIRST_LONGER_TABLES)]
    shorter = _losses("slower_machine.jsonl", LONGER_PEERS).loc[first.index]
    yield Statement(
        text="With 300 s instead of 60 s, both on the slower machine, the loss on {n:word} tables (colic, profb, "
        "vowel, pc4 and churn) is {ours:.3f} times as high with cashmere (geometric mean) and {theirs:.3f} times with "
        "AutoGluon without networks.",
        values={
            "n": len(first),
            "ours": _ratio(first[OURS], shorter[OURS]),
            "theirs": _ratio(first["autogluon"], shorter["autogluon"]),
        },
    )


def _haste_parts() -> Iterator[Body]:
    """Yield the parts on tables with more rows, before and after runs began in haste."""
    losses = _losses("peers.jsonl", LONGER_PEERS, among=LONGER_TABLES)
    before, after = (
        _losses(name, (OURS,), among=LONGER_TABLES)[OURS] for name in ("without_haste.jsonl", "with_haste.jsonl")
    )
    lines = [
        row(str(table), *(f"{value:.4f}" for value in (before[table], after[table], of[OURS], of["autogluon"])))
        for table, of in losses.iterrows()
    ]
    yield Body(header="| data set, 60 s | before | in haste | now | AutoGluon |", lines=tuple(lines))


def _other_parts() -> Iterator[Statement | Body]:
    """Yield the parts on tables beside these."""
    losses = _losses("peers.jsonl", LONGER_PEERS, among=OTHER_TABLES)
    yield _table("data set, 60 s", losses)
    usual = losses.drop(index="hill-valley")
    yield Statement(
        text="Most of the mean ratio is due to hill-valley; on the other {n:word} tables, it is {ratio:.3f}.",
        values={"n": len(usual), "ratio": _ratio(usual[OURS], usual["autogluon"])},
    )
    more = _losses("peers.jsonl", LONGER_PEERS, among=MORE_TABLES)
    yield _table("data set of the sixteen, 60 s", more)
    yield Statement(
        text="In the median of these {n:word} tables, cashmere has {median:.3f} of AutoGluon's loss.",
        values={"n": len(more), "median": float((more[OURS] / more["autogluon"]).median())},
    )
    losses = _other_losses()
    yield Statement(
        text="In the first comparison, with the code of then, its loss was lower than AutoGluon's on {wins} of the {n} "
        "tables, {median:.1f} % lower in the median; now it is lower on {wins_now}, {median_now:.1f} % in the median.",
        values=_then_and_now(losses),
    )
    untouched = losses.loc[list(UNTOUCHED)]
    yield Statement(
        text="On the {n:word} tables on which nothing was chosen in between, the loss is {median:.3f} of that in the "
        "first comparison in the median, and lower than AutoGluon's on {wins:word}.",
        values={
            "n": len(untouched),
            "median": float((untouched["now"] / untouched["then"]).median()),
            "wins": int((untouched["now"] < untouched["theirs"]).sum()),
        },
    )


def _table(name: str, losses: Frame) -> Body:
    """Return losses as a table of the page, with `name` in its corner and comparisons with cashmere below.

    A peer that failed is the last on its table, and worse than cashmere; the ratio leaves the table out.
    """
    ours, others = losses[OURS], losses.drop(columns=OURS)
    lines = []
    for table, of in losses.iterrows():
        shown = ["failed" if np.isnan(value) else f"{value:.4g}" if value < 0.01 else f"{value:.4f}" for value in of]
        cells = [f"**{text}**" if value == of.min() else text for text, value in zip(shown, of, strict=True)]
        lines.append(row(str(table), *cells))
    ranks = statistics.rank_methods(losses).mean(axis=0)
    distances = improvability(losses).mean()
    lines += [
        row("average rank", *(f"{rank:.2f}" for rank in ranks)),
        row("improvability, %", *(f"{distances[peer]:.1f}" for peer in losses)),
        row(
            "cashmere is better on",
            "",
            *(f"{_is_better(ours, others[peer]).sum()} of {len(losses)}" for peer in others),
        ),
        row(
            "its loss relative to theirs (geometric mean)",
            "",
            *(f"{_ratio(ours, others[peer]):.3f}" for peer in others),
        ),
    ]
    return Body(header=row(name, *(f"`{peer}`" for peer in losses)), lines=tuple(lines))


def _is_better(losses: Frame, others: Frame) -> Frame:
    """Return where a loss is lower; every loss is lower than that of a run that failed."""
    return losses.notna() & ~(others <= losses)


def _ratio(losses: Frame, others: Frame) -> float:
    """Return the geometric mean of the ratios."""
    return float(np.exp(np.log(losses / others).mean()))
