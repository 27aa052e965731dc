"""The option ``--scheduler``: a Dask cluster for what a benchmark computes."""

from __future__ import annotations

import argparse


def add_scheduler_argument(parser: argparse.ArgumentParser) -> None:
    """Let a command take the address of a scheduler for `open_cluster`; it is None by default."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="compute on the Dask cluster with this scheduler, such as tcp://host:8786. All its machines need this "
        "checkout and its data in the same place; there, start: PYTHONPATH=. dask worker ADDRESS",
    )
