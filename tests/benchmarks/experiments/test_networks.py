"""The benefit of RealMLP: the pools it is judged in, and the choice of other origins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.followed_candidates import FollowedCandidates
from benchmarks.experiments.networks import NETWORK, VARIANTS, chosen_by_others, judged, offers, relative_cost
from cashmere.costs.relative import log_relative_costs
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import make_space


@pytest.mark.parametrize("task", [TaskType.BINARY, TaskType.REGRESSION])
def test_pools_hold_the_first_configurations_of_a_search(task):
    profile = TaskProfile(task_type=task, n_rows=500, n_columns=4, n_classes=2 if task.is_classification else 1)
    space = make_space("default", profile)
    offered = offers(space)
    found = {space.completed(values) for (name, _), values in offered.items() if name != NETWORK}
    assert found == {c for c in space.first_configurations() if c["algorithm"] != NETWORK}
    assert space.completed(offered[NETWORK, "default"]) in space.default_configurations()
    assert len({space.completed(offered[NETWORK, variant]) for variant in VARIANTS}) == len(VARIANTS)


@pytest.fixture(scope="module")
def followed():
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    noise = {("lightgbm", "first 1"): 0.5, ("mlp", "first 1"): 0.6, (NETWORK, "default"): 0.5, (NETWORK, "narrow"): 3.0}
    predictions = {key: (y + scale * rng.normal(size=200)).astype(np.float32) for key, scale in noise.items()}
    costs = log_relative_costs("default")
    seconds = {key: 10 * float(np.exp(costs[key[0]])) for key in noise}
    return FollowedCandidates(y, predictions, seconds)


def test_the_network_is_judged_beside_the_others(followed):
    rows = {row.variant: row for row in judged(followed, "made up", "nowhere")}
    assert rows.keys() == {"default", "narrow"}
    assert rows["default"].beside < rows["default"].without  # its errors are its own
    assert rows["narrow"].beside > 0.99 * rows["narrow"].without
    assert rows["default"].loss < rows["default"].mlp
    seconds = followed.cpu_seconds
    assert rows["default"].pool_seconds == pytest.approx(
        seconds["lightgbm", "first 1"] + seconds["mlp", "first 1"], abs=1e-3
    )


def test_costs_are_on_the_scale_of_the_table(followed):
    assert relative_cost(followed) == pytest.approx(log_relative_costs("default")[NETWORK], abs=0.02)


def test_a_table_does_not_count_for_its_own_variant():
    losses = {"a": (0.5, 0.9), "b": (0.9, 0.8), "c": (0.9, 0.8)}
    rows = pd.DataFrame(
        [(t, t, v, x, 1.0) for t, pair in losses.items() for v, x in zip(("default", "slow"), pair, strict=True)],
        columns=["table", "origin", "variant", "beside", "without"],
    )
    assert chosen_by_others(rows) == {"a": "slow", "b": "default", "c": "default"}
