"""The process that workers are forks of imports the libraries of learners, and little more."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux")

PROGRAM = """
import sys

from cashmere.execution.library_imports import import_libraries

import_libraries()
assert {"catboost", "lightgbm", "xgboost"} <= sys.modules.keys()
assert not {"IPython", "polars"} & sys.modules.keys()
import polars
assert polars.Series([1, 2]).sum() == 3
"""

WITHOUT = """
import sys

from cashmere.execution.library_imports import import_libraries

sys.modules |= dict.fromkeys(("catboost", "lightgbm", "xgboost"))  # as if they were not installed
import_libraries()
"""

BROKEN = """
import os
import sys

from cashmere.execution.library_imports import import_libraries

with open("catboost.py", "w") as file:
    file.write("import os; os.abort()")
sys.path.insert(0, os.getcwd())
import_libraries()
assert "catboost" not in sys.modules
"""


@pytest.fixture
def run(tmp_path):
    return lambda program: subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)


def test_neither_polars_nor_ipython_is_imported_and_polars_can_be_later(run):
    pytest.importorskip("polars")
    run(PROGRAM)


@pytest.mark.parametrize("program", [WITHOUT, BROKEN], ids=["missing", "ends the process"])
def test_libraries_may_be_missing_or_broken(run, program):
    run(program)
