"""Import the libraries of learners before workers are forked, which then share them.

CatBoost comes without what it imports only for notebooks and for tables of polars. Where IPython and polars are
installed, they take a worker ten times as long to import as CatBoost alone, and polars starts threads, so that no
process could be forked from the one that imported it. Learners in workers get arrays and pandas tables.

A child process tries the imports first: a library that was built for another processor ends whoever imports it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import os
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

    Both can be imported afterwards. What an import fails of is told by the trials that need it; if it would end the
    process, nothing is imported. The process must be able to wait for a child.
    """
    if (child := os.fork()) == 0:
        _import_all()
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        _import_all()


def _import_all() -> None:
    for name in ("sklearn.ensemble", "lightgbm", "xgboost"):
        _import(name)
    finder = _Absent("IPython", "polars")
    sys.meta_path.insert(0, finder)
    _import("catboost")
    with contextlib.suppress(ValueError):
        sys.meta_path.remove(finder)


def _import(name: str) -> None:
    with contextlib.suppress(BaseException):
        importlib.import_module(name)
