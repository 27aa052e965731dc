"""Records that rooms exchange: trials, budgets, losses."""

from __future__ import annotations

from cashmere.records.budget import Budget, Deadline
from cashmere.records.time_left import TimeLeft
from cashmere.records.trial import History, Observation, Outcome, Suggestion, Trial, TrialStatus, configuration_key

__all__ = [
    "Budget",
    "Deadline",
    "History",
    "Observation",
    "Outcome",
    "Suggestion",
    "TimeLeft",
    "Trial",
    "TrialStatus",
    "configuration_key",
]
