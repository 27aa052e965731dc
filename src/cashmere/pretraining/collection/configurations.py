"""The configurations of a collection: the same ones for all tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.util import generate_grid

from cashmere.base.seeds import seed_of
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space.space import ALGORITHM, Space
from cashmere.space.splitting.restriction import lift, restrict
from cashmere.storage.store import plain_values

REFERENCE = TaskProfile(task_type=TaskType.MULTICLASS, n_rows=700, n_columns=20, n_classes=3)
"""Task for which configurations are drawn. It has numeric columns only, so that no choice among encodings is drawn
and all tables get the default encoding."""


def draw_configurations(space: Space, n_per_algorithm: int, seed: int) -> list[dict[str, Any]]:
    """Draw configurations of every algorithm of a space.

    Parameters
    ----------
    space : Space
        The space; its algorithms are treated one after the other.
    n_per_algorithm : int
        Distinct configurations of each; an algorithm that has no more is listed completely.
    seed : int
        Seed of the draws; those of an algorithm depend only on its name and sub-space.

    Returns
    -------
    list of dict
        Active values by name of the hyper-parameter, in the order of the algorithms; the default configuration of
        each comes first.
    """
    drawn: list[dict[str, Any]] = []
    for default in space.default_configurations():
        name = default[ALGORITHM]
        part = restrict(space.configuration_space, {ALGORITHM: [name]})
        found = {configuration_text(values): values for values in [plain_values(default)]}
        for configuration in _candidates(part, n_per_algorithm, seed_of(seed, name)):
            if len(found) == n_per_algorithm:
                break
            values = plain_values(lift(configuration, space.configuration_space))
            found.setdefault(configuration_text(values), values)
        drawn += found.values()
    return drawn


def _candidates(part: ConfigurationSpace, n: int, seed: int) -> Iterator[Configuration]:
    """Yield all configurations of a small space in random order, else random ones, possibly repeated."""
    most = part.estimate_size()  # an upper bound if there are conditions
    if most <= 100 * n:
        steps = {name: int(hp.size) for name, hp in part.items() if np.isfinite(hp.size)}
        grid = sorted(
            generate_grid(part, steps), key=lambda configuration: configuration_text(plain_values(configuration))
        )
        order: Sequence[int] = np.random.default_rng(seed).permutation(len(grid)).tolist()
        yield from (grid[i] for i in order)
        return
    part.seed(seed)
    for _ in range(100):
        yield from part.sample_configuration(max(2, n))


def configuration_text(values: Mapping[str, Any]) -> str:
    """Return a text that is equal for equal values."""
    return json.dumps(dict(values), sort_keys=True)
