"""A search whose cluster is lost: trials run in this process, and the executor raises the error of a cluster."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import ClusterError, ClusterWarning
from cashmere.execution.in_process import InProcessExecutor
from cashmere.records.budget import Budget
from cashmere.run import RunSettings, StopReason, fit_run, front_door

TABLE = demo_table().sample(100, random_state=1)
X, Y = TABLE.drop(columns=DEMO_TARGET), TABLE[DEMO_TARGET]


def small_space(profile):
    from cashmere.space import make_space

    return make_space("default", profile).restricted_to(["logistic_regression"])


class LostAfter(InProcessExecutor):
    """Runs some trials, then its cluster is lost."""

    def __init__(self, n_trials: int) -> None:
        self._left = n_trials

    def submit(self, objective, trial):
        self._left -= 1
        if self._left >= 0:
            return super().submit(objective, trial)
        lost: Future = Future()
        lost.set_exception(ClusterError("tcp://host:8786", "was lost."))
        return lost


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """Return a function that fits a run of four trials whose cluster is lost after some of them."""
    settings = RunSettings(budget=Budget(trials=4), resampling="holdout", isolation="none", space=small_space)

    def fit(n_trials, **options):
        monkeypatch.setattr(front_door, "make_executor", lambda *_, **__: LostAfter(n_trials))
        return fit_run(tmp_path / "run", X, Y, settings, load=False, **options)

    return fit


def test_model_is_made_of_what_has_finished_and_the_run_goes_on(fit):
    with pytest.warns(ClusterWarning, match=r"at tcp://host:8786 was lost\. The model is made of what has finished"):
        finished = fit(2)
    assert finished.stop_reason is StopReason.CLUSTER
    assert [o.trial.number for o in finished.study.history] == [0, 1]
    assert (finished.folder / "model" / "manifest.json").exists()
    assert finished.facts.stop_reason == "cluster lost"
    again = fit(9, resume=True)
    assert [o.trial.number for o in again.study.history] == [0, 1, 2, 3]


def test_error_is_raised_if_nothing_has_succeeded(fit):
    with pytest.raises(ClusterError, match="was lost"):
        fit(0)
