"""The files of a run."""

from __future__ import annotations

from cashmere.storage.trial_tables import run_failures, run_leaderboard, run_trials

__all__ = ["run_failures", "run_leaderboard", "run_trials"]
