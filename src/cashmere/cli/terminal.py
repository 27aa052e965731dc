"""What commands share: arguments, output, and errors as messages.

Commands print through `say`, `say_error` or `plain`, which strip control characters from names and values of tables,
files and exceptions; none of these is read as markup.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cashmere.base.files import reason
from cashmere.base.interrupts import keep_interrupt, terminate_as_interrupt
from cashmere.base.text import clean_text, counted
from cashmere.exceptions import (
    CashmereError,
    ClusterError,
    ClusterVersionError,
    ClusterWarning,
    ColumnKindWarning,
    DeployableWarning,
    InvalidParameterError,
    LatencyWarning,
    LeftOutWarning,
    LookaheadError,
    RowStructureWarning,
    RunLockedError,
    SystemRefusalError,
    TargetWarning,
    UnknownValuesWarning,
    VersionWarning,
)

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from cashmere.model.predictor import Predictor

INTERRUPTED = 130
"""Exit status after Ctrl+C or SIGTERM."""

TRY_AGAIN = 75
"""Exit status if the same command may succeed later, as in the BSD file ``sysexits.h``."""

_OTHER_OPTIONS = {
    "by": "by",
    "coverage": "interval",
    "keep": "keep",
    "max_latency": "max_latency",
    "max_size": "max_size",
    "missing_target": "missing_target",
    "path": "onnx",
    "require": "require",
}
"""Options of the parameters that are not settings of a run."""

_WIDEST = 1000  # more characters than any table has in a line
_LINE_LIMIT = 4_000
_MESSAGE_LIMIT = 20_000

RunFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The run directory.")]
RunPlace = Annotated[str, typer.Argument(metavar="DIR|URL", help="The run directory, also at a URL such as s3://....")]
SpaceName = Annotated[
    str,
    typer.Option(metavar="NAME", help="Search space: default, classic, volcano, sklearn12, imbalance, autosklearn6."),
]
"""The names are written out, because importing the spaces takes ten times as long as showing help."""

TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="CSV (.gz too), Parquet, ARFF, book.xlsx:SHEET, or openml:ID.")
]


class TaskChoice(StrEnum):
    """Values of ``--task``."""

    AUTO = "auto"
    BINARY = "binary"
    MULTICLASS = "multiclass"
    REGRESSION = "regression"


Gap = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="With --time: how long a row takes to be known, such as 28d or a number."),
]

TaskKind = Annotated[
    TaskChoice, typer.Option(metavar="KIND", help="Type of task: auto, binary, multiclass or regression.")
]

Ignored = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column to leave out, or several with commas; also several times."),
]

Categorical = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of categories, such as zip codes, though it holds numbers, or several with commas.",
    ),
]

DropMissingTarget = Annotated[bool, typer.Option("--drop-missing-target", help="Leave out rows that have no target.")]

MissingTarget = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE",
        help="Value of the target that stands for none, such as unknown: leave out its rows; repeatable.",
    ),
]

SampleWeight = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of row weights, at least 0; not used as a feature.")
]

Included = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Search only these algorithms, such as lightgbm,ridge.")
]

Excluded = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Leave out these algorithms, such as catboost,mlp.")
]

Memory = Annotated[str | None, typer.Option(metavar="SIZE", help="Memory limit per trial, such as 4GiB.")]

TrialTimeout = Annotated[str | None, typer.Option(metavar="TIME", help="Time limit per trial, such as 60s.")]

Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Number of parallel trials (default: number of cores, at most 4)."),
]

Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Compute on a Dask or Ray cluster: tcp://host:8786 or ray://host:10001.",
    ),
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]


def say(quiet: bool, text: str) -> None:
    """Print one cleaned line, unless quiet."""
    if not quiet:
        print(clean_text(text, _LINE_LIMIT), flush=True)


def say_error(text: str) -> None:
    """Print a cleaned message to standard error."""
    print(clean_text(text, _MESSAGE_LIMIT, multiline=True), file=sys.stderr, flush=True)


def number_or_name(text: str) -> str | float:
    """Return the value of an option that takes a number or a name."""
    try:
        return float(text)
    except ValueError:
        return text


def plain(value: object) -> Text:
    """Return a value as a cell of a printed table: cleaned, and not read as markup."""
    from rich.text import Text

    return Text(clean_text(f"{value:.5g}" if isinstance(value, float) else value, _LINE_LIMIT, multiline=True))


def tell_of_model(predictor: Predictor, *, quiet: bool) -> None:
    """Say if the run of a model has not finished, and which values of the last table the model did not know."""
    if predictor.information.get("finished") is False:
        trials = counted(predictor.information.get("trials", 0), "trial")
        say(quiet, f"Note: the run has not finished; this is its model after {trials}.")
    dates = {column.name for column in predictor.schema.columns if column.kind == "date"}
    for column, count in predictor.unseen_.items():
        why = "not read as dates" if column in dates else "not seen in training"
        say(quiet, f"Note: {counted(count, 'value')} of column {column!r} {why}, treated as missing.")


def decisions_line(decisions: Mapping[str, Any]) -> str:
    """Return a line about `TableScores.decisions`."""
    from cashmere.ensembles.operating_point import RATES

    names = ("true positives", "false positives", "true negatives", "false negatives")
    counts = ", ".join(f"{decisions[name.replace(' ', '_')]:,} {name}" for name in names)
    rates = [f"{name} {decisions[name]:.3g}" for name in RATES if decisions[name] is not None]
    place = f"{str(decisions['positive'])!r} from a probability of {decisions['threshold']:.3g}"
    return f"{place}: {counts}; {', '.join(rates)}"


def print_whole(grid: Table) -> None:
    """Print a table without cutting off digits, if need be wider than the terminal."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    options = console.options.update(max_width=_WIDEST)
    for column in grid.columns:
        if column.no_wrap:  # rich would cut it down to its longest word
            widths = [Measurement.get(console, options, cell).maximum for cell in (column.header, *column.cells)]
            column.min_width = max(widths)
    needed = Measurement.get(console, options, grid).minimum + 1  # for its edge
    Console(width=max(console.width, needed)).print(grid)


@contextmanager
def typed_errors(run: Path | None = None) -> Iterator[None]:
    """Show our own errors and those of the operating system as one clear message instead of a traceback.

    SIGTERM is answered like Ctrl+C.

    Parameters
    ----------
    run : Path, optional
        The run directory that Ctrl+C may leave unfinished.
    """
    try:
        with keep_interrupt(), terminate_as_interrupt(), _own_warnings_as_lines():
            yield
        sys.stdout.flush()  # here, where a full disk still gets a message
    except BrokenPipeError:  # the reader of the output has closed it; typer exits silently
        raise
    except (CashmereError, OSError, MemoryError) as error:
        typed = error if isinstance(error, CashmereError) else _refusal(error)
        say_error(f"{type(typed).__name__}: {_with_option(typed)}")
        may_pass = isinstance(error, RunLockedError | ClusterError) and not isinstance(error, ClusterVersionError)
        raise typer.Exit(TRY_AGAIN if may_pass else 2) from None
    except KeyboardInterrupt:
        if run is not None and (run / "run.json").exists():
            say_error(f"Interrupted; finished trials are kept. Continue with: cashmere resume {run}")
        else:
            say_error("Interrupted." if run is None else "Interrupted; there was nothing to keep yet.")
        raise typer.Exit(INTERRUPTED) from None


_OWN_WARNINGS = (
    ClusterWarning,
    ColumnKindWarning,
    DeployableWarning,
    LatencyWarning,
    LeftOutWarning,
    RowStructureWarning,
    TargetWarning,
    UnknownValuesWarning,
    VersionWarning,
)


@contextmanager
def _own_warnings_as_lines() -> Iterator[None]:
    """Show warnings about tables and files without the line of code that raised them."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_line(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, _OWN_WARNINGS):
                say_error(f"Warning: {message}")
            else:
                show(message, category, *place, **more)

        warnings.showwarning = show_line
        yield


def _refusal(error: OSError | MemoryError) -> SystemRefusalError:
    """Wrap an error of the operating system that no caller with more context has handled."""
    if isinstance(error, MemoryError):
        return SystemRefusalError(
            "There is not enough memory. Close other programs, use fewer workers, or give fewer rows or columns."
        )
    what = error.filename or "The output of this command"
    return SystemRefusalError(
        f"{what} cannot be opened, read or written ({reason(error)}). Check that it is there, that you may use it, and "
        "that its disk has room; then try again."
    )


def _with_option(error: CashmereError) -> str:
    """Return the text of an error, with a setting at its beginning replaced by its command-line option."""
    from cashmere.run.settings import inputs

    name, _, rest = str(error).partition(" ")
    if not isinstance(error, InvalidParameterError | LookaheadError):
        return str(error)
    option = given.option if (given := inputs().get(name)) is not None else _OTHER_OPTIONS.get(name)
    return str(error) if option is None else f"--{option.replace('_', '-')} {rest}"
