from __future__ import annotations

import pytest

from cashmere.report.figures.scale import shown_range


def summary(scores, *, ensemble=(), baseline=None, greater_is_better=False):
    return {
        "curves": {
            "trials": [{"score": score} for score in scores],
            "ensemble": [{"score": score} for score in ensemble],
            "baseline_score": baseline,
        },
        "metric": {"greater_is_better": greater_is_better},
    }


@pytest.mark.parametrize("sign", [1, -1])
def test_range_ends_at_the_constant_prediction_however_bad_the_first_trials_are(sign):
    scores = [2.9, 2.8, 1.4, 0.55, 0.5, 0.49]
    course = summary(
        [sign * score for score in scores],
        ensemble=[sign * score for score in (2.9, 2.7, 0.5, 0.48)],
        baseline=sign * 0.61,
        greater_is_better=sign < 0,
    )
    assert sorted(sign * end for end in shown_range(course, constant=True)) == [0.48, 0.61]


def test_range_goes_beyond_the_constant_prediction_if_no_trial_is_better():
    assert shown_range(summary([0.7, 0.8, 0.75], ensemble=[0.6], baseline=0.6), constant=True) == (0.6, 0.8)


def test_constant_prediction_far_away_is_left_out():
    course = summary([1.0, 1.1, 1.2], ensemble=[0.95], baseline=90.0)
    assert shown_range(course, constant=True) == (0.95, 1.2)


def test_last_ensemble_is_shown_even_if_it_is_worse_than_the_constant_prediction():
    course = summary([0.5, 0.55], ensemble=[0.9, 0.7], baseline=0.6)
    assert shown_range(course, constant=True) == (0.5, 0.7)


def test_figures_without_the_constant_prediction_show_all_but_outliers():
    course = summary([0.5, 0.51, 0.52, 0.53, 0.7, 9.0], ensemble=[0.4], baseline=0.6)
    assert shown_range(course, constant=False) == (0.5, 0.7)
