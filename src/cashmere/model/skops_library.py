"""Import skops without the rest of scikit-learn.

To list the estimators that it trusts by default, skops imports every package inside scikit-learn, and with them
whatever is installed of pytest, Dask and PyTorch: half a second of CPU time and up to 180 MiB in each process that
reads or writes a model. Here, archives are read with the types that the closed list allows (`cashmere.model.audit`), so
nothing has to be trusted by default.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any

_lock = threading.Lock()


def skops_io() -> Any:
    """Return the module ``skops.io``: that of the program, or a copy of our own that trusts no estimators by default.

    A program that imports skops itself, earlier or later, gets a complete module.
    """
    with _lock:  # two copies would not know each other's classes
        return _imported()


@functools.cache
def _imported() -> Any:
    if "skops" in sys.modules:
        import skops.io

        return skops.io
    import sklearn.utils

    complete = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = list
    try:
        import skops.io

        return skops.io
    finally:
        sklearn.utils.all_estimators = complete
        for name in [name for name in sys.modules if name.partition(".")[0] == "skops"]:
            del sys.modules[name]
