"""How well a search orders configurations that it has not tried.

    python -m benchmarks loss-tau --seeds 10

A model of `cashmere.strategies.shared.loss_model` learns from n random configurations of a recording, failures
included, and is judged on up to 200 others. Judged are the order of their losses (Kendall's tau), how often the true
loss lies within one predicted standard deviation (0.68 if errors are normal and their size is known), and, where
failures are kept apart, how well the probability of success tells successes from failures (ROC AUC; 0.5 is chance).
Rows and validation rows are drawn by the seed. The same command continues where it was stopped.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from sklearn.metrics import roc_auc_score

from benchmarks.recordings.finding import add_recordings_argument, find_recordings
from benchmarks.recordings.recorded_history import RecordedHistory, load_recorded
from benchmarks.recordings.redrawn_split import redraw_split
from benchmarks.recordings.replay import ReplayObjective, constant_prediction
from benchmarks.runs.row_file import RowFile
from cashmere.analysis import kendall_tau
from cashmere.base.arrays import FloatArray, IntArray
from cashmere.evaluation.metrics import Metric, default_metric
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Observation, Trial
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies.shared.loss_model import LearnFrom, LossModel, learn_losses
from cashmere.strategies.shared.scaled_losses import Failures

MODELS: dict[str, tuple[LearnFrom, Failures]] = {
    "losses": ("losses", "worst_possible"),
    "losses, failures apart": ("losses", "apart"),
    "predictions": ("predictions", "apart"),
}
"""What is compared: what to learn from, and what to do with failures."""

MAX_TEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedModel:
    """A model that has learned from `observations` configurations, judged on others.

    Attributes
    ----------
    recording, seed, observations, model
        What was judged, see `MODELS`.
    tau : float
        Kendall's tau of the losses of unseen successes.
    within : float
        Share of them that lie within one predicted standard deviation; losses are capped as the model's are.
    success_auc : float
        ROC AUC of the probability of success; NaN if there is none, or nothing else failed.
    """

    recording: str
    seed: int
    observations: int
    model: str
    tau: float
    within: float
    success_auc: float


def observe(history: RecordedHistory, metric: Metric, positions: IntArray) -> History:
    """Return what a search knows after having tried some configurations."""
    objective = ReplayObjective.of(history, metric)
    observations = []
    for number, position in enumerate(positions.tolist()):
        configuration = history.configurations[position]
        trial = Trial(number=number, configuration=configuration, seed=number, origin=Origin(OriginKind.RANDOM))
        observations.append(Observation(trial=trial, outcome=objective(trial)))
    return History(
        observations=tuple(observations),
        worst_loss=metric.worst_loss,
        baseline_loss=metric.loss(history.y_validation, constant_prediction(history), None),
        metric=metric,
        targets=history.y_validation.astype(np.float64),
    )


def judge(history: RecordedHistory, seed: int, n: int) -> list[JudgedModel]:
    """Judge all models on the same configurations."""
    redrawn, metric = redraw_split(history, seed), default_metric(history.task_type)
    order = np.random.default_rng(seed).permutation(len(history))
    known, others = order[:n], order[n:][-MAX_TEST:]
    seen, encoder = observe(redrawn, metric, known), SpaceEncoder(history.space)
    rows, unseen = (encoder.encode(history.configurations[i] for i in part) for part in (known, others))
    succeeded = np.isin(others, history.succeeded)
    true = np.array([metric.loss(redrawn.y_validation, redrawn.validation[i], None) for i in others[succeeded]])
    judged = []
    for name, (learn_from, failures) in MODELS.items():
        rng = np.random.default_rng(seed)
        model = learn_losses(seen, rows, rng, learn_from=learn_from, failures=failures)
        mean, variance = model.surrogate.predict(unseen[succeeded])
        auc = float("nan")
        if model.success is not None and not succeeded.all():
            auc = float(roc_auc_score(succeeded, model.success.predict(unseen)[0]))
        judged.append(
            JudgedModel(
                recording=history.name,
                seed=seed,
                observations=n,
                model=name,
                tau=kendall_tau(mean, true),
                within=_share_within(model, seen, true, mean, np.sqrt(variance)),
                success_auc=auc,
            )
        )
    return judged


def _share_within(model: LossModel, seen: History, true: FloatArray, mean: FloatArray, std: FloatArray) -> float:
    """Return the share of true losses, brought to the model's scale and cap, within one standard deviation."""
    own = np.array([i for i, o in enumerate(seen) if o.succeeded])
    known, scaled = seen.losses[own], model.losses[own]
    order = np.argsort(known)
    # Scaling is linear up to the cap, so two losses below it give the line.
    low, middle = order[0], order[len(order) // 2]
    slope = (scaled[middle] - scaled[low]) / max(known[middle] - known[low], np.finfo(float).tiny)
    brought = np.minimum(scaled[low] + slope * (true - known[low]), scaled.max())
    return float(np.mean(np.abs(brought - mean) <= std))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings_argument(parser)
    parser.add_argument("--observations", type=int, nargs="+", default=[60, 200], help="how many are known")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0, help="first seed")
    parser.add_argument("--out", type=Path, default=Path(".replay/loss_tau.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(width=160), RowFile(arguments.out, JudgedModel)
    done = file.keys("recording", "seed", "observations")
    recordings = find_recordings(arguments.recordings)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    for recording in recordings:
        history = load_recorded(recording.path)
        for seed in seeds:
            for n in arguments.observations:
                if (history.name, seed, n) not in done:
                    file.add(judge(history, seed, n))
    names = [recording.name for recording in recordings]
    rows = file.frame(recording=names, seed=seeds, observations=arguments.observations).astype({"observations": int})
    columns = ["tau", "within", "success_auc"]
    means = rows.groupby(["observations", "model"], sort=False)[columns].mean()
    console.print(means.round(3).to_string())
    console.print(rows.pivot_table("tau", ["observations", "recording"], "model").round(3).to_string())
