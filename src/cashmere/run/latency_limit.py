"""Limit the latency of a run's ensembles: trials are measured when they arrive, and slow ones are left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

import pandas as pd

from cashmere.ensembles.limits import Cost, Limit
from cashmere.ensembles.stopping import Stop
from cashmere.model.files import Encoders
from cashmere.records.trial import History
from cashmere.run.ensemble_builder import EnsembleBuilder
from cashmere.run.latencies import Latencies
from cashmere.run.members import Members
from cashmere.run.run_directory import RunDirectory

_EXPECTED_SECONDS = 0.5
"""Expected time to measure a trial, until one is measured."""


class LatencyLimit:
    """Restricts the choice of the ensemble to members whose seconds for one row are known and keep a limit.

    Parameters
    ----------
    run : RunDirectory
        Open; keeps the measurements.
    members : Members
        The models of the trials.
    encoders : callable
        Returns the encoders of a number of splits.
    sample : DataFrame
        Rows to predict.
    seconds : float
        Longest time for one row.

    Attributes
    ----------
    seconds : float
        As given.
    least_seconds : float
        Time of the fastest trial; infinite until one is measured.
    """

    def __init__(
        self,
        run: RunDirectory,
        members: Members,
        encoders: Callable[[int], Encoders],
        sample: pd.DataFrame,
        seconds: float,
    ) -> None:
        self._run, self._members, self._encoders, self._sample = run, members, encoders, sample
        self.seconds, self.least_seconds = seconds, float("inf")
        self._cost: Cost | None = None
        self._spent, self._n_measured, self._n_done = 0.0, 0, 0
        self._factor = 1.0

    def apply(self, builder: EnsembleBuilder, history: History, *, stop: Stop) -> None:
        """Measure trials not measured yet, the best first, and limit what the builder may choose.

        If no trial keeps the limit, only the fastest can be chosen. Models that another machine trained cannot.

        Parameters
        ----------
        builder : EnsembleBuilder
            Chooses.
        history : History
            All that has been observed.
        stop : Stop
            Whether to stop measuring.
        """
        usable = self._members.usable(history)
        usable.sort(key=lambda o: o.loss if o.loss is not None else float("inf"))
        forms = {
            o.trial.number: self._run.space.encoding_of(o.trial.configuration)
            for o in usable
            if self._members.is_own(o.trial.number)
        }
        self._n_done = len(history.successes) - len(forms)  # the others will never be measured
        if not forms:
            return
        latencies = Latencies(self._run, self._members, self._encoders, forms, self._sample)
        clock, n_known = time.perf_counter(), sum(map(latencies.knows, forms))
        measured = latencies.measure(forms, lambda seconds: not stop())
        self._n_done += len(measured)
        if len(measured) > n_known:
            self._spent += time.perf_counter() - clock
            self._n_measured += len(measured) - n_known
        row, _ = latencies.costs(measured)
        self._cost = row.times(self._factor)
        self.least_seconds = min(self._cost.of([number]) for number in measured)
        # Sums are rounded.
        builder.limit([Limit(cost=self._cost, most=max(self.seconds, (1 + 1e-9) * self.least_seconds))])

    def seconds_to_measure(self, history: History) -> float:
        """Return how long it will take to measure the trials not measured yet."""
        each = self._spent / self._n_measured if self._n_measured else _EXPECTED_SECONDS
        return each * max(0, len(history.successes) - self._n_done)

    def correct(self, members: Collection[int], seconds: float) -> bool:
        """Scale latencies to that of a whole model, from the next choice on; return whether it breaks the limit.

        Parts that run one after the other take longer than the sum of their shortest times.

        Parameters
        ----------
        members : collection of int
            Members of the model.
        seconds : float
            Its seconds for one row.
        """
        if self._cost is None or not set(members) <= self._cost.own.keys():
            return False
        self._factor *= max(1.0, seconds / self._cost.of(members))
        return seconds > self.seconds >= self.least_seconds
