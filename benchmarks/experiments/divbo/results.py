"""Finished runs of the experiments on ensembles, as frames: a row per method, run and checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.experiments.divbo.methods import Method, Suite, display_unit, published_values
from benchmarks.experiments.divbo.report_forms import Row
from benchmarks.experiments.divbo.runs import EnsembleRun
from benchmarks.runs.circumstances import count_circumstances
from benchmarks.statistics.comparison import paired

COLUMNS = ["recording", "metric", "strategy", "seed", "trials", "validation", "test"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """What methods reported on the tables of one metric.

    Attributes
    ----------
    suite : Suite
        What it is compared with.
    metric : str
        Metric of all runs.
    runs : mapping of Method to list of EnsembleRun
        Runs by method; methods without a run are left out.
    recorded : bool
        Whether the runs are replays: values have no unit then, and seconds are those of the recording.
    """

    suite: Suite
    metric: str
    runs: Mapping[Method, Sequence[EnsembleRun]]
    recorded: bool = False

    @property
    def labels(self) -> list[str]:
        """Names of the methods."""
        return [method.label for method in self.runs]

    @property
    def tables(self) -> list[str]:
        """Names of the data sets, in the order of the suite."""
        there = {run.key.table for runs in self.runs.values() for run in runs}
        return [name for name in self.suite.tables if name in there] + sorted(there - set(self.suite.tables))

    @property
    def n_trials(self) -> int:
        """Trials of every run."""
        return max(len(run.losses) for runs in self.runs.values() for run in runs)

    @property
    def proposed(self) -> str | None:
        """Label of the paper's own method, if it has runs."""
        return self.suite.proposed if self.suite.proposed in self.labels else None

    def frame(self, labels: Iterable[str]) -> pd.DataFrame:
        """Return losses at all checkpoints, as `benchmarks.statistics.comparison` expects them.

        Holds only pairs of table and seed for which all methods with runs have one. A checkpoint before the first
        success is missing. Validation losses are the lowest so far, as the papers plot them: that of a pool chosen
        again may rise. Test losses are those of the ensemble at the checkpoint.
        """
        wanted = set(labels)
        rows = [
            (run.key.table, run.metric, method.label, run.key.seed, n, *(_scaled(x, run.unit) for x in losses))
            for method, runs in self.runs.items()
            if method.label in wanted
            for run in runs
            for n, *losses in _rows(run, method.form)
        ]
        frame = pd.DataFrame(rows, columns=COLUMNS).astype({"validation": float, "test": float})
        frame["validation"] = frame.groupby(["recording", "strategy", "seed"])["validation"].cummin()
        return paired(frame)

    def final(self, labels: Iterable[str]) -> pd.DataFrame:
        """Return `frame` after the last trial only."""
        frame = self.frame(labels)
        return frame[frame["trials"] == self.n_trials].reset_index(drop=True)


def by_metric(suite: Suite, runs: Mapping[Method, Sequence[EnsembleRun]], *, recorded: bool) -> list[Results]:
    """Split results by their metric, the error rate first."""
    metrics = dict.fromkeys(run.metric for found in runs.values() for run in found)
    return [
        Results(
            suite=suite,
            metric=metric,
            recorded=recorded,
            runs={
                method: mine
                for method, found in runs.items()
                if (mine := [run for run in found if run.metric == metric])
            },
        )
        for metric in sorted(metrics)
    ]


def published_rows(results: Sequence[Results]) -> pd.DataFrame:
    """Return a row per data set and method: our mean test loss beside the printed one, both in units of the target."""
    rows: list[dict[str, Any]] = []
    for part in results:
        values = published_values(part.suite)
        numbers = [printed.number for printed in part.suite.printed if printed.metric == part.metric]
        values = values[values["table"].isin(numbers) & (values["measure"] == "test")]
        said = values.drop_duplicates(["dataset", "method"]).set_index(["dataset", "method"])[["mean", "std"]]
        if part.recorded and part.metric != "accuracy":
            said = said[:0]  # recorded values are standardised
        for label in part.labels:
            final = part.final([label])
            for name, losses in final.groupby("recording")["test"]:
                unit = display_unit(str(name), part.metric)
                printed = said.loc[name, label] * unit if (name, label) in said.index else {}
                rows.append(
                    {
                        "table": name,
                        "metric": part.metric,
                        "method": label,
                        "repeats": len(losses),
                        "test": losses.mean(),
                        "test_std": losses.std(),
                        "published": printed.get("mean", np.nan),
                        "published_std": printed.get("std", np.nan),
                    }
                )
    return pd.DataFrame(rows)


def to_rows(results: Sequence[Results]) -> pd.DataFrame:
    """Return a row per run and form, after the last trial, with what the run cost."""
    rows: list[dict[str, Any]] = []
    for part in results:
        labels: dict[tuple[int, str], list[str]] = {}
        runs: dict[int, EnsembleRun] = {}
        for method, found in part.runs.items():
            for run in found:
                runs[id(run)] = run
                labels.setdefault((id(run), method.form), []).append(method.label)
        for run in runs.values():
            for form, losses in run.forms.items():
                n, validation, test = losses[-1]
                rows.append(
                    {
                        "table": run.key.table,
                        "metric": run.metric,
                        "strategy": run.key.strategy,
                        "form": form,
                        "method": ", ".join(labels.get((id(run), form), [])),
                        "seed": run.key.seed,
                        "trials": n,
                        "validation": _scaled(validation, run.unit),
                        "test": _scaled(test, run.unit),
                        "failed": sum(loss is None for loss in run.losses),
                        "seconds": run.seconds,
                        "suggest_seconds": round(sum(run.suggest_seconds), 2),
                        "training_seconds": run.training_seconds,
                        "cpu_seconds": round(run.deciding_cpu_seconds + sum(run.cpu_seconds), 2),
                        "memory_mib": max(filter(None, run.memory_mib.values()), default=np.nan),
                    }
                )
    return pd.DataFrame(rows)


def to_circumstances(results: Sequence[Results]) -> pd.DataFrame:
    """Return where, when and with what the runs were made: a row per distinct case, and how many runs it has."""
    runs = {id(run): run for part in results for found in part.runs.values() for run in found}.values()
    return count_circumstances({**run.circumstances, "code": run.code} for run in runs)


def _rows(run: EnsembleRun, form: str) -> Sequence[Row]:
    """Return the losses of a form; without any success a single missing one, so that the run counts as the worst."""
    return run.forms.get(form) or [(len(run.losses), None, None)]


def _scaled(loss: float | None, unit: float) -> float:
    return np.nan if loss is None else loss * unit
