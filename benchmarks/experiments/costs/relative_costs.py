"""The relative costs of algorithms and their choices: the tables that come with the package."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from ConfigSpace import CategoricalHyperparameter, Configuration

from benchmarks.experiments.costs.timed_candidates import TimedCandidates
from benchmarks.recordings.recorded_history import RecordedHistory
from cashmere.base.files import write_atomically
from cashmere.costs.model import NOISE
from cashmere.costs.predicted import OF_CHOICE, OVERHEAD_SECONDS
from cashmere.costs.relative import RELATIVE_COSTS, RelativeCosts, choice_name, log_number_of_outputs
from cashmere.records.trial import TrialStatus

_RIDGE = 0.1
"""Weight of the assumption that an algorithm is of average cost; it decides only between equally good solutions."""

_RIDGE_OF_CHOICES = NOISE / OF_CHOICE
"""The same for choices that cost as much as the default, as the model of `cashmere.costs` assumes."""

_RIDGE_OF_EXPONENTS = NOISE / 0.5
"""The same for costs that grow with classes like those of the other algorithms."""

_GROWTH = "^"
"""Ends the name of the term for the logarithm of the number of outputs, which begins with the algorithm's name."""


def relative_costs(histories: Sequence[RecordedHistory]) -> RelativeCosts:
    """Return the relative cost of each algorithm, whatever the number of classes.

    The mean log seconds of an algorithm on a table are taken as a sum of one term of the table and one of the
    algorithm (least squares), so that algorithms recorded on different tables can be compared through those that
    share a table with both.

    Parameters
    ----------
    histories : sequence of RecordedHistory
        Trials that met a limit count with the limit; errors do not count.
    """
    means = [(table, {n: 1.0}, mean) for table, h in enumerate(histories) for n, mean in _mean_log_seconds(h).items()]
    return _sums_of_terms(means)


def relative_costs_of_choices(
    tables: Sequence[TimedCandidates], *, with_choices: bool = True, with_classes: bool = True
) -> RelativeCosts:
    """Return the same from single configurations, with the effects of choices other than the default and of classes.

    Parameters
    ----------
    tables : sequence of TimedCandidates
        The configurations.
    with_choices : bool
        Whether to include the effects of choices.
    with_classes : bool
        Whether to include the growth with the number of classes.
    """
    return _sums_of_terms(
        (
            number,
            _terms(configuration, table.n_classes if with_classes else 1, with_choices=with_choices),
            float(np.log(seconds + OVERHEAD_SECONDS)),
        )
        for number, table in enumerate(tables)
        for configuration, seconds in zip(table.configurations, table.seconds, strict=True)
    )


def write_relative_costs(table: str, costs: RelativeCosts, provenance: str) -> Path:
    """Write one of the tables of the package, with its provenance; return the path."""
    content = json.loads(RELATIVE_COSTS.read_text(encoding="utf-8"))
    content[table] = {"provenance": provenance, **costs.to_json()}
    write_atomically(RELATIVE_COSTS, (json.dumps(content, indent=2) + "\n").encode())
    return RELATIVE_COSTS


def _sums_of_terms(values: Iterable[tuple[int, Mapping[str, float], float]]) -> RelativeCosts:
    """Fit terms whose sums, with one term per table, are closest to the values; the mean over algorithms is 0.

    Parameters
    ----------
    values : iterable of (int, mapping of str to float, float)
        The table, the factors of the other terms, and the value.
    """
    tables, terms, wanted = zip(*values, strict=True)
    names = sorted({name for each in terms for name in each})
    n_tables, column = max(tables) + 1, {name: i for i, name in enumerate(names)}
    design = np.zeros((len(wanted), n_tables + len(names)))
    for row, (table, each) in enumerate(zip(tables, terms, strict=True)):
        design[row, table] = 1.0
        design[row, [n_tables + column[name] for name in each]] = list(each.values())
    ridge = np.hstack([np.zeros((len(names), n_tables)), np.diag([_ridge(name) for name in names])])
    solution, *_ = np.linalg.lstsq(np.concatenate([design, ridge]), np.concatenate([wanted, np.zeros(len(names))]))
    found = dict(zip(names, solution[n_tables:].tolist(), strict=True))
    exponents = {name.removesuffix(_GROWTH): found.pop(name) for name in names if name.endswith(_GROWTH)}
    mean = float(np.mean([value for name, value in found.items() if "=" not in name]))
    return RelativeCosts(logs={n: v if "=" in n else v - mean for n, v in found.items()}, exponents=exponents)


def _ridge(name: str) -> float:
    """Return the weight of the assumption that a term is 0."""
    if name.endswith(_GROWTH):
        return _RIDGE_OF_EXPONENTS
    return _RIDGE_OF_CHOICES if "=" in name else _RIDGE


def _terms(configuration: Configuration, n_classes: int, *, with_choices: bool) -> dict[str, float]:
    """Return the factors of the algorithm, of its growth with classes, and of the choices that are not the default."""
    space, algorithm = configuration.config_space, str(configuration["algorithm"])
    terms = {algorithm: 1.0}
    if n_classes > 2:
        terms[algorithm + _GROWTH] = log_number_of_outputs(n_classes)
    if with_choices:
        terms |= {
            choice_name(name, value): 1.0
            for name, value in configuration.items()
            if isinstance(space[name], CategoricalHyperparameter) and name != "algorithm"
            if value != space[name].default_value
        }
    return terms


def _mean_log_seconds(history: RecordedHistory) -> dict[str, float]:
    names = np.array([str(configuration["algorithm"]) for configuration in history.configurations])
    counted = np.array([status is not TrialStatus.ERROR for status in history.statuses])
    logs = np.log(history.seconds + OVERHEAD_SECONDS)
    return {str(name): float(logs[counted & (names == name)].mean()) for name in np.unique(names[counted])}
