"""The report of a run, written during the search to know how long it takes."""

from __future__ import annotations

import time

from cashmere.records.budget import Deadline
from cashmere.run.measured_report import MeasuredReport

SECONDS = 0.3


def test_the_first_report_counts_only_until_there_is_another():
    written = []

    def write():
        if not written:
            time.sleep(SECONDS)  # the first time libraries are imported
        written.append(len(written))

    report = MeasuredReport(write)
    deadline = Deadline(600.0)
    report.write_ahead(deadline, lambda: 600.0)
    assert report.seconds >= SECONDS
    report.write_ahead(deadline, lambda: 600.0)
    assert report.seconds < SECONDS
    assert written == [0, 1]
