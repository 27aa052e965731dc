"""Import skops without the lists of what it trusts.

To list them, skops imports every package inside scikit-learn, and with them whatever is installed of pytest, Dask and
PyTorch (half a second of CPU time and up to 180 MiB), and looks for a thousand functions in all loaded modules (a sixth
of a second), in each process that reads or writes a model. Here, archives are read with the types that the closed list
allows (`cashmere.model.audit`), so nothing has to be trusted by default.
"""

from __future__ import annotations

import functools
import sys
import threading
from types import ModuleType
from typing import Any

import numpy as np

_LISTS = "skops.io._trusted_types"

_lock = threading.Lock()


def skops_io() -> Any:
    """Return the module ``skops.io``: that of the program, or a copy of our own that trusts nothing by default.

    A program that imports skops itself, earlier or later, gets a complete module.
    """
    with _lock:  # two copies would not know each other's classes
        return _imported()


@functools.cache
def _imported() -> Any:
    if "skops" in sys.modules:
        import skops.io

        return skops.io
    sys.modules[_LISTS] = _EmptyLists(_LISTS)
    try:
        import skops.io

        return skops.io
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "skops"]:
            del sys.modules[name]


class _EmptyLists(ModuleType):
    """Stands in for the module of skops that lists trusted types."""

    NUMPY_RANDOM_BIT_GENERATOR_TYPE_NAMES = tuple(
        f"numpy.random.{name}"
        for name, kind in vars(np.random).items()
        if isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)
    )
    """The only types of random states that skops loads, trusted or not."""

    def __getattr__(self, name: str) -> list[str]:
        if name.startswith("_"):  # what the import system asks modules for
            raise AttributeError(name)
        return []
