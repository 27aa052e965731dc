"""Runs on a real Dask cluster whose parts are killed, paused and restarted: they end as on one machine."""

from __future__ import annotations

import os
import sys

import pytest

from benchmarks.faults.cluster_kinds import CLUSTER_FAULTS
from benchmarks.faults.clusters import hit_runs
from benchmarks.faults.outcome import FaultOutcome

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="orphans can be adopted on Linux only"),
]

MINUTES = float(os.environ.get("CASHMERE_FAULT_MINUTES", "10"))


def assert_survived(rows):
    assert [row.detail for row in rows if FaultOutcome(row.outcome).is_failure] == []


@pytest.mark.parametrize("kind", [kind for kind in CLUSTER_FAULTS if kind != "mixed"])
def test_a_run_on_a_cluster_survives(kind):
    if reason := CLUSTER_FAULTS[kind].make.missing():
        pytest.skip(reason)
    for rows in hit_runs([kind], seconds=120, seed=1):
        if rows:  # else the run had ended before
            assert_survived(rows)
            break
    assert rows


@pytest.mark.timeout(60 * MINUTES + 600)
def test_runs_survive_all_kinds_mixed():
    n_faults = 0
    for rows in hit_runs(["mixed"], seconds=60 * MINUTES, seed=2):
        assert_survived(rows)
        n_faults += len(rows)
    assert n_faults
