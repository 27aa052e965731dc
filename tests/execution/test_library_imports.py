"""Workers import the libraries of learners, and little more."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("polars")

PROGRAM = """
import sys

from cashmere.execution.inside_worker import warm_up

warm_up()
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


def run(program):
    subprocess.run([sys.executable, "-c", program], check=True)


def test_neither_polars_nor_ipython_is_imported_and_both_can_be_later():
    run(PROGRAM)


def test_libraries_may_be_missing():
    run(WITHOUT)
