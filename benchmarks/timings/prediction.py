"""Time the prediction of many rows, member by member: as learners do it, and as `Predictor` does.

    python -m benchmarks.timings.prediction my-run large/large_1000000.parquet --rows 50000

CPU microseconds per row of a single thread, which a busy machine disturbs less than seconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.runs.code_version import commit
from benchmarks.runs.row_file import RowFile
from cashmere import Predictor
from cashmere.data.frames import to_frame
from cashmere.data.reading import read_table
from cashmere.model.many_rows import for_many_rows, predict_in_threads

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTime:
    """How long one member takes to predict.

    Attributes
    ----------
    model : str
        Name of the run directory or model folder.
    table : str
        Name of the file with the rows.
    rows : int
        That were predicted.
    member : int
        Number of its trial.
    learner : str
        Class of its last step.
    encode, before, after : float
        CPU microseconds per row, on one thread: to encode rows, and to predict encoded ones as the learner does, and as
        `Predictor` does.
    apart : float
        Largest difference between the two predictions.
    once : float
        CPU seconds to make the model faster.
    commit : str
        Of the code.
    """

    model: str
    table: str
    rows: int
    member: int
    learner: str
    encode: float
    before: float
    after: float
    apart: float
    once: float
    commit: str


def microseconds(predict: Callable[[], NDArray[np.float32]], repeats: int) -> tuple[float, NDArray[np.float32]]:
    """Return the median processor time per row, and what is predicted."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        predicted = predict()
        seconds.append(time.process_time() - start)
    return 1e6 * statistics.median(seconds) / len(predicted), predicted


def measure(folder: Path, table: Path, *, n_rows: int, of: int, repeats: int) -> Iterator[MemberTime]:
    """Yield the time of each member for the last rows of a table, made faster for `of` rows."""
    predictor = Predictor.load(folder)
    frame = read_table(str(table)).iloc[-n_rows:].reset_index(drop=True)
    predictor.predict_raw(frame.iloc[:100])  # so few rows that learners use one thread
    coded = predictor.schema.code(to_frame(frame), compact=True)
    with threadpool_limits(1):
        for number in predictor.ensemble.members:
            model = predictor.models[number][0]
            encoding, X = _timed(lambda model=model: predictor.encoders[0][model.encoding].transform(coded))
            before, plain = microseconds(lambda model=model, X=X: model.predict(X), repeats)
            once, faster = _timed(lambda model=model: for_many_rows(model, of, n_threads=1))
            after, fast = microseconds(lambda model=faster, X=X: predict_in_threads(model, X, n_threads=1), repeats)
            yield MemberTime(
                model=folder.name,
                table=table.stem,
                rows=len(frame),
                member=number,
                learner="constant" if model.pipeline is None else type(model.pipeline[-1]).__name__,
                encode=1e6 * encoding / len(frame),
                before=before,
                after=after,
                apart=float(np.abs(fast - plain).max()),
                once=once,
                commit=commit(),
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a run directory or model folder")
    parser.add_argument("table", type=Path, help="rows to predict")
    parser.add_argument("--rows", type=int, default=50_000, help="the last so many of the table")
    parser.add_argument("--of", type=int, default=1_000_000, help="rows for which models are made faster")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(".timings/prediction.csv"), help="rows; grows")
    options = parser.parse_args()
    file = RowFile(options.out, MemberTime)
    file.add(measure(options.folder, options.table, n_rows=options.rows, of=options.of, repeats=options.repeats))
    print(file.frame(model=options.folder.name).drop(columns=["model", "table", "commit"]).to_string(index=False))


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
