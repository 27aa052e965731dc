"""Fetching tables with the real client of scikit-learn, from a server on this machine that answers like OpenML."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import sys
import threading

import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.tables.manifest import find_tables
from benchmarks.tables.openml import make_binary, resolve_tables

VALUES = """@relation made
@attribute size numeric
@attribute target {red,green}
@attribute price numeric
@data
1,red,10
2,?,20
3,green,30
4,red,1000
5,red,?
"""
CLASSES = """@relation made
@attribute size numeric
@attribute kind {a,b,c}
@data
1,a
?,b
3,c
"""


class Api:
    """Answers to the requests of `sklearn.datasets.fetch_openml`, and the requests made."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.root = ""

    def add(self, number: int, text: str, target: str | None) -> None:
        """Offer a data set."""
        columns = [line.split()[1:] for line in text.splitlines() if line.startswith("@attribute")]
        data = text.encode()
        about = {
            "id": number, "name": "made", "version": "1", "format": "ARFF", "status": "active", "description": "made",
            "md5_checksum": hashlib.md5(data).hexdigest(), "url": f"{self.root}/file/{number}",
        }  # fmt: skip
        features = [
            {
                "index": str(i), "name": name, "data_type": "numeric" if kind == "numeric" else "nominal",
                "is_target": str(name == target).lower(), "is_ignore": "false", "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for i, (name, kind) in enumerate(columns)
        ]  # fmt: skip
        for kind, answer in (
            ("info", {"data_set_description": about}),
            ("features", {"data_features": {"feature": features}}),
            ("qualities", {"data_qualities": {"quality": []}}),
        ):
            self.answers[f"/{kind}/{number}"] = json.dumps(answer).encode()
        self.answers[f"/file/{number}"] = data


@pytest.fixture
def api(monkeypatch, tmp_path):
    """A server on the loopback device."""
    api = Api()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            api.asked.append(self.path)
            body = api.answers.get(self.path)
            self.send_response(412 if body is None else 200)
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(gzip.compress(b"{}" if body is None else body))

        def log_message(self, *args) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    api.root = f"http://127.0.0.1:{server.server_port}"
    for constant, kind in (("_DATA_INFO", "info"), ("_DATA_FEATURES", "features"), ("_DATA_QUALITIES", "qualities")):
        monkeypatch.setattr(f"sklearn.datasets._openml.{constant}", f"{api.root}/{kind}/{{}}")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "downloads"))
    yield api
    server.shutdown()
    server.server_close()


def fetch(monkeypatch, *words) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "fetch", *map(str, words)])
    main()


def test_fetched_tables_are_read_by_all_benchmarks(api, monkeypatch, tmp_path, capsys):
    api.add(7, VALUES, "price")
    api.add(8, CLASSES, "kind")
    words = ["--out", tmp_path / "data", "values=7", "classes=8", "halves=7", "one=8", "--binary", "halves", "one"]
    fetch(monkeypatch, *words)
    values, classes, halves, one = tables = find_tables(tmp_path / "data", ["values", "classes", "halves", "one"])
    assert [table.task_type.value for table in tables] == ["regression", "multiclass", "binary", "binary"]

    X, y = values.read()
    assert y.tolist() == [10, 20, 30, 1000], "rows without a target are of no use"
    assert list(X.columns) == ["size", "target_feature"]
    assert isinstance(X["target_feature"].dtype, pd.CategoricalDtype) and X["target_feature"].isna().sum() == 1
    assert classes.read()[1].tolist() == ["a", "b", "c"]
    assert halves.read()[1].tolist() == ["P", "P", "P", "N"]
    assert one.read()[1].tolist() == ["P", "N", "N"]
    assert [table.openml_id for table in tables] == [7, 8, None, None], "binary versions have numbers of their own"
    assert [e.get("binary_of") for e in json.loads((tmp_path / "data" / "manifest.json").read_text())] == [
        None, None, 7, 8,
    ]  # fmt: skip

    api.asked.clear()
    capsys.readouterr()
    fetch(monkeypatch, *words)
    assert not api.asked, "what is there needs no network"
    assert capsys.readouterr().out.count("already there") == 4


def test_failing_table_does_not_stop_the_others(api, monkeypatch, tmp_path, capsys):
    api.add(8, CLASSES, "kind")
    api.add(9, CLASSES, None)
    with pytest.raises(SystemExit, match="2 of 3 tables are missing"):
        fetch(monkeypatch, "--out", tmp_path, "gone=404", "aimless=9", "classes=8")
    said = capsys.readouterr().out
    assert "no usable table of that number" in said and "no single default target" in said
    assert [table.name for table in find_tables(tmp_path, ["classes"])] == ["classes"]
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == ["classes.parquet"]


def test_names_stand_for_the_data_sets_of_the_papers():
    tables = resolve_tables(["divbo"])
    assert len(tables) == 15 and tables["quake"] == 772
    assert len(resolve_tables(["divbo", "optdivbo"])) == 20
    tables = resolve_tables(["dacopt2"])
    assert len(tables) == 72 and tables["kr-vs-kp"] == 3
    assert tables["MiceProtein"] == 4550 and tables["MiceProtein-40966"] == 40966
    assert resolve_tables(["dacopt2", "dacopt2"]) == tables
    with pytest.raises(SystemExit, match="quake: expected divbo"):
        resolve_tables(["quake"])


def test_names_of_a_folder_are_not_given_to_other_data_sets():
    there = {"MiceProtein": 40966, "made": None}
    assert resolve_tables(["dacopt2"], there)["MiceProtein-4550"] == 4550
    assert resolve_tables(["made=7"], there) == {"made": 7}
    with pytest.raises(SystemExit, match="holds data set 40966 under this name"):
        resolve_tables(["MiceProtein=1"], there)


def test_unknown_name_after_binary_is_refused(monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match="expected names from a"):
        fetch(monkeypatch, "--out", tmp_path, "a=1", "--binary", "b")


def test_binary_versions_are_those_of_openml():
    """Numbers below the mean are `P`; of classes, the most frequent one is."""
    assert make_binary(pd.Series([5.8, 5.9, 6.0, 7.5])).tolist() == ["P", "P", "P", "N"]
    assert make_binary(pd.Series([1, 2, 3])).tolist() == ["P", "N", "N"]
    colours = pd.Series(["red", "blue", "green", "blue"], index=[3, 1, 0, 2])
    for target in (colours, colours.astype("category")):
        assert make_binary(target).to_dict() == {3: "N", 1: "P", 0: "N", 2: "P"}
