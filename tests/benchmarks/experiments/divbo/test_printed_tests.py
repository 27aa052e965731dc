"""The conclusions from the printed means, and that the pages state them."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import ttest_ind

from benchmarks.__main__ import main
from benchmarks.experiments.divbo.methods import SUITES, published_values
from benchmarks.experiments.divbo.printed_tests import compare_printed_means, printed_tests_table

PAGES = Path(__file__).parents[4] / "docs" / "papers"


def test_means_and_deviations_are_enough_for_the_test_of_welch():
    own, other = [float(x) for x in range(10)], [1.5 * x + 1 for x in range(10)]
    values = pd.DataFrame(
        [("1", "test", "t", "A", 0.0, 0.0), ("1", "test", "t", "B", 0.0, 0.0)],
        columns=["table", "measure", "dataset", "method", "mean", "std"],
    )
    values["mean"] = [pd.Series(x).mean() for x in (own, other)]
    values["std"] = [pd.Series(x).std() for x in (own, other)]
    (row,) = compare_printed_means(values, "A").itertuples()
    assert row.p_value == pytest.approx(ttest_ind(own, other, equal_var=False).pvalue)
    assert (row.against, row.verdict) == ("B", "same")
    assert row.difference == pytest.approx(4.5 - 7.75)


@pytest.mark.parametrize(("suite", "n_counted"), [("divbo", 3), ("optdivbo", 6)])
def test_the_page_says_what_follows_from_the_printed_means(suite, n_counted):
    wanted = [row for row in printed_tests_table(SUITES[suite]).rows if row[5] != "-"]
    lines = (PAGES / f"{suite}.md").read_text().splitlines()
    said = {tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("|")}
    assert len(wanted) == n_counted
    assert {
        (number, other, f"{low} of {n}", welch, printed) for number, other, n, low, welch, printed in wanted
    } <= said


def test_the_paper_of_divbo_shows_one_difference_to_bo_es():
    found = compare_printed_means(published_values(SUITES["divbo"]), "DivBO")
    found = found[(found["table"] == "1") & (found["against"] == "BO-ES")]
    assert len(found) == 15
    assert (found["verdict"] == "better").sum() == 1


def test_later_tables_are_tested_with_their_own_rows():
    found = compare_printed_means(published_values(SUITES["divbo"]), "DivBO")
    assert {"8", "9", "11", "12"} < set(found["table"])
    assert set(found.loc[found["table"] == "12", "against"]) == {"AutoGluon"}


def test_the_command_prints_them(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmarks", "printed", "--suites", "divbo"])
    main()
    assert re.search(r"1\s+BO-ES\s+15\s+\d+\s+1/14/0\s+12/1/2", capsys.readouterr().out)
