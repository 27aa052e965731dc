"""The summary of a run, as plain data.

The summary is safe to print or to write as JSON: strings from outside are limited in length and free of control
characters and private paths, and numbers are finite or None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cashmere.base.text import clean_text
from cashmere.data.class_weights import SHIFTED_PROBABILITIES
from cashmere.evaluation.metrics import Metric, ScoreScale
from cashmere.records.order import Order
from cashmere.report.summary.algorithms import algorithms_section
from cashmere.report.summary.contest import contest_section
from cashmere.report.summary.curves import curves_section
from cashmere.report.summary.data import data_section
from cashmere.report.summary.decision import decision_section
from cashmere.report.summary.diagnostics import diagnostics_section
from cashmere.report.summary.diversity import diversity_section
from cashmere.report.summary.explanation import explanation_section
from cashmere.report.summary.failures import failures_section
from cashmere.report.summary.headline import headline_section
from cashmere.report.summary.latent_map import latent_map_section
from cashmere.report.summary.members import ensemble_section
from cashmere.report.summary.origins import count_origins
from cashmere.report.summary.resources import budget_text, resources_section
from cashmere.report.summary.values import NAME_LIMIT, dictionary, finite_number, one_line, shown_setting
from cashmere.report.summary.warnings import warnings_of
from cashmere.storage.facts import RunFacts
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import (
    ensemble_weights,
    leaderboard_rows,
    read_description,
    stored_metric,
    stored_scale,
)

_HINT_LIMIT = 2000
"""Characters of a warning about the table."""

_UNSHOWN = ("own_objects", "metric_name", "metric_greater_is_better")
"""Left out of the report, as they describe other settings."""


def summarise_run(folder: str | Path) -> dict[str, Any]:
    """Summarise a run as plain data, ready for `json.dumps`.

    Parameters
    ----------
    folder : path
        The run directory. Values that are not known yet are None or empty.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run directory.
    CorruptStoreError
        If a file is damaged.
    """
    folder = Path(folder)
    found = _Found.of(folder)
    run, target, settings, rows = found.run, found.target, found.settings, found.rows
    facts, scale, weights = found.facts, found.scale, found.weights
    board = leaderboard_rows(rows, scale=scale, weights=weights)
    summary = {
        **_result(folder, found),
        "run": clean_text(folder.absolute().name, NAME_LIMIT),
        "id": one_line(run.get("id")),
        "created": one_line(run.get("created")),
        "target": one_line(settings.get("target_name"), "target"),
        "headline": headline_section(rows, facts, board, scale),
        "data": data_section(run, found.schema, folder),
        "origins": count_origins(rows),
        "leaderboard": board,
        "decision": decision_section(facts, target),
        "explanation": explanation_section(folder, facts.digest),
        "diversity": diversity_section(folder, rows, weights, settings, found.metric, scale),
        "contest": contest_section(facts, rows, scale),
        "latent_map": latent_map_section(facts, scale),
        "algorithms": algorithms_section(rows, scale),
        "failures": failures_section(rows),
        "settings": _settings(settings, found.metric),
        "shifted": None if settings.get("class_weight") is None else SHIFTED_PROBABILITIES,
        "budget": budget_text(settings, facts),
        "versions": {one_line(k): one_line(v) for k, v in dictionary(run.get("versions")).items()},
        "seed": finite_number(settings.get("seed")),
        "repeatable": settings.get("order") != Order.ARRIVAL,
        "resources": resources_section(rows, facts),
    }
    summary["warnings"] = warnings_of(summary) + [clean_text(hint, _HINT_LIMIT) for hint in facts.hints or ()]
    return summary


def summarise_result(folder: str | Path) -> dict[str, Any]:
    """Return the part of `summarise_run` that the plots of a fitted model need; it takes little time.

    Parameters
    ----------
    folder : path
        The run directory.

    Returns
    -------
    dict
        ``task``, ``metric``, ``curves``, ``ensemble``, ``diagnostics`` and ``digest``.
    """
    return _result(Path(folder), _Found.of(Path(folder)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """The content of a run's files, parsed for all sections."""

    run: Mapping[str, Any]
    schema: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    facts: RunFacts
    settings: dict[str, Any]
    target: dict[str, Any]
    metric: Metric | None
    scale: ScoreScale | None
    weights: dict[int, float]

    @classmethod
    def of(cls, folder: Path) -> Self:
        run, schema = read_description(folder)
        with RunStore(folder, read_only=True) as store:
            rows = store.rows()
            facts = store.facts()
        settings = dictionary(run.get("settings"))
        target = dictionary(schema.get("target"))
        return cls(
            run=run,
            schema=schema,
            rows=rows,
            facts=facts,
            settings=settings,
            target=target,
            metric=stored_metric(settings, target.get("task_type")),
            scale=stored_scale(settings, target.get("task_type")),
            weights=ensemble_weights(dictionary(facts.ensemble)),
        )


def _result(folder: Path, found: _Found) -> dict[str, Any]:
    return {
        "task": one_line(found.target.get("task_type")),
        "metric": _metric(found.scale, found.settings),
        "curves": curves_section(found.rows, found.facts, found.scale),
        "ensemble": ensemble_section(found.rows, found.weights, found.facts, found.scale),
        "diagnostics": diagnostics_section(folder, found.weights, found.target),
        "digest": one_line(found.facts.digest, None),
    }


def _settings(settings: Mapping[str, Any], metric: Metric | None) -> dict[str, str]:
    """Return the settings as text, with the metric that was used where none was given."""
    shown = {one_line(k): shown_setting(v) for k, v in settings.items() if k not in _UNSHOWN}
    if settings.get("metric") is None and metric is not None:
        shown["metric"] = f"{metric.name} (default)"
    return shown


def _metric(scale: ScoreScale | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the name and the direction of the scores."""
    if scale is not None:
        return {"name": scale.name, "greater_is_better": scale.greater_is_better, "is_loss": False}
    return {"name": shown_setting(settings.get("metric")), "greater_is_better": False, "is_loss": True}
