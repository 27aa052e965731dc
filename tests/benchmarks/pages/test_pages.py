"""The numbers on pages agree with the stored rows."""

from __future__ import annotations

import functools

import pytest

from benchmarks.pages import benchmarks_page, how_good, match
from benchmarks.pages.statement import Body, PageError, Statement, tables_by_hand, unexplained, written
from benchmarks.pages.write import PARTS, ROOT, differences

PAGE = """# Title

It wins on three of 9 tables, by
-1.5 % [-2.0, +0.3]. Measured with 60 s.

| name | loss |
| --- | ---: |
| a | 1.0 |

The end.
"""
WINS = Statement(
    text="wins on {wins:word} of {all} tables, by {mean:+.1f} % [{low:+.1f}, {high:+.1f}]",
    values={"wins": 4, "all": 10, "mean": 0.25, "low": -1.0, "high": 2},
)
LOSSES = Body(header="| name | loss |", lines=("| a | 2.0 |", "| b | 3.0 |"))


@functools.cache
def parts(name):
    """Return what is computed for a page: the rows of all results are read for it, which takes seconds."""
    return tuple(PARTS[name]())


@pytest.mark.parametrize("name", PARTS)
def test_numbers_match_the_stored_rows(name):
    found = differences(name, parts(name))
    assert not found, "\n".join(["Run `python -m benchmarks pages`, and read what the page says then:", *found])


def test_every_number_of_how_good_is_computed_or_no_result():
    page = (ROOT / how_good.PAGE).read_text()
    found = unexplained(page, parts(how_good.PAGE), how_good.GIVEN)
    assert not found, "\n".join(
        ["Compute these in benchmarks/pages/how_good.py, or name the settings in GIVEN:", *found]
    )


def test_no_other_table_of_benchmarks_is_written_by_hand():
    found = tables_by_hand((ROOT / benchmarks_page.PAGE).read_text(), parts(benchmarks_page.PAGE))
    assert sorted(set(found)) == sorted(benchmarks_page.EXPLANATIONS), "Keep the rows, and compute the table of them."
    assert tables_by_hand(PAGE, ()) == [LOSSES.header] and tables_by_hand(PAGE, (LOSSES,)) == []


def test_numbers_are_written_and_nothing_else():
    after = written(PAGE, (WINS, LOSSES))
    assert "It wins on four of 10 tables, by\n+0.2 % [-1.0, +2.0]. Measured with 60 s." in after
    assert "| --- | ---: |\n| a | 2.0 |\n| b | 3.0 |\n\nThe end." in after
    assert written(after, (WINS, LOSSES)) == after


def test_numbers_that_nothing_computes_are_found():
    assert unexplained(PAGE, (WINS, LOSSES), ()) == ["60 in: -1.5 % [-2.0, +0.3]. Measured with 60 s."]
    assert not unexplained(PAGE, (WINS, LOSSES), (r"with 60 s",))


@pytest.mark.parametrize(
    "part",
    [
        Statement(text="loses on {n} tables", values={"n": 1}),
        Statement(text="{n} ", values={"n": 1}),
        Body(header="| other |", lines=()),
    ],
)
def test_parts_must_be_in_the_page_exactly_once(part):
    with pytest.raises(PageError, match="expected o"):
        written(PAGE, (part,))


def test_missing_rows_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(match, "RESULTS", tmp_path)
    with pytest.raises(PageError, match=r"peers\.jsonl has no table on which cashmere, autogluon.* expected "):
        match.match_losses()
