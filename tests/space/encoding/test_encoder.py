from __future__ import annotations

import math

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    BetaFloatHyperparameter,
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
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    NotEqualsCondition,
    OrConjunction,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from ConfigSpace.conditions import Conjunction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cashmere.records.trial import configuration_key
from cashmere.space.encoding import CatalogueEncoder, SpaceEncoder


@st.composite
def hyperparameters(draw, name):
    kind = draw(
        st.sampled_from(["float", "log float", "int", "log int", "categorical", "weighted", "ordinal", "const"])
    )
    if kind in ("float", "log float"):
        # Few decimals: ConfigSpace rounds values to 13, but not the bounds its conditions compare with.
        lower = draw(st.integers(1, 10_000)) / 10_000
        upper = lower + draw(st.integers(1, 1000))
        return UniformFloatHyperparameter(name, lower, upper, log=kind == "log float")
    if kind in ("int", "log int"):
        lower = draw(st.integers(1, 20))
        return UniformIntegerHyperparameter(name, lower, lower + draw(st.integers(1, 300)), log=kind == "log int")
    size = draw(st.integers(2, 5))
    values = [f"v{i}" for i in range(size)] if draw(st.booleans()) else list(range(0, 10 * size, 10))
    if kind == "ordinal":
        return OrdinalHyperparameter(name, values, default_value=draw(st.sampled_from(values)))
    if kind == "const":
        return Constant(name, draw(st.sampled_from(["c", 3, 0.5])))
    weights = [float(i + 1) for i in range(size)] if kind == "weighted" else None
    return CategoricalHyperparameter(name, values, weights=weights, default_value=draw(st.sampled_from(values)))


def legal_values(hp):
    if isinstance(hp, CategoricalHyperparameter):
        return list(hp.choices)
    if isinstance(hp, OrdinalHyperparameter):
        return list(hp.sequence)
    if isinstance(hp, Constant):
        return [hp.value]
    return [hp.lower, hp.default_value, hp.upper]


@st.composite
def conditions(draw, child, parent, is_root):
    values = legal_values(parent)
    value = draw(st.sampled_from(values))
    # ConfigSpace itself stumbles over NotEquals on a parent that may be inactive.
    kinds = ["equals", "in", "not equals"] if is_root and not isinstance(parent, Constant) else ["equals", "in"]
    orderable = not isinstance(parent, CategoricalHyperparameter | Constant)
    kind = draw(st.sampled_from(kinds + (["less", "greater"] if orderable else [])))
    if kind == "in":
        return InCondition(child, parent, draw(st.lists(st.sampled_from(values), min_size=1, unique=True)))
    made = {
        "equals": EqualsCondition,
        "not equals": NotEqualsCondition,
        "less": LessThanCondition,
        "greater": GreaterThanCondition,
    }
    return made[kind](child, parent, value)


@st.composite
def spaces(draw):
    """Draw a conditional space of 2 to 8 hyper-parameters; every child comes after its parents.

    Only one conjunction: ConfigSpace treats an And and an Or over the same conditions as one.
    """
    space = ConfigurationSpace(seed=0)
    n = draw(st.integers(2, 8))
    hps = [draw(hyperparameters(f"h{i}")) for i in range(n)]
    space.add(hps)
    added, children = [], set()
    for i in range(1, n):
        n_parents = draw(st.integers(0, 1 if any(isinstance(made, Conjunction) for made in added) else 2))
        parents = draw(st.permutations(hps[:i]))[:n_parents]
        made = [draw(conditions(hps[i], parent, parent.name not in children)) for parent in parents]
        if made:
            children.add(hps[i].name)
            conjunction = draw(st.sampled_from([AndConjunction, OrConjunction]))
            added.append(made[0] if len(made) == 1 else conjunction(*made))
    space.add(added)
    return space


def check(configuration: Configuration) -> None:
    configuration.check_valid_configuration()
    Configuration(configuration.config_space, values=dict(configuration)).check_valid_configuration()


relaxed = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@relaxed
@given(spaces(), st.integers(0, 2**32))
def test_samples_are_valid_and_round_trip(space, seed):
    encoder = SpaceEncoder(space)
    rows = encoder.sample(20, np.random.default_rng(seed))
    assert rows.shape == (20, len(encoder.names))
    assert np.all(rows[:, ~encoder.is_categorical] <= 1)
    assert np.all((rows >= 0) | (rows == -1))
    configurations = [encoder.decode(row) for row in rows]
    for configuration in configurations:
        check(configuration)
    again = encoder.encode(configurations)
    assert again == pytest.approx(rows, abs=1e-9)
    assert [encoder.decode(row) for row in again] == configurations
    # Once rounded by ConfigSpace, nothing changes any more: keys are stable over any number of round trips.
    for configuration, row in zip(configurations, again, strict=True):
        reloaded = Configuration(space, values=dict(configuration))
        assert configuration_key(reloaded) == configuration_key(configuration)
        assert np.array_equal(encoder.encode([reloaded])[0], row)


@relaxed
@given(spaces(), st.integers(0, 2**32))
def test_configurations_of_configspace_round_trip(space, seed):
    space.seed(seed % 2**31)
    encoder = SpaceEncoder(space)
    for configuration in [space.get_default_configuration(), *space.sample_configuration(5)]:
        try:
            configuration.check_valid_configuration()
        except ValueError:  # ConfigSpace settles And-conditions in the wrong order at times
            continue
        decoded = encoder.decode(encoder.encode([configuration])[0])
        assert decoded.keys() == configuration.keys()
        for name, value in configuration.items():
            if isinstance(value, float):
                assert decoded[name] == pytest.approx(value, rel=1e-9, abs=1e-10 * getattr(space[name], "upper", 1.0))
            else:
                assert decoded[name] == value


def n_exchanges(space, before, after):
    """Count parameters that changed although they were and are active."""
    before, after = dict(before), dict(after)
    return sum(before[name] != after[name] for name in before.keys() & after.keys())


@relaxed
@given(spaces(), st.integers(0, 2**32))
def test_neighbours_are_valid_and_differ_in_one_exchange(space, seed):
    encoder = SpaceEncoder(space)
    rng = np.random.default_rng(seed)
    row = encoder.sample(1, rng)[0]
    start = encoder.decode(row)
    row = encoder.encode([start])[0]
    neighbours = encoder.neighbours(row, rng)
    assert len(np.unique(encoder.keys(neighbours))) == len(neighbours)
    for neighbour in neighbours:
        configuration = encoder.decode(neighbour)
        check(configuration)
        assert n_exchanges(space, start, configuration) == 1
        for name in configuration.keys() - start.keys():
            default = space[name].default_value
            assert configuration[name] == (pytest.approx(default) if isinstance(default, float) else default)


def cash_space():
    space = ConfigurationSpace(seed=1)
    algorithm = CategoricalHyperparameter("algorithm", ["svm", "tree", "dummy"], weights=[0.5, 0.3, 0.2])
    kernel = CategoricalHyperparameter("kernel", ["rbf", "poly"])
    cost = UniformFloatHyperparameter("cost", 2**-15, 2**5, log=True)
    degree = UniformIntegerHyperparameter("degree", 2, 5)
    trees = UniformIntegerHyperparameter("trees", 1, 30, log=True)
    depth = OrdinalHyperparameter("depth", ["shallow", "middle", "deep"])
    version = Constant("version", "v1")
    space.add([algorithm, kernel, cost, degree, trees, depth, version])
    space.add(
        [
            EqualsCondition(kernel, algorithm, "svm"),
            EqualsCondition(cost, algorithm, "svm"),
            AndConjunction(EqualsCondition(degree, kernel, "poly"), GreaterThanCondition(degree, cost, 1e-3)),
            InCondition(trees, algorithm, ["tree", "dummy"]),
            EqualsCondition(depth, algorithm, "tree"),
            EqualsCondition(version, algorithm, "tree"),
        ]
    )
    space.add(
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(space["depth"], "deep"), ForbiddenInClause(space["trees"], [1, 2, 3])
        )
    )
    return space


def test_or_of_forbidden_clauses_forbids_each():
    space = ConfigurationSpace({"a": ["y", "x", "z"], "b": ["p", "q"]})
    space.add(ForbiddenOrConjunction(ForbiddenEqualsClause(space["a"], "x"), ForbiddenEqualsClause(space["b"], "q")))
    encoder = SpaceEncoder(space)
    rows = encoder.sample(50, np.random.default_rng(0))
    assert {tuple(dict(encoder.decode(row)).values()) for row in rows} == {("y", "p"), ("z", "p")}


def test_encoding_follows_the_formulas():
    space = cash_space()
    encoder = SpaceEncoder(space)
    values = {"algorithm": "tree", "trees": 4, "depth": "middle", "version": "v1"}
    row = encoder.encode([Configuration(space, values=values)])[0]
    encoded = dict(zip(encoder.names, row, strict=True))
    assert "version" not in encoded
    assert encoded == pytest.approx(
        {
            "algorithm": 1,
            "trees": (math.log(4) - math.log(0.5)) / (math.log(30.5) - math.log(0.5)),
            "depth": 0.5,
            "kernel": 2,
            "cost": -1,
            "degree": -1,
        }
    )
    assert encoder.is_categorical.tolist() == [name in ("algorithm", "kernel") for name in encoder.names]
    values = {"algorithm": "svm", "kernel": "poly", "cost": 2**-5, "degree": 3}
    encoded = dict(zip(encoder.names, encoder.encode([Configuration(space, values=values)])[0], strict=True))
    assert encoded["cost"] == pytest.approx(0.5)
    assert encoded["degree"] == pytest.approx(1.5 / 4)


def test_sample_frequencies_agree_with_configspace():
    space = cash_space()
    n = 6000
    ours = SpaceEncoder(space).sample(n, np.random.default_rng(0))
    encoder = SpaceEncoder(space)
    theirs = encoder.encode(space.sample_configuration(n))
    for column, name in enumerate(encoder.names):
        if name == "cost":
            edges = np.quantile(theirs[theirs[:, column] >= 0, column], np.linspace(0.1, 0.9, 9))
            ours[:, column] = np.where(ours[:, column] < 0, -1, np.searchsorted(edges, ours[:, column]))
            theirs[:, column] = np.where(theirs[:, column] < 0, -1, np.searchsorted(edges, theirs[:, column]))
        for value in np.unique(np.concatenate([ours[:, column], theirs[:, column]])):
            share_ours, share_theirs = (ours[:, column] == value).mean(), (theirs[:, column] == value).mean()
            noise = math.sqrt(max(share_theirs * (1 - share_theirs), 1e-3) * 2 / n)
            assert abs(share_ours - share_theirs) < 5 * noise, (name, value)


def test_priors_that_are_not_uniform_are_kept():
    space = ConfigurationSpace(seed=0)
    space.add(
        [
            NormalFloatHyperparameter("a", mu=1.0, sigma=0.5, lower=0.0, upper=4.0),
            BetaFloatHyperparameter("b", alpha=2, beta=8, lower=-1.0, upper=1.0),
            NormalIntegerHyperparameter("c", mu=5, sigma=2, lower=1, upper=20),
        ]
    )
    encoder = SpaceEncoder(space)
    rows = encoder.sample(3000, np.random.default_rng(0))
    theirs = encoder.encode(space.sample_configuration(3000))
    assert rows.mean(axis=0) == pytest.approx(theirs.mean(axis=0), abs=0.02)
    assert rows.std(axis=0) == pytest.approx(theirs.std(axis=0), abs=0.02)
    for row in rows[:50]:
        check(encoder.decode(row))


def test_forbidden_clauses_reject_samples_and_neighbours():
    space = ConfigurationSpace(seed=0)
    a = CategoricalHyperparameter("a", ["x", "y", "z"])
    b, c = UniformIntegerHyperparameter("b", 0, 9), UniformIntegerHyperparameter("c", 0, 9, default_value=9)
    space.add([a, b, c])
    space.add([ForbiddenEqualsClause(a, "z"), ForbiddenLessThanRelation(c, b)])
    encoder = SpaceEncoder(space)
    rng = np.random.default_rng(0)
    rows = encoder.sample(500, rng)
    assert len(rows) == 500
    everything = encoder.enumerate(1000)
    assert len(everything) == 2 * 55
    assert np.all(np.isin(encoder.keys(rows), encoder.keys(everything)))
    neighbours = encoder.neighbours(rows[0], rng)
    assert np.all(np.isin(encoder.keys(neighbours), encoder.keys(everything)))


def test_sampling_gives_up_on_an_impossible_space():
    space = ConfigurationSpace(seed=0)
    space.add(UniformIntegerHyperparameter("a", 0, 1, default_value=0))
    encoder = SpaceEncoder(space)
    encoder.compiled.forbidden = [type("Never", (), {"holds": lambda self, raw: np.ones(raw.shape[1], dtype=bool)})()]
    assert encoder.sample(5, np.random.default_rng(0), max_tries=20).shape == (0, 1)


def test_rare_survivors_of_forbidden_clauses_are_found():
    space = ConfigurationSpace(seed=0)
    a = CategoricalHyperparameter("a", list(range(500)))
    space.add(a)
    space.add(ForbiddenInClause(a, list(range(1, 499))))
    assert len(SpaceEncoder(space).sample(50, np.random.default_rng(0))) == 50


def test_fixed_choice_is_kept():
    encoder = SpaceEncoder(cash_space())
    rows = encoder.sample(20, np.random.default_rng(0), fixed={"algorithm": 1})
    assert np.all(rows[:, encoder.names.index("algorithm")] == 1)
    assert encoder.choices("algorithm").tolist() == [0, 1, 2]
    assert encoder.choices("trees").tolist() == encoder.choices("missing").tolist() == []


def test_enumeration_lists_every_configuration_once():
    space = ConfigurationSpace(seed=0)
    a = CategoricalHyperparameter("a", ["x", "y"])
    b, c = UniformIntegerHyperparameter("b", 1, 3), OrdinalHyperparameter("c", [1, 10])
    d = Constant("d", 1)
    space.add([a, b, c, d])
    space.add([EqualsCondition(b, a, "x"), GreaterThanCondition(c, b, 1), EqualsCondition(d, a, "y")])
    encoder = SpaceEncoder(space)
    found = {configuration_key(encoder.decode(row)) for row in encoder.enumerate(100)}
    assert found == {configuration_key(configuration) for configuration in space.sample_configuration(300)}
    assert len(encoder.enumerate(100)) == len(found) == 6
    assert encoder.enumerate(5) is None
    assert SpaceEncoder(cash_space()).enumerate(10**6) is None


def test_neighbour_numbers_stay_in_range_and_differ():
    space = ConfigurationSpace({"x": (0.0, 1.0), "n": (1, 2), "m": (1, 1000)}, seed=0)
    encoder = SpaceEncoder(space)
    rng = np.random.default_rng(0)
    row = encoder.encode([Configuration(space, values={"x": 0.0, "n": 2, "m": 1000})])[0]
    moved = np.concatenate([encoder.neighbours(row, rng) for _ in range(300)])
    x, n = moved[:, encoder.names.index("x")], moved[:, encoder.names.index("n")]
    assert np.all((moved >= 0) & (moved <= 1))
    # N(0, 0.2^2) cut at 0 has mean 0.2 sqrt(2/pi).
    assert x[x > 0].mean() == pytest.approx(0.2 * math.sqrt(2 / math.pi), abs=0.02)
    assert np.count_nonzero(n == 0.25) == 300


def test_drawn_neighbours_come_from_the_neighbourhood_without_repetition():
    space = ConfigurationSpace({"a": list("abcd"), "b": list("abcd"), "c": list("ab")}, seed=0)
    encoder = SpaceEncoder(space)
    rng = np.random.default_rng(0)
    rows = encoder.sample(3, rng)
    drawn = encoder.draw_neighbours(rows, [5, 5, 50], rng)
    assert len(drawn) == 5 + 5 + 7
    assert np.all((drawn[:5] != rows[0]).sum(axis=1) == 1)
    assert len(np.unique(encoder.keys(drawn[10:]))) == 7


@relaxed
@given(spaces(), st.integers(0, 2**32))
def test_rows_put_together_level_by_level_are_those_drawn_at_once(space, seed):
    encoder = SpaceEncoder(space)
    rows = encoder.sample(10, np.random.default_rng(seed))
    assert np.all(encoder.allowed(rows))
    assert np.concatenate([*encoder.levels, []]).size == encoder.n_dims
    active = encoder.activity(rows)
    assert np.array_equal(active, (rows >= 0) & (rows != encoder.inactive_row()))
    for row in rows:
        built = encoder.inactive_row()
        for level in encoder.levels:
            columns = level[encoder.activity(built[None])[0, level]]
            built[columns] = row[columns]
        assert np.array_equal(built, row)


def test_forbidden_rows_are_not_allowed():
    encoder = SpaceEncoder(cash_space())
    row = encoder.encode(
        [Configuration(encoder.space, {"algorithm": "tree", "trees": 4, "depth": "deep", "version": "v1"})]
    )[0]
    clash = row.copy()
    clash[encoder.names.index("trees")] = 0.0
    assert encoder.allowed(np.stack([row, clash])).tolist() == [True, False]


def test_bins_of_an_integer_fill_the_unit_range():
    encoder = SpaceEncoder(cash_space())
    assert [name for name, is_one in zip(encoder.names, encoder.is_integer, strict=True) if is_one] == [
        name for name in encoder.names if name in ("degree", "trees", "depth")
    ]
    for name, size in (("degree", 4), ("trees", 30), ("depth", 3)):
        column = encoder.names.index(name)
        positions = np.linspace(0, 1, 2001)
        centres, lower, upper = encoder.bins(column, positions)
        inside = (positions >= lower - 1e-12) & (positions <= upper + 1e-12)
        assert np.all(inside)
        assert np.all((lower < centres) & (centres < upper))
        edges = np.unique(np.round(np.concatenate([lower, upper]), 12))
        assert edges[[0, -1]].tolist() == [0, 1]
        assert len(edges) == size + 1


def test_prior_of_choices():
    encoder = SpaceEncoder(cash_space())
    assert encoder.probabilities(encoder.names.index("algorithm")) == pytest.approx([0.5, 0.3, 0.2])
    assert encoder.probabilities(encoder.names.index("kernel")) == pytest.approx([0.5, 0.5])


def test_keys_tell_rows_apart():
    grid = np.stack(np.meshgrid(*[np.arange(8.0)] * 4), axis=-1).reshape(-1, 4)
    encoder = SpaceEncoder(ConfigurationSpace({name: list(range(8)) for name in "abcd"}))
    assert len(np.unique(encoder.keys(grid))) == len(grid)
    assert np.array_equal(encoder.keys(grid[::-1].copy())[::-1], encoder.keys(grid))


def test_bound_with_more_decimals_than_configspace_keeps_is_legal():
    space = ConfigurationSpace({"gamma": (2**-15, 8.0)})
    configuration = SpaceEncoder(space).decode(np.array([0.0]))
    check(configuration)
    assert configuration["gamma"] == pytest.approx(2**-15)


class TestCatalogueEncoder:
    @pytest.fixture
    def catalogue(self):
        space = cash_space()
        encoder = SpaceEncoder(space)
        return [encoder.decode(row) for row in encoder.sample(40, np.random.default_rng(0))]

    @pytest.fixture
    def encoder(self, catalogue):
        return CatalogueEncoder(catalogue[0].config_space, catalogue)

    def test_draws_each_listed_configuration_once(self, encoder, catalogue):
        drawn = [encoder.decode(row) for row in encoder.sample(1000, np.random.default_rng(1))]
        assert len(drawn) == len({configuration_key(c) for c in drawn})
        assert {id(c) for c in drawn} <= {id(c) for c in catalogue}
        assert len(drawn) == len(set(catalogue)) < len(catalogue)  # "dummy" has few configurations

    def test_fixed_choices_hold(self, encoder):
        code = encoder.space["algorithm"].choices.index("dummy")
        rows = encoder.sample(1000, np.random.default_rng(1), fixed={"algorithm": code})
        assert {encoder.decode(row)["algorithm"] for row in rows} == {"dummy"}

    def test_nothing_has_neighbours(self, encoder):
        rows = encoder.sample(3, np.random.default_rng(1))
        assert encoder.draw_neighbours(rows, [5, 5, 5], np.random.default_rng(1)).shape == (0, encoder.n_dims)

    def test_enumerates_itself(self, encoder, catalogue):
        n = len(set(catalogue))
        assert len(encoder.enumerate(n)) == n
        assert encoder.enumerate(n - 1) is None
