"""Search the tables of an artefact as if they were new, and see how much of the initial regret is left.

    python -m benchmarks left-out --seeds 2

Every table that the artefact was made from is searched among its recorded configurations, two random ones of each
algorithm first, the same for all strategies. Strategies that learn from other tables see the artefact without the
tables that share raw data with it. What was fitted to all tables together stays: rankers, and the priors of
`pretrain_bo`, whose length scales `agreeing_sources` takes. So rankings would be judged by what they were fitted to:
let `latent` take random networks.

The regret is the lowest loss so far less the lowest recorded. Shown is its share that is left after some decisions,
mean over tables of the mean over seeds, with Wilcoxon's test over tables against the reference. The same command
continues where it was stopped.
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.experiments.latent.runs import N_INITIAL, RUN, Target, load_targets, run_number, search
from benchmarks.recordings.replay_study import read_strategies
from benchmarks.runs.row_file import RowFile
from benchmarks.statistics.ranks_and_tests import signed_rank_test
from cashmere.metalearning.artefact import OBSERVATIONS, SHIPPED, Artefact, load_artefact
from cashmere.metalearning.observations import SourceObservations
from cashmere.surrogates.latent_space import Encoders

STRATEGIES = (
    "agreeing_sources",
    "bandit_bo",
    f"latent=latent:embedding=random,embedding_seed={RUN}",
    "random",
)
AFTER = (10, 20, 30)
"""Decisions after which regrets are compared."""

_ARTEFACT = SHIPPED / "sklearn12"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRun:
    """One run.

    Attributes
    ----------
    table, strategy, seed
        Which one; the strategy with its options.
    artefact : str
        Digest of the whole artefact.
    at_start, after_10, after_20, after_30 : float
        Regrets: at its start, and after so many decisions.
    """

    table: str
    strategy: str
    seed: int
    artefact: str
    at_start: float
    after_10: float
    after_20: float
    after_30: float


def without(artefact: Artefact, origin: str) -> Artefact:
    """Return an artefact without the sources of an origin."""
    kept = np.array([other != origin for other in artefact.origins])
    names = ("w1", "b1", "w2", "b2", "w3", "b3")
    return replace(
        artefact,
        sources=tuple(source for source, keep in zip(artefact.sources, kept, strict=True) if keep),
        origins=tuple(other for other in artefact.origins if other != origin),
        meta_features=artefact.meta_features[kept],
        encoders=Encoders(**{name: getattr(artefact.encoders, name)[kept] for name in names}),
        loss_stds=artefact.loss_stds[kept],
    )


def digest_of(folder: Path) -> str:
    """Return a digest of an artefact: its manifest lists those of its files."""
    return hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()[:12]


def save_without(folder: Path, origin: str, out: Path) -> Path:
    """Write an artefact and its observations without the sources of an origin, unless it is there; return its folder.

    Parameters
    ----------
    folder : Path
        The whole artefact.
    origin : str
        What to leave out.
    out : Path
        Parent of the folder to write.
    """
    place = out / digest_of(folder) / "".join(c if c.isalnum() else "_" for c in origin)
    if not (place / "manifest.json").exists():
        observations = SourceObservations.load(folder / OBSERVATIONS)
        tables = tuple(table for table in observations.tables if table.origin != origin)
        replace(observations, tables=tables).save(place / OBSERVATIONS)
        without(load_artefact(folder), origin).save(place)
    return place


def regrets(target: Target, chosen: list[int], n_initial: int) -> list[float]:
    """Return the regret after the initial configurations and after some decisions."""
    losses = target.losses[chosen]
    lowest = np.fmin.accumulate(losses) - np.nanmin(target.losses)
    return [float(lowest[n_initial + n - 1]) for n in (0, *AFTER)]


def shares_left(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of the initial regret, mean over seeds: rows (strategy, table), columns decisions.

    Runs that begin with the lowest loss have nothing left, and are left out.
    """
    begun = rows[rows["at_start"] > 0]
    shares = pd.DataFrame({n: begun[f"after_{n}"] / begun["at_start"] for n in AFTER})
    return shares.groupby([begun["strategy"], begun["table"]]).mean()


def summarise(rows: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return, for each strategy, the mean shares and the p-values of their differences from the reference's."""
    shares = shares_left(rows)
    tables = shares.unstack("strategy").dropna()
    found = {}
    for name in dict.fromkeys(rows["strategy"]):
        found[name] = {f"after {n}": tables[n][name].mean() for n in AFTER} | {
            f"p {n}": signed_rank_test((tables[n][name] - tables[n][reference]).to_numpy())[0] for n in AFTER
        }
    frame = pd.DataFrame(found).T
    frame["tables"] = len(tables)
    return frame


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--artefact", type=Path, default=_ARTEFACT, help="folder (default: the package's)")
    parser.add_argument("--tables", nargs="+", default=[], help="names (default: all)")
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), help="as for `latent`")
    parser.add_argument("--reference", default="bandit_bo", help="label of the strategy to test the others against")
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0, help="first seed")
    parser.add_argument("--work", type=Path, default=Path(".suites/left_out"), help="artefacts without a table")
    parser.add_argument("--out", type=Path, default=Path(".suites/left_out.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(width=160), RowFile(arguments.out, LeftOutRun)
    strategies = read_strategies(arguments.strategies, arguments.reference)
    observations = SourceObservations.load(arguments.artefact / OBSERVATIONS)
    origins = {table.name: table.origin for table in observations.tables}
    targets = load_targets(arguments.artefact / OBSERVATIONS)
    targets = [target for target in targets if not arguments.tables or target.name in arguments.tables]
    artefact = digest_of(arguments.artefact)
    done = file.keys("table", "strategy", "seed", artefact=artefact)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    for seed in seeds:
        for target in targets:
            for labelled in strategies:
                if (target.name, labelled.strategy, seed) in done:
                    continue
                folder = save_without(arguments.artefact, origins[target.name], arguments.work)
                n_initial = len(target.initial_positions(run_number(target.name, seed)))
                n_trials = n_initial + max(AFTER)
                chosen, _ = search(target, labelled.strategy, seed, n_trials=n_trials, artefact=folder)
                left = dict(
                    zip(("at_start", *(f"after_{n}" for n in AFTER)), regrets(target, chosen, n_initial), strict=True)
                )
                run = LeftOutRun(table=target.name, strategy=labelled.strategy, seed=seed, artefact=artefact, **left)
                file.add([run])
    rows = file.frame(artefact=artefact, table=[target.name for target in targets], seed=seeds)
    labels = {labelled.strategy: labelled.label for labelled in strategies}
    rows = rows.assign(strategy=rows["strategy"].map(labels)).dropna(subset="strategy")
    console.print(f"{N_INITIAL} configurations of each algorithm first; share of their regret that is left:")
    console.print(summarise(rows, arguments.reference).round(3).to_string())
