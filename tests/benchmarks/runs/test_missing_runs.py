"""Studies of runs by CPU time show the runs of the command, and say which of them other code has made."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest
from rich.console import Console

from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.row_file import RowFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    table: str
    variant: str
    seed: int
    budget: float
    rows: int
    share: float
    commit: str


def row(table="a", variant="bo", seed=0, budget=60.0, rows=100, share=1.0, made_by=None):
    made_by = commit() if made_by is None else made_by
    return Row(table=table, variant=variant, seed=seed, budget=budget, rows=rows, share=share, commit=made_by)


@pytest.fixture
def show(tmp_path):
    """Return what the command shows of kept rows, and its rows, without making a run."""

    def shown(kept, *wanted):
        file, said = RowFile(tmp_path / "rows.csv", Row), io.StringIO()
        file.add(kept)
        found = make_missing(
            [(key,) for key in wanted], lambda key: [], file, n_workers=1, console=Console(file=said, width=200),
            describe=str,
        )  # fmt: skip
        return said.getvalue(), found

    return shown


def test_runs_by_different_code_are_counted_once_each(show):
    kept = [
        row(made_by="0000001"), row(share=0.5, made_by="0000001"), row("b", made_by=""), row("c"),
        row("d", made_by="0000002"),
    ]  # fmt: skip
    said, found = show(kept, *(RunKey(table, "bo", 0, 60.0, 100) for table in "abc"))
    assert "2 of 3 runs were made by different code (1 by 0000001, 1 by unknown code); another --out" in said
    assert list(found["table"]) == ["a", "a", "b", "c"]


def test_runs_of_other_settings_are_not_shown(show):
    kept = [row(), row("b"), row(variant="random"), row(seed=1), row(budget=30.0), row(rows=50)]
    said, found = show(kept, RunKey("a", "bo", 0, 60.0, 100))
    assert len(found) == 1 and "different code" not in said


def fail(key):
    raise RuntimeError("no idea")


@pytest.mark.long
@pytest.mark.parametrize("kept", [[], [row("b")]])
def test_failed_runs_are_counted_below_their_errors(kept, tmp_path):
    file, said = RowFile(tmp_path / "rows.csv", Row), io.StringIO()
    file.add(kept)
    keys = [RunKey(table, "bo", 0, 60.0, 100) for table in "ab"]
    console = Console(file=said, width=200)
    found = make_missing([(key,) for key in keys], fail, file, n_workers=1, console=console, describe=str)
    assert list(found["table"]) == [each.table for each in kept]
    assert said.getvalue().count("RuntimeError: no idea") == 2 - len(kept)
    assert f"{2 - len(kept)} runs failed and are missing below" in said.getvalue()


def test_there_may_be_no_runs_yet(show):
    said, found = show([], *[])
    assert found.empty and "commit" in found and not said
