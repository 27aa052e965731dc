"""Make the contracts and the modules of `support` importable from every test folder."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS / "support")]

# Models are signed: with a key of the tests, never that of whoever runs them. Processes they start inherit it.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["CASHMERE_KEY_FOLDER"] = tempfile.mkdtemp(prefix="cashmere-test-keys-")
    atexit.register(shutil.rmtree, os.environ["CASHMERE_KEY_FOLDER"], ignore_errors=True)

pytest_plugins = ["report_page", "one_table"]  # the fixtures `browser` and `one_table`
