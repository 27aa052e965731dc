"""Seconds per suggestion of every strategy, on a CASH space, after 50, 250 and 1000 observations.

    python -m benchmarks.timings.suggestion_time [--space volcano] [--strategies bo random] [--repeats 10]

Losses and the predictions of 2000 rows (two classes, log loss) are synthetic; nothing is trained. Each call gets a
`History` with one more observation than the last, as in a study. One thread. With `--out`, rows are added to a file,
and what it holds is not measured again. `--batch 64` measures decisions of which 64 are taken together, as beside 256
workers.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace, EqualsCondition, Float, Integer

from benchmarks.runs.row_file import RowFile
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import MissingParameterError
from cashmere.protocols import BatchStrategy, Strategy, TableAware
from cashmere.records.trial import History, Observation, Outcome, Suggestion, Trial, TrialStatus
from cashmere.records.work_budget import WorkBudget
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies import make_strategy, strategy_names


@dataclass(frozen=True, kw_only=True)
class SuggestionSeconds:
    """CPU seconds of a suggestion, of which some are made in one call: the median and the 90 % quantile of calls."""

    space: str
    strategy: str
    observations: int
    batch: int
    repeats: int
    median: float
    upper: float


def synthetic_space(n_algorithms: int = 10, n_own: int = 5, n_shared: int = 49) -> ConfigurationSpace:
    """Return a CASH space of 100 parameters, 55 of them active: an algorithm, its own and shared ones."""
    space = ConfigurationSpace(name="synthetic")
    algorithm = CategoricalHyperparameter("algorithm", [f"a{i}" for i in range(n_algorithms)])
    space.add(algorithm)
    for i in range(n_algorithms):
        own = [
            Float(f"a{i}:rate", (1e-4, 1.0), log=True),
            Integer(f"a{i}:depth", (1, 12)),
            Integer(f"a{i}:trees", (10, 1000), log=True),
            CategoricalHyperparameter(f"a{i}:kind", ["x", "y", "z"]),
            Float(f"a{i}:share", (0.1, 1.0)),
        ][:n_own]
        space.add(own)
        space.add([EqualsCondition(child, algorithm, f"a{i}") for child in own])
    for j in range(n_shared):
        kind = j % 3
        name = f"step{j}"
        space.add(
            Float(name, (0.0, 1.0))
            if kind == 0
            else Integer(name, (1, 50))
            if kind == 1
            else CategoricalHyperparameter(name, list("abcd"))
        )
    return space


def named_space(name: str) -> ConfigurationSpace:
    """Return the synthetic space or one of `cashmere.space.named.registry`, for a binary task of 5000 rows."""
    if name == "synthetic":
        return synthetic_space()
    from cashmere.data.task import TaskProfile, TaskType
    from cashmere.space.named.registry import make_space

    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=5000, n_columns=20, n_classes=2, has_categories=True)
    return make_space(name, profile).configuration_space


def made_up_observations(space: ConfigurationSpace, n: int) -> tuple[Observation, ...]:
    """Return n successful observations with a loss that depends smoothly on the configuration."""
    rng = np.random.default_rng(0)
    encoder = SpaceEncoder(space)
    rows = encoder.sample(n, rng)
    losses = 0.3 + 0.1 * np.sin(rows @ rng.normal(size=encoder.n_dims)) + 0.02 * rng.random(n)
    configurations: list[Configuration] = [encoder.decode(row) for row in rows]
    targets = made_up_targets()
    noise = rng.normal(size=(n, len(targets)))
    return tuple(
        Observation(
            trial=Trial(number=i, configuration=configuration, seed=i),
            outcome=Outcome(
                status=TrialStatus.SUCCESS,
                loss=float(loss),
                predictions=made_up_predictions(targets, float(loss), noise[i]),
            ),
        )
        for i, (configuration, loss) in enumerate(zip(configurations, losses, strict=True))
    )


def made_up_targets(n_rows: int = 2000) -> np.ndarray:
    """Return the classes of the validation rows."""
    return np.random.default_rng(1).integers(2, size=n_rows)


def made_up_predictions(targets: np.ndarray, loss: float, noise: np.ndarray) -> np.ndarray:
    """Return probabilities of two classes, better for lower losses."""
    right = np.clip(0.95 - loss + 0.15 * noise, 0.01, 0.99).astype(np.float32)
    second = np.where(targets == 1, right, 1 - right)
    return np.stack([1 - second, second], axis=1)


def time_suggestions(
    strategy: Strategy, observations: tuple[Observation, ...], repeats: int, batch: int = 1
) -> list[float]:
    """Return the seconds of each call by the suggestions made in it, after one call that fills the caches."""
    seconds = []
    metric, targets = get_metric("log_loss", TaskType.BINARY), made_up_targets().astype(np.float64)
    for seed in range(repeats + 1):
        history = History(
            observations=observations[: len(observations) - repeats + seed],
            metric=metric,
            targets=targets,
            baseline_loss=np.log(2),
            budget=WorkBudget(trials=2 * len(observations)),
        )
        made: Sequence[Suggestion | None]
        start = time.process_time()
        if batch > 1 and isinstance(strategy, BatchStrategy) and strategy.decides_in_batches:
            made = strategy.suggest_batch(history, np.random.default_rng(seed), batch)
        else:
            made = [strategy.suggest(history, np.random.default_rng(seed))]
        seconds.append((time.process_time() - start) / len(made))
    return seconds[1:]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--space", default="synthetic")
    parser.add_argument("--strategies", nargs="+", default=strategy_names())
    parser.add_argument("--observations", nargs="+", type=int, default=[50, 250, 1000])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--batch", type=int, nargs="+", default=[1], help="suggestions made in one call")
    parser.add_argument("--out", type=Path, help="file for the rows (csv); grows")
    arguments = parser.parse_args()

    file = None if arguments.out is None else RowFile(arguments.out, SuggestionSeconds)
    settings = {"space": arguments.space, "repeats": arguments.repeats}
    done = set() if file is None else file.keys("strategy", "observations", "batch", **settings)
    space = named_space(arguments.space)
    observations = made_up_observations(space, max(arguments.observations))
    active = np.median([len(dict(observation.trial.configuration)) for observation in observations[:200]])
    print(f"space {arguments.space}: {len(space)} parameters, {active:.0f} active (median)")
    print(f"{'strategy':<24} {'observations':>12} {'batch':>6} {'median s':>10} {'p90 s':>10}")
    for name in arguments.strategies:
        strategy = make_strategy(name, space)
        if isinstance(strategy, TableAware):
            strategy = strategy.for_table({})  # a table without known meta-features
        for n, batch in itertools.product(arguments.observations, arguments.batch):
            if (name, n, batch) in done:
                continue
            try:
                seconds = time_suggestions(strategy, observations[:n], arguments.repeats, batch)
            except MissingParameterError as error:  # no artefact for the space
                print(f"{name:<24} {error}")
                break
            median, upper = (round(float(np.quantile(seconds, q)), 5) for q in (0.5, 0.9))
            print(f"{name:<24} {n:>12} {batch:>6} {median:>10.4f} {upper:>10.4f}", flush=True)
            if file is not None:
                row = SuggestionSeconds(
                    **settings, strategy=name, observations=n, batch=batch, median=median, upper=upper
                )
                file.add([row])


if __name__ == "__main__":
    main()
