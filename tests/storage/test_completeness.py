from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace, Float

from cashmere.exceptions import CorruptStoreError
from cashmere.records.origin import Origin
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.storage.completeness import check_complete
from cashmere.storage.store import RunStore

SPACE = ConfigurationSpace()
SPACE.add(Float("x", (0.0, 1.0)))


def finished(number):
    trial = Trial(number=number, configuration=Configuration(SPACE, {"x": 0.5}), seed=1, origin=Origin.other("test"))
    predictions = np.full((4, 2), 0.5, np.float32)
    return trial, Outcome(status=TrialStatus.SUCCESS, loss=0.1, fold_losses=(0.1,), predictions=predictions)


def curve(trials):
    return [{"trials": trials, "seconds": 1.0, "ensemble_loss": 0.1}]


def test_trials_that_ended_before_one_with_a_lower_number_count(tmp_path):
    # Under a time budget, outcomes count as they arrive: a kill during a long first trial loses none of the others.
    with RunStore(tmp_path) as store:
        store.add([finished(1), finished(2)], finished_at=1.0)
        store.set_fact("curve", curve(2))
        assert store.rows() == []
        check_complete(tmp_path, store, lookahead=4)


def test_curve_of_more_trials_is_noticed(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([finished(0)], finished_at=1.0)
        store.set_fact("curve", curve(2))
        with pytest.raises(CorruptStoreError, match="holds 1 finished trials, but its own curve"):
            check_complete(tmp_path, store, lookahead=4)
