"""Python imports this at its start if the folder is in PYTHONPATH; it shifts `time.time` by the offset in a file."""

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
