"""Runs that are hit at random instants: no finished trial is lost or repeated, every resume ends as without faults.

And two commands on one run directory: one of them is refused, and the run ends as it does alone.
"""

from __future__ import annotations

import functools
import sys

import numpy as np
import pytest

from benchmarks.faults.case import CaseKey, InjectedFault, Reference, make_reference, run_case
from benchmarks.faults.commands import N_ROWS_OF_A_PATH, SECONDS
from benchmarks.faults.kills import next_cases
from benchmarks.faults.kinds import FAULTS, Kind
from benchmarks.faults.orphans import adopting_orphans
from benchmarks.faults.outcome import FaultOutcome
from benchmarks.faults.pairs import PAIRS, run_pair
from benchmarks.runs.row_file import RowFile

needs_orphans = pytest.mark.skipif(sys.platform != "linux", reason="orphans can be adopted on Linux only")

reference = functools.cache(make_reference)


def hit(kind, *, seed, case=0):
    """Return the rows of the first case that hits anything."""
    if reason := FAULTS[kind].make.missing():
        pytest.skip(reason)
    fault = FAULTS[kind].make
    known = reference(fault.strategies[case % len(fault.strategies)], follows_paths=fault.follows_paths)
    with adopting_orphans() as orphans:
        while not (rows := run_case(CaseKey(kind, seed, case), known, orphans)):
            case += len(fault.strategies)
    return rows


@pytest.mark.long
@needs_orphans
def test_a_run_survives_kills_of_its_coordinator():
    rows = hit("coordinator killed", seed=1)
    assert [row.detail for row in rows if FaultOutcome(row.outcome).is_failure] == []
    assert rows[-1].resume_seconds > 0


@needs_orphans
@pytest.mark.slow
def test_a_run_with_half_finished_paths_survives():
    known = Reference(
        strategy="random",
        digest="",
        trials={},
        predictions=np.empty((N_ROWS_OF_A_PATH, 5)),
        fit_seconds=SECONDS,
        resume_seconds=5.0,
    )
    with adopting_orphans() as orphans:  # the case has one fault, in the middle of the search
        (row,) = run_case(CaseKey("coordinator and workers killed on paths", 1, 1), known, orphans)
    assert (row.outcome, row.detail) == (FaultOutcome.OK, row.detail)
    assert row.resume_seconds > 0


class KilledWhereNoTrialHasTime(FAULTS["coordinator killed on paths"].make):
    """As on a machine so busy that all trials meet their limit."""

    most_strikes = 1

    @property
    def arguments(self):
        return () if (self.run / "run.json").exists() else ("--trial-timeout", "0.01s")


@needs_orphans
@pytest.mark.slow
def test_a_run_without_a_successful_trial_ends_as_promised():
    kinds = {"no time": Kind(KilledWhereNoTrialHasTime, 1)}
    known = Reference(
        strategy="random", digest="", trials={}, predictions=np.empty((0, 5)), fit_seconds=8.0, resume_seconds=5.0
    )
    with adopting_orphans() as orphans:
        (row,) = run_case(CaseKey("no time", 1, 1), known, orphans, kinds)
    assert row.outcome == FaultOutcome.TYPED
    assert "NoSuccessfulTrialError" in row.detail


@needs_orphans
@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("case", range(5))
def test_many_runs_survive(kind, case):
    rows = hit(kind, seed=2, case=case)
    assert [row.detail for row in rows if FaultOutcome(row.outcome).is_failure] == []


def test_two_fits_into_one_directory():
    row = run_pair("fit and fit", 0, 1, reference("random", follows_paths=False))
    assert row.outcome == FaultOutcome.TYPED, row
    assert {row.first, row.second} in ({"exit status 0", "RunLockedError"}, {"exit status 0", "RunDirectoryError"})


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("case", range(5))
def test_pairs(pair, case):
    row = run_pair(pair, 0, case, reference("random", follows_paths=False))
    assert not FaultOutcome(row.outcome).is_failure, row


def test_cases_keep_the_shares_of_their_kinds_and_continue_behind_those_in_the_file(tmp_path):
    file = RowFile(tmp_path / "kills.csv", InjectedFault)
    kinds = ["coordinator killed", "terminated"]

    def add(key):
        what = {"strategy": "bo", "command": "fit", "instant": "any", "seconds": 1.0, "trials": 3, "what": "SIGKILL"}
        end = {"outcome": "ok", "detail": "two\nlines"}
        file.add([InjectedFault(**key._asdict(), step=step, **what, **end) for step in range(2)])

    for key in next_cases(file, times=40, seed=0, kinds=kinds):
        add(key)
    rows = file.read()
    assert len(rows) == 40
    assert 32 <= sum(row["kind"] == "coordinator killed" for row in rows) <= 34
    key = next(next_cases(file, times=41, seed=0, kinds=kinds))
    assert key.case == max(int(row["case"]) for row in rows if row["kind"] == key.kind) + 1
    with (tmp_path / "kills.csv").open("a") as cut_short:
        cut_short.write("terminated,0,99")
    assert len(file.read()) == 40
