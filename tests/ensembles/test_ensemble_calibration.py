from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import check_grad, minimize

from cashmere.ensembles.calibration import (
    Calibration,
    can_calibrate,
    centre_of,
    choose_calibration,
    fit_scales_and_offsets,
    fit_temperature,
)
from cashmere.ensembles.stopping import StoppedError
from cashmere.evaluation.metrics import METRICS
from cashmere.exceptions import InvalidParameterError, ShapeError


def softmax(x):
    odds = np.exp(x - x.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def rows(n=2000, n_classes=3, *, scales=1.0, offsets=0.0, seed=0):
    """Log-probabilities and classes drawn with the probabilities softmax(scales z + offsets)."""
    rng = np.random.default_rng(seed)
    z = np.log(softmax(rng.normal(0, 1.5, (n, n_classes))))
    q = softmax(z * np.asarray(scales) + np.asarray(offsets))
    return z, (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


UNIFORM = np.zeros(3)
"""Classes of equal shares, up to a constant."""


def equal(n):
    return np.full(n, 1 / n)


def log_loss(z, y, w):
    return -float(w @ np.log(softmax(z)[np.arange(len(y)), y]))


def penalised(theta, z, y, w):
    n_classes = z.shape[1]
    from_identity = theta - np.repeat([1.0, 0.0], n_classes)
    return log_loss(z * theta[:n_classes] + theta[n_classes:], y, w) + 5 / len(y) / 2 * from_identity @ from_identity


probabilities = (
    st.integers(2, 5)
    .flatmap(lambda n_classes: arrays(np.float64, (12, n_classes), elements=st.floats(1e-6, 1)))
    .map(lambda p: p / p.sum(axis=1, keepdims=True))
)


@given(probabilities, st.floats(0.1, 10))
def test_temperature_keeps_the_most_probable_class_and_rows_sum_to_one(p, scale):
    n_classes = p.shape[1]
    q = Calibration(scales=(scale,) * n_classes, offsets=(0.0,) * n_classes, gain=0.1).apply(p)
    np.testing.assert_allclose(q.sum(axis=1), 1)
    np.testing.assert_allclose(q[np.arange(len(p)), p.argmax(axis=1)], q.max(axis=1), rtol=1e-9)


@given(probabilities)
def test_scale_of_one_without_offsets_changes_nothing(p):
    n_classes = p.shape[1]
    same = Calibration(scales=(1.0,) * n_classes, offsets=(0.0,) * n_classes, gain=0.0)
    np.testing.assert_allclose(same.apply(p), p, rtol=1e-9, atol=1e-12)


@given(probabilities, st.data())
def test_any_calibration_gives_probabilities(p, data):
    numbers = st.lists(st.floats(0.1, 10), min_size=p.shape[1], max_size=p.shape[1])
    q = Calibration(scales=tuple(data.draw(numbers)), offsets=tuple(data.draw(numbers)), gain=0.0).apply(p)
    np.testing.assert_allclose(q.sum(axis=1), 1)
    assert (q >= 0).all()


def test_probability_of_zero_stays_small_and_finite():
    sharper = Calibration(scales=(2.0, 2.0), offsets=(0.0, 0.0), gain=0.0)
    np.testing.assert_allclose(sharper.apply(np.array([[0.0, 1.0]])), [[0.0, 1.0]], atol=1e-12)
    softer = Calibration(scales=(0.5, 0.5), offsets=(0.0, 0.0), gain=0.0)
    assert 0 < softer.apply(np.array([[0.0, 1.0]]))[0, 0] < 1e-3


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("scale", [0.6, 1.0, 1.7])
def test_temperature_is_found_where_the_slope_of_the_log_loss_is_zero(n_classes, scale):
    z, y = rows(n_classes=n_classes, scales=scale)
    w = equal(len(y))
    centre = np.log(np.linspace(1, 3, n_classes) / (2 * n_classes))
    scales, offsets = fit_temperature(z, y, w, centre=centre)
    s, step = scales[0], 1e-4
    higher, lower = (log_loss(t * z + (1 - t) * centre, y, w) for t in (s + step, s - step))
    assert abs((higher - lower) / (2 * step) + 5 / len(y) * (s - 1)) < 1e-6
    assert len(set(scales)) == 1
    np.testing.assert_allclose(offsets, (1 - s) * centre)
    found = fit_temperature(z, y, w, centre=np.zeros(n_classes))[0][0]  # from equal probabilities, as the rows
    assert found == pytest.approx(scale, abs=0.15)


@pytest.mark.parametrize(("scale", "shares"), [(0.6, [0.95, 0.05]), (1.6, [0.95, 0.05]), (1.6, [0.02, 0.28, 0.7])])
def test_temperature_moves_probabilities_away_from_their_mean(scale, shares):
    rng, centre = np.random.default_rng(0), np.log(shares)
    u = rng.normal(0, 1, (20_000, len(shares)))
    y = (softmax(scale * u + centre).cumsum(axis=1) > rng.random((len(u), 1))).argmax(axis=1)
    w, z = equal(len(y)), np.log(softmax(u + centre))
    scales, _ = fit_temperature(z, y, w, centre=centre_of(z, w))
    assert scales[0] == pytest.approx(scale, rel=0.2)  # the mean probabilities are not exactly the centre of these rows
    chosen = choose_calibration(softmax(z), y, "log_loss", rng=rng)
    assert chosen is not None
    np.testing.assert_allclose(chosen.apply(softmax(z)).mean(axis=0), np.bincount(y) / len(y), rtol=0.15)


def test_sharpening_keeps_the_mean_probability_of_a_rare_class():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.normal(-3, 0.8, 600)
        p = np.column_stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))])
        y = (rng.random(600) < p[:, 1]).astype(int)
        chosen = choose_calibration(p, y, "log_loss", rng=rng, is_mean_elsewhere=True)
        if chosen is not None and chosen.temperature is not None:
            assert chosen.apply(p)[:, 1].mean() == pytest.approx(p[:, 1].mean(), rel=0.06)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_scales_and_offsets_are_found_where_the_gradient_is_zero(n_classes):
    true_scales, true_offsets = np.linspace(0.7, 1.4, n_classes), np.linspace(-0.5, 0.5, n_classes)
    z, y = rows(n_classes=n_classes, scales=true_scales, offsets=true_offsets)
    w = equal(len(y))
    scales, offsets = fit_scales_and_offsets(z, y, w)
    found = np.concatenate([scales, offsets])
    slopes = [
        (penalised(found + step, z, y, w) - penalised(found - step, z, y, w)) / 2e-4
        for step in 1e-4 * np.eye(2 * n_classes)
    ]
    np.testing.assert_allclose(slopes, 0, atol=1e-6)
    best = minimize(penalised, np.repeat([1.0, 0.0], n_classes), args=(z, y, w))
    assert penalised(found, z, y, w) <= best.fun + 1e-9
    assert check_grad(lambda theta: penalised(theta, z, y, w), lambda theta: np.zeros(2 * n_classes), found) < 1e-5


@pytest.mark.parametrize("fit", [fit_temperature, fit_scales_and_offsets])
def test_start_elsewhere_ends_at_the_same_place(fit):
    z, y = rows(scales=1.4)
    w = equal(len(y))
    there = fit(z, y, w, centre=UNIFORM)
    elsewhere = fit(z, y, w, centre=UNIFORM, start=(np.full(3, 0.3), np.zeros(3)))
    np.testing.assert_allclose(np.concatenate(elsewhere), np.concatenate(there), atol=1e-6)


@pytest.mark.parametrize("fit", [fit_temperature, fit_scales_and_offsets])
def test_weight_of_two_is_a_row_given_twice(fit):
    z, y = rows(4000)
    times = np.random.default_rng(1).integers(1, 3, len(y))
    weighted = fit(z, y, times / times.sum(), centre=UNIFORM)
    repeated = fit(z.repeat(times, axis=0), y.repeat(times), equal(times.sum()), centre=UNIFORM)
    # Except for the prior, which weighs less with more rows.
    np.testing.assert_allclose(np.concatenate(weighted), np.concatenate(repeated), atol=0.03)


@pytest.mark.parametrize("fit", [fit_temperature, fit_scales_and_offsets])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_that_can_be_told_apart_give_finite_numbers(fit, n_classes):
    y = np.arange(400) % n_classes
    z = np.log(np.where(np.eye(n_classes)[y] > 0, 0.9, 0.1 / (n_classes - 1)))
    scales, offsets = fit(z, y, equal(len(y)), centre=np.zeros(n_classes))
    assert np.isfinite(scales).all()
    assert np.isfinite(offsets).all()
    assert 1 < scales.max() < 5


@pytest.mark.parametrize("metric", ["log_loss", "brier"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_members_that_are_too_certain_get_a_temperature_that_helps_on_new_rows(metric, n_classes):
    z, y = rows(10_000, n_classes, scales=0.5)
    chosen = choose_calibration(softmax(z), y, metric, rng=np.random.default_rng(0))
    assert chosen.temperature == pytest.approx(2, rel=0.15)
    new_z, new_y = rows(10_000, n_classes, scales=0.5, seed=1)
    judge = METRICS[metric].loss
    gained = judge(new_y, softmax(new_z)) - judge(new_y, chosen.apply(softmax(new_z)))
    assert gained == pytest.approx(chosen.gain, rel=0.3)


def test_scales_and_offsets_are_kept_where_classes_err_differently():
    shifted = {"scales": [0.5, 1.0, 1.5], "offsets": [1.0, 0.0, -1.0]}
    z, y = rows(4000, **shifted)
    chosen = choose_calibration(softmax(z), y, "log_loss", rng=np.random.default_rng(0))
    assert chosen.temperature is None
    new_z, new_y = rows(4000, seed=1, **shifted)
    gained = METRICS["log_loss"].loss(new_y, softmax(new_z)) - METRICS["log_loss"].loss(
        new_y, chosen.apply(softmax(new_z))
    )
    assert gained == pytest.approx(chosen.gain, rel=0.3)
    few = choose_calibration(softmax(z[:250]), y[:250], "log_loss", rng=np.random.default_rng(0))
    assert few is None or few.temperature is not None


def test_calibrated_probabilities_are_left_alone():
    kept = 0
    for seed in range(40):
        z, y = rows(300, seed=seed)
        kept += choose_calibration(softmax(z), y, "log_loss", rng=np.random.default_rng(0)) is not None
    assert kept <= 3


def drawn(rng, n_rows, n_models, certainty):
    """Classes, and what several models predict for them: the truth, with independent errors."""
    truth = rng.normal(0, 2, (n_rows, 3))
    y = (softmax(truth).cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    return [softmax(certainty * (truth + rng.normal(0, 1, truth.shape))) for _ in range(n_models)], y


def test_calibration_of_means_of_several_models_is_sharper():
    rng, judge = np.random.default_rng(0), METRICS["log_loss"].loss
    (single,), y = drawn(rng, 20_000, 1, certainty=1.0)
    certainty = fit_temperature(np.log(single), y, equal(len(y)), centre=UNIFORM)[0][
        0
    ]  # a single model is as certain as it should be
    changes = []
    for _ in range(10):
        (single,), y = drawn(rng, 400, 1, certainty)
        models, new_y = drawn(rng, 4000, 5, certainty)
        mean = np.mean(models, axis=0)
        chosen = choose_calibration(single, y, "log_loss", rng=rng, is_mean_elsewhere=True)
        changes.append(judge(new_y, chosen.apply(mean)) - judge(new_y, mean) if chosen else 0.0)
    assert min(changes) < -0.005
    assert max(changes) <= 0


def test_a_temperature_that_clearly_harms_is_not_kept_for_means_either():
    z, y = rows(20_000, scales=0.5)
    z[::2] *= 0.25  # one half too certain, the other not enough: no temperature suits both
    chosen = choose_calibration(softmax(z), y, "log_loss", rng=np.random.default_rng(0), is_mean_elsewhere=True)
    assert chosen is None or chosen.gain > 0


def test_text_says_why_a_calibration_without_a_gain_is_kept():
    text = str(Calibration(scales=(1.1, 1.1), offsets=(0.0, 0.0), gain=-0.001))
    assert text == "temperature 0.909: means of several models are less certain than they should be"


@pytest.mark.parametrize("y", [np.arange(100) % 2, np.zeros(300, dtype=int)])
def test_few_rows_or_a_single_class_give_none(y):
    p = np.tile([0.3, 0.7], (len(y), 1))
    assert choose_calibration(p, y, "log_loss", rng=np.random.default_rng(0)) is None


def test_rows_without_weight_do_not_count():
    z, y = rows(1500, scales=0.5)
    other_z, other_y = rows(1500, scales=3.0, seed=1)
    weight = np.repeat([1.0, 0.0], 1500)
    chosen = choose_calibration(
        softmax(np.concatenate([z, other_z])),
        np.concatenate([y, other_y]),
        "log_loss",
        weight=weight,
        rng=np.random.default_rng(0),
    )
    assert chosen.temperature == pytest.approx(2, rel=0.2)


def test_choice_can_be_stopped():
    z, y = rows(300)
    with pytest.raises(StoppedError):
        choose_calibration(softmax(z), y, "log_loss", rng=np.random.default_rng(0), stop=lambda: True)


def test_metrics_of_ranks_and_labels_are_not_calibrated():
    assert [name for name in METRICS if can_calibrate(name)] == ["log_loss", "brier"]


def test_calibration_is_rebuilt_from_json_and_describes_itself():
    vector = Calibration(scales=(0.5, 1.5), offsets=(0.1, -0.1), gain=0.02)
    assert Calibration.from_json(vector.to_json()) == vector
    assert str(vector) == "a scale and an offset for each class, which lowers the loss by 0.02 on unseen rows"


@pytest.mark.parametrize(
    ("scales", "offsets"),
    [((1.0,), (0.0,)), ((1.0, 0.0), (0.0, 0.0)), ((1.0, np.nan), (0.0, 0.0)), ((1.0, 1.0), (0.0,)), ((), ())],
)
def test_numbers_that_make_no_sense_are_refused(scales, offsets):
    with pytest.raises(InvalidParameterError):
        Calibration(scales=scales, offsets=offsets, gain=0.0)


def test_other_classes_are_refused():
    with pytest.raises(ShapeError):
        Calibration(scales=(1.0, 1.0), offsets=(0.0, 0.0), gain=0.0).apply(np.full((2, 3), 1 / 3))
