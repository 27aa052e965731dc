"""How cheap the trials are that a search suggests, by the rule that weighs costs.

    python -m benchmarks suggested-costs --data DIR

After a search of some CPU seconds with the space `default`, `bo` suggests the next trial several times by each rule of
`benchmarks.experiments.costs.timed_study`. A recording offers a few hundred configurations; here, a search may choose
any number of cheap ones. Rows are added as runs end; the same command continues an interrupted study.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.experiments.costs.timed_study import strategy_with
from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, search_for_classes
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from cashmere.costs.predicted import PredictedSeconds
from cashmere.records.time_left import TimeLeft
from cashmere.space.encoding.encoder import SpaceEncoder

TABLES = ("churn", "credit-g", "phoneme", "satimage", "bank-marketing", "kr-vs-kp")
RULES = ("credited", "cooled", "order")
SUGGESTIONS = 16
RANDOM = 2000
"""Random configurations, of which a share is cheaper than a suggestion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedCosts(RunKey):
    """What one rule suggests after one search.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`; the variant is the resampling.
    rule : str
        One of `RULES`.
    trials : int
        Finished trials.
    share_left : float
        Share of the time that the rule is told is left.
    cheaper : float
        Mean share of random configurations that are predicted to be cheaper than a suggestion.
    commit : str
        Version of the code.
    """

    rule: str
    trials: int
    share_left: float
    cheaper: float
    commit: str


def run(table: BenchmarkTable, key: RunKey, share_left: float = 0.5) -> list[SuggestedCosts]:
    """Search for some CPU seconds, then ask each rule for suggestions, with a share of the time left."""
    found = []
    with search_for_classes(table, key) as (session, *_):
        history = replace(session.study.history, time_left=TimeLeft(share=share_left))
        encoder = SpaceEncoder(session.run.space.configuration_space)
        predicted = PredictedSeconds.learn(encoder, history.observations)
        drawn = encoder.sample(RANDOM, np.random.default_rng(0))
        of_drawn = predicted.mean_log_seconds(drawn)
        for rule in RULES:
            strategy = strategy_with(rule, "bo", encoder)
            asked = [strategy.suggest(history, np.random.default_rng(seed)) for seed in range(SUGGESTIONS)]
            suggested = [each.configuration for each in asked if each is not None]
            seconds = predicted.mean_log_seconds(encoder.encode(suggested))
            found.append(
                SuggestedCosts(
                    **asdict(key),
                    rule=rule,
                    trials=len(history.successes),
                    share_left=share_left,
                    cheaper=float(np.mean(of_drawn < seconds[:, None])),
                    commit=commit(),
                )
            )
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2000, help="most rows to fit on")
    parser.add_argument("--budget", type=float, default=40.0, help="CPU seconds of a run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/suggested_costs.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    make_missing(
        [
            (table, RunKey(table.name, "5fold", seed, arguments.budget, arguments.rows))
            for seed in range(arguments.seeds)
            for table in find_tables(arguments.data, arguments.tables)
        ],
        run,
        RowFile(arguments.out, SuggestedCosts),
        n_workers=arguments.jobs,
        console=Console(),
        describe=lambda found: "\n".join(
            f"{one.table}, seed {one.seed}, {one.rule}: {one.trials} trials, {one.cheaper:.0%} cheaper" for one in found
        ),
    )
