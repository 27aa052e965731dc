"""The facts that a run keeps besides its trials, each under a name."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from cashmere.base.json_files import Count, Finite, Positive, Seconds, ShortText, checked, parse_json

_MOST_FACTS = 1000

_Text = Annotated[str, Meta(max_length=2**20)]

_Member = Annotated[int, Meta(ge=-1, lt=10**9)]
"""Number of a trial; -1 is the constant predictor."""


class CurvePoint(TypedDict):
    """The ensemble after a number of trials."""

    trials: Count
    seconds: float
    ensemble_loss: float


class EnsembleFact(TypedDict, total=False):
    """What all kinds of ensembles have; see `cashmere.ensembles.ensemble_from_json`."""

    kind: ShortText
    members: list[_Member]
    weights: list[Finite]


class CalibrationFact(TypedDict):
    """See `cashmere.ensembles.calibration.Calibration`."""

    scales: list[Positive]
    offsets: list[Finite]
    gain: Finite


class JoinedLossesFact(TypedDict):
    """Losses of the best trial and the constant predictor on the ensemble's rows; see `cashmere.run.joined_losses`."""

    trial: Count
    single: Finite
    constant: Finite
    constant_cross_fitted: Finite


class SplitsFact(TypedDict):
    """Number of splits of the rows that a trial was fitted on, checksum of its mean predictions, and epoch.

    With `all_rows`, all splits but the first are fits on all rows, which have no predictions for unseen rows.
    """

    count: Annotated[int, Meta(ge=2, le=100)]
    predictions_crc: Count
    all_rows: NotRequired[bool]
    epoch: NotRequired[Annotated[int, Meta(ge=1, lt=10**6)]]


class LatenciesFact(TypedDict):
    """How long parts of a prediction take; see `cashmere.run.latencies`."""

    machine: ShortText
    batch_rows: Count
    seconds: dict[ShortText, tuple[Seconds, Seconds]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The facts of a run as its store keeps them; None for facts not known yet.

    The values are JSON as it was written. Only types are checked when they are read: code that shows a possibly damaged
    run must check the rest.

    Attributes
    ----------
    store : str
        Name of the store, also in ``run.json``, to detect a store that was emptied or replaced.
    goal : dict
        Budget of all calls together, see `cashmere.run.goal.Goal`. Known from the start.
    plan : str
        Budget that strategies may rely on, see `cashmere.records.work_budget.WorkBudget`.
    opening : dict
        What the search began with, if the user gave a file with it; see `cashmere.metalearning.opening`.
    columns : dict of str to list of int
        Columns of the matrices of each form and fold; None in runs of earlier versions.
    fold_digest : str
        Fingerprint of the folds of a custom splitter, see `cashmere.data.fold.fold_digest`; None for folds by name, and
        in runs of earlier versions.
    learns_logarithms : bool
        Whether learners learn logarithms of the target; None for what earlier versions did.
    meta_features : dict
        Meta-features of the table, if the strategy needs them; see `cashmere.metalearning.meta_features`.
    hints : list of str
        What the user was warned of when the table was read.
    baseline_loss : float
        Loss of the constant predictor; None if the metric is not defined for it.
    curve : list of dict
        The ensemble as it grew: ``trials``, ``seconds``, ``ensemble_loss``.
    contest : dict
        Rounds and sub-spaces, if the strategy is a contest; see `cashmere.analysis.contest`.
    latent_map : dict
        Positions of the trials, if the surrogate works on a latent space; see `cashmere.analysis.latent_map`.
    stop_reason : str
        Why the search ended, see `cashmere.run.finished.StopReason`. Known at the end of a call, like all that follow.
    ensemble : dict
        Members and how they are combined, see `cashmere.ensembles.ensemble_from_json`.
    ensemble_loss : float
        Loss of the ensemble on the rows that chose it.
    cross_fitted_loss : float
        Loss on rows that did not choose it; None if there was no time, or too few rows to estimate it.
    joined_losses : dict
        Losses of the best trial and the constant predictor on the rows of the ensemble, and of the latter on those of
        `cross_fitted_loss`: ``trial``, ``single``, ``constant``, ``constant_cross_fitted``. None where these equal
        the means over the folds, which the trials have.
    calibration : dict
        How probabilities are calibrated, see `cashmere.ensembles.calibration`; None if they are not.
    decision : dict
        How classes are decided, and the gain of thresholds.
    splits : dict
        Trials fitted on several splits of the rows, by number: ``count``, ``predictions_crc``, ``all_rows`` if the
        others are fits on all rows, and ``epoch`` unless it is the first; see `cashmere.run.repeats`.
    latency : dict
        ``single_row_ms`` and ``batch_rows_per_second``.
    latencies : dict
        Seconds of the parts of a prediction, by name; known once the run was refined. See `cashmere.run.latencies`.
    digest : str
        Fingerprint of trials, losses and weights.
    elapsed_seconds : float
        Wall-clock time of the calls; updated from time to time during a search.
    busy_seconds : float
        Sum of the durations of trials.
    utilisation : float
        Share of the workers' time spent on trials.
    suggest_seconds, ensemble_seconds : float
        Time spent on deciding trials, and on choosing ensembles.
    model_bytes : int
        Size of the model folder.
    """

    store: ShortText | None = None
    goal: dict[str, Any] | None = None
    plan: _Text | None = None
    opening: dict[str, Any] | None = None
    columns: dict[str, list[Count]] | None = None
    fold_digest: ShortText | None = None
    learns_logarithms: bool | None = None
    meta_features: dict[str, Any] | None = None
    hints: list[_Text] | None = None
    baseline_loss: float | None = None
    curve: list[CurvePoint] | None = None
    contest: dict[str, Any] | None = None
    latent_map: dict[str, Any] | None = None
    stop_reason: _Text | None = None
    ensemble: dict[str, Any] | None = None
    ensemble_loss: float | None = None
    cross_fitted_loss: float | None = None
    joined_losses: JoinedLossesFact | None = None
    calibration: CalibrationFact | None = None
    decision: dict[str, Any] | None = None
    splits: dict[Annotated[str, Meta(pattern="^[0-9]{1,9}$")], SplitsFact] | None = None
    latency: dict[ShortText, float] | None = None
    latencies: LatenciesFact | None = None
    digest: _Text | None = None
    elapsed_seconds: Seconds | None = None
    busy_seconds: float | None = None
    utilisation: float | None = None
    suggest_seconds: float | None = None
    ensemble_seconds: float | None = None
    model_bytes: Count | None = None

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> RunFacts:
        """Return the facts among stored values; skip unknown names, and accept earlier ones.

        Raises
        ------
        ValueError
            If a value has the wrong type.
        """
        renamed = {_EARLIER_NAMES[name]: value for name, value in stored.items() if name in _EARLIER_NAMES}
        facts = checked({n: value for n, value in {**renamed, **stored}.items() if n in FACT_NAMES}, cls)
        if facts.ensemble is not None:
            checked(facts.ensemble, EnsembleFact)
        return facts


_EARLIER_NAMES = {"honest_loss": "cross_fitted_loss"}
"""Names of facts in the stores of earlier versions."""

FACT_NAMES = frozenset(field.name for field in fields(RunFacts))
"""Names that `RunStore.set_fact` accepts."""


def read_facts(database: sqlite3.Connection) -> RunFacts:
    """Return the facts in the database of a run.

    Raises
    ------
    ValueError
        If a value is not JSON, or has the wrong type.
    """
    rows = database.execute("SELECT name, value FROM facts LIMIT ?", [_MOST_FACTS]).fetchall()
    known = {name: value for name, value in rows if name in FACT_NAMES or name in _EARLIER_NAMES}
    return RunFacts.from_stored({name: parse_json(checked(value, str)) for name, value in known.items()})
