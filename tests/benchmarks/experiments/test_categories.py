from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.categories import LEVELS, OWN, judged, offers
from benchmarks.experiments.followed_candidates import FollowedCandidates
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import make_space


def test_catboost_takes_part_in_both_ways():
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=500, n_columns=4, n_classes=2, has_categories=True)
    space = make_space("default", profile)
    offered = offers(space)
    assert [key for key in offered if key[0] == "catboost"] == [OWN, LEVELS]
    assert space.completed(offered[OWN])["catboost:encoding"] == "ordinal"
    assert space.completed(offered[LEVELS])["catboost:encoding"] == "onehot"
    assert sum(name == "lightgbm" for name, _ in offered) > 1


def test_ensembles_differ_by_catboost_alone():
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    noise = {("lightgbm", "first 1"): 0.5, OWN: 0.4, LEVELS: 0.8}
    predictions = {key: (y + scale * rng.normal(size=300)).astype(np.float32) for key, scale in noise.items()}
    row = judged(FollowedCandidates(y, predictions, dict.fromkeys(noise, 1.0)), "made up")
    assert row.own_loss == pytest.approx(0.4, rel=0.2) and row.levels_loss == pytest.approx(0.8, rel=0.2)
    assert row.both_pool <= row.own_pool * 1.02 and row.own_pool < row.levels_pool
