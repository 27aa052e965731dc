from __future__ import annotations

from dataclasses import replace

import lightgbm
import numpy as np
import pytest
from scipy.stats import kendalltau

from cashmere.acquisition.diversity import cross_measure
from cashmere.exceptions import ArrayError, InvalidParameterError
from cashmere.surrogates import pairwise
from cashmere.surrogates.pairwise import PairwiseSurrogate, choose_pairs, min_pairs_in_leaf, scheduled_size

SMALL = PairwiseSurrogate(n_boosters=3, n_trees=8, learning_rate=0.3)


Y = np.array([0, 1])


def probabilities(X):
    """Probabilities of two classes for two rows, which a configuration's first two columns decide."""
    second = np.column_stack([0.5 + np.sin(3 * X[:, 0]) / 2, X[:, 1] / 2])
    return np.stack([1 - second, second], axis=2)


def distances(X, Z):
    """The measure ``div`` between these predictions."""
    return np.abs(np.sin(3 * X[:, None, 0]) - np.sin(3 * Z[None, :, 0])) / 4 + np.abs(X[:, None, 1] - Z[None, :, 1]) / 4


@pytest.fixture(scope="module", name="X")
def configurations():
    rng = np.random.default_rng(0)
    X = rng.random((40, 5))
    X[rng.random(40) < 0.3, 4] = -1  # inactive
    return X


@pytest.fixture(scope="module")
def candidates():
    return np.random.default_rng(1).random((30, 5))


@pytest.fixture(autouse=True)
def no_cache():
    pairwise._ENSEMBLES.clear()


def fitted(surrogate, X, *, seed=0):
    return replace(surrogate).fit(X, list(probabilities(X)), Y, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def small(X):
    return fitted(SMALL, X)


# Settings


def depth_of(tree):
    """The largest number of forks from the root of a tree to a leaf."""
    depths = {0: 1}
    for number, fork in enumerate(tree.forks):
        depths |= {child: depths[number] + 1 for child in (fork.left, fork.right) if child >= 0}
    return max(depths.values())


def test_trees_of_openbox_are_small_and_learn_from_all_pairs(X):
    surrogate = replace(PairwiseSurrogate.openbox(), n_boosters=2, n_trees=20)
    trees = [tree for booster in fitted(surrogate, X)._ensemble.boosters for tree in booster]
    assert max(len(tree.leaf_values) for tree in trees) == 22
    assert max(depth_of(tree) for tree in trees) <= 10
    shallow = fitted(replace(surrogate, max_depth=3), X)
    assert max(depth_of(tree) for booster in shallow._ensemble.boosters for tree in booster) == 3
    one, other = fitted(replace(surrogate, feature_fraction=1.0), X).sample_pairs(X[:3], np.arange(5))
    np.testing.assert_array_equal(one, other)  # boosters differ only in the columns they draw


# Learning


def test_defaults_are_those_of_the_specification():
    surrogate, fast = PairwiseSurrogate(), PairwiseSurrogate.fast("bs")
    assert (surrogate.n_boosters, surrogate.n_trees, surrogate.learning_rate) == (10, 100, 0.03)
    assert (surrogate.feature_fraction, surrogate.row_fraction, surrogate.n_leaves) == (5 / 6, 0.8, 31)
    assert surrogate.symmetrise
    assert not surrogate.include_self
    assert fast == PairwiseSurrogate(measure="bs", n_boosters=5, learning_rate=0.1, symmetrise=False)
    assert [min_pairs_in_leaf(n) for n in (2, 50, 51)] == [3, 3, 20]


def test_pairs_of_unseen_configurations_are_ranked(X, candidates):
    surrogate = fitted(PairwiseSurrogate(n_boosters=3, n_trees=40, learning_rate=0.1), X)
    mean, _ = surrogate.predict_pairs(candidates, X)
    assert kendalltau(mean, distances(candidates, X)).statistic > 0.6
    both_unseen, _ = surrogate.predict_pairs(candidates, candidates)
    apart = ~np.eye(len(candidates), dtype=bool)
    assert kendalltau(both_unseen[apart], distances(candidates, candidates)[apart]).statistic > 0.6


def test_target_is_met_on_its_own_scale(X, small):
    targets = distances(X, X)
    apart = choose_pairs(len(X))
    mean, _ = small.predict_pairs(X, X)
    assert np.mean(np.square(mean - targets)[apart]) < 0.2 * targets[apart].var()


def test_scale_and_shift_of_the_target_are_those_of_the_prediction(X):
    """Errors grow 40 times, and on as many rows again all err by 70: ``mse`` becomes 40^2 / 2 ``mse`` + 70^2."""
    errors, y = np.sin(3 * X[:, :2]), np.array([-1e3, 1e3])
    plain = replace(SMALL, measure="mse").fit(X, list(y - errors), y, np.random.default_rng(0))
    scaled = np.concatenate([40 * errors, np.full((40, 2), 70.0)], axis=1)
    y = np.tile(y, 2)
    shifted = replace(SMALL, measure="mse").fit(X, list(y - scaled), y, np.random.default_rng(0))
    expected = 800 * plain.predict_pairs(X, X)[0] + 4900
    np.testing.assert_allclose(shifted.predict_pairs(X, X)[0], expected, rtol=1e-4)


@pytest.mark.parametrize("extra", [0, 4])
def test_prediction_is_that_of_lightgbm(X, candidates, extra, monkeypatch):
    boosters, train = [], lightgbm.train
    monkeypatch.setattr(lightgbm, "train", lambda *args, **kw: boosters.append(train(*args, **kw)) or boosters[-1])
    surrogate = replace(SMALL, symmetrise=False, refit_growth=0.5, n_extra_trees=extra)
    samples = fitted(surrogate, X).sample_pairs(candidates, np.arange(40))

    n_old = scheduled_size(40, 0.5)
    assert n_old < 40
    seen = distances(X, X)[:n_old, :n_old][choose_pairs(n_old)]
    rows = np.concatenate([np.repeat(candidates, 40, axis=0), np.tile(X, (30, 1))], axis=1).astype(np.float32)
    raw = np.stack([booster.predict(rows) for booster in boosters])
    raw = raw[:3] + raw[3:] if extra else raw
    np.testing.assert_allclose(samples.reshape(3, -1), seen.mean() + seen.std() * raw, rtol=1e-6)


def test_threshold_itself_goes_left(X):
    """Values of training data lie on both sides of thresholds, here exactly on them."""
    grid = np.round(X[:, :2] * 4) / 4
    surrogate = fitted(replace(SMALL, n_boosters=1, symmetrise=False), grid)
    fork = surrogate._ensemble.boosters[0][0].forks[0]
    tree = pairwise._Tree([pairwise._Fork(0, 0.25, ~0, ~1)], np.array([1.0, 2.0]))
    half = np.array([[0.25, np.nextafter(0.25, 1)]])
    assert pairwise._summed_values([tree], half, half).tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert fork.column in range(4)


# Pairs


def test_symmetrised_prediction_is_exactly_symmetric(X, candidates, small):
    there, back = small.predict_pairs(candidates, X), small.predict_pairs(X, candidates)
    np.testing.assert_array_equal(there[0], back[0].T)
    np.testing.assert_array_equal(there[1], back[1].T)
    one_way = fitted(replace(SMALL, symmetrise=False), X)
    forth, back = (one_way.predict_pairs(*pair)[0] for pair in ((candidates, X), (X, candidates)))
    assert not np.array_equal(forth, back.T)
    np.testing.assert_allclose(there[0], (forth + back.T) / 2, rtol=1e-12)


@pytest.mark.parametrize(("include_self", "n_rows"), [(False, 40 * 39), (True, 40 * 40)])
def test_selves_add_a_row_per_observation(X, include_self, n_rows, monkeypatch):
    seen, Dataset = [], lightgbm.Dataset
    monkeypatch.setattr(lightgbm, "Dataset", lambda rows, *args, **kw: seen.append(rows) or Dataset(rows, *args, **kw))
    fitted(replace(SMALL, include_self=include_self), X)
    (rows,) = seen  # binned once for all boosters
    assert rows.shape == (n_rows, 10)
    assert rows.dtype == np.float32
    assert len(np.unique(rows, axis=0)) == n_rows


def test_a_slice_per_booster_and_their_moments(X, candidates, small):
    members = np.array([3, 0, 3])
    samples = small.sample_pairs(candidates, members)
    mean, variance = small.predict_pairs(candidates, X[members])
    assert samples.shape == (3, 30, 3)
    np.testing.assert_array_equal(samples[:, :, 0], samples[:, :, 2])
    np.testing.assert_array_equal(mean, samples.mean(axis=0))
    np.testing.assert_array_equal(variance, samples.var(axis=0))
    assert variance.max() > 0


def test_value_of_a_pair_does_not_depend_on_its_company(candidates, small):
    together, alone = (small.sample_pairs(rows, np.array([1, 2])) for rows in (candidates, candidates[7:8]))
    np.testing.assert_array_equal(together[:, 7:8], alone)
    np.testing.assert_array_equal(together[:, :, 1:], small.sample_pairs(candidates, np.array([2])))


# Randomness


def test_same_generator_gives_the_same_predictions(X, candidates, small):
    for seed, same in ((0, True), (1, False)):
        predicted = fitted(SMALL, X, seed=seed).predict_pairs(candidates, X)
        assert np.array_equal(predicted, small.predict_pairs(candidates, X)) is same


def test_number_of_threads_changes_nothing(X, candidates):
    one, two = (fitted(replace(SMALL, n_threads=n), X).predict_pairs(candidates, X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_refit_forgets_what_was_learned_before(X, candidates, small):
    refitted = replace(SMALL).fit(X, list(probabilities(X)[::-1]), Y, np.random.default_rng(5))
    refitted.fit(X, list(probabilities(X)), Y, np.random.default_rng(0))
    np.testing.assert_array_equal(refitted.predict_pairs(candidates, X), small.predict_pairs(candidates, X))


# Few or equal observations


@pytest.mark.parametrize("growth", [None, 0.5])
@pytest.mark.parametrize("include_self", [False, True])
def test_two_observations_are_enough(X, candidates, growth, include_self):
    surrogate = fitted(replace(SMALL, refit_growth=growth, include_self=include_self), X[:2])
    mean, variance = surrogate.predict_pairs(candidates, X[:2])
    assert mean.shape == variance.shape == (30, 2)
    assert np.isfinite(mean).all()


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_observations_are_refused(X, n):
    with pytest.raises(ArrayError, match="two successful"):
        replace(SMALL).fit(X[:n], [np.ones(9)] * n, np.ones(9), np.random.default_rng(0))


@pytest.mark.parametrize("growth", [None, 0.5])
@pytest.mark.parametrize(
    ("measure", "prediction", "value"),
    [("div", np.full((2, 3), 1 / 3), 0.0), ("mse", Y - np.sqrt(0.05), 0.1), ("ce", np.eye(2) * 0.7, -np.log(4))],
)
def test_equal_targets_are_predicted_as_they_are(X, candidates, measure, prediction, value, growth):
    surrogate = replace(SMALL, measure=measure, refit_growth=growth)
    surrogate.fit(X, [prediction] * 40, Y, np.random.default_rng(0))
    mean, variance = surrogate.predict_pairs(candidates, X)
    np.testing.assert_allclose(mean, value, rtol=1e-9)
    np.testing.assert_allclose(variance, 0, atol=1e-18)


def test_equal_configurations_are_survived(X):
    surrogate = replace(SMALL).fit(np.ones((40, 5)), list(probabilities(X)), Y, np.random.default_rng(0))
    assert np.isfinite(surrogate.predict_pairs(X, X)[0]).all()


def test_predictions_that_do_not_fit_are_refused(X):
    with pytest.raises(ArrayError, match="finite"):
        replace(SMALL).fit(X, [np.full((9, 2), np.nan)] * 40, np.arange(9) % 2, np.random.default_rng(0))
    with pytest.raises(ArrayError, match="one array for each"):
        replace(SMALL).fit(X, [np.ones(9)] * 39, np.ones(9), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_boosters", 0), ("n_leaves", 1), ("row_fraction", 0.0), ("learning_rate", 1.5), ("refit_growth", -0.1)],
)
def test_impossible_settings_are_refused(name, value):
    with pytest.raises(InvalidParameterError, match=name):
        PairwiseSurrogate(**{name: value})


# From predictions


def recorded(kind, X):
    """Predictions of 60 rows that follow from the configurations."""
    rng = np.random.default_rng(2)
    scores = np.einsum("nd,drc->nrc", np.sin(3 * X[:, :2]), rng.normal(size=(2, 60, 3))) * 2
    if kind == "regression":
        return scores[:, :, 0].astype(np.float32), rng.normal(size=60)
    n_classes = 2 if kind == "binary" else 3
    odds = np.exp(scores[:, :, :n_classes])
    return (odds / odds.sum(axis=2, keepdims=True)).astype(np.float32), rng.integers(n_classes, size=60)


@pytest.mark.parametrize(
    ("kind", "measure"),
    [("binary", "div"), ("binary", "bs"), ("multiclass", "div"), ("multiclass", "ce"), ("regression", "mse")],
)
def test_fit_measures_the_predictions(X, candidates, kind, measure, monkeypatch):
    learned, Dataset = [], lightgbm.Dataset
    monkeypatch.setattr(lightgbm, "Dataset", lambda *args, **kw: learned.append(args[:2]) or Dataset(*args, **kw))
    predictions, y = recorded(kind, X)
    surrogate = replace(SMALL, measure=measure).fit(X, list(predictions), y, np.random.default_rng(0))
    targets = cross_measure(measure, predictions, predictions, y)
    first, second = np.nonzero(choose_pairs(40))
    t = targets[first, second]
    ((rows, labels),) = learned
    np.testing.assert_array_equal(rows, np.concatenate([X[first], X[second]], axis=1).astype(np.float32))
    np.testing.assert_array_equal(labels, (t - t.mean()) / t.std())
    assert kendalltau(surrogate.predict_pairs(X, X)[0], targets).statistic > 0.3


def test_diverged_model_does_not_hide_the_others(X):
    predictions, y = recorded("regression", X)
    predictions[3] = 1e8
    surrogate = replace(SMALL, measure="div").fit(X, list(predictions), y, np.random.default_rng(0))
    cut = np.clip(predictions, y.mean() - 10 * y.std(), y.mean() + 10 * y.std())
    same = replace(SMALL, measure="div").fit(X, list(cut), y, np.random.default_rng(0))
    np.testing.assert_allclose(surrogate.predict_pairs(X, X), same.predict_pairs(X, X), rtol=1e-5, atol=1e-6)
    sane = np.arange(len(X)) != 3
    targets = cross_measure("div", predictions[sane], predictions[sane], y)
    assert kendalltau(surrogate.predict_pairs(X[sane], X[sane])[0], targets).statistic > 0.3


def test_codes_of_classes_may_be_floats(X):
    predictions, y = recorded("multiclass", X)
    codes, floats = replace(SMALL, measure="bs"), replace(SMALL, measure="bs")
    codes.fit(X, list(predictions), y, np.random.default_rng(0))
    floats.fit(X, list(predictions), y.astype(float), np.random.default_rng(0))
    np.testing.assert_array_equal(codes.predict_pairs(X, X), floats.predict_pairs(X, X))


def test_weights_of_rows_count(X):
    predictions, y = recorded("binary", X)
    weights = np.arange(60) < 20
    weighted, short = replace(SMALL), replace(SMALL)
    weighted.fit(X, list(predictions), y, np.random.default_rng(0), row_weights=weights.astype(float))
    short.fit(X, list(predictions[:, :20]), y[:20], np.random.default_rng(0))
    np.testing.assert_allclose(weighted.predict_pairs(X, X), short.predict_pairs(X, X))


def test_many_rows_are_thinned(X):
    predictions, y = recorded("multiclass", X)
    surrogate = replace(SMALL, max_values=60).fit(X, list(predictions), y, np.random.default_rng(0))
    assert np.isfinite(surrogate.predict_pairs(X, X)[0]).all()


def test_data_is_left_as_it_was(X):
    predictions, y = recorded("binary", X)
    for array in (given := [X.copy(), *predictions]):
        array.flags.writeable = False
    surrogate = replace(SMALL, refit_growth=0.1).fit(given[0], given[1:], y, np.random.default_rng(0))
    surrogate.sample_pairs(given[0], np.arange(3))


# Fitting by schedule


def test_schedule_grows_by_a_share():
    assert sorted({scheduled_size(n, 0.05) for n in range(2, 251)})[-3:] == [220, 231, 242]
    assert [scheduled_size(n, 0.0) for n in (2, 3, 250)] == [2, 3, 250]
    assert [scheduled_size(n, 0.05) for n in (59, 60, 61, 62, 63)] == [58, 60, 60, 60, 63]


@pytest.fixture
def fits(monkeypatch):
    """Numbers of configurations that ensembles are fitted to."""
    sizes, train = [], PairwiseSurrogate._train
    monkeypatch.setattr(PairwiseSurrogate, "_train", lambda self, n, *rest: sizes.append(n) or train(self, n, *rest))
    return sizes


@pytest.mark.long
def test_scheduled_fit_is_the_same_with_and_without_cache(X, candidates, fits):
    surrogate = replace(SMALL, refit_growth=0.2, seed=7)
    kept = [fitted(surrogate, X[:n], seed=n).predict_pairs(candidates, X) for n in range(30, 41)]
    assert fits == [26, 31, 37]
    for n, before in zip(range(30, 41), kept, strict=True):
        pairwise._ENSEMBLES.clear()
        np.testing.assert_array_equal(fitted(surrogate, X[:n]).predict_pairs(candidates, X), before)
    assert len(fits) == 14


def test_scheduled_fit_leaves_the_generator_alone(X):
    rng = np.random.default_rng(0)
    replace(SMALL, refit_growth=0.2).fit(X, list(probabilities(X)), Y, rng)
    assert rng.random() == np.random.default_rng(0).random()


def test_scheduled_fit_looks_at_data_and_settings(X, fits):
    predictions, y = recorded("binary", X)
    surrogate = replace(SMALL, refit_growth=0.2)
    changed = predictions.copy()
    changed[36] = changed[0]
    rng = np.random.default_rng(0)
    for given, model in (
        (predictions, surrogate),
        (changed, surrogate),
        (changed, replace(surrogate, seed=1)),
        (changed, replace(surrogate, measure="bs")),
    ):
        model.fit(X, list(given), y, rng)
        model.fit(X, list(given), y, rng)
    assert fits == [37] * 4
    assert len(pairwise._ENSEMBLES) == pairwise.CACHE_SIZE


def test_later_observations_are_learned_in_between(X, fits):
    """Old observations differ by ``distances`` / 2; a new one gives two more rows a class of its own."""
    old, new = slice(28), slice(28, 40)
    predictions = np.zeros((40, 4, 13))
    predictions[:, :2, :2] = probabilities(X)
    predictions[old, 2:, 0] = 1.0
    predictions[np.arange(28, 40), 2:, np.arange(1, 13)] = 1.0
    y = np.arange(4)
    truth = cross_measure("div", predictions, predictions, y)
    np.testing.assert_allclose(truth[old, old], distances(X[old], X[old]) / 2, atol=1e-12)
    assert truth[new][choose_pairs(40)[new]].min() >= 0.5
    error = {}
    for n_extra_trees in (0, 10):
        surrogate = replace(SMALL, refit_growth=0.5, n_extra_trees=n_extra_trees)
        surrogate.fit(X, list(predictions), y, np.random.default_rng(0))
        error[n_extra_trees] = np.abs(surrogate.predict_pairs(X[old], X[new])[0] - truth[old, new]).mean()
    assert fits == [28, 28]
    assert error[10] < 0.6 * error[0]
