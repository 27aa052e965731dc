from __future__ import annotations

from fake_runs import make_run
from report_page import check_inert

from cashmere.report import render_report, summarise_run
from cashmere.report.summary.members import configuration_summary


def test_constant_member_and_stacking_are_named(tmp_path):
    ensemble = {"kind": "stacked", "members": [-1, 2], "coefficients": [[1.0, 1.0]]}
    page = check_inert(render_report(summarise_run(make_run(tmp_path / "run", facts={"ensemble": ensemble}))))
    assert "constant prediction" in page.text
    assert "stacked" in page.text


def test_calibration_is_shown_with_its_gain(tmp_path):
    calibration = {"scales": [0.8, 1.2], "offsets": [0.1, -0.1], "gain": 0.0123}
    run = make_run(tmp_path / "run", facts={"calibration": calibration})
    text = " ".join(check_inert(render_report(summarise_run(run))).text.split())
    assert "calibrated by a scale and an offset for each class, which lowers the loss by 0.012 on unseen rows" in text


def test_configuration_summary_is_short():
    summary = configuration_summary({"algorithm": "mlp", "mlp:width": 3, "mlp:rate": 1 / 3, "scaler": "x" * 500})
    assert summary["rate"] == "0.3333"
    assert summary["width"] == "3"
    assert len(summary["scaler"]) == 60
