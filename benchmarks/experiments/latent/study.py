"""Compare searches on unseen tables: the shared latent space and the baselines of its paper.

    python -m benchmarks latent --observations targets/observations.npz --seeds 10 --out latent

Strategies choose among configurations whose losses on the target tables are recorded (`cashmere pretrain
--collect-only` records them). A run has two random configurations of each algorithm, the same for all strategies, and
60 evaluations more; `as_ml` and `ahs_ml` choose from the first evaluation on. Strategies are compared at equal numbers
of evaluations. What is learned from other tables comes from `--artefact`, by default from the one in the package; its
sources must have other origins than the targets. A strategy is written as for `replay`, and `{run}` in its options
stands for the number of the run:

    --strategies latent=latent:embedding=ranked random "any=latent:embedding=random,embedding_seed={run}"

Finished runs are kept in `--work`; the same command continues where it was stopped, and `--workers 0` only shows
finished runs. Other recorded losses or another artefact make other runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.experiments.latent.report import count_initial, make_report, make_tables, tidy
from benchmarks.experiments.latent.runs import (
    Target,
    check_fair,
    choose_targets,
    find_learned,
    load_targets,
    make_key,
    own_digest,
    search_missing,
)
from benchmarks.recordings.replay_runs import Run, RunFiles
from benchmarks.recordings.replay_study import add_missing, read_strategies
from benchmarks.reporting.report import write_report
from benchmarks.reporting.table import print_tables
from benchmarks.runs.different_code import tell_different_code
from benchmarks.runs.scheduler import add_scheduler_argument
from benchmarks.statistics.comparison import paired

STRATEGIES = (
    "latent=latent:embedding=ranked",
    "latent_random=latent:embedding=random,embedding_seed={run}",
    "latent_scratch=latent:embedding=scratch",
    "bandit_bo",
    "smac",
    # With 5 evaluations per pull none of 12 algorithms could be dropped; it needs no random trials.
    "rb_smac=rb_smac:evaluations_per_pull=1,inner=smac:n_initial=2",
    "pretrain_bo",
    "as_ml",
    "ahs_ml",
    "random",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--observations", type=Path, required=True, help="recorded losses of the target tables")
    parser.add_argument("--artefact", type=Path, help="folder made by `cashmere pretrain` (default: the package's)")
    parser.add_argument("--tables", "--datasets", nargs="+", default=[], help="names of targets (default: all)")
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), help="see above")
    parser.add_argument("--reference", default="latent", help="label of the strategy to test the others against")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds; tests per table need at least 6")
    parser.add_argument("--trials", type=int, default=84, help="evaluations of a run, initial ones included")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="runs at a time; 0: show finished runs")
    add_scheduler_argument(parser)
    parser.add_argument("--work", type=Path, default=Path(".suites"), help="finished runs")
    parser.add_argument("--out", type=Path, help="folder for results.csv, summary.md, charts and index.html")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of these runs and repeat them")


def main(arguments: argparse.Namespace) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    strategies = read_strategies(arguments.strategies, arguments.reference)
    targets = choose_targets(load_targets(arguments.observations), arguments.tables, arguments.trials)
    learned = {c.strategy: _check(c.strategy, targets, arguments.artefact) for c in strategies}

    # Seed by seed, so that an interrupted study has run all strategies about equally often.
    wanted = [
        (c.label, make_key(target, c.strategy, seed, n_trials=arguments.trials, learned=learned[c.strategy]))
        for seed in range(arguments.seeds)
        for target in targets
        for c in strategies
    ]
    files = RunFiles(arguments.work / "latent")
    if arguments.fresh:
        console.print(f"{files.forget(key for _, key in wanted)} runs forgotten")
    files.load({(key.recording, key.metric) for _, key in wanted})
    missing = list(dict.fromkeys(key for _, key in wanted if files.find(key, arguments.trials) is None))
    console.print(f"{len(wanted) - len(missing)} of {len(wanted)} runs are finished")
    n_failed = 0
    if missing and arguments.workers:
        n_failed = add_missing(
            files, len(missing), console=console,
            make=lambda keep: search_missing(
                arguments.observations, missing, n_trials=arguments.trials, artefact=arguments.artefact,
                n_workers=arguments.workers, scheduler=arguments.scheduler, report=keep,
            ),
        )  # fmt: skip
    found = [(label, run) for label, key in wanted if (run := files.find(key, arguments.trials)) is not None]
    _show(console, found, targets, arguments)
    if n_failed:
        raise SystemExit(f"{n_failed} of {len(missing)} runs failed; the causes are above.")


def _check(strategy: str, targets: Sequence[Target], artefact: Path | None) -> str:
    """Return the digest of what a strategy learned from other tables, empty if nothing; check that this is fair."""
    found = find_learned(strategy, targets[0], artefact)
    if found is None:
        return ""
    check_fair(targets, found[0])
    return found[1]


def _show(
    console: Console, found: Sequence[tuple[str, Run]], targets: Sequence[Target], arguments: argparse.Namespace
) -> None:
    """Print the tables and write the requested files."""
    tell_different_code(console, (run.code for _, run in found), {own_digest()}, advice="--fresh repeats them")
    labels = {label for label, _ in found}
    if arguments.reference not in labels:
        raise SystemExit(f"There are no runs of {arguments.reference} to compare with.")
    runs = paired(tidy(found, targets))
    pairs = runs[["recording", "seed"]].drop_duplicates()
    if pairs.empty:
        raise SystemExit("There is no table and seed for which all strategies have a run.")
    if len(pairs) < len(targets) * arguments.seeds or len(labels) < len(arguments.strategies):
        console.print(
            f"[yellow]Of {len(targets) * arguments.seeds} pairs of table and seed the {len(pairs)} are used for which "
            f"there are runs of all of {', '.join(sorted(labels))}[/]"
        )
    n_initial = count_initial(targets)
    heading = (
        f"{pairs['recording'].nunique()} tables, {pairs['seed'].nunique()} seeds, {n_initial} initial and "
        f"{runs['trials'].max()} further evaluations"
    )
    tables = make_tables(runs, found, targets, arguments.reference)
    console.print(f"\n{heading}\n", highlight=False)
    print_tables(console, tables)
    if arguments.out is not None:
        report = make_report(heading, tables, runs, n_initial)
        console.print(f"Page: {write_report(arguments.out, report)}", highlight=False)
