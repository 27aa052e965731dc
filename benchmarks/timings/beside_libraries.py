"""Time our own code beside libraries that do nearly the same: encoding, preparation, worker processes.

    python -m benchmarks.timings.beside_libraries

skrub and Pebble are compared where they are installed (`pip install skrub pebble`); the project does not need them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from importlib.util import find_spec
from itertools import islice
from multiprocessing import get_context

import numpy as np
from ConfigSpace import Configuration
from ConfigSpace.util import get_one_exchange_neighbourhood

from benchmarks.timings.suggestion_time import named_space
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.task import Encoding, TaskType
from cashmere.execution.messages import pack
from cashmere.execution.worker import WorkerProcess
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.space.encoding.encoder import SpaceEncoder

N_CANDIDATES = 5000
N_CALLS = 100


def milliseconds(
    action: Callable[[], object], repeats: int, *, clock: Callable[[], float] = time.process_time
) -> float:
    """Return the median time of several calls; by default CPU time, which a busy machine disturbs less."""
    times = []
    for _ in range(repeats):
        start = clock()
        action()
        times.append(clock() - start)
    return 1000 * statistics.median(times)


def compare_encoding() -> None:
    """Draw candidates and turn them into rows, with ConfigSpace and with `SpaceEncoder`."""
    space = named_space("volcano")
    space.seed(0)
    encoder = SpaceEncoder(space)
    rng = np.random.default_rng(0)
    configurations = space.sample_configuration(N_CANDIDATES)
    theirs = milliseconds(lambda: space.sample_configuration(N_CANDIDATES), 5)
    vectors = milliseconds(lambda: np.array([c.get_array() for c in configurations]), 5)
    ours = milliseconds(lambda: encoder.sample(N_CANDIDATES, rng), 5)
    encoded = milliseconds(lambda: encoder.encode(configurations), 5)
    print(f"draw {N_CANDIDATES} candidates: ConfigSpace {theirs:.0f} ms, SpaceEncoder {ours:.0f} ms (already rows)")
    starts = configurations[:50]
    rows = encoder.encode(starts)
    counts = [N_CANDIDATES // len(starts)] * len(starts)
    moved = milliseconds(lambda: encoder.draw_neighbours(rows, counts, rng), 5)
    exchanged = milliseconds(lambda: [list(islice(_exchanges(c), n)) for c, n in zip(starts, counts, strict=True)], 5)
    print(f"{N_CANDIDATES} one-exchange neighbours: ConfigSpace {exchanged:.0f} ms, SpaceEncoder {moved:.0f} ms")
    print(f"configurations to rows: Configuration.get_array {vectors:.1f} ms, SpaceEncoder.encode {encoded:.1f} ms")


def _exchanges(configuration: Configuration) -> Iterator[Configuration]:
    return get_one_exchange_neighbourhood(configuration, seed=0, num_neighbors=20)


def compare_preparation() -> None:
    """Prepare the demo table with `TableSchema` and `FoldEncoder`, and with skrub's `TableVectorizer`."""
    frame = demo_table()
    y = (frame.pop(DEMO_TARGET) == "good").to_numpy().astype(float)

    def prepare() -> object:
        schema = infer_schema(frame)
        encoder = FoldEncoder.for_schema(Encoding.ONEHOT, schema)
        return encoder.fit_transform(schema.code(frame), y, TaskType.BINARY, seed=0)

    print(f"prepare {frame.shape[0]} x {frame.shape[1]} cells: cashmere {milliseconds(prepare, 10):.0f} ms", end="")
    if find_spec("skrub"):
        from skrub import TableVectorizer

        print(f", skrub {milliseconds(lambda: TableVectorizer().fit_transform(frame), 10):.0f} ms", end="")
    print()


def compare_workers() -> None:
    """Dispatch empty calls to one worker process: ours, loky's, Pebble's; then a call that ends Pebble's process."""
    from loky import ProcessPoolExecutor

    worker = WorkerProcess(environment={}, log=None)
    worker.receive(60.0)
    task = pack((_nothing, None, None))

    def dispatch() -> None:
        worker.send(task)
        worker.receive(60.0)

    print(f"dispatch: cashmere {milliseconds(dispatch, N_CALLS, clock=time.perf_counter):.2f} ms", end="")
    worker.kill()
    pool = ProcessPoolExecutor(1)
    pool.submit(os.getpid).result()
    theirs = milliseconds(lambda: pool.submit(os.getpid).result(), N_CALLS, clock=time.perf_counter)
    print(f", loky {theirs:.2f} ms", end="")
    pool.shutdown()
    if find_spec("pebble"):
        from pebble import ProcessPool

        other = ProcessPool(max_workers=1, context=get_context("spawn"))
        other.schedule(os.getpid).result()
        theirs = milliseconds(lambda: other.schedule(os.getpid).result(), N_CALLS, clock=time.perf_counter)
        print(f", Pebble {theirs:.2f} ms", end="")
        try:
            other.schedule(os._exit, args=[0]).result(timeout=10)
        except FutureTimeoutError:
            print("; a call of os._exit(0) never ends with Pebble", end="")
        except Exception as error:
            print(f"; a call of os._exit(0) ends with {type(error).__name__}", end="")
        other.stop()
    print()


def _nothing(trial: Trial) -> Outcome:
    return Outcome(status=TrialStatus.SUCCESS, loss=0.0)


if __name__ == "__main__":
    compare_encoding()
    compare_preparation()
    compare_workers()
    os._exit(0)  # the program cannot end while a pool waits for a result that never comes
