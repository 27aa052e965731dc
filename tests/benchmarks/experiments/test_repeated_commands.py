"""Commands that are repeated: with the same settings they compute nothing, with others they mix nothing."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import fields, replace
from types import ModuleType

import pytest

from benchmarks.experiments import (
    ablation,
    absolute_errors,
    all_rows,
    coverage,
    defaults,
    features,
    first_light,
    fold_racing,
    label_metrics,
    last_step,
    logarithms,
    loss_tau,
    many_levels,
    newest_fold,
    patience,
    positions,
    quantisation,
    spare_time,
    texts,
    tpe,
)
from benchmarks.experiments.divbo import surrogate_curve
from benchmarks.experiments.latent import left_out
from benchmarks.pages.kept_rows import RESULTS
from benchmarks.runs.row_file import RowFile
from benchmarks.timings import (
    coordinator,
    deadline,
    large_start,
    onnx_certificates,
    refining,
    suggestion_time,
    worker_start,
)

FEATURES = features.FeatureRow(
    table="small", seed=0, rows=4000, learner="mlp", features="none", validation_loss=0.5, test_loss=0.5, seconds=1.0
)
POOLED = positions.PooledRun(
    table="small", rule="best", seed=0, trials=40, pool=25, candidates=25, members=5.0, loss=0.5
)
SPARE = spare_time.SpareTimeRow(
    table="small", seed=0, rows=100, drawn=3000, strategy="optdivbo", budget=60.0, way="none", seconds=40.0, fits=0,
    members=5, new_weight=0.0, unseen_loss=0.5, test_loss=0.5,
)  # fmt: skip


def start(module: ModuleType, *options: object) -> None:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    module.main(parser.parse_args([str(option) for option in options]))


@pytest.mark.parametrize(
    ("module", "rows", "others", "seeds"),
    [
        (features, [FEATURES, replace(FEATURES, features="arithmetic")], {"rows": 100}, 0),
        (positions, [replace(POOLED, rule=rule) for rule in positions.RULES], {"trials": 50, "pool": 20}, 1),
        (spare_time, [SPARE, replace(SPARE, way="search")], {"drawn": 500, "strategy": "bo", "budget": 30.0}, 0),
    ],
)
def test_rows_of_other_settings_are_not_shown(module, rows, others, seeds, one_table, tmp_path, capsys):
    file = RowFile(tmp_path / "rows.csv", type(rows[0]))
    file.add(rows)
    for name, value in (others | {"seed": 7}).items():
        file.add(replace(row, table=f"other {name}", **{name: value}) for row in rows)
    file.add(replace(row, table="other table") for row in rows)
    start(module, "--data", one_table, "--tables", "small", "--seeds", seeds, "--out", file.path)
    shown = capsys.readouterr().out
    assert "small" in shown and "other" not in shown
    assert len(file.read()) == len(rows) * (3 + len(others))  # nothing was computed


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "name", "options"),
    [
        (fold_racing, "fold_racing", ["--seeds", 20, "--tables", "quake"]),
        (last_step, "last_step", ["--pools", 10, "--recordings", "quake"]),
        (patience, "patience", ["--recordings", "quake"]),
        (loss_tau, "loss_tau", ["--seeds", 10, "--first-seed", 100, "--recordings", "quake"]),
        (left_out, "left_out", ["--first-seed", 100, "--seeds", 3, "--strategies", "agreeing_sources", "bandit_bo"]),
    ],
)
def test_documented_command_finds_the_kept_rows(module, name, options, tmp_path):
    path = tmp_path / "rows.csv"
    shutil.copy(RESULTS / f"{name}.csv", path)
    start(module, *options, "--out", path)
    assert path.read_bytes() == (RESULTS / f"{name}.csv").read_bytes()


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("ablation", ablation.AblationRun),
        ("absolute_errors", absolute_errors.AbsoluteErrorRun),
        ("coordinator", coordinator.CoordinatorRow),
        ("coverage", coverage.CoverageRun),
        ("deadline", deadline.TimedRun),
        ("decision_seconds", suggestion_time.SuggestionSeconds),
        ("defaults", defaults.JudgedMoment),
        ("features", features.FeatureRow),
        ("first_light", first_light.ComparedRun),
        ("label_metrics", label_metrics.ChosenBy),
        ("logarithms", logarithms.LogarithmRun),
        ("many_levels", many_levels.ManyLevelsRun),
        ("large_start", large_start.LargeStart),
        ("newest_fold", newest_fold.NewestFoldRun),
        ("onnx", onnx_certificates.OnnxCertificate),
        ("positions", positions.PooledRun),
        ("quantisation", quantisation.JudgedTwice),
        ("refining", refining.RefinedModel),
        ("spare_time", spare_time.SpareTimeRow),
        ("surrogate_curve", surrogate_curve.JudgedSurrogate),
        ("texts", texts.TextsRun),
        ("all_rows", all_rows.AllRowsRow),
        ("tpe", tpe.JudgedSearch),
        ("worker_start", worker_start.WorkerStart),
    ],
)
def test_kept_rows_can_be_continued(name, record):
    frame = RowFile(RESULTS / f"{name}.csv", record).frame()
    assert len(frame) and list(frame.columns) == [field.name for field in fields(record)]


def test_a_replay_of_another_length_is_another_row(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    for trials in (5, 8, 8):
        start(fold_racing, "--tables", "quake", "--seeds", 1, "--trials", trials, "--out", path)
    rows = RowFile(path, fold_racing.RacedSearch).frame()
    assert len(rows) == 2 * len(fold_racing.RULES) and rows["budget"].nunique() == 2
    assert capsys.readouterr().out.count("forgiving") == 3  # each time one line: of its own rows


@pytest.mark.long
def test_means_over_another_number_of_pools_are_other_rows(tmp_path):
    path = tmp_path / "rows.csv"
    for pools in (1, 2, 2):
        start(last_step, "--recordings", "quake", "--rows", 50, "--candidates", 5, "--pools", pools, "--out", path)
    counts = RowFile(path, last_step.JudgedRule).frame()["pools"].value_counts()
    assert set(counts.index) == {1, 2} and counts.nunique() == 1


def test_longer_orders_add_what_is_missing(tmp_path):
    path = tmp_path / "rows.csv"
    for most in (10, 20, 10):
        start(patience, "--recordings", "quake", "--rows", 60, "--seeds", 1, "--most", most, "--out", path)
    assert RowFile(path, patience.JudgedPool).frame()["candidates"].tolist() == [10, 20]
