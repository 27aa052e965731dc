from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from cashmere.acquisition import diversity
from cashmere.acquisition.diversity import (
    combine_ranks,
    cross_measure,
    divbo_weight,
    gaussian_draws,
    minimum_over_pool,
    optdivbo_weight,
    optimal_measure,
    order_by_ranks,
    sum_over_pool,
)
from cashmere.evaluation.metrics import METRICS
from cashmere.exceptions import InvalidParameterError

OF_VALUES = ("div", "mse", "mae", "gap_mse", "gap_mae")
OF_PROBABILITIES = ("div", "ce", "bs", "black_box", "gap_ce")
CLIP = 1e-3


def read_vectors(name):
    return json.loads((Path(__file__).parents[1] / "vectors" / f"{name}.json").read_text())


def draw_predictions(rng, n, n_rows, n_classes):
    """Draw predictions and targets; no classes means values. Rows that are exactly right and exactly wrong occur."""
    if n_classes == 0:
        return rng.normal(size=(n, n_rows)), rng.normal(size=n_rows)
    f = rng.dirichlet(np.full(n_classes, 0.5), size=(n, n_rows))
    f[0, ::2] = np.eye(n_classes)[0]
    return f, rng.integers(0, n_classes, n_rows)


def measure_of_pair(measure, f, g, y, v):
    """Add up the formulas in the docstring of `cross_measure` row by row."""
    total = 0.0
    for f_s, g_s, y_s, v_s in zip(f, g, y, v, strict=True):
        total += v_s * (row_of_values if f.ndim == 1 else row_of_probabilities)(measure, f_s, g_s, y_s)
    return total


def row_of_values(measure, f, g, y):
    e, h = y - f, y - g
    return {
        "div": (f - g) ** 2,
        "mse": 2 * e * h,
        "mae": np.sqrt(2) * np.sqrt(abs(e * h)),
        "gap_mse": 2 * (((e + h) / 2) ** 2 - (e**2 + h**2) / 2),
        "gap_mae": 2 * (abs(e + h) / 2 - (abs(e) + abs(h)) / 2),
    }[measure]


def row_of_probabilities(measure, f, g, y):
    p, q = max(f[y], CLIP), max(g[y], CLIP)
    truth = np.eye(len(f))[y]
    ce = np.log(p) + np.log(q) - 2 * np.log(p + q)
    bs = 2 * (truth - f) @ (truth - g)
    return {
        "div": np.sqrt(2) / 2 * np.linalg.norm(f - g),
        "ce": ce,
        "bs": bs,
        "black_box": 0.2 * ce + 0.1 * bs,
        "gap_ce": 2 * (-np.log((p + q) / 2) - (-np.log(p) - np.log(q)) / 2),
    }[measure]


CASES = [(measure, 0) for measure in OF_VALUES] + [(measure, c) for measure in OF_PROBABILITIES for c in (2, 3, 5)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("measure", "n_classes"), CASES)
def test_measures_agree_with_a_loop_over_pairs_and_rows(measure, n_classes, weighted):
    rng = np.random.default_rng(1)
    predictions, y = draw_predictions(rng, 7, 11, n_classes)
    A, B = predictions[:4], predictions[2:]
    weights = rng.integers(0, 4, len(y)) if weighted else np.ones(len(y))
    result = cross_measure(measure, A, B, y, prob_clip=CLIP, row_weights=weights if weighted else None)
    v = weights / weights.sum()
    expected = [[measure_of_pair(measure, f, g, y, v) for g in B] for f in A]
    assert result.dtype == np.float64
    assert result == pytest.approx(np.array(expected), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(("measure", "n_classes"), CASES)
def test_measures_are_symmetric(measure, n_classes):
    predictions, y = draw_predictions(np.random.default_rng(2), 7, 30, n_classes)
    A, B = predictions[:2], predictions[2:]
    assert np.array_equal(cross_measure(measure, A, B, y), cross_measure(measure, B, A, y).T)
    square = cross_measure(measure, predictions, predictions, y)
    assert square == pytest.approx(square.T, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize(("measure", "n_classes"), CASES)
@pytest.mark.parametrize("size", [1, 17, 60])
def test_results_do_not_depend_on_the_size_of_blocks(measure, n_classes, size, monkeypatch):
    predictions, y = draw_predictions(np.random.default_rng(3), 6, 41, n_classes)
    whole = cross_measure(measure, predictions[:5], predictions, y)
    monkeypatch.setattr(diversity, "_MEMORY_BLOCK", 2 * size)
    monkeypatch.setattr(diversity, "_CACHE_BLOCK", size)
    assert cross_measure(measure, predictions[:5], predictions, y) == pytest.approx(whole, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(("measure", "n_classes"), CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 5e-3), (np.float32, 1e-6)])
def test_narrow_types_lose_only_the_rounding_of_their_input(measure, n_classes, dtype, tolerance):
    predictions, y = draw_predictions(np.random.default_rng(4), 5, 300, n_classes)
    narrow = predictions.astype(dtype)
    exact = cross_measure(measure, predictions, predictions, y)
    assert cross_measure(measure, narrow, narrow, y) == pytest.approx(exact, abs=tolerance)


def test_repeated_rows_are_row_weights():
    predictions, y = draw_predictions(np.random.default_rng(5), 4, 9, 3)
    counts = np.array([1, 3, 0, 2, 1, 1, 0, 1, 4])
    repeated = np.repeat(predictions, counts, axis=1)
    for measure in OF_PROBABILITIES:
        weighted = cross_measure(measure, predictions, predictions, y, row_weights=counts)
        assert weighted == pytest.approx(cross_measure(measure, repeated, repeated, np.repeat(y, counts)), abs=1e-14)


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_distance_to_oneself_is_zero(n_classes):
    predictions, y = draw_predictions(np.random.default_rng(6), 5, 50, n_classes)
    assert np.all(np.diag(cross_measure("div", predictions, predictions, y)) == 0)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_distance_between_different_certain_predictions_is_one(n_classes):
    truth = np.eye(n_classes)
    f = np.stack([truth[[0, 1, 0]], truth[[1, 0, 1]]])
    assert cross_measure("div", f, f, np.zeros(3, dtype=int)) == pytest.approx(np.array([[0, 1], [1, 0]]))


def test_exact_and_impossible_predictions_stay_finite():
    y = np.array([0, 1, 1])
    f = np.stack([np.eye(2)[y], np.eye(2)[1 - y]])
    for measure in OF_PROBABILITIES:
        assert np.all(np.isfinite(cross_measure(measure, f, f, y)))
    assert cross_measure("ce", f, f, y, prob_clip=0.01)[0, 1] == pytest.approx(np.log(0.01) - 2 * np.log(1.01))
    exact = np.stack([y, y]).astype(float)
    for measure in OF_VALUES:
        assert np.all(cross_measure(measure, exact, exact, y) == 0)


def test_brier_term_is_zero_beside_an_exact_member_and_at_most_four():
    y = np.array([0, 1])
    right, wrong = np.eye(2)[y], np.eye(2)[1 - y]
    f = np.stack([right, wrong])
    assert cross_measure("bs", f, f, y) == pytest.approx(np.array([[0, 0], [0, 4]]))


@pytest.mark.parametrize("measure", ["mse", "mae", "gap_mse", "gap_mae", "unknown"])
def test_measures_of_values_refuse_probabilities(measure):
    f, y = draw_predictions(np.random.default_rng(7), 2, 5, 2)
    with pytest.raises(InvalidParameterError, match="'gap_ce' for class probabilities"):
        cross_measure(measure, f, f, y)


@pytest.mark.parametrize("measure", ["ce", "bs", "black_box", "gap_ce", "unknown"])
def test_measures_of_probabilities_refuse_values(measure):
    f, y = draw_predictions(np.random.default_rng(7), 2, 5, 0)
    with pytest.raises(InvalidParameterError, match="'gap_mae' for values"):
        cross_measure(measure, f, f, y)


def test_distance_agrees_with_vectors():
    vectors = read_vectors("div_eq3")
    f = np.array(vectors["pred"])
    y = np.zeros(f.shape[1], dtype=int)
    assert cross_measure("div", f, f, y) == pytest.approx(np.array(vectors["expected_pairwise"]), abs=1e-12)


@pytest.mark.parametrize(
    ("measure", "kind", "key"),
    [
        ("ce", "classification", "optdiv_ce_eq9_without_1_over_N"),
        ("gap_ce", "classification", "pairwise_jensen_ce"),
        ("bs", "classification", "optdiv_bs"),
        ("black_box", "classification", "optdiv_blackbox_0.2ce_0.1bs"),
        ("mse", "regression", "optdiv_mse"),
        ("mae", "regression", "optdiv_mae_paper"),
        ("gap_mae", "regression", "optdiv_mae_pairwise_gap"),
        ("div", "regression", "divbo_regression_div_mse"),
    ],
)
def test_optimal_diversities_agree_with_vectors(measure, kind, key):
    vectors = read_vectors("optdiv")[kind]
    f, y = np.array(vectors["pred"]), np.array(vectors["y"])
    result = cross_measure(measure, f, f, y, prob_clip=vectors.get("prob_clip", CLIP))
    assert result == pytest.approx(np.array(vectors[key]), rel=1e-12, abs=1e-12)


# Pairwise terms against the loss of the ensemble (docs/papers/optdivbo.md#bounds-and-gaps).

ensembles = st.tuples(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(1, 12), st.integers(2, 5))


def sum_of_pairs(measure, f, y):
    return np.triu(cross_measure(measure, f, f, y, prob_clip=1e-12), k=1).sum()


def squared_error(f, y):
    return np.mean((y - f) ** 2, axis=-1)


def absolute_error(f, y):
    return np.mean(np.abs(y - f), axis=-1)


def brier_score(f, y):
    return np.mean(np.sum((np.eye(f.shape[-1])[y] - f) ** 2, axis=-1), axis=-1)


def cross_entropy(f, y):
    return -np.mean(np.log(f[..., np.arange(len(y)), y]), axis=-1)


def draw_values(drawn):
    seed, n, n_rows, _ = drawn
    return draw_predictions(np.random.default_rng(seed), n, n_rows, 0)


def draw_probabilities(drawn):
    """Draw probabilities above zero, as the cross-entropy without clipping needs them."""
    seed, n, n_rows, n_classes = drawn
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(n_classes), size=(n, n_rows)) * 0.999 + 0.001 / n_classes, rng.integers(
        0, n_classes, n_rows
    )


@given(ensembles)
def test_squared_error_of_the_ensemble_is_the_sum_of_own_losses_and_pairs(drawn):
    f, y = draw_values(drawn)
    n = len(f)
    ensemble = squared_error(f.mean(axis=0), y)
    assert (squared_error(f, y).sum() + sum_of_pairs("mse", f, y)) / n**2 == pytest.approx(ensemble, rel=1e-10)
    ambiguity = squared_error(f, y).mean() - sum_of_pairs("div", f, y) / n**2
    assert ambiguity == pytest.approx(ensemble, rel=1e-10, abs=1e-12)


@given(ensembles)
def test_brier_score_of_the_ensemble_is_the_sum_of_own_losses_and_pairs(drawn):
    f, y = draw_probabilities(drawn)
    ensemble = brier_score(f.mean(axis=0), y)
    assert (brier_score(f, y).sum() + sum_of_pairs("bs", f, y)) / len(f) ** 2 == pytest.approx(ensemble, rel=1e-10)


@given(ensembles)
def test_pairs_with_the_pool_are_what_a_new_member_adds_to_its_own_squared_loss(drawn):
    """4.1 (b), for the last prediction as the new member; the pool holds its first member twice."""
    for measure, loss, (f, y) in (
        ("mse", squared_error, draw_values(drawn)),
        ("bs", brier_score, draw_probabilities(drawn)),
    ):
        pool, new = np.concatenate([f[:1], f[:-1]]), f[-1:]
        n = len(pool)
        before, after = loss(pool.mean(axis=0), y), loss(np.concatenate([pool, new]).mean(axis=0), y)
        added = loss(new, y)[0] + cross_measure(measure, new, pool, y).sum()
        assert added == pytest.approx((n + 1) ** 2 * after - n**2 * before, rel=1e-9, abs=1e-9)


@given(ensembles)
def test_gaps_bound_the_loss_of_the_ensemble_tighter_than_convexity_alone(drawn):
    for measure, loss, (f, y) in (
        ("gap_mse", squared_error, draw_values(drawn)),
        ("gap_mae", absolute_error, draw_values(drawn)),
        ("gap_ce", cross_entropy, draw_probabilities(drawn)),
    ):
        n = len(f)
        trivial = loss(f, y).mean()
        bound = trivial + sum_of_pairs(measure, f, y) / (n * (n - 1))
        assert loss(f.mean(axis=0), y) <= bound + 1e-12
        assert bound <= trivial + 1e-12


@given(ensembles)
def test_gap_is_twice_what_averaging_two_predictions_saves(drawn):
    for measure, loss, (f, y) in (
        ("gap_mse", squared_error, draw_values(drawn)),
        ("gap_mae", absolute_error, draw_values(drawn)),
        ("gap_ce", cross_entropy, draw_probabilities(drawn)),
    ):
        saved = loss((f[0] + f[1]) / 2, y) - (loss(f[0], y) + loss(f[1], y)) / 2
        gap = cross_measure(measure, f[:1], f[1:2], y, prob_clip=1e-12)[0, 0]
        assert gap == pytest.approx(2 * saved, abs=1e-12)


@given(ensembles)
def test_absolute_measure_of_the_paper_bounds_the_loss_of_the_ensemble(drawn):
    f, y = draw_values(drawn)
    bound = absolute_error(f, y).mean() + sum_of_pairs("mae", f, y) / len(f)
    assert absolute_error(f.mean(axis=0), y) <= bound + 1e-12


@given(ensembles)
def test_entropy_measure_of_the_paper_is_the_gap_up_to_a_constant(drawn):
    f, y = draw_probabilities(drawn)
    difference = cross_measure("gap_ce", f, f, y) - cross_measure("ce", f, f, y)
    assert difference == pytest.approx(np.full(difference.shape, np.log(4)))


def test_optimal_measure_follows_the_metric():
    chosen = {
        name: optimal_measure(name, is_classification=metric.task_types[0].is_classification)
        for name, metric in METRICS.items()
    }
    assert chosen == {
        "accuracy": "black_box",
        "balanced_accuracy": "black_box",
        "average_precision": "black_box",
        "f1": "black_box",
        "f1_macro": "black_box",
        "f1_weighted": "black_box",
        "mcc": "black_box",
        "quadratic_kappa": "black_box",
        "g_mean": "black_box",
        "roc_auc": "black_box",
        "log_loss": "ce",
        "brier": "bs",
        "mse": "mse",
        "rmse": "mse",
        "rmsle": "mse",
        "r2": "mse",
        "mae": "mae",
        "mape": "mae",
        "pinball": "mae",
        "poisson": "mse",
        "gamma": "mse",
        "tweedie": "mse",
    }
    assert optimal_measure("pinball@0.9", is_classification=False) == "mae"
    assert optimal_measure("my_own", is_classification=True) == "black_box"
    assert optimal_measure("my_own", is_classification=False) == "mse"


def test_weights_agree_with_vectors():
    vectors = read_vectors("weights")
    divbo, optdivbo = vectors["divbo"], vectors["optdivbo"]
    weight = divbo_weight(divbo["t"], beta=divbo["beta"], tau=divbo["tau"])
    assert weight == pytest.approx(divbo["w"], rel=1e-12, abs=1e-15)
    assert optdivbo_weight(optdivbo["t"], tau=optdivbo["tau"]) == pytest.approx(optdivbo["w"], rel=1e-12, abs=1e-15)


def test_weights_agree_with_the_printed_form_and_do_not_overflow():
    t = np.arange(60)
    assert divbo_weight(t, beta=0.2, tau=0.4) == pytest.approx(0.2 * (expit(0.4 * t) - 0.5))
    assert optdivbo_weight(t, tau=0.4) == pytest.approx(2 * (expit(0.4 * t) - 0.5))
    assert divbo_weight(10**9) == pytest.approx(0.025)
    assert optdivbo_weight(10**9) == 1.0


def test_weights_are_zero_before_the_first_observation():
    assert divbo_weight(0) == 0.0
    assert optdivbo_weight(0) == 0.0


def test_minimum_over_pool_agrees_with_vectors():
    vectors = read_vectors("acquisition_div")
    samples = np.array(vectors["samples_N_by_candidate_by_pool"])
    assert minimum_over_pool(samples) == pytest.approx(vectors["alpha_div_eq4"], rel=1e-12)


def test_sum_over_pool_agrees_with_vectors():
    vectors = read_vectors("acquisition_div")
    samples, counts = np.array(vectors["samples_N_by_candidate_by_pool"]), vectors["pool_multiplicity"]
    mean, spread = np.array(vectors["mu_div_eq10_multiset"]), np.array(vectors["sigma_div_multiset_population_std"])
    assert sum_over_pool(samples, counts) == pytest.approx(vectors["lcb_kappa1_multiset"], rel=1e-12)
    assert sum_over_pool(samples, counts, kappa=0) == pytest.approx(mean, rel=1e-12)
    assert sum_over_pool(samples, counts, kappa=2.5) == pytest.approx(mean - 2.5 * spread, rel=1e-12)
    assert sum_over_pool(samples, None, kappa=0) == pytest.approx(vectors["mu_div_eq10_unique"], rel=1e-12)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_multiplicity_repeats_members(seed, counts):
    samples = np.random.default_rng(seed).random((6, 3, len(counts)))
    repeated = np.repeat(samples, counts, axis=2)
    assert sum_over_pool(samples, counts) == pytest.approx(sum_over_pool(repeated, None))
    assert np.array_equal(minimum_over_pool(samples), minimum_over_pool(repeated))


def test_gaussian_draws_have_the_given_moments_and_stay_in_range():
    mean, variance = np.array([[0.5, 0.4], [0.0, 2.0]]), np.array([[0.01, 0.0], [0.04, 0.01]])
    draws = gaussian_draws(mean, variance, 100_000, np.random.default_rng(0))
    assert draws.shape == (100_000, 2, 2)
    assert draws[:, 0].mean(axis=0) == pytest.approx([0.5, 0.4], abs=2e-3)
    assert draws[:, 0].std(axis=0) == pytest.approx([0.1, 0.0], abs=2e-3)
    assert draws[:, 1].min() == 0
    assert draws[:, 1, 0].mean() == pytest.approx(0.2 / np.sqrt(2 * np.pi), abs=2e-3)
    assert np.all(draws[:, 1, 1] == 1)
    free = gaussian_draws(mean, variance, 1000, np.random.default_rng(0), clip=(-np.inf, np.inf))
    assert free.min() < 0
    assert np.corrcoef(free[:, 0, 0], free[:, 1, 0])[0, 1] == pytest.approx(0, abs=0.1)


def test_independent_draws_bias_the_minimum_downwards():
    mean, variance = np.full((1, 5), 0.5), np.full((1, 5), 0.01)
    rng = np.random.default_rng(0)
    coherent = 0.5 + 0.1 * np.repeat(rng.normal(size=(1000, 1, 1)), 5, axis=2)
    assert minimum_over_pool(gaussian_draws(mean, variance, 1000, rng)) < minimum_over_pool(coherent) - 0.05


def test_combined_ranks_agree_with_vectors():
    vectors = read_vectors("rank_combination")
    divbo, optdivbo, larger = vectors["divbo"], vectors["optdivbo"], vectors["larger"]
    alpha = combine_ranks(divbo["ei"], divbo["alpha_div"], divbo["w"])
    assert alpha == pytest.approx(divbo["alpha"], rel=1e-12)
    alpha = combine_ranks(optdivbo["ei"], -np.array(optdivbo["alpha_div_lcb"]), optdivbo["w"])
    assert alpha == pytest.approx(optdivbo["alpha"], rel=1e-12)
    alpha = combine_ranks(larger["ei"], larger["alpha_div"], larger["w"])
    assert alpha[:10] == pytest.approx(larger["alpha_first10"], rel=1e-12)
    assert alpha.argmin() == larger["argmin_alpha"]
    near_one = larger["same_data_weight_near_1"]
    assert combine_ranks(larger["ei"], larger["alpha_div"], near_one["w"]).argmin() == near_one["argmin_alpha"]


acquisition_values = st.lists(st.tuples(st.integers(-30, 30), st.integers(-30, 30)), min_size=1, max_size=20)


@given(acquisition_values, st.floats(0, 1))
def test_combined_ranks_ignore_monotone_maps(values, weight):
    performance, distance = np.array(values, dtype=float).T
    mapped = combine_ranks(np.exp(performance / 10), 3 * distance**3 - 1, weight)
    assert np.array_equal(combine_ranks(performance, distance, weight), mapped)


@given(acquisition_values)
def test_without_weight_performance_decides(values):
    performance, distance = np.array(values, dtype=float).T
    combined = combine_ranks(performance, distance, 0.0)
    first = order_by_ranks(combined, performance, np.random.default_rng(0))[0]
    assert performance[first] == performance.max()


def test_infinite_log_improvement_is_the_worst_rank():
    combined = combine_ranks([-np.inf, -3.0, -np.inf], [0.0, 0.0, 0.0], 0.0)
    assert combined == pytest.approx([2.5, 1.0, 2.5])


def test_values_that_are_not_numbers_are_refused():
    with pytest.raises(ValueError, match="nan"):
        combine_ranks([0.1, np.nan], [0.1, 0.2], 1.0)
    with pytest.raises(ValueError, match="nan"):
        combine_ranks([0.1, 0.2], [0.1, np.nan], 1.0)


def test_equal_combined_ranks_are_ordered_by_performance():
    performance, distance = np.array([0.1, 0.3, 0.2]), np.array([0.3, 0.1, 0.2])
    combined = combine_ranks(performance, distance, 1.0)
    assert order_by_ranks(combined, performance, np.random.default_rng(0)).tolist() == [1, 2, 0]
    # The same when the weighted ranks are equal but for rounding.
    assert order_by_ranks(combined - [1e-13, 0, 0], performance, np.random.default_rng(0)).tolist() == [1, 2, 0]


def test_remaining_ties_are_ordered_at_random():
    first = {int(order_by_ranks(np.ones(4), np.ones(4), np.random.default_rng(seed))[0]) for seed in range(50)}
    assert first == {0, 1, 2, 3}
    same = [order_by_ranks(np.ones(4), np.ones(4), np.random.default_rng(0)).tolist() for _ in range(2)]
    assert same[0] == same[1]
