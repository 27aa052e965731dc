"""The content of a report, as plain data."""

from cashmere.report.summary.run import summarise_result, summarise_run

__all__ = ["summarise_result", "summarise_run"]
