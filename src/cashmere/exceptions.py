"""Every error cashmere raises on purpose.

All derive from `CashmereError`. Each text says what was expected, what was found and what to try next; the
offending object is an attribute, so that a program can react without reading the text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path


class CashmereError(Exception):
    """Base class of all errors of this package."""


class DataError(CashmereError, ValueError):
    """The table or the target cannot be used as given.

    Parameters
    ----------
    message : str
        What was expected, what was found, what to try.
    column : str, optional
        The column at fault.
    """

    def __init__(self, message: str, *, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


class SchemaError(DataError):
    """The table given to `predict` does not fit the schema learned in `fit`."""


class ColumnTypeError(DataError, TypeError):
    """A column holds objects that are neither numbers, text, dates nor booleans."""


class UnknownNameError(CashmereError, ValueError):
    """A metric, strategy, space or other named part does not exist.

    Parameters
    ----------
    kind : str
        What was looked up, for example ``"metric"``.
    name : str
        The name that was not found.
    known : iterable of str
        The names that exist.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        nearest = difflib.get_close_matches(str(name).lower(), self.known, n=3, cutoff=0.4)
        hint = f"Did you mean {', '.join(map(repr, nearest))}? " if nearest else ""
        super().__init__(f"Unknown {kind} {name!r}. {hint}Known: {', '.join(self.known) or 'none'}.")


class InvalidParameterError(CashmereError, ValueError):
    """A setting has a value that cannot be used."""

    def __init__(self, parameter: str, value: object, expected: str) -> None:
        self.parameter, self.value = parameter, value
        super().__init__(f"{parameter} must be {expected}; got {value!r}.")


class MetricError(CashmereError, ValueError):
    """The metric does not fit the task or the learner."""


class MissingPredictionsError(CashmereError, ValueError):
    """A strategy that searches for an ensemble was given a history of losses only.

    Parameters
    ----------
    metric, targets : bool
        Whether the history knows the metric, and the targets of the validation rows.
    n_missing : int
        Successful observations without predictions.
    """

    def __init__(self, *, metric: bool, targets: bool, n_missing: int) -> None:
        self.n_missing = n_missing
        missing = [name for name, there in (("metric", metric), ("targets", targets)) if not there]
        found = [f"no {' and no '.join(missing)}"] if missing else []
        found += [f"{n_missing} successful trials without predictions"] if n_missing else []
        super().__init__(
            "A strategy that searches for an ensemble needs the validation predictions of every trial, their targets "
            f"and the metric; found {' and '.join(found)}. Return Outcome(..., predictions=...) from the objective and "
            'pass Study(..., metric=..., targets=...), or take strategy "bo" or "random", which look at losses only.'
        )


class MissingDependencyError(CashmereError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f"{purpose} needs the package {package!r}. Install it with: pip install 'cashmere-automl[{extra}]'"
        )


class RunDirectoryError(CashmereError):
    """A run directory is missing, foreign, incomplete or not empty.

    Parameters
    ----------
    path : path
        The directory.
    message : str
        What is wrong and what to try; the path is put in front.
    """

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class RunLockedError(RunDirectoryError):
    """Another process works in this run directory."""


class CorruptStoreError(RunDirectoryError):
    """A file of the run directory is damaged."""


class ModelFileError(CashmereError):
    """A model file is missing, damaged, tampered with or holds types that are not trusted."""

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class ArtefactError(CashmereError):
    """An artefact of meta-learning is missing, damaged, incomplete or of another space."""

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class NoSuccessfulTrialError(CashmereError):
    """Every real trial failed; `failures` lists number, algorithm, status and cause of each.

    Parameters
    ----------
    failures : sequence of (int, str, str, str)
        Trial number, algorithm, status and first line of the cause.
    advice : str
        What to try next.
    """

    def __init__(self, failures: Sequence[tuple[int, str, str, str]], advice: str) -> None:
        self.failures = list(failures)
        lines = [f"  {n:>4}  {algorithm:<24} {status:<8} {cause}" for n, algorithm, status, cause in failures[:20]]
        more = [f"  ... and {len(failures) - 20} more"] if len(failures) > 20 else []
        table = "\n".join(["  trial algorithm                status   cause", *lines, *more])
        super().__init__(f"None of {len(failures)} trials succeeded.\n{table}\n{advice}")


class InconsistentResumeError(RunDirectoryError):
    """A stored trial is not the one the strategy decides now: settings, code or versions have changed."""
