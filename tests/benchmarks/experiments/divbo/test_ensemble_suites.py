from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from synthetic_recording import make_recording

from benchmarks.__main__ import main
from benchmarks.experiments.divbo import study as ensemble_suites
from benchmarks.experiments.divbo.methods import (
    SENSITIVITY,
    SUITES,
    choose_methods,
    display_unit,
    published_counts,
    published_values,
)
from benchmarks.experiments.divbo.results import by_metric, published_rows, to_rows
from benchmarks.experiments.divbo.runs import EnsembleRun, common_start, protocol_of, search
from benchmarks.experiments.divbo.tables import (
    cost_table,
    pool_table,
    printed_table,
    sensitivity_table,
    speed_table,
    verdict_table,
)
from benchmarks.recordings import recorded_history, replay_runs
from benchmarks.recordings.recorded_history import save_recorded
from benchmarks.runs import parallel
from benchmarks.runs import search as search_loop
from benchmarks.runs.finished_runs import Failure, FinishedRuns
from benchmarks.runs.suite_runs import SuiteKey, make_key
from benchmarks.tables.manifest import BenchmarkTable
from benchmarks.tables.search_table import SearchTable
from cashmere.data.task import TaskType
from cashmere.execution.in_process import InProcessExecutor
from cashmere.records.budget import Budget
from cashmere.records.trial import Outcome, TrialStatus
from cashmere.study import Study

DIVBO, OPTDIVBO = SUITES["divbo"], SUITES["optdivbo"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table of classes and one of values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    folder = tmp_path_factory.mktemp("data")
    frame.assign(target=np.where(X[:, 0] + 0.3 * X[:, 1] > 0.6, "yes", "no")).to_parquet(folder / "quake.parquet")
    frame.assign(target=1000 + 50 * X[:, 0]).to_parquet(folder / "bodyfat.parquet")
    entries = [{"name": name, "file": f"{name}.parquet", "task": task} for name, task in
               (("quake", "binary"), ("bodyfat", "regression"))]  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(entries))
    return folder


def make_run(strategy="random", table="quake", seed=0, *, test=0.4, metric="accuracy"):
    """Return a made-up run of ten trials; all forms have the same losses."""
    protocol = protocol_of(TaskType.BINARY, metric="mse", rows=100, trial_seconds=1.0)
    rows = [(5, test + 0.1, test + 0.05), (10, test, test)]
    forms = dict.fromkeys(("best", "selection", "members"), rows)
    forms |= dict.fromkeys(("selection100", "bagging", "bagging_uniform", "stacking"), rows[1:])
    return EnsembleRun(
        key=make_key(protocol, table, strategy, seed, Budget(trials=10)),
        metric=metric,
        unit=1.0,
        losses=[None] + [test] * 9,
        test_losses=[None] + [test] * 9,
        statuses=["error"] + ["success"] * 9,
        origins=["random"] * 10,
        cpu_seconds=[1.0] * 10,
        suggest_seconds=[0.5] * 10,
        training_seconds=12.0,
        seconds=20.0,
        deciding_cpu_seconds=5.0,
        memory_mib={"training": 300.0, "deciding": 200.0},
        forms=forms,
        updates={"50": [4, 2], "100": [6, 3]},
        minimum_diversity=[None] * 5 + [0.1] * 5,
        disagreement=[0.2, 0.3],
        member_loss=0.42,
        code="code",
        circumstances={"date": "2026-11-21", "machine": "made up", "versions": "python 3"},
    )


def make_results(suite=DIVBO, **tests):
    """Results of methods by label: a test loss for every seed."""
    methods = {method.label: method for method in suite.methods}
    runs = {
        methods[label]: [make_run(methods[label].strategy, seed=seed, test=test) for seed, test in enumerate(losses)]
        for label, losses in tests.items()
    }
    (results,) = by_metric(suite, runs, recorded=False)
    return results


# ------------------------------------------------------------ runs


@pytest.mark.long
def test_search_never_holds_the_targets_it_is_judged_by(folder, monkeypatch):
    table = BenchmarkTable(name="quake", path=folder / "quake.parquet", task_type=TaskType.BINARY)
    protocol = protocol_of(table.task_type, metric="mse", rows=1000, trial_seconds=20.0)
    key = make_key(protocol, "quake", "random", 3, Budget(trials=6))
    prepare, given = SearchTable.prepare, {}

    def watch(self, path, y, folds, space, *, seed, weight):
        given.update(y=y, fold=folds[0], true=self.y)
        prepare(self, path, y, folds, space, seed=seed, weight=weight)

    monkeypatch.setattr(SearchTable, "prepare", watch)
    run = search(protocol, table, key)
    assert len(given["fold"].train) == 90 and len(given["fold"].validation) == 60
    hidden = given["fold"].validation[given["y"][given["fold"].validation] != given["true"][given["fold"].validation]]
    assert 0 < len(hidden) <= 30 and len(np.unique(given["y"][hidden])) == 1
    assert len(run.losses) == 6 and run.forms["selection"][-1][0] == 6
    n, validation, test = run.forms["best"][-1]
    position = run.losses.index(min(loss for loss in run.losses if loss is not None))
    assert (n, validation, test) == (6, run.losses[position], run.test_losses[position])
    assert run.origins[:5] == ["warm start"] * 5
    assert run.memory_mib["training"] > 50 and sum(run.cpu_seconds) > 0
    assert json.loads(json.dumps(run.forms)) == {form: [list(row) for row in rows] for form, rows in run.forms.items()}


def test_values_are_standardised_and_losses_come_back_in_the_unit_of_the_target(folder, monkeypatch):
    monkeypatch.setattr(search_loop, "one_thread_executor", lambda n, **_: InProcessExecutor())  # starts sooner
    table = BenchmarkTable(name="bodyfat", path=folder / "bodyfat.parquet", task_type=TaskType.REGRESSION)
    protocol = protocol_of(table.task_type, metric="mse", rows=1000, trial_seconds=20.0)
    run = search(protocol, table, make_key(protocol, "bodyfat", "random", 0, Budget(trials=5)))
    assert run.unit == pytest.approx(2500, rel=0.3)
    rows = to_rows(by_metric(OPTDIVBO, {OPTDIVBO.methods[5]: [run]}, recorded=False))
    selected = rows[rows["form"] == "selection"].iloc[0]
    assert selected["method"] == "RS-ES"
    assert selected["test"] == pytest.approx(run.forms["selection"][-1][2] * run.unit)
    assert selected["test"] < 2500  # better than the mean


def test_all_strategies_begin_like_random_search():
    space = make_recording().space
    study = Study(space, "random", seed=4)
    own = []
    for _ in range(5):
        trial = study.ask()
        own.append(trial.configuration)
        study.tell(trial, Outcome(status=TrialStatus.ERROR))
    assert list(common_start(space, 4)) == own


# ------------------------------------------------------------ what the papers print


@pytest.mark.parametrize(("suite", "number"), [(DIVBO, "1"), (OPTDIVBO, "3"), (OPTDIVBO, "5")])
def test_published_ranks_follow_from_the_published_means(suite, number):
    values = published_values(suite)
    values = values[values["table"] == number]
    means = values[values["measure"] == "test"].pivot_table(index="dataset", columns="method", values="mean")
    printed = values[values["measure"] == "rank"].set_index("method")["mean"]
    assert (means.rank(axis=1).mean() - printed).abs().max() < 0.006
    assert set(printed.index) == {label for t in suite.printed if t.number == number for label in t.methods}


def test_every_printed_method_exists_and_has_numbers():
    for suite in SUITES.values():
        values, labels = published_values(suite), {method.label for method in suite.methods}
        for table in suite.printed:
            assert set(table.methods) <= labels
            assert set(values.loc[values["table"] == table.number, "method"]) <= set(table.methods)
        assert set(published_counts(suite)["baseline"]) == set(suite.baselines)
    assert display_unit("delta_elevators", "mse") == 1e-6 and display_unit("quake", "accuracy") == 0.01


def test_losses_stand_beside_the_printed_ones():
    results = make_results(RS=[0.48, 0.5], DivBO=[0.45, 0.46], ensemble_gain=[0.4, 0.4])
    table = printed_table(results, DIVBO.printed[0])
    assert table.columns == ("method", "quake", "rank", "paper's rank")
    assert table.rows == (
        ("RS", "49.00 ± 1.41 (48.17)", "2.00", "9.00"),
        ("DivBO", "45.50 ± 0.71 (45.55)", "1.00", "1.00"),
        ("ensemble_gain", "40.00 ± 0.00", "-", "-"),
    )
    assert table.best == {(2, 1)}
    assert printed_table(results, DIVBO.printed[1]) is None  # a single method of it has runs


def test_ranks_of_the_paper_are_those_on_data_sets_it_has():
    results = make_results(Stacking=[0.48], DivBO=[0.45])
    other = {method: [*runs, make_run(method.strategy, "cpu_act")] for method, runs in results.runs.items()}
    (results,) = by_metric(DIVBO, other, recorded=False)
    table = printed_table(results, DIVBO.printed[2])  # quake is in table 9, cpu_act is not
    assert [row[1:] for row in table.rows] == [
        ("40.00", "48.00 (46.58)", "1.75", "2.00"), ("40.00 (5.37)", "45.00 (45.55)", "1.25", "1.00")
    ]  # fmt: skip
    assert "it has (1 of these 2)" in table.note


def test_runs_without_partner_are_left_out_and_reported():
    results = make_results(RS=[0.48, 0.5], DivBO=[0.45])
    table = printed_table(results, DIVBO.printed[0])
    assert table.rows[0][1] == "48.00 (48.17)"
    assert "not all methods have them: 1 of the pairs" in table.note


def test_missing_runs_of_an_own_method_cost_the_others_no_pair():
    results = make_results(RS=[0.48, 0.5], DivBO=[0.45, 0.46], ensemble_gain=[0.4])
    table = printed_table(results, DIVBO.printed[0])
    assert table.rows[0][1] == "49.00 ± 1.41 (48.17)"
    assert table.rows[2][1] == "40.00"
    assert "Left out" not in table.note


def test_validation_losses_are_the_lowest_so_far():
    results = make_results(RS=[0.48])
    (method,) = results.runs
    forms = {"best": [(5, 0.3, 0.5), (10, 0.4, 0.6)]}
    (results,) = by_metric(DIVBO, {method: [replace(results.runs[method][0], forms=forms)]}, recorded=False)
    frame = results.frame(["RS"])
    assert frame["validation"].tolist() == [0.3, 0.3]
    assert frame["test"].tolist() == [0.5, 0.6], "of the ensemble there is, whatever its validation loss"


def test_means_are_written_beside_the_printed_ones_in_one_unit():
    rows = published_rows([make_results(**{"RS": [0.48, 0.5], "RS-ES": [0.4, 0.4]})]).set_index("method")
    assert rows.loc["RS", ["repeats", "test", "published"]].tolist() == [2, 0.49, pytest.approx(0.4817)]
    assert rows.loc["RS", "published_std"] > 0
    (replayed,) = by_metric(OPTDIVBO, {OPTDIVBO.methods[0]: [make_run(table="bodyfat", metric="mse")]}, recorded=True)
    assert published_rows([replayed])["published"].isna().all(), "recorded values are standardised"


def test_verdicts_are_about_the_proposed_method():
    worse = [0.5 + 0.01 * seed for seed in range(8)]
    results = make_results(**{"RS-ES": worse, "BO-ES": [0.3] * 8, "DivBO": [loss - 0.1 for loss in worse]})
    rows = verdict_table(results).rows
    assert rows[0][:4] == ("RS-ES", "1/0/0", "13/2/0", "1/0/0")
    assert rows[1][:4] == ("BO-ES", "0/0/1", "12/1/2", "0/0/1")


def test_speed_pool_and_cost_follow_from_the_runs():
    results = make_results(**{"RB-ES": [0.5], "DivBO": [0.4]})
    (row,) = speed_table(results).rows
    assert row == ("RB-ES", "2.00", "2.00", "1.52 to 1.54")  # after 5 of 10 trials
    assert pool_table(results).rows[1] == ("DivBO", "3.00 (3.4)", "2.00 (1.5)", "40.00 (44.33)", "42.00",
                                           "0.10 (0.23)", "0.30 (0.27)")  # fmt: skip
    assert cost_table([results]).rows[1] == ("divbo", "1", "10.0 %", "20", "5.0", "12.0", "3.0", "15", "200", "300")


def test_sensitivity_is_shown_by_weight_and_growth():
    runs = {method: [make_run(method.strategy, test=0.4 + beta)] for (beta, _), method in SENSITIVITY.items()}
    (results,) = by_metric(DIVBO, runs, recorded=False)
    table = sensitivity_table(results)
    assert table.columns[2:] == ("tau = 0.05", "tau = 0.1", "tau = 0.2", "tau = 0.4")
    assert [row[:3] for row in table.rows] == [
        ("quake", "0.025", "42.50"), ("quake", "0.05", "45.00"), ("quake", "0.1", "50.00"), ("quake", "0.2", "60.00")
    ]  # fmt: skip
    assert sensitivity_table(make_results(RS=[0.5])) is None


def test_a_run_without_success_is_the_worst():
    results = make_results(RS=[0.48], DivBO=[0.45])
    failed = replace(results.runs[DIVBO.methods[0]][0], forms={})
    (results,) = by_metric(DIVBO, {**results.runs, DIVBO.methods[0]: [failed]}, recorded=False)
    assert [row[1:3] for row in printed_table(results, DIVBO.printed[0]).rows] == [
        ("- (48.17)", "2.00"), ("45.00 (45.55)", "1.00")
    ]  # fmt: skip


# ------------------------------------------------------------ methods


def test_methods_can_be_chosen_and_added():
    methods = choose_methods(DIVBO, ["DivBO", "mine=bo:n_initial=3"])
    assert [method.label for method in methods] == ["DivBO", "mine"]
    assert methods[0].strategy_for(is_classification=False, as_published=True) == (
        "divbo:surrogate=pairwise_openbox,cap_losses=False,random_fraction=0,variance=between,failures=worst_seen,"
        "local=climbs,beta=0.01"
    )
    assert choose_methods(DIVBO, ["bo=bo"])[0].strategy == "bo"
    (rising,) = choose_methods(OPTDIVBO, ["RB-OptDivBO"])
    assert rising.strategy_for(is_classification=True, as_published=True) == (
        "rising_bandit:slope=authors,inner=optdivbo"
    )
    assert methods[1].strategy_for(is_classification=True) == "bo:n_initial=3"
    for wrong in (["bo"], ["DivBO=bo"], ["DivBO", "DivBO"]):
        with pytest.raises(SystemExit, match="--methods"):
            choose_methods(DIVBO, wrong)


# ------------------------------------------------------------ the commands


def command(monkeypatch, *words: object) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", *map(str, words)])
    main()


@pytest.mark.long
def test_command_continues_where_it_was_stopped(folder, tmp_path, monkeypatch, capsys):
    asked = []

    def stopped(missing, make_run, *, n_workers, report, scheduler=None):
        for _, table, key in missing[: 3 - len(asked)]:
            asked.append(key)
            metric = "accuracy" if table.is_classification else "mse"
            run = make_run_of(key, metric)
            report(run)
        if len(missing) > 3:
            raise KeyboardInterrupt

    def make_run_of(key, metric):
        return replace(make_run(key.strategy, key.table, key.seed, metric=metric), key=key)

    monkeypatch.setattr(ensemble_suites, "make_runs", stopped)
    words = ["optdivbo", "--data", folder, "--methods", "RS", "RS-ES", "BO-ES", "--trials", 10, "--repeats", 1]
    words += ["--work", tmp_path / "work", "--out", tmp_path / "out", "--workers", 1]
    command(monkeypatch, *words)
    shown = capsys.readouterr().out
    assert "0 of 4 runs are finished" in shown  # RS and RS-ES are one
    assert "lacks them: amazon_employee" in shown
    assert len(FinishedRuns(tmp_path / "work" / "ensembles.jsonl", EnsembleRun, SuiteKey)) == 3
    asked.clear()
    command(monkeypatch, *words)
    assert "3 of 4 runs are finished" in capsys.readouterr().out and len(asked) == 1
    assert pd.read_csv(tmp_path / "out" / "results.csv").shape == (4 * 7, 15)
    beside = pd.read_csv(tmp_path / "out" / "published.csv")
    assert set(beside.columns) >= {"table", "method", "test", "published"} and len(beside) == 6
    circumstances = pd.read_csv(tmp_path / "out" / "circumstances.csv")
    assert circumstances["runs"].tolist() == [4] and circumstances["machine"].tolist() == ["made up"]
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert "Table 1: test error" in summary and "Table 3: mean squared error" in summary
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("<svg xmlns") >= 8 and "OptDivBO (Poduval et al., KDD 2024)" in page
    command(monkeypatch, *words[:-1], 0)
    assert "4 of 4 runs are finished" in capsys.readouterr().out


def test_failed_runs_are_reported_and_affect_no_other(folder, tmp_path, monkeypatch, capsys):
    def half(missing, make_run, *, n_workers, report, scheduler=None):
        report(Failure(key=missing[0][2], error="RuntimeError: no idea", cause="RuntimeError: no idea"))
        report(replace(make_run_for(missing[1][2]), key=missing[1][2]))

    def make_run_for(key):
        return make_run(key.strategy, key.table, key.seed)

    monkeypatch.setattr(ensemble_suites, "make_runs", half)
    words = ["divbo", "--data", folder, "--methods", "RS", "BO", "--trials", 10, "--repeats", 1, "--workers", 1]
    with pytest.raises(SystemExit, match="1 runs failed"):
        command(monkeypatch, *words, "--work", tmp_path)
    assert "no idea" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--methods", "mine=no_such"], "no_such"),
        (["--methods", "mine=bo:wrong=1"], "wrong"),
        (["--trials", "4"], "--trials 4: at least 5"),
        (["--tables", "bodyfat"], "regressions belong to optdivbo"),
        (["--tables", "absent"], "no table 'absent'"),
        (["--workers", "0"], "no finished run"),
    ],
)
def test_mistakes_are_reported_before_anything_runs(folder, tmp_path, monkeypatch, words, message):
    monkeypatch.setattr(ensemble_suites, "make_runs", lambda *_, **__: pytest.fail("nothing should run"))
    rest = [] if "--methods" in words else ["--methods", "RS"]
    with pytest.raises(SystemExit, match=message):
        command(monkeypatch, "divbo", "--data", folder, "--work", tmp_path, *words, *rest)


@pytest.mark.long
def test_recorded_results_match_the_replays(tmp_path, monkeypatch, capsys):
    recorded = make_recording()
    save_recorded(replace(recorded, dataset="quake", space_name="default"), tmp_path)
    save_recorded(replace(recorded, dataset="quake", space_name="volcano"), tmp_path)
    save_recorded(replace(recorded, dataset="made", space_name="default"), tmp_path)
    monkeypatch.setattr(ensemble_suites, "RECORDED", tmp_path)
    monkeypatch.setattr(recorded_history, "RECORDED", tmp_path)

    code = "first"

    def replay_here(missing, *, n_trials, n_workers, report, scheduler=None):
        for recording, key in missing:
            report(replace(replay_runs._replay(recording.path, key, n_trials=n_trials), code=code))

    def judge_here(missing, make_run, *, n_workers, report, scheduler=None):
        for each in missing:
            report(parallel._run(make_run, *each))

    monkeypatch.setattr(ensemble_suites, "run_missing", replay_here)
    monkeypatch.setattr(ensemble_suites, "make_runs", judge_here)
    words = ["divbo", "--recorded", "--methods", "RS", "RS-ES", "BO", "--trials", 10, "--repeats", 2, "--workers", 1]
    words += ["--work", tmp_path / "work", "--replays", tmp_path / "replays"]
    command(monkeypatch, *words, "--repeats", 1)
    assert "2 data sets" in capsys.readouterr().out, "all that is recorded, each once, in the space of the papers"
    assert {path.stem for path in (tmp_path / "replays").glob("*.jsonl")} == {
        "made-default-accuracy", "quake-volcano-accuracy",
    }  # fmt: skip
    words += ["--tables", "quake", "--out", tmp_path / "out"]
    command(monkeypatch, *words)
    assert "2 of 4 replays are finished" in capsys.readouterr().out
    rows = pd.read_csv(tmp_path / "out" / "results.csv").set_index(["strategy", "seed", "form"]).sort_index()
    lines = (tmp_path / "replays" / "quake-volcano-accuracy.jsonl").read_text().splitlines()
    replays = [json.loads(line) for line in lines]
    assert len(replays) == 4
    for run in replays:
        mine, curve = rows.loc[run["key"]["strategy"], run["key"]["seed"]], run["curve"][-1]
        assert mine.loc["selection", "validation"] == pytest.approx(curve["validation"], abs=1e-8)
        assert mine.loc["selection", "test"] == pytest.approx(curve["test"], abs=1e-8)
        assert mine.loc["best", "validation"] == pytest.approx(curve["single_validation"], abs=1e-8)
    command(monkeypatch, *words)
    again = capsys.readouterr().out
    assert "4 of 4 replays are finished" in again and "remain to be judged" not in again
    assert "paper's rank" in again
    code = "second"  # which chooses the same
    command(monkeypatch, *words, "--fresh")
    assert "made by different code (4 by second)" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="fewer than --trials"):
        command(monkeypatch, *words, "--trials", 31)
    with pytest.raises(SystemExit, match=r"colic not recorded in .*; there are made, quake"):
        command(monkeypatch, *words, "--tables", "quake", "colic")
