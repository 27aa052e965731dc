from __future__ import annotations

import itertools
import math
import time
from collections import Counter

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenInClause,
    InCondition,
    NotEqualsCondition,
    OrConjunction,
    UniformIntegerHyperparameter,
)
from ConfigSpace.exceptions import InactiveHyperparameterSetError
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from cashmere.data.task import TaskProfile, TaskType
from cashmere.exceptions import IncompatibleParametersError, InvalidParameterError, SpaceError
from cashmere.space import SPACES, make_space
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.space.splitting.group_trees import leaves
from cashmere.space.splitting.groups import choose_group_counts, operator_choices, part_of, regroup, split
from cashmere.space.splitting.restriction import lift

CLASSIFIERS = ["SVM", "RF", "KNN", "DTC", "LR"]
COMBINE = ["SMOTEENN", "SMOTETomek"]
OVER = ["SMOTE", "SMOTENC", "BorderlineSMOTE", "KMeansSMOTE", "SVMSMOTE", "RandomOverSampler", "ADASYN"]
RESAMPLERS = [
    ["NO"],
    COMBINE,
    [
        ["SMOTE", ["SMOTENC"], ["BorderlineSMOTE", "KMeansSMOTE", "SVMSMOTE"]],
        "RandomOverSampler",
        "ADASYN",
    ],
    [
        ["ClusterCentroids"],
        ["NearMiss", "RandomUnderSampler"],
        [
            ["TomekLinks", "OneSidedSelection"],
            "InstanceHardnessThreshold",
            ["EditedNearestNeighbours", "RepeatedEditedNearestNeighbours", "AllKNN"],
            ["CondensedNearestNeighbour", "NeighbourhoodCleaningRule"],
        ],
    ],
]
UNDER = list(leaves(RESAMPLERS[3]))


def rng(seed=0):
    return np.random.default_rng(seed)


def two_operators():
    """Return the space of the paper's first experiment: five classifiers side by side, 21 resamplers in their tree."""
    classifier = CategoricalHyperparameter("classifier", CLASSIFIERS)
    resampler = CategoricalHyperparameter("resampler", leaves(RESAMPLERS), meta={"groups": RESAMPLERS})
    shrinking = CategoricalHyperparameter("shrinking", [True, False])
    space = ConfigurationSpace(space=[classifier, resampler, shrinking])
    space.add(EqualsCondition(shrinking, classifier, "SVM"))
    return space


# Step 1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "counts"),
    [
        (1, (1, 1)),
        (2, (1, 2)),
        (4, (1, 4)),
        (5, (5, 1)),
        (6, (2, 3)),
        (7, (1, 7)),
        (8, (2, 4)),
        (9, (3, 3)),
        (10, (5, 2)),
        (12, (3, 4)),
        (20, (5, 4)),
        (105, (5, 21)),
        (1000, (5, 21)),
    ],
)
def test_counts_of_the_two_operators_are_those_of_the_table(k, counts):
    assert choose_group_counts([5, 21], [5, 4], k, rng()) == counts
    parts = split(two_operators(), k, rng())
    assert len(parts) == math.prod(counts)
    assert tuple(len({part.allowed[name] for part in parts}) for name in ("classifier", "resampler")) == counts


def test_six_operators_cut_classifiers_and_preprocessors():
    n_algorithms, n_branches = [16, 13, 7, 2], [5, 4, 4, 2]
    counts = choose_group_counts(n_algorithms, n_branches, 10, rng())
    assert counts == (5, 2, 1, 1)
    assert sum(1 - g / n for g, n in zip(counts, n_algorithms, strict=True)) == pytest.approx(2.891, abs=5e-4)


def test_a_prime_number_that_no_operator_can_serve_is_lowered():
    assert choose_group_counts([5, 6], [5, 3], 13, rng()) == (4, 3)
    assert choose_group_counts([5, 4], [5, 4], 11, rng()) == (5, 2)


def test_equal_scores_are_drawn_with_equal_probability():
    drawn = Counter(choose_group_counts([6, 6], [6, 6], 2, rng(seed)) for seed in range(400))
    assert drawn.keys() == {(1, 2), (2, 1)}
    assert 150 < drawn[1, 2] < 250


@given(
    operators=st.lists(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))), max_size=4),
    k=st.integers(1, 60),
)
def test_counts_are_a_feasible_best(operators, k):
    n_algorithms, n_branches = [n for n, _ in operators], [t for _, t in operators]
    counts = choose_group_counts(n_algorithms, n_branches, k, rng())
    product = math.prod(counts)
    assert product <= k
    within = [c for c in itertools.product(*(range(1, t + 1) for t in n_branches)) if math.prod(c) == product]
    widened = [c for c in itertools.product(*(range(1, n + 1) for n in n_algorithms)) if math.prod(c) == product]
    feasible = within or widened
    assert counts in feasible

    def score(candidate):
        return sum(1 - g / n for g, n in zip(candidate, n_algorithms, strict=True))

    assert score(counts) == pytest.approx(max(map(score, feasible)))
    larger = itertools.product(*(range(1, n + 1) for n in n_algorithms))
    assert not any(product < math.prod(c) <= k for c in larger)


@pytest.mark.parametrize("k", [0, -1])
def test_less_than_one_sub_space_is_refused(k):
    with pytest.raises(InvalidParameterError, match="max_subspaces must be at least 1"):
        split(two_operators(), k, rng())


# Step 2 --------------------------------------------------------------------------------------------------------------


def sizes(groups):
    return tuple(sorted(map(len, groups)))


@pytest.mark.parametrize(("g", "expected"), [(1, (21,)), (2, (10, 11)), (3, (3, 7, 11)), (4, (1, 2, 7, 11))])
def test_few_groups_of_resamplers_have_the_sizes_of_the_paper(g, expected):
    assert {sizes(regroup(RESAMPLERS, g, rng(seed))) for seed in range(100)} == {expected}


def test_five_groups_of_resamplers_are_random():
    # One level down there are NO | 2 | 5, 2 | 1, 2, 8. The smallest, of one member, is drawn with weights 1 (NO) and 3.
    # Centroids (3/4) merge in their branch, then NO with one of the twos: 2, 3, 3, 5, 8. NO merges with centroids;
    # then four groups of two with weights 1, 2, 3, 3: only the over-samplers (2/9) have no two in their branch.
    n = 3000
    drawn = Counter(sizes(regroup(RESAMPLERS, 5, rng(seed))) for seed in range(n))
    assert drawn.keys() == {(2, 3, 3, 5, 8), (2, 2, 4, 5, 8), (2, 2, 2, 7, 8)}
    for kind, probability in {(2, 3, 3, 5, 8): 3 / 4, (2, 2, 4, 5, 8): 7 / 36, (2, 2, 2, 7, 8): 2 / 36}.items():
        assert drawn[kind] / n == pytest.approx(probability, abs=0.025)


def test_choices_side_by_side_are_cut_into_random_halves():
    assert {sizes(regroup(CLASSIFIERS, 2, rng(seed))) for seed in range(50)} == {(2, 3)}
    assert len({regroup(CLASSIFIERS, 2, rng(seed)) for seed in range(200)}) == 10
    assert regroup(CLASSIFIERS, 5, rng()) == tuple((name,) for name in CLASSIFIERS)


def test_loose_choices_of_a_node_form_one_group():
    assert regroup(["a", ["c", "d"], "b"], 2, rng()) == (("a", "b"), ("c", "d"))


@pytest.mark.parametrize("g", [0, 6])
def test_impossible_numbers_of_groups_are_refused(g):
    with pytest.raises(InvalidParameterError, match="from 1 to 5"):
        regroup(CLASSIFIERS, g, rng())


@st.composite
def trees(draw, *, prefix="", max_leaves=14):
    structure = draw(
        st.recursive(st.just(None), lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=max_leaves)
    )
    names = (f"{prefix}{i}" for i in itertools.count())

    def named(node):
        return next(names) if node is None else [named(entry) for entry in node]

    tree = named(structure)
    return tree if isinstance(tree, list) else [tree]


@given(tree=trees(), data=st.data(), seed=st.integers(0, 2**32))
def test_groups_are_a_partition(tree, data, seed):
    members = leaves(tree)
    g = data.draw(st.integers(1, len(members)))
    groups = regroup(tree, g, rng(seed))
    assert len(groups) == g
    assert all(groups)
    assert sorted(itertools.chain(*groups)) == sorted(members)
    assert groups == regroup(tree, g, rng(seed))


@given(tree=trees(), seed=st.integers(0, 100))
def test_as_many_groups_as_branches_are_the_branches(tree, seed):
    if all(isinstance(entry, list) for entry in tree):
        assert regroup(tree, len(tree), rng(seed)) == tuple(map(leaves, tree))


# Step 3 --------------------------------------------------------------------------------------------------------------


def test_ten_sub_spaces_are_those_of_the_paper_for_every_seed():
    expected = {
        (classifier, frozenset(resamplers))
        for classifier in CLASSIFIERS
        for resamplers in (["NO", *COMBINE, *OVER], UNDER)
    }
    orders = set()
    for seed in range(100):
        parts = split(two_operators(), 10, rng(seed))
        found = [(part.allowed["classifier"], frozenset(part.allowed["resampler"])) for part in parts]
        assert {(*classifier, resamplers) for classifier, resamplers in found} == expected
        orders.add(tuple(found))
    assert len(orders) > 95


def test_labels_say_what_a_part_offers():
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=200, n_columns=5, n_classes=2)
    space = make_space("imbalance", profile).configuration_space
    labels = {part.label for part in split(space, 10, rng())}
    assert {"svm | under", "svm | combine + over + none"} < labels
    assert len(labels) == 10
    assert [part.label for part in split(space, 1, rng())] == ["all"]


def test_a_space_without_operators_is_one_part():
    kernel, gamma = CategoricalHyperparameter("kernel", ["rbf", "poly"]), UniformIntegerHyperparameter("gamma", 1, 4)
    (part,) = split(ConfigurationSpace(space=[kernel, gamma]), 10, rng())
    assert part.allowed == {}
    assert part.label == "all"
    assert part.space == ConfigurationSpace(space=[kernel, gamma])
    assert part_of(part.space.get_default_configuration(), [part]) == 0


def test_conditional_choices_are_not_cut():
    learner, kernel = CategoricalHyperparameter("learner", ["svm", "tree"]), CategoricalHyperparameter("kernel", "ab")
    degree, plain = UniformIntegerHyperparameter("degree", 2, 5), CategoricalHyperparameter("plain", "cd")
    space = ConfigurationSpace(space=[learner, kernel, degree, plain])
    space.add(EqualsCondition(kernel, learner, "svm"), EqualsCondition(degree, kernel, "a"))
    assert list(operator_choices(space)) == ["learner"]
    assert {part.allowed["learner"] for part in split(space, 8, rng())} == {("svm",), ("tree",)}


def pair_space(*forbidden):
    """Return two operators of four choices in two groups each, with forbidden pairs of sets."""
    left = CategoricalHyperparameter("left", "abcd", meta={"groups": [["a", "b"], ["c", "d"]]})
    right = CategoricalHyperparameter("right", "wxyz", meta={"groups": [["w", "x"], ["y", "z"]]})
    space = ConfigurationSpace(space=[left, right])
    space.add(
        [
            ForbiddenAndConjunction(ForbiddenInClause(left, list(a)), ForbiddenInClause(right, list(b)))
            for a, b in forbidden
        ]
    )
    return space


def offers(space, k):
    return {("".join(part.allowed["left"]), "".join(part.allowed["right"])) for part in split(space, k, rng())}


def test_values_forbidden_with_every_partner_leave_the_part():
    assert offers(pair_space(("ab", "z")), 4) == {("ab", "wx"), ("ab", "y"), ("cd", "wx"), ("cd", "yz")}
    assert offers(pair_space(("a", "z"), ("b", "z")), 4) == {("ab", "wx"), ("ab", "y"), ("cd", "wx"), ("cd", "yz")}
    assert offers(pair_space(("b", "yz")), 4) == {("ab", "wx"), ("a", "yz"), ("cd", "wx"), ("cd", "yz")}


def test_parts_without_a_permitted_combination_are_dropped():
    assert offers(pair_space(("ab", "yz")), 4) == {("ab", "wx"), ("cd", "wx"), ("cd", "yz")}


def test_a_value_that_is_forbidden_by_itself_is_in_no_part():
    space = pair_space()
    space.add(ForbiddenEqualsClause(space["right"], "z"))
    assert offers(space, 4) == {("ab", "wx"), ("ab", "y"), ("cd", "wx"), ("cd", "y")}
    assert offers(space, 1) == {("abcd", "wxy")}


def test_a_configuration_of_no_part_is_refused():
    space = pair_space()
    parts = split(space, 4, rng())
    configuration = space.sample_configuration()
    others = [part for index, part in enumerate(parts) if index != part_of(configuration, parts)]
    with pytest.raises(SpaceError, match="none of the 3 parts"):
        part_of(configuration, others)


@st.composite
def user_spaces(draw):
    """Draw a space of up to three operators with discrete children under all kinds of conditions, and clauses."""
    operators = []
    for i in range(draw(st.integers(0, 3))):
        tree = draw(trees(prefix="abc"[i], max_leaves=5))
        meta = {"groups": tree} if draw(st.booleans()) else None
        operators.append(CategoricalHyperparameter(f"op{i}", leaves(tree), meta=meta))
    space = ConfigurationSpace(space=[*operators, CategoricalHyperparameter("other", [True, False])])

    def literal(child):
        parent = draw(st.sampled_from(operators))
        kind = draw(st.sampled_from([EqualsCondition, NotEqualsCondition, InCondition]))
        if kind is InCondition:
            values = draw(st.lists(st.sampled_from(parent.choices), min_size=1, unique=True))
            return InCondition(child, parent, values)
        return kind(child, parent, draw(st.sampled_from(parent.choices)))

    children = [UniformIntegerHyperparameter(f"child{i}", 1, 2) for i in range(draw(st.integers(0, 4)))]
    for child in children if operators else []:
        literals = [literal(child) for _ in range(draw(st.integers(1, 2)))]
        conjunction = draw(st.sampled_from([AndConjunction, OrConjunction]))
        two_parents = len({condition.parent.name for condition in literals}) == 2
        try:
            space.add(child, conjunction(*literals) if two_parents else literals[0])
        except InactiveHyperparameterSetError:  # ConfigSpace takes "a and b" of one child for "a or b" of another
            reject()

    default = dict(space.get_default_configuration())
    candidates = [*operators, space["other"]]
    for _ in range(draw(st.integers(0, 4)) if operators else 0):
        parts = []
        for name in draw(st.lists(st.sampled_from(range(len(candidates))), min_size=1, max_size=3, unique=True)):
            choice = candidates[name]
            parts.append(
                ForbiddenInClause(choice, draw(st.lists(st.sampled_from(choice.choices), min_size=1, unique=True)))
            )
        clause = ForbiddenAndConjunction(*parts)
        if not clause.is_forbidden_value(default):
            space.add(clause)
    return space


@pytest.mark.long
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(space=user_spaces(), k=st.integers(1, 12), seed=st.integers(0, 1000))
def test_parts_hold_every_configuration_exactly_once(space, k, seed):
    parts = split(space, k, rng(seed))
    assert 1 <= len(parts) <= k
    again = split(space, k, rng(seed))
    assert [(part.label, part.allowed) for part in parts] == [(part.label, part.allowed) for part in again]
    found = Counter()
    for index, part in enumerate(parts):
        assert all(part.allowed.values())
        encoder = SpaceEncoder(part.space)
        for row in encoder.enumerate(10_000):
            configuration = lift(encoder.decode(row), space)
            found[configuration] += 1
            assert part_of(configuration, parts) == index
    encoder = SpaceEncoder(space)
    assert found == Counter(encoder.decode(row) for row in encoder.enumerate(10_000))


# Named spaces --------------------------------------------------------------------------------------------------------


def named_spaces():
    spaces = []
    for name in SPACES:
        for task, n_classes in ((TaskType.BINARY, 2), (TaskType.MULTICLASS, 4), (TaskType.REGRESSION, 1)):
            profile = TaskProfile(
                task_type=task, n_rows=300, n_columns=8, n_classes=n_classes, has_categories=task is TaskType.BINARY
            )
            try:
                spaces.append(pytest.param(make_space(name, profile), id=f"{name}-{task}"))
            except IncompatibleParametersError:  # made for classification only
                continue
    return spaces


NAMED = named_spaces()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("named", NAMED)
def test_every_permitted_combination_of_operators_is_in_one_part(named):
    space = named.configuration_space
    operators = operator_choices(space)
    assert "algorithm" in operators
    permitted = permitted_combinations(space, operators)
    for k in (1, 10, 11):
        parts = split(space, k, rng(k))
        assert len(parts) <= k
        owners = {}
        for index, part in enumerate(parts):
            for combination in itertools.product(*part.allowed.values()):
                owners.setdefault(combination, []).append(index)
        assert all(len(owners[combination]) == 1 for combination in permitted)
        used = {(owners[c][0], name, value) for c in permitted for name, value in zip(operators, c, strict=True)}
        assert used == {(i, name, v) for i, part in enumerate(parts) for name in operators for v in part.allowed[name]}
        assert {(name, v) for _, name, v in used} == {(name, v) for name in operators for v in operators[name].choices}


def permitted_combinations(space, operators):
    clauses = [
        clause
        for clause in space.forbidden_clauses
        if {literal.hyperparameter.name for literal in getattr(clause, "dlcs", [clause])} <= operators.keys()
    ]
    return [
        combination
        for combination in itertools.product(*(choice.choices for choice in operators.values()))
        if not any(clause.is_forbidden_value(dict(zip(operators, combination, strict=True))) for clause in clauses)
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("named", NAMED)
def test_draws_of_a_part_stay_inside_and_reach_every_hyperparameter(named):
    space = named.configuration_space
    parts = split(space, 10, rng())
    for index, part in enumerate(parts):
        encoder = SpaceEncoder(part.space)
        rows = encoder.sample(1500, rng())
        for row in rows[:10]:
            configuration = encoder.decode(row)
            lifted = lift(configuration, space)
            assert dict(lifted) == dict(configuration)
            assert part_of(lifted, parts) == index
        for name, column, is_categorical in zip(encoder.names, rows.T, encoder.is_categorical, strict=True):
            inactive = len(part.space[name].choices) if is_categorical else -1
            assert (column != inactive).any(), f"{name} is never active in {part.label}"


def test_splitting_is_cheap():
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=200, n_columns=5, n_classes=2)
    space = make_space("volcano", profile).configuration_space
    seconds = []
    for seed in range(5):
        start = time.perf_counter()
        split(space, 10, rng(seed))
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.03
