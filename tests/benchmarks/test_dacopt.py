from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks import dacopt
from benchmarks.__main__ import main
from benchmarks.suite_runs import Protocol, SuiteFailure, SuiteFile, SuiteRun, make_key, run_suite, search
from benchmarks.tables import BenchmarkTable
from cashmere.budget import Budget
from cashmere.data.task import TaskType

HYPEROPT = "tpe:density=independent"
QUICK = Protocol(name="quick", space="default", metric="accuracy", resampling="3fold", test_share=0.25)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(target=np.where(X[:, 0] + 0.3 * X[:, 1] > 0.6, "yes", "no"))
    frame.to_parquet(tmp_path / "made.parquet")
    entry = {"name": "made", "file": "made.parquet", "task": "binary", "openml_id": 31}
    (tmp_path / "manifest.json").write_text(json.dumps([entry]))
    return tmp_path


def made_run(table="made", strategy="tpe", seed=0, score=0.8):
    key = make_key(dacopt.EXPERIMENT_1, table, strategy, seed, Budget(trials=2))
    return SuiteRun(
        key=key,
        curve=[None, 1 - score],
        failed=1,
        test=None,
        seconds=1.0,
        suggest_seconds=0.1,
        fit_seconds=0.5,
        best={},
    )


def test_search_is_judged_on_rows_that_did_not_take_part(folder):
    table = BenchmarkTable(name="made", path=folder / "made.parquet", task_type=TaskType.BINARY)
    runs = [search(QUICK, table, make_key(QUICK, "made", "random", 3, Budget(trials=4))) for _ in range(2)]
    assert runs[0].curve == runs[1].curve and runs[0].test == runs[1].test
    assert len(runs[0].curve) == 4 and runs[0].curve == sorted(runs[0].curve, reverse=True)
    assert 0 <= runs[0].test < 0.5 and runs[0].best["algorithm"]


def test_runs_in_worker_processes_are_reported_and_a_broken_one_hurts_no_other(folder):
    table = BenchmarkTable(name="made", path=folder / "made.parquet", task_type=TaskType.BINARY)
    keys = [make_key(QUICK, "made", strategy, 0, Budget(trials=2)) for strategy in ("no such thing", "random")]
    results = {}
    work = [(QUICK, table, key) for key in keys]
    run_suite(work, search, n_workers=1, report=lambda result: results.update({result.key: result}))
    assert isinstance(results[keys[0]], SuiteFailure) and "no such thing" in results[keys[0]].error
    assert len(results[keys[1]].curve) == 2


def test_finished_runs_survive_a_line_cut_short(tmp_path):
    file = SuiteFile(tmp_path / "quick.jsonl", SuiteRun)
    one, two = made_run(seed=0), made_run(seed=1)
    file.add(one)
    with file.path.open("a") as stream:
        stream.write('{"key": {"suite"')
    file.add(two)
    again = SuiteFile(file.path, SuiteRun)
    assert again.find(one.key) == one and again.find(two.key) == two


def test_another_protocol_or_budget_is_another_run():
    key = make_key(dacopt.EXPERIMENT_1, "made", "tpe", 0, Budget(trials=5))
    assert key != make_key(dacopt.EXPERIMENT_2, "made", "tpe", 0, Budget(trials=5))
    assert key != make_key(dacopt.EXPERIMENT_1, "made", "tpe", 0, Budget(trials=6))


def test_published_means_are_found_by_name_and_by_openml_number():
    first = dacopt.published_means(dacopt.EXPERIMENT_1, [])
    assert first.loc["glass1", "DAC-HB"] == 0.8015 and "haberman_keel" in first.index and len(first) == 44
    table = BenchmarkTable(name="credit-g", path=None, task_type=TaskType.BINARY, openml_id=31)
    second = dacopt.published_means(dacopt.EXPERIMENT_2, [table])
    assert list(second.index) == ["credit-g"] and 0.7 < second.loc["credit-g", "DAC-HB"] < 0.8
    assert "DAC-SB" not in second  # that column of the available text is not usable


def test_scores_stand_beside_the_published_ones_and_marks_follow_the_test():
    runs = [made_run("glass1", HYPEROPT, seed, 0.80 + 0.001 * seed) for seed in range(8)]
    runs += [made_run("glass1", "random", seed, 0.70 + 0.001 * seed) for seed in range(8)]
    strategies = ("random", HYPEROPT)
    scores, differences, ranks, cost = dacopt.make_tables(
        runs, dacopt.EXPERIMENT_1, dacopt.published_means(dacopt.EXPERIMENT_1, []), strategies
    )
    assert scores.rows == (("glass1", "0.7035", "0.8035 (0.7968)"),) and scores.best == {(0, 2)}
    assert differences.rows == ((HYPEROPT, "+0.0067", "+0.0067", "+0.0067", "1 of 1"),)
    assert ranks.rows == (("random", "2.00", "-"), (HYPEROPT, "1.00", "1/0/0"))
    assert cost.rows[0][2] == "50.0 %"


def test_with_few_repeats_nothing_is_marked_worse():
    scores = pd.DataFrame({"a": [0.9, 0.8, 0.7], "b": [0.5, 0.4, 0.3]})
    assert dacopt.not_worse(scores) == {"a": True, "b": True}


def test_the_command_goes_on_where_it_was_stopped(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(dacopt, "EXPERIMENT_1", QUICK)
    monkeypatch.setattr(dacopt, "PUBLISHED", folder)
    (folder / "quick.csv").write_text("table,method,mean\nmade,Hyperopt,0.9\n")
    monkeypatch.setattr("benchmarks.suite_runs._run", lambda *arguments: pytest.fail("nothing is missing"))
    protocol_file = SuiteFile(tmp_path / "work" / "quick.jsonl", SuiteRun)
    key = make_key(QUICK, "made", "random", 0, Budget(trials=3))
    run = made_run()
    protocol_file.add(
        SuiteRun(key=key, curve=run.curve, failed=0, test=0.1, seconds=1, suggest_seconds=1, fit_seconds=1, best={})
    )
    command = ["benchmarks", "dacopt1", "--data", str(folder), "--tables", "made", "--strategies", "random"]
    command += ["--trials", "3", "--repeats", "1", "--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", command)
    main()
    shown = capsys.readouterr().out
    assert "1 of 1 runs are there" in shown and "0.9000" in shown
    assert "0.9000" in (tmp_path / "out" / "summary.md").read_text()
    assert pd.read_csv(tmp_path / "out" / "results.csv").shape[0] == 1


def test_stopping_keeps_and_shows_what_is_finished(folder, tmp_path, monkeypatch, capsys):
    def stopped(missing, make_run, *, n_workers, report):
        report(replace(made_run(), key=missing[0][-1]))
        raise KeyboardInterrupt

    monkeypatch.setattr(dacopt, "run_suite", stopped)
    command = ["benchmarks", "dacopt1", "--data", str(folder), "--tables", "made", "--strategies", "random"]
    command += ["--trials", "2", "--repeats", "2", "--workers", "1", "--work", str(tmp_path / "work")]
    monkeypatch.setattr("sys.argv", command)
    main()
    shown = capsys.readouterr().out
    assert "0 of 2 runs are there" in shown and "Stopped. What is finished is kept" in shown
    assert "Means over 1 to 1 repeats" in shown
    assert len((tmp_path / "work" / "dacopt1.jsonl").read_text().splitlines()) == 1


def test_a_strategy_that_does_not_exist_ends_the_command_at_once(folder, monkeypatch):
    monkeypatch.setattr("sys.argv", ["benchmarks", "dacopt1", "--data", str(folder), "--tables", "made",
                                     "--strategies", "tpee", "--trials", "3"])  # fmt: skip
    with pytest.raises(SystemExit, match="tpee"):
        main()
