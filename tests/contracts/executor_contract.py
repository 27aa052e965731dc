"""What every executor must do. A newcomer says how to make one and inherits the tests."""

from __future__ import annotations

import time
from concurrent.futures import wait
from fractions import Fraction

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.protocols import Executor
from cashmere.records.cause import CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})


def trial(number: int, x: float = 0.5) -> Trial:
    return Trial(number=number, configuration=Configuration(SPACE, values={"x": x}), seed=number)


def square(trial: Trial) -> Outcome:
    return Outcome(status=TrialStatus.SUCCESS, loss=trial.configuration["x"] ** 2)


def failing(trial: Trial) -> Outcome:
    raise RuntimeError(f"trial {trial.number} went wrong")


def no_number(trial: Trial) -> Outcome:
    return Outcome(status=TrialStatus.SUCCESS, loss=float("nan"))


def out_of_memory(trial: Trial) -> Outcome:
    raise MemoryError


def talking(trial: Trial) -> Outcome:
    import os
    import warnings

    print("noise")
    os.write(1, b"native noise")
    warnings.warn("a learner warns", stacklevel=1)
    return square(trial)


class Checkpointing:
    """An objective that hands over a checkpoint, then does something until it is stopped.

    Parameters
    ----------
    checkpoint, then : callable
        Trial -> the outcome to hand over, and what is done afterwards; what that returns is the trial's own outcome.
    """

    def __init__(self, checkpoint, then):
        self._checkpoint, self._then = checkpoint, then

    def __call__(self, trial):
        raise AssertionError("a worker supervises")

    def has_checkpoints(self, configuration):
        return True

    def run(self, trial, supervisor):
        while not supervisor.wants_checkpoint():
            time.sleep(0.05)
        supervisor.keep(self._checkpoint(trial))
        return self._then(trial) or Outcome(status=TrialStatus.SUCCESS, loss=0.125)


class ExecutorContract:
    """Inherit and override `make`."""

    @staticmethod
    def make() -> Executor:
        raise NotImplementedError("override make")

    @pytest.fixture(scope="class")
    @classmethod
    def executor(cls):
        """Return the executor that tests of the class share: to start workers takes seconds."""
        executor = cls.make()
        yield executor
        executor.shutdown()

    @pytest.fixture
    def new_executor(self):
        """Return an executor for a test that shuts it down, or watches how it starts."""
        executor = self.make()
        yield executor
        executor.shutdown()

    def test_outcome_comes_back(self, executor):
        outcome = executor.submit(square, trial(0, 0.5)).result(timeout=60)
        assert outcome.status is TrialStatus.SUCCESS
        assert outcome.loss == 0.25
        assert outcome.duration_seconds > 0

    def test_many_trials_all_finish(self, executor):
        futures = [executor.submit(square, trial(i, i / 20)) for i in range(20)]
        _, open_ = wait(futures, timeout=60)
        assert not open_
        assert [f.result().loss for f in futures] == [(i / 20) ** 2 for i in range(20)]

    def test_exception_becomes_an_error_that_names_it(self, executor):
        outcome = executor.submit(failing, trial(3)).result(timeout=60)
        assert outcome.status is TrialStatus.ERROR
        assert str(outcome.error).startswith("RuntimeError: trial 3 went wrong")
        assert outcome.loss is None

    def test_loss_that_is_not_finite_is_an_error(self, executor):
        outcome = executor.submit(no_number, trial(0)).result(timeout=60)
        assert outcome.status is TrialStatus.ERROR
        assert "nan" in str(outcome.error)

    @pytest.mark.parametrize("returned", [0.25, np.float32(0.25), Fraction(1, 4)])
    def test_loss_alone_is_a_success(self, executor, returned):
        outcome = executor.submit(lambda trial: returned, trial(0)).result(timeout=60)
        assert (outcome.status, outcome.loss, type(outcome.loss)) == (TrialStatus.SUCCESS, 0.25, float)
        assert outcome.duration_seconds > 0

    @pytest.mark.parametrize("returned", [None, "0.25", True, Outcome(status="success", loss=0.25)])
    def test_what_is_no_outcome_is_an_error(self, executor, returned):
        outcome = executor.submit(lambda trial: returned, trial(0)).result(timeout=60)
        assert (outcome.status, outcome.error.kind) == (TrialStatus.ERROR, CauseKind.UNUSABLE)

    def test_memory_error_is_a_memory_failure(self, executor):
        assert executor.submit(out_of_memory, trial(0)).result(timeout=60).status is TrialStatus.MEMORY

    def test_lambda_travels(self, executor):
        outcome = executor.submit(lambda t: Outcome(status=TrialStatus.SUCCESS, loss=1.5), trial(0)).result(timeout=60)
        assert outcome.loss == 1.5

    def test_goes_on_after_a_failure(self, executor):
        executor.submit(failing, trial(0)).result(timeout=60)
        assert executor.submit(square, trial(1)).result(timeout=60).status is TrialStatus.SUCCESS

    def test_every_future_is_done_after_shutdown(self, new_executor):
        futures = [new_executor.submit(square, trial(i)) for i in range(5)]
        new_executor.shutdown()
        assert not wait(futures, timeout=0).not_done

    def test_number_of_workers_is_positive(self, executor):
        assert executor.n_workers >= 1
