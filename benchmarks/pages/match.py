"""The numbers of the match with other systems."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.pages.kept_rows import RESULTS, Frame
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.peers.environments import OURS
from benchmarks.peers.report import improvability, to_frame
from benchmarks.peers.runs import PeerProtocol, PeerRun
from benchmarks.peers.study import MATCH
from benchmarks.runs.finished_runs import FinishedRuns
from benchmarks.runs.suite_runs import SuiteKey
from benchmarks.statistics import ranks_and_tests as statistics

PEERS = (OURS, "autogluon", "flaml", "lightgbm")


def match_losses() -> Frame:
    """Return the losses of the first seed and 60 s: rows the tables of the match, columns `PEERS`."""
    kept = FinishedRuns(RESULTS / "match" / "peers.jsonl", PeerRun, SuiteKey)
    protocol = PeerProtocol(seconds=60.0, threads=2)
    runs = [kept.find(protocol.key(table, peer, 0)) for table in MATCH for peer in PEERS]
    rows = to_frame([run for run in runs if run is not None])
    return rows.pivot(index="table", columns="peer", values="loss").loc[list(MATCH), list(PEERS)]


def summary() -> Statement:
    """Return the sentence of the page that says how good cashmere is."""
    losses = match_losses()
    ranks = dict(zip(PEERS, statistics.rank_methods(losses).mean(axis=0), strict=True))
    wins = {peer: int((losses[OURS] < losses[peer]).sum()) for peer in PEERS[1:]}
    return Statement(
        text="lower loss than AutoGluon (`best_quality`, without torch) on {autogluon} of {n}, than FLAML on {flaml}, "
        "than LightGBM with early stopping on {lightgbm}; average rank {ours:.2f} of {peers:word}, AutoGluon "
        "{theirs:.2f}",
        values={"n": len(losses), **wins, "ours": ranks[OURS], "theirs": ranks["autogluon"], "peers": len(PEERS)},
    )


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    losses = match_losses()
    ours, others = losses[OURS], losses[list(PEERS[1:])]
    ranks = statistics.rank_methods(losses).mean(axis=0)
    ratios = np.exp(np.log(others.rdiv(ours, axis=0)).mean())
    best = others.min(axis=1)
    lines = []
    for table, of in losses.iterrows():
        shown = [f"{value:.4g}" if value < 0.01 else f"{value:.4f}" for value in of]
        cells = [f"**{text}**" if value == of.min() else text for text, value in zip(shown, of, strict=True)]
        lines.append(row(str(table), *cells))
    n = len(losses)
    wins = [f"{(ours < others[peer]).sum()} of {n}" for peer in others]
    distances = improvability(losses).mean()
    lines += [
        row("average rank", *(f"{rank:.2f}" for rank in ranks)),
        row("improvability, %", *(f"{distances[peer]:.1f}" for peer in PEERS)),
        row("cashmere is better on", "", *wins),
        row("its loss relative to theirs (geometric mean)", "", *(f"{ratios[peer]:.3f}" for peer in others)),
    ]
    yield Body(header=row("data set", *(f"`{peer}`" for peer in PEERS)), lines=tuple(lines))
    yield Statement(
        text="Against the best of the others on each table, its loss is lower on {wins} of {n}, by {median:.1f} % in "
        "the median of all",
        values={"wins": int((ours < best).sum()), "n": n, "median": 100 * (1 - float(np.median(ours / best)))},
    )
