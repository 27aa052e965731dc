"""Make the contracts and the modules of `support` importable from every test folder."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
import zlib
from pathlib import Path

import pytest

# Threads of OpenMP that wait must not spin: tests share the cores. Read once, when a library brings OpenMP along.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS / "support")]

# Models are signed: with a key of the tests, never that of whoever runs them. Processes they start inherit it.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["CASHMERE_KEY_FOLDER"] = tempfile.mkdtemp(prefix="cashmere-test-keys-")
    atexit.register(shutil.rmtree, os.environ["CASHMERE_KEY_FOLDER"], ignore_errors=True)

pytest_plugins = ["report_page", "one_table"]  # the fixtures `browser` and `one_table`


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without looking for garbage, and never look at what was collected afterwards.

    The modules and the ten thousand tests stay until the end; going through them again and again would take a quarter
    of the time of the collection, and longer in every child that is forked later.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Make the cases of a test marked ``sampled(n)`` long, except the first and about one in n of the others.

    Which ones depends on their names alone: a count would leave out every case with certain values of a parameter.
    """
    seen = set()
    for item in items:
        if (sampled := item.get_closest_marker("sampled")) is not None:
            test = item.nodeid.partition("[")[0]
            if test in seen and zlib.crc32(item.nodeid.encode()) % sampled.args[0]:
                item.add_marker(pytest.mark.long)
            seen.add(test)


@pytest.fixture
def ctrl_c():
    """Do not ignore Ctrl+C, as a shell makes background processes and their children do."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
