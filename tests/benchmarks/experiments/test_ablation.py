"""The ablation of what makes use of time: its table, and that interrupted studies continue."""

from __future__ import annotations

import argparse

import pandas as pd
import pytest

from benchmarks.experiments.ablation import AblationRun, main, summarise
from benchmarks.faults.rows import RowFile


def make_run(variant, table, test, **changes):
    facts = {
        "seed": 0, "budget": 60.0, "seconds": 61.0, "trials": 30, "checkpoints": 90, "families": 3,
        "validation": test, "cross_fitted": test, "best": test, "commit": "",
    }  # fmt: skip
    return AblationRun(variant=variant, table=table, test=test, **(facts | changes))


def test_losses_are_relative_to_before_per_table():
    runs = [
        *(make_run("before", table, loss) for table, loss in (("a", 1.0), ("b", 2.0), ("c", 4.0))),
        *(make_run("everything", table, loss) for table, loss in (("a", 0.9), ("b", 1.9), ("c", 4.4))),
        make_run("everything, a third of the time", "a", 1.1, trials=10, seconds=22.5),
    ]
    found = summarise(pd.DataFrame(runs)).set_index("variant")
    assert found.loc["everything", "test %"] == pytest.approx(-5)
    assert found.loc["everything", "tables better"] == 2
    assert found.loc["everything", "trials/min"] == 30
    assert found.loc["everything, a third of the time", "trials/min"] == 30
    assert found.loc["everything, a third of the time", "largest overshoot (s)"] == pytest.approx(2.5)


def test_finished_study_is_only_shown(tmp_path, capsys):
    file = RowFile(tmp_path / "rows.csv", AblationRun)
    file.add([make_run(variant, "credit-g", 0.5) for variant in ("before", "everything")])
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "manifest.json").write_text("[]")
    arguments = argparse.Namespace(
        data=folder, tables=[], variants=["before", "everything"], seeds=1, budget=60.0, workers=2, out=file.path
    )
    main(arguments)
    assert "everything" in capsys.readouterr().out
    assert len(file.read()) == 2
