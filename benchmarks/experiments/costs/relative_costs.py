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
from cashmere.costs.relative import RELATIVE_COSTS, choice_name
from cashmere.records.trial import TrialStatus

_RIDGE = 0.1
"""Weight of the assumption that an algorithm is of average cost; it decides only between equally good solutions."""

_RIDGE_OF_CHOICES = NOISE / OF_CHOICE
"""The same for choices that cost as much as the default, as the model of `cashmere.costs` assumes."""


def relative_costs(histories: Sequence[RecordedHistory]) -> dict[str, float]:
    """Return the logarithm of the relative cost of each algorithm, such that their mean is 0.

    The mean log seconds of an algorithm on a table are taken as a sum of one term of the table and one of the
    algorithm (least squares), so that algorithms recorded on different tables can be compared through those that
    share a table with both.

    Parameters
    ----------
    histories : sequence of RecordedHistory
        Trials that met a limit count with the limit; errors do not count.
    """
    means = [(table, [name], mean) for table, h in enumerate(histories) for name, mean in _mean_log_seconds(h).items()]
    return _sums_of_terms(means)


def relative_costs_of_choices(tables: Sequence[TimedCandidates], *, with_choices: bool = True) -> dict[str, float]:
    """Return the same from single configurations, and the logarithm of what other choices than the default add.

    Parameters
    ----------
    tables : sequence of TimedCandidates
        The configurations.
    with_choices : bool
        Otherwise the costs of algorithms alone.
    """
    return _sums_of_terms(
        (number, _terms(configuration, with_choices=with_choices), float(np.log(seconds + OVERHEAD_SECONDS)))
        for number, table in enumerate(tables)
        for configuration, seconds in zip(table.configurations, table.seconds, strict=True)
    )


def write_relative_costs(table: str, costs: Mapping[str, float], provenance: str) -> Path:
    """Write one of the tables of the package, with its provenance; return the path."""
    content = json.loads(RELATIVE_COSTS.read_text(encoding="utf-8"))
    costs = {name: round(float(np.exp(costs[name])), 3) for name in sorted(costs)}
    content[table] = {"provenance": provenance, "relative_costs": costs}
    write_atomically(RELATIVE_COSTS, (json.dumps(content, indent=2) + "\n").encode())
    return RELATIVE_COSTS


def _sums_of_terms(means: Iterable[tuple[int, list[str], float]]) -> dict[str, float]:
    """Return the terms whose sums, with one of the table, are closest to values; algorithms have the mean 0.

    Parameters
    ----------
    means : iterable of (int, list of str, float)
        The table, the names of the other terms, and the value.
    """
    tables, terms, values = zip(*means, strict=True)
    names = sorted({name for each in terms for name in each})
    n_tables, column = max(tables) + 1, {name: i for i, name in enumerate(names)}
    is_choice = np.array(["=" in name for name in names])
    design = np.zeros((len(values), n_tables + len(names)))
    for row, (table, each) in enumerate(zip(tables, terms, strict=True)):
        design[row, [table, *(n_tables + column[name] for name in each)]] = 1.0
    ridge = np.hstack([np.zeros((len(names), n_tables)), np.diag(np.where(is_choice, _RIDGE_OF_CHOICES, _RIDGE))])
    solution, *_ = np.linalg.lstsq(np.concatenate([design, ridge]), np.concatenate([values, np.zeros(len(names))]))
    costs = solution[n_tables:]
    costs = np.where(is_choice, costs, costs - costs[~is_choice].mean())
    return dict(zip(names, costs.tolist(), strict=True))


def _terms(configuration: Configuration, *, with_choices: bool) -> list[str]:
    """Return the names of the algorithm and of the choices that are not the default."""
    space = configuration.config_space
    choices = [
        choice_name(name, value)
        for name, value in configuration.items()
        if isinstance(space[name], CategoricalHyperparameter) and name != "algorithm"
        if value != space[name].default_value
    ]
    return [str(configuration["algorithm"]), *(choices if with_choices else [])]


def _mean_log_seconds(history: RecordedHistory) -> dict[str, float]:
    names = np.array([str(configuration["algorithm"]) for configuration in history.configurations])
    counted = np.array([status is not TrialStatus.ERROR for status in history.statuses])
    logs = np.log(history.seconds + OVERHEAD_SECONDS)
    return {str(name): float(logs[counted & (names == name)].mean()) for name in np.unique(names[counted])}
