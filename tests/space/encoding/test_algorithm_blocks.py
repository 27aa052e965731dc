from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from ConfigSpace import (
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    Integer,
    NotEqualsCondition,
    OrdinalHyperparameter,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import make_space
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.space.encoding.encoder import SpaceEncoder
from contracts.strategy_contract import cash_space, flat_space

N_CLASSES = {TaskType.BINARY: 2, TaskType.MULTICLASS: 4, TaskType.REGRESSION: 1}
CASES = [(name, task) for name in ("default", "volcano", "sklearn12", "imbalance", "autosklearn6") for task in TaskType]
CASES = [case for case in CASES if case[1] is not TaskType.REGRESSION or case[0] in ("default", "volcano")]


def named_space(name, task):
    profile = TaskProfile(task_type=task, n_rows=500, n_columns=8, n_classes=N_CLASSES[task], has_categories=True)
    return make_space(name, profile).configuration_space


@functools.cache
def blocks_of(name, task):
    return AlgorithmBlocks(SpaceEncoder(named_space(name, task)))


def small_space(largest=10, values=("u", "d")):
    """Return three algorithms, one without parameters, and an operator of all but that one."""
    space = ConfigurationSpace(name="small", seed=0)
    algorithm = CategoricalHyperparameter("algorithm", ["knn", "tree", "dummy"])
    k, weights, depth = (
        Integer("k", (1, largest)),
        CategoricalHyperparameter("weights", values),
        Integer("depth", (1, 4)),
    )
    power = Float("power", (1.0, 3.0), default=2.0)
    scaler, quantiles = (
        CategoricalHyperparameter("scaler", ["none", "quantile"]),
        Integer("quantiles", (1, 4), default=3),
    )
    space.add([algorithm, k, weights, depth, power, scaler, quantiles, Constant("fixed", 3)])
    space.add([EqualsCondition(child, algorithm, "knn") for child in (k, weights)])
    space.add([EqualsCondition(depth, algorithm, "tree"), EqualsCondition(power, weights, values[1])])
    space.add([NotEqualsCondition(scaler, algorithm, "dummy"), EqualsCondition(quantiles, scaler, "quantile")])
    return space


def test_coordinates_are_what_can_be_active_under_the_algorithm():
    blocks = AlgorithmBlocks(SpaceEncoder(small_space()))
    assert blocks.names == ("knn", "tree", "dummy")
    assert {name: set(own) for name, own in zip(blocks.names, blocks.coordinates, strict=True)} == {
        "knn": {"k", "weights=u", "weights=d", "power", "scaler=none", "scaler=quantile", "quantiles"},
        "tree": {"depth", "scaler=none", "scaler=quantile", "quantiles"},
        "dummy": set(),
    }
    assert blocks.n_dims.tolist() == [7, 4, 0]
    assert blocks.width == 7


def test_vectors_hold_encoded_values_defaults_and_zeros():
    space = small_space()
    blocks = AlgorithmBlocks(SpaceEncoder(space))
    knn = {"algorithm": "knn", "k": 1, "weights": "u", "scaler": "quantile", "quantiles": 4, "fixed": 3}
    tree = {"algorithm": "tree", "depth": 2, "scaler": "none", "fixed": 3}
    rows = blocks.encoder.encode([Configuration(space, knn), Configuration(space, tree)])
    rows = np.vstack([rows, blocks.encoder.encode([Configuration(space, {"algorithm": "dummy", "fixed": 3})])])
    assert blocks.tasks(rows).tolist() == [0, 1, 2]
    named = [dict(zip(own, v, strict=False)) for own, v in zip(blocks.coordinates, blocks.vectors(rows), strict=True)]
    assert named[0] == {
        "k": 0.05,
        "weights=u": 1,
        "weights=d": 0,
        "power": 0.5,  # inactive: its default
        "scaler=none": 0,
        "scaler=quantile": 1,
        "quantiles": 0.875,
    }
    assert named[1] == {"depth": 0.375, "scaler=none": 1, "scaler=quantile": 0, "quantiles": 0.625}
    assert not blocks.vectors(rows)[1, 4:].any()
    assert not blocks.vectors(rows)[2].any()


def test_an_inactive_categorical_is_zero_and_an_ordinal_one_number():
    space = ConfigurationSpace(seed=0)
    algorithm = CategoricalHyperparameter("algorithm", ["svm"])
    kernel, mode = CategoricalHyperparameter("kernel", ["rbf", "poly"]), CategoricalHyperparameter("mode", ["a", "b"])
    space.add([algorithm, kernel, mode, OrdinalHyperparameter("size", [1, 10, 100])])
    space.add(EqualsCondition(mode, kernel, "poly"))
    blocks = AlgorithmBlocks(SpaceEncoder(space))
    row = blocks.encoder.encode([Configuration(space, {"algorithm": "svm", "kernel": "rbf", "size": 10})])
    assert dict(zip(blocks.coordinates[0], blocks.vectors(row)[0], strict=True)) == {
        "kernel=rbf": 1,
        "kernel=poly": 0,
        "mode=a": 0,
        "mode=b": 0,
        "size": 0.5,
    }


@pytest.mark.parametrize("conditional", [False, True])
def test_a_space_without_a_free_choice_of_algorithm_is_one_task(conditional):
    space = flat_space()
    if conditional:
        space.add(CategoricalHyperparameter("algorithm", ["p", "q"]))
        space.add(EqualsCondition(space["algorithm"], space["z"], "b"))
    blocks = AlgorithmBlocks(SpaceEncoder(space))
    rows = blocks.encoder.sample(20, np.random.default_rng(0))
    assert blocks.names == ("all",)
    assert blocks.n_dims.tolist() == [blocks.width] == [6 if conditional else 4]
    assert not blocks.tasks(rows).any()
    assert blocks.vectors(rows).shape == (20, blocks.width)


def test_an_algorithm_that_is_forbidden_or_never_drawn_keeps_its_code():
    space = ConfigurationSpace(seed=0)
    space.add(CategoricalHyperparameter("algorithm", ["a", "b", "c"], weights=[1, 0, 1]))
    blocks = AlgorithmBlocks(SpaceEncoder(space))
    assert blocks.names == ("a", "b", "c")
    assert set(blocks.tasks(blocks.encoder.sample(20, np.random.default_rng(0)))) == {0, 2}
    assert blocks.width == 0
    assert blocks.vectors(np.zeros((3, 1))).shape == (3, 0)


@pytest.mark.parametrize(("name", "task"), CASES)
def test_every_named_space_fits_into_the_unit_cube(name, task):
    blocks = blocks_of(name, task)
    rows = blocks.encoder.sample(8000, np.random.default_rng(0))
    tasks, vectors = blocks.tasks(rows), blocks.vectors(rows)
    assert vectors.shape == (8000, blocks.width) and vectors.dtype == np.float64
    assert vectors.min() >= 0 and vectors.max() <= 1
    assert set(tasks) == set(range(len(blocks.names)))
    for task_number, own in enumerate(blocks.coordinates):
        here = vectors[tasks == task_number]
        assert len(own) == len(set(own)) == blocks.n_dims[task_number]
        assert not here[:, len(own) :].any()
        if not blocks.encoder.space.forbidden_clauses:  # they may take a choice away from an algorithm
            assert (np.ptp(here[:, : len(own)], axis=0) > 0).all(), own


@pytest.mark.parametrize(("name", "task"), CASES)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_equal_vectors_mean_equal_configurations(name, task, seed):
    """Neighbours differ in one parameter, and those that become inactive leave no trace."""
    blocks, rng = blocks_of(name, task), np.random.default_rng(seed)
    start = blocks.encoder.sample(3, rng)
    rows = np.vstack(
        [start, blocks.encoder.draw_neighbours(start, [40] * 3, rng), blocks.encoder.sample(20, rng), start]
    )
    described = np.column_stack([blocks.tasks(rows), blocks.vectors(rows)])
    same_vector = (described[:, None] == described[None]).all(axis=2)
    same_configuration = blocks.encoder.keys(rows)[:, None] == blocks.encoder.keys(rows)[None]
    np.testing.assert_array_equal(same_vector, same_configuration)


@pytest.mark.parametrize(("name", "task"), CASES)
def test_signature_is_stable_and_survives_json(name, task):
    first, second = (AlgorithmBlocks(SpaceEncoder(named_space(name, task))) for _ in range(2))
    assert json.loads(json.dumps(first.signature())) == second.signature()
    assert tuple(second.signature()) == first.names
    assert first.coordinates == second.coordinates


def test_signature_differs_when_a_range_or_a_choice_does():
    one = AlgorithmBlocks(SpaceEncoder(small_space())).signature()
    assert one["knn"]["k"] == {"kind": "integer", "lower": 1, "upper": 10, "log": False}
    assert one["dummy"] == {}
    assert one != AlgorithmBlocks(SpaceEncoder(small_space(largest=11))).signature()
    assert one != AlgorithmBlocks(SpaceEncoder(small_space(values=("u", "x")))).signature()
    assert one != AlgorithmBlocks(SpaceEncoder(cash_space())).signature()
