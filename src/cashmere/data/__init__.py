"""From a table to prepared folds."""

from __future__ import annotations

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.task import TaskProfile, TaskType

__all__ = ["DEMO_TARGET", "TaskProfile", "TaskType", "demo_table"]
