from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest
from processes import running

from cashmere.execution.pools import worker_pool

SCRIPT = """
import os, time
from cashmere.execution.pools import worker_pool

with worker_pool(1) as executor:
    print(executor.submit(os.getpid).result(), flush=True)
    executor.submit(time.sleep, 600).result()
"""


@pytest.mark.long
def test_workers_end_when_the_main_process_is_killed():
    with running([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True) as main:
        worker = psutil.Process(int(main.stdout.readline()))
    worker.wait(timeout=60)
    assert not worker.is_running()


@pytest.mark.long
def test_workers_end_at_once_when_the_block_raises():
    start = time.perf_counter()
    with pytest.raises(KeyError), worker_pool(1) as executor:
        worker = psutil.Process(executor.submit(os.getpid).result())
        executor.submit(time.sleep, 600)
        raise KeyError
    assert time.perf_counter() - start < 60 and not worker.is_running()
