from __future__ import annotations

import sqlite3
from contextlib import closing

from fake_runs import make_run

from cashmere.records.origin import Origin, OriginKind
from cashmere.report import summarise_run


def test_rare_origins_are_counted_together(tmp_path):
    run = make_run(tmp_path / "run", n_trials=40)
    with closing(sqlite3.connect(run / "run.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE trials SET origin = 'round ' || number WHERE number < 9")
    origins = summarise_run(run)["origins"]
    assert (len(origins), origins["random"], origins["other origins"]) == (9, 31, 2)


def test_origins_in_contests_are_those_of_the_inner_strategies(tmp_path):
    run = make_run(tmp_path / "run", n_trials=10)
    with closing(sqlite3.connect(run / "run.sqlite", isolation_level=None)) as database:
        model = Origin(OriginKind.MODEL).within("svm | under", round=1)
        start = Origin(OriginKind.START, "smote + 7").within("a", round=0)
        database.execute("UPDATE trials SET origin = ? WHERE number < 4", [model.to_json()])
        database.execute("UPDATE trials SET origin = ? WHERE number > 6", [start.to_json()])
    assert summarise_run(run)["origins"] == {"model": 4, "random": 3, "start": 3}
