"""Two commands on one run directory: one of them is refused, and the run ends as it does alone."""

from __future__ import annotations

import pytest

from benchmarks.faults.case import make_reference
from benchmarks.faults.outcome import FaultOutcome
from benchmarks.faults.pairs import PAIRS, run_pair


@pytest.fixture(scope="module")
def reference():
    return make_reference("random")


def test_two_fits_into_one_directory(reference):
    row = run_pair("fit and fit", 0, 1, reference)
    assert row.outcome == FaultOutcome.TYPED, row
    assert {row.first, row.second} in ({"exit status 0", "RunLockedError"}, {"exit status 0", "RunDirectoryError"})


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("case", range(5))
def test_pairs(pair, case, reference):
    row = run_pair(pair, 0, case, reference)
    assert not FaultOutcome(row.outcome).is_failure, row
