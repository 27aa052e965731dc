"""What a trial returns becomes a usable outcome, or a failure that says what is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cashmere.execution.messages import pack
from cashmere.execution.outcome_check import restored_checkpoint, restored_outcome, why_unusable
from cashmere.records.added_features import AddedFeatures
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.path import FollowedPath
from cashmere.records.trial import Outcome, TrialStatus

PATH = FollowedPath(parameter="rounds", positions=(10, 14), losses=(0.5, 0.4), chosen=14)
GOOD = Outcome(
    status=TrialStatus.SUCCESS,
    loss=0.25,
    fold_losses=(0.2, 0.3),
    predictions=np.full((4, 2), 0.5, dtype=np.float32),
    model=b"models",
    path=PATH,
    features=AddedFeatures(columns=20, seconds=0.5),
)
UNUSABLE = {
    "nothing": None,
    "another type": {"loss": 0.25},
    "status": replace(GOOD, status="success"),
    "fold losses": replace(GOOD, fold_losses=(0.2, "0.3")),
    "many folds": replace(GOOD, fold_losses=(0.2,) * 10_001),
    "model": replace(GOOD, model="models"),
    "cause": replace(GOOD, cut_short="too slow"),
    "text of a cause": replace(GOOD, cut_short=Cause(kind=CauseKind.OTHER, text=["too slow"])),
    "kind of a cause": replace(GOOD, cut_short=Cause(kind="slow")),
    "loss of a failure": Outcome(status=TrialStatus.TIMEOUT, loss=float("inf")),
    "nanoseconds": replace(GOOD, fit_seconds=2e12),
    "negative seconds": replace(GOOD, duration_seconds=-1.0),
    "endless seconds": replace(GOOD, fit_seconds=float("inf")),
    "memory": replace(GOOD, memory_mib=float("nan")),
    "list": replace(GOOD, predictions=[0.5]),
    "objects": replace(GOOD, predictions=np.array([None, None])),
    "whole numbers": replace(GOOD, predictions=np.array([0, 1])),
    "three dimensions": replace(GOOD, predictions=np.ones((2, 2, 2), dtype=np.float32)),
    "no rows": replace(GOOD, predictions=np.ones((0, 2), dtype=np.float32)),
    "path of another type": replace(GOOD, path=(10, 14)),
    "path without a loss": replace(GOOD, path=replace(PATH, losses=(0.5,))),
    "path that chose nothing": replace(GOOD, path=replace(PATH, chosen=12)),
    "path of numbers": replace(GOOD, path=replace(PATH, positions=10, losses=0.5)),
    "path of texts": replace(GOOD, path=replace(PATH, losses=("a", "b"))),
    "features of another type": replace(GOOD, features=(20, 0.5)),
    "half a column": replace(GOOD, features=AddedFeatures(columns=0.5, seconds=0.5)),
    "negative columns": replace(GOOD, features=AddedFeatures(columns=-1, seconds=0.5)),
    "features in no time": replace(GOOD, features=AddedFeatures(columns=20, seconds=float("nan"))),
}
NOT_FINITE = {
    "loss": replace(GOOD, loss=float("nan")),
    "no loss": replace(GOOD, loss=None),
    "predictions": replace(GOOD, predictions=np.array([np.nan, 1.0], dtype=np.float32)),
}
CASES = [*((case, CauseKind.UNUSABLE) for case in UNUSABLE.values())]
CASES += [(case, CauseKind.NOT_FINITE) for case in NOT_FINITE.values()]
NAMES = [*UNUSABLE, *NOT_FINITE]


@pytest.mark.parametrize(
    "outcome",
    [
        GOOD,
        replace(GOOD, predictions=np.ones(3), model=None, path=None, loss=np.float64(0.25)),
        Outcome(status=TrialStatus.ERROR, error=Cause.other("no luck")),
        Outcome(status=TrialStatus.STOPPED, fold_losses=(0.5,)),
    ],
)
def test_usual_outcomes_of_trials_are_usable(outcome):
    assert why_unusable(outcome) is None
    restored = restored_outcome(pack(outcome))
    assert (restored.status, restored.loss, restored.model) == (outcome.status, outcome.loss, outcome.model)


@pytest.mark.parametrize(("found", "kind"), CASES, ids=NAMES)
def test_anything_but_an_outcome_is_a_failure_that_says_so(found, kind):
    restored = restored_outcome(pack(found))
    assert (restored.status, restored.error.kind, restored.predictions) == (TrialStatus.ERROR, kind, None)
    assert len(str(restored.error)) > 20


@pytest.mark.parametrize(("found", "kind"), CASES, ids=NAMES)
def test_checkpoints_are_checked_in_the_same_way(found, kind):
    restored = restored_checkpoint(pack(found))
    assert (restored.status, restored.error.kind) == (TrialStatus.ERROR, kind)
    assert str(restored.error).startswith("checkpoint: ")


@pytest.mark.parametrize("status", [TrialStatus.TIMEOUT, TrialStatus.ERROR, TrialStatus.STOPPED, TrialStatus.ABORTED])
def test_checkpoint_is_a_success(status):
    assert restored_checkpoint(pack(Outcome(status=status))).error.kind is CauseKind.UNUSABLE
    assert restored_checkpoint(pack(GOOD)).path == PATH


@pytest.mark.parametrize("message", [b"", b"garbage", pack(GOOD)[:-20], b"\x80\x05K"])
def test_outcome_that_cannot_be_restored_is_a_failure(message):
    assert restored_outcome(message).error.kind is CauseKind.UNUSABLE
