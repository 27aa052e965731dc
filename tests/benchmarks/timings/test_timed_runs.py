"""Runs whose overshoot is measured."""

from __future__ import annotations

from benchmarks.runs.row_file import RowFile
from benchmarks.timings import deadline


def test_runs_of_other_code_are_not_shown_silently(tmp_path, monkeypatch, capsys):
    run = deadline.TimedRun(
        case="small", number=0, budget=60.0, busy=2, seconds=58.0, trials=9, members=2, mib=1.0, load=3.0,
        date="2026-11-22", machine="one", commit="0000000",
    )  # fmt: skip
    RowFile(tmp_path / "deadline.csv", deadline.TimedRun).add([run])
    command = ["deadline", "--cases", "small", "--times", "1", "--out", str(tmp_path / "deadline.csv")]
    monkeypatch.setattr("sys.argv", command)
    deadline.main()
    said = " ".join(capsys.readouterr().out.split())
    assert "1 of 1 runs were made by different code (1 by 0000000); another --out repeats them" in said
    assert "-2.0" in said
