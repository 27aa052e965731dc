"""Seconds of the configurations that a search of the space ``default`` begins with, on tables with many classes.

    python -m benchmarks first-seconds --data DIR

Each follows its path on each table, in 3-fold cross-validation, without RealMLP.
`python -m benchmarks costs --candidates` learns from the rows, with those of `python -m benchmarks learners`, whose
tables have six classes at most.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from rich.console import Console

from benchmarks.experiments.followed_candidates import (
    FollowedCandidates,
    add_followed_arguments,
    first_without_network,
    follow_once,
)
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import write_anew
from benchmarks.tables.manifest import find_tables

TABLES = (
    "vowel", "letter", "pendigits", "texture", "LED-display-domain-7digit", "mfeat-morphological", "flags", "glass",
    "credit-g", "phoneme", "cylinder-bands",
)  # fmt: skip
"""With 6 to 26 classes; the last three with two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSeconds:
    """One configuration on one table.

    Attributes
    ----------
    table, origin, algorithm, candidate
        Which one; candidates are called as `first_candidates` says.
    cpu_seconds : float
        Of its path on all folds.
    """

    table: str
    origin: str
    algorithm: str
    candidate: str
    cpu_seconds: float


def timed(followed: FollowedCandidates, table: str, origin: str) -> list[FirstSeconds]:
    """Return the rows of a table."""
    return [
        FirstSeconds(table=table, origin=origin, algorithm=name, candidate=number, cpu_seconds=round(seconds, 3))
        for (name, number), seconds in followed.cpu_seconds.items()
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_followed_arguments(parser, "first_seconds", TABLES, rows=400, seconds=10.0)


def main(arguments: argparse.Namespace) -> None:
    rows: list[FirstSeconds] = []
    with until_interrupted(Console()):
        for table in find_tables(arguments.data, arguments.tables):
            followed = follow_once(
                table, arguments.work, first_without_network, n_rows=arguments.rows, most_seconds=arguments.seconds
            )
            rows += timed(followed, table.name, table.origin)
    if rows:
        write_anew(arguments.out, rows)
