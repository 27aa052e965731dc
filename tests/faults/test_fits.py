"""Fits in one process leave nothing behind: no memory, descriptors, threads, processes or files."""

from __future__ import annotations

import pytest

from benchmarks.faults.fits import COUNTS, fit_again_and_again, growth


def check(times, warm_up, place):
    found = growth(fit_again_and_again(times, place), warm_up)
    assert found.pop("mib_per_fit") < (1.0 if times > 20 else 4.0)  # a few fits still load parts of libraries
    assert found == dict.fromkeys(COUNTS, 0.0)


def test_six_fits_hold_no_more_than_the_first_ones(tmp_path):
    check(6, 2, tmp_path)


@pytest.mark.slow
def test_fifty_fits_hold_no_more_than_the_first_ones(tmp_path):
    check(50, 10, tmp_path)
