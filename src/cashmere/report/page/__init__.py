"""From a summary to the page."""

from cashmere.report.page.rendering import render_report, write_report

__all__ = ["render_report", "write_report"]
