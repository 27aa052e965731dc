"""Pools of trials that differ in the positions they offer."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.positions import RULES, Way, judge
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric


def way(parameter, losses):
    return Way(parameter, [np.full(8, loss, dtype=np.float32) for loss in losses], losses)


@pytest.mark.parametrize(
    ("rule", "parameter", "found"),
    [
        ("best", "rounds", [0.3]),
        ("rounds one later", "rounds", [0.35]),
        ("rounds one later", "trees", [0.3]),
        ("rounds two earlier", "rounds", [0.5]),
        ("rounds best and one later", "rounds", [0.3, 0.35]),
        ("two neighbours", "neighbours", [0.4]),
        ("trees best and four earlier", "trees", [0.3, 0.5]),
    ],
)
def test_positions_of_a_trial(rule, parameter, found):
    predictions = way(parameter, [0.5, 0.4, 0.3, 0.35]).at(rule)
    assert [float(each[0]) for each in predictions] == pytest.approx(found)


def test_last_position_stands_for_later_ones():
    assert len(way("rounds", [0.5, 0.4]).at("rounds best and one later")) == 1


def test_rows_that_chose_do_not_judge():
    y = np.zeros(8)
    ways = [way("rounds", [3.0, 2.0, 1.0, 2.0]), way("", [4.0])]
    metric = get_metric("rmse", TaskType.REGRESSION)
    losses = {rule: judge(y, metric, ways, rule, table="t", seed=0, trials=2, pool=2).loss for rule in RULES}
    assert losses["best"] == pytest.approx(1.0)
    assert losses["rounds one later"] == pytest.approx(2.0)
