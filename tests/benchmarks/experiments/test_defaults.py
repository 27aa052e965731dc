"""The comparison of defaults: whole runs by CPU time, their moments, and their summary."""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.defaults import JudgedMoment, main, run, summarise
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import find_tables


def make_moment(variant, table, test, **changes):
    facts = {
        "seed": 0, "budget": 60.0, "rows": 2000, "share": 1.0, "resampling": "5fold", "trials": 30, "families": 3,
        "members": 8, "most_tried": 0.5, "deciding": 4.0, "validation": test, "cross_fitted": test, "best": test,
        "commit": "",
    }  # fmt: skip
    return JudgedMoment(variant=variant, table=table, test=test, **(facts | changes))


@pytest.mark.long
def test_run_is_judged_at_four_moments(one_table):
    (table,) = find_tables(one_table, ["small"])
    moments = run(table, RunKey("small", "random/2fold", 0, 4.0, 150))
    assert [moment.share for moment in moments] == [0.125, 0.25, 0.5, 1.0]
    trials = [moment.trials for moment in moments]
    assert trials == sorted(trials) and trials[-1] >= 1
    end = moments[-1]
    assert end.resampling == "2fold" and end.families >= 1 and 0 < end.most_tried <= 1
    assert np.isfinite([end.test, end.validation]).all()


def test_ratios_are_those_of_tables_that_both_have_run():
    moments = [
        *(make_moment("bo", table, loss) for table, loss in (("a", 1.0), ("b", 2.0), ("c", 4.0))),
        *(make_moment("optdivbo", table, loss) for table, loss in (("a", 0.5), ("b", 4.0))),
        make_moment("optdivbo", "a", 0.5, seed=1),
    ]
    found = summarise(pd.DataFrame(moments), "bo").set_index("variant")
    assert found.loc["optdivbo", "ratio"] == pytest.approx(1.0)
    assert (found.loc["optdivbo", "better"], found.loc["optdivbo", "tables"]) == (1, 2)
    assert found.loc["optdivbo", "low"] == pytest.approx(0.5)
    assert found.loc["bo", "ratio"] == 1


def test_finished_study_is_only_shown(one_table, tmp_path, capsys):
    file = RowFile(tmp_path / "rows.csv", JudgedMoment)
    file.add([make_moment(variant, "small", 0.5) for variant in ("bo", "random")])
    arguments = argparse.Namespace(
        data=one_table,
        tables=["small"],
        variants=["bo", "random"],
        seeds=1,
        rows=2000,
        budget=60.0,
        jobs=1,
        out=file.path,
    )
    main(arguments)
    assert "random" in capsys.readouterr().out
    assert len(file.read()) == 2
