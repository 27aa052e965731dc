from __future__ import annotations

from fake_runs import TRACEBACK, make_run, some_failures

from cashmere.records.trial import TrialStatus
from cashmere.report import render_report, summarise_run


def test_causes_that_differ_only_in_numbers_are_joined(tmp_path):
    failures = summarise_run(make_run(tmp_path / "run", failures=some_failures()))["failures"]
    assert [(f["status"], f["count"]) for f in failures] == [("timeout", 2), ("memory", 2), ("error", 2)]
    assert failures[2]["trials"] == [22, 30]
    assert failures[0]["traceback"] is None


def test_paths_of_users_and_packages_are_shortened(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    run = make_run(
        tmp_path / "run",
        n_trials=3,
        failures={0: (TrialStatus.ERROR, TRACEBACK), 1: (TrialStatus.ERROR, f"OSError: {tmp_path}/x.csv")},
        settings={"space": f"<function space at 0x7f0012345678 {tmp_path}/s.py>", "own_objects": ["space"]},
    )
    page = render_report(summarise_run(run))
    for private in ("/home/ada", "/root", str(tmp_path), "0x7f0012345678"):
        assert private not in page
    for shown in (".../sklearn/base.py", "~/project/learner.py", "~/x.csv"):
        assert shown in page
