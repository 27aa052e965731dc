"""The time that a call reserves for what comes after its search."""

from __future__ import annotations

from cashmere.records.budget import Deadline
from cashmere.run.growing_model import GrowingModel
from cashmere.run.measured_report import MeasuredReport
from cashmere.study import Study

_LOADING_SHARE = 0.25
"""Largest share of the budget that is reserved for loading the ensemble."""

_OPTIONAL_LOADING_SHARE = 0.05
"""The same if the ensemble is loaded only to measure its latency. If that takes longer, it is measured only if other
steps have left enough time."""

_SPARE_SECONDS = 0.3
"""Reserved for what is not measured: ending the workers, removing temporary files, ending the process. As these take
longer on a busy machine, the time of saving or of the report, whichever is longer, is added."""

_STOPPING_SECONDS, _STOPPING_SHARE = 0.5, 0.02
"""Reserved for stopping the workers and storing what their trials had achieved, and its largest share of the budget."""

_CROSS_FIT_SHARE = 0.05
"""Largest share of the budget that is reserved for cross-fitting, which also averages and calibrates the ensemble: with
1,000,000 rows and 60 s, where fits end early and their probabilities are underconfident, this reduced the log loss by
3 %."""

_MEASURING_SHARE = 0.2
"""Largest share of the budget that is reserved for measuring the latency of trials. The best are measured first."""


class ReservedTime:
    """How long the search of a call may go on so that its end fits, and which optional steps of the end do.

    Parameters
    ----------
    deadline : Deadline
        The clock of the call; without a limit, everything fits.
    study : Study
        The search.
    model : GrowingModel
        What is to be chosen, loaded and saved at the end.
    report : MeasuredReport
        What is to be written at the end.
    load : bool
        Whether the caller wants the ensemble in memory; otherwise it is loaded only if time is left.

    Notes
    -----
    A call ends within its time because the duration of each step after the search is bounded by how long it took during
    the search, on the same machine under the same load: choosing, loading and saving the ensemble, and writing the
    report, which is written from time to time for this purpose. The search ends when only the time for these steps is
    left. After it, an optional step is skipped if its bound exceeds the time left, and is stopped halfway if it takes
    longer; the choice of a few trials ago then stands.
    """

    def __init__(
        self, deadline: Deadline, study: Study, model: GrowingModel, report: MeasuredReport, *, load: bool
    ) -> None:
        self._deadline, self._study, self._model, self._report, self._load = deadline, study, model, report, load

    def left_for_search(self) -> float:
        """Return the seconds until the search must end, before repeats."""
        return self.left_for_trials() - self._for_repeats()

    def repeats_wait(self) -> bool:
        """Return whether time for repeats is reserved."""
        return self._for_repeats() > 0

    def _for_repeats(self) -> float:
        repeats = self._model.repeats
        if repeats.most == 0:
            return 0.0
        return repeats.reserved_seconds(self._study.history, self._model.builder.weights)

    def left_for_trials(self) -> float:
        """Return the seconds until the workers must end."""
        if self._deadline.seconds is None:
            return float("inf")
        cross_fitting = min(self._model.cross_fitting_seconds(), _CROSS_FIT_SHARE * self._deadline.seconds)
        stopping = min(_STOPPING_SECONDS, _STOPPING_SHARE * self._deadline.seconds)
        reserved = self._model.choosing_seconds() + cross_fitting + self._for_loading(self._deadline.seconds) + stopping
        if (limit := self._model.latency_limit) is not None:
            most = _MEASURING_SHARE * self._deadline.seconds
            reserved += min(limit.seconds_to_measure(self._study.history), most)
        return self.left_at_the_end() - reserved

    def _for_loading(self, budget_seconds: float) -> float:
        loading = self._model.loading_seconds()
        if self._load:
            return min(loading, _LOADING_SHARE * budget_seconds)
        return loading if loading <= _OPTIONAL_LOADING_SHARE * budget_seconds else 0.0

    def left_at_the_end(self) -> float:
        """Return the seconds left for optional steps after the search."""
        saving, reporting = self._model.saving_seconds(), self._report.seconds
        return self._deadline.remaining - saving - reporting - max(saving, reporting) - _SPARE_SECONDS

    def fits(self, seconds: float) -> bool:
        """Return whether there is time for an optional step after the search."""
        return self.left_at_the_end() >= seconds

    def is_over(self) -> bool:
        """Return whether no time is left for optional steps."""
        return not self.fits(0)
