"""Judge an opening: the loss of the ensemble after some seconds, on tables of other origins than it was chosen on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from ConfigSpace import Configuration

from benchmarks.experiments.followed_candidates import FollowedCandidates, Key, Values, halves_loss
from benchmarks.experiments.opening.candidates import counterparts
from benchmarks.tables.manifest import BenchmarkTable
from benchmarks.tables.search_table import SearchTable
from cashmere.costs.predicted import PredictedSeconds
from cashmere.pretraining.opening_choice import ChosenCandidate, OpeningSource, choose_opening
from cashmere.records.trial import Observation, Outcome, Trial, TrialStatus
from cashmere.space.encoding import SpaceEncoder
from cashmere.space.space import Space

SECONDS = (5.0, 10.0, 20.0, 40.0)
"""CPU seconds after which ensembles are judged."""

MOST_STEPS = 24

_N_SPLITS = 3
_N_SEEDS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayedTable:
    """A table on which all trials are known.

    Attributes
    ----------
    table : BenchmarkTable
        Which one.
    space : Space
        What is searched there.
    source : OpeningSource
        What the candidates did; their numbers are positions in the list of all candidates.
    configurations : dict
        Configurations by number.
    """

    table: BenchmarkTable
    space: Space
    source: OpeningSource
    configurations: Mapping[int, Configuration]
    _losses: dict[frozenset[int], float] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, table: BenchmarkTable, candidates: Mapping[Key, Values], work: Path, n_rows: int) -> ReplayedTable:
        """Read what was recorded."""
        followed = FollowedCandidates.read(work / f"{table.name}.npz")
        rows = SearchTable.read(table)
        space = rows.make_space("default", min(n_rows, len(rows.y)))
        number = {key: k for k, key in enumerate(candidates)}
        same = counterparts(candidates, space)
        source = OpeningSource(
            name=table.name,
            origin=table.origin,
            y=followed.y,
            metric=followed.metric,
            predictions={number[key]: predicted for key, predicted in followed.predictions.items()},
            seconds={number[k]: s for k, s in {**followed.cpu_seconds, **followed.failed}.items()},
            same_as={number[key]: number[first] for key, (first, _) in same.items()},
        )
        configurations = {number[key]: space.completed(values) for key, (_, values) in same.items()}
        return cls(table=table, space=space, source=source, configurations=configurations)

    @functools.cached_property
    def encoder(self) -> SpaceEncoder:
        """Encoder of the space."""
        return SpaceEncoder(self.space.configuration_space)

    def tried(self, numbers: Iterable[int]) -> list[int]:
        """Return the counterparts of some candidates here, each once, as far as they were tried."""
        found = (self.source.same_as[n] for n in numbers if n in self.source.same_as)
        return [n for n in dict.fromkeys(found) if n in self.source.seconds]

    def predicted_log_seconds(self, numbers: Sequence[int], seen: Sequence[int]) -> np.ndarray:
        """Return the predicted logarithm of the seconds of some candidates after others have been seen."""
        observations = [
            Observation(
                trial=Trial(number=k, configuration=self.configurations[n], seed=0),
                outcome=Outcome(status=TrialStatus.SUCCESS, loss=0.0, duration_seconds=self.source.seconds[n]),
                finished_at=0.0,
            )
            for k, n in enumerate(seen)
        ]
        learnt = PredictedSeconds.learn(self.encoder, observations)
        return learnt.mean_log_seconds(self.encoder.encode(self.configurations[n] for n in numbers))

    def losses(self, order: Iterable[int], seconds: Sequence[float]) -> list[float]:
        """Return the loss of the ensemble of those that have ended after some seconds, in this order."""
        numbers = self.tried(order)
        ends = np.cumsum([self.source.seconds[n] for n in numbers])
        losses = []
        for limit in seconds:
            pool = [n for n, end in zip(numbers, ends, strict=True) if end <= limit and n in self.source.predictions]
            losses.append(self._loss(frozenset(pool)))
        return losses

    def _loss(self, pool: frozenset[int]) -> float:
        if pool not in self._losses:
            source = self.source
            self._losses[pool] = (
                halves_loss([source.predictions[n] for n in sorted(pool)], source.y, source.metric, n_seeds=_N_SPLITS)
                if pool
                else _baseline_loss(source)
            )
        return self._losses[pool]


def _baseline_loss(source: OpeningSource) -> float:
    y = source.y
    if y.dtype.kind == "f":
        return float(source.metric.loss(y, np.full(len(y), y.mean()), None))
    shares = np.bincount(y) / len(y)
    return float(source.metric.loss(y, np.tile(shares, (len(y), 1)), None))


# Orders --------------------------------------------------------------------------------------------------------------


def cheapest_first(table: ReplayedTable, numbers: Sequence[int]) -> list[int]:
    """Return candidates as a search with a budget of time orders them without gains: by predicted seconds."""
    return by_rate(table, dict.fromkeys(numbers, 0.0))


def by_rate(table: ReplayedTable, log_gains: Mapping[int, float]) -> list[int]:
    """Return candidates by gain per predicted second, predicted from those before."""
    left = table.tried(log_gains)
    order: list[int] = []
    gain_of: dict[int, float] = {}
    for n, gain in log_gains.items():
        if n in table.source.same_as:
            gain_of.setdefault(table.source.same_as[n], gain)
    while left:
        predicted = table.predicted_log_seconds(left, order)
        gains = np.array([gain_of[n] for n in left])
        order.append(left.pop(int(np.argmax(gains - predicted))))
    return order


def then_random(table: ReplayedTable, order: Sequence[int], rest: Sequence[int], seed: int) -> list[int]:
    """Return an order followed by other candidates in random order."""
    left = [n for n in table.tried(rest) if n not in set(order)]
    return [*order, *np.random.default_rng(seed).permutation(left).tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedOrder:
    """The loss of the ensemble on one table after some seconds.

    Attributes
    ----------
    table, origin : str
        Which one.
    order : str
        How configurations were ordered.
    seconds : float
        CPU seconds.
    loss : float
        Geometric mean over random orders of what follows.
    """

    table: str
    origin: str
    order: str
    seconds: float
    loss: float


def judged_table(
    table: ReplayedTable, openings: Mapping[str, Sequence[ChosenCandidate]], candidates: Sequence[Key]
) -> list[JudgedOrder]:
    """Return the losses of some openings, of the defaults and of random configurations on one table."""
    draws = [n for n, key in enumerate(candidates) if key[1].startswith("draw")]
    defaults = cheapest_first(table, defaults_and_variants(candidates))
    orders = {"defaults": defaults, "defaults, then any": defaults, "random": []}
    for name, steps in openings.items():
        orders[name] = by_rate(table, {step.candidate: float(np.log(step.gain)) for step in steps})
    rows = []
    for name, order in orders.items():
        rest = range(len(candidates)) if name == "defaults, then any" else draws
        logs = [np.log(table.losses(then_random(table, order, rest, seed), SECONDS)) for seed in range(_N_SEEDS)]
        for seconds, loss in zip(SECONDS, np.exp(np.mean(logs, axis=0)), strict=True):
            rows.append(
                JudgedOrder(
                    table=table.table.name, origin=table.table.origin, order=name, seconds=seconds, loss=float(loss)
                )
            )
    return rows


def defaults_and_variants(candidates: Sequence[Key]) -> list[int]:
    """Return the numbers of what searches began with before there were openings."""
    return [n for n, key in enumerate(candidates) if key[1] == "default" or key[1].startswith("variant")]


def judge(
    tables: Sequence[ReplayedTable],
    candidates: Sequence[Key],
    report: Callable[[str], None],
    *,
    most_steps: int = MOST_STEPS,
) -> list[JudgedOrder]:
    """Choose an opening without each origin and judge it there, beside one that need not begin with the defaults."""
    rows: list[JudgedOrder] = []
    for origin in dict.fromkeys(table.table.origin for table in tables):
        others = [table.source for table in tables if table.table.origin != origin]
        first = defaults_and_variants(candidates)
        openings = {
            "opening": choose_opening(others, range(len(candidates)), first=first, most_steps=most_steps),
            "without defaults": choose_opening(others, range(len(candidates)), most_steps=most_steps),
        }
        after = [" ".join(candidates[s.candidate]) for s in openings["opening"] if s.candidate not in first]
        report(f"without {origin}, after the defaults: {', '.join(after)}")
        for table in tables:
            if table.table.origin == origin:
                rows += judged_table(table, openings, candidates)
    return rows
