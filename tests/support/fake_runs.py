"""Run directories made by hand with the real store, for tests of what reads them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from cashmere.data.column import ColumnKind
from cashmere.ensembles.weights import WeightedEnsemble
from cashmere.explanations import Explanation
from cashmere.explanations.effects import Effect
from cashmere.explanations.permutation import Importance
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.run import RunSettings
from cashmere.storage.directory import RUN_VERSION
from cashmere.storage.store import RunStore

ALGORITHMS = ("lightgbm", "random_forest", "logistic_regression", "mlp")

TRACEBACK = """ValueError: could not solve 12 of 40 rows
Traceback (most recent call last):
  File "/home/ada/work/.venv/lib/python3.12/site-packages/sklearn/base.py", line 1389, in wrapper
    return fit_method(estimator, *args, **kwargs)
  File "/root/project/learner.py", line 17, in fit
    raise ValueError("could not solve 12 of 40 rows")
ValueError: could not solve 12 of 40 rows
"""


def make_space(algorithms: tuple[str, ...] = ALGORITHMS) -> ConfigurationSpace:
    space = ConfigurationSpace(seed=0)
    choice = Categorical("algorithm", list(algorithms))
    space.add(choice)
    for i, name in enumerate(algorithms):
        rate = Float(f"{name.replace(':', '_')}:rate{i}", (1e-4, 1.0), log=True)
        depth = Integer(f"{name.replace(':', '_')}:depth{i}", (1, 64))
        space.add(rate, depth)
        space.add(EqualsCondition(rate, choice, name), EqualsCondition(depth, choice, name))
    return space


def make_run(
    folder: Path,
    *,
    n_trials: int = 40,
    failures: dict[int, tuple[TrialStatus, str]] | None = None,
    losses: list[float] | None = None,
    algorithms: tuple[str, ...] = ALGORITHMS,
    settings: dict[str, Any] | None = None,
    task: str = "binary",
    classes: tuple[Any, ...] = ("bad", "good"),
    columns: list[dict[str, Any]] | None = None,
    facts: dict[str, Any] | None = None,
    finished: bool = True,
    predictions: bool = False,
) -> Path:
    """Write a run directory; `facts` replace those of a finished run."""
    failures = failures or {}
    rng = np.random.default_rng(0)
    space = make_space(algorithms)
    if columns is None:
        columns = [{"name": f"amount_{i}", "kind": "numeric"} for i in range(7)]
        columns += [{"name": f"purpose_{i}", "kind": "categorical", "categories": ["a", "b", "c"]} for i in range(5)]
        columns += [
            {"name": "opened", "kind": "date"},
            {"name": "customer_id", "kind": "categorical", "dropped": "identifier: every value differs"},
            {"name": "country", "kind": "categorical", "dropped": "constant"},
        ]
    counts = [300, 700] + [10] * (len(classes) - 2) if classes else []
    y = np.repeat(np.arange(len(counts)), counts[: len(classes)]) if classes else np.linspace(0, 1, 1000)
    with RunStore(folder) as store:
        configurations = space.sample_configuration(max(2, n_trials))
        stored: dict[int, float] = {}
        for number in range(n_trials):
            trial = Trial(
                number=number, configuration=configurations[number], seed=number, origin=Origin(OriginKind.RANDOM)
            )
            seconds = float(rng.gamma(2.0, 2.0))
            if number in failures:
                status, error = failures[number]
                outcome = Outcome(status=status, error=error, duration_seconds=seconds)
            else:
                loss = 0.2 + 0.22 * math.exp(-number / 12) + 0.08 * rng.random() ** 2
                loss = losses[number] if losses is not None else loss
                stored[number] = loss
                outcome = Outcome(
                    status=TrialStatus.SUCCESS,
                    loss=loss,
                    fold_losses=(loss,),
                    duration_seconds=seconds,
                    fit_seconds=0.9 * seconds,
                    predict_seconds=0.1 * seconds,
                    memory_mib=250 + 40 * number,
                    predictions=predictions_of(y, task, number) if predictions else None,
                )
            store.add([(trial, outcome)], finished_at=3.0 * (number + 1))
        store.set_fact("baseline_loss", 0.5)
        best = sorted(stored, key=stored.__getitem__)[:5]
        curve = []
        for number in range(2, n_trials, 3):
            known = [stored[k] for k in stored if k <= number]
            if known:
                point = {"trials": number + 1, "seconds": 3.0 * number, "ensemble_loss": min(known) - 0.012}
                curve.append(point)
        store.set_fact("curve", curve)
        values: dict[str, Any] = {}
        if finished:
            ensemble = WeightedEnsemble((-1,), (1.0,))
            if len(best) == 5:
                ensemble = WeightedEnsemble(tuple(best), (0.36, 0.28, 0.16, 0.12, 0.08))
            values = {
                "stop_reason": "time budget spent",
                "ensemble": ensemble.to_json(),
                "ensemble_loss": curve[-1]["ensemble_loss"] if curve else None,
                "cross_fitted_loss": curve[-1]["ensemble_loss"] + 0.009 if curve else None,
                "latency": {"single_row_ms": 3.4, "batch_rows_per_second": 51234.0},
                "digest": "3f0c6a1b9d22",
                "busy_seconds": 211.0,
                "utilisation": 0.93,
                "suggest_seconds": 4.1,
                "ensemble_seconds": 1.7,
                "model_bytes": 3_456_789,
                "elapsed_seconds": 3.0 * n_trials,
            }
        for name, value in {**values, **(facts or {})}.items():
            store.set_fact(name, value)
    np.savez(folder / "table.npz", values=np.zeros((len(y), 1)), y=y)
    target = {"task_type": task, "classes": list(classes), "dtype": "object"}
    write(folder / "schema.json", {"columns": {"named": True, "columns": columns}, "target": target})
    asked = {**RunSettings(metric="roc_auc", target_name="credit_risk").to_json(), "budget": "5m", **(settings or {})}
    write(
        folder / "run.json",
        {
            "format": "cashmere run",
            "version": RUN_VERSION,
            "id": "0123456789ab",
            "created": "2026-02-03T04:05:06+0000",
            "settings": asked,
            "budgets": ["5m"],
            "table": {"rows": 1000, "columns": len(columns), "training_rows": 1000},
            "versions": {"python": "3.12.1", "cashmere-automl": "0.1.0", "numpy": "2.1.0"},
        },
    )
    return folder


def predictions_of(y: np.ndarray, task: str, number: int) -> np.ndarray:
    """Return what a trial predicts: four algorithms with errors in common, the better the later."""
    rng, shared = np.random.default_rng([7, number]), np.random.default_rng([8, number % 4])
    spread = 1.1 + 0.6 * math.exp(-number / 12)
    if task == "regression":
        noise = 0.1 * shared.normal(size=len(y)) + 0.1 * rng.normal(size=len(y))
        return (y + spread * noise).astype(np.float32)
    n_classes = int(y.max()) + 1
    noise = shared.normal(size=(len(y), n_classes)) + rng.normal(size=(len(y), n_classes))
    odds = np.exp(1.6 * np.eye(n_classes)[y] + spread * noise)
    return (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)


def some_failures() -> dict[int, tuple[TrialStatus, str]]:
    return {
        3: (TrialStatus.TIMEOUT, "over the time limit of 10 s"),
        9: (TrialStatus.TIMEOUT, "over the time limit of 10 s"),
        14: (TrialStatus.MEMORY, "over the memory limit of 2048 MiB (2101 MiB resident)"),
        21: (TrialStatus.MEMORY, "over the memory limit of 2048 MiB (2377 MiB resident)"),
        22: (TrialStatus.ERROR, TRACEBACK),
        30: (TrialStatus.ERROR, TRACEBACK.replace("12 of", "17 of")),
    }


def write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content))


def hostile_texts() -> list[str]:
    """Names that try to be something else: markup, formulas, terminal commands, other directions, paths, giants."""
    markup = [
        "<script>alert(1)</script>",
        "</title><script>alert(1)</script>",
        "</style><script>alert(1)</script>",
        "</pre></details><img src=x onerror=alert(1)>",
        '"><svg onload=alert(1)>',
        "' onmouseover='alert(1)",
        "<iframe src='https://example.org'></iframe>",
        "<a href='javascript:alert(1)'>x</a>",
        "<link rel=stylesheet href=//example.org/x.css>",
        "<meta http-equiv=refresh content='0;url=https://example.org'>",
        "<base href=//example.org/>",
        "<!-- ",
        "]]>",
        "&lt;b&gt;&#60;script&#62;",
        "{{ 7 * 7 }}{% raw %}",
        "{{ ''.__class__.__mro__ }}",
        "<sCrIpT\x00>alert(1)</sCrIpT>",
        "＜script＞",
        "<style>*{display:none}</style>",
        "<form action=//example.org><input autofocus onfocus=alert(1)>",
    ]
    terminal = [
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "\x1b]8;;http://x\x1b\\link",
        "\x9b2J",
        "\x1b[2J\x1b[H",
        "\x07\x08\x7f",
    ]
    direction = [
        "\u202egnp.exe",
        "a\u2066b\u2069",
        "\u200fabc",
        "\u061c",
        "\ufeffname",
        "a\u2028b\u2029c",
        "\u00adsoft",
    ]
    formulas = [f"{sign}cmd|' /C calc'!A0" for sign in "=+-@\t\r\0"]
    paths = ["../../etc/passwd", "C:\\Users\\ada\\x", "/home/ada/secret", "con.txt", "a/b\\c", ".", "..", "~"]
    others = [
        "",
        " ",
        "\n\n",
        "NaN",
        "None",
        "a" * 1_000_000,
        "é" * 100_000,
        "\ud800 lone",
        "\U000e0041tag",
        "%s %d {0}",
    ]
    base = [*markup, *terminal, *direction, *formulas, *paths, *others]
    wrapped = [f"{a}{b}" for a in ("x", "=", '"') for b in (*markup, *terminal, *direction, *paths)]
    nested = [f"{b}\n{b}" for b in (*markup, *terminal, *formulas)]
    return [*base, *wrapped, *nested]


def hostile_run(folder: Path) -> Path:
    """Write a run directory in which every name, message and fact is a hostile text."""
    texts = hostile_texts()
    failures = {i: (TrialStatus.ERROR, f"{text}\n{text}") for i, text in enumerate(texts) if i % 4 != 3}
    dropped = [{"name": text, "kind": "categorical", "dropped": f"duplicate of {text!r}"} for text in texts]
    used = [{"name": text, "kind": "categorical", "categories": texts[:20]} for text in texts]
    run = make_run(
        folder,
        n_trials=len(texts),
        failures=failures,
        algorithms=tuple(t for t in texts[:6]),
        columns=dropped[::2] + used[1::2],
        classes=tuple(texts[:40]),
        task="multiclass",
        settings={"target_name": texts[1], "metric": texts[0], "space": texts[3], "own_objects": ["metric", "space"]},
        facts={
            "stop_reason": texts[2],
            "digest": texts[4],
            "decision": {"metric": texts[0], "thresholds": [1 / 40] * 40, "gain": 0.1, "tuned": True},
        },
    )
    content = json.loads((run / "run.json").read_text())
    write(run / "run.json", {**content, "id": texts[5], "created": texts[6], "versions": {texts[7]: texts[8]}})
    return run


def weighted(*numbers: int) -> dict[str, Any]:
    """Return the fact of an ensemble in which these trials have equal weights."""
    return {"ensemble": WeightedEnsemble(numbers, (1 / len(numbers),) * len(numbers)).to_json()}


def make_explanation(
    names: list[str], outputs: tuple[str, ...] = ("good",), digest: str = "3f0c6a1b9d22"
) -> Explanation:
    """Return an explanation whose columns, levels and classes have these names; the digest is that of `make_run`."""
    n, n_outputs = len(names), len(outputs)
    rng = np.random.default_rng(0)
    columns = [(name,) for name in names[:-2]] + [tuple(names[-2:])]
    means = np.sort(rng.gamma(0.3, 0.05, len(columns)))[::-1]
    x = np.linspace(0, 5, 17)
    curve = np.sin(x)[:, None] * np.arange(1, n_outputs + 1) / n_outputs
    return Explanation(
        digest=digest,
        metric="roc_auc",
        greater_is_better=True,
        loss=0.2,
        n_rows=900,
        n_validation_rows=1000,
        repeats=5,
        n_columns=n + 1,
        outputs=outputs,
        importances=tuple(
            Importance(columns=group, mean=float(mean), lower=float(mean) - 0.01, upper=float(mean) + 0.01)
            for group, mean in zip(columns, means, strict=True)
        ),
        effects=(
            Effect(
                column=names[0],
                kind=ColumnKind.CATEGORICAL,
                points=tuple(names[:9]),
                partial_dependence=rng.random((len(names[:9]), n_outputs)),
                ale=None,
                share=np.full(len(names[:9]), 1 / n),
            ),
            Effect(
                column=names[1],
                kind=ColumnKind.NUMERIC,
                points=tuple(x.tolist()),
                partial_dependence=curve,
                ale=curve + 0.1,
                share=np.full(17, 1 / 17),
            ),
        ),
    )
