"""What a search would make of a table, and what is suspicious about it, seen before the search."""

from cashmere.inspection.findings import Finding, FindingKind
from cashmere.inspection.table_inspection import ColumnFacts, TableInspection, inspect_table

__all__ = ["ColumnFacts", "Finding", "FindingKind", "TableInspection", "inspect_table"]
