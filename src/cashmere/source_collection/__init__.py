"""Losses of the same configurations on many tables, for everything that learns from other tables."""

from cashmere.source_collection.collection import collect
from cashmere.source_collection.configurations import draw_configurations
from cashmere.source_collection.descriptions import describe_tables
from cashmere.source_collection.journal import read_work
from cashmere.source_collection.runs import read_runs
from cashmere.source_collection.tables import SourceFile, draw_rows, find_tables, holdout

__all__ = [
    "SourceFile",
    "collect",
    "describe_tables",
    "draw_configurations",
    "draw_rows",
    "find_tables",
    "holdout",
    "read_runs",
    "read_work",
]
