"""Trials of a run as tables: successful ones by loss, failed ones with their causes and what to try."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cashmere.base.text import clean_text, counted, redact
from cashmere.data.task import TaskType
from cashmere.ensembles.calibration import Calibration
from cashmere.evaluation.metrics import Metric, ScoreScale, default_metric, get_metric
from cashmere.exceptions import CashmereError, MetricError, UnknownNameError
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.order import NOT_REPEATABLE, Order
from cashmere.records.trials_frame import trials_frame
from cashmere.storage.directory import RunDescription, SchemaDescription, read_run_json, read_schema_json
from cashmere.storage.facts import RunFacts, SplitsFact
from cashmere.storage.remote_run import local_run
from cashmere.storage.store import RunStore

if TYPE_CHECKING:
    import pandas as pd

BASELINE_NAME = "constant prediction"
"""Name of the member with the number -1."""

LEADERBOARD_COLUMNS = (
    *("rank", "trial", "algorithm", "reached", "origin", "score", "loss", "weight", "fit_seconds", "status"),
)
FAILURE_COLUMNS = ("trial", "algorithm", "status", "cause", "what_to_try")

_NAME_LIMIT = 80

_NEARLY_PERFECT = 0.01
"""Share of the loss of the constant prediction below which a loss suggests that a column knows the target."""

_SINGULAR = {"rounds": "round", "trees": "tree", "neighbours": "neighbour", "epochs": "epoch"}

_ADVICE_BY_STATUS = {
    "timeout": "Raise the time limit of a trial (--trial-timeout) or the budget, or use fewer rows or columns.",
    "memory": "Raise the memory limit of a trial (--memory), use fewer workers, or fewer rows or columns.",
    "aborted": "Nothing: the run was stopped while this trial worked. It runs again on resume.",
}
_WORKER_ADVICE = (
    "Look into logs/ of the run directory; a crash in native code is often a sign of too little memory. Update or "
    "leave out the algorithm if it happens again."
)
_ADVICE_BY_CAUSE = {
    CauseKind.WORKER_DIED: _WORKER_ADVICE,
    CauseKind.WORKER_SLOT: _WORKER_ADVICE,
    CauseKind.WORKER_NOT_READY: (
        "Nothing needs doing if it happened once. Otherwise the machine lacks memory or allows no more processes: use "
        "fewer workers, close other programs, and look into logs/ of the run directory."
    ),
    CauseKind.WORKER_LOST: (
        "The machines of the cluster may lack memory for it: start their workers with fewer threads, or lower the "
        "memory limit of a trial (--memory). Else look into the logs of the workers."
    ),
    CauseKind.MISSING_PACKAGE: "Install the missing package, or choose a search space without this algorithm.",
    CauseKind.NOT_FINITE: (
        "The learner did not converge with this configuration. Nothing needs doing unless many trials fail this way; "
        "then check the columns and the target for extreme values."
    ),
    CauseKind.UNUSABLE: (
        "A custom objective must return an Outcome as its description says. If there is none, a learner has written "
        "into the pipe of its worker: leave the algorithm out of the search space."
    ),
    CauseKind.DISK_FULL: "Free disk space under the run directory, then resume the run.",
    CauseKind.NOT_PERMITTED: "Give this user the right to write into the run directory, then resume the run.",
}
_ADVICE_DEFAULT = (
    "Read the traceback. If it is a custom algorithm or metric, correct it; else leave the algorithm out of the "
    "search space and report the error."
)


def what_to_try(status: str, cause: Cause | None) -> str:
    """Return advice on what to do about a failed trial.

    Parameters
    ----------
    status : str
        A `TrialStatus` value.
    cause : Cause or None
        Why it failed, if known.

    Examples
    --------
    >>> what_to_try("timeout", None)
    'Raise the time limit of a trial (--trial-timeout) or the budget, or use fewer rows or columns.'
    """
    if status in _ADVICE_BY_STATUS:
        return _ADVICE_BY_STATUS[status]
    return _ADVICE_DEFAULT if cause is None else _ADVICE_BY_CAUSE.get(cause.kind, _ADVICE_DEFAULT)


def stored_metric(settings: Mapping[str, Any], task_type: str | None) -> Metric | None:
    """Return the metric of a run from the ``settings`` in its run.json.

    Returns
    -------
    Metric or None
        None for a custom metric, which only Python has.
    """
    if "metric" in settings.get("own_objects", ()) or task_type not in set(TaskType):
        return None
    task = TaskType(task_type)
    try:
        return get_metric(settings.get("metric") or default_metric(task).name, task)
    except (MetricError, UnknownNameError):
        return None


def stored_scale(settings: Mapping[str, Any], task_type: str | None) -> ScoreScale | None:
    """Return what turns the losses of a run into scores, from the ``settings`` in its run.json.

    Returns
    -------
    ScoreScale or None
        None for a custom metric of an early version, of which only losses are known.
    """
    if (metric := stored_metric(settings, task_type)) is not None:
        return metric
    name, greater_is_better = settings.get("metric_name"), settings.get("metric_greater_is_better")
    if not isinstance(name, str) or not isinstance(greater_is_better, bool):
        return None
    return ScoreScale(name=redact(clean_text(name, _NAME_LIMIT)), greater_is_better=greater_is_better)


def algorithm_name(configuration: Mapping[str, Any]) -> str:
    """Return the algorithm of a stored configuration, cleaned; ``?`` if it names none."""
    return clean_text(configuration.get("algorithm", "?"), _NAME_LIMIT)


def cause_of(row: Mapping[str, Any]) -> str:
    """Return the first line of a trial's error, cleaned and without private paths."""
    lines = str(row.get("error") or "").strip()[:4000].splitlines()
    return redact(clean_text(lines[0], 300)) if lines else "no cause was recorded"


def ensemble_weights(ensemble: Mapping[str, Any] | None) -> dict[int, float]:
    """Return the weight of each member of a stored ensemble; equal shares if members are combined otherwise."""
    if not ensemble or not ensemble.get("members"):
        return {}
    members = [int(number) for number in ensemble["members"]]
    weights = ensemble.get("weights") or [1 / len(members)] * len(members)
    return {number: float(weight) for number, weight in zip(members, weights, strict=False)}


def leaderboard_rows(
    rows: Iterable[Mapping[str, Any]],
    *,
    scale: ScoreScale | None = None,
    weights: Mapping[int, float] | None = None,
) -> list[dict[str, Any]]:
    """Rank the successful trials.

    Parameters
    ----------
    rows : iterable of dict
        From `RunStore.rows`.
    scale : ScoreScale, optional
        Turns losses into scores; without it the score is the loss.
    weights : dict, optional
        Weight in the ensemble by trial number.

    Returns
    -------
    list of dict
        Rows with the keys `LEADERBOARD_COLUMNS`, best first; in a tie the earlier trial first.
    """
    weights = weights or {}
    good = [row for row in rows if row["status"] == "success" and _is_finite(row["loss"])]
    good.sort(key=lambda row: (row["loss"], row["number"]))
    return [
        {
            "rank": rank,
            "trial": int(row["number"]),
            "algorithm": algorithm_name(row["configuration"]),
            "reached": reached(row),
            "origin": clean_text(str(row.get("origin") or ""), _NAME_LIMIT),
            "score": float(row["loss"]) if scale is None else float(scale.score(row["loss"])),
            "loss": float(row["loss"]),
            "weight": float(weights.get(row["number"], 0.0)),
            "fit_seconds": float(row["fit_seconds"]),
            "status": str(row["status"]),
        }
        for rank, row in enumerate(good, start=1)
    ]


def reached(row: Mapping[str, Any]) -> str:
    """Return how far a trial went if that is not obvious: its place on a path, a share of the rows, a limit.

    This includes columns that it added to its table, with their seconds.

    Examples
    --------
    >>> from cashmere.records.path import FollowedPath
    >>> path = FollowedPath(parameter="rounds", positions=(10, 14), losses=(0.5, 0.4), chosen=14)
    >>> reached({"path": path, "fidelity": 1 / 3, "cut_short": None})
    '14 rounds, 33% of the rows'
    """
    parts = []
    if (path := row.get("path")) is not None:
        is_count = float(path.chosen).is_integer() and path.parameter not in ("C", "alpha", "sharpness")
        name = _SINGULAR.get(path.parameter, path.parameter) if path.chosen == 1 else path.parameter
        parts.append(f"{path.chosen:g} {name}" if is_count else f"{name} {path.chosen:.2g}")
    if row.get("fidelity", 1.0) < 1:
        parts.append(f"{100 * row['fidelity']:.2g}% of the rows")
    if (added := row.get("features")) is not None:
        parts.append(f"{added.columns} more columns ({added.seconds:.2g} s)")
    if row.get("cut_short") is not None:
        parts.append("cut short")
    return clean_text(", ".join(parts), _NAME_LIMIT)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def leaderboard(
    rows: Iterable[Mapping[str, Any]],
    *,
    scale: ScoreScale | None = None,
    weights: Mapping[int, float] | None = None,
) -> pd.DataFrame:
    """Return `leaderboard_rows` as a table, possibly an empty one.

    A last column ``configuration`` holds the hyper-parameters of each trial as a dictionary.
    """
    import pandas as pd

    rows = list(rows)
    table = pd.DataFrame(leaderboard_rows(rows, scale=scale, weights=weights), columns=list(LEADERBOARD_COLUMNS))
    configurations = {row["number"]: dict(row["configuration"]) for row in rows}
    table["configuration"] = pd.Series([configurations[number] for number in table["trial"]], dtype=object)
    return table


def failures_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the failed trials in trial order: trial, algorithm, status, cause, what_to_try.

    Trials that were stopped early have not failed.

    Parameters
    ----------
    rows : iterable of dict
        From `RunStore.rows`.
    """
    import pandas as pd

    failures = [
        {
            "trial": int(row["number"]),
            "algorithm": algorithm_name(row["configuration"]),
            "status": str(row["status"]),
            "cause": cause_of(row),
            "what_to_try": what_to_try(str(row["status"]), row.get("error")),
        }
        for row in rows
        if row["status"] not in ("success", "stopped")
    ]
    return pd.DataFrame(failures, columns=list(FAILURE_COLUMNS))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardFacts:
    """Title and caption of a leaderboard.

    Attributes
    ----------
    title : str
        Target and metric.
    caption : str
        Scores of the ensemble, so far if the run has not finished, and of the constant prediction, number of trials and
        failures.
    """

    title: str
    caption: str


def run_leaderboard(folder: str | Path) -> tuple[pd.DataFrame, LeaderboardFacts]:
    """Return the leaderboard of a run, in a directory or at a URL, with its title and caption.

    The run may still be active.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run directory.
    CorruptStoreError
        If a file is damaged.
    """
    with local_run(folder) as path:
        run, schema = read_description(path)
        with RunStore(path, read_only=True) as store:
            rows = store.rows()
            facts = store.facts()
    settings = run.get("settings") or {}
    scale = stored_scale(settings, (schema.get("target") or {}).get("task_type"))
    table = leaderboard(rows, scale=scale, weights=ensemble_weights(facts.ensemble))
    if scale is None:
        direction = "loss of a custom metric, lower is better"
    else:
        direction = f"{scale.name}, {'higher' if scale.greater_is_better else 'lower'} is better"
    n_stopped = sum(row["status"] == "stopped" for row in rows)
    parts = [f"{len(rows)} trials, {len(rows) - len(table) - n_stopped} failed"]
    name_of_ensemble, ensemble_loss, is_unfinished = "ensemble", facts.ensemble_loss, facts.ensemble is None
    if is_unfinished and facts.curve:
        latest = facts.curve[-1]
        name_of_ensemble = f"ensemble after {counted(latest['trials'], 'trial')}"
        ensemble_loss = latest["ensemble_loss"]
    for name, value in ((name_of_ensemble, ensemble_loss), (BASELINE_NAME, facts.baseline_loss)):
        if value is not None and _is_finite(value):
            parts.append(f"{name} {value if scale is None else scale.score(value):.5g}")
    if facts.joined_losses is not None:
        parts.append("means over folds, of the ensemble all rows together")
    if is_unfinished:
        parts.append("the run has not finished, so weights are not known yet")
    if (calibration := calibration_text(facts)) is not None:
        parts.append(f"ensemble calibrated by {calibration}")
    if settings.get("order") == Order.ARRIVAL:
        parts.append(NOT_REPEATABLE)
    target = redact(clean_text(settings.get("target_name") or "target", _NAME_LIMIT))
    return table, LeaderboardFacts(title=f"{target}: {direction}", caption="; ".join(parts))


def calibration_text(facts: RunFacts) -> str | None:
    """Say how the probabilities of the ensemble are calibrated; None if they are not, or the fact is damaged."""
    if facts.calibration is None:
        return None
    try:
        return str(Calibration.from_json(facts.calibration))
    except CashmereError:
        return None


def perfection_text(loss: float | None, constant: float | None) -> str | None:
    """Return what to check if a loss, of which 0 is the best, is suspiciously low; None if it is not.

    Parameters
    ----------
    loss : float or None
        Loss of the ensemble, on rows that did not choose it if it is known.
    constant : float or None
        Loss of the constant prediction.

    Examples
    --------
    >>> perfection_text(0.001, 0.5).partition(":")[0]
    'The ensemble is nearly perfect'
    >>> perfection_text(0.02, 0.5)
    """
    if loss is None or constant is None or not 0 <= loss < _NEARLY_PERFECT * constant:
        return None
    return (
        "The ensemble is nearly perfect: if this surprises you, a column may know the target, or rows may be copies of "
        "others. The command cashmere inspect names both."
    )


def predict_with_all_rows(facts: RunFacts, members: Collection[int]) -> bool:
    """Return whether some of these members were fitted again on all rows."""
    return any(fact.get("all_rows") for fact in _splits_of(facts, members))


def _splits_of(facts: RunFacts, members: Collection[int]) -> list[SplitsFact]:
    return [fact for number, fact in (facts.splits or {}).items() if int(number) in members]


def repeats_text(facts: RunFacts, members: Collection[int]) -> str | None:
    """Say how many members have models of several splits of the rows, or of all rows; None if none has."""
    of_members = _splits_of(facts, members)
    if not of_members:
        return None
    if predict_with_all_rows(facts, members):
        return f"{len(of_members)} of {len(members)} members predict with fits on all rows"
    splits = [fact["count"] for fact in of_members]
    several = str(min(splits)) if min(splits) == max(splits) else f"{min(splits)} to {max(splits)}"
    return f"{len(splits)} of {len(members)} members were fitted on {several} splits"


def run_trials(folder: str | Path) -> pd.DataFrame:
    """Return all trials of a run, see `trials_frame`; parameter and errors as for `run_leaderboard`."""
    with local_run(folder) as path:
        read_description(path)
        with RunStore(path, read_only=True) as store:
            return trials_frame(store.rows())


def run_failures(folder: str | Path) -> pd.DataFrame:
    """Return the failed trials of a run, see `failures_table`; parameter and errors as for `run_leaderboard`."""
    with local_run(folder) as path:
        read_description(path)
        with RunStore(path, read_only=True) as store:
            return failures_table(store.rows())


def read_description(folder: Path) -> tuple[RunDescription, SchemaDescription]:
    """Return the contents of run.json and schema.json; the latter may be empty.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run directory.
    CorruptStoreError
        If one of them is damaged.
    """
    run, path = read_run_json(folder), folder / "schema.json"
    return run, read_schema_json(folder) if path.exists() or path.is_symlink() else {}
