"""Import skops without PyTorch and Dask.

To list what it trusts, skops imports every package inside scikit-learn. Two of them, wrappers that scikit-learn only
needs for tensors and for arrays of Dask, import these libraries if they are installed, in each worker: PyTorch takes a
second of CPU time and 180 MiB, Dask an eighth of a second.
"""

from __future__ import annotations

import sys
from typing import Any

_WRAPPERS = ("sklearn.externals.array_api_compat.torch", "sklearn.externals.array_api_compat.dask.array")


def skops_io() -> Any:
    """Return the module ``skops.io``."""
    hidden = [name for name in _WRAPPERS if "skops.io" not in sys.modules and name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # makes its import fail, as scikit-learn allows
    try:
        import skops.io

        return skops.io
    finally:
        for name in hidden:
            del sys.modules[name]
