"""A whole run: from a table and settings to a run directory with a model and a report.

Command line and estimators call `fit_run` and `continue_run` with `RunSettings`. `refine_run` selects another ensemble
from a finished run; `retrain_run` fits its ensemble again on newer rows.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cashmere.run.finished import FinishedRun, StopReason
    from cashmere.run.front_door import continue_run, fit_run
    from cashmere.run.refinement import RefinedRun, refine_run
    from cashmere.run.retraining import retrain_run
    from cashmere.run.run_directory import RunDirectory
    from cashmere.run.session import Session
    from cashmere.run.settings import RunSettings

__all__ = [
    "FinishedRun",
    "RefinedRun",
    "RunDirectory",
    "RunSettings",
    "Session",
    "StopReason",
    "continue_run",
    "fit_run",
    "refine_run",
    "retrain_run",
]

_HOMES = {
    "FinishedRun": "cashmere.run.finished",
    "RefinedRun": "cashmere.run.refinement",
    "RunDirectory": "cashmere.run.run_directory",
    "RunSettings": "cashmere.run.settings",
    "Session": "cashmere.run.session",
    "StopReason": "cashmere.run.finished",
    "continue_run": "cashmere.run.front_door",
    "fit_run": "cashmere.run.front_door",
    "refine_run": "cashmere.run.refinement",
    "retrain_run": "cashmere.run.retraining",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use, because the command line must start fast."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'cashmere.run' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List all public names, whether or not they have been imported."""
    return sorted({*globals(), *__all__})
