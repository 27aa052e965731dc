"""Make the contracts and the modules of `support` importable from every test folder."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS / "support")]

pytest_plugins = ["report_page"]  # the fixture `browser`
