"""All errors that cashmere raises deliberately.

All derive from `CashmereError`. Each message says what was expected, what was found and what to try next; the offending
object is an attribute, so that a program can react without parsing the message.

Which one to raise:

====================================================  ========================================
What is wrong                                         Error
====================================================  ========================================
one parameter has a value that cannot be used         `InvalidParameterError`
a name is not in the list of known ones               `UnknownNameError`
a parameter is needed here and was not given          `MissingParameterError`
two parameters contradict each other                  `IncompatibleParametersError`
an array has the wrong shape or unusable content      `ShapeError`, `ArrayError`
a table, a column or the target cannot be used        `DataError` and those derived from it
a search space cannot be built or restricted          `SpaceError`
recorded observations do not fit together             `ObservationsError`
a method was called too early or too often            `UsageError` and those derived from it
a strategy broke its contract                         `StrategyError`
a file or folder is missing, damaged or foreign       `RunDirectoryError`, `ModelFileError`, ...
a file for the user cannot be written                 `OutputError`
the time ends before a table is prepared              `BudgetTooShortError`
the system lacks memory, files or processes           `SystemRefusalError`
a cluster cannot be reached, used or is lost          `ClusterError`
====================================================  ========================================
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_PREPARATIONS_IN_A_BUDGET = 4
"""How often preparing a table should fit into a suggested budget. Preparation is only given up after the whole one."""


class CashmereError(Exception):
    """Base class of all errors of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text and the attributes, so that a worker process can return an error."""
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[CashmereError], arguments: tuple[object, ...], attributes: dict[str, Any]) -> CashmereError:
    error = kind.__new__(kind, *arguments)  # skip __init__, which expects the parts of the text
    error.__dict__.update(attributes)
    return error


class VersionWarning(UserWarning):
    """Fitted models were saved with library versions other than those installed."""


class RowStructureWarning(UserWarning):
    """Rows seem to belong together or to be in order, but ``groups`` and ``time`` do not say so, or not as meant."""


class ColumnKindWarning(UserWarning):
    """Columns of text look like numbers or dates, but are not read as such, or only in part."""


class TargetWarning(UserWarning):
    """The target, or what tells it, is among the features; or classes look like numbers, dates, or missing ones."""


class UnknownValuesWarning(UserWarning):
    """A column of a later table has no value, only unknown ones, or numbers that are unlike those in training."""


class RowOrderWarning(UserWarning):
    """The target, weights, groups or times have the row labels of the table, but in another order."""


class DeployableWarning(UserWarning):
    """A search leaves out algorithms whose models do not convert to the requested format."""


class LeftOutWarning(UserWarning):
    """A search leaves out algorithms that cannot do what is asked, or columns; or sheets of a workbook are not read."""


class LatencyWarning(UserWarning):
    """The model takes more time to predict a row than ``max_latency`` allows, or the limit could not be applied."""


class ClusterWarning(UserWarning):
    """A search has ended early because its cluster was lost; the model is made from the finished trials."""


class UsageError(CashmereError, ValueError):
    """A method was called in the wrong order, or on an object in the wrong state.

    Parameters
    ----------
    message : str
        What was called, why it cannot be done now, and what to call instead.
    instance : object, optional
        The object whose method was called.
    """

    def __init__(self, message: str, *, instance: object = None) -> None:
        super().__init__(message)
        self.instance = instance


class NotFittedError(UsageError, AttributeError):
    """A method was called that needs a fitted object.

    Like scikit-learn's error of the same name, it is both a ValueError and an AttributeError, so that code written for
    one also catches the other.

    Parameters
    ----------
    instance : object
        The object that has not been fitted.
    method : str
        What was called, for example ``"predict"``.
    """

    def __init__(self, instance: object, method: str) -> None:
        super().__init__(
            f"This {type(instance).__name__} is not fitted yet. Call fit before {method}.", instance=instance
        )
        self.method = method


class LookaheadError(UsageError):
    """More trials were requested than a study may decide ahead of known results.

    Parameters
    ----------
    message : str
        What was requested, what the limit is, and what to try.
    lookahead : int
        Number of trials that may be open.
    n_open : int
        Number of trials that are open, or would be.
    """

    def __init__(self, message: str, *, lookahead: int, n_open: int, instance: object = None) -> None:
        super().__init__(message, instance=instance)
        self.lookahead, self.n_open = lookahead, n_open


class StrategyError(CashmereError, ValueError):
    """A strategy broke its contract.

    Parameters
    ----------
    message : str
        What the strategy did, and what it must do.
    strategy : object
        The strategy.
    """

    def __init__(self, message: str, *, strategy: object) -> None:
        super().__init__(message)
        self.strategy = strategy


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


class PredictionError(CashmereError, ValueError):
    """A model predicted NaN or an infinite value.

    Parameters
    ----------
    message : str
        Which rows and members are concerned, and what to try.
    rows : sequence of int
        Positions of the rows, from 0.
    """

    def __init__(self, message: str, *, rows: Sequence[int]) -> None:
        super().__init__(message)
        self.rows = list(rows)


class SchemaError(DataError):
    """The table passed to `predict` does not match the schema learned in `fit`."""


class ColumnTypeError(DataError, TypeError):
    """A column contains objects that are not numbers, text, dates or booleans."""


_SHOWN_NAMES = 60
_SUGGESTIONS = 3
_TELLING_LETTERS = 3
"""Fewer letters are the beginning of too many names."""

_SHOWN_LETTERS = 80
_SHOWN_VALUE = 300


def _shown(name: str) -> str:
    """Return a name as an item of a list: quoted if it could be misread, shortened if it is long."""
    short = name if len(name) <= _SHOWN_LETTERS else f"{name[: _SHOWN_LETTERS - 1]}…"
    return short if short.isprintable() and short.strip() == short != "" else repr(short)


class UnknownNameError(CashmereError, ValueError):
    """No metric, strategy, space or other part has this name.

    Parameters
    ----------
    kind : str
        What was looked up, for example ``"metric"``.
    name : str
        The name that was not found.
    known : iterable of str
        The names that exist.
    advice : str, optional
        What to try instead, in one or more sentences.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], advice: str = "") -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        meant, short = str(name).lower(), [known for known in self.known if len(known) <= _SHOWN_LETTERS]
        begun = [known for known in short if len(meant) >= _TELLING_LETTERS and known.lower().startswith(meant)]
        nearest = list(dict.fromkeys(begun + difflib.get_close_matches(meant, short, n=_SUGGESTIONS)))[:_SUGGESTIONS]
        hint = f"Did you mean {', '.join(map(repr, nearest))}? " if nearest else ""
        shown = [_shown(known) for known in self.known[:_SHOWN_NAMES]]
        shown += [f"and {len(self.known) - _SHOWN_NAMES} more"] if len(self.known) > _SHOWN_NAMES else []
        text = advice or f"{hint}Known: {', '.join(shown) or 'none'}."
        super().__init__(f"Unknown {kind} {name!r}. {text}")


class InvalidParameterError(CashmereError, ValueError):
    """A parameter has a value that cannot be used.

    For values only. The message is "`parameter` must be `expected`; got `value`."; if this is not an English sentence,
    another error of this module is more suitable.

    Parameters
    ----------
    parameter : str
        Its name as the user writes it.
    value : object
        What was given.
    expected : str
        Values that can be used; follows "must be" in the message, for example ``"at least 1"``.
    advice : str, optional
        What to try, in one or more sentences.
    """

    def __init__(self, parameter: str, value: object, expected: str, advice: str = "") -> None:
        self.parameter, self.value = parameter, value
        shown = repr(value)
        shown = shown if len(shown) <= _SHOWN_VALUE else f"{shown[:_SHOWN_VALUE]}…"
        super().__init__(f"{parameter} must be {expected}; got {shown}." + (f" {advice}" if advice else ""))


class MissingParameterError(CashmereError, ValueError):
    """A parameter is needed here and was not given.

    Parameters
    ----------
    parameter : str
        Its name as the user writes it.
    message : str
        What needs it, and how to pass it.
    """

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class IncompatibleParametersError(CashmereError, ValueError):
    """Several parameters contradict each other, or do not fit this table.

    Parameters
    ----------
    message : str
        Which parameters contradict each other, and which of them to change.
    parameters : mapping of str to object
        The parameters and their values.
    """

    def __init__(self, message: str, parameters: Mapping[str, object]) -> None:
        super().__init__(message)
        self.parameters = dict(parameters)


class ArrayError(CashmereError, ValueError):
    """An array cannot be used because of its length, shape or content.

    Parameters
    ----------
    name : str
        Name of the parameter that holds the array.
    message : str
        What was expected and what was found.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class ShapeError(ArrayError):
    """An array has the wrong shape.

    Parameters
    ----------
    name : str
        Name of the parameter that holds the array.
    shape : tuple of int
        The shape it has.
    expected : str or tuple of int
        The expected shape, for example ``"(n_rows, n_classes)"``.
    """

    def __init__(self, name: str, shape: tuple[int, ...], expected: str | tuple[int, ...]) -> None:
        super().__init__(name, f"The shape of {name} must be {expected}; got {shape}.")
        self.shape, self.expected = shape, expected


class SpaceError(CashmereError, ValueError):
    """A search space cannot be built, restricted, divided or encoded as asked.

    Parameters
    ----------
    message : str
        Which part of the space is at fault, and what to try.
    item : object, optional
        That part: an algorithm, a step, a hyper-parameter, a condition, a clause or a configuration.
    """

    def __init__(self, message: str, *, item: object = None) -> None:
        super().__init__(message)
        self.item = item


class ObservationsError(CashmereError, ValueError):
    """Recorded observations of several tables contradict each other, or are too few.

    Parameters
    ----------
    message : str
        Which table or which configurations, and what to try.
    table : str, optional
        Name of the table at fault.
    """

    def __init__(self, message: str, *, table: str | None = None) -> None:
        super().__init__(message)
        self.table = table


class MetricError(CashmereError, ValueError):
    """The metric does not fit the task or the learner."""


class MissingPredictionsError(CashmereError, ValueError):
    """A strategy that searches for an ensemble received a history that contains only losses.

    Parameters
    ----------
    metric, targets : bool
        Whether the history has the metric, and the targets of the validation rows.
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
            'pass Study(..., metric=..., targets=...), or use the strategy "bo" or "random", which need only losses.'
        )


class MissingDependencyError(CashmereError, ImportError):
    """A package is required but not installed.

    Parameters
    ----------
    package : str
        Its name.
    purpose : str
        What needs it.
    extra : str, optional
        The extra that installs it; None for one that only an installation for predictions lacks.
    """

    def __init__(self, package: str, purpose: str, extra: str | None) -> None:
        self.package, self.extra = package, extra
        if extra is None:
            advice = "Only installations for predictions lack it. Install the rest with: pip install cashmere-automl"
        else:
            advice = f"Install it with: pip install 'cashmere-automl[{extra}]'"
        super().__init__(f"{purpose} needs the package {package!r}. {advice}")


class RunDirectoryError(CashmereError):
    """A run directory is missing, incomplete, not empty, or not one of cashmere.

    Parameters
    ----------
    path : path
        The directory.
    message : str
        What is wrong and what to try; follows the path.
    """

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class RunLockedError(RunDirectoryError):
    """Another process is working in this run directory."""


class LeaseLostError(RunDirectoryError):
    """Another process has taken over this run directory, because this one had not responded for too long."""


class CorruptStoreError(RunDirectoryError):
    """A file of the run directory is damaged."""


class ModelFileError(CashmereError):
    """A model file is missing, damaged or tampered with, or contains types that are not trusted."""

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class MissingLibraryError(ModelFileError):
    """A model needs a library that is not installed.

    Parameters
    ----------
    path : path
        The file with what the library has fitted.
    library : str
        Name under which it is imported; of a shared library of the system, the name of its file.
    version : str, optional
        The one that has written the model, if known.
    advice : str, optional
        A sentence on how to install a shared library of the system.
    """

    def __init__(
        self, path: str | Path, library: str, version: str | None = None, *, advice: str | None = None
    ) -> None:
        self.library, self.version = library, version
        if advice is not None:
            super().__init__(path, f"needs the system library {library!r}, which is missing here. {advice}")
            return
        made_with = "" if version is None else f" (the model was made with {version})"
        super().__init__(
            path,
            f"needs the library {library!r}, which is not installed here{made_with}. Install it with pip; `cashmere "
            "requirements MODEL`, where the model was made, lists all that it needs.",
        )


class ConversionError(CashmereError, ValueError):
    """Parts of a model have no counterpart in another format.

    Parameters
    ----------
    reasons : mapping of str to str
        Reasons by the name of the part, such as ``"member 7 (knn)"``; they follow the name in the message.
    advice : str, optional
        What to try.
    """

    def __init__(self, reasons: Mapping[str, str], advice: str = "") -> None:
        self.reasons = dict(reasons)
        listed = "; ".join(f"{part} {why}" for part, why in self.reasons.items())
        super().__init__(f"The model cannot be converted: {listed}." + (f" {advice}" if advice else ""))


class CertificateError(CashmereError):
    """The predictions of a converted model differ from those of the original.

    Parameters
    ----------
    message : str
        How much the predictions differ, which members do, and what to try.
    certificate : object
        The comparison, see `cashmere.export.Certificate`.
    """

    def __init__(self, message: str, *, certificate: object) -> None:
        super().__init__(message)
        self.certificate = certificate


class SigningKeyError(CashmereError):
    """A key for signing models is missing, damaged, of the wrong kind or accessible to others, or cannot be written."""

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class ArtefactError(CashmereError):
    """An artefact of meta-learning is missing, damaged or incomplete, or belongs to another space."""

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class TrackingError(CashmereError):
    """MLflow rejects a run, or cannot be reached."""


class OutputError(CashmereError):
    """An output file cannot be written: its folder is missing or not writable, or its disk is full.

    Parameters
    ----------
    path : path
        The file.
    message : str
        What is wrong and what to try; follows the path.
    """

    def __init__(self, path: str | Path, message: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class SystemRefusalError(CashmereError):
    """The operating system refused a command a resource, such as memory, a file or a process."""


class ClusterError(CashmereError):
    """A cluster cannot be reached, cannot be used, or was lost while trials ran on it.

    Parameters
    ----------
    address : str
        Where it is.
    message : str
        What is wrong and what to try; follows the address.
    """

    def __init__(self, address: str, message: str) -> None:
        self.address = address
        super().__init__(f"The cluster at {address} {message}")


class ClusterVersionError(ClusterError):
    """Workers of a cluster lack packages, or have the wrong versions of them."""


class CallError(CashmereError, RuntimeError):
    """A function called on a worker returned no value: its process died, or its error could not be transferred."""


class BudgetTooShortError(CashmereError, ValueError):
    """The time budget ended before the table was prepared, so no search could begin.

    Parameters
    ----------
    seconds : float
        The budget.
    elapsed : float
        Seconds that had passed when the preparation was stopped.
    share_read : float
        Share of the table that had been read by then, in (0, 1].
    """

    def __init__(self, seconds: float, elapsed: float, *, share_read: float = 1.0) -> None:
        self.seconds, self.elapsed, self.share_read = seconds, elapsed, share_read
        self.enough_seconds = 60.0 * math.ceil(_PREPARATIONS_IN_A_BUDGET * elapsed / share_read / 60)
        """A budget that would do, in whole minutes."""
        so_far = "before the table was prepared" if share_read == 1 else f"when {share_read:.0%} of the table was read"
        super().__init__(
            f"The budget of {round(seconds, 2):g} s ended {so_far}: {elapsed:.0f} s had gone, "
            "most of them for reading and preparing it. Give a budget of at least "
            f"{self.enough_seconds / 60:.0f}m, use fewer rows, or wait until the machine is less busy."
        )


class NoSuccessfulTrialError(CashmereError):
    """All real trials failed; `failures` lists number, algorithm, status and cause of each.

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
        how_many = "The only trial has not" if len(failures) == 1 else f"None of {len(failures)} trials has"
        super().__init__(f"{how_many} succeeded.\n{table}\n{advice}")


class InconsistentResumeError(RunDirectoryError):
    """A stored trial differs from the one that the strategy decides now: settings, code or versions have changed."""
