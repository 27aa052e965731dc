from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.tables.manifest import add_data_argument, find_tables

ENTRY = {"name": "made", "file": "made.parquet", "task": "regression", "origin": "us"}


def write_manifest(folder, content) -> None:
    (folder / "manifest.json").write_text(json.dumps(content))


def test_tables_are_found_by_name(tmp_path):
    write_manifest(tmp_path, [ENTRY, ENTRY | {"name": "other"}])
    pd.DataFrame({"a": [1, 2], "target": [0.5, 1.5]}).to_parquet(tmp_path / "made.parquet")
    (table,) = find_tables(tmp_path, ["made"])
    assert (table.name, table.is_classification) == ("made", False)
    X, y = table.read()
    assert (list(X.columns), list(y)) == (["a"], [0.5, 1.5])


def test_folder_without_manifest_is_reported_in_one_line(tmp_path):
    with pytest.raises(SystemExit, match=r"--data .*manifest\.json.*CASHMERE_DATA.*docs/benchmarks\.md") as caught:
        find_tables(tmp_path / "nowhere", ["made"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [{"name": "made"}, [{"name": "made"}], [ENTRY | {"task": "ranking"}], ["made"], 1],
    ids=["no list", "no file", "no such task", "no entry", "a number"],
)
def test_manifest_of_another_form_is_reported_in_one_line(tmp_path, content):
    write_manifest(tmp_path, content)
    with pytest.raises(SystemExit, match="not a list of entries with name, file and task") as caught:
        find_tables(tmp_path, ["made"])
    assert "\n" not in str(caught.value)


def test_missing_table_file_or_target_is_reported(tmp_path):
    write_manifest(tmp_path, [ENTRY])
    (table,) = find_tables(tmp_path, ["made"])
    with pytest.raises(SystemExit, match=r"made\.parquet, named by the manifest"):
        table.read()
    pd.DataFrame({"a": [1]}).to_parquet(table.path)
    with pytest.raises(SystemExit, match="no column 'target'"):
        table.read()
    with pytest.raises(SystemExit, match=r"holds no table 'maid'\. It holds made"):
        find_tables(tmp_path, ["maid"])


def test_folder_must_be_named():
    with pytest.raises(SystemExit, match=r"--data FOLDER.*CASHMERE_DATA.*docs/benchmarks\.md") as caught:
        find_tables(None, ["made"])
    assert "\n" not in str(caught.value)


def test_environment_names_the_folder(monkeypatch):
    for value, expected in ((None, None), ("", None), ("/tables", Path("/tables"))):
        monkeypatch.delenv("CASHMERE_DATA", raising=False)
        if value is not None:
            monkeypatch.setenv("CASHMERE_DATA", value)
        parser = argparse.ArgumentParser()
        add_data_argument(parser)
        assert parser.parse_args([]).data == expected
