from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, EqualsCondition, Float, Integer

from cashmere.acquisition.local_search import EXHAUSTIVE, ascend, maximise_per_algorithm
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import make_space
from cashmere.space.encoding import CatalogueEncoder, SpaceEncoder
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from contracts.strategy_contract import cash_space, finite_space, flat_space


def bowl_space():
    """Return two algorithms with three and two numbers, and one of 12 configurations."""
    space = ConfigurationSpace(seed=0)
    algorithm = CategoricalHyperparameter("algorithm", ["p", "q", "tiny"])
    own = {
        "p": [Float("p:x", (0.0, 1.0)), Float("p:y", (1e-4, 1.0), log=True), Integer("p:n", (1, 40))],
        "q": [Float("q:x", (0.0, 1.0)), CategoricalHyperparameter("q:kind", ["a", "b", "c"])],
        "tiny": [Integer("tiny:n", (1, 6)), CategoricalHyperparameter("tiny:kind", ["a", "b"])],
    }
    space.add(algorithm, *own["p"], *own["q"], *own["tiny"])
    for name, children in own.items():
        space.add([EqualsCondition(child, algorithm, name) for child in children])
    return space


@pytest.fixture
def blocks():
    return AlgorithmBlocks(SpaceEncoder(bowl_space()))


def bowl(blocks):
    """Return minus the squared distance of the vector from 0.3 in every coordinate, and count the calls."""

    def score(rows):
        score.calls += 1
        wanted = np.where(np.arange(blocks.width) < blocks.n_dims[blocks.tasks(rows)][:, None], 0.3, 0.0)
        return -np.square(blocks.vectors(rows) - wanted).sum(axis=1)

    score.calls = 0
    return score


def test_ascents_reach_the_top_of_a_bowl(blocks):
    score, rng = bowl(blocks), np.random.default_rng(0)
    starts = blocks.encoder.sample(20, rng, fixed={"algorithm": 0})
    rows, values = ascend(blocks.encoder, starts, score, rng, fixed=["algorithm"])
    assert (values >= score(starts)).all()
    np.testing.assert_array_equal(values, score(rows))
    assert (blocks.tasks(rows) == 0).all()
    assert np.median(values) > -0.01 > np.median(score(starts))


def test_without_fixed_parameters_the_algorithm_may_change(blocks):
    rng = np.random.default_rng(0)
    starts = blocks.encoder.sample(5, rng, fixed={"algorithm": 0})
    rows, _ = ascend(blocks.encoder, starts, lambda rows: -np.abs(blocks.tasks(rows) - 1.0), rng)
    assert (blocks.tasks(rows) == 1).all()


def test_excluded_rows_are_left_or_worth_nothing(blocks):
    rng = np.random.default_rng(1)
    starts = blocks.encoder.sample(6, rng, fixed={"algorithm": 0})
    rows, values = ascend(blocks.encoder, starts, bowl(blocks), rng, fixed=["algorithm"], excluded=starts)
    assert np.isfinite(values).all()
    assert not np.isin(blocks.encoder.keys(rows), blocks.encoder.keys(starts)).any()
    finite = SpaceEncoder(finite_space())
    everything = finite.enumerate(100)
    rows, values = ascend(finite, everything[:3], lambda rows: rows[:, 0], rng, excluded=everything)
    np.testing.assert_array_equal(rows, everything[:3])
    assert (values == -np.inf).all()


def test_without_starts_nothing_is_reached(blocks):
    rows, values = ascend(blocks.encoder, np.empty((0, 8)), bowl(blocks), np.random.default_rng(0))
    assert rows.shape == (0, 8) and values.shape == (0,)


@pytest.mark.parametrize("name", ["default", "volcano", "autosklearn6"])
def test_every_row_on_the_way_is_a_valid_configuration_of_its_algorithm(name):
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=500, n_columns=8, n_classes=2, has_categories=True)
    blocks = AlgorithmBlocks(SpaceEncoder(make_space(name, profile).configuration_space))
    encoder, rng = blocks.encoder, np.random.default_rng(0)
    starts = encoder.sample(4, rng)
    moved, owner = encoder.coordinate_moves(starts, rng, fixed=["algorithm"])
    assert encoder.allowed(moved).all()
    np.testing.assert_array_equal(blocks.tasks(moved), blocks.tasks(starts)[owner])
    np.testing.assert_array_equal(encoder.activity(moved), moved != encoder.inactive_row())
    for row in moved[:: max(len(moved) // 60, 1)]:
        configuration = encoder.decode(row)
        configuration.check_valid_configuration()
        np.testing.assert_allclose(encoder.encode([configuration])[0], row, atol=1e-9)


def test_moves_follow_the_rules_of_each_kind():
    space = ConfigurationSpace({"x": (0.0, 1.0), "n": (1, 41), "kind": ["a", "b", "c"], "one": (3, 4)}, seed=0)
    space.add(Integer("log", (1, 1000), log=True))
    encoder, rng = SpaceEncoder(space), np.random.default_rng(0)
    start = encoder.sample(1, rng)
    columns = {name: encoder.names.index(name) for name in encoder.names}
    start[0, columns["x"]] = 0.95
    start[0, columns["n"]] = 2.5 / 41  # n = 3
    moved, owner = encoder.coordinate_moves(start, rng, n_draws=400)
    assert not owner.any()
    changed = {name: moved[moved[:, column] != start[0, column], column] for name, column in columns.items()}
    assert sum(map(len, changed.values())) == len(moved) == 4 * 400 + 2
    assert ((moved != start).sum(axis=1) == 1).all()
    assert changed["x"].min() >= 0 and changed["x"].max() <= 1
    assert np.mean(changed["x"] > 0.95) == pytest.approx(0.099 / (0.5 + 0.099), abs=0.06)  # truncated at 1
    values = sorted({encoder.decode(row)["n"] for row in moved} - {3})
    assert values == [1, 2, *range(4, 12)]  # the window 3 - 8 .. 3 + 8 within the range
    assert sorted(changed["kind"]) == sorted({0.0, 1.0, 2.0} - {start[0, columns["kind"]]})
    assert len(np.unique(changed["one"])) == 1
    before = encoder.decode(start[0])["log"]
    logs = {encoder.decode(row)["log"] for row in moved} - {before}
    assert min(logs) < before < max(logs) and max(logs) <= 4.2 * (before + 1)  # 1000^0.2 is 4


def test_the_best_of_every_algorithm_is_returned_best_first(blocks):
    score, rng = bowl(blocks), np.random.default_rng(0)
    decided = blocks.encoder.sample(5, rng)
    rows, values = maximise_per_algorithm(blocks, score, decided, rng)
    np.testing.assert_array_equal(values, score(rows))
    assert sorted(blocks.tasks(rows)) == [0, 1, 2]
    assert (np.diff(values) <= 0).all()
    everything = blocks.encoder.enumerate(EXHAUSTIVE, fixed={"algorithm": 2})
    assert values[blocks.tasks(rows) == 2] == score(everything).max()
    only, _ = maximise_per_algorithm(blocks, score, decided, rng, algorithms=np.array([1]))
    assert blocks.tasks(only).tolist() == [1]


def test_same_generator_gives_the_same_result(blocks):
    decided = blocks.encoder.sample(5, np.random.default_rng(0))
    one, two = (maximise_per_algorithm(blocks, bowl(blocks), decided, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])


def test_small_algorithms_are_exhausted_then_left_out():
    blocks, rng = AlgorithmBlocks(SpaceEncoder(finite_space())), np.random.default_rng(0)
    decided = np.empty((0, blocks.encoder.n_dims))
    for n_left in (8, 5, 2):
        rows, _ = maximise_per_algorithm(blocks, lambda rows: rows.sum(axis=1), decided, rng)
        assert not np.isin(blocks.encoder.keys(rows), blocks.encoder.keys(decided)).any()
        assert len(rows) <= min(n_left, 3)
        decided = np.vstack([decided, rows])
    rows, values = maximise_per_algorithm(
        blocks, lambda rows: rows.sum(axis=1), blocks.encoder.enumerate(100), np.random.default_rng(0)
    )
    assert rows.shape == (0, blocks.encoder.n_dims) and values.shape == (0,)


def test_equal_scores_are_broken_by_the_generator():
    blocks = AlgorithmBlocks(SpaceEncoder(finite_space()))
    nothing = np.empty((0, blocks.encoder.n_dims))
    firsts = {
        maximise_per_algorithm(blocks, lambda rows: np.zeros(len(rows)), nothing, np.random.default_rng(seed))[0][
            0
        ].tobytes()
        for seed in range(30)
    }
    assert len(firsts) > 5


@pytest.mark.parametrize("make", [cash_space, flat_space])
def test_a_catalogue_is_searched_completely(make):
    space = make()
    catalogue = space.sample_configuration(300)
    blocks, rng = AlgorithmBlocks(CatalogueEncoder(space, catalogue)), np.random.default_rng(0)
    listed = blocks.encoder.encode(catalogue)
    weights = rng.normal(size=listed.shape[1])
    rows, values = maximise_per_algorithm(blocks, lambda rows: rows @ weights, listed[:10], rng)
    assert np.isin(blocks.encoder.keys(rows), blocks.encoder.keys(listed[10:])).all()
    for row, value in zip(rows, values, strict=True):
        others = listed[10:][blocks.tasks(listed[10:]) == blocks.tasks(row[None])]
        assert value == pytest.approx((others @ weights).max())
