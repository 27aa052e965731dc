from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fake_runs import make_run, predictions_of, weighted
from report_page import check_inert
from sklearn.metrics import average_precision_score, roc_auc_score

from cashmere.report import render_report, summarise_run


@pytest.mark.long
def test_probabilities_have_four_pictures(tmp_path):
    decision = {"metric": "g_mean", "thresholds": [0.3, 0.7], "gain": 0.1, "tuned": True}
    run = make_run(tmp_path / "run", predictions=True, facts={**weighted(8), "decision": decision})
    summary = summarise_run(run)
    found = summary["diagnostics"]["classes"]
    y = np.repeat([0, 1], [300, 700])
    p = predictions_of(y, "binary", 8)[:, 1]
    assert found["reliability"]["of"] == "good"
    assert len(found["reliability"]["bins"]) == 10
    counts = [[int(np.sum((y == i) & ((p >= 0.7) == j))) for j in (0, 1)] for i in (0, 1)]
    assert found["confusion"] == {"labels": ["bad", "good"], "counts": counts, "n_joined": 0}
    (curve,) = found["curves"]
    assert curve["area"] == pytest.approx(roc_auc_score(y, p))
    assert curve["average_precision"] == pytest.approx(average_precision_score(y, p))
    assert curve["decision"]["recall"] == pytest.approx(counts[1][1] / 700)
    json.dumps(summary, allow_nan=False)
    page = check_inert(render_report(summary))
    for text in ("Can its probabilities be trusted?", "the thresholds above", "decision of the model"):
        assert text in page.text
    titles = [text for text in page.text.splitlines() if text]
    assert any("confusion matrix" in text for text in titles)


def test_many_classes_are_joined(tmp_path):
    run = make_run(
        tmp_path / "run", predictions=True, task="multiclass", classes=tuple("abcdefghijklmn"), facts=weighted(3, 8)
    )
    summary = summarise_run(run)
    found = summary["diagnostics"]["classes"]
    assert found["reliability"]["of"] is None
    assert found["confusion"]["labels"][:2] == ["a", "b"]
    assert found["confusion"]["labels"][-1] == "5 others"
    assert np.sum(found["confusion"]["counts"]) == 1120
    assert [curve["label"] for curve in found["curves"]][:2] == ["b", "a"]
    assert len(found["curves"]) == 4
    assert "The 5 smallest classes are joined" in check_inert(render_report(summary)).text


def test_values_have_residuals(tmp_path):
    run = make_run(
        tmp_path / "run",
        predictions=True,
        task="regression",
        classes=(),
        facts=weighted(8),
        settings={"metric": "rmse"},
    )
    summary = summarise_run(run)
    found = summary["diagnostics"]["values"]
    y = np.linspace(0, 1, 1000)
    errors = np.abs(y - predictions_of(y, "regression", 8))
    assert found["half"] == pytest.approx(np.median(errors), rel=0.01)
    assert np.mean(errors <= found["nine_tenths"]) == pytest.approx(0.9)
    assert len(found["points"]) == 700
    assert "Half of them are off by at most" in check_inert(render_report(summary)).text


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"finished": False, "predictions": True}, "has not been built yet"),
        ({"n_trials": 2}, "predicts the same for every row"),
        ({"facts": weighted(3)}, "cannot be read"),
    ],
)
def test_missing_diagnostics_are_explained(tmp_path: Path, options, text):
    summary = summarise_run(make_run(tmp_path / "run", **options))
    assert text in summary["diagnostics"]["why_not"]
    assert text in check_inert(render_report(summary)).text
