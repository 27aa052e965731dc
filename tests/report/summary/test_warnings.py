from __future__ import annotations

from fake_runs import make_run

from cashmere.records.trial import TrialStatus
from cashmere.report import summarise_run


def warnings_of(folder, **options):
    return " ".join(summarise_run(make_run(folder / "run", **options))["warnings"])


def test_warns_when_most_trials_fail(tmp_path):
    failures = dict.fromkeys(range(21), (TrialStatus.TIMEOUT, "over the time limit"))
    assert "More than half of the trials failed (21 of 40)" in warnings_of(tmp_path, failures=failures)


def test_warns_when_all_trials_fail(tmp_path):
    failures = dict.fromkeys(range(4), (TrialStatus.ERROR, "x"))
    assert "All 4 trials failed" in warnings_of(tmp_path, n_trials=4, failures=failures)


def test_warns_when_the_ensemble_is_not_better_than_a_constant(tmp_path):
    facts = {"ensemble_loss": 0.5, "cross_fitted_loss": 0.52}
    assert "not better than the constant prediction" in warnings_of(tmp_path, facts=facts)


def test_warns_when_only_the_selection_is_better_than_a_constant(tmp_path):
    text = warnings_of(tmp_path, facts={"ensemble_loss": 0.45, "cross_fitted_loss": 0.51})
    assert "On rows that did not choose it" in text


def test_warns_when_the_selection_is_clearly_too_optimistic(tmp_path):
    text = warnings_of(tmp_path, facts={"ensemble_loss": 0.3, "cross_fitted_loss": 0.35})
    assert "25% of its gain" in text


def test_does_not_warn_for_a_little_optimism(tmp_path):
    assert warnings_of(tmp_path, facts={"ensemble_loss": 0.3, "cross_fitted_loss": 0.315}) == ""


def test_doubts_nearly_perfect_scores(tmp_path):
    text = warnings_of(tmp_path, facts={"ensemble_loss": 0.001, "cross_fitted_loss": 0.002})
    assert "nearly perfect: if this surprises you, a column may know the target" in text
