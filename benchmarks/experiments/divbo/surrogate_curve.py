"""Figure 2 of the DivBO paper: how well surrogates order unseen configurations, by the number of observations.

    python -m benchmarks curve --recordings quake --seeds 5 --out curve

300 random successful configurations of a recording: up to 250 to learn from, the last 50 to be judged on. Surrogates
of diversity predict the distance of pairs of the 50, the forest of `bo` their losses; what counts is Kendall's tau-b.
Beside the boosters of LightGBM, the paper tries XGBoost and a forest on the same pairs.

Every number is written at once to curve.csv, so that a second call only adds missing ones. `tau` compares what the
package offers on more pairs and measures, and times it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.published import PUBLISHED
from benchmarks.recordings.finding import add_recordings_argument, find_recordings
from benchmarks.recordings.recorded_history import RecordedHistory, load_recorded
from benchmarks.reporting.charts import Curve, Panel, small_multiples
from benchmarks.reporting.report import Chart, Report, write_report
from benchmarks.reporting.table import Table, print_tables
from benchmarks.runs.row_file import RowFile
from cashmere.acquisition.diversity import cross_measure
from cashmere.analysis import kendall_tau
from cashmere.base.arrays import FloatArray
from cashmere.evaluation.metrics import get_metric
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.surrogates.forest import ProbabilisticForest
from cashmere.surrogates.pairwise import PairwiseSurrogate, choose_pairs
from cashmere.surrogates.prediction import PredictionSurrogate

N_CONFIGURATIONS, N_JUDGED = 300, 50
SIZES = (25, 50, 100, 150, 200, 250)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSurrogate:
    """Kendall's tau of a surrogate that has learned from so many observations."""

    recording: str
    seed: int
    observations: int
    surrogate: str
    tau: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Configurations to learn from, and `unseen` ones to be judged on.

    Attributes
    ----------
    X, unseen : (n, d) array
        Encoded configurations.
    distances, unseen_distances : (n, n) array
        Distances of the predictions of all pairs (DivBO's equation 3).
    losses, unseen_losses : (n,) array
        Error rates.
    predictions : sequence of (n_rows, n_classes) array
        Predictions of the known configurations for the validation rows.
    y : (n_rows,) array
        Classes of the validation rows.
    """

    X: FloatArray
    unseen: FloatArray
    distances: FloatArray
    unseen_distances: FloatArray
    losses: FloatArray
    unseen_losses: FloatArray
    predictions: Sequence[FloatArray]
    y: np.ndarray


def split(history: RecordedHistory, seed: int, n: int) -> Split:
    """Draw `N_CONFIGURATIONS`; the last `N_JUDGED` are unseen, the first n of the others known."""
    order = np.random.default_rng(seed).permutation(history.succeeded)[:N_CONFIGURATIONS]
    known, unseen = order[:-N_JUDGED][:n], order[-N_JUDGED:]
    encoder = SpaceEncoder(history.space)
    metric = get_metric("accuracy", history.task_type)

    def of(part: np.ndarray) -> tuple[FloatArray, FloatArray, FloatArray]:
        stack = history.validation[part]
        losses = np.array([metric.loss(history.y_validation, p, None) for p in stack])
        distances = cross_measure("div", stack, stack, history.y_validation)
        return encoder.encode(history.configurations[i] for i in part), distances, losses

    X, distances, losses = of(known)
    X_unseen, unseen_distances, unseen_losses = of(unseen)
    return Split(
        X=X, unseen=X_unseen, distances=distances, unseen_distances=unseen_distances, losses=losses,
        unseen_losses=unseen_losses, predictions=list(history.validation[known]), y=history.y_validation,
    )  # fmt: skip


def boosters(data: Split, rng: np.random.Generator) -> float:
    """Return the tau of LightGBM on pairs, with OpenBox's settings."""
    return _of_pairs(data, PairwiseSurrogate.openbox().fit(data.X, data.predictions, data.y, rng).predict_pairs)


def predictions(data: Split, rng: np.random.Generator) -> float:
    """Return the tau of our forest of predictions."""
    return _of_pairs(data, PredictionSurrogate().fit(data.X, data.predictions, data.y, rng).predict_pairs)


def xgboost(data: Split, rng: np.random.Generator) -> float:
    """Return the tau of XGBoost on pairs: ten boosters of the size of LightGBM's."""
    from xgboost import XGBRegressor

    models = [
        XGBRegressor(
            n_estimators=100, learning_rate=0.03, max_leaves=22, max_depth=10, grow_policy="lossguide",
            tree_method="hist", colsample_bytree=5 / 6, min_child_weight=3, n_jobs=1, random_state=int(seed),
        )
        for seed in rng.integers(2**31 - 1, size=10)
    ]  # fmt: skip
    return _of_models(data, models)


def forest(data: Split, rng: np.random.Generator) -> float:
    """Return the tau of a forest on pairs, with the settings of the forest of losses."""
    from sklearn.ensemble import RandomForestRegressor

    seed = int(rng.integers(2**31 - 1))
    options = {"n_estimators": 10, "max_features": 5 / 6, "min_samples_split": 3, "min_samples_leaf": 3}
    return _of_models(data, [RandomForestRegressor(**options, n_jobs=1, random_state=seed)])


def losses(data: Split, rng: np.random.Generator) -> float:
    """Return the tau of the forest of losses between predicted and true error rates."""
    fitted = ProbabilisticForest(variance="between").fit(data.X, data.losses, rng)
    return kendall_tau(fitted.predict(data.unseen)[0], data.unseen_losses)


SURROGATES: dict[str, Callable[[Split, np.random.Generator], float]] = {
    "boosters on pairs": boosters,
    "XGBoost on pairs": xgboost,
    "forest on pairs": forest,
    "forest of predictions": predictions,
    "forest of losses": losses,
}
"""By the names in the figure; the fourth is ours."""


def _of_pairs(data: Split, predict_pairs: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]) -> float:
    upper = np.triu_indices(len(data.unseen), k=1)
    return kendall_tau(predict_pairs(data.unseen, data.unseen)[0][upper], data.unseen_distances[upper])


def _of_models(data: Split, models: Sequence[Any]) -> float:
    """Return the tau of the mean of models that learn from rows of two configurations, in both orders."""
    first, second = np.nonzero(choose_pairs(len(data.X)))
    rows = np.concatenate([data.X[first], data.X[second]], axis=1)
    targets = data.distances[first, second]
    n = len(data.unseen)
    asked = np.concatenate([np.repeat(data.unseen, n, axis=0), np.tile(data.unseen, (n, 1))], axis=1)
    mean = np.mean([model.fit(rows, targets).predict(asked) for model in models], axis=0).reshape(n, n)
    return _of_pairs(data, lambda *_: ((mean + mean.T) / 2, mean))


def curve_table(rows: pd.DataFrame) -> Table:
    """Return mean tau and its standard error over seeds, and what the paper has after 250 observations."""
    published = pd.read_csv(PUBLISHED / "divbo.csv", dtype={"table": str})
    published = published[published["table"] == "figure2"]
    theirs = {(str(row.dataset), str(row.method)): str(row.mean) for row in published.itertuples()}
    names = [name for name in SURROGATES if name in set(rows["surrogate"])]
    cells = []
    for case, part in rows.groupby(["recording", "observations"], sort=True):
        recording, n = map(str, case)
        found = []
        for name in names:
            taus = part.loc[part["surrogate"] == name, "tau"]
            text = "-" if taus.empty else f"{float(taus.mean()):.2f}"
            text += f" ± {float(taus.to_frame().sem().iloc[0]):.2f}" if len(taus) > 1 else ""
            said = theirs.get((recording.rpartition("-")[0], name)) if n == str(SIZES[-1]) else None
            found.append(text if said is None else f"{text} ({said})")
        cells.append((recording, n, *found, str(part["seed"].nunique())))
    return Table(
        title="DivBO's figure 2: Kendall's tau between prediction and truth",
        columns=("recording", "observations", *names, "seeds"),
        rows=tuple(cells),
        note=f"Mean over seeds ± standard error, in brackets the paper's. Pairs of {N_JUDGED} unseen configurations; "
        "the forest of losses: their error rates.",
    )


def curve_chart(rows: pd.DataFrame) -> str:
    """Draw tau over the number of observations, a panel per recording."""
    panels = []
    for recording, part in rows.groupby("recording"):
        curves = []
        for name in SURROGATES:
            taus = part[part["surrogate"] == name].groupby("observations")["tau"]
            if len(taus):
                mean, error = taus.mean(), taus.sem().fillna(0.0)
                curves.append(Curve(label=name, x=[float(n) for n in mean.index], y=[*mean], error=[*error]))
        panels.append(Panel(title=str(recording), curves=curves))
    return small_multiples(panels, title="Kendall's tau of surrogates", x_label="observations", n_columns=2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings_argument(parser, ["quake"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--observations", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--out", type=Path, default=Path(".replay/curve"), help="folder")


def main(arguments: argparse.Namespace) -> None:
    """Compute missing rows, print and write table and chart."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    file = RowFile(arguments.out / "curve.csv", JudgedSurrogate)
    done = file.keys("recording", "seed", "observations", "surrogate")
    recordings = find_recordings(arguments.recordings)
    for recording in recordings:
        history = load_recorded(recording.path)
        if not history.task_type.is_classification or len(history.succeeded) < N_CONFIGURATIONS:
            raise SystemExit(f"{recording.name}: wanted are {N_CONFIGURATIONS} successes of a classification.")
        for seed in range(arguments.seeds):
            for n in arguments.observations:
                missing = [name for name in SURROGATES if (recording.name, seed, n, name) not in done]
                if not missing:
                    continue
                data = split(history, seed, n)
                for name in missing:
                    tau = SURROGATES[name](data, np.random.default_rng(seed))
                    case = {"recording": recording.name, "seed": seed, "observations": n, "surrogate": name}
                    file.add([JudgedSurrogate(**case, tau=tau)])
                console.print(f"{recording.name}, seed {seed}, {n} observations", highlight=False)
    wanted = {"seed": range(arguments.seeds), "observations": arguments.observations}
    rows = file.frame(recording=[recording.name for recording in recordings], **wanted).astype({"observations": int})
    table = curve_table(rows)
    print_tables(console, [table])
    chart = Chart(
        caption="Kendall's tau by the number of observations; bands: one standard error.", svg=curve_chart(rows)
    )
    report = Report(
        title="Surrogates by the number of observations",
        heading="DivBO's figure 2",
        sections=[table, chart],
        summary=[table],
    )
    console.print(f"Table and chart: {write_report(arguments.out, report)}", highlight=False)
