"""Time the prediction of many rows, member by member: as learners do it, and as `Predictor` does.

    python -m benchmarks.timings.prediction my-run large/large_1000000.parquet --rows 50000

Columns are CPU microseconds per row of a single thread, which a busy machine disturbs less than seconds. The last is
how far the two predictions are apart.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cashmere import Predictor
from cashmere.data.frames import to_frame
from cashmere.data.reading import read_table
from cashmere.model.many_rows import for_many_rows

Result = TypeVar("Result")


def microseconds(predict: Callable[[], NDArray[np.float32]], repeats: int) -> tuple[float, NDArray[np.float32]]:
    """Return the median processor time per row, and what is predicted."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        predicted = predict()
        seconds.append(time.process_time() - start)
    return 1e6 * statistics.median(seconds) / len(predicted), predicted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a run directory or model folder")
    parser.add_argument("table", help="rows to predict")
    parser.add_argument("--rows", type=int, default=50_000, help="the last so many of the table")
    parser.add_argument("--of", type=int, default=1_000_000, help="rows for which models are made faster")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    predictor = Predictor.load(options.folder)
    frame = read_table(options.table).iloc[-options.rows :].reset_index(drop=True)
    predictor.predict_raw(frame.iloc[:100])  # so few rows that learners use one thread
    with threadpool_limits(1):
        seconds, coded = _timed(lambda: predictor.schema.code(to_frame(frame), compact=True))
        print(f"code {len(frame)} rows: {1e6 * seconds / len(frame):.2f} us per row")
        print(f"{'member':>6} {'learner':<28} {'encode':>7} {'before':>9} {'after':>9} {'ratio':>6} {'apart':>8}")
        totals, rewriting = np.zeros(3), 0.0
        for number in predictor.ensemble.members:
            model = predictor.models[number][0]
            encoding, X = _timed(lambda model=model: predictor.encoders[0][model.encoding].transform(coded))
            before, plain = microseconds(lambda model=model, X=X: model.predict(X), options.repeats)
            seconds, faster = _timed(lambda model=model: for_many_rows(model, options.of, n_threads=1))
            rewriting += seconds
            after, fast = microseconds(lambda model=faster, X=X: model.predict(X), options.repeats)
            totals += 1e6 * encoding / len(X), before, after
            learner = "constant" if model.pipeline is None else type(model.pipeline[-1]).__name__
            row = f"{number:>6} {learner:<28} {1e6 * encoding / len(X):>7.2f} {before:>9.2f} {after:>9.2f}"
            print(f"{row} {after / before:>6.2f} {np.abs(fast - plain).max():>8.1g}", flush=True)
        row = f"{'all':>6} {'':<28} {totals[0]:>7.2f} {totals[1]:>9.2f} {totals[2]:>9.2f}"
        print(f"{row} {totals[2] / totals[1]:>6.2f}\nonce, to make them faster: {rewriting:.2f} s")


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
