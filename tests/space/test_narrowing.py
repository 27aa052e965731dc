"""Spaces with narrower ranges."""

from __future__ import annotations

from dataclasses import replace

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from ConfigSpace import (
    Categorical,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    Integer,
    NotEqualsCondition,
)
from sklearn.dummy import DummyClassifier

from cashmere import AutoClassifier
from cashmere.data.task import TaskProfile, TaskType
from cashmere.exceptions import InvalidParameterError, SpaceError, UnknownNameError
from cashmere.metalearning.opening import shipped_opening
from cashmere.space import Algorithm, Operator, Space, Subspace, make_space

PROFILE = TaskProfile(task_type=TaskType.BINARY, n_rows=1000, n_columns=8, n_classes=2, has_categories=True)


def build(values, context):
    return DummyClassifier()


def nested(profile):
    kind = Categorical("kind", ["a", "b", "c"], default="a")
    size = Integer("size", (1, 9), default=3)
    depth = Integer("depth", (1, 5), default=2)
    how = Categorical("how", ["x", "y", "z"], default="x", weights=[8, 1, 1])
    return Subspace(
        hyperparameters=[kind, size, depth, how],
        conditions=[NotEqualsCondition(size, kind, "a"), EqualsCondition(depth, kind, "c")],
        forbidden=[ForbiddenAndConjunction(ForbiddenEqualsClause(kind, "b"), ForbiddenEqualsClause(size, 9))],
    )


def rate(profile):
    return Subspace(hyperparameters=[Float("rate", (0.01, 1.0), log=True, default=0.1)])


NESTED = Algorithm(name="nested", build=build, subspace=nested)
PLAIN = Algorithm(name="plain", build=build, subspace=rate)


def make(**changes):
    return Space(**{"name": "test", "algorithms": (NESTED, PLAIN), "profile": PROFILE} | changes)


def drawn(space, n=200):
    space.configuration_space.seed(0)
    return space.configuration_space.sample_configuration(n)


def test_numbers_and_choices_stay_within_their_new_ranges():
    space = make().narrowed_to({"nested:depth": (3, 4), "nested:how": ["y", "z"], "plain:rate": (0.2, 0.4)})
    found = drawn(space)
    assert {c["nested:depth"] for c in found if "nested:depth" in c} == {3, 4}
    assert {c["nested:how"] for c in found if "nested:how" in c} == {"y", "z"}
    assert all(0.2 <= c["plain:rate"] <= 0.4 for c in found if "plain:rate" in c)
    nested, plain = space.default_configurations()
    assert nested["nested:how"] == "y"
    assert plain["plain:rate"] == pytest.approx(0.2)
    assert space.completed({"algorithm": "nested", "nested:kind": "c"})["nested:depth"] == 3


@pytest.mark.parametrize(("name", "given"), [("nested:kind", ["a", "b"]), ("nested:size", (1, 8))])
def test_what_conditions_and_clauses_name_cannot_be_narrowed(name, given):
    with pytest.raises(InvalidParameterError, match="on which no other depends"):
        make().narrowed_to({name: given})


def test_operators_can_be_narrowed_too():
    space = make(operators={"step": (Operator(name="wide", build=build, subspace=rate),)}).narrowed_to(
        {"wide:rate": (0.5, 1.0)}
    )
    assert min(c["wide:rate"] for c in drawn(space)) >= 0.5


def test_the_space_itself_is_not_changed_and_the_narrower_one_travels():
    whole = make()
    before = str(whole.configuration_space)
    space = whole.narrowed_to({"plain:rate": (0.2, 0.4)})
    assert str(make().configuration_space) == str(whole.configuration_space) == before
    again = cloudpickle.loads(cloudpickle.dumps(space))
    assert str(again.configuration_space) == str(space.configuration_space)
    twice = space.narrowed_to({"plain:rate": (0.3, 0.4)})
    assert twice.configuration_space["plain:rate"].lower == pytest.approx(0.3)


def test_variants_outside_the_ranges_are_left_out():
    more = replace(PLAIN, variants=lambda profile: [{"rate": 0.3}, {"rate": 0.9}])
    space = make(algorithms=(more,)).narrowed_to({"plain:rate": (0.2, 0.4)})
    assert [c["plain:rate"] for c in space.first_configurations()] == pytest.approx([0.2, 0.3])


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("plain:rate", (0.4, 0.2), "lower one first"),
        ("plain:rate", (0.2, 0.2), "lower one first"),
        ("plain:rate", (0.2, 2.0), "from 0.01 to 1"),
        ("plain:rate", 0.2, "two different numbers"),
        ("plain:rate", "ab", "two different numbers"),
        ("plain:rate", (np.nan, 0.2), "two different numbers"),
        ("nested:depth", (1.5, 3), "two different whole numbers"),
        ("nested:how", [], "'x', 'y', 'z'"),
        ("nested:how", "x", "a list"),
        ("nested:how", ["x", "a"], "'x', 'y', 'z'"),
    ],
)
def test_other_ranges_are_refused(name, given, expected):
    with pytest.raises(InvalidParameterError, match=expected):
        make().narrowed_to({name: given})


def test_unknown_names_are_refused():
    with pytest.raises(UnknownNameError, match="plain:rate"):
        make().narrowed_to({"plain:rat": (0.1, 0.2)})
    with pytest.raises(UnknownNameError):
        make().narrowed_to({"plain:encoding": ["ordinal"]})


def test_components_that_were_left_out_are_named_with_the_reason():
    absent = replace(PLAIN, name="absent", requires=("no_such_module",))
    with pytest.raises(SpaceError, match="'absent' cannot be narrowed here: it needs a package"):
        make(algorithms=(PLAIN, absent)).narrowed_to({"absent:rate": (0.1, 0.2)})
    with pytest.raises(InvalidParameterError, match="a mapping"):
        make().narrowed_to([("plain:rate", (0.1, 0.2))])


def test_constants_cannot_be_narrowed():
    fixed = Algorithm(name="fixed", build=build, subspace=lambda _: Subspace(hyperparameters=[Constant("size", 1)]))
    with pytest.raises(InvalidParameterError, match="uniform range"):
        make(algorithms=(fixed,)).narrowed_to({"fixed:size": (1, 2)})


def test_the_shipped_opening_keeps_to_the_ranges():
    space = make_space("default", PROFILE).narrowed_to({"lightgbm:num_leaves": (4, 6), "mlp:scaling": ["standard"]})
    steps = shipped_opening("default").gains(space)
    values = [c["lightgbm:num_leaves"] for c in steps if "lightgbm:num_leaves" in c]
    assert values
    assert max(values) <= 6


def test_a_search_keeps_to_the_ranges():
    def small(profile):
        space = make_space("default", profile).restricted_to(["extra_trees", "logistic_regression"])
        return space.narrowed_to({"extra_trees:min_samples_leaf": (5, 9)})

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 3)), columns=list("abc"))
    model = AutoClassifier(budget="8trials", space=small, isolation="none", resampling="2fold")
    model.fit(X, (X["a"] > 0).astype(int))
    tried = [o.trial.configuration for o in model.study_.history.observations]
    leaves = [c["extra_trees:min_samples_leaf"] for c in tried if c["algorithm"] == "extra_trees"]
    assert leaves
    assert 5 <= min(leaves) <= max(leaves) <= 9
