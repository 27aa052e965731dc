"""Where a user has called the package, so that warnings point there."""

from __future__ import annotations

import sys

_PACKAGE = __name__.partition(".")[0]


def level_of_caller() -> int:
    """Return the ``stacklevel`` with which a warning points to the first line outside the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    return level
