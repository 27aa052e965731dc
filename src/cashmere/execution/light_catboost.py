"""Let workers import CatBoost without what it imports only for notebooks and for tables of polars.

Where IPython and polars are installed, they take a worker ten times as long to import as CatBoost alone. Learners in
workers get arrays and pandas tables.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType


class _AbsentForCatBoost(importlib.abc.MetaPathFinder):
    """Tells CatBoost, and nothing else, that packages are not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in ("IPython", "polars") and _importer(sys._getframe(1)) == "catboost":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def _importer(frame: FrameType | None) -> str:
    """Return the package whose code imports something, given the frame that looks for it."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in ("importlib", "_frozen_importlib", "_frozen_importlib_external"):
            return package
        frame = frame.f_back
    return ""


def lighten_catboost() -> None:
    """Have a later import of CatBoost in this process find neither IPython nor polars."""
    sys.meta_path.insert(0, _AbsentForCatBoost())
