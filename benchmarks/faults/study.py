"""Hurt runs, trials and fits on purpose, at random instants, and count what came of it.

    python -m benchmarks faults kills | trials | fits | pairs | clusters | tables

Every command but the last writes rows, and ends with status 1 if anything that is promised was not kept.
"""

from __future__ import annotations

import argparse
import signal

from benchmarks.faults import clusters, fits, kills, pairs, tables, trials


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="fault_command", required=True)
    modules = {"kills": kills, "trials": trials, "fits": fits, "pairs": pairs, "clusters": clusters, "tables": tables}
    for name, module in modules.items():
        command = commands.add_parser(
            name,
            help=(module.__doc__ or "").partition("\n")[0],
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(hurt=module.main)


def main(arguments: argparse.Namespace) -> None:
    # A shell lets its background jobs ignore Ctrl+C, and the commands that are hit would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments.hurt(arguments)
