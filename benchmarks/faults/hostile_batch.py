"""Run hostile trials in two workers, in a separate process, and print each outcome as a line of JSON.

python -m benchmarks.faults.hostile_batch ATTACK ...
"""

from __future__ import annotations

import functools
import json
import sys
from concurrent.futures import Future, wait

from ConfigSpace import Configuration, ConfigurationSpace

from benchmarks.faults.hostile_trials import ATTACKS, CUT_SHORT, name_of
from cashmere.execution.limits import Limits
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.trial import Outcome, Trial

LIMIT_SECONDS = 4.0
LIMIT_MIB = 400.0


def main(names: list[str]) -> None:
    attacks = {name_of(attack): attack for attack in ATTACKS}
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    configuration = Configuration(space, values={"x": 0.5})
    executor = WorkerProcessExecutor(2, limits=Limits(seconds=LIMIT_SECONDS, memory_mib=LIMIT_MIB), n_threads=1)
    try:
        trials = [Trial(number=i, configuration=configuration, seed=i) for i in range(len(names))]
        futures = [executor.submit(attacks[name], trial) for name, trial in zip(names, trials, strict=True)]
        for number, future in enumerate(futures):
            future.add_done_callback(functools.partial(_tell, number))
        wait(futures)
    finally:
        executor.shutdown()


def _tell(number: int, future: Future[Outcome]) -> None:
    outcome = future.result()
    cause, mib = str(outcome.error or outcome.cut_short or ""), outcome.memory_mib or 0.0
    status = outcome.status if outcome.cut_short is None else CUT_SHORT
    print(json.dumps([number, status, outcome.loss, outcome.duration_seconds, mib, cause]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
