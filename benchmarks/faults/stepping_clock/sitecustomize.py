"""Python imports this at its start when the folder is in PYTHONPATH: `time.time` gets the offset that a file holds."""

import os
import time

_real = time.time


def _shifted() -> float:
    try:
        with open(os.environ["CASHMERE_CLOCK_OFFSET"]) as file:
            return _real() + float(file.read() or 0.0)
    except OSError:
        return _real()


time.time = _shifted
