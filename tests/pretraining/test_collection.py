from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, Float, Integer
from fake_runs import make_run
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import running, wait_until

from cashmere.base.seeds import seed_of
from cashmere.data.inference import infer_schema
from cashmere.data.rows import canonical_rows
from cashmere.data.task import TaskProfile, TaskType
from cashmere.exceptions import (
    CorruptStoreError,
    DataError,
    InconsistentResumeError,
    InvalidParameterError,
    RunDirectoryError,
    RunLockedError,
    UnknownNameError,
)
from cashmere.metalearning.meta_features import META_FEATURES
from cashmere.pretraining.building import SEARCHES, SearchFile
from cashmere.pretraining.collection import (
    SourceFile,
    collect,
    collection,
    describe_tables,
    draw_configurations,
    draw_rows,
    find_tables,
    holdout,
    read_runs,
    read_work,
)
from cashmere.pretraining.collection.configurations import REFERENCE, configuration_text
from cashmere.space.component import Algorithm, Subspace
from cashmere.space.named.registry import make_space
from cashmere.space.space import Space
from cashmere.storage.directory import TrainingRows

# ---------------------------------------------------------------- a small space that every worker knows


def build_bayes(values, context):
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB(**values)


def build_tree(values, context):
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=values["depth"], splitter="random", random_state=context.seed)


def bayes_subspace(profile):
    return Subspace(hyperparameters=[Float("var_smoothing", (1e-12, 1.0), log=True, default=1e-9)])


def tree_subspace(profile):
    return Subspace(hyperparameters=[Integer("depth", (1, 3), default=2)])


def small_space(profile):
    algorithms = (
        Algorithm(name="bayes", build=build_bayes, subspace=bayes_subspace),
        Algorithm(name="tree", build=build_tree, subspace=tree_subspace),
    )
    return Space(name="small", algorithms=algorithms, profile=profile)


class Hostile:
    """A classifier that never returns."""

    def __init__(self, how):
        self.how = how

    def fit(self, X, y):
        while self.how == "compute":
            sum(range(1000))
        if self.how == "compute in native code":
            3**10**9
        if self.how == "sleep":
            time.sleep(1000)
        if self.how == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        raise ValueError("cannot learn")


HOSTILE = ["fail", "compute", "sleep", "crash", "compute in native code"]


def hostile_subspace(profile):
    return Subspace(hyperparameters=[Categorical("how", HOSTILE)])


def build_hostile(values, context):
    return Hostile(values["how"])


def hostile_space(profile):
    space = small_space(profile)
    hostile = Algorithm(name="hostile", build=build_hostile, subspace=hostile_subspace, accepts_weights=False)
    return space.with_algorithm(hostile)


def write_table(folder, name, *, n=60, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    frame = pd.DataFrame(rng.normal(size=(n, 3)) + y[:, None], columns=["a", "b", "c"])
    frame["target"] = np.array(["x", "y", "z", "w"])[y]
    path = folder / f"{name}.csv"
    frame.to_csv(path, index=False)
    return SourceFile(name=name, path=path, origin=name)


@pytest.fixture
def tables(tmp_path):
    return [write_table(tmp_path, name, seed=seed) for seed, name in enumerate(("first", "second"))]


def gather(tables, work, **more):
    parameters = {"space": small_space, "n_configurations": 4, "n_rows": 50, "limit_seconds": 5.0, "n_workers": 1}
    return collect(tables, work=work, **{**parameters, "seed": 0, **more})


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A work folder with both tables complete; tests must not change it."""
    folder = tmp_path_factory.mktemp("collected")
    gather([write_table(folder, name, seed=seed) for seed, name in enumerate(("first", "second"))], folder / "work")
    return folder / "work"


# ---------------------------------------------------------------- configurations and rows


def test_small_sub_spaces_are_enumerated_and_defaults_come_first():
    space = make_space("sklearn12", REFERENCE)
    drawn = draw_configurations(space, 100, seed=0)
    assert len(drawn) == len({configuration_text(values) for values in drawn}) == 1200
    knn = {(v["knn:n_neighbors"], v["knn:weights"]) for v in drawn if v["algorithm"] == "knn"}
    assert knn == {(k, weights) for k in range(1, 51) for weights in ("uniform", "distance")}
    defaults = [dict(configuration) for configuration in space.default_configurations()]
    assert drawn[::100] == defaults


@pytest.mark.parametrize("name", ["default", "volcano", "imbalance", "autosklearn6"])
def test_drawn_configurations_belong_to_the_space(name):
    space = make_space(name, REFERENCE)
    for values in draw_configurations(space, 5, seed=1):
        assert dict(space.completed(values)) == values


def test_a_small_sub_space_gives_all_its_configurations():
    drawn = draw_configurations(small_space(REFERENCE), 7, seed=0)
    assert sorted(v["tree:depth"] for v in drawn if v["algorithm"] == "tree") == [1, 2, 3]
    assert sum(v["algorithm"] == "bayes" for v in drawn) == 7


def test_draws_of_an_algorithm_do_not_depend_on_the_others():
    space = make_space("sklearn12", REFERENCE)
    alone = draw_configurations(space.restricted_to(["svc"]), 6, seed=3)
    assert alone == [v for v in draw_configurations(space, 6, seed=3) if v["algorithm"] == "svc"]
    assert alone != draw_configurations(space.restricted_to(["svc"]), 6, seed=4)


@settings(max_examples=25, deadline=None)
@given(counts=st.lists(st.integers(1, 40), min_size=2, max_size=6), seed=st.integers(0, 5), n_rows=st.integers(10, 80))
def test_rows_and_holdout_keep_the_shares_of_the_classes(counts, seed, n_rows):
    y = np.repeat(np.arange(len(counts)), counts)
    rows = draw_rows(y, n_rows, seed)
    assert len(rows) == len(np.unique(rows)) == min(n_rows, len(y))
    fold = holdout(y, seed)
    assert len(fold.train) == int(0.7 * len(y))
    np.testing.assert_array_equal(np.sort(np.concatenate([fold.train, fold.validation])), np.arange(len(y)))
    if min(counts) > 1 and len(fold.validation) >= len(counts):
        shares = np.bincount(y[fold.validation], minlength=len(counts)) - 0.3 * np.array(counts)
        assert np.abs(shares).max() < 2


@pytest.mark.parametrize(("n", "n_train"), [(180, 125), (340, 237), (1000, 700)])
def test_sizes_of_the_holdout_are_those_of_the_paper(n, n_train):
    assert len(holdout(np.arange(n) % 2, seed=0).train) == n_train


def test_the_only_row_of_a_class_is_used_for_training():
    y = np.array([0] * 50 + [1] * 50 + [2])
    assert all(100 in holdout(y, seed).train for seed in range(10))


# ---------------------------------------------------------------- collecting


@pytest.mark.long
def test_losses_are_those_of_the_configuration_on_the_holdout(collected, tables):
    from sklearn.metrics import log_loss
    from sklearn.naive_bayes import GaussianNB

    found = read_work(collected)
    frame, labels = tables[0].read()
    drawn = draw_rows(labels, 50, seed_of(0, "first", "rows"))
    codes = np.unique(labels, return_inverse=True)[1][drawn]
    rows = canonical_rows(frame.iloc[drawn].reset_index(drop=True), codes)
    X, y = rows.frame.to_numpy(dtype=np.float32), rows.y
    fold = holdout(y, seed_of(0, "first", "holdout"))
    for values, loss, other in zip(
        found.configurations, found.tables[0].losses, found.tables[0].other_losses["log_loss"], strict=True
    ):
        if values["algorithm"] == "bayes":
            model = GaussianNB(var_smoothing=values["bayes:var_smoothing"]).fit(X[fold.train], y[fold.train])
            assert loss == pytest.approx(1 - model.score(X[fold.validation], y[fold.validation]))
            probabilities = model.predict_proba(X[fold.validation])
            assert other == pytest.approx(log_loss(y[fold.validation], probabilities), rel=1e-4)


@pytest.mark.long
def test_losses_do_not_depend_on_the_number_of_workers_or_other_tables(collected, tables, tmp_path):
    one = read_work(collected)
    two = gather(tables[::-1], tmp_path / "two", n_workers=2)
    assert [table.name for table in two.tables] == ["second", "first"]
    np.testing.assert_array_equal(one.loss_matrix(), two.loss_matrix()[::-1])
    assert one.configurations == two.configurations
    assert np.isfinite(one.loss_matrix()).all()
    assert (one.tables[0].seconds < 5).all()


def test_a_stopped_collection_is_continued(collected, tables, tmp_path):
    work = shutil.copytree(collected, tmp_path / "work")
    path = work / "second.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:20])  # as after a kill
    before = path.read_bytes()
    assert [table.name for table in read_work(work).tables] == ["first"]
    assert len(gather(tables, work, stop=lambda: True).tables) == 1
    told = []
    again = gather(tables, work, progress=told.append)
    np.testing.assert_array_equal(again.loss_matrix(), read_work(collected).loss_matrix())
    assert path.read_bytes().startswith(before[:-20])
    assert [line.split(":")[0] for line in told] == ["second"]
    start = time.perf_counter()
    assert len(gather(tables, work).tables) == 2
    assert time.perf_counter() - start < 1  # no worker was started
    assert not (work / "scratch").exists()


def test_an_earlier_collection_of_the_default_space_goes_on_in_the_classic_one(collected, tables, tmp_path):
    work = shutil.copytree(collected, tmp_path / "work")
    for path in (work / "configurations.json", *work.glob("*.jsonl")):
        text = path.read_text().replace('"version": 2', '"version": 1').replace('"small"', '"default"')
        path.write_text(text)
    before = read_work(collected).loss_matrix()
    assert read_work(work).space == "classic"
    again = gather(tables, work, space=lambda profile: replace(small_space(profile), name="classic"))
    np.testing.assert_array_equal(again.loss_matrix(), before)
    with pytest.raises(InconsistentResumeError, match="'classic'"):
        gather(tables, work, space=lambda profile: replace(small_space(profile), name="default"))


def test_other_settings_are_refused_by_name(collected, tables, tmp_path):
    work = shutil.copytree(collected, tmp_path / "work")
    with pytest.raises(InconsistentResumeError, match=r"rows=50 and cannot continue with rows=40"):
        gather(tables, work, n_rows=40)
    with pytest.raises(InconsistentResumeError, match="seed=0 and"):
        gather(tables, work, seed=1)
    with pytest.raises(InconsistentResumeError, match="'sklearn12'"):
        gather(tables, work, space="sklearn12")
    tables[0].path.write_text(tables[0].path.read_text() + "0,0,0,x\n")
    with pytest.raises(InconsistentResumeError, match="content"):
        gather(tables, work)
    with pytest.raises(InvalidParameterError, match="n_rows"):
        gather(tables, work, n_rows=3)


def test_damaged_files_of_work_are_refused(collected, tables, tmp_path):
    work = shutil.copytree(collected, tmp_path / "work")
    path = work / "first.jsonl"
    path.write_text(path.read_text().replace('"status"', "status", 1))
    with pytest.raises(CorruptStoreError, match="evaluate this table again"):
        gather(tables, work)
    path.write_text("{}\n")
    with pytest.raises(CorruptStoreError, match="foreign"):
        read_work(work)
    (work / "configurations.json").write_text("[]")
    with pytest.raises(CorruptStoreError, match="another folder"):
        gather(tables, work)


def test_a_folder_in_use_is_refused(collected, tables, tmp_path):
    def interfere(text):
        with pytest.raises(RunLockedError, match="another process"):
            gather(tables, work)
        seen.append(text)

    seen = []
    work = shutil.copytree(collected, tmp_path / "work")
    missing = SourceFile(name="missing", path=tmp_path / "missing.csv", origin="")
    assert gather([missing], work, progress=interfere).tables == ()
    assert seen


def test_tables_that_cannot_be_used_are_left_out(collected, tables, tmp_path):
    (tmp_path / "prices.csv").write_text("a,target\n" + "".join(f"{i},{i / 7}\n" for i in range(30)))
    (tmp_path / "same.csv").write_text("a,target\n" + "".join(f"{i},x\n" for i in range(30)))
    bad = [SourceFile(name=n, path=tmp_path / f"{n}.csv", origin=n) for n in ("prices", "same", "nowhere")]
    known = SourceFile(name="known", path=tables[0].path, origin="known", task_type=TaskType.REGRESSION)
    told = []
    work = shutil.copytree(collected, tmp_path / "work")
    found = gather([*bad, known, tables[0]], work, progress=told.append)
    assert [table.name for table in found.tables] == ["first"]
    assert "regression" in told[0] and "one class" in told[1] and "cannot be read" in told[2]
    assert "regression" in told[3]


def test_configurations_that_a_table_does_not_offer_have_no_loss(tables, tmp_path):
    def shrinking(profile):
        space = small_space(profile)
        return space if profile == REFERENCE else space.restricted_to(["bayes"])

    found = gather(tables[:1], tmp_path / "work", space=shrinking)
    assert np.isnan(found.tables[0].losses).tolist() == [v["algorithm"] == "tree" for v in found.configurations]


@pytest.mark.long
def test_an_evaluation_that_hangs_or_crashes_costs_only_itself(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(collection, "WALL_FACTOR", 5.0)  # first fits load libraries
    work = tmp_path / "work"
    found = gather(tables[:1], work, space=hostile_space, n_configurations=5, limit_seconds=1.0, n_workers=2)
    failed = np.isnan(found.tables[0].losses)
    assert failed.tolist() == [values["algorithm"] == "hostile" for values in found.configurations]
    records = [json.loads(line) for line in (work / "first.jsonl").read_text().splitlines()[1:]]
    by_number = {record["number"]: record for record in records}
    status = {v.get("hostile:how"): by_number[i]["status"] for i, v in enumerate(found.configurations)}
    assert (status["fail"], status["compute"], status["sleep"]) == ("error", "timeout", "timeout")
    assert status["compute in native code"] == "timeout"
    assert status["crash"] in ("error", "timeout")  # a dead worker that was slow counts as ended by its own clock
    assert all(record["seconds"] <= 1.0 for record in records)


KILLED = """
import sys
sys.path[:0] = [{folder!r}, "tests", "tests/support"]
from pathlib import Path
from test_collection import SourceFile, gather
tables = [SourceFile(name=n, path=Path({data!r}) / (n + ".csv"), origin=n) for n in ("first", "second")]
gather(tables, Path({work!r}), n_configurations=200)
"""


@pytest.mark.long
def test_kill_loses_at_most_what_was_running(tables, tmp_path):
    work = tmp_path / "work"
    code = KILLED.format(folder=str(Path(__file__).parent), data=str(tmp_path), work=str(work))
    journal = work / "first.jsonl"
    with running([sys.executable, "-c", code]) as process:
        wait_until(lambda: journal.exists() and journal.read_text().count("\n") >= 20, by=process)
        process.kill()
    before = (work / "first.jsonl").read_text()
    assert np.isfinite(gather(tables[:1], work, n_configurations=200).loss_matrix()).all()
    assert (work / "first.jsonl").read_text().startswith(before[: before.rfind("\n") + 1])


# ---------------------------------------------------------------- tables of a folder


def test_a_manifest_names_tables_groups_and_origins(tmp_path):
    for name in ("first", "second"):
        write_table(tmp_path, name)
    entries = [
        {"name": "one", "file": "first.csv", "group": ["a", "b"], "task": "binary", "origin": "raw"},
        {"name": "two", "file": "second.csv", "group": "b"},
    ]
    (tmp_path / "manifest.json").write_text(json.dumps(entries))
    both = find_tables(tmp_path, group="b", target="y")
    assert [(t.name, t.origin, t.task_type, t.target) for t in both] == [
        ("one", "raw", TaskType.BINARY, "y"),
        ("two", "two", None, "y"),
    ]
    assert both[0].path == tmp_path / "first.csv"
    assert [table.name for table in find_tables(tmp_path, group="a")] == ["one"]
    with pytest.raises(UnknownNameError, match="Known: a, b"):
        find_tables(tmp_path, group="c")
    for broken in ("{}{", '[{"name": "x"}]', '[{"name": "../x", "file": "x.csv"}]', "3", '[{"name":"x","file":"y"},7]'):
        (tmp_path / "manifest.json").write_text(broken)
        with pytest.raises(DataError, match="objects with name and file"):
            find_tables(tmp_path)


def test_without_a_manifest_all_tables_of_the_folder_are_taken(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        find_tables(tmp_path / "nowhere")
    with pytest.raises(DataError, match="there is no table"):
        find_tables(tmp_path)
    for name in ("b", "a"):
        write_table(tmp_path, name)
    (tmp_path / "notes.md").write_text("no table")
    assert [table.name for table in find_tables(tmp_path)] == ["a", "b"]
    with pytest.raises(DataError, match=r"no manifest\.json"):
        find_tables(tmp_path, group="a")
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(DataError, match="several tables are called a"):
        find_tables(tmp_path)


# ---------------------------------------------------------------- meta-features


def test_tables_are_described_once_and_again_when_they_change(tables, collected, tmp_path):
    found = read_work(collected)
    said = []
    described = describe_tables(found, tables, work=tmp_path, progress=said.append)
    assert said == ["Describing 2 tables"]
    assert [tuple(table.meta_features) for table in described.tables] == [META_FEATURES] * 2
    again = describe_tables(found, tables, work=tmp_path, progress=said.append)
    for one, other in zip(described.tables, again.tables, strict=True):
        np.testing.assert_equal(dict(one.meta_features), dict(other.meta_features))
    changed = write_table(tmp_path, "second", seed=7)
    describe_tables(found, [tables[0], changed], work=tmp_path, progress=said.append)
    assert said[1:] == ["Describing 1 tables"]
    (tmp_path / "meta_features.json").write_text('{"first": 3}')
    with pytest.raises(CorruptStoreError, match="made again"):
        describe_tables(found, tables, work=tmp_path)


# ---------------------------------------------------------------- runs


def finished_run(folder, **more):
    from cashmere.records.trial import TrialStatus

    failures = {2: (TrialStatus.TIMEOUT, "over the time limit"), 4: (TrialStatus.STOPPED, "stopped after 1 fold")}
    make_run(folder, n_trials=8, failures=failures, **more)
    frame = pd.DataFrame({"size": np.arange(30.0), "colour": ["red", "green", "blue"] * 10})
    schema = infer_schema(frame)
    described = json.loads((folder / "schema.json").read_text())
    (folder / "schema.json").write_text(json.dumps(described | {"columns": schema.to_json()}))
    coded = schema.code(frame)
    TrainingRows(values=coded.values, texts=coded.texts, y=np.arange(30) % 2, weight=None).save(folder / "table.npz")
    return folder


def test_finished_runs_become_tables(tmp_path):
    folders = [finished_run(tmp_path / name) for name in ("one", "two")]
    space = json.loads((folders[0] / "run.json").read_text())["settings"]["space"]
    found = read_runs(folders, space=space)
    assert [table.name.split("-")[0] for table in found.tables] == ["one", "two"]
    assert found.tables[0].origin == found.tables[1].origin
    assert len(found.configurations) == 7  # both tried the same; one was stopped early
    losses = found.tables[0].losses
    assert np.isnan(losses).tolist() == [False, False, True, False, False, False, False]
    assert (found.tables[0].seconds > 0).all()
    assert found.tables[0].metric == "roc_auc"
    described = found.tables[0].meta_features
    assert (np.exp(described["log_rows"]), described["categorical_columns"]) == (pytest.approx(30), 1)
    merged = found.merged(read_runs([], space=space))
    assert merged.loss_matrix().shape == (2, 7)


def test_trials_on_a_share_of_the_rows_are_left_out(tmp_path):
    run = finished_run(tmp_path / "run")
    space = json.loads((run / "run.json").read_text())["settings"]["space"]
    (before,) = read_runs([run], space=space).tables
    with closing(sqlite3.connect(run / "run.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE trials SET fidelity = 0.1 WHERE number = 1")
    (after,) = read_runs([run], space=space).tables
    assert after.losses == pytest.approx(np.delete(before.losses, 1), nan_ok=True)


def test_runs_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(RunDirectoryError, match="does not exist"):
        read_runs([tmp_path / "nowhere"], space="default")
    run = finished_run(tmp_path / "run")
    with pytest.raises(RunDirectoryError, match="'sklearn12'"):
        read_runs([run], space="sklearn12")
    regression = finished_run(tmp_path / "regression", task="regression", classes=())
    with pytest.raises(RunDirectoryError, match="classification runs only"):
        read_runs([regression], space="default")
    (run / "table.npz").unlink()
    with pytest.raises(RunDirectoryError, match=r"table\.npz"):
        read_runs([run], space="default")


def test_the_reference_task_has_no_encodings_to_choose():
    assert isinstance(REFERENCE, TaskProfile) and not REFERENCE.has_categories


def test_searches_of_a_build_in_the_folder_are_not_a_table(collected, tmp_path):
    work = shutil.copytree(collected, tmp_path / "work")
    SearchFile(work / SEARCHES).add({("target", "source"): 0.5})
    assert [table.name for table in read_work(work).tables] == [table.name for table in read_work(collected).tables]
