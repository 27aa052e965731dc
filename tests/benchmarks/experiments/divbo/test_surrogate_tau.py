from __future__ import annotations

import argparse
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from synthetic_recording import make_recording

from benchmarks.experiments.divbo import surrogate_tau
from benchmarks.experiments.divbo.surrogate_tau import PAIRS, Key, TimedFit, fits, frame_of, judge, split
from benchmarks.recordings.recorded_history import save_recorded
from benchmarks.runs.row_file import RowFile
from cashmere.acquisition.diversity import cross_measure
from cashmere.data.task import TaskType
from cashmere.strategies.shared import diversity_surrogates


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    monkeypatch.setattr(surrogate_tau, "N_CANDIDATES", 30)


def make_key(**changes) -> Key:
    values = {"recording": "r", "digest": "d", "seed": 0, "observations": 50, "measure": "div", "surrogate": "a"}
    return Key(**(values | changes))


def parse(*texts: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    surrogate_tau.add_arguments(parser)
    return parser.parse_args(texts)


class Oracle:
    """Knows the predictions of all configurations, by their rows."""

    def __init__(self, X, predictions, y, sign):
        self.of_row = {row.tobytes(): p for row, p in zip(X, predictions, strict=True)}
        self.y, self.sign = y, sign

    def fit(self, X, predictions, y, rng):
        self.X = X
        return self

    def predict_pairs(self, candidates, others):
        A, B = (np.stack([self.of_row[row.tobytes()] for row in X]) for X in (candidates, others))
        return self.sign * cross_measure("div", A, B, self.y), None

    def sample_pairs(self, candidates, members):
        return self.predict_pairs(candidates, self.X[members])[0][None]


@pytest.mark.parametrize("sign", [1, -1])
def test_tau_of_a_surrogate_that_knows_all_and_of_its_opposite(monkeypatch, sign):
    data = split(make_recording(n=50), 0, 20)
    X, predictions = np.concatenate([data.X, data.X_test]), np.concatenate([data.known, data.unknown])
    oracle = Oracle(X, predictions, data.y, sign)
    monkeypatch.setattr(surrogate_tau, "make_diversity_surrogate", lambda name, measure: oracle)
    row = judge(data, "oracle", "div", 0)
    assert [row[pairs] for pairs in PAIRS] == pytest.approx([sign] * 3)
    assert row["n_test"] == 29
    assert row["n_pool"] == len(data.pool) <= 20


def test_splits_are_of_different_successful_configurations():
    history = make_recording(n=300, failures=(3, 7))
    small, large = split(history, 0, 20), split(history, 0, 60)
    assert len(small.X) == 20
    assert len(small.X_test) == 200
    assert np.isfinite(small.known).all() and np.isfinite(small.unknown).all()
    np.testing.assert_array_equal(small.X, large.X[:20])
    np.testing.assert_array_equal(small.X_test, large.X_test)
    assert not {row.tobytes() for row in large.X} & {row.tobytes() for row in large.X_test}
    assert not np.array_equal(small.X, split(history, 1, 20).X)


@pytest.mark.parametrize("surrogate", ["prediction", "pairwise_fast"])
def test_real_surrogates_are_judged_on_regression(surrogate):
    row = judge(split(make_recording(TaskType.REGRESSION, n=40), 0, 20), surrogate, "mse", 0)
    assert all(-1 <= float(row[pairs]) <= 1 for pairs in PAIRS)


def test_measures_fit_tasks():
    assert fits("ce", TaskType.MULTICLASS)
    assert fits("mse", TaskType.REGRESSION)
    assert not fits("ce", TaskType.REGRESSION)
    assert not fits("mse", TaskType.BINARY)


def test_the_last_row_of_a_case_counts(tmp_path):
    file = RowFile(tmp_path / "seconds.csv", TimedFit)
    for seed, seconds in ((0, 1.0), (1, 2.0), (0, 3.0)):
        facts = {"cpu_seconds": seconds, "wall_seconds": seconds, "fit_cpu_seconds": seconds, "code": "c"}
        file.add([TimedFit(**asdict(make_key(seed=seed)), **facts)])
    rows = frame_of(file, [make_key(), make_key(seed=1), make_key(seed=2)])
    assert sorted(zip(rows["seed"], rows["cpu_seconds"], strict=True)) == [(0, 3.0), (1, 2.0)]
    assert frame_of(file, [make_key(observations=60)]).empty


def test_order_is_seed_by_seed_and_small_recordings_are_left_out(tmp_path, capsys):
    save_recorded(make_recording(n=50), tmp_path)
    arguments = parse("--recordings", str(tmp_path), "--observations", "45", "20", "--measures", "div", "mse")
    found = surrogate_tau.find_cases(arguments, Console())
    assert "made-small is left out at 45 observations: 4 others" in capsys.readouterr().out
    keys = [key for _, key in surrogate_tau.seed_by_seed(found, 2)]
    assert {(key.observations, key.measure) for key in keys} == {(20, "div")}
    assert [(key.seed, key.surrogate) for key in keys] == [
        (seed, surrogate) for seed in range(2) for surrogate in ("prediction", "pairwise", "pairwise_fast")
    ]


@pytest.mark.long
def test_second_call_adds_what_is_missing(tmp_path, capsys, monkeypatch):
    save_recorded(make_recording(n=30), tmp_path)
    out = tmp_path / "out"
    common = ["--recordings", str(tmp_path), "--observations", "12", "--repeats", "1", "--workers", "1"]
    common += ["--measures", "div", "--out", str(out), "--surrogates", "prediction", "pairwise_fast"]
    surrogate_tau.main(parse(*common, "--seeds", "1"))
    first, timed = (out / "tau.csv").read_text(), (out / "seconds.csv").read_text()
    assert len(first.splitlines()) == len(timed.splitlines()) == 3
    judged = []
    monkeypatch.setattr(surrogate_tau, "judge_missing", lambda missing, *_: judged.extend(key for _, key in missing))
    surrogate_tau.main(parse(*common, "--seeds", "2"))
    assert [key.seed for key in judged] == [1] * 2
    assert (out / "seconds.csv").read_text() == timed
    summary = (out / "summary.md").read_text()
    assert "2 of 4 fits judged, 2 of 2 timed" in summary
    assert "| all | 12 | all |" in summary
    assert "pairwise_fast / prediction" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="There is no case yet"):
        surrogate_tau.main(parse(*common, "--workers", "0", "--out", str(tmp_path / "other")))


def test_failures_are_reported_and_not_kept(tmp_path, capsys, monkeypatch):
    save_recorded(make_recording(n=50), tmp_path)
    monkeypatch.setattr(
        surrogate_tau,
        "judge_missing",
        lambda missing, _, report: [report(key, "Traceback\nValueError: no") for _, key in missing],
    )
    with pytest.raises(SystemExit, match="There is no case yet"):
        surrogate_tau.main(
            parse("--recordings", str(tmp_path), "--observations", "20", "--repeats", "0", "--out", str(tmp_path / "o"))
        )
    assert "ValueError: no" in capsys.readouterr().out
    assert not (tmp_path / "o" / "tau.csv").exists()


def made_rows(gap: float) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"recording": r, "observations": 50, "measure": m, "seed": seed, "surrogate": s, "to_seen": tau}
            | {"among_unseen": tau, "to_pool": tau, "cpu_seconds": seconds, "wall_seconds": 2 * seconds}
            for r in ("one", "two")
            for m in ("div", "bs")
            for seed in range(4)
            for s, tau, seconds in (("a", 0.5 + seed / 10 + gap, 0.1), ("b", 0.5 + seed / 10, 3.0 + seed))
            # A seed that one surrogate lacks counts for neither, nor in averages over its recording.
            if not (r == "two" and m == "bs" and seed == 3 and s == "b")
        ]
    )


def test_tables_compare_pairs():
    rows = made_rows(gap=0.01)
    table = surrogate_tau.tau_table(rows, "to_seen", ["a", "b"])
    by_case = {row[:3]: row[3:] for row in table.rows}
    assert by_case["two", "50", "bs"] == ("0.610 ± 0.058", "0.600 ± 0.058", "3")
    assert by_case["one", "50", "bs"] == ("0.660 ± 0.065", "0.650 ± 0.065", "4")
    assert by_case["all", "50", "all"] == ("0.610 ± 0.058", "0.600 ± 0.058", "3")
    assert table.best == frozenset((i, 3) for i in range(len(table.rows)))
    differences = surrogate_tau.difference_table(rows, ["a", "b"])
    assert differences.rows[0] == ("among_unseen", "50", "all", "+0.010, p 0.0078", "8")
    assert len(differences.rows) == 3 * 3


def test_ratio_is_the_median_within_repeats():
    table = surrogate_tau.seconds_table(made_rows(gap=0), ["a", "b"])
    assert table.columns[3:] == ("a", "b", "b / a", "times")
    assert table.rows[-1] == ("two", "50", "div", "0.100 (0.200)", "4.500 (9.000)", "45.0", "4")


def test_default_surrogates_exist():
    assert set(parse().surrogates) <= set(diversity_surrogates.get_args(diversity_surrogates.SurrogateName))
