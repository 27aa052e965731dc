from __future__ import annotations

import sys

import pytest

from benchmarks.faults.case import InjectedFault
from benchmarks.faults.clusters import hit_runs
from benchmarks.faults.kills import next_cases
from benchmarks.runs.row_file import RowFile


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted as Linux does it")
def test_without_a_possible_kind_there_is_no_case(tmp_path):
    file = RowFile(tmp_path / "kills.csv", InjectedFault)
    assert list(next_cases(file, times=5, seed=0, kinds=[])) == []
    assert list(hit_runs([], seconds=60.0, seed=0)) == []
