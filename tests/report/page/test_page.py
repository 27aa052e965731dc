from __future__ import annotations

import json

import pytest
from fake_runs import hostile_run, hostile_texts, make_explanation, make_run, some_failures, weighted
from report_page import CONTROL, check_inert

from cashmere.exceptions import RunDirectoryError
from cashmere.report import render_report, summarise_run, write_report
from cashmere.storage.store import RunStore


def test_report_is_written_beside_the_run(tmp_path):
    run = make_run(tmp_path / "run", failures=some_failures())
    path = write_report(run)
    assert path == run / "report.html"
    page = check_inert(path.read_text("utf-8"))
    for word in (
        "credit_risk",
        "roc_auc",
        "time budget spent",
        "3f0c6a1b9d22",
        "customer_id",
        "identifier",
        "2.1.0",
        "3.3 MiB",
    ):
        assert word in page.text
    assert "and 14 more" in page.text
    assert path.stat().st_size < 200_000
    assert write_report(run).read_text("utf-8") == path.read_text("utf-8")


def test_long_names_break_at_underscores(tmp_path):
    settings = {"target_name": "readmitted_within_30_days"}
    page = write_report(make_run(tmp_path / "run", settings=settings)).read_text("utf-8")
    name = "readmitted_<wbr>within_<wbr>30_<wbr>days"
    assert f"<h1>Predicting <bdi>{name}</bdi></h1>" in page
    assert f'<td>target_<wbr>name</td><td class="mono">{name}</td>' in page
    assert "<title>readmitted_within_30_days – cashmere report</title>" in page


@pytest.mark.long
def test_groups_of_columns_are_open_for_printing(tmp_path):
    run = make_run(tmp_path / "run", predictions=True)
    make_explanation(["age", "height", "width"]).save(run)
    page = write_report(run).read_text("utf-8")
    assert "<details open><summary>Columns that go together</summary>" in page
    assert "details:not([open]) { display: none; }" in page.partition("@media print")[2]  # paper cannot open the others


def test_report_can_be_written_while_the_run_works(tmp_path):
    run = make_run(tmp_path / "run", n_trials=3, finished=False)
    with RunStore(run):
        assert write_report(run).exists()


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(RunDirectoryError):
        write_report(tmp_path)


def test_hostile_names_stay_text(tmp_path):
    run = hostile_run(tmp_path / "run")
    summary = summarise_run(run)
    page = check_inert(render_report(summary))
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert not CONTROL.search(json.dumps(summary, ensure_ascii=False).replace("\\n", ""))
    assert len(render_report(summary)) < 1_000_000


@pytest.mark.long
def test_hostile_names_in_an_explanation_stay_text(tmp_path):
    run = make_run(tmp_path / "run", predictions=True, facts=weighted(3, 8), classes=tuple(hostile_texts()[:2]))
    names = [text[:5000].replace("\ud800", "") for text in hostile_texts()]
    make_explanation(names, outputs=tuple(names[:3])).save(run)
    summary = summarise_run(run)
    assert summary["explanation"]["why_not"] is None
    page = check_inert(render_report(summary))
    assert "Which columns does it rely on?" in page.text
    assert f"{len(names) - 21} more" in page.text
    assert len(render_report(summary)) < 500_000
