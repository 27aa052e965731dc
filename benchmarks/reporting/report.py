"""The folder of results that every experiment writes: rows, a summary in Markdown, charts and a page."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from benchmarks.reporting.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawing with a caption.

    Attributes
    ----------
    caption : str
        Says what is drawn.
    svg : str
        An ``<svg>`` element with its own style.
    file : str
        Name of its own file without ``.svg``; empty if it has none.
    """

    caption: str
    svg: str
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report on the runs of an experiment.

    Attributes
    ----------
    title, heading : str
        What was compared, as a title and in one line.
    rows : mapping of str to DataFrame
        Rows of the CSV files, by their names without ``.csv``.
    sections : sequence of Table or Chart
        Parts of the page, in this order.
    summary : sequence of Table or str
        Tables of the summary, and lines of Markdown between them, below title and heading.
    """

    title: str
    heading: str
    rows: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    sections: Sequence[Table | Chart]
    summary: Sequence[Table | str]


def write_report(folder: Path, report: Report) -> Path:
    """Write the CSV files, ``summary.md``, the charts and ``index.html``; return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in report.rows.items():
        rows.to_csv(folder / f"{name}.csv", index=False, float_format="%.9g")
    parts = [part.to_markdown() if isinstance(part, Table) else part for part in report.summary]
    (folder / "summary.md").write_text(
        "\n".join([f"# {report.title}", "", report.heading, "", *parts]), encoding="utf-8"
    )
    for section in report.sections:
        if isinstance(section, Chart) and section.file:
            (folder / f"{section.file}.svg").write_text(section.svg, encoding="utf-8")
    page = folder / "index.html"
    page.write_text(make_page(report), encoding="utf-8")
    return page


def make_page(report: Report) -> str:
    """Return a page that needs no other file: a title, a line about what is shown, tables and charts."""
    sections = [_table(each) if isinstance(each, Table) else _chart(each) for each in report.sections]
    return PAGE.format(
        title=html.escape(report.title), heading=html.escape(report.heading), sections="\n".join(sections)
    )


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>{title}: {heading}</title>
<style>
body {{ margin: 0; background: #f7f5f1; color: #23211d; font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans",
  "Liberation Sans", "DejaVu Sans", sans-serif; }}
main {{ max-width: 1040px; margin: 0 auto; padding: 32px 20px 64px; }}
h1 {{ font-size: 28px; margin: 0 0 4px; letter-spacing: -.01em; }} h2 {{ font-size: 18px; margin: 0 0 6px; }}
p {{ color: #69635a; font-size: 14px; margin: 8px 0 0; max-width: 90ch; }}
section {{ background: #fffefb; border: 1px solid #e3ded4; border-radius: 12px; padding: 20px 24px; margin-top: 16px; }}
.scroll {{ overflow-x: auto; }} section > svg {{ display: block; width: 100%; height: auto; }}
table {{ border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 5px 18px 5px 0; border-bottom: 1px solid #e3ded4; text-align: right; white-space: nowrap; }}
th {{ font-weight: 500; color: #69635a; vertical-align: bottom; }}
th:first-child, td:first-child {{ text-align: left; }} tr:last-child td {{ border: 0; }}
td:first-child {{ white-space: normal; overflow-wrap: anywhere; min-width: 120px; }}
</style></head><body><main><h1>{title}</h1><p>{heading}</p>
{sections}
</main></body></html>
"""


def _table(table: Table) -> str:
    return f'<section><div class="scroll">{table.to_html()}</div></section>'


def _chart(chart: Chart) -> str:
    return f"<section><h2>{html.escape(chart.caption)}</h2>{chart.svg}</section>"
