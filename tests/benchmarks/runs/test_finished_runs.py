from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import pytest

from benchmarks.runs.finished_runs import FinishedRuns


@dataclass(frozen=True, kw_only=True)
class Key:
    table: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class Run:
    key: Key
    losses: list[float]
    note: str = ""


def make_run(seed: int, *losses: float) -> Run:
    return Run(key=Key(table="wörter", seed=seed), losses=list(losses))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "runs.jsonl"


def opened(path) -> FinishedRuns[Key, Run]:
    return FinishedRuns(path, Run, Key)


def test_runs_come_back_and_the_latest_counts(path):
    runs = opened(path)
    for run in (make_run(0, 0.5), make_run(1), make_run(0, 0.25)):
        runs.add(run)
    for each in (runs, opened(path)):
        assert len(each) == 2
        assert each.find(make_run(0).key) == make_run(0, 0.25)
        assert each.find_all(make_run(0).key) == [make_run(0, 0.5), make_run(0, 0.25)]
        assert each.find(make_run(2).key) is None and each.find_all(make_run(2).key) == []


def test_line_cut_short_costs_one_run_only(path):
    runs = opened(path)
    runs.add(make_run(0))
    runs.add(make_run(1))
    path.write_bytes(path.read_bytes()[:-9])
    runs.add(make_run(2))
    again = opened(path)
    assert [again.find(make_run(seed).key) is not None for seed in range(3)] == [True, False, True]


def test_keys_written_beside_the_other_fields_are_read(path):
    path.parent.mkdir()
    values = asdict(make_run(3, 1.0))
    path.write_text(json.dumps(values.pop("key") | values) + "\n")
    assert opened(path).find(make_run(3).key) == make_run(3, 1.0)


@pytest.mark.parametrize("line", ["", "[]", "1", "{}", '{"key": {"table": "a"}, "losses": []}', '{"key": 1, "x": 2}'])
def test_lines_of_another_kind_are_skipped_and_kept(path, line):
    path.parent.mkdir()
    path.write_text(line + "\n")
    runs = opened(path)
    runs.add(make_run(0))
    assert runs.forget([make_run(0).key, make_run(5).key]) == 1
    assert len(runs) == len(opened(path)) == 0
    assert path.read_text() == line + "\n"


def test_forgetting_leaves_the_other_runs(path):
    assert opened(path).forget([make_run(0).key]) == 0
    runs = opened(path)
    for seed in (0, 1, 0):
        runs.add(make_run(seed))
    assert runs.forget([make_run(0).key]) == 2
    assert runs.find(make_run(0).key) is None
    assert opened(path).find(make_run(1).key) == make_run(1)
