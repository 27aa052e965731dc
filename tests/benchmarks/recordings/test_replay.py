from __future__ import annotations

import argparse
import csv
import functools
import json
from dataclasses import replace

import numpy as np
import pytest
from synthetic_recording import make_recording

from benchmarks.recordings import replay_runs, replay_study
from benchmarks.recordings.recorded_history import load_recorded, save_recorded
from benchmarks.recordings.redrawn_split import redraw_split
from benchmarks.recordings.replay import ReplayObjective, ensemble_curve, replay
from benchmarks.recordings.replay_runs import Run, RunFiles, RunKey
from benchmarks.runs import parallel
from cashmere.data.task import TaskType
from cashmere.ensembles import select_ensemble
from cashmere.evaluation.metrics import get_metric
from cashmere.strategies import BayesianOptimisation


@pytest.fixture
def objective() -> ReplayObjective:
    history = make_recording()
    return ReplayObjective.of(history, get_metric("log_loss", TaskType.BINARY))


@pytest.mark.parametrize("strategy", ["random", "bo"])
def test_same_seed_chooses_the_same_and_nothing_twice(objective, strategy):
    metric = get_metric("log_loss", TaskType.BINARY)
    first, seconds = replay(objective, metric, strategy, seed=1, n_trials=20)
    again, _ = replay(objective, metric, strategy, seed=1, n_trials=20)
    other, _ = replay(objective, metric, strategy, seed=2, n_trials=20)
    assert first == again != other
    assert len(set(first)) == 20
    assert seconds > 0


def test_whole_recording_can_be_replayed(objective):
    chosen, _ = replay(objective, get_metric("log_loss", TaskType.BINARY), "random", seed=0, n_trials=30)
    assert sorted(chosen) == list(range(30))


def test_shorter_replay_is_the_beginning_of_a_longer_one(objective):
    metric = get_metric("log_loss", TaskType.BINARY)
    long, _ = replay(objective, metric, "bo", seed=0, n_trials=15)
    assert replay(objective, metric, "bo", seed=0, n_trials=10)[0] == long[:10]


def test_within_the_lookahead_no_outcome_is_known(objective):
    metric = get_metric("log_loss", TaskType.BINARY)
    strategy = "bo:n_initial=2,random_fraction=0"
    late, _ = replay(objective, metric, strategy, seed=0, n_trials=20, lookahead=12)
    unseen, _ = replay(objective, metric, "random", seed=0, n_trials=12)
    assert late[:12] == unseen
    assert late != replay(objective, metric, strategy, seed=0, n_trials=20)[0]


def test_lookahead_behind_a_strategy_must_be_a_number():
    with pytest.raises(SystemExit, match="expected a whole number from 1 behind @; found 'x'"):
        replay_study.LabelledStrategy.of("bo@x")


@pytest.mark.parametrize("text", ["bo@8", "begun=bo+opening"])
def test_other_commands_refuse_what_only_replays_know(text):
    replay_study.LabelledStrategy.of(text)
    with pytest.raises(SystemExit, match="only the command `replay`"):
        replay_study.LabelledStrategy.of_search(text)


@pytest.mark.parametrize("task_type", list(TaskType))
def test_curve_is_ensemble_selection_on_what_was_chosen(task_type):
    history = make_recording(task_type)
    metric = get_metric("log_loss" if task_type.is_classification else "mse", task_type)
    chosen = [3, *range(10, 20)]
    rows = ensemble_curve(history, metric, chosen)
    assert [row["trials"] for row in rows] == [5, 10]
    there = [i for i in chosen[:10] if i != 3]
    result = select_ensemble(history.validation[there], history.y_validation, metric, size=25, tie="secondary")
    test = np.tensordot(result.weights, history.test[there].astype(np.float64), axes=1)
    losses = [metric.loss(history.y_validation, history.validation[i]) for i in there]
    assert rows[1]["validation"] == pytest.approx(result.trajectory[-1])
    assert rows[1]["test"] == pytest.approx(metric.loss(history.y_test, test))
    assert rows[1]["single_validation"] == pytest.approx(min(losses))
    best = there[int(np.argmin(losses))]
    assert rows[1]["single_test"] == pytest.approx(metric.loss(history.y_test, history.test[best]))


def test_curve_begins_with_the_first_success():
    history = make_recording(failures=(0, 1, 2, 3, 4))
    rows = ensemble_curve(history, get_metric("log_loss", TaskType.BINARY), list(range(10)))
    assert [row["trials"] for row in rows] == [10]


# ------------------------------------------------------------ code that decides


@pytest.mark.parametrize(
    "name",
    [
        "records/trial.py",
        "study/decisions.py",
        "records/loss.py",
        "evaluation/metrics.py",
        "strategies/divbo.py",
        "pretraining/opening_choice.py",
        "benchmarks/recordings/quantised_predictions.py",
        "benchmarks/recordings/replay.py",
        "benchmarks/recordings/redrawn_split.py",
        "benchmarks/recordings/emulator.py",
    ],
)
def test_digest_depends_on_the_code_that_decides(tmp_path, monkeypatch, name):
    files = replay_runs.deciding_code()
    before = replay_runs.code_digest.__wrapped__()
    changed = tmp_path / "changed.py"
    changed.write_bytes(files[name].read_bytes() + b"# changed")
    monkeypatch.setattr(replay_runs, "deciding_code", lambda: files | {name: changed})
    assert replay_runs.code_digest.__wrapped__() != before


# ------------------------------------------------------------ files of runs


def make_run(seed: int, trials: int = 10) -> Run:
    key = RunKey(recording="made-small", digest="d", metric="log_loss", strategy="bo:a='ä'", seed=seed)
    return Run(key=key, trials=trials, chosen=[1, 2], suggest_seconds=1.0, curve=[{"trials": 5, "test": 0.1}], code="c")


def reopened(folder) -> RunFiles:
    files = RunFiles(folder)
    files.load([("made-small", "log_loss")])
    return files


def test_runs_come_back_and_serve_shorter_ones(tmp_path):
    RunFiles(tmp_path).add(make_run(0))
    files = reopened(tmp_path)
    assert files.find(make_run(0).key, 10) == make_run(0) == files.find(make_run(0).key, 5)
    assert files.find(make_run(0).key, 11) is None
    assert files.find(make_run(1).key, 5) is None
    files.add(make_run(0, trials=20))
    assert reopened(tmp_path).find(make_run(0).key, 11).trials == 20


def test_seconds_of_a_longer_run_do_not_stand_for_a_shorter_one():
    run = make_run(0, trials=10)
    assert replay_study.tidy([("bo", run)], 10)["suggest_seconds"].tolist() == [0.1]
    assert replay_study.tidy([("bo", run)], 5)["suggest_seconds"].isna().all()


@pytest.mark.parametrize("strategy", ["contest:inner=bo", "dac_hb", "rb_smac"])
def test_longer_runs_do_not_answer_for_shorter_ones_of_strategies_that_plan(tmp_path, strategy):
    short, long = (
        replace(run, key=replace(run.key, strategy=strategy)) for run in (make_run(0), make_run(0, trials=20))
    )
    files = reopened(tmp_path)
    files.add(short)
    files.add(long)
    again = reopened(tmp_path)
    assert (again.find(short.key, 10), again.find(short.key, 20)) == (short, long)
    assert again.find(short.key, 15) is None


def test_line_cut_short_costs_one_run_only(tmp_path):
    files = RunFiles(tmp_path)
    files.add(make_run(0))
    files.add(make_run(1))
    path = tmp_path / "made-small-log_loss.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    files.add(make_run(2))
    files = reopened(tmp_path)
    assert [files.find(make_run(seed).key, 10) is not None for seed in range(3)] == [True, False, True]


def test_forgetting_removes_only_what_is_named(tmp_path):
    files = RunFiles(tmp_path)
    for seed in range(3):
        files.add(make_run(seed))
    assert files.forget([make_run(1).key, make_run(9).key]) == 1
    files = reopened(tmp_path)
    assert [files.find(make_run(seed).key, 10) is not None for seed in range(3)] == [True, False, True]


# ------------------------------------------------------------ the command


BO = "bo:n_global=50,n_local=5"


def command(*words: object) -> None:
    parser = argparse.ArgumentParser()
    replay_study.add_arguments(parser)
    replay_study.main(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def here(monkeypatch):
    """Replay in this process, which starts faster than a worker."""

    def run_here(missing, *, n_trials, n_workers, report, scheduler=None):
        make_run = functools.partial(replay_runs._replay, n_trials=n_trials)
        for recording, key in missing:
            report(parallel._run(make_run, recording.path, key))

    monkeypatch.setattr(replay_study, "run_missing", run_here)


@pytest.mark.long
def test_runs_in_workers_match_those_of_this_process(tmp_path, capsys, objective):
    path = save_recorded(make_recording(), tmp_path)
    words = ["--recordings", path, "--trials", 10, "--seeds", 2, "--work", tmp_path / "work"]
    command("--strategies", f"bo={BO}", "random", "--workers", 1, *words)
    output = capsys.readouterr().out
    assert "0 of 4 runs are finished, 4 are missing" in output
    assert "1 recording, 2 seeds" in output
    runs = [json.loads(line) for line in (tmp_path / "work" / "made-small-log_loss.jsonl").read_text().splitlines()]
    # Seed by seed, so that a stop leaves pairs.
    assert [(run["key"]["seed"], run["key"]["strategy"]) for run in runs] == [
        (0, BO),
        (0, "random"),
        (1, BO),
        (1, "random"),
    ]
    history = load_recorded(path)
    metric = get_metric("log_loss", TaskType.BINARY)
    history = redraw_split(history, 1)
    chosen, _ = replay(ReplayObjective.of(history, metric), metric, BO, seed=1, n_trials=10)
    assert runs[2]["chosen"] == chosen
    assert runs[2]["curve"] == ensemble_curve(history, metric, chosen)


def test_free_candidates_are_other_runs(tmp_path, capsys, here):
    path = save_recorded(make_recording(), tmp_path)
    words = ["--recordings", path, "--work", tmp_path / "work", "--seeds", 1, "--trials", 10]
    command("--strategies", f"bo={BO}", *words)
    command("--strategies", f"bo={BO}", "--free", *words)
    assert "0 of 1 runs are finished" in capsys.readouterr().out
    lines = (tmp_path / "work" / "made-small-log_loss.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert [run["key"]["candidates"] for run in runs] == ["recorded", "free"]
    assert len(runs[0]["chosen"]) == 10 and runs[1]["chosen"] == [] and len(runs[1]["curve"]) == 2


@pytest.mark.long
def test_second_call_adds_what_is_missing(tmp_path, capsys, here):
    path = save_recorded(make_recording(), tmp_path)
    words = ["--recordings", path, "--work", tmp_path / "work", "--out", tmp_path / "out"]
    file = tmp_path / "work" / "made-small-log_loss.jsonl"
    command("--strategies", f"bo={BO}", "random", "--seeds", 2, "--trials", 10, *words)
    lines = file.read_text().splitlines()
    capsys.readouterr()

    # A new name for a strategy is no new run; one strategy and one seed more are.
    command(
        "--strategies",
        f"bo={BO}",
        "free=bo:n_global=50,cap_losses=False",
        "chance=random",
        "--seeds",
        3,
        "--trials",
        10,
        *words,
    )
    assert "4 of 9 runs are finished, 5 are missing" in capsys.readouterr().out
    assert file.read_text().splitlines()[:4] == lines
    assert len(file.read_text().splitlines()) == 9
    with (tmp_path / "out" / "results.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert {(row["strategy"], row["seed"], row["trials"]) for row in rows} == {
        (strategy, seed, "10") for strategy in ("bo", "free", "chance") for seed in "012"
    }
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert "### Average ranks" in summary
    assert "| chance |" in summary
    assert (tmp_path / "out" / "index.html").read_text().count("<svg xmlns") == 3
    assert (tmp_path / "out" / "test.svg").read_text().startswith("<svg xmlns=")

    # Fewer trials are the beginning of what is there.
    command("--strategies", f"bo={BO}", "chance=random", "--seeds", 2, "--trials", 5, "--all-pairs", *words)
    output = capsys.readouterr().out
    assert "missing" not in output
    assert "all pairs, after 5 trials" in output

    command("--strategies", f"bo={BO}", "--seeds", 2, "--trials", 5, "--fresh", *words)
    assert "0 of 2 runs are finished, 2 are missing" in capsys.readouterr().out
    assert len(file.read_text().splitlines()) == 9


def test_other_recording_of_the_same_name_is_replayed_again(tmp_path, capsys, here):
    words = [
        "--strategies",
        "random",
        "--reference",
        "random",
        "--trials",
        5,
        "--seeds",
        1,
        "--work",
        tmp_path / "work",
    ]
    command(*words, "--recordings", save_recorded(make_recording(), tmp_path / "a"))
    command(*words, "--recordings", save_recorded(make_recording(n_rows=50), tmp_path / "b"))
    assert capsys.readouterr().out.count("0 of 1 runs are finished") == 2


def test_stopped_study_keeps_finished_runs(tmp_path, capsys, monkeypatch, here):
    path = save_recorded(make_recording(), tmp_path)
    run_all = replay_study.run_missing

    def stopped(missing, **options):
        run_all(missing[:3], **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(replay_study, "run_missing", stopped)
    words = ["--recordings", path, "--trials", 5, "--seeds", 2, "--work", tmp_path / "work"]
    command("--strategies", f"bo={BO}", "random", *words)
    output = capsys.readouterr().out
    assert "What is finished is kept" in output
    assert "Only 1 of 2 pairs" in output
    monkeypatch.setattr(replay_study, "run_missing", run_all)
    command("--strategies", f"bo={BO}", "random", *words)
    assert "3 of 4 runs are finished, 1 are missing" in capsys.readouterr().out


def test_failing_strategy_does_not_stop_the_others(tmp_path, capsys, here, monkeypatch):
    path = save_recorded(make_recording(TaskType.REGRESSION), tmp_path)

    def fail(*_, **__):
        raise RuntimeError("no idea")

    monkeypatch.setattr(BayesianOptimisation, "suggest", fail)
    words = ["--recordings", path, "--trials", 5, "--seeds", 2, "--work", tmp_path / "work"]
    with pytest.raises(SystemExit, match="2 of 4 runs failed"):  # not exit code 0
        command("--strategies", "random", "bo", "--reference", "random", *words)
    output = capsys.readouterr().out
    assert output.count("RuntimeError: no idea") == 3  # of each of the two, and the end of one traceback
    assert output.count("Traceback") == 1
    assert "bo has no runs and is left out" in output
    assert "made-small, mse" in output


OWN_STRATEGIES = """
from cashmere.records import Suggestion
from cashmere.strategies import RandomSearch


class Mine:
    def __init__(self, space, weight=0.0):
        self.chance = RandomSearch(space)

    def suggest(self, history, rng):
        return self.chance.suggest(history, rng)


class Elsewhere(Mine):
    def suggest(self, history, rng):
        known = super().suggest(history, rng).configuration
        return Suggestion(configuration={**known, "x": float(rng.random())})
"""


def test_own_strategy_is_replayed_by_its_path_and_again_when_it_changes(tmp_path, capsys, here, monkeypatch):
    module = tmp_path / "strategies_to_replay.py"
    module.write_text(OWN_STRATEGIES)
    monkeypatch.syspath_prepend(tmp_path)
    path = save_recorded(make_recording(), tmp_path)
    words = ["--recordings", path, "--trials", 10, "--seeds", 2, "--work", tmp_path / "work"]
    own = ["strategies_to_replay.Mine", "heavy=strategies_to_replay.Mine:weight=0.5"]
    command("--strategies", "random", *own, "--reference", "random", *words)
    shown = capsys.readouterr().out
    assert "6 are missing" in shown and "heavy" in shown and "different code" not in shown
    module.write_text(OWN_STRATEGIES + "# changed\n")
    replay_runs.code_of.cache_clear()
    command("--strategies", "random", *own, "--reference", "random", *words, "--workers", 0)
    shown = capsys.readouterr().out
    assert shown.count("made by different code") == 2 and "2 of 2 runs of heavy were made by different code" in shown
    with pytest.raises(SystemExit, match="2 of 2 runs failed"):
        command("--strategies", "random", "strategies_to_replay.Elsewhere", "--reference", "random", *words)
    output = capsys.readouterr().out
    assert "not in the recording made-small was suggested. Replay with free candidates" in " ".join(output.split())
    assert output.count("Traceback") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--trials", 35], "30 configurations, too few"),
        (["--trials", 22], "--trials 22: expected 5 or a multiple of it"),
        (["--seeds", 0], "--seeds must be at least 1"),
        (["--strategies", "bo", "mine"], "Unknown strategy 'mine'.*my_module.MyStrategy"),
        (["--strategies", "bo", "no_module.Mine"], "There is no module 'no_module'"),
        (["--checkpoints", 7], "multiples of 5"),
        (["--reference", "optdivbo"], "must be one of --strategies"),
        (["--metric", "acuracy"], "accuracy"),
        (["--metric", "mse"], "None of the recordings can be used"),
        (["--strategies", "bo", "bo:capp=1"], "cap_losses"),
        (["--strategies", "bo", "bo=random"], "same label"),
        (["--strategies", "bo", "optdivbo:measure=mse"], "measure=mse: .*'black_box'"),
        (["--recordings", "absent"], "No recording 'absent'"),
        (["--recordings", "/absent/made.zip"], "No recording '/absent/made.zip': neither a file"),
    ],
)
def test_mistakes_are_reported_before_anything_runs(tmp_path, words, message):
    path = save_recorded(make_recording(), tmp_path)
    base = ["--recordings", path, "--strategies", "bo", "random", "--trials", 20, "--work", tmp_path / "work"]
    with pytest.raises(SystemExit, match=message):
        command(*base, *words)
    assert not list(tmp_path.glob("work/*.jsonl"))


def test_folder_without_recordings_is_named(tmp_path):
    with pytest.raises(SystemExit, match=f"--recordings {tmp_path}: the folder holds no recordings"):
        command("--recordings", tmp_path)
