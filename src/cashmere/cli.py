"""The command line.

``cashmere fit | resume | predict | leaderboard | contest | report | strategies | cite | pretrain | demo``.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cashmere.exceptions import CashmereError

if TYPE_CHECKING:
    import pandas as pd

    from cashmere.metalearning.observations import SourceObservations
    from cashmere.run import FinishedRun
    from cashmere.run.progress import Progress

app = typer.Typer(
    name="cashmere",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: markup swallows brackets, and panels leave it 20 columns of a terminal's 80
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_INTERRUPTED = 130


class TaskChoice(StrEnum):
    """Values of ``--task``."""

    AUTO = "auto"
    BINARY = "binary"
    MULTICLASS = "multiclass"
    REGRESSION = "regression"


RunFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The run directory.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]


def _print_version(asked: bool) -> None:
    if asked:
        from cashmere import __version__

        print(f"cashmere {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the set of models that predict best together, for a table and a budget."""


@app.command()
def fit(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="CSV (.gz too), Parquet, ARFF, or openml:ID.")],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="Name of the column to predict.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="New directory for the run.")],
    task: Annotated[
        TaskChoice, typer.Option(metavar="KIND", help="Kind of target: auto, binary, multiclass or regression.")
    ] = TaskChoice.AUTO,
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Metric, such as accuracy, roc_auc or rmse (default: log_loss or rmse)."),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="BUDGET", help="Time (10m), number of trials (250trials), or both (10m,250trials).")
    ] = "10m",
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Search strategy, with options after a colon (divbo:tau=0.1); 'cashmere strategies' lists them.",
        ),
    ] = "bo",
    space: Annotated[
        str, typer.Option(metavar="NAME", help="Search space: default, volcano, sklearn12, imbalance or autosklearn6.")
    ] = "default",
    resampling: Annotated[
        str, typer.Option(metavar="NAME", help="Validation: auto, holdout, or a number of folds such as 5fold.")
    ] = "auto",
    ensemble: Annotated[
        str, typer.Option(metavar="NAME", help="Ensemble method: selection, bagging, stacking or best.")
    ] = "selection",
    decision_threshold: Annotated[
        str,
        typer.Option(
            metavar="NAME|NUMBER",
            help="How to decide between classes: auto, tune, none or, for two classes, the threshold of the second.",
        ),
    ] = "auto",
    fold_racing: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="When to stop trials early: none, or incumbent (once their folds show that they cannot win).",
        ),
    ] = "none",
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Trials to run at the same time (default: the cores, at most 4)."),
    ] = None,
    lookahead: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="How many trials may be decided ahead of known results (default: 8, or twice the workers).",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed for all randomness: same seed, same run.")] = 0,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory limit per trial, such as 4GiB.")] = None,
    trial_timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time limit per trial, such as 60s.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Search for the best set of models. Everything is kept in a run directory."""
    with _typed_errors():
        from cashmere.data.frames import to_frame
        from cashmere.data.reading import read_table
        from cashmere.exceptions import DataError, UnknownNameError
        from cashmere.run import RunSettings, fit_run

        settings = RunSettings.from_options(
            target=target,
            task=task.value,
            metric=metric,
            budget=budget,
            strategy=strategy,
            space=space,
            resampling=resampling,
            ensemble=ensemble,
            decision_threshold=_number_or_name(decision_threshold),
            fold_racing=fold_racing,
            workers=workers,
            lookahead=lookahead,
            seed=seed,
            memory=memory,
            trial_timeout=trial_timeout,
        )
        frame = read_table(table)
        if target not in frame.columns:
            raise UnknownNameError("column", target, map(str, frame.columns))
        y = frame.pop(target)
        if frame.shape[1] == 0:
            raise DataError(f"{table}: there is no column beside the target {target!r}. Expected at least one feature.")
        finished = fit_run(
            out, to_frame(frame), y, settings, already_spent=_seconds_since_start(), progress=_progress(quiet)
        )
        _tell(finished, quiet=quiet)


@app.command()
def resume(
    folder: RunFolder,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="BUDGET", help="Additional budget, such as 5m or 100trials (default: the rest of the budget)."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Continue an interrupted run, or extend a finished one."""
    with _typed_errors():
        from cashmere.records.budget import Budget
        from cashmere.run import StopReason, continue_run

        more = None if budget is None else Budget.parse(budget)
        finished = continue_run(folder, more, already_spent=_seconds_since_start(), progress=_progress(quiet))
        _tell(finished, quiet=quiet)
        if finished.n_new == 0 and finished.stop_reason is StopReason.TRIALS:
            _say(quiet, "The budget was already spent; add more with --budget. Model and report were made again.")
        elif finished.n_new == 0:
            _say(quiet, "No further trial finished in this time; add more with --budget.")


@app.command()
def predict(
    folder: RunFolder,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Rows to predict.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="A .csv, .csv.gz or .parquet file.")],
    proba: Annotated[bool, typer.Option("--proba", help="Add a column proba_<class> for each class.")] = False,
    quiet: Quiet = False,
) -> None:
    """Predict the rows of a table with the ensemble of a run."""
    with _typed_errors():
        import pandas as pd

        from cashmere.data.reading import read_table
        from cashmere.exceptions import IncompatibleParametersError
        from cashmere.model.predictor import Predictor

        writer = _table_writer(output)
        predictor = Predictor.load(folder)
        if proba and not predictor.target.task_type.is_classification:
            raise IncompatibleParametersError(
                "--proba cannot be used with a regression model, which predicts no probabilities. Leave it out.",
                {"proba": proba, "task": predictor.target.task_type},
            )
        frame = read_table(table)
        if proba:
            probabilities = predictor.predict_proba(frame)
            columns = {"prediction": predictor.decide(probabilities)}
            columns |= {f"proba_{label}": probabilities[:, k] for k, label in enumerate(predictor.classes_)}
        else:
            columns = {"prediction": predictor.predict(frame)}
        writer(pd.DataFrame(columns))
        for column, count in predictor.unseen_.items():
            _say(quiet, f"Note: {count} value(s) of column {column!r} were not seen in training; treated as missing.")
        _say(quiet, f"{len(frame)} predictions written to {output}")


@app.command()
def leaderboard(
    folder: RunFolder,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Rows to show.")] = 20,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write all rows to this file, with hyper-parameters as JSON."
        ),
    ] = None,
) -> None:
    """Show the trials of a run, best first, with ensemble weights."""
    with _typed_errors():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        from cashmere.storage.trial_tables import run_leaderboard

        rows, facts = run_leaderboard(folder)
        if output is not None:
            writer = _table_writer(output)
            writer(rows.assign(configuration=[json.dumps(values) for values in rows["configuration"]]))
            return
        rows = rows.drop(columns=["status", "configuration", *(["loss"] if rows["loss"].equals(rows["score"]) else [])])
        grid = Table(title=facts.title, caption=facts.caption, box=None, pad_edge=False)
        for name in rows.columns:
            if name in ("algorithm", "origin"):
                grid.add_column(name, overflow="fold", min_width=len("warm start"))
            else:
                grid.add_column(name.replace("fit_seconds", "fit (s)"), justify="right", no_wrap=True)
        for row in rows.head(top).itertuples(index=False):
            grid.add_row(*(Text(f"{v:.5g}" if isinstance(v, float) else str(v)) for v in row))
        Console().print(grid)


@app.command()
def contest(
    folder: RunFolder,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write all rounds to this file; .json writes them as stored."
        ),
    ] = None,
) -> None:
    """Show the contest among sub-spaces. Lists its rounds and tests, and when and why each sub-space left."""
    with _typed_errors():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        from cashmere.analysis import read_contest, summarise_contest

        recorded = read_contest(folder)
        if output is not None:
            if output.name.lower().endswith(".json"):
                output.write_text(json.dumps(recorded.to_json(), indent=1))
            else:
                _table_writer(output)(recorded.frame())
            return
        found = summarise_contest(recorded)
        standing = Table("sub-space", "trials", "best", "left in round", title="Sub-spaces")
        for each in found["subspaces"]:
            best = "-" if each["best_score"] is None else f"{each['best_score']:.5g}"
            left = "" if each["round"] is None else str(each["round"])
            standing.add_row(*map(Text, (each["name"], str(each["trials"]), best, left)))
        rounds = Table("round", "alive", "trials each", "test", "dropped", title="Rounds", show_lines=True)
        for stage in found["stages"]:
            trials = "-".join(str(n) for n in sorted(set(stage["trials"])))
            dropped = "\n".join(f"{one['name']}: {one['reason']}" for one in stage["dropped"])
            rounds.add_row(*map(Text, (stage["label"], str(stage["alive"]), trials, stage["test"] or "", dropped)))
        console = Console()
        console.print(Text(found["sentence"]))
        console.print(standing, rounds)


@app.command()
def report(folder: RunFolder) -> None:
    """Write the HTML report of a run again."""
    with _typed_errors():
        from cashmere.report import write_report

        print(write_report(folder))


@app.command()
def strategies() -> None:
    """List the strategies, with their kinds and references."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from cashmere.strategies import cite, describe, status, strategy_names

    console = Console(highlight=False)
    for name in strategy_names():  # paragraphs and no table, which would be narrow columns in most terminals
        console.print(Text.assemble((name, "bold"), f" ({status(name)})"))
        for text in (describe(name).replace("`", ""), " ".join(cite(name).split())):
            console.print(Padding(Text(text), (0, 0, 0, 4), expand=False))
    print("\nEach is the method of a paper, a variant of one (ablation), a baseline, or ours.")
    print("Add options after the name (--strategy divbo:tau=0.1); docs/strategies.md lists them.")
    print("To print the reference of one strategy: cashmere cite NAME.")


@app.command(name="cite")
def print_reference(
    strategy: Annotated[str, typer.Argument(metavar="NAME", help="A strategy that 'cashmere strategies' lists.")],
) -> None:
    """Print the reference to cite when you use a strategy."""
    with _typed_errors():
        from cashmere.strategies import cite

        print(cite(strategy))


@app.command()
def pretrain(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the artefact; FOLDER/work keeps the state of the work.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of tables (CSV, Parquet, ARFF), optionally with a manifest.json."),
    ] = None,
    runs: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Finished run to learn from; repeat for more runs.")
    ] = None,
    space: Annotated[
        str, typer.Option(metavar="NAME", help="Search space: default, volcano, sklearn12, imbalance or autosklearn6.")
    ] = "sklearn12",
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="Use only tables of this group of the manifest.")
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
        typer.Option(min=1, metavar="N", help="Evaluations to run at the same time (default: the cores, at most 4)."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="observations.npz to add to, or none (default: that of the package if only --runs is given).",
        ),
    ] = None,
    collect_only: Annotated[
        bool, typer.Option("--collect-only", help="Evaluate the tables, but do not make the artefact.")
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Seed for all randomness: same seed, same configurations, rows and losses."
        ),
    ] = 0,
    quiet: Quiet = False,
) -> None:
    """Learn from other tables or finished runs for later searches.

    Evaluates random configurations on every table, then makes the artefact that the strategies latent, pretrain_bo,
    as_ml and ahs_ml use: --strategy latent:artefact=FOLDER. If stopped, the same command continues. Nothing leaves this
    machine.
    """
    with _typed_errors():
        from cashmere.base.cores import available_cores
        from cashmere.base.interrupts import stop_on_interrupt
        from cashmere.exceptions import DataError, MissingParameterError
        from cashmere.pretraining.collection import collect, describe_tables, find_tables, read_runs
        from cashmere.pretraining.embeddings import import_torch
        from cashmere.records.budget import parse_seconds

        if data is None and not runs:
            raise MissingParameterError(
                "--data",
                "There is nothing to learn from. Give a folder of tables with --data, or finished runs with --runs.",
            )
        limit_seconds = parse_seconds(time_limit, "--time-limit")
        n_workers = workers or min(4, available_cores())
        # Fail before the long work, not after it.
        if not collect_only:
            import_torch()
        parts = [_base_observations(base, space, wanted=data is None)]
        parts += [read_runs(runs, space=space) if runs else None]
        n_missing = 0
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
                    n_workers=n_workers,
                    seed=seed,
                    progress=lambda text: _say(quiet, text),
                    stop=interrupted.is_set,
                )
                n_missing = len(tables) - len(collected.tables)
                if not interrupted.is_set():
                    collected = describe_tables(
                        collected, tables, work=out / "work", progress=lambda text: _say(quiet, text)
                    )
                parts.insert(1, collected)
        observations = functools.reduce(lambda first, second: first.merged(second), filter(None, parts))
        if not observations.tables and not interrupted.is_set():
            raise DataError(
                f"{data}: none of the {n_missing} tables can be used. Expected tables with classes to predict."
            )
        observations.save(out / "observations.npz")
        _say(quiet, f"{len(observations.tables)} tables in {out / 'observations.npz'}")
        if interrupted.is_set() and n_missing:
            print(
                f"Interrupted; everything is kept, and {n_missing} tables are not complete. Run the same command to "
                "continue.",
                file=sys.stderr,
            )
            raise typer.Exit(_INTERRUPTED)
        if not collect_only:
            _build(observations, out, n_workers=n_workers, seed=seed, quiet=quiet)


def _base_observations(base: str | None, space: str, *, wanted: bool) -> SourceObservations | None:
    """Return the observations to add new ones to, if there are any."""
    from cashmere.metalearning.artefact import SHIPPED
    from cashmere.metalearning.observations import SourceObservations

    if base == "none":
        return None
    shipped = SHIPPED / space / "observations.npz"
    path = Path(base) if base is not None else shipped if wanted and shipped.exists() else None
    return None if path is None else SourceObservations.load(path)


def _build(observations: SourceObservations, out: Path, *, n_workers: int, seed: int, quiet: bool) -> None:
    from cashmere.metalearning.artefact import SHIPPED
    from cashmere.pretraining.building import SEARCHES, BuildSettings, build_artefact
    from cashmere.pretraining.collection.configurations import REFERENCE
    from cashmere.space.named.registry import make_space

    space = make_space(observations.space, REFERENCE).configuration_space
    shipped = SHIPPED / observations.space / SEARCHES
    if shipped.exists() and not (out / "work" / SEARCHES).exists():  # those among the package's own tables
        (out / "work").mkdir(parents=True, exist_ok=True)
        (out / "work" / SEARCHES).write_bytes(shipped.read_bytes())
    try:
        artefact = build_artefact(
            observations,
            space,
            work=out / "work",
            settings=BuildSettings(seed=seed),
            n_workers=n_workers,
            report=lambda text: _say(quiet, text),
        )
    except KeyboardInterrupt:
        print("Interrupted; everything is kept. Run the same command to continue.", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED) from None
    artefact.save(out)
    _say(quiet, f"Artefact of {len(artefact.sources)} tables in {out}. Use it: --strategy latent:artefact={out}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="New directory for the run.")] = Path("demo-run"),
    budget: Annotated[
        str, typer.Option(metavar="BUDGET", help="Time (10m), number of trials (250trials), or both (10m,250trials).")
    ] = "40s",
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Trials to run at the same time (default: the cores, at most 4)."),
    ] = None,
) -> None:
    """Run a demonstration. Fits an ensemble to the table credit-g and scores it on unseen rows."""
    with _typed_errors():
        from sklearn.model_selection import train_test_split

        from cashmere.data.demo import DEMO_TARGET, demo_table
        from cashmere.data.frames import to_frame
        from cashmere.model.predictor import Predictor
        from cashmere.run import RunSettings, fit_run

        settings = RunSettings.from_options(budget=budget, workers=workers, target=DEMO_TARGET)
        frame = demo_table()
        train, test = train_test_split(frame, test_size=0.25, random_state=0, stratify=frame[DEMO_TARGET])
        print(f"credit-g: {len(train)} rows for training, {len(test)} for testing, {frame.shape[1] - 1} columns")
        X = to_frame(train.drop(columns=DEMO_TARGET))
        y, progress = train[DEMO_TARGET], _progress(quiet=False)
        finished = fit_run(out, X, y, settings, already_spent=_seconds_since_start(), progress=progress)
        _tell(finished, quiet=False)
        model = Predictor.load(out)
        truth, features = test[DEMO_TARGET].to_numpy(), test.drop(columns=DEMO_TARGET)
        from sklearn.metrics import roc_auc_score

        auc = roc_auc_score(truth == model.classes_[1], model.predict_proba(features)[:, 1])
        accuracy = float((model.predict(features) == truth).mean())
        print(f"On the {len(test)} unseen rows: ROC AUC {auc:.4f}, accuracy {accuracy:.4f}")
        print(f"Next: open {out / 'report.html'}, or run `cashmere leaderboard {out}`")


# ---------------------------------------------------------------- the shared part of fit, resume and demo


def _tell(finished: FinishedRun, *, quiet: bool) -> None:
    folder = finished.folder
    if not quiet:
        print(finished.summary())
        print(f"Model: {folder / 'model'}   Report: {folder / 'report.html'}")
    if finished.interrupted:
        print(f"Interrupted; the model is usable. Continue with: cashmere resume {folder}", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED)


def _progress(quiet: bool) -> Callable[[], Progress]:
    from cashmere.run.progress import Bar, PlainLines, Silence

    if quiet:
        return Silence
    return Bar if sys.stdout.isatty() else PlainLines


def _seconds_since_start() -> float:
    """Return the age of this process: its start counts towards the budget, too."""
    import psutil

    return max(0.0, time.time() - psutil.Process().create_time())


def _number_or_name(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _say(quiet: bool, text: str) -> None:
    if not quiet:
        print(text, flush=True)


def _table_writer(path: Path) -> Callable[[pd.DataFrame], Any]:
    from cashmere.exceptions import InvalidParameterError

    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return lambda frame: frame.to_csv(path, index=False)
    if name.endswith((".parquet", ".pq")):
        return lambda frame: frame.to_parquet(path, index=False)
    raise InvalidParameterError("--output", str(path), "a file name that ends in .csv, .csv.gz or .parquet")


@contextmanager
def _typed_errors() -> Iterator[None]:
    """Show our own errors as one clear message instead of a traceback."""
    try:
        yield
    except CashmereError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print("Interrupted; there was nothing to keep yet.", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED) from None


def main() -> None:
    """Entry point of the command ``cashmere``."""
    app()


if __name__ == "__main__":
    main()
