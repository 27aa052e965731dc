from __future__ import annotations

import json

import pytest

from cashmere.costs.relative import FOLLOWED, RELATIVE_COSTS, SEARCHED_SPACES, log_relative_costs
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space.named.registry import make_space

PROFILES = [
    TaskProfile(task_type=task_type, n_rows=1000, n_columns=10, n_classes=n_classes, has_categories=True)
    for task_type, n_classes in ((TaskType.BINARY, 2), (TaskType.MULTICLASS, 11), (TaskType.REGRESSION, 1))
]


def test_tables_order_algorithms():
    searched, followed = log_relative_costs("classic"), log_relative_costs("default")
    order = ("knn", "extra_trees", "random_forest", "lightgbm", "adaboost")
    assert sorted(order, key=searched.__getitem__) == list(order)
    order = ("knn", "logistic_regression", "lightgbm", "random_forest", "realmlp")
    assert sorted(order, key=followed.__getitem__) == list(order)


@pytest.mark.parametrize("space", ["classic", "default"])
def test_costs_of_algorithms_average_to_one(space):
    added = "realmlp"
    costs = [cost for name, cost in log_relative_costs(space).items() if "=" not in name and name != added]
    assert sum(costs) == pytest.approx(0.0, abs=0.02)


def test_costs_grow_with_classes_for_boosters_more_than_for_others():
    few, many = log_relative_costs("default", 2), log_relative_costs("default", 11)
    boosters = ("lightgbm", "xgboost", "catboost", "hist_gradient_boosting")
    others = ("mlp", "knn", "random_forest", "extra_trees")
    assert min(many[name] - few[name] for name in boosters) > max(many[name] - few[name] for name in others)
    assert all(few["mlp"] - few[name] > many["mlp"] - many[name] for name in boosters)
    assert log_relative_costs("default", 1) == few


def test_exponents_average_to_zero_and_belong_to_algorithms_of_the_table():
    table = json.loads(RELATIVE_COSTS.read_text())[FOLLOWED]
    assert sum(table["exponents"].values()) == pytest.approx(0.0, abs=0.02)
    assert table["exponents"].keys() <= table["relative_costs"].keys()


def test_every_algorithm_and_choice_of_the_table_is_in_the_space_default():
    offered = set()
    for profile in PROFILES:
        for name, choice in make_space("default", profile).configuration_space.items():
            values = map(str, getattr(choice, "choices", ()))
            offered |= set(values) if name == "algorithm" else {f"{name}={value}" for value in values}
    assert log_relative_costs("default").keys() <= offered


@pytest.mark.parametrize("name", sorted(SEARCHED_SPACES))
def test_spaces_that_search_rounds_follow_no_path(name):
    for profile in PROFILES[:1] if name in ("sklearn12", "imbalance", "autosklearn6") else PROFILES:
        assert all(algorithm.path is None for algorithm in make_space(name, profile).algorithms)
