"""Import skops without PyTorch.

To list what it trusts, skops imports every package inside scikit-learn. One of them, a wrapper that scikit-learn only
needs for tensors, imports PyTorch if it is installed, which costs a second of CPU time and 180 MiB in each worker.
"""

from __future__ import annotations

import sys
from typing import Any

_WRAPPER = "sklearn.externals.array_api_compat.torch"


def skops_io() -> Any:
    """Return the module ``skops.io``."""
    hide = "skops.io" not in sys.modules and _WRAPPER not in sys.modules
    if hide:
        sys.modules[_WRAPPER] = None  # type: ignore[assignment]  # makes its import fail, as scikit-learn allows
    try:
        import skops.io

        return skops.io
    finally:
        if hide:
            del sys.modules[_WRAPPER]
