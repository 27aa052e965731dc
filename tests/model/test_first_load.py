"""A child process that first loads a model, with models that crash, hang, fill memory or predict nonsense."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

from cashmere import AutoClassifier, Predictor
from cashmere.data.inference import infer_schema
from cashmere.exceptions import ModelFileError
from cashmere.model import first_load
from cashmere.model.files import _checksum, read_manifest
from cashmere.model.probe import probe_rows


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from cashmere.data.demo import DEMO_TARGET, demo_table
    from cashmere.space import make_space

    folder = tmp_path_factory.mktemp("first") / "run"
    table = demo_table().sample(120, random_state=0)
    AutoClassifier(
        budget="1trials",
        isolation="none",
        run_directory=folder,
        space=lambda profile: make_space("default", profile).restricted_to(["logistic_regression"]),
    ).fit(table.drop(columns=DEMO_TARGET), table[DEMO_TARGET])
    return folder / "model"


@pytest.fixture
def child(monkeypatch, tmp_path):
    """Let the child run another program."""
    real = subprocess.Popen

    def run(text: str):
        (tmp_path / "program.py").write_text(text)

        def started(command, **options):
            return real([sys.executable, str(tmp_path / "program.py")], **options)

        monkeypatch.setattr(first_load.subprocess, "Popen", started)

    return run


def first(model):
    first_load.check_first_load(model, read_manifest(model))


@pytest.mark.long
def test_a_model_of_ours_passes(model):
    first(model)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os.abort()", "SIGABRT"),
        ("import sys; sys.exit(3)", "exit status 3"),
        ("print('not JSON')", "exit status 0"),
        ("print('[]')", "exit status 0"),
        ("print('{\"problem\": 1}')", "exit status 0"),
        ("print('[' * 50_000)", "exit status 0"),
    ],
)
def test_a_crash_of_the_child_is_an_error(model, child, program, message):
    child(program)
    with pytest.raises(ModelFileError, match=message):
        first(model)


@pytest.mark.long
def test_a_child_that_hangs_is_killed_with_what_it_has_started(model, child, monkeypatch, tmp_path):
    pids = tmp_path / "pids"
    child(
        "import os, subprocess, time\n"
        "other = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{other.pid}}')\n"
        "time.sleep(600)"
    )
    monkeypatch.setattr(first_load, "LIMIT_SECONDS", 3.0)
    clock = time.perf_counter()
    with pytest.raises(ModelFileError, match="took more than 3 s"):
        first(model)
    assert time.perf_counter() - clock < 30
    time.sleep(0.5)
    alive = [int(pid) for pid in pids.read_text().split() if psutil.pid_exists(int(pid))]
    assert not [pid for pid in alive if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
def test_a_model_that_needs_too_much_memory_is_refused(model, monkeypatch, tmp_path):
    monkeypatch.setattr(first_load, "LIMIT_MIB", -100.0)  # less than its libraries take
    monkeypatch.setattr(first_load, "MEMORY_PER_BYTE", 0.0)
    manifest = read_manifest(model)
    manifest["information"]["note"] = "x" * 40_000_000  # more than what its libraries have taken and released
    manifest["checksum"] = _checksum(manifest)
    large = shutil.copytree(model, tmp_path / "large")
    (large / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError, match=r"[Mm]emory|ended the child"):
        first(large)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links")
def test_other_things_called_archives_are_not_opened(model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "model")
    os.mkfifo(folder / "pipe.skops")
    (folder / "zeros.skops").symlink_to("/dev/zero")
    clock = time.perf_counter()
    first(folder)
    assert time.perf_counter() - clock < 60


def test_a_manifest_that_changes_meanwhile_is_refused(model):
    manifest = read_manifest(model) | {"checksum": "another"}
    with pytest.raises(ModelFileError, match="changed while"):
        first_load.check_first_load(model, manifest)


def test_types_of_the_main_program_are_named(model):
    with pytest.raises(ModelFileError, match=r"verify=False"):
        first_load.check_first_load(model, read_manifest(model), trusted=["__main__.Mine"])


def test_the_child_sees_few_variables(model, child, monkeypatch, tmp_path):
    seen = tmp_path / "seen"
    monkeypatch.setenv("SECRET_TOKEN", "secret")
    child(f"import os; open({str(seen)!r}, 'w').write(repr(dict(os.environ)))")
    with pytest.raises(ModelFileError):
        first(model)
    assert "SECRET" not in seen.read_text()
    assert "'OMP_NUM_THREADS': '1'" in seen.read_text()


def test_a_member_that_predicts_nan_is_refused_by_its_file(model, tmp_path, monkeypatch):
    from cashmere.model.probe import probe

    predictor = Predictor.load(model)
    number = next(iter(predictor.models))
    learner = predictor.models[number][0].pipeline[-1]
    monkeypatch.setattr(learner, "coef_", np.full_like(learner.coef_, np.nan), raising=True)
    with pytest.raises(ModelFileError, match=r"member.*NaN"):
        probe(predictor, {number: tmp_path / "member.skops"})


def test_rows_fit_columns_of_all_kinds():
    table = pd.DataFrame(
        {
            "number": [1.0, 2.0, None],
            "truth": [True, False, True],
            "date": pd.to_datetime(["2020-01-01 09:00", "2021-01-01 09:30", "2022-01-01 10:00"]),
            "category": ["a", "b", None],
            "text": ["many words in a row", "other words in a row", "some words in a row"],
            "constant": [1, 1, 1],
        }
    )
    schema = infer_schema(table)
    rows = probe_rows(schema, np.zeros(len(schema.value_names)))
    coded = schema.code(rows)
    assert len(coded) == 2 and not coded.unseen
    assert np.isfinite(coded.values[0]).all() and np.isnan(coded.values[1]).all()


def test_nothing_is_left_behind(model):
    copied = Path(shutil.copytree(model, model.parent / "copy"))
    before = sorted(copied.iterdir())
    first(copied)
    assert sorted(copied.iterdir()) == before
