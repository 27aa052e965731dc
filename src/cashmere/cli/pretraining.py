"""``cashmere pretrain``: learn from other tables what searches can begin with."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cashmere.cli.app import app
from cashmere.cli.terminal import INTERRUPTED, Quiet, Scheduler, SpaceName, say, say_error, typed_errors

if TYPE_CHECKING:
    from cashmere.execution.cluster import Cluster
    from cashmere.metalearning.observations import SourceObservations

_INTERRUPTED_TEXT = "Interrupted; everything is kept. Run the same command to continue."


@app.command()
def pretrain(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the artefact; FOLDER/work holds intermediate results.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of tables (CSV, Parquet, ARFF), optionally with a manifest.json."),
    ] = None,
    runs: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Finished run to learn from; repeat for more runs.")
    ] = None,
    space: SpaceName = "sklearn12",
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="Use only the tables of this group in the manifest.")
    ] = None,
    target: Annotated[
        str, typer.Option(metavar="COLUMN", help="Name of the column to predict, in every table.")
    ] = "target",
    configs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of random configurations per algorithm.")
    ] = 100,
    rows: Annotated[int, typer.Option(min=10, metavar="N", help="Largest number of rows to draw from a table.")] = 1000,
    time_limit: Annotated[
        str, typer.Option(metavar="TIME", help="CPU time limit per configuration, such as 5s.")
    ] = "5s",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of parallel evaluations (default: number of cores, at most 4; all threads of a cluster).",
        ),
    ] = None,
    scheduler: Scheduler = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="observations.npz to add to, or none (default: that of the package if only --runs is given).",
        ),
    ] = None,
    opening: Annotated[
        bool,
        typer.Option(
            "--opening",
            help="Only make FOLDER/opening.json from the runs, for fit --opening.",
        ),
    ] = False,
    collect_only: Annotated[
        bool, typer.Option("--collect-only", help="Only evaluate the tables; do not make the artefact.")
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Seed for all randomness: same seed, same configurations, rows and losses."
        ),
    ] = 0,
    quiet: Quiet = False,
) -> None:
    """Learn from other tables or runs for later searches.

    Evaluates random configurations on every table, then makes the artefact that the strategies latent,
    agreeing_sources, pretrain_bo, as_ml and ahs_ml use: --strategy latent:artefact=FOLDER. With --opening, orders the
    configurations of runs by what they add to ensembles per second. If stopped, the same command continues. Nothing
    leaves this machine.
    """
    with typed_errors(), contextlib.ExitStack() as stack:
        from cashmere.base.cores import default_workers
        from cashmere.base.interrupts import stop_on_interrupt
        from cashmere.exceptions import DataError, MissingParameterError
        from cashmere.execution.engines import open_cluster
        from cashmere.pretraining.collection import MEMORY_MIB, collect, describe_tables, find_tables, read_runs
        from cashmere.pretraining.embeddings import import_torch
        from cashmere.records.budget import parse_seconds

        if data is None and not runs:
            raise MissingParameterError(
                "--data",
                "There is nothing to learn from. Give a folder of tables with --data, or finished runs with --runs.",
            )
        if opening:
            _make_opening(runs, out, space=space, quiet=quiet)
            return
        limit_seconds = parse_seconds(time_limit, "--time-limit")
        # A missing PyTorch must show before the long work, not after it.
        if not collect_only:
            import_torch()
        parts = [_base_observations(base, space, wanted=data is None)]
        parts += [read_runs(runs, space=space) if runs else None]
        n_missing = 0
        cluster = stack.enter_context(open_cluster(scheduler, n_threads=1))
        if workers is None:
            workers = default_workers() if cluster is None else cluster.n_trials(MEMORY_MIB)
        with stop_on_interrupt() as interrupted:
            if data is not None:
                tables = find_tables(data, group=group, target=target)
                collected = collect(
                    tables,
                    space=space,
                    n_configurations=configs,
                    n_rows=rows,
                    limit_seconds=limit_seconds,
                    work=out / "work",
                    n_workers=workers,
                    seed=seed,
                    cluster=cluster,
                    progress=lambda text: say(quiet, text),
                    stop=interrupted.is_set,
                )
                n_missing = len(tables) - len(collected.tables)
                if not interrupted.is_set():
                    collected = describe_tables(
                        collected, tables, work=out / "work", progress=lambda text: say(quiet, text)
                    )
                parts.insert(1, collected)
        observations = functools.reduce(lambda first, second: first.merged(second), filter(None, parts))
        if not observations.tables and not interrupted.is_set():
            raise DataError(
                f"{data}: none of the {n_missing} tables can be used. Expected tables with classes to predict."
            )
        observations.save(out / "observations.npz")
        say(quiet, f"{len(observations.tables)} tables in {out / 'observations.npz'}")
        if interrupted.is_set():
            say_error(_INTERRUPTED_TEXT)
            raise typer.Exit(INTERRUPTED)
        if not collect_only:
            _build(observations, out, n_workers=workers, cluster=cluster, seed=seed, quiet=quiet)


def _make_opening(runs: list[Path] | None, out: Path, *, space: str, quiet: bool) -> None:
    from cashmere.exceptions import MissingParameterError
    from cashmere.pretraining.opening_sources import opening_of_runs

    if not runs:
        raise MissingParameterError(
            "--runs", "An opening is made from finished runs. Name them with --runs; --data is for artefacts."
        )
    opening = opening_of_runs(runs, space=space)
    out.mkdir(parents=True, exist_ok=True)
    opening.save(out / "opening.json")
    say(
        quiet,
        f"The defaults, and {len(opening.steps)} more of {opening.notes['candidates']} configurations of "
        f"{len(opening.sources)} runs, in {out / 'opening.json'}. Use it: --opening {out / 'opening.json'}",
    )


def _base_observations(base: str | None, space: str, *, wanted: bool) -> SourceObservations | None:
    """Return the observations to add new ones to, if there are any."""
    from cashmere.metalearning.artefact import SHIPPED
    from cashmere.metalearning.observations import SourceObservations

    if base == "none":
        return None
    shipped = SHIPPED / space / "observations.npz"
    path = Path(base) if base is not None else shipped if wanted and shipped.exists() else None
    return None if path is None else SourceObservations.load(path)


def _build(
    observations: SourceObservations, out: Path, *, n_workers: int, cluster: Cluster | None, seed: int, quiet: bool
) -> None:
    from cashmere.base.files import write_atomically
    from cashmere.metalearning.artefact import SHIPPED
    from cashmere.pretraining.building import SEARCHES, BuildSettings, build_artefact
    from cashmere.pretraining.collection.configurations import REFERENCE
    from cashmere.space.named.registry import make_space

    space = make_space(observations.space, REFERENCE).configuration_space
    shipped = SHIPPED / observations.space / SEARCHES
    if shipped.exists() and not (out / "work" / SEARCHES).exists():  # searches on the package's own tables
        (out / "work").mkdir(parents=True, exist_ok=True)
        write_atomically(out / "work" / SEARCHES, shipped.read_bytes())
    try:
        artefact = build_artefact(
            observations,
            space,
            work=out / "work",
            settings=BuildSettings(seed=seed),
            n_workers=n_workers,
            cluster=cluster,
            report=lambda text: say(quiet, text),
        )
    except KeyboardInterrupt:
        say_error(_INTERRUPTED_TEXT)
        raise typer.Exit(INTERRUPTED) from None
    artefact.save(out)
    say(quiet, f"Artefact of {len(artefact.sources)} tables in {out}. Use it: --strategy latent:artefact={out}")
