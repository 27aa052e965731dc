"""The failed trials by cause."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from cashmere.base.text import clean_text, redact
from cashmere.records.cause import Cause
from cashmere.report.summary.values import failed, one_line
from cashmere.storage.trial_tables import algorithm_name, cause_of, what_to_try

_TRACEBACK_LIMIT = 6000
"""Largest number of characters of a traceback."""


def failures_section(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Group failed trials by status and cause; causes that differ only in limits or numbers are one."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if failed(row):
            groups[str(row["status"]), _group_key(row)].append(row)
    results = []
    for (status, _), group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[1][0]["number"])):
        text = str(group[0].get("error") or "")
        details = redact(clean_text(text, _TRACEBACK_LIMIT, multiline=True))
        results.append(
            {
                "status": one_line(status),
                "cause": cause_of(group[0]),
                "count": len(group),
                "algorithms": dict(Counter(algorithm_name(row["configuration"]) for row in group).most_common()),
                "trials": [int(row["number"]) for row in group],
                "what_to_try": what_to_try(status, group[0].get("error")),
                "traceback": details if "\n" in details.strip() else None,
            }
        )
    return results


def _group_key(row: Mapping[str, Any]) -> str:
    """Return a key that is equal for equal causes: the kind, or the message of an exception without its numbers."""
    cause: Cause | None = row.get("error")
    if cause is None or cause.text:
        return re.sub(r"\d+(?:\.\d+)?", "#", cause_of(row))
    return cause.kind.value
