"""Fits in one process leave nothing behind: no memory, descriptors, threads, processes or files."""

from __future__ import annotations

import argparse

import pytest

from benchmarks.faults.fits import COUNTS, WARM_UP, add_arguments, fit_again_and_again, growth, main


@pytest.mark.slow
def test_fifty_fits_hold_no_more_than_the_first_ones(tmp_path):
    found = growth(fit_again_and_again(50, tmp_path), 10)
    assert found.pop("mib_per_fit") < 1.0
    assert found == dict.fromkeys(COUNTS, 0.0)


@pytest.mark.parametrize("times", [5, WARM_UP, WARM_UP + 1])
def test_too_few_fits_are_refused_before_the_first(times, tmp_path):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    (tmp_path / "rows.csv").write_text("earlier")
    with pytest.raises(SystemExit, match=f"--times {times}: expected at least 12"):
        main(parser.parse_args(["--times", str(times), "--out", str(tmp_path / "rows.csv")]))
    assert (tmp_path / "rows.csv").read_text() == "earlier"
