from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import (
    CategoricalHyperparameter,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    InCondition,
    Integer,
    OrConjunction,
)
from scipy.stats import truncnorm

from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies.shared.parzen_densities import (
    IndependentDensities,
    JointDensities,
    SplitTrials,
    parameter_groups,
    single_parameters,
)
from cashmere.surrogates.joint_density import fit_joint
from cashmere.surrogates.tpe import fit_parzen
from contracts.strategy_contract import cash_space, finite_space, flat_space

KINDS = [(IndependentDensities, single_parameters), (JointDensities, parameter_groups)]


def split_of(space, n=40, seed=0):
    encoder = SpaceEncoder(space)
    return SplitTrials(encoder, encoder.sample(n, np.random.default_rng(seed)), np.arange(n) % 4 == 0, 25)


def names(encoder, groups):
    return [[[encoder.names[column] for column in columns] for columns in level] for level in groups]


def test_parameters_under_the_same_condition_form_a_group():
    encoder = SpaceEncoder(cash_space())
    assert names(encoder, parameter_groups(encoder)) == [
        [["algorithm", "scaler"]],
        [["forest:depth", "forest:trees"], ["knn:k"], ["svm:cost", "svm:kernel"]],
        [["svm:degree"]],
    ]
    assert sum(len(level) for level in single_parameters(encoder)) == encoder.n_dims


def test_conditions_are_told_apart_by_kind_parent_and_values():
    space = ConfigurationSpace(seed=0)
    p, q = (CategoricalHyperparameter(name, ["u", "v", "w"]) for name in "pq")
    children = {name: Float(name, (0.0, 1.0)) for name in "abcdefgh"}
    space.add(p, q, *children.values())
    space.add(
        EqualsCondition(children["a"], p, "u"),
        EqualsCondition(children["b"], q, "u"),
        InCondition(children["c"], p, ["u", "v"]),
        InCondition(children["d"], p, ["u", "w"]),
        *(
            OrConjunction(EqualsCondition(children[name], p, "u"), EqualsCondition(children[name], q, "v"))
            for name in "ef"
        ),
        OrConjunction(EqualsCondition(children["g"], p, "v"), EqualsCondition(children["g"], q, "u")),
        InCondition(children["h"], p, ["u", "v"]),
    )
    encoder = SpaceEncoder(space)
    assert names(encoder, parameter_groups(encoder))[1] == [["a"], ["b"], ["c", "h"], ["d"], ["e", "f"], ["g"]]


@pytest.mark.parametrize("space", [cash_space, flat_space, finite_space])
@pytest.mark.parametrize(("make", "groups_of"), KINDS)
def test_groups_hold_every_column_once_and_are_active_as_a_whole(space, make, groups_of):
    encoder = SpaceEncoder(space())
    groups = [columns for level in groups_of(encoder) for columns in level]
    assert sorted(np.concatenate(groups)) == list(range(encoder.n_dims))
    active = encoder.activity(encoder.sample(200, np.random.default_rng(0)))
    assert all(np.all(active[:, columns] == active[:, columns[:1]]) for columns in groups)


@pytest.mark.parametrize(("make", "groups_of"), KINDS)
def test_drawn_points_are_encoded_values_of_their_parameters(make, groups_of):
    trials = split_of(cash_space())
    densities, encoder = make(trials, prior_weight=1.0), trials.encoder
    rng = np.random.default_rng(0)
    sizes = {"algorithm": 4, "svm:kernel": 2, "scaler": 3, "svm:degree": 5, "forest:depth": 12, "knn:k": 5}
    for columns in (columns for level in groups_of(encoder) for columns in level):
        points = densities.draw(columns, 300, rng)
        assert points.shape == (300, len(columns))
        assert np.all(np.isfinite(densities.log_ratio(columns, points)))
        for column, values in zip(columns, points.T, strict=True):
            size = sizes.get(encoder.names[column])
            if size is not None:
                assert len(np.unique(values)) == size
            if encoder.is_categorical[column]:
                assert set(values) == set(range(size))
            else:
                assert np.all((values >= 0) & (values <= 1))


@pytest.mark.parametrize(("make", "groups_of"), KINDS)
@pytest.mark.parametrize("name", ["knn:k", "forest:trees", "svm:degree"])
def test_masses_of_integers_sum_to_one(make, groups_of, name):
    trials = split_of(cash_space(), n=80)
    encoder = trials.encoder
    column = encoder.names.index(name)
    values, lower, upper = np.unique(encoder.bins(column, np.linspace(0, 1, 5001)), axis=1)
    everything = SplitTrials(encoder, trials.decided, np.ones(80, dtype=bool), 25)
    ratio = make(everything, prior_weight=1.0).log_ratio(np.array([column]), values[:, None])
    prior = truncnorm(-0.5, 0.5, loc=0.5)  # g without observations
    assert np.exp(ratio) @ (prior.cdf(upper) - prior.cdf(lower)) == pytest.approx(1)
    assert ratio.min() < 0 < ratio.max()


def test_densities_are_estimated_where_the_parameter_was_active():
    trials = split_of(cash_space())
    encoder, rows = trials.encoder, trials.decided
    column, kernel = (encoder.names.index(f"svm:{name}") for name in ("cost", "kernel"))
    active = rows[:, column] >= 0
    assert 0 < active.sum() < 26  # no weight is below one
    x = np.linspace(0, 1, 5)
    good, rest = (
        fit_parzen(rows[mask & active, column], np.ones((mask & active).sum()))
        for mask in (trials.is_good, ~trials.is_good)
    )
    alone = IndependentDensities(trials, prior_weight=1.0).log_ratio(np.array([column]), x[:, None])
    assert alone == pytest.approx(good.log_density(x) - rest.log_density(x))
    codes = np.array([0, 1, 0, 1, 1])
    good, rest = (
        fit_joint(
            rows[mask & active][:, [column]],
            rows[mask & active][:, [kernel]].astype(np.int64),
            np.ones((mask & active).sum()),
            [[0.5, 0.5]],
        ).log_density(x[:, None], x[:, None], codes[:, None])
        for mask in (trials.is_good, ~trials.is_good)
    )
    columns, points = np.array([column, kernel]), np.stack([x, codes], axis=1)
    assert JointDensities(trials, prior_weight=1.0).log_ratio(columns, points) == pytest.approx(good - rest)


@pytest.mark.parametrize(("make", "groups_of"), KINDS)
def test_a_choice_without_prior_is_drawn_only_if_it_was_good(make, groups_of):
    space = ConfigurationSpace(seed=0)
    space.add(CategoricalHyperparameter("z", ["a", "b", "c"], weights=[0.5, 0.5, 0.0]))
    encoder, column = SpaceEncoder(space), np.array([0])
    rows = np.array([[0.0], [1.0], [2.0]])
    for good, expected in ((0, {0.0, 1.0}), (2, {0.0, 1.0, 2.0})):
        densities = make(SplitTrials(encoder, rows, np.arange(3) == good, 25), prior_weight=1.0)
        assert set(densities.draw(column, 200, np.random.default_rng(0)).ravel()) == expected
        assert np.all(np.isfinite(densities.log_ratio(column, rows)))


@pytest.mark.parametrize("log", [False, True])
def test_scale_of_a_number_changes_the_scale_of_the_draws_only(log):
    bounds = (1e-4, 1.0) if log else (0.0, 10.0)
    space = ConfigurationSpace(seed=0)
    space.add(Float("x", bounds, log=log), Integer("n", (1, 1000), log=log))
    trials = split_of(space)
    densities, columns = JointDensities(trials, prior_weight=1.0), np.array([0, 1])
    points = densities.draw(columns, 500, np.random.default_rng(0))
    drawn = [dict(trials.encoder.decode(row)) for row in points]
    assert all(bounds[0] <= c["x"] <= bounds[1] and c["n"] in range(1, 1001) for c in drawn)
    # On a log scale half of the draws lie below the geometric mean of the bounds, roughly.
    middles = (1e-2, np.sqrt(1000)) if log else (5.0, 500)
    for name, middle in zip("xn", middles, strict=True):
        assert 0.2 < np.mean([c[name] < middle for c in drawn]) < 0.8
