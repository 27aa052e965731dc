"""Workers import CatBoost alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("polars")

PROGRAM = """
import sys

from cashmere.execution.inside_worker import warm_up

warm_up()
import catboost
import numpy as np
assert not {"IPython", "polars"} & sys.modules.keys()
catboost.CatBoostRegressor(iterations=2, verbose=False).fit(np.arange(10.0).reshape(-1, 1), np.arange(10.0))
import polars
assert polars.Series([1, 2]).sum() == 3
"""


def test_neither_polars_nor_ipython_is_imported_with_catboost_and_polars_can_be_by_others(tmp_path):
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, cwd=tmp_path)
