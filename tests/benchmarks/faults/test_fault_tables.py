from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.faults.outcome import FaultOutcome, end_with_failures
from benchmarks.faults.tables import kills_table, make_tables

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "faults.md").read_text()
TABLES = make_tables(ROOT / "benchmarks" / "results")


@pytest.mark.parametrize("table", TABLES, ids=[table.title for table in TABLES])
def test_page_matches_the_rows(table):
    assert table.to_markdown().strip() in PAGE


def test_kinds_are_counted_by_outcome():
    row = {"kind": "terminated", "seed": "0", "case": "0", "command": "fit", "resume_seconds": ""}
    rows = [{**row, "outcome": "ok"}, {**row, "command": "resume", "outcome": "hang", "resume_seconds": "4.0"}]
    lines = {line[0]: line[1:] for line in kills_table(rows).rows}
    assert lines["terminated"] == lines["all"] == ("2", "1", "1", "0", "0", "0", "0", "1", "0", "0", "4.0")
    assert lines["disk full"][0] == "0"


def test_failures_end_the_command():
    end_with_failures([{"outcome": FaultOutcome.OK}, {"outcome": FaultOutcome.TYPED}])
    with pytest.raises(SystemExit, match="1 of 2 have failed"):
        end_with_failures([{"outcome": FaultOutcome.OK}, {"outcome": FaultOutcome.ORPHAN}])
