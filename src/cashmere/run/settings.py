"""The settings of a run: the only list of them, used by command line, estimators and resumes."""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from numbers import Real
from typing import Any, Self

import numpy as np

from cashmere.base.cores import default_workers
from cashmere.base.text import is_dotted_path
from cashmere.data.class_weights import ClassWeight, read_class_weight
from cashmere.data.monotone import read_monotone
from cashmere.data.row_structure import StructureKind
from cashmere.data.task import TaskType
from cashmere.ensembles import METHODS
from cashmere.ensembles.operating_point import RATES, OperatingPoint
from cashmere.evaluation.metrics import Metric, metric_from_callable
from cashmere.exceptions import (
    IncompatibleParametersError,
    InvalidParameterError,
    LookaheadError,
    UnknownNameError,
)
from cashmere.records.budget import Budget, parse_memory_mib, parse_seconds
from cashmere.records.order import Order
from cashmere.records.trial import FOLD_RACING
from cashmere.run.presets import BALANCED, preset_settings

_DECISIONS = ("auto", "tune", "none")

_WITHOUT_ORDER = ("include", "exclude")
"""Settings whose names may be given in any order: that of the space counts."""

_BUDGET = Budget(seconds=600.0)
"""Default budget of a call: ten minutes, as in the preset ``balanced``."""

_LOOKAHEAD = 8
"""Default, unless `_LOOKAHEAD_PER_WORKER` times the workers is more, so that a free worker finds a trial waiting."""

_LOOKAHEAD_PER_WORKER = 2

_MOST_REPEATS = 20

MOST = {"n_workers": 1024, "lookahead": 4096, "ensemble_size": 10_000}
"""Largest values, so that a run directory from elsewhere cannot start endless processes or choose members forever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """How estimators and the command line pass a setting.

    Attributes
    ----------
    parameter : str or None
        Its name among the parameters of `AutoClassifier`; None if it has none.
    option : str or None
        Its name among the options of ``cashmere fit``, with underscores; None if it has none.
    read : callable
        (given value, name to show) -> value of the setting.
    fixed : bool
        Whether a resumed run must have the same value.
    """

    parameter: str | None
    option: str | None
    read: Callable[[Any, str], Any]
    fixed: bool


_SAME_NAME = "same name"


def _given(
    *,
    parameter: str | None = _SAME_NAME,
    option: str | None = _SAME_NAME,
    read: Callable[[Any, str], Any] = lambda given, name: given,
    fixed: bool = False,
) -> dict[str, Input]:
    return {"input": Input(parameter=parameter, option=option, read=read, fixed=fixed)}


def _label(given: Any, name: str) -> Any:
    return given.item() if isinstance(given, np.generic) else given


def _refit(given: Any, name: str) -> Any:
    """Read the words of the command line."""
    if isinstance(given, np.bool_):
        return bool(given)
    return {"yes": True, "no": False}.get(given, given) if isinstance(given, str) else given


_LONGEST_GAP = 1e11
"""In seconds: longer than any table lasts, and short enough for dates in microseconds."""


def _gap(given: Any, name: str) -> float | str | None:
    """Read a number in the unit of a column, or a duration, which is written in its largest whole unit."""
    if given is None:
        return None
    with contextlib.suppress(InvalidParameterError, TypeError, ValueError):
        is_time = isinstance(given, str) and not re.fullmatch(r"[-+.0-9eE]+", given.strip())
        if is_time or isinstance(given, timedelta | np.timedelta64):
            return _duration(parse_seconds(given, name))
        if not isinstance(given, bool) and 0 < (number := float(given)) < math.inf:
            return number
    raise InvalidParameterError(name, given, "a positive number, or a time such as '28d' or '12h'")


def _duration(seconds: float) -> str:
    """Return a duration as text; a ValueError says that it is none."""
    if not 0 < seconds <= _LONGEST_GAP:
        raise ValueError(seconds)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{np.format_float_positional(seconds, trim='-')}s"


def _seconds(given: Any, name: str) -> float | None:
    return None if given is None else parse_seconds(given, name)


_LEAST_MEMORY_MIB = 64
"""An empty worker takes more."""


def _memory(given: Any, name: str) -> float | None:
    if isinstance(given, Real) and 0 < float(given) < _LEAST_MEMORY_MIB:
        advice = f"A number means MiB: write '{given:g}GiB' if these are GiB."
        raise InvalidParameterError(name, given, f"at least {_LEAST_MEMORY_MIB} MiB", advice)
    return None if given is None else parse_memory_mib(given, name)


def _names(given: Any, name: str) -> tuple[str, ...]:
    """Read names from a text with commas, or from a collection of texts."""
    if given is None:
        return ()
    if isinstance(given, Set):  # the order of its texts differs between processes
        given = sorted(given, key=str)
    names = given.split(",") if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(each, str) for each in names):
        raise InvalidParameterError(name, given, "names of algorithms: a list, or a text with commas")
    return tuple(dict.fromkeys(each.strip() for each in names if each.strip()))


def check_deployable(given: object) -> None:
    """Raise if models cannot be converted to a format.

    Raises
    ------
    InvalidParameterError
        If they cannot.
    """
    if given not in (None, "onnx"):
        raise InvalidParameterError("deployable", given, "'onnx', the only format, or be left out")


def _seed(given: Any, name: str) -> Any:
    """Draw a seed if a generator or nothing is given."""
    if given is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(given, np.random.RandomState):
        return int(given.randint(2**31 - 1))
    if isinstance(given, np.random.Generator):
        return int(given.integers(2**31 - 1))
    _check_seed(given, name)
    return given


def _check_seed(seed: Any, name: str) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise InvalidParameterError(name, seed, "a whole number from 0 to 2**32 - 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run, as stored in ``run.json``.

    This is the only list of settings: `from_parameters` and `from_options` read those of the estimators and of the
    command line, and `changed_in` finds settings that differ although a resume may not change them.

    Attributes
    ----------
    task : str
        ``"auto"``, ``"classification"``, or a `TaskType`.
    metric, strategy, space, resampling : str or object
        Names, or custom objects (a callable metric, a `Strategy`, a function from `TaskProfile` to `Space`, a
        scikit-learn splitter). Custom objects must be passed again to resume the run.
    budget : Budget
        Budget of the first call.
    include, exclude : tuple of str
        Names of algorithms in the space: the only ones to search (all if empty), and those to leave out.
    deployable : "onnx" or None
        Search only algorithms whose models convert to ONNX.
    opening : str
        What the search begins with: ``"defaults"``, the directory of an earlier run for the members of its ensemble,
        or, with a budget of time, ``"learned"`` for the opening that the package provides for the space, or a file made
        by ``cashmere pretrain --opening``.
    n_workers : int or None
        Number of trials to run in parallel, at most the lookahead; by default the number of cores available to this
        process, at most 4. For a given lookahead, results do not depend on it.
    lookahead : int or None
        Number of trials that may be decided ahead of known results, see `Study`; by default 8, or twice the number of
        workers if that is more.
    order : Order
        Whether outcomes are used in the order of the trials, or as they arrive, see `Study`.
    seed : int
        Seed for all randomness.
    memory_mib, trial_seconds : float or None
        Limits of one trial. By default four fifths of the free memory, divided by the number of workers; and a quarter
        of a time budget, between 10 s and 10 minutes, or 10 minutes without a time budget. On rungs of rows, from a
        24th of the budget on the lowest rung to half of it on all rows (docs/paths.md#rungs).
    isolation : {"process", "none"}
        ``"process"`` runs trials in watched worker processes; ``"none"`` runs them in this process, without limits.
    ensemble : str
        ``"selection"``, ``"bagging"``, ``"stacking"`` or ``"best"``.
    repeats : "auto" or int
        Number of further splits of the rows on which the members of the final ensemble are fitted again. ``"auto"``
        means two for small tables under a budget of time alone, of which they take at most a fifth; otherwise none.
    refit : "auto" or bool
        Whether the members of the final ensemble are fitted again on all rows, without other splits. ``"auto"`` means
        so for tables that are not small, or in time, under a budget of time alone, of which it takes at most a fifth.
    ensemble_size : int
        Number of picks of the greedy selection (with replacement).
    max_latency : float or None
        Longest time the model may take to predict one row, in seconds, as measured on this machine.
    class_weight : "balanced", tuple of str such as "bad=5.0", or None
        Weight of the rows of each class in fits and losses; see `weights_of_rows`.
    monotone : tuple of str such as "age+"
        Numeric columns in which predictions may only increase (``+``) or only decrease (``-``).
    decision_threshold : {"auto", "tune", "none"}, str such as "recall>=0.95", or float
        How `predict` turns probabilities into classes. ``"tune"`` chooses thresholds for the metric, or for balanced
        accuracy if the metric is computed from probabilities; ``"auto"`` does so for metrics computed from labels,
        except accuracy, for which it gains nothing; ``"none"`` predicts the most probable class. A number t in (0, 1),
        for two classes only, predicts the positive class where its probability is at least t. A rate, for two classes
        only, chooses t so that the recall, specificity or precision reaches this level, see `OperatingPoint`.
    pos_label : str, bool, int, float or None
        The positive one of two classes, that of F1, average precision and a given threshold; by default the second.
    fold_racing : {"none", "forgiving"}
        ``"forgiving"`` stops trials after some folds if they are unlikely to win, see `cashmere.study.Study`.
    gap : float, str or None
        Time after which a row is known: a number in the unit of `time`, or a duration such as ``"28d"`` for dates.
    groups, time : str or None
        Name of the column with the groups of the rows, or with their times; at most one of the two. Folds respect it
        (docs/running.md#groups-and-time), and it is not used as a feature, except for parts of dates that recur.
    target_name : str
        Name of the target column, for reports.
    weight_name : str or None
        Name of the column with the weights of the rows, if they come from one: that of later tables as well.
    """

    task: str = field(default="auto", metadata=_given(parameter=None))
    metric: Any = field(default=None, metadata=_given(fixed=True))
    budget: Budget = field(default=_BUDGET, metadata=_given(read=lambda given, name: Budget.parse(given)))
    strategy: Any = field(default="optdivbo", metadata=_given(fixed=True))
    space: Any = field(default="default", metadata=_given(fixed=True))
    include: tuple[str, ...] = field(default=(), metadata=_given(read=_names, fixed=True))
    exclude: tuple[str, ...] = field(default=(), metadata=_given(read=_names, fixed=True))
    deployable: str | None = field(default=None, metadata=_given(fixed=True))
    opening: str = field(default="defaults", metadata=_given(read=lambda given, name: str(given), fixed=True))
    resampling: Any = field(default="auto", metadata=_given(fixed=True))
    n_workers: int | None = field(default=None, metadata=_given(option="workers"))
    lookahead: int | None = field(default=None, metadata=_given(fixed=True))
    order: Order = field(default=Order.TRIALS, metadata=_given(read=Order.parse, fixed=True))
    seed: int = field(default=0, metadata=_given(parameter="random_state", read=_seed, fixed=True))
    memory_mib: float | None = field(default=None, metadata=_given(parameter="memory", option="memory", read=_memory))
    trial_seconds: float | None = field(
        default=None, metadata=_given(parameter="trial_timeout", option="trial_timeout", read=_seconds)
    )
    isolation: str = field(default="process", metadata=_given(option=None))
    ensemble: str = field(default="selection", metadata=_given(fixed=True))
    ensemble_size: int = field(default=25, metadata=_given(option=None, fixed=True))
    max_latency: float | None = field(default=None, metadata=_given(read=_seconds, fixed=True))
    repeats: str | int = field(default="auto", metadata=_given(fixed=True))
    refit: str | bool = field(default="auto", metadata=_given(read=_refit, fixed=True))
    class_weight: ClassWeight | None = field(default=None, metadata=_given(read=read_class_weight, fixed=True))
    monotone: tuple[str, ...] = field(default=(), metadata=_given(read=read_monotone, fixed=True))
    decision_threshold: str | float = field(default="auto", metadata=_given(fixed=True))
    pos_label: str | bool | int | float | None = field(default=None, metadata=_given(read=_label, fixed=True))
    fold_racing: str = field(default="none", metadata=_given(fixed=True))
    groups: str | None = field(default=None, metadata=_given(parameter=None, fixed=True))
    time: str | None = field(default=None, metadata=_given(parameter=None, fixed=True))
    gap: float | str | None = field(default=None, metadata=_given(read=_gap, fixed=True))
    target_name: str = field(default="target", metadata=_given(parameter=None, option="target"))
    weight_name: str | None = field(default=None, metadata=_given(parameter=None, option="sample_weight"))

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise InvalidParameterError(name, value, "a whole number of at least 1")
            if value is not None and value > most:
                raise InvalidParameterError(name, value, f"at most {most}")
        for name in ("memory_mib", "trial_seconds", "max_latency"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf):
                raise InvalidParameterError(name, value, "a positive number")
        _check_seed(self.seed, "seed")
        if not isinstance(self.opening, str):
            raise InvalidParameterError("opening", self.opening, "'defaults', 'learned', a file or a run directory")
        check_deployable(self.deployable)
        if self.isolation not in ("process", "none"):
            raise InvalidParameterError("isolation", self.isolation, "'process' or 'none'")
        if self.lookahead is not None and self.workers > self.lookahead and self.isolation == "process":
            raise LookaheadError(
                f"n_workers must be at most the lookahead, {self.lookahead}; got {self.workers}. Use fewer workers or "
                "a larger lookahead: the decisions of a run depend on its lookahead, but not on the number of "
                "workers.",
                lookahead=self.lookahead,
                n_open=self.workers,
            )
        if not isinstance(self.pos_label, str | bool | int | float | None):
            raise InvalidParameterError("pos_label", self.pos_label, "one of the two classes")
        Order.parse(self.order)
        if self.ensemble not in METHODS:
            raise UnknownNameError("ensemble method", self.ensemble, METHODS)
        if self.max_latency is not None and self.ensemble != "selection":
            raise IncompatibleParametersError(
                f"max_latency and ensemble={self.ensemble!r} cannot be used together: only selection supports a limit. "
                "Leave out one of them.",
                {"max_latency": self.max_latency, "ensemble": self.ensemble},
            )
        is_count = isinstance(self.repeats, int | np.integer) and not isinstance(self.repeats, bool)
        if self.repeats != "auto" and not (is_count and 0 <= int(self.repeats) <= _MOST_REPEATS):
            raise InvalidParameterError("repeats", self.repeats, f"'auto' or a whole number from 0 to {_MOST_REPEATS}")
        if self.refit != "auto" and not isinstance(self.refit, bool):
            raise InvalidParameterError("refit", self.refit, "'auto', True or 'yes', False or 'no'")
        if self.refit is True and self.repeats not in ("auto", 0):
            raise IncompatibleParametersError(
                f"refit and repeats={self.repeats!r} cannot be used together: members are fitted again either on all "
                "rows or on other splits of them. Leave out one of them.",
                {"refit": self.refit, "repeats": self.repeats},
            )
        threshold = self.decision_threshold
        is_rate = isinstance(threshold, str) and OperatingPoint.parse(threshold) is not None
        is_number = isinstance(threshold, int | float)
        if not (is_rate or (0 < threshold < 1 if is_number else threshold in _DECISIONS)):  # type: ignore[operator]
            expected = "'auto', 'tune', 'none', a number between 0 and 1, or a rate such as 'recall>=0.9'"
            advice = f"Rates are {', '.join(RATES[:-1])} and {RATES[-1]}, each with a level between 0 and 1."
            raise InvalidParameterError("decision_threshold", threshold, expected, advice)
        if self.fold_racing not in FOLD_RACING:
            raise InvalidParameterError("fold_racing", self.fold_racing, "'none' or 'forgiving'")
        self._check_structure()
        if not isinstance(self.budget, Budget):
            raise InvalidParameterError("budget", self.budget, "a Budget", "Budget.parse reads texts and seconds.")

    def _check_structure(self) -> None:
        """Raise for groups and time together, and for settings that cannot respect them."""
        structure = self.structure_kind
        if self.groups is not None and self.time is not None:
            raise IncompatibleParametersError(
                "groups and time cannot be used together. Give time to predict later rows from earlier ones, or groups "
                "to predict rows of new groups.",
                {"groups": self.groups, "time": self.time},
            )
        if self.gap is not None and structure is not StructureKind.TIME:
            raise IncompatibleParametersError(
                f"gap needs time; got {self.gap!r}. Give time, the column by which rows are ordered, or leave out gap.",
                {"gap": self.gap, "time": self.time},
            )
        if structure is None:
            return
        if not isinstance(getattr(self, structure), str):
            raise InvalidParameterError(structure, getattr(self, structure), "the name of a column")
        if not isinstance(self.resampling, str):
            raise IncompatibleParametersError(
                f"{structure} and a custom splitter cannot be used together: both decide the folds. Give "
                "resampling as a name such as '5fold', or pass only the pairs of such a splitter: "
                "resampling=list(splitter.split(X, y, groups)).",
                {structure: getattr(self, structure), "resampling": self.resampling},
            )
        if self.time is not None and self.repeats not in ("auto", 0):
            raise IncompatibleParametersError(
                f"repeats must be 'auto' or 0 with time; got {self.repeats!r}. There is only one split into past and "
                "future.",
                {"time": self.time, "repeats": self.repeats},
            )

    @property
    def structure_kind(self) -> StructureKind | None:
        """Structure of the rows: groups, an order in time, or none."""
        if self.groups is None and self.time is None:
            return None
        return StructureKind.TIME if self.groups is None else StructureKind.GROUPS

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], **others: Any) -> Self:
        """Read the settings from the parameters of an estimator.

        Parameters
        ----------
        parameters : mapping
            Values by name. Parameters that are not settings are ignored; those that are None take the value of
            ``preset``.
        **others
            Settings that are not parameters.

        Raises
        ------
        InvalidParameterError, UnknownNameError, IncompatibleParametersError
            If a value cannot be used.
        """
        given = {name: (parameters[d.parameter], d.parameter) for name, d in inputs().items() if d.parameter}
        return cls(**_read(given, parameters["preset"]), **others)

    @classmethod
    def from_options(cls, *, preset: str = BALANCED, **options: Any) -> Self:
        """Read the settings from options of the command line, named with underscores.

        Parameters
        ----------
        preset : str
            Provides the settings whose option is None or missing.
        **options
            Values by option.

        Raises
        ------
        InvalidParameterError, UnknownNameError, IncompatibleParametersError
            If a value cannot be used; the message names the option.
        """
        named = {d.option: name for name, d in inputs().items() if d.option}
        if unknown := options.keys() - named.keys():
            raise UnknownNameError("option", min(unknown), named)
        given = {named[option]: (value, f"--{option.replace('_', '-')}") for option, value in options.items()}
        return cls(**_read(given, preset))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], own_objects: Mapping[str, Any]) -> Self:
        """Read the result of `to_json`, and ignore settings that only other versions have.

        Parameters
        ----------
        stored : mapping
            Plain data.
        own_objects : mapping
            The custom objects, of which `stored` only has descriptions.
        """
        known = {name: value for name, value in stored.items() if name in inputs()}
        if known.get("fold_racing") == "incumbent":
            known["fold_racing"] = "forgiving"  # early versions used the other name
        written = ("order", "budget", "class_weight", "monotone", "include", "exclude")  # others are plain data
        known |= {name: inputs()[name].read(known[name], name) for name in written if name in known}
        return cls(**{**known, **own_objects})

    def changed_in(self, other: RunSettings) -> tuple[str, Any, Any] | None:
        """Return the first setting that `other` changes but a resume may not: its name and both values."""
        for name, given in inputs().items():
            before, now = getattr(self, name), getattr(other, name)
            is_resolved = name == "resampling" and now == "auto"  # decided when the run was created
            is_same = before == now or (name in _WITHOUT_ORDER and set(before) == set(now))
            if given.fixed and not is_same and not is_resolved:
                return name, before, now
        return None

    def with_limits_of(self, call: RunSettings) -> RunSettings:
        """Return these settings for a resuming call: with its isolation, and its workers and limits where it has any.

        The lookahead stays what it was, because the decisions of the run depend on it.

        Raises
        ------
        LookaheadError
            If the call has more workers than the lookahead.
        """
        limits = {name: getattr(call, name) for name in ("n_workers", "memory_mib", "trial_seconds")}
        given = {name: value for name, value in limits.items() if value is not None}
        return replace(self, lookahead=self.lookahead_of_study, isolation=call.isolation, **given)

    def check_task(self, task_type: TaskType) -> None:
        """Raise an error if a decision threshold or monotone columns do not fit the task.

        Raises
        ------
        InvalidParameterError
            If they do not fit the task; the message says what does.
        IncompatibleParametersError
            If predictions cannot be monotone with the ensemble method.
        """
        threshold = self.decision_threshold
        if task_type is TaskType.REGRESSION and threshold not in ("auto", "none"):
            raise InvalidParameterError("decision_threshold", threshold, "'auto' or 'none' for regression")
        if task_type is TaskType.MULTICLASS and threshold not in _DECISIONS:
            expected = "'auto', 'tune' or 'none' for more than two classes"
            raise InvalidParameterError("decision_threshold", threshold, expected)
        if self.monotone and task_type is TaskType.MULTICLASS:
            advice = "With more, the probabilities of some classes must fall where those of others rise."
            raise InvalidParameterError("monotone", self.monotone, "empty with more than two classes", advice)
        if self.monotone and task_type is TaskType.BINARY and self.ensemble == "stacking":
            raise IncompatibleParametersError(
                "monotone and ensemble='stacking' cannot be used together for classification: the logistic regression "
                "may give a member a negative weight. Use another ensemble method.",
                {"monotone": self.monotone, "ensemble": self.ensemble},
            )

    @property
    def workers(self) -> int:
        """Number of workers, as given or by default."""
        if self.n_workers is not None:
            return self.n_workers
        if self.isolation == "none":
            return 1
        return default_workers(self.lookahead)

    @property
    def lookahead_of_study(self) -> int:
        """Lookahead, as given or by default."""
        return self.lookahead or max(_LOOKAHEAD, _LOOKAHEAD_PER_WORKER * self.workers)

    @property
    def own_objects(self) -> dict[str, str]:
        """Custom objects among the settings, with a description of each.

        A strategy to be imported is one of them: a run that comes from elsewhere must not choose what is imported.
        """
        names = ("metric", "strategy", "space", "resampling")
        found = {n: repr(v) for n in names if (v := getattr(self, n)) is not None and not isinstance(v, str)}
        return found | ({"strategy": str(self.strategy)} if is_dotted_path(self.strategy) else {})

    def to_json(self) -> dict[str, Any]:
        """Return plain data; custom objects become descriptions and are listed under ``own_objects``.

        Those of a custom metric are followed by its name and direction.
        """
        return {
            **{f.name: _plain(getattr(self, f.name)) for f in fields(self)},
            "budget": str(self.budget),
            **self.own_objects,
            **({} if self.metric is None or isinstance(self.metric, str) else scale_of(self.metric)),
            "own_objects": sorted(self.own_objects),
        }


def scale_of(metric: Metric | Callable[..., float]) -> dict[str, Any]:
    """Return name and direction of a custom metric, as ``run.json`` keeps them."""
    metric = metric if isinstance(metric, Metric) else metric_from_callable(metric)
    return {"metric_name": metric.name, "metric_greater_is_better": metric.greater_is_better}


def _plain(value: Any) -> Any:
    """Return a number of numpy as one of Python: JSON has no other."""
    return value.item() if isinstance(value, np.generic) else value


def _read(given: Mapping[str, tuple[Any, str]], preset: str) -> dict[str, Any]:
    """Return the values of settings from what was given for each, with its name; the preset fills the gaps."""
    said = {name: (value, f"{name} of the preset {preset!r}") for name, value in preset_settings(preset).items()}
    chosen = {**said, **{name: each for name, each in given.items() if each[0] is not None or name not in said}}
    return {name: inputs()[name].read(*each) for name, each in chosen.items()}


@functools.cache
def inputs() -> Mapping[str, Input]:
    """Return the `Input` of each setting, by its name."""
    return {f.name: _named(f.metadata["input"], f.name) for f in fields(RunSettings)}


def _named(given: Input, name: str) -> Input:
    """Return the input with the setting's own name in place of `_SAME_NAME`."""
    parameter, option = (name if each == _SAME_NAME else each for each in (given.parameter, given.option))
    return replace(given, parameter=parameter, option=option)
