"""Import the libraries of learners before the first trial, so that forked workers share them.

CatBoost comes without what it imports only for notebooks and for tables of polars. Where IPython and polars are
installed, they take a worker ten times as long to import as CatBoost alone, and polars starts threads, so that no
process could be forked from the one that imported it. Learners in workers get arrays and pandas tables.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Absent(importlib.abc.MetaPathFinder):
    """Finds that packages are not installed."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def import_libraries() -> None:
    """Import the libraries of learners that can be imported, CatBoost as if IPython and polars were not installed.

    Both can be imported afterwards. What an import fails of is told by the trials that need it.
    """
    finder = _Absent("IPython", "polars")
    sys.meta_path.insert(0, finder)
    try:
        for name in ("sklearn.ensemble", "lightgbm", "xgboost", "catboost"):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    finally:
        sys.meta_path.remove(finder)
