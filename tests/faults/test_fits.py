"""Fits in one process leave nothing behind: no memory, descriptors, threads, processes or files."""

from __future__ import annotations

import pytest

from benchmarks.faults.fits import COUNTS, fit_again_and_again, growth


@pytest.mark.slow
def test_fifty_fits_hold_no_more_than_the_first_ones(tmp_path):
    found = growth(fit_again_and_again(50, tmp_path), 10)
    assert found.pop("mib_per_fit") < 1.0
    assert found == dict.fromkeys(COUNTS, 0.0)
