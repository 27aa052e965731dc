"""The report of a run: first a summary as plain data, then one self-contained page with figures."""

from cashmere.report.page import render_report, write_report
from cashmere.report.summary import summarise_run

__all__ = ["render_report", "summarise_run", "write_report"]
