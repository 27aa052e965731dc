"""Measure how long a model folder takes to load, and what the check of its archives takes of that.

    python -m benchmarks.timings.model_loading my-run

The last column is what skops needs to name the types of an archive that it does not trust by itself.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import skops.io

from cashmere import Predictor
from cashmere.model.audit import audit
from cashmere.model.files import find_model


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Return the median processor time of a call."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return 1000 * statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a run directory or model folder")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    folder = find_model(options.folder)
    archives = {path.name: path.read_bytes() for path in sorted(folder.glob("*.skops"))}
    Predictor.load(folder, verify=False)  # imports
    loading = milliseconds(lambda: Predictor.load(folder, verify=False), options.repeats)
    print(f"{folder}: {len(archives)} archives, {sum(map(len, archives.values())) / 1e6:.2f} MB")
    print(f"load the model in this process: {loading:.1f} ms\n")
    print(f"{'archive':<34} {'kB':>8} {'check':>9} {'skops names types':>18}")
    for name, data in archives.items():
        checking = milliseconds(lambda data=data, name=name: audit(data, name), options.repeats)
        naming = milliseconds(lambda data=data: skops.io.get_untrusted_types(data=data), options.repeats)
        print(f"{name:<34} {len(data) / 1e3:>8.0f} {checking:>6.1f} ms {naming:>15.1f} ms")


if __name__ == "__main__":
    main()
