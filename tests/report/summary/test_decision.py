from __future__ import annotations

import pytest
from fake_runs import make_run
from report_page import check_inert

from cashmere.report import render_report, summarise_run


def with_decision(thresholds, gain, *, tuned=True, classes=("bad", "good"), folder):
    decision = {"metric": "g_mean", "greater_is_better": True, "thresholds": thresholds, "gain": gain, "tuned": tuned}
    task = "binary" if len(classes) == 2 else "multiclass"
    run = make_run(folder, task=task, classes=classes, facts={"decision": decision})
    return " ".join(check_inert(render_report(summarise_run(run))).text.split())


@pytest.mark.long
@pytest.mark.parametrize(
    ("thresholds", "gain", "tuned", "expected"),
    [
        (
            [0.88, 0.12],
            0.054,
            True,
            "The model predicts good where its probability is at least 0.1200, otherwise bad. Compared with predicting "
            "the most probable class, this raised g_mean by 0.0540 on rows that did not choose the threshold.",
        ),
        ([0.7, 0.3], -0.01, False, "Compared with predicting the most probable class, this lowered g_mean by 0.0100."),
        (None, -0.01, True, "tuned thresholds did not improve g_mean on rows that did not choose them."),
        (None, None, True, "there were too few rows to tune thresholds."),
    ],
)
def test_decision_is_shown_with_its_gain(tmp_path, thresholds, gain, tuned, expected):
    assert expected in with_decision(thresholds, gain, tuned=tuned, folder=tmp_path / "run")


def test_thresholds_of_many_classes_are_listed_up_to_a_limit(tmp_path):
    classes = tuple(f"c{i}" for i in range(40))
    text = with_decision([0.5] + [0.5 / 39] * 39, 0.1, classes=classes, folder=tmp_path / "run")
    assert "exceeds its threshold by the largest factor" in text
    assert "on rows that did not choose the thresholds." in text
    assert "and 10 more" in text
