"""Whether trials that cannot win should stop after some folds: what it does to the ensemble.

    python -m benchmarks fold-racing --seeds 20
    python -m benchmarks fold-racing --data DIR --tables phoneme satimage --budget 60 --seeds 3

Without `--data`, on the recordings of this repository, at no cost: configurations come in random order, and each takes
its recorded CPU seconds. Recordings hold one holdout, so its rows are cut into five parts that stand for folds: a fold
costs a fifth, and folds differ by their rows only, not by their training rows. The time is what `--trials`
configurations take without a rule. With `--data`, searches of `AutoClassifier` and `AutoRegressor` on three quarters of
each table, judged on the rest. Every search is a row; the command continues where it was interrupted.

Rules, by the mean of the folds so far (Bergman, Purucker and Hutter, 2024): `forgiving` stops above the worst fold of
the best trial, `aggressive` above the mean of its folds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.experiments.first_light import evaluate
from benchmarks.recordings.finding import find_recordings
from benchmarks.recordings.recorded_history import RecordedHistory, load_recorded
from benchmarks.recordings.redrawn_split import redraw_split
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import find_tables
from cashmere.ensembles import select_ensemble
from cashmere.evaluation.metrics import Metric, default_metric
from cashmere.records.trial import TrialStatus

N_FOLDS = 5
_DIGITS = 3
"""Of budgets in rows."""

RULES: dict[str, Callable[[np.ndarray], float]] = {
    "none": lambda folds: np.inf,
    "forgiving": lambda folds: float(folds.max()),
    "aggressive": lambda folds: float(folds.mean()),
}
"""The loss above which a trial stops, from the folds of the best trial so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RacedSearch:
    """A search under one rule.

    Attributes
    ----------
    table : str
        Name of the recording or of the table.
    rule : str
        One of `RULES`.
    seed : int
        Seed of the order of configurations and of the parts, or of the search.
    budget : float
        Seconds; for recordings those of `seconds_of`, rounded.
    trials, stopped : int
        Number of finished trials, including stopped ones; number of stopped ones.
    validation, test, single : float
        Loss of the ensemble on the rows that chose it and on test rows; test loss of the best single configuration,
        NaN for searches on tables.
    """

    table: str
    rule: str
    seed: int
    budget: float
    trials: int
    stopped: int
    validation: float
    test: float
    single: float = float("nan")


Case = tuple[str, str, int, float]
"""Table, rule, seed and budget: what makes a search."""


def seconds_of(recording: RecordedHistory, seed: int, n_trials: int) -> float:
    """Return what the first `n_trials` configurations, in the order of a seed, take without a rule."""
    order = np.random.default_rng(seed).permutation(len(recording))
    return float(recording.seconds[order[:n_trials]].sum())


def replay(recording: RecordedHistory, metric: Metric, rule: str, *, seed: int, n_trials: int) -> RacedSearch:
    """Search a recording at random, for as long as `n_trials` configurations take without a rule."""
    recording = redraw_split(recording, seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(recording))
    part = rng.permutation(len(recording.y_validation)) % N_FOLDS
    budget = seconds_of(recording, seed, n_trials)
    spent, n_seen, n_stopped = 0.0, 0, 0
    best: np.ndarray | None = None
    finished: list[int] = []
    for i in order.tolist():
        seconds = float(recording.seconds[i])
        if recording.statuses[i] is TrialStatus.SUCCESS:
            folds = np.array([_loss(recording, metric, i, part == k) for k in range(N_FOLDS)])
            bar = np.inf if best is None else RULES[rule](best)
            means = np.cumsum(folds) / np.arange(1, N_FOLDS + 1)
            n_folds = next((k + 1 for k in range(N_FOLDS - 1) if means[k] > bar), N_FOLDS)
            seconds *= n_folds / N_FOLDS
        if spent + seconds > budget * (1 + 1e-9):
            break
        spent, n_seen = spent + seconds, n_seen + 1
        if recording.statuses[i] is not TrialStatus.SUCCESS:
            continue
        if n_folds < N_FOLDS:
            n_stopped += 1
            continue
        finished.append(i)
        if best is None or folds.mean() < best.mean():
            best = folds
    predictions = [recording.validation[i].astype(np.float32) for i in finished]
    chosen = select_ensemble(predictions, recording.y_validation, metric, tie="secondary")
    own = [_loss(recording, metric, i, slice(None)) for i in finished]
    mixed = sum(w * recording.test[i].astype(np.float64) for i, w in zip(finished, chosen.weights, strict=True) if w)
    single = recording.test[finished[int(np.argmin(own))]].astype(np.float64)
    return RacedSearch(
        table=recording.name,
        rule=rule,
        seed=seed,
        budget=round(budget, _DIGITS),
        trials=n_seen,
        stopped=n_stopped,
        validation=float(chosen.trajectory[-1]),
        test=metric.loss(recording.y_test, mixed, None),
        single=metric.loss(recording.y_test, single, None),
    )


def _loss(recording: RecordedHistory, metric: Metric, i: int, rows: Any) -> float:
    return metric.loss(recording.y_validation[rows], recording.validation[i][rows].astype(np.float64), None)


def search(table: Any, rule: str, *, seed: int, budget: float) -> RacedSearch:
    """Search on a table, with five folds."""
    from sklearn.model_selection import train_test_split

    from cashmere import AutoClassifier, AutoRegressor

    X, y = table.read()
    y = y.astype(str) if table.is_classification else y
    stratify = y if table.is_classification else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=stratify)
    kind = AutoClassifier if table.is_classification else AutoRegressor
    model = kind(budget=budget, resampling=f"{N_FOLDS}fold", fold_racing=rule, random_state=seed).fit(X, y)
    probabilities = model.predict_proba(X_test) if table.is_classification else None
    loss, _ = evaluate(y_test, model.predict(X_test), probabilities, getattr(model, "classes_", None))
    history = model.study_.history
    return RacedSearch(
        table=table.name,
        rule=rule,
        seed=seed,
        budget=budget,
        trials=len(history),
        stopped=sum(o.status is TrialStatus.STOPPED for o in history),
        validation=float(model._predictor.information["ensemble_loss"]),
        test=loss,
    )


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for each table, how each rule changes the test loss of the ensemble in per cent, with paired seeds.

    A positive change is a worse ensemble; ``worse`` is the share of seeds with one. Seeds that lack either of the two
    searches are left out.
    """
    columns = [name for name in ("trials", "stopped", "test", "single") if rows[name].notna().any()]
    wide = rows.pivot(index=["table", "seed"], columns="rule", values=columns)
    found = []
    for table, whole in wide.groupby("table"):
        for rule in [name for name in RULES if name != "none" and name in whole["test"]]:
            part = whole.dropna(subset=[("test", rule), ("test", "none")])
            change = 100 * (part["test"][rule] / part["test"]["none"] - 1)
            found.append(
                {
                    "table": table,
                    "rule": rule,
                    "seeds": len(change),
                    "trials": part["trials"][rule].sum() / part["trials"]["none"].sum(),
                    "stopped": part["stopped"][rule].sum() / part["trials"][rule].sum(),
                    "ensemble": change.median(),
                    "worse": (change > 0).mean(),
                    "single": 100 * (part["single"][rule] / part["single"]["none"] - 1).median()
                    if "single" in columns
                    else np.nan,
                }
            )
    return pd.DataFrame(found).round(2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds, from 0")
    parser.add_argument("--trials", type=int, default=60, help="configurations whose seconds are the time of a replay")
    parser.add_argument("--data", type=Path, help="folder of tables, to search instead of replaying")
    parser.add_argument("--tables", nargs="+", default=[], help="their names; without --data, of recordings")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of a search on a table")
    parser.add_argument("--out", type=Path, default=Path(".suites/fold_racing.csv"), help="rows; only grows")


def wanted_cases(arguments: argparse.Namespace) -> dict[Case, Callable[[], RacedSearch]]:
    """Return the searches of a command, in the order in which they are made."""
    cases: dict[Case, Callable[[], RacedSearch]] = {}
    if arguments.data is None:
        for recording in find_recordings(arguments.tables):
            history = load_recorded(recording.path)
            metric = default_metric(history.task_type)
            for seed in range(arguments.seeds):
                budget = round(seconds_of(history, seed, arguments.trials), _DIGITS)
                for rule in RULES:
                    run = partial(replay, history, metric, rule, seed=seed, n_trials=arguments.trials)
                    cases[history.name, rule, seed, budget] = run
        return cases
    if not arguments.tables:
        raise SystemExit("Searches on tables need their names, for example: --tables colic credit-g.")
    for seed in range(arguments.seeds):
        for table in find_tables(arguments.data, arguments.tables):
            for rule in ("none", "forgiving"):
                run = partial(search, table, rule, seed=seed, budget=arguments.budget)
                cases[table.name, rule, seed, arguments.budget] = run
    return cases


def main(arguments: argparse.Namespace) -> None:
    """Run what is missing and print the summary."""
    console, file = Console(width=120), RowFile(arguments.out, RacedSearch)
    names = ("table", "rule", "seed", "budget")
    cases, done = wanted_cases(arguments), file.keys(*names)
    with until_interrupted(console):
        for case, make in cases.items():
            if case not in done:
                file.add([make()])
    console.print(summary(file.frame_of(cases, *names)).to_string(index=False))
