"""Follow the candidates of an opening on tables, all tables a few candidates at a time."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.experiments.followed_candidates import FollowedCandidates
from benchmarks.experiments.opening.candidates import offered, opening_candidates
from benchmarks.tables.manifest import BenchmarkTable

MOST_SECONDS = 15.0
"""CPU seconds after which a path ends."""

_AT_A_TIME = 25


def record(
    tables: Sequence[BenchmarkTable], work: Path, *, n_rows: int, n_candidates: int, report: Callable[[str], None]
) -> None:
    """Follow the first candidates on each table, except those that are in the folder of work already."""
    wanted = functools.partial(offered, opening_candidates(work))
    for end in range(_AT_A_TIME, n_candidates + _AT_A_TIME, _AT_A_TIME):
        for table in tables:
            path = work / f"{table.name}.npz"
            known = FollowedCandidates.read(path)
            clock = time.process_time()
            followed = known.completed(
                table, wanted, n_rows=n_rows, most_seconds=MOST_SECONDS, first=min(end, n_candidates)
            )
            if followed.tried != known.tried:
                followed.save(path)
                report(f"{table.name}: {len(followed.predictions)} candidates ({time.process_time() - clock:.0f} s)")
