"""Every broken table has the outcome that `broken_tables` promises, and `docs/broken_tables.md` says so."""

from __future__ import annotations

import gzip
import subprocess
import sys
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cashmere import AutoClassifier
from cashmere.cli import app
from cashmere.data.reading import read_table
from cashmere.exceptions import CashmereError
from cashmere.space import make_space
from faults import broken_tables
from faults.broken_tables import BASE_MIB, CASES, COLUMN_BYTES, MODEL, PREDICTED, TARGET, TIMES_SIZE


def cheapest(profile):
    return make_space("default", profile).restricted_to(["logistic_regression"])


def learn(features, target, **settings):
    """Fit with the cheapest algorithm; all that stands between a table and a model is that of a long search."""
    model = AutoClassifier(budget="1trials", space=cheapest, isolation="none", resampling="holdout", **settings)
    return model.fit(features, target)


@pytest.fixture(scope="module")
def good_model():
    return learn(broken_tables.X, broken_tables.Y)


def outcome(function) -> str:
    """Return what a function returns, or the error of ours that it ends with; others pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except CashmereError as error:
            return f"{type(error).__name__}: {error}"


def fitted(built) -> str:
    if isinstance(built, Path):
        frame = read_table(built)
        features, target = frame.drop(columns=TARGET), frame[TARGET]
    else:
        features, target = built
    assert np.isfinite(learn(features, target).predict_proba(features)).all()
    return MODEL


def predicted(built, model) -> str:
    labels = model.predict(read_table(built) if isinstance(built, Path) else built[0])
    assert set(labels) <= {"no", "yes"}
    return PREDICTED


IS_EXACT = int(pd.__version__.partition(".")[0]) >= 3
"""Earlier versions of pandas read some columns as other types: then any model and any error of ours will do."""


def check(found: str, promised: str) -> None:
    kind, _, text = promised.partition(": ")
    if not IS_EXACT and (found in (MODEL, PREDICTED) or found.rstrip()[-1] in ".?)"):
        return
    assert found.partition(": ")[0] == kind, found
    assert text in found
    assert found == promised or (len(found) > 40 and found.rstrip()[-1] in ".?)"), found


def identifier(case) -> str:
    return f"{case.group}: {case.name}"


def marked(cases):
    return [pytest.param(case, id=identifier(case), marks=[pytest.mark.slow] * case.slow) for case in cases]


def is_file(case) -> bool:
    return any(word in case.group for word in ("CSV", "Column names", "Compressed", "Parquet", "ARFF", "Paths"))


FILES_REFUSED = [case for case in CASES if is_file(case) and case.fit != MODEL]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", marked(case for case in CASES if case not in FILES_REFUSED))
def test_fit(case, tmp_path):
    check(outcome(lambda: fitted(case.build(tmp_path))), case.fit)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", marked(FILES_REFUSED))
def test_fit_by_the_command_line(case, tmp_path):
    path = case.build(tmp_path)
    result = CliRunner().invoke(
        app, ["fit", str(path), "--target", TARGET, "--budget", "1trials", "--out", str(tmp_path / "run")]
    )
    assert not {c for c in result.output if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"}
    if result.exit_code == 0 and not IS_EXACT:
        return
    assert result.exit_code == 2, result.exception
    check(result.output.rstrip("\n"), case.fit)
    assert not (tmp_path / "run").exists()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", marked(CASES))
def test_predict(case, tmp_path, good_model):
    check(outcome(lambda: predicted(case.build(tmp_path), good_model)), case.predict)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    learn(broken_tables.X, broken_tables.Y, run_directory=folder)
    return folder


BY_COMMAND = [case for case in CASES if is_file(case)][::12]


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("default::cashmere.exceptions.UnknownValuesWarning")  # told in a line
@pytest.mark.parametrize("case", marked(BY_COMMAND))
def test_predict_by_the_command_line(case, tmp_path, run):
    path = case.build(tmp_path)
    result = CliRunner().invoke(app, ["predict", str(run), str(path), "-o", str(tmp_path / "out.csv")])
    assert result.exit_code == (0 if case.predict == PREDICTED else 2), (result.output, result.exception)
    assert (tmp_path / "out.csv").exists() == (case.predict == PREDICTED)
    if case.predict != PREDICTED:
        check(result.output.rstrip("\n"), case.predict)


def test_there_are_more_than_two_hundred_and_the_page_lists_them():
    assert len({identifier(case) for case in CASES}) == len(CASES) > 400
    assert broken_tables.PAGE.read_text(encoding="utf-8") == broken_tables.page()


MEASURE = """
import os, sys
from pathlib import Path
from cashmere.data.reading import read_table
from cashmere.exceptions import DataError
import pandas, pyarrow.parquet

def mib(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))

for path in sys.argv[1:]:
    if os.fork():
        assert os.wait()[1] == 0
    else:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        before = mib("VmRSS")
        try:
            read_table(path)
        except DataError:
            pass
        print(mib("VmHWM") - before, flush=True)
        os._exit(0)
"""

LARGE = {
    "numbers": b"a,b\n" + b"1,2\n" * 500_000,
    "missing values": b"a,b\n" + b",\n" * 1_000_000,
    "one column of digits": b"a\n" + b"1\n" * 1_000_000,
    "different texts": b"a,b\n" + b"".join(b"%d x,1\n" % i for i in range(300_000)),
    "one cell": b"a,b\n" + b"x" * 4_000_000 + b",1\n2,3\n",
    "one quoted cell": b'a,b\n"' + b'x ""y"" ' * 500_000 + b'",1\n2,3\n',
    "one quote that is never closed": b'a,b\n1,"2\n' + b"1,2\n" * 500_000,
    "one line of delimiters": b"a,b\n" + b"," * 4_000_000 + b"\n",
    "one line of names": ",".join(f"name{i}" for i in range(20_000)).encode() + b"\n" + b"1," * 19_999 + b"1\n",
    "line ends": b"a,b\n" + b"\n" * 4_000_000 + b"1,2\n",
    "ragged at the end": b"a,b\n" + b"1,2\n" * 500_000 + b"1,2,3\n",
    "letters beyond ASCII": ("a,b\n" + "é,ß\n" * 300_000).encode(),
    "Windows-1252": ("a,b\n" + "é,ß\n" * 300_000).encode("cp1252"),
}


PACKED = ("numbers", "one quote that is never closed", "different texts")


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from /proc")
def test_memory_is_a_bounded_multiple_of_the_file(tmp_path):
    files = []
    for number, (name, content) in enumerate(LARGE.items()):
        files.append((name, len(content), tmp_path / f"{number}.csv"))
        files[-1][2].write_bytes(content)
        if name in PACKED:
            files.append((f"{name}, packed", len(content), tmp_path / f"{number}.csv.gz"))
            files[-1][2].write_bytes(gzip.compress(content, 1))
    command = [sys.executable, "-c", MEASURE, *(path for _, _, path in files)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    peaks = [float(line) for line in result.stdout.split()]
    assert len(peaks) == len(files)
    for (name, size, _), peak in zip(files, peaks, strict=True):
        n_columns = LARGE[name.removesuffix(", packed")].count(b"name")
        assert peak < BASE_MIB + (TIMES_SIZE * size + COLUMN_BYTES * n_columns) / 2**20, name
