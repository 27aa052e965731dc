"""Runs and models at URLs: read from real stores of fsspec and from a web server on this machine."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading

import fsspec
import numpy as np
import pandas as pd
import pytest
from replaced_models import ADDED, replace_after
from typer.testing import CliRunner

from cashmere import AutoClassifier, Predictor
from cashmere.analysis import read_contest, read_out_of_fold
from cashmere.base import remote
from cashmere.base.remote import fetch, is_url
from cashmere.cli import app
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import ModelFileError, RunDirectoryError, SigningKeyError
from cashmere.model import first_load, remote_model
from cashmere.model.keys import public_pem, trust_key
from cashmere.report import write_report
from cashmere.storage import run_failures, run_leaderboard
from cashmere.storage.remote_run import local_run
from cashmere.storage.store import RunStore


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the directory of a finished run."""

    def space(profile):
        from cashmere.space import make_space

        return make_space("default", profile).restricted_to(["logistic_regression"])

    folder = tmp_path_factory.mktemp("remote") / "my-run"
    table = demo_table().sample(120, random_state=0)
    model = AutoClassifier(budget="2trials", isolation="none", run_directory=folder, space=space)
    model.fit(table.drop(columns=DEMO_TARGET), table[DEMO_TARGET])
    return folder


@pytest.fixture(scope="module")
def server(run):
    """Serve the folder of the run on the loopback interface; yield the URL, and the requested paths."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(run.parent))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


@pytest.fixture(params=["file", "memory", "http"])
def url(request, run, server):
    """Return a URL of the run, in each kind of store."""
    if request.param == "file":
        return run.as_uri()
    if request.param == "memory":
        fsspec.filesystem("memory").put(f"{run}/", "/bucket/my-run/", recursive=True)
        return "memory://bucket/my-run"
    return f"{server[0]}/{run.name}"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CASHMERE_CACHE_FOLDER", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.long
def test_model_predicts_from_everywhere(url, run):
    rows = demo_table().head(20).drop(columns=DEMO_TARGET)
    expected = Predictor.load(run).predict_proba(rows)
    np.testing.assert_array_equal(Predictor.load(url).predict_proba(rows), expected)
    np.testing.assert_array_equal(Predictor.load(f"{url}/model").predict_proba(rows), expected)


def test_leaderboard_and_report_are_those_of_the_directory(url, run, tmp_path):
    found, facts = run_leaderboard(url)
    expected, expected_facts = run_leaderboard(run)
    pd.testing.assert_frame_equal(found, expected)
    assert facts == expected_facts
    assert run_failures(url).empty
    assert write_report(url, tmp_path / "page.html").read_text() == write_report(run, tmp_path / "own.html").read_text()
    with pytest.raises(RunDirectoryError, match="holds no contest"):
        read_contest(url)


def test_predictions_of_several_splits_are_those_of_the_directory(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    with RunStore(copy) as store:
        number = store.facts().ensemble["members"][0]
        mean = 1 - np.load(store.predictions_path(number))
        store.add_split(number, 2, models=store.member_path(number).read_bytes(), predictions=mean)
    with local_run(copy.as_uri(), with_predictions=True) as found:
        np.testing.assert_array_equal(read_out_of_fold(found).predictions, read_out_of_fold(copy).predictions)


def test_files_of_a_model_are_copied_once(server, run):
    url, asked = f"{server[0]}/{run.name}/model", server[1]
    Predictor.load(url)
    asked.clear()
    Predictor.load(url)
    assert [path.rpartition("/")[2].partition("-")[0] for path in asked] == ["manifest.json", "signature"]


def test_model_that_was_replaced_is_copied_again(run, tmp_path):
    place = shutil.copytree(run / "model", tmp_path / "model")
    assert "note" not in Predictor.load(place.as_uri()).information
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["information"]["note"] = "changed"
    (place / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError, match="has been changed"):  # as in a folder
        Predictor.load(place.as_uri())


def test_model_that_is_replaced_while_it_is_copied_is_copied_again(run, tmp_path, monkeypatch):
    place = shutil.copytree(run / "model", tmp_path / "model")
    replace_after(monkeypatch, remote_model, "_fetch_manifest", place)
    assert min(Predictor.load(place.as_uri()).ensemble.members) == ADDED


@pytest.mark.long
def test_model_that_nobody_signed_is_first_loaded_in_a_child(run, tmp_path, monkeypatch):
    """A model from a URL is trusted like one in a folder."""
    place = shutil.copytree(run / "model", tmp_path / "model")
    for path in place.glob("signature-*"):
        path.unlink()
    started = []
    real = first_load._run_child
    monkeypatch.setattr(first_load, "_run_child", lambda *a, **k: started.append(a) or real(*a, **k))
    Predictor.load(place.as_uri())
    assert len(started) == 1


def test_damaged_archive_is_refused_until_it_is_repaired(run, tmp_path):
    place = shutil.copytree(run / "model", tmp_path / "model")
    path = next(place.glob("member-*"))
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(ModelFileError, match=r"member-"):
        Predictor.load(place.as_uri())
    path.write_bytes(content)
    Predictor.load(place.as_uri())


def test_missing_places_are_named(server, tmp_path):
    with pytest.raises(ModelFileError, match="holds no model"):
        Predictor.load(f"{server[0]}/nothing")
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        run_leaderboard(f"{server[0]}/nothing")
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        run_leaderboard((tmp_path / "nothing").as_uri())
    with pytest.raises(ModelFileError, match="cannot be read"):
        Predictor.load("http://127.0.0.1:9/run")  # nobody listens there
    with pytest.raises(ModelFileError, match="Protocol not known"):
        Predictor.load("nonsense://bucket/run")


def test_file_that_is_too_large_is_not_copied(run, tmp_path):
    with pytest.raises(OSError, match="more than 10 bytes"):
        fetch((run / "run.json").as_uri(), tmp_path / "copy", limit=10)
    assert list(tmp_path.iterdir()) == []


def test_file_whose_connection_ends_early_is_not_copied(tmp_path):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"half")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(OSError, match="ended 6 bytes before the end"):
            fetch(f"http://127.0.0.1:{server.server_port}/file", tmp_path / "copy", limit=100)
        server.shutdown()
    assert list(tmp_path.iterdir()) == []


def test_store_whose_package_is_missing_is_named(tmp_path):
    fsspec.register_implementation("lacking", "no_such_package.Store", errtxt="Install lacking")
    with pytest.raises(OSError, match="Install lacking"):
        fetch("lacking://bucket/file", tmp_path / "copy", limit=10)


def test_run_is_not_written_to_a_url(run):
    table = demo_table().head(60)
    model = AutoClassifier(budget="1trials", isolation="none", run_directory="s3://bucket/run")
    with pytest.raises(RunDirectoryError, match="A run is written on a file system"):
        model.fit(table.drop(columns=DEMO_TARGET), table[DEMO_TARGET])
    for command in (["resume", "s3://bucket/run"],):
        found = CliRunner().invoke(app, command)
        assert found.exit_code == 2 and "is written on a file system" in found.output


def test_commands_take_urls(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    demo_table().head(5).drop(columns=DEMO_TARGET).to_csv("rows.csv", index=False)
    url = run.as_uri()
    for command in (["leaderboard", url], ["report", url], ["predict", url, "rows.csv", "-o", "found.csv"]):
        found = CliRunner().invoke(app, command)
        assert found.exit_code == 0, found.output
    assert len(pd.read_csv("found.csv")) == 5
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("place", "expected"),
    [("s3://b/r", True), ("s3:/b", True), ("http://h", True), ("C:/run", False), ("a/b", False), ("/a:b/c", False)],
)
def test_paths_are_distinguished_from_urls(place, expected):
    assert is_url(place) is expected
    assert remote.below("s3://b/r/", "x") == "s3://b/r/x"


def test_database_of_an_earlier_epoch_is_not_read(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "run.sqlite").rename(copy / "run-2.sqlite")
    (copy / "run.sqlite").write_bytes(b"of before")  # left where only new files are copied
    table, _ = run_leaderboard(copy.as_uri())
    assert len(table) == 2


@pytest.mark.long
def test_user_without_a_home_folder_is_told_what_to_set(run, tmp_path, monkeypatch):
    def unknown(user):
        raise KeyError(user)

    for variable in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "CASHMERE_CACHE_FOLDER", "CASHMERE_KEY_FOLDER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pytest.importorskip("pwd"), "getpwuid", unknown)
    with pytest.raises(ModelFileError, match=r"no home folder\. Set CASHMERE_CACHE_FOLDER"):
        Predictor.load(run.as_uri())
    (tmp_path / "key.pem").write_bytes(public_pem(bytes(32)))
    with pytest.raises(SigningKeyError, match=r"no home folder\. Set CASHMERE_KEY_FOLDER"):
        trust_key(tmp_path / "key.pem")
    assert len(Predictor.load(run).predict(demo_table().head(2))) == 2  # by a child process: nobody is trusted
