"""``cashmere leaderboard | contest | report``: look at a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cashmere.cli.app import app
from cashmere.cli.terminal import RunPlace, plain, print_whole, say, typed_errors


@app.command()
def leaderboard(
    folder: RunPlace,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Number of rows to show.")] = 20,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write all rows to this file, with hyper-parameters as JSON; .json writes all as JSON.",
        ),
    ] = None,
) -> None:
    """Show the trials of a run, best first, and their weights."""
    with typed_errors():
        from rich.table import Table

        from cashmere.cli.output_files import check_output, write_output, write_table
        from cashmere.storage.trial_tables import run_leaderboard

        if output is not None:
            check_output(output, others=(".json",))
        rows, facts = run_leaderboard(folder)
        if output is not None:
            if output.name.lower().endswith(".json"):
                write_output(output, rows.to_json(orient="records", double_precision=15, indent=1).encode())
            else:
                write_table(rows.assign(configuration=[json.dumps(values) for values in rows["configuration"]]), output)
            say(False, f"{len(rows)} trials written to {output}")
            return
        unneeded = ["status", "configuration"]
        unneeded += ["loss"] * rows["loss"].equals(rows["score"])
        unneeded += [name for name in ("reached", "weight") if not rows[name].any()]
        rows = rows.drop(columns=unneeded)
        rows["fit_seconds"] = [f"{seconds:.3g}" for seconds in rows["fit_seconds"]]
        title, caption = plain(facts.title), plain(facts.caption)
        grid = Table(title=title, caption=caption, box=None, pad_edge=False, collapse_padding=True)
        for name in rows.columns:
            if name in ("origin", "reached"):
                grid.add_column(name, overflow="fold", min_width=len("warm start"))
            elif name == "algorithm":
                grid.add_column(name, no_wrap=True)
            else:
                grid.add_column(name.replace("fit_seconds", "fit (s)"), justify="right", no_wrap=True)
        for row in rows.head(top).itertuples(index=False):
            grid.add_row(*map(plain, row))
        print_whole(grid)


@app.command()
def contest(
    folder: RunPlace,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write all rounds to this file; .json writes them as stored."
        ),
    ] = None,
) -> None:
    """Show the contest among sub-spaces. Lists its rounds and tests, and when and why each sub-space left."""
    with typed_errors():
        from rich.console import Console
        from rich.table import Table

        from cashmere.analysis import read_contest, summarise_contest
        from cashmere.cli.output_files import check_output, write_output, write_table

        if output is not None:
            check_output(output, others=(".json",))
        recorded = read_contest(folder)
        if output is not None:
            if output.name.lower().endswith(".json"):
                write_output(output, json.dumps(recorded.to_json(), indent=1).encode())
            else:
                write_table(recorded.frame(), output)
            say(False, f"The contest is written to {output}")
            return
        found = summarise_contest(recorded)
        standing = Table("sub-space", "trials", "best", "left in round", title="Sub-spaces")
        for each in found["subspaces"]:
            best = "-" if each["best_score"] is None else f"{each['best_score']:.5g}"
            left = "" if each["round"] is None else str(each["round"])
            standing.add_row(*map(plain, (each["name"], str(each["trials"]), best, left)))
        rounds = Table("round", "alive", "trials each", "test", "dropped", title="Rounds", show_lines=True)
        for stage in found["stages"]:
            trials = "-".join(str(n) for n in sorted(set(stage["trials"])))
            dropped = "\n".join(f"{one['name']}: {one['reason']}" for one in stage["dropped"])
            rounds.add_row(*map(plain, (stage["label"], str(stage["alive"]), trials, stage["test"] or "", dropped)))
        console = Console()
        console.print(plain(found["sentence"]))
        console.print(standing, rounds)


@app.command()
def report(
    folder: RunPlace,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write it (default: report.html in DIR, or here).",
        ),
    ] = None,
) -> None:
    """Rewrite the HTML report of a run."""
    with typed_errors():
        from cashmere.report import write_report

        say(False, str(write_report(folder, output)))
