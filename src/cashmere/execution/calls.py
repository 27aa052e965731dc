"""Calls of any function on an executor: each travels as a trial, and its value comes back in the outcome."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any

from ConfigSpace import ConfigurationSpace

from cashmere.exceptions import CallError
from cashmere.execution.messages import pack, unpack
from cashmere.protocols import Executor
from cashmere.records.trial import Outcome, Trial, TrialStatus


class CallPool:
    """Call functions on the workers of an executor, like an executor of `concurrent.futures`.

    Parameters
    ----------
    executor : Executor
        Runs the calls; it is not shut down here.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._n_submitted = 0

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Queue a call.

        Parameters
        ----------
        function : callable
            It travels once to each machine; workers must be able to import its module, unless it is ``__main__``.
        *arguments
            Travel with the call.

        Returns
        -------
        Future
            Of the value, or of what the function raised; of a `CallError` if the worker ended without either.
        """
        call = _Call(
            number=self._n_submitted,
            configuration=ConfigurationSpace().get_default_configuration(),
            seed=0,
            arguments=arguments,
        )
        self._n_submitted += 1
        value: Future[Any] = Future()

        def tell(outcome: Future[Outcome]) -> None:
            try:
                value.set_result(_value_of(outcome.result()))
            except BaseException as error:  # for whoever waits, not for this thread
                value.set_exception(error)

        self._executor.submit(_CalledFunction(function), call).add_done_callback(tell)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call(Trial):
    """A call disguised as a trial.

    Attributes
    ----------
    arguments : tuple
        Arguments of the function.
    """

    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _CalledFunction:
    """The objective of calls; equal for the same function."""

    function: Callable[..., Any]

    def __call__(self, trial: Trial) -> Outcome:
        assert isinstance(trial, _Call)
        try:
            answer = pack((True, self.function(*trial.arguments)))
        except Exception as error:
            answer = _packed_error(error)
        return Outcome(status=TrialStatus.SUCCESS, loss=0.0, model=answer)


def _packed_error(error: Exception) -> bytes:
    """Pack an exception with its traceback as a note; replace one that cannot be pickled."""
    error.add_note(traceback.format_exc())
    try:
        packed = pack((False, error))
        unpack(packed)
    except Exception:
        text = f"A call failed with an error that cannot be sent back ({type(error).__name__}: {error})."
        replaced = CallError(f"{text} Its traceback is a note of this one.")
        replaced.add_note(error.__notes__[-1])
        return pack((False, replaced))
    return packed


def _value_of(outcome: Outcome) -> Any:
    if outcome.status is TrialStatus.ABORTED:
        raise CancelledError
    if outcome.model is None:
        raise CallError(
            f"A call ended without a value: {outcome.error}. Look at the machine that ran it, then try again."
        )
    succeeded, value = unpack(outcome.model)
    if not succeeded:
        raise value
    return value
