"""Importing skops: quickly, and without side effects."""

import subprocess
import sys

import pytest

WRAPPERS = "WRAPPERS = [f'sklearn.externals.array_api_compat.{name}' for name in ('torch', 'dask.array')]"

READ_AND_WRITE = """
import sys
from pathlib import Path
from sklearn.linear_model import Ridge
from cashmere.model.archives import dump, load
path = Path(sys.argv[1])
path.write_bytes(dump([Ridge(alpha=2.0)]))
assert load(path)[0].alpha == 2.0
"""

LATER = """
assert not {'torch', 'dask', 'pytest', 'sklearn.gaussian_process'} & sys.modules.keys()
sys.modules |= dict.fromkeys(WRAPPERS)  # to import PyTorch and Dask would only take time
import skops.io
from sklearn.utils import all_estimators
assert len(all_estimators()) > 100
assert skops.io.loads(skops.io.dumps(Ridge(alpha=3.0))).alpha == 3.0
assert load(path)[0].alpha == 2.0
"""

EARLIER = """
import sys
sys.modules |= dict.fromkeys(WRAPPERS)
import skops.io
from cashmere.model.skops_library import skops_io
assert skops_io() is skops.io
"""


@pytest.mark.long
def test_little_is_imported_and_a_program_that_imports_skops_later_has_all_of_it(tmp_path):
    subprocess.run([sys.executable, "-c", WRAPPERS + READ_AND_WRITE + LATER, str(tmp_path / "x.skops")], check=True)


def test_a_program_that_has_imported_skops_shares_it(tmp_path):
    subprocess.run([sys.executable, "-c", WRAPPERS + EARLIER + READ_AND_WRITE, str(tmp_path / "x.skops")], check=True)
