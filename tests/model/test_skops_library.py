"""Importing skops: quickly, and without side effects."""

import subprocess
import sys

READ_AND_WRITE = """
import sys
from pathlib import Path
from sklearn.linear_model import Ridge
from cashmere.model.archives import dump, load
path = Path(sys.argv[1])
path.write_bytes(dump([Ridge(alpha=2.0)]))
assert load(path)[0].alpha == 2.0
"""


def run(program, folder):
    subprocess.run([sys.executable, "-c", READ_AND_WRITE + program, str(folder / "x.skops")], check=True)


def test_reading_and_writing_models_imports_little(tmp_path):
    run("assert not {'torch', 'dask', 'pytest', 'sklearn.gaussian_process'} & sys.modules.keys()", tmp_path)


def test_a_program_that_imports_skops_later_has_all_of_it(tmp_path):
    program = """
import skops.io
from sklearn.utils import all_estimators
assert len(all_estimators()) > 100
assert skops.io.loads(skops.io.dumps(Ridge(alpha=3.0))).alpha == 3.0
assert load(path)[0].alpha == 2.0
"""
    run(program, tmp_path)


def test_a_program_that_has_imported_skops_shares_it():
    program = "import skops.io; from cashmere.model.skops_library import skops_io; assert skops_io() is skops.io"
    subprocess.run([sys.executable, "-c", program], check=True)
