"""Measure how long a model folder takes to load, what the check of its archives takes of that, and how long to write.

    python -m benchmarks.timings.model_loading my-run

Two columns are for comparison: what skops needs to name the types of an archive that it does not trust by itself, and
to write the same objects, before they are packed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import skops.io

from cashmere import Predictor
from cashmere.model.archives import dump, load
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
    paths = sorted(folder.glob("*.skops"))
    Predictor.load(folder, verify=False)  # imports
    loading = milliseconds(lambda: Predictor.load(folder, verify=False), options.repeats)
    print(f"{folder}: {len(paths)} archives, {sum(path.stat().st_size for path in paths) / 1e6:.2f} MB")
    print(f"load the model in this process: {loading:.1f} ms\n")
    print(f"{'archive':<34} {'kB':>8} {'check':>9} {'skops names types':>18} {'write':>9} {'skops writes':>13}")
    for path in paths:
        data, content = path.read_bytes(), load(path)
        calls: tuple[Callable[[], object], ...] = (
            partial(audit, data, path.name),
            partial(skops.io.get_untrusted_types, data=data),
            partial(dump, content),
            partial(skops.io.dumps, content),
        )
        checking, naming, writing, skops_writing = (milliseconds(call, options.repeats) for call in calls)
        print(
            f"{path.name:<34} {len(data) / 1e3:>8.0f} {checking:>6.1f} ms {naming:>15.1f} ms {writing:>6.1f} ms "
            f"{skops_writing:>10.1f} ms"
        )


if __name__ == "__main__":
    main()
