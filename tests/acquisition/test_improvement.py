from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.acquisition.improvement import (
    expected_improvement,
    log_expected_improvement,
    log_target_expected_improvement,
    lower_confidence_bound,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "ei.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"])
def test_expected_improvement_agrees_with_vectors(case):
    value = expected_improvement([case["mean"]], [case["std"]], case["best"])
    assert value == pytest.approx(case["ei_min"], rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("case", [case for case in VECTORS["cases"] if case["ei_min"] > 0])
def test_log_form_is_the_logarithm(case):
    value = log_expected_improvement([case["mean"]], [case["std"]], case["best"])
    assert value == pytest.approx(np.log(case["ei_min"]), rel=1e-9)


@pytest.mark.parametrize("case", VECTORS["log_target"]["cases"])
def test_log_target_form_agrees_with_vectors(case):
    value = log_target_expected_improvement([case["mean_log"]], [np.sqrt(case["var_log"])], case["best_loss"])
    assert value == pytest.approx(case["log_ei_smac"], rel=1e-9)


def test_closed_forms_agree_with_monte_carlo():
    rng = np.random.default_rng(0)
    mean, std, best = np.array([0.2, 0.35, -0.1]), np.array([0.1, 0.2, 0.05]), 0.25
    draws = mean + std * rng.normal(size=(400_000, 3))
    assert expected_improvement(mean, std, best) == pytest.approx(np.maximum(best - draws, 0).mean(axis=0), rel=0.01)
    log_mean = np.log([0.2, 0.3, 0.5])
    draws = np.exp(log_mean + std * rng.normal(size=(400_000, 3)))
    expected = np.maximum(best - draws, 0).mean(axis=0)
    assert log_target_expected_improvement(log_mean, std, best) == pytest.approx(expected, rel=0.03, abs=1e-6)


def test_log_form_ranks_where_the_improvement_underflows():
    mean = np.linspace(1.0, 100.0, 50)
    std = np.full(50, 0.01)
    assert np.all(expected_improvement(mean, std, 0.0) == 0)
    log_values = log_expected_improvement(mean, std, 0.0)
    assert np.all(np.isfinite(log_values))
    assert np.all(np.diff(log_values) < 0)


def test_log_form_is_correct_in_the_far_tail():
    # Asymptotic series: h(z) = phi(z)/z^2 (1 - 3/z^2 + 15/z^4 - 105/z^6 ...)
    z = -np.array([20.0, 99.0, 999.0, 1001.0, 1e4, 9.9e5, 1.1e6, 1e9])
    series = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - 2 * np.log(-z) + np.log1p(-3 / z**2 + 15 / z**4 - 105 / z**6)
    assert log_expected_improvement(-z, np.ones(len(z)), 0.0) == pytest.approx(series, rel=1e-12, abs=1e-6)


@given(st.floats(-30, 30), st.floats(1e-6, 10))
def test_log_form_is_monotone_and_agrees_with_the_plain_form(z, std):
    plain = expected_improvement([-z * std], [std], 0.0)[0]
    logged = log_expected_improvement([-z * std, -(z + 1e-3) * std], [std, std], 0.0)
    assert logged[1] > logged[0]
    if z > -5:
        assert np.exp(logged[0]) == pytest.approx(plain, rel=1e-8)


def test_improvement_of_certain_predictions_is_their_gain():
    assert expected_improvement([0.2, 0.4], [0.0, 0.0], 0.3) == pytest.approx([0.1, 0.0])
    logged = log_expected_improvement([0.2, 0.4], [0.0, 0.0], 0.3)
    assert logged[0] == pytest.approx(np.log(0.1))
    assert logged[1] == -np.inf
    assert log_target_expected_improvement([np.log(0.2), np.log(0.4)], [0.0, 0.0], 0.3) == pytest.approx([0.1, 0.0])


def test_lower_confidence_bound():
    assert lower_confidence_bound([1.0, 2.0], [0.5, 0.0], kappa=2.0) == pytest.approx([0.0, 2.0])
