from __future__ import annotations

from dataclasses import replace

import pytest
from synthetic_recording import make_recording

from benchmarks.recordings import learned_opening, replay_runs
from benchmarks.recordings.learned_opening import learn_opening, load_opening
from benchmarks.recordings.recorded_history import save_recorded
from benchmarks.recordings.replay import ReplayObjective, replay
from benchmarks.recordings.replay_study import LabelledStrategy
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric

METRIC = get_metric("log_loss", TaskType.BINARY)


@pytest.fixture
def other():
    return replace(make_recording(failures=(3, 4)), dataset="other")


def test_the_best_on_other_tables_comes_first(other):
    opening = learn_opening(make_recording(), [other], "log_loss", most_steps=5)
    losses = ReplayObjective.of(other, METRIC).losses
    first = other.configurations.index(opening[0])
    assert 1 <= len(opening) <= 5
    assert sorted(losses).index(losses[first]) < 3
    assert not {3, 4} & {other.configurations.index(configuration) for configuration in opening}


def test_the_table_itself_and_tables_of_other_kinds_do_not_count(other):
    target = make_recording()
    unlike = replace(make_recording(TaskType.REGRESSION), dataset="values")
    strange = replace(make_recording(n=10), dataset="strange")
    assert learn_opening(target, [target, unlike, strange], "log_loss") == []
    alone = learn_opening(target, [other], "log_loss")
    assert learn_opening(target, [target, unlike, strange, other], "log_loss") == alone


def test_two_recordings_of_a_table_count_as_one(other):
    target = make_recording()
    some = replace(make_recording(n=20), dataset="other")
    alone = learn_opening(target, [other], "log_loss")
    assert learn_opening(target, [some, other], "log_loss") == learn_opening(target, [other, some], "log_loss") == alone


def test_other_sources_make_another_run(tmp_path, other):
    unlike = replace(make_recording(TaskType.REGRESSION), dataset="values")
    paths = [save_recorded(history, tmp_path) for history in (make_recording(), unlike, other)]
    target, values, classes = map(replay_runs.Recording.of, paths)
    without = replay_runs.opening_sources(target, [])
    assert replay_runs.opening_sources(target, [target, values]) == without
    assert replay_runs.opening_sources(target, [target, values, classes]) != without


def test_losses_of_the_target_do_not_matter(other):
    target = make_recording()
    blind = replace(target, validation=target.validation[:, ::-1], y_test=1 - target.y_test)
    assert learn_opening(target, [other], "log_loss") == learn_opening(blind, [other], "log_loss")


def test_replays_begin_with_it(other):
    target = make_recording()
    opening = learn_opening(target, [other], "log_loss", most_steps=4)
    objective = ReplayObjective.of(target, METRIC)
    chosen, _ = replay(objective, METRIC, "random", seed=0, n_trials=10, opening=opening)
    assert [target.configurations[i] for i in chosen[: len(opening)]] == opening


def test_a_run_with_an_opening_is_another_run(tmp_path, monkeypatch, other):
    paths = [save_recorded(history, tmp_path) for history in (make_recording(), other)]
    monkeypatch.setattr(learned_opening, "kept_recordings", lambda: paths)
    recording = replay_runs.Recording.of(paths[0])
    keys = [
        replay_runs.RunKey(
            recording=recording.name,
            digest=recording.digest,
            metric="log_loss",
            strategy="random",
            seed=0,
            opening=begun,
        )
        for begun in (False, True)
    ]
    plain, begun = (replay_runs._replay(paths[0], key, n_trials=10) for key in keys)
    target = replay_runs._load(paths[0], recording.digest)
    opening = load_opening(target, "log_loss")
    assert [target.configurations[i] for i in begun.chosen[: len(opening)]] == opening[:10] != []
    assert plain.chosen != begun.chosen


@pytest.mark.parametrize(
    ("text", "label", "strategy", "opening"),
    [
        ("bo+opening", "bo+opening", "bo", True),
        ("begun=bo:n_initial=3+opening", "begun", "bo:n_initial=3", True),
        ("bo:n_initial=3", "bo:n_initial=3", "bo:n_initial=3", False),
    ],
)
def test_an_opening_stands_behind_the_strategy(text, label, strategy, opening):
    assert LabelledStrategy.of(text) == LabelledStrategy(label=label, strategy=strategy, opening=opening)
