from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenInClause,
    ForbiddenLessThanRelation,
    ForbiddenOrConjunction,
    GreaterThanCondition,
    InCondition,
    LessThanCondition,
    NotEqualsCondition,
    OrConjunction,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)

from cashmere.exceptions import SpaceError, UnknownNameError
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.space.splitting.restriction import lift, restrict


def switch(name, values="ab", **settings):
    return CategoricalHyperparameter(name, list(values), **settings)


def make_space(*content):
    """Return a space of two operators, p (a, b, c) and q (x, y, z), and more content; functions get the space."""
    space = ConfigurationSpace(space=[switch("p", "abc"), switch("q", "xyz")], name="full")
    for make in content:
        space.add(make(space) if callable(make) else make)
    return space


def child(name="child"):
    return switch(name, "uv")


CONDITIONS = {
    "equals": lambda s: EqualsCondition(s["child"], s["p"], "a"),
    "in": lambda s: InCondition(s["child"], s["p"], ["a", "b"]),
    "not equals": lambda s: NotEqualsCondition(s["child"], s["p"], "c"),
    "and": lambda s: AndConjunction(
        EqualsCondition(s["child"], s["p"], "a"), InCondition(s["child"], s["q"], ["x", "y"])
    ),
    "or": lambda s: OrConjunction(
        EqualsCondition(s["child"], s["p"], "a"), InCondition(s["child"], s["q"], ["x", "y"])
    ),
    "or in and": lambda s: AndConjunction(
        OrConjunction(EqualsCondition(s["child"], s["p"], "a"), EqualsCondition(s["child"], s["p"], "b")),
        NotEqualsCondition(s["child"], s["q"], "x"),
    ),
}


@pytest.mark.parametrize(
    ("kind", "allowed", "is_kept"),
    [
        ("equals", {"p": ["a", "c"]}, True),
        ("equals", {"p": ["b", "c"]}, False),
        ("in", {"p": ["b", "c"]}, True),
        ("in", {"p": ["c"]}, False),
        ("not equals", {"p": ["b", "c"]}, True),
        ("not equals", {"p": ["c"]}, False),
        ("and", {"p": ["a"], "q": ["y", "z"]}, True),
        ("and", {"p": ["a"], "q": ["z"]}, False),
        ("and", {"p": ["b"]}, False),
        ("or", {"p": ["b"], "q": ["y"]}, True),
        ("or", {"p": ["a"], "q": ["z"]}, True),
        ("or", {"p": ["b"], "q": ["z"]}, False),
        ("or in and", {"p": ["b"], "q": ["y"]}, True),
        ("or in and", {"p": ["c"]}, False),
        ("or in and", {"q": ["x"]}, False),
    ],
)
def test_children_that_can_never_be_active_are_removed(kind, allowed, is_kept):
    part = restrict(make_space(child(), CONDITIONS[kind]), allowed)
    assert list(part) == (["p", "q", "child"] if is_kept else ["p", "q"])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", CONDITIONS)
@pytest.mark.parametrize("p", ["a", "b", "c", "ab", "bc", "abc"])
@pytest.mark.parametrize("q", ["x", "z", "xz", "yz"])
def test_a_part_holds_exactly_the_configurations_with_allowed_values(kind, p, q):
    full = make_space(
        child(),
        CONDITIONS[kind],
        lambda s: ForbiddenAndConjunction(
            ForbiddenInClause(s["p"], ["b", "c"]),
            ForbiddenEqualsClause(s["q"], "z"),
            ForbiddenEqualsClause(s["child"], "v"),
        ),
    )
    part = restrict(full, {"p": p, "q": q})
    expected = {c for c in all_configurations(full) if c["p"] in p and c["q"] in q}
    found = all_configurations(part)
    lifted = [lift(configuration, full) for configuration in found]
    assert set(lifted) == expected
    assert len(lifted) == len(expected)
    assert all(lift(configuration, part) == original for configuration, original in zip(lifted, found, strict=True))


def all_configurations(space):
    encoder = SpaceEncoder(space)
    return [encoder.decode(row) for row in encoder.enumerate(10_000)]


def test_grandchildren_disappear_with_their_parents():
    kernel, gamma, epochs = switch("kernel", ["rbf", "linear"]), UniformFloatHyperparameter("gamma", 0, 1), child("w")
    space = make_space(
        [kernel, gamma, epochs],
        lambda s: EqualsCondition(kernel, s["p"], "b"),
        EqualsCondition(gamma, kernel, "rbf"),
        GreaterThanCondition(epochs, gamma, 0.5),
    )
    assert set(restrict(space, {"p": ["a", "c"]})) == {"p", "q"}
    assert set(restrict(space, {"p": ["a", "b"]})) == set(space)


def test_numeric_conditions_stay():
    depth, low, high = UniformIntegerHyperparameter("depth", 1, 9), child("low"), child("high")
    space = make_space([depth, low, high], LessThanCondition(low, depth, 3), GreaterThanCondition(high, depth, 5))
    part = restrict(space, {"p": ["b"]})
    assert {str(condition) for condition in part.conditions} == {str(condition) for condition in space.conditions}


def test_a_child_that_is_active_without_its_parent_loses_the_condition():
    a_only, other = child("a_only"), child("other")
    space = make_space(
        [a_only, other], lambda s: EqualsCondition(a_only, s["p"], "a"), NotEqualsCondition(other, a_only, "v")
    )
    part = restrict(space, {"p": ["b", "c"]})
    assert set(part) == {"p", "q", "other"}
    assert not part.conditions
    for configuration in all_configurations(part):
        assert lift(configuration, space)["other"] == configuration["other"]


def test_forbidden_clauses_stay_while_they_can_apply():
    c = child("c_child")
    space = make_space(
        c,
        [UniformIntegerHyperparameter("i", 5, 9), UniformIntegerHyperparameter("j", 1, 4)],
        lambda s: EqualsCondition(c, s["p"], "c"),
        lambda s: [
            ForbiddenAndConjunction(ForbiddenInClause(s["p"], ["b", "c"]), ForbiddenEqualsClause(s["q"], "y")),
            ForbiddenAndConjunction(ForbiddenEqualsClause(c, "v"), ForbiddenEqualsClause(s["q"], "z")),
            ForbiddenLessThanRelation(s["i"], s["j"]),
            ForbiddenOrConjunction(
                ForbiddenEqualsClause(s["q"], "y"),
                ForbiddenAndConjunction(ForbiddenEqualsClause(c, "v"), ForbiddenEqualsClause(s["q"], "x")),
            ),
        ],
    )
    only_a = {str(clause) for clause in restrict(space, {"p": ["a"], "q": ["x", "z"]}).forbidden_clauses}
    assert only_a == {"Forbidden: i < j"}
    a_and_b = restrict(space, {"p": ["a", "b"], "q": ["y", "x"]}).forbidden_clauses
    assert {str(clause) for clause in a_and_b} == {
        "Forbidden: i < j",
        "(Forbidden: p in {'b'} && Forbidden: q == 'y')",
        "(Forbidden: q == 'y')",
    }


def test_the_full_space_is_not_changed():
    full = make_space(child(), CONDITIONS["and"], lambda s: ForbiddenEqualsClause(s["q"], "z"))
    before, conditions = str(full), [id(condition) for condition in full.conditions]
    indices = [condition.dlcs[0].parent_vector_id for condition in full.conditions]
    restrict(full, {"p": ["c"]})
    part = restrict(full, {"p": ["a"], "q": ["y", "z"]})
    assert str(full) == before
    assert indices == [condition.dlcs[0].parent_vector_id for condition in full.conditions]
    assert not {id(condition) for condition in part.conditions} & set(conditions)


def test_order_weights_default_and_meta_are_kept():
    meta = {"groups": ["a", ["b", ["c"], "d"]], "group_paths": {"b": ["g"], "c": ["g", "h"]}, "note": 1}
    p = switch("p", "abcd", weights=[1, 2, 3, 0], default_value="c", meta=meta)
    part = restrict(ConfigurationSpace(space=[p]), {"p": {"d", "c", "b"}})["p"]
    assert part.choices == ("b", "c", "d")
    np.testing.assert_allclose(part.probabilities, [0.4, 0.6, 0])
    assert part.default_value == "c"
    assert part.meta == {"groups": [["b", ["c"], "d"]], "group_paths": {"b": ["g"], "c": ["g", "h"]}, "note": 1}
    assert p.meta["groups"] == ["a", ["b", ["c"], "d"]]


def test_choices_without_any_weight_become_equally_probable():
    p = switch("p", "abcd", weights=[1, 0, 0, 0])
    part = restrict(ConfigurationSpace(space=[p]), {"p": ["b", "c"]})
    np.testing.assert_allclose(part["p"].probabilities, [0.5, 0.5])


def test_the_default_moves_to_the_first_legal_combination():
    space = make_space(
        lambda s: ForbiddenAndConjunction(ForbiddenInClause(s["p"], ["b", "c"]), ForbiddenInClause(s["q"], ["y"])),
        lambda s: ForbiddenAndConjunction(ForbiddenEqualsClause(s["p"], "b"), ForbiddenEqualsClause(s["q"], "z")),
    )
    part = restrict(space, {"p": ["b", "c"], "q": ["y", "z"]})
    assert dict(part.get_default_configuration()) == {"p": "c", "q": "z"}


def forbid_with_b(*values):
    u = child("u")
    return make_space(
        u,
        lambda s: EqualsCondition(u, s["p"], "b"),
        lambda s: ForbiddenAndConjunction(ForbiddenEqualsClause(s["p"], "b"), ForbiddenInClause(u, values)),
    )


def test_defaults_of_other_categoricals_move_too():
    part = restrict(forbid_with_b("u"), {"p": ["b"]})
    assert dict(part.get_default_configuration()) == {"p": "b", "q": "x", "u": "v"}
    assert part["u"].choices == ("u", "v")


def test_a_part_without_a_legal_default_is_refused():
    with pytest.raises(SpaceError, match="default configuration"):
        restrict(forbid_with_b("u", "v"), {"p": ["b"]})


def test_single_choices_and_constants_survive_the_way_to_the_full_space():
    constant, number = Constant("k", "fixed"), UniformFloatHyperparameter("n", 1e-3, 1.0, log=True)
    space = make_space(
        [constant, number],
        lambda s: EqualsCondition(constant, s["p"], "b"),
        lambda s: EqualsCondition(number, s["p"], "b"),
    )
    part = restrict(space, {"p": ["b"], "q": ["z"]})
    for row in SpaceEncoder(part).sample(50, np.random.default_rng(0)):
        configuration = SpaceEncoder(part).decode(row)
        assert dict(lift(configuration, space)) == dict(configuration)
        assert configuration["k"] == "fixed"
    by_vector = Configuration(part, vector=part.sample_configuration().get_array())
    assert lift(by_vector, space)["p"] == "b"


def test_nothing_to_limit_copies_the_space():
    space = make_space(child(), CONDITIONS["or"])
    assert restrict(space, {}) == space


@pytest.mark.parametrize(
    ("allowed", "error", "text"),
    [
        ({"r": ["a"]}, UnknownNameError, "'r'"),
        ({"p": ["d"]}, SpaceError, "at least one of"),
        ({"n": [1]}, SpaceError, "categorical"),
    ],
)
def test_errors_name_what_cannot_be_restricted(allowed, error, text):
    space = make_space(UniformIntegerHyperparameter("n", 1, 3))
    with pytest.raises(error, match=text):
        restrict(space, allowed)
