"""Inspect a table before a search: how its columns will be read, and what is suspicious about them."""

from cashmere.inspection.findings import Finding, FindingKind
from cashmere.inspection.table_inspection import ColumnFacts, TableInspection, inspect_table

__all__ = ["ColumnFacts", "Finding", "FindingKind", "TableInspection", "inspect_table"]
