"""The report of a run: first a summary as plain data, then one self-contained page.

The summary is clean: texts from outside are bounded, without control characters and private paths, and numbers are
finite or None. So it may be written as JSON or printed as well. The page holds no script and loads nothing.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from cashmere.analysis.contest import CONTEST_FACT, recorded_contest
from cashmere.analysis.contest_summary import summarise_contest
from cashmere.analysis.latent_map import LATENT_MAP_FACT, summarise_latent_map
from cashmere.analysis.summary import MEDIAN_WINDOW, summarise_diversity
from cashmere.base.files import write_atomically
from cashmere.base.text import clean_text, redact
from cashmere.charts.bracket import MAX_ROWS, Cell, Contender, bracket_chart, fitted_name
from cashmere.charts.charts import Series, Strip, bar, heat_map, line_chart, strip_chart
from cashmere.charts.latent_map import MAX_MARKS, Place, latent_chart
from cashmere.evaluation.metrics import Metric
from cashmere.exceptions import InvalidParameterError
from cashmere.records.budget import Budget
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import (
    BASELINE_NAME,
    algorithm_name,
    cause_of,
    ensemble_weights,
    leaderboard_rows,
    read_description,
    stored_metric,
    what_to_try,
)

LEADERBOARD_LENGTH = 20
"""Rows of the leaderboard that the page shows."""

_FACTS = (
    *("baseline_loss", "ensemble", "ensemble_loss", "honest_loss", "curve", "stop_reason", "elapsed_seconds", "digest"),
    "goal",
    *("decision", "latency", "busy_seconds", "utilisation", "suggest_seconds", "ensemble_seconds", "model_bytes"),
    CONTEST_FACT,
    LATENT_MAP_FACT,
)

_COLUMNS_SHOWN = 60
_ORIGINS_SHOWN = 8
_CLASSES_SHOWN = 30
_CAUSES_SHOWN = 30
_TRIALS_NAMED = 12
_TRACEBACK_LIMIT = 6000
_NAME_LIMIT = 80

_CLEARLY = 0.1
"""Share of the gain over the constant prediction beyond which the selection counts as clearly too optimistic."""


def write_report(folder: str | Path) -> Path:
    """Write ``report.html`` into a run directory and return its path.

    The run may be finished, interrupted or still going on.

    Raises
    ------
    RunDirectoryError
        If the folder is not that of a run.
    CorruptStoreError
        If a file is damaged.
    """
    path = Path(folder) / "report.html"
    page = render_report(summarise_run(path.parent))
    write_atomically(path, page.encode("utf-8", "replace"))
    return path


# ---------------------------------------------------------------- summary


def summarise_run(folder: str | Path) -> dict[str, Any]:
    """Return what there is to say about a run as plain data, ready for `json.dumps`.

    Parameters
    ----------
    folder : path
        The run directory; what is not known yet is None or empty.

    Raises
    ------
    RunDirectoryError
        If the folder is not that of a run.
    CorruptStoreError
        If a file is damaged.
    """
    folder = Path(folder)
    run, schema = read_description(folder)
    with RunStore(folder, read_only=True) as store:
        rows = store.rows()
        facts = {name: store.fact(name) for name in _FACTS}
    settings = _dictionary(run.get("settings"))
    target = _dictionary(schema.get("target"))
    metric = stored_metric(settings, target.get("task_type"))
    weights = ensemble_weights(_dictionary(facts["ensemble"]))
    board = leaderboard_rows(rows, metric=metric, weights=weights)
    summary = {
        "run": clean_text(folder.absolute().name, _NAME_LIMIT),
        "id": _line(run.get("id")),
        "created": _line(run.get("created")),
        "target": _line(settings.get("target_name"), "target"),
        "task": _line(target.get("task_type")),
        "metric": _metric(metric, settings),
        "headline": _headline(rows, facts, board, metric),
        "data": _data(run, schema, folder),
        "curves": _curves(rows, facts, metric),
        "origins": _origins(rows),
        "leaderboard": board,
        "ensemble": _members(rows, weights, facts, metric),
        "decision": _decision(facts, target),
        "diversity": _diversity(folder, rows, weights, settings, metric),
        "contest": _contest(facts, rows, metric),
        "latent_map": _latent_map(facts, metric),
        "algorithms": _algorithms(rows, metric),
        "failures": _failures(rows),
        "settings": {_line(k): _setting(v) for k, v in settings.items() if k != "own_objects"},
        "budget": _budget(settings, facts),
        "versions": {_line(k): _line(v) for k, v in _dictionary(run.get("versions")).items()},
        "seed": _number(settings.get("seed")),
        "digest": _line(facts["digest"], None),
        "resources": _resources(rows, facts),
    }
    summary["warnings"] = _warnings(summary)
    return summary


def _dictionary(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | int | None:
    """Return a finite number, else None: JSON has no NaN."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def _line(value: object, default: str | None = "") -> Any:
    return default if value is None else redact(clean_text(value, _NAME_LIMIT))


def _setting(value: object) -> str:
    """Return a setting as text; memory addresses in descriptions of objects say nothing to anybody."""
    if value is None:
        return "default"
    return redact(clean_text(re.sub(r" at 0x[0-9A-Fa-f]+", "", str(value)[:2000]), 160))


def _score(metric: Metric | None, loss: object) -> float | None:
    number = _number(loss)
    return None if number is None else float(number) if metric is None else float(metric.score(number))


def _metric(metric: Metric | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    if metric is not None:
        return {"name": metric.name, "greater_is_better": metric.greater_is_better, "own": False}
    return {"name": _setting(settings.get("metric")), "greater_is_better": False, "own": True}


def _succeeded(row: Mapping[str, Any]) -> bool:
    return row["status"] == "success" and _number(row["loss"]) is not None


def _failed(row: Mapping[str, Any]) -> bool:
    return not _succeeded(row) and row["status"] != "stopped"


def _headline(
    rows: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
    board: Sequence[Mapping[str, Any]],
    metric: Metric | None,
) -> dict[str, Any]:
    best = board[0] if board else None
    seconds = [row["finished_at"] for row in rows]
    curve = _curve(facts)
    ensemble_loss = _number(facts["ensemble_loss"])
    if ensemble_loss is None and curve:
        ensemble_loss = curve[-1]["ensemble_loss"]
    return {
        "ensemble_loss": ensemble_loss,
        "ensemble_score": _score(metric, ensemble_loss),
        "honest_loss": _number(facts["honest_loss"]),
        "honest_score": _score(metric, facts["honest_loss"]),
        "baseline_loss": _number(facts["baseline_loss"]),
        "baseline_score": _score(metric, facts["baseline_loss"]),
        "best_loss": best and best["loss"],
        "best_score": best and best["score"],
        "best_trial": best and best["trial"],
        "best_algorithm": best and best["algorithm"],
        "trials": len(rows),
        "failures": sum(_failed(row) for row in rows),
        "stopped": sum(row["status"] == "stopped" for row in rows),
        "seconds": max([*seconds, _number(facts["elapsed_seconds"]) or 0.0]),
        "stop_reason": _line(facts["stop_reason"], None),
        "finished": facts["stop_reason"] is not None,
    }


def _data(run: Mapping[str, Any], schema: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    table = _dictionary(run.get("table"))
    columns = [c for c in _dictionary(schema.get("columns")).get("columns", []) if isinstance(c, dict)]
    used = [c for c in columns if c.get("dropped") is None]
    target = _dictionary(schema.get("target"))
    classes = list(target.get("classes") or [])
    counts = _class_counts(folder, len(classes)) if classes else None
    total = sum(counts) if counts else 0
    return {
        "rows": _number(table.get("rows")),
        "training_rows": _number(table.get("training_rows")),
        "columns": len(columns) or _number(table.get("columns")),
        "used": len(used),
        "kinds": dict(Counter(_line(c.get("kind")) for c in used)),
        "used_columns": [
            {
                "name": _name(c.get("name")),
                "kind": _line(c.get("kind")),
                "levels": len(c.get("categories") or ()) or None,
            }
            for c in used[:_COLUMNS_SHOWN]
        ],
        "dropped": [
            {"name": _name(c.get("name")), "reason": _line(c.get("dropped"))}
            for c in columns
            if c.get("dropped") is not None
        ],
        "n_classes": len(classes),
        "classes": [
            {
                "label": _name(label),
                "rows": counts[i] if counts else None,
                "share": counts[i] / total if counts and total else None,
            }
            for i, label in enumerate(classes[:_CLASSES_SHOWN])
        ],
    }


def _name(value: object) -> str:
    return clean_text(value, _NAME_LIMIT) or "(blank)"


def _class_counts(folder: Path, n_classes: int) -> list[int] | None:
    """Count the classes in the stored training rows; None where they cannot be read."""
    import zipfile

    import numpy as np

    try:
        with (folder / "table.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            counts = np.bincount(arrays["y"].astype(np.int64), minlength=n_classes)
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
        return None
    return [int(n) for n in counts] if len(counts) == n_classes else None


def _curve(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    points = facts["curve"] if isinstance(facts["curve"], list) else []
    return [p for p in points if isinstance(p, dict) and _number(p.get("ensemble_loss")) is not None]


def _curves(rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], metric: Metric | None) -> dict[str, Any]:
    trials, best = [], None
    for row in rows:
        loss = float(row["loss"]) if _succeeded(row) else None
        if loss is not None and (best is None or loss < best):
            best = loss
        trials.append(
            {
                "trial": int(row["number"]),
                "seconds": row["finished_at"],
                "status": _line(row["status"]),
                "score": _score(metric, loss),
                "best_score": _score(metric, best),
            }
        )
    ensemble = [
        {
            "trial": p["trials"] - 1,
            "seconds": _number(p.get("seconds")),
            "score": _score(metric, p["ensemble_loss"]),
        }
        for p in _curve(facts)
        if (_number(p.get("trials")) or 0) >= 1
    ]
    final = _score(metric, facts["ensemble_loss"])
    if final is not None and trials:
        ensemble.append({"trial": trials[-1]["trial"], "seconds": trials[-1]["seconds"], "score": final})
    return {"trials": trials, "ensemble": ensemble, "baseline_score": _score(metric, facts["baseline_loss"])}


def _origins(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count where the configurations of the trials came from; the rarest together."""
    # A contest says "round 1 · svm | under · model": rounds and sub-spaces have a section of their own.
    kinds = ((_line(row.get("origin")) or "not known").rpartition(" · ")[2].partition(":")[0] for row in rows)
    counts = Counter(kinds)
    kept = {origin for origin, _ in counts.most_common(_ORIGINS_SHOWN)}
    shown = {origin: n for origin, n in counts.items() if origin in kept}
    others = counts.total() - sum(shown.values())
    return shown | {"of other origin": others} if others else shown


def _members(
    rows: Sequence[Mapping[str, Any]], weights: Mapping[int, float], facts: Mapping[str, Any], metric: Metric | None
) -> dict[str, Any]:
    by_number = {row["number"]: row for row in rows}
    members = []
    for number, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        row = by_number.get(number)
        baseline = facts["baseline_loss"] if number < 0 else None
        members.append(
            {
                "trial": number,
                "algorithm": BASELINE_NAME
                if number < 0
                else "?"
                if row is None
                else algorithm_name(row["configuration"]),
                "weight": _number(weight),
                "score": _score(metric, baseline if row is None else row["loss"]),
                "configuration": {} if row is None else configuration_summary(row["configuration"]),
            }
        )
    return {"kind": _line(_dictionary(facts["ensemble"]).get("kind"), None), "members": members}


def _decision(facts: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return by which thresholds classes are decided; None where none were asked for."""
    decision = _dictionary(facts["decision"])
    if not decision:
        return None
    classes = list(target.get("classes") or [])
    thresholds = [_number(value) for value in decision.get("thresholds") or ()]
    gain = _number(decision.get("gain"))
    return {
        "metric": _line(decision.get("metric")),
        "direction": "raised" if (decision.get("greater_is_better") is True) == ((gain or 0) >= 0) else "lowered",
        "gain": gain,
        "size": None if gain is None else abs(gain),
        "tuned": decision.get("tuned") is True,
        "thresholds": [
            {"label": _name(label), "threshold": threshold}
            for label, threshold in zip(classes, thresholds, strict=False)
        ],
    }


def _diversity(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    weights: Mapping[int, float],
    settings: Mapping[str, Any],
    metric: Metric | None,
) -> dict[str, Any]:
    """Return what `summarise_diversity` finds, with scores for losses and names for members."""
    size = _number(settings.get("ensemble_size")) or 25
    members = sorted((n for n in weights if n >= 0), key=lambda n: (-weights[n], n))
    found = summarise_diversity(folder, rows, metric=metric, members=members, size=int(size))
    course = found["course"]
    if course is not None:
        course["member_scores"] = [[trial, _score(metric, loss)] for trial, loss in course.pop("member")]
    names = {row["number"]: algorithm_name(row["configuration"]) for row in rows}
    found["n_members"] = len(members)
    found["members"] = [{"trial": number, "algorithm": names[number]} for number in found["members"]]
    found["selection"] = settings.get("ensemble", "selection") == "selection"
    return found


def _contest(
    facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], metric: Metric | None
) -> dict[str, Any] | None:
    """Return what `summarise_contest` finds; None where there was no contest, or none that can be read."""
    fact = _dictionary(facts[CONTEST_FACT])
    if not fact:
        return None
    try:
        return summarise_contest(recorded_contest(fact, rows, metric))
    except ValueError:
        return None


def _latent_map(facts: Mapping[str, Any], metric: Metric | None) -> dict[str, Any] | None:
    """Return what `summarise_latent_map` finds; None where there was no latent space, or no map that can be read."""
    fact = _dictionary(facts[LATENT_MAP_FACT])
    if not fact:
        return None
    try:
        return summarise_latent_map(fact, metric)
    except ValueError:
        return None


def configuration_summary(configuration: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a stored configuration as short texts, without the name of the algorithm in front.

    Examples
    --------
    >>> configuration_summary({"algorithm": "knn", "knn:n_neighbors": 5, "knn:p": 1.2345678})
    {'n_neighbors': '5', 'p': '1.235'}
    """
    prefix = f"{configuration.get('algorithm')}:"
    values = {}
    for name, value in sorted(configuration.items()):
        if name != "algorithm":
            text = f"{value:.4g}" if isinstance(value, float) else value
            values[clean_text(str(name)[:1000].removeprefix(prefix), 60)] = redact(clean_text(text, 60))
    return values


def _algorithms(rows: Sequence[Mapping[str, Any]], metric: Metric | None) -> list[dict[str, Any]]:
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[algorithm_name(row["configuration"])].append(row)
    results = []
    for name, group in groups.items():
        losses = [float(row["loss"]) for row in group if _succeeded(row)]
        results.append(
            {
                "algorithm": name,
                "trials": len(group),
                "failures": sum(_failed(row) for row in group),
                "best_loss": min(losses, default=None),
                "best_score": _score(metric, min(losses, default=None)),
                "median_score": _score(metric, statistics.median(losses)) if losses else None,
                "seconds": float(sum(row["duration_seconds"] for row in group)),
                "scores": [_score(metric, loss) for loss in losses],
            }
        )
    return sorted(results, key=lambda r: (r["best_loss"] is None, r["best_loss"] or 0.0, r["algorithm"]))


def _budget(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> str | None:
    """Return the budget of the first call, and what all calls together were allowed if that is more."""
    if not settings.get("budget"):
        return None
    first: str = _line(settings["budget"])
    goal = _dictionary(facts["goal"])
    trials, seconds = _number(goal.get("trials")), _number(goal.get("seconds"))
    parts = [] if seconds is None else [format_seconds(seconds)]
    parts += [] if trials is None else [f"{format_count(trials)} trials"]
    try:
        asked = Budget.parse(settings["budget"])
    except InvalidParameterError:
        return first
    same = (asked.trials, asked.seconds) == (trials, seconds)
    return first if same or not parts else f"{first} at first, {' and '.join(parts)} in all"


def _failures(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Group failed trials by status and cause; numbers in the cause do not tell causes apart."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if _failed(row):
            groups[str(row["status"]), re.sub(r"\d+(?:\.\d+)?", "#", cause_of(row))].append(row)
    results = []
    for (status, _), group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[1][0]["number"])):
        text = str(group[0].get("error") or "")
        details = redact(clean_text(text, _TRACEBACK_LIMIT, multiline=True))
        results.append(
            {
                "status": _line(status),
                "cause": cause_of(group[0]),
                "count": len(group),
                "algorithms": dict(Counter(algorithm_name(row["configuration"]) for row in group).most_common()),
                "trials": [int(row["number"]) for row in group],
                "what_to_try": what_to_try(status, text),
                "traceback": details if "\n" in details.strip() else None,
            }
        )
    return results


def _resources(rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> dict[str, Any]:
    latency = _dictionary(facts["latency"])
    memory = [row["memory_mib"] for row in rows if _number(row["memory_mib"]) is not None]
    busy = _number(facts["busy_seconds"])
    return {
        "suggest_seconds": _number(facts["suggest_seconds"]),
        "ensemble_seconds": _number(facts["ensemble_seconds"]),
        "trial_seconds": float(sum(row["duration_seconds"] for row in rows)) if busy is None else busy,
        "fit_seconds": float(sum(row["fit_seconds"] for row in rows)),
        "predict_seconds": float(sum(row["predict_seconds"] for row in rows)),
        "utilisation": _number(facts["utilisation"]),
        "single_row_ms": _number(latency.get("single_row_ms")),
        "batch_rows_per_second": _number(latency.get("batch_rows_per_second")),
        "model_bytes": _number(facts["model_bytes"]),
        "peak_memory_mib": max(memory, default=None),
    }


def _warnings(summary: Mapping[str, Any]) -> list[str]:
    """Say in words what a reader must not overlook."""
    head = summary["headline"]
    trials, failures = head["trials"], head["failures"]
    ensemble, honest, baseline = head["ensemble_loss"], head["honest_loss"], head["baseline_loss"]
    found = []
    if not head["finished"]:
        found.append(
            "This run has not come to its end: it still works, or it was killed. The numbers are those of the trials "
            "stored so far; cashmere resume continues it."
        )
    if trials == 0:
        found.append("No trial has finished yet. Until one does, the model is the constant prediction.")
    elif failures == trials:
        found.append(
            f"All {trials} trials failed, so the model is the constant prediction. See Failures for the causes and "
            "what to try."
        )
    elif 2 * failures > trials:
        found.append(
            f"More than half of the trials failed ({failures} of {trials}). The search has seen little of its space; "
            "see Failures for the causes and what to try."
        )
    if ensemble is not None and baseline is not None and ensemble >= baseline and trials > failures:
        found.append(
            "The ensemble is not better than the constant prediction. The columns may hold no information about the "
            "target, the budget may be too small, or rows and target may have been shuffled apart. Do not rely on this "
            "model."
        )
    elif honest is not None and baseline is not None and ensemble is not None and honest >= baseline:
        found.append(
            "Judged on rows that did not choose it, the ensemble is not better than the constant prediction: its "
            "advantage comes from choosing among many models on few rows. Do not rely on this model without more data."
        )
    elif honest is not None and ensemble is not None:
        gain = abs(ensemble) if baseline is None else baseline - ensemble
        if honest - ensemble > _CLEARLY * gain:
            share = f"{(honest - ensemble) / gain:.0%}" if gain > 0 else "most"
            of = "its loss" if baseline is None else "its gain over the constant prediction"
            found.append(
                f"The cross-checked score is clearly worse than the selection score: {share} of {of} is owed to "
                "choosing and judging the ensemble on the same rows. Expect the cross-checked score on new data."
            )
    return found


# ---------------------------------------------------------------- page


def render_report(summary: Mapping[str, Any]) -> str:
    """Return the page for a summary from `summarise_run`.

    Returns
    -------
    str
        One HTML document without scripts and outside references; everything in it is escaped.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        breakable=lambda name: Markup(str(escape(name)).replace("_", "_<wbr>")),
        score=format_number,
        seconds=format_seconds,
        bytes=format_bytes,
        count=format_count,
        percent=format_percent,
    )
    template = environment.from_string(
        resources.files("cashmere.report").joinpath("template/report.html").read_text("utf-8")
    )
    largest = max((m["weight"] or 0.0 for m in summary["ensemble"]["members"]), default=0.0) or 1.0
    return template.render(
        **summary,
        charts=[Markup(svg) for svg in _progress_charts(summary)],
        strips=[Markup(svg) for svg in _algorithm_charts(summary)],
        course_charts=[[Markup(svg) for svg in charts] for charts in _course_charts(summary)],
        heat_maps=[Markup(svg) for svg in _heat_maps(summary)],
        median_window=MEDIAN_WINDOW,
        contest_charts=[[Markup(svg) for svg in charts] for charts in _contest_charts(summary)],
        leavers_shown=MAX_ROWS,
        latent_charts=[Markup(svg) for svg in _latent_charts(summary)],
        places_shown=MAX_MARKS,
        weight_bars=[
            Markup(bar((m["weight"] or 0.0) / largest, title=f"weight {format_percent(m['weight'])}"))
            for m in summary["ensemble"]["members"]
        ],
        class_bars=[
            Markup(bar(c["share"] or 0.0, title=f"share {format_percent(c['share'])}", css="s0", track=True))
            for c in summary["data"]["classes"]
        ],
        leaderboard_length=LEADERBOARD_LENGTH,
        causes_shown=_CAUSES_SHOWN,
        classes_shown=_CLASSES_SHOWN,
        trials_named=_TRIALS_NAMED,
    )


def _shown_range(summary: Mapping[str, Any], *, constant: bool) -> tuple[float, float] | None:
    """Return the scores worth showing: outliers, and a constant prediction far away, would press the rest together."""
    losses = [t["score"] for t in summary["curves"]["trials"] if t["score"] is not None]
    if not losses:
        return None
    sign = -1.0 if summary["metric"]["greater_is_better"] else 1.0
    losses = sorted(sign * score for score in losses)
    limit = _whisker(losses)
    shown = [loss for loss in losses if loss <= limit]
    if constant:
        shown += [sign * p["score"] for p in summary["curves"]["ensemble"]]
        baseline = summary["curves"]["baseline_score"]
        if baseline is not None:
            span = max(max(shown) - min(shown), 0.05 * abs(baseline))
            if abs(sign * baseline - losses[0]) <= 6 * span:
                shown.append(sign * baseline)
    ends = sign * min(shown), sign * max(shown)
    return min(ends), max(ends)


def _whisker(values: Sequence[float]) -> float:
    """Return where sorted values begin to be outliers: as the whisker of a box plot, at least to the median."""
    lower, upper = values[len(values) // 4], values[3 * len(values) // 4]
    return upper + 1.5 * max(upper - lower, upper - values[0])


def _progress_charts(summary: Mapping[str, Any]) -> list[str]:
    """Draw the best scores so far over trials, for wide and for narrow pages."""
    curves, metric = summary["curves"], summary["metric"]
    good = [t for t in curves["trials"] if t["score"] is not None]
    so_far = [t for t in curves["trials"] if t["best_score"] is not None]
    failed = [t["trial"] for t in curves["trials"] if t["score"] is None]
    series = [
        Series(label="a trial", x=[t["trial"] for t in good], y=[t["score"] for t in good], kind="dots", css="s0"),
        Series(
            label="best single model", x=[t["trial"] for t in so_far], y=[t["best_score"] for t in so_far], css="s2"
        ),
        Series(
            label="ensemble",
            x=[p["trial"] for p in curves["ensemble"]],
            y=[p["score"] for p in curves["ensemble"]],
            css="s1",
        ),
    ]
    if failed and good:
        series.insert(0, Series(label="failed trial", x=failed, kind="rug", css="bad"))
    if curves["baseline_score"] is not None:
        series.append(Series(label=BASELINE_NAME, y=[curves["baseline_score"]], kind="constant", css="s3"))
    direction = "higher" if metric["greater_is_better"] else "lower"
    name = "loss" if metric["own"] else metric["name"]
    title = f"{name} of every trial, of the best single model and of the ensemble by trial number"
    y_range = _shown_range(summary, constant=True)
    return [
        line_chart(
            series,
            title=title,
            x_label="trial",
            y_label=f"{name} ({direction} is better)",
            y_range=y_range,
            width=width,
            height=height,
            css=css,
        )
        for width, height, css in ((860, 340, "wide"), (400, 330, "narrow"))
    ]


_SIZES = ((860, 280, "wide"), (400, 290, "narrow"))


def _course_charts(summary: Mapping[str, Any]) -> list[list[str]]:
    """Draw how unlike the ensemble each trial was, and how good its members are; each for wide and narrow pages."""
    found, metric = summary["diversity"], summary["metric"]
    course = found["course"]
    if course is None:
        return []
    name = "loss" if metric["own"] else metric["name"]
    direction = "higher" if metric["greater_is_better"] else "lower"
    minimum, median, members = (
        ([point[0] for point in points], [point[1] for point in points])
        for points in (course["minimum"], course["median"], course["member_scores"])
    )
    ensemble = [p for p in summary["curves"]["ensemble"] if not members[0] or p["trial"] >= members[0][0]]
    largest = max(minimum[1], default=1.0)
    if found["in_target_units"] and minimum[1]:
        largest = min(largest, max([_whisker(sorted(minimum[1])), *median[1]]))
    figures: list[tuple[list[Series], str, str, tuple[float, float] | None]] = [
        (
            [
                Series(label="a trial", x=minimum[0], y=minimum[1], kind="dots", css="s0"),
                Series(label=f"median of the last {MEDIAN_WINDOW}", x=median[0], y=median[1], kind="line", css="s4"),
            ],
            "difference between each trial and the most similar member of the ensemble before it",
            f"difference ({'target units' if found['in_target_units'] else '0 to 1'})",
            (0.0, largest),
        ),
        (
            [
                Series(label="members, on average", x=members[0], y=members[1], css="s4"),
                Series(label="ensemble", x=[p["trial"] for p in ensemble], y=[p["score"] for p in ensemble], css="s1"),
            ],
            f"average {name} of the ensemble's members, each alone, and {name} of the ensemble",
            f"{name} ({direction} is better)",
            None,
        ),
    ]
    return [
        [
            line_chart(
                series, title=title, x_label="trial", y_label=label, y_range=shown, width=width, height=height, css=css
            )
            for width, height, css in _SIZES
        ]
        for series, title, label, shown in figures
    ]


_CURVES_NAMED = 3


def _contest_charts(summary: Mapping[str, Any]) -> list[list[str]]:
    """Draw the bracket of a contest and the best scores of its sub-spaces; each for wide and narrow pages."""
    contest, metric = summary["contest"], summary["metric"]
    if contest is None:
        return []
    name = "loss" if metric["own"] else metric["name"]
    contenders = [
        Contender(
            name=each["name"],
            cells=[
                Cell(loss=cell["loss"], text=format_number(cell["score"]), trials=cell["trials"])
                for cell in each["cells"]
            ],
            reason=each["reason"],
        )
        for each in contest["subspaces"]
    ]
    bracket = [
        bracket_chart(
            contenders,
            rounds=[stage["label"] for stage in contest["stages"]],
            title=f"contest of sub-spaces over rounds, with the best {name} and the number of trials of each",
            description=contest["sentence"],
            names_above=css == "narrow",
            width=width,
            css=css,
        )
        for width, _, css in _SIZES
    ]
    direction = "higher" if metric["greater_is_better"] else "lower"
    curves = [
        line_chart(
            _contest_curves(contest),
            title=f"best {name} of every sub-space by trial number",
            x_label="trial",
            y_label=f"{name} ({direction} is better)",
            y_range=_curves_range(contest, -1.0 if metric["greater_is_better"] else 1.0),
            width=width,
            height=height,
            css=css,
        )
        for width, height, css in _SIZES
    ]
    return [bracket, curves]


def _contest_curves(contest: Mapping[str, Any]) -> list[Series]:
    """Return a curve for every sub-space, which ends where it left; the first ones have colours and names."""
    curves = []
    for k, each in enumerate(contest["subspaces"][:MAX_ROWS]):
        named = k < _CURVES_NAMED
        x, y = _steps(each["curve"])
        label = fitted_name(each["name"]) if named else "the others" if k == _CURVES_NAMED else ""
        curves.append(Series(label=label, x=x, y=y, kind="line", css=("s1", "s2", "s4")[k] if named else "s3"))
    ends = [stage["end"] - 1 for stage in contest["stages"] if stage["dropped"]]
    return [*([Series(label="some leave", x=ends, kind="rug", css="bad")] if ends else []), *curves[::-1]]


def _steps(points: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return the corners of a curve that holds each value until the next one."""
    x, y = [], []
    for (trials, score), before in zip(points, [None, *points], strict=False):
        if before is not None:
            x.append(trials)
            y.append(before[1])
        x.append(trials)
        y.append(score)
    return x, y


def _curves_range(contest: Mapping[str, Any], sign: float) -> tuple[float, float] | None:
    """Return the scores worth showing: those the sub-spaces came to, and the way of the first one there."""
    curves = [[sign * score for _, score in each["curve"]] for each in contest["subspaces"] if each["curve"]]
    if not curves:
        return None
    shown = []
    for losses in (sorted(curve[-1] for curve in curves), sorted(curves[0])):
        limit = _whisker(losses)
        shown += [loss for loss in losses if loss <= limit]
    ends = sign * min(shown), sign * max(shown)
    return min(ends), max(ends)


def _latent_charts(summary: Mapping[str, Any]) -> list[str]:
    """Draw where the trials are in the latent space, for wide and for narrow pages."""
    found, metric = summary["latent_map"], summary["metric"]
    if found is None:
        return []
    name = "loss" if metric["own"] else metric["name"]
    places = [
        Place(
            trial=point["trial"], algorithm=point["algorithm"], x=point["x"], y=point["y"], loss=point["loss"],
            text=format_number(point["score"]),
        )
        for point in found["points"]
    ]  # fmt: skip
    best = min(places, key=lambda place: (place.loss, place.trial), default=None)
    description = "" if best is None else f"The best is trial {best.trial}, {best.algorithm}, with {best.text}."
    return [
        latent_chart(
            places,
            title=f"trials in the latent space of all algorithms, with {name}",
            description=description,
            legend=name,
            centre=None if found["centre"] is None else tuple(found["centre"]),
            centre_label="the best of the source",
            width=width,
            css=css,
        )
        for width, _, css in _SIZES
    ]


def _heat_maps(summary: Mapping[str, Any]) -> list[str]:
    """Draw how unlike any two members are, for wide and for narrow pages."""
    found = summary["diversity"]
    matrix, members = found["matrix"], found["members"]
    if matrix is None:
        return []
    pairs = sorted((value, i, j) for i, row in enumerate(matrix) for j, value in enumerate(row[:i]))
    names = [f"{member['algorithm']} (trial {member['trial']})" for member in members]
    (least, a, b), (most, c, d) = pairs[0], pairs[-1]
    description = (
        f"Most alike are {names[a]} and {names[b]}, {format_number(least)}; least alike {names[c]} and {names[d]}, "
        f"{format_number(most)}."
    )
    unit = "target units" if found["in_target_units"] else "0 to 1"
    return [
        heat_map(
            matrix,
            names=[member["algorithm"] for member in members],
            keys=[str(member["trial"]) for member in members],
            title="difference between the predictions of any two members of the ensemble",
            description=description,
            legend=f"difference of two members ({unit})",
            width=width,
            css=css,
        )
        for width, _, css in _SIZES
    ]


def _algorithm_charts(summary: Mapping[str, Any]) -> list[str]:
    metric = summary["metric"]
    name = "loss" if metric["own"] else metric["name"]
    strips = [
        Strip(label=a["algorithm"], values=a["scores"], marked=a["best_score"])
        for a in summary["algorithms"]
        if a["scores"]
    ]
    y_range = _shown_range(summary, constant=False)
    return [
        strip_chart(
            strips,
            title=f"{name} of the trials of each algorithm",
            x_label=name,
            x_range=y_range,
            labels_above=css == "narrow",
            width=width,
            css=css,
        )
        for width, css in ((860, "wide"), (400, "narrow"))
    ]


def format_number(value: float | None) -> str:
    """Return a score with about four significant digits.

    Examples
    --------
    >>> [format_number(v) for v in (0.93214, 1234.5678, 1.5e9, 0.0000123, None)]
    ['0.9321', '1,234.6', '1.5e+09', '1.23e-05', '–']
    """
    if value is None:
        return "–"
    size = abs(value)
    if size >= 1e6 or 0 < size < 1e-4:
        return f"{value:.3g}"
    return f"{value:.4f}" if size < 10 else f"{value:.2f}" if size < 1000 else f"{value:,.1f}"


def format_seconds(value: float | None) -> str:
    """Return a duration in the units people use.

    Examples
    --------
    >>> [format_seconds(v) for v in (0.0042, 3.21, 75, 180, 7384, None)]
    ['4.2 ms', '3.2 s', '1 min 15 s', '3 min', '2 h 3 min', '–']
    """
    if value is None:
        return "–"
    if value == 0:
        return "0 s"
    if value < 1:
        return f"{1000 * value:.2g} ms" if value < 0.1 else f"{1000 * value:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    large, small = (
        (f"{minutes} min", f"{seconds} s") if minutes < 60 else (f"{minutes // 60:,} h", f"{minutes % 60} min")
    )
    return large if small.startswith("0 ") else f"{large} {small}"


def format_bytes(value: float | None) -> str:
    """Return a size in binary units.

    Examples
    --------
    >>> [format_bytes(v) for v in (512, 3_400_000, None)]
    ['512 B', '3.2 MiB', '–']
    """
    if value is None:
        return "–"
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def format_count(value: float | None) -> str:
    """Return a whole number with separators; a dash if it is not known."""
    return "–" if value is None else f"{value:,.0f}"


def format_percent(value: float | None) -> str:
    """Return a share in percent; a dash if it is not known."""
    return "–" if value is None else f"{100 * value:.3g} %"
