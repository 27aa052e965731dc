"""Collect the losses of the same configurations on many tables, for all methods that learn from other tables."""

from cashmere.pretraining.collection.collection import MEMORY_MIB, collect
from cashmere.pretraining.collection.configurations import draw_configurations
from cashmere.pretraining.collection.descriptions import describe_tables
from cashmere.pretraining.collection.journal import read_work
from cashmere.pretraining.collection.runs import read_runs
from cashmere.pretraining.collection.tables import SourceFile, draw_rows, find_tables, holdout

__all__ = [
    "MEMORY_MIB",
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
