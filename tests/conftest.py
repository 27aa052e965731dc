"""Make ``from contracts.strategy_contract import StrategyContract`` work from every test folder."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
