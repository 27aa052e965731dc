"""The study: ask the strategy, run the trial, tell the store, in an order that does not depend on the machine.

For large numbers of workers, this order can be given up: `Order.ARRIVAL`.
"""

from __future__ import annotations

from cashmere.study.digest import run_digest
from cashmere.study.running_trials import submitted_at_once
from cashmere.study.study import Study

__all__ = ["Study", "run_digest", "submitted_at_once"]
