"""The result of a call: the model, the study and the facts of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from cashmere.base.shared_libraries import how_to_install, missing_shared_library
from cashmere.base.text import clean_text, counted
from cashmere.data.class_weights import SHIFTED_PROBABILITIES
from cashmere.evaluation.metrics import FAILED_METRIC, Metric, is_built_in
from cashmere.model.predictor import Predictor
from cashmere.records.cause import CauseKind
from cashmere.records.order import NOT_REPEATABLE
from cashmere.records.origin import OriginKind
from cashmere.records.trial import Observation
from cashmere.run.ensemble_builder import BASELINE
from cashmere.run.members import algorithm_of
from cashmere.storage.facts import RunFacts
from cashmere.storage.trial_tables import (
    calibration_text,
    perfection_text,
    predict_with_all_rows,
    repeats_text,
)
from cashmere.study import Study

_NAMED, _NAME_LIMIT, _REASON_LIMIT = 6, 80, 200
"""Most members and thresholds in the summary, and the longest name of a class."""

_FLAT_TRIALS = 3
"""So many trials with the same custom score are no accident."""


_EXCEPTIONS = frozenset({CauseKind.EXCEPTION, CauseKind.MISSING_PACKAGE})
"""Causes that a configuration shares with all others of its algorithm, if a library cannot be loaded."""

_ALWAYS_FAILING_TRIALS = 2
"""So many trials of an algorithm that fail alike are no accident, if none succeeds."""


class StopReason(StrEnum):
    """Why a search ended."""

    TRIALS = "trial budget spent"
    TIME = "time budget spent"
    INTERRUPT = "interrupted by the user"
    SPENT = "budget already spent"
    CLUSTER = "cluster lost"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FinishedRun:
    """A run at the end of a call.

    Attributes
    ----------
    folder : Path
        The run directory, which is no longer locked and may be deleted.
    metric : Metric
        What the search minimised.
    labels : tuple
        Classes in the order of their codes; empty for regression.
    study : Study
        The search.
    predictor : Predictor or None
        The ensemble in memory; None if it was not requested and there was no time to load it.
    weights : dict
        Weight of each member by trial number.
    rows : list of dict
        The committed trials, see `RunStore.rows`.
    facts : RunFacts
        Facts that the store keeps beside the trials.
    stop_reason : StopReason
        Why the search of this call ended.
    n_new : int
        Number of trials that this call has added.
    n_newest : int
        Number of newest rows that no model was fitted on; 0 if rows are not ordered in time.
    weighs_classes : bool
        Whether classes had weights.
    """

    folder: Path
    metric: Metric
    labels: tuple[Any, ...]
    positive: int
    study: Study
    predictor: Predictor | None
    weights: Mapping[int, float]
    rows: list[dict[str, Any]]
    facts: RunFacts
    stop_reason: StopReason
    n_new: int
    n_newest: int
    weighs_classes: bool

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the search."""
        return self.stop_reason is StopReason.INTERRUPT

    def algorithm_name(self, number: int) -> str:
        """Return the algorithm of a member; the constant predictor is called ``baseline``."""
        return "baseline" if number == BASELINE else algorithm_of(self.study.history[number])

    def summary(self) -> str:
        """Return the result in a few lines of text."""
        history, facts = self.study.history, self.facts
        best = None if history.incumbent is None else history.incumbent.loss
        constant = unseen_constant = facts.baseline_loss
        if facts.joined_losses is not None:  # on the rows of the ensemble
            best, constant = facts.joined_losses["single"], facts.joined_losses["constant"]
            unseen_constant = facts.joined_losses["constant_cross_fitted"]
        where = ", on later rows" if self.n_newest else ""
        cross_fitted = " (not cross-fitted, so probably too good)" if history.successes else ""
        if facts.cross_fitted_loss is not None:
            cross_fitted = f" (cross-fitted{where} {self._score(facts.cross_fitted_loss)})"
        members = sorted(self.weights.items(), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{self.algorithm_name(n)} #{n} {weight:.2f}" for n, weight in members[:_NAMED])
        more = f", and {len(members) - _NAMED} more" if len(members) > _NAMED else ""
        return (
            f"{counted(len(history), 'trial')}, {len(history.failures)} failed, {facts.elapsed_seconds or 0:.1f} s; "
            f"{self.stop_reason}\n"
            f"{self.metric.name}: ensemble {self._score(facts.ensemble_loss)}{cross_fitted}, "
            f"best single {self._score(best)}, "
            f"constant {self._constant(constant, unseen_constant)}\n"
            f"Members: {listed}{more}\n"
            f"{self._worth_line(constant, unseen_constant)}"
            f"{self._metric_lines()}"
            f"{self._failing_line()}"
            f"{self._newest_line()}"
            f"{self._repeats_line()}"
            f"{self._calibration_line()}"
            f"{self._class_weight_line()}"
            f"{self._decision_line()}"
            f"{self._perfection_line()}"
            f"{self._search_line()}"
            f"Digest: {facts.digest}{'' if self.study.order.is_repeatable else f' ({NOT_REPEATABLE})'}"
        )

    def _score(self, loss: float | None) -> str:
        return "-" if loss is None else f"{self.metric.score(loss):.5g}"

    def _constant(self, constant: float | None, unseen: float | None) -> str:
        """Return the score of the constant prediction; where the cross-fitted rows are others, on these as well."""
        own, other = self._score(constant), self._score(unseen)
        if own == other or self.facts.cross_fitted_loss is None:
            return own
        return f"{own} ({other} on {'later' if self.n_newest else 'the cross-fitted'} rows)"

    def _worth_line(self, constant: float | None, unseen_constant: float | None) -> str:
        loss, unseen = self.facts.ensemble_loss, self.facts.cross_fitted_loss
        if loss is None or constant is None or set(self.weights) == {BASELINE}:
            return ""
        if loss >= constant:
            return "Note: the ensemble is not better than the constant prediction. Do not rely on this model.\n"
        if unseen is None or unseen_constant is None or unseen < unseen_constant:
            return ""
        return (
            "Note: on rows that did not choose it, the ensemble is not better than the constant prediction. Do not "
            "rely on this model without more data.\n"
        )

    @property
    def metric_doubts(self) -> list[str]:
        """What seems wrong with a custom metric, each as one or more sentences."""
        doubts = (self._flat_metric, self._doubtful_metric, self._failed_metric)
        return [doubt for doubt in doubts if doubt is not None]

    @property
    def _flat_metric(self) -> str | None:
        """A doubt about a custom metric that is the same for every trial and the constant; None if there is none."""
        history = self.study.history
        losses = {history.baseline_loss, *(o.loss for o in history.successes)}
        if is_built_in(self.metric) or len(losses) != 1 or len(history.successes) < _FLAT_TRIALS:
            return None
        targets = "values"
        if self.labels:
            has_labels = getattr(self.metric.function, "labels", None) is not None
            first, last = str(self.labels[0]), str(self.labels[-1])
            targets = f"labels such as {first!r} and {last!r}" if has_labels else "codes 0, 1, ..."
        return (
            f"The metric {self.metric.name!r} is {self._score(losses.pop())} for every trial, and for the constant "
            "prediction, so the search could not tell them apart. Check what the function does with the targets that "
            f"it receives, which are {targets}."
        )

    @property
    def _doubtful_metric(self) -> str | None:
        """A doubt about a custom metric by which the constant prediction beats every trial; None if there is none."""
        history = self.study.history
        losses = [o.loss for o in history.successes if o.loss is not None]
        if is_built_in(self.metric) or not self.metric.greater_is_better or len(losses) < _FLAT_TRIALS:
            return None
        if not history.baseline_loss < min(losses):
            return None
        return (
            f"By the metric {self.metric.name!r}, the constant prediction is better than every trial. A function is "
            "maximised: if small values are good, pass metric_from_callable(function, greater_is_better=False, "
            "needs=...)."
        )

    @property
    def _failed_metric(self) -> str | None:
        """What a custom metric failed on, and for how many trials; None if it did not."""
        failed = [o for o in self.study.history.failures if o.error is not None and FAILED_METRIC in o.error.text]
        if not failed:
            return None
        names = list(dict.fromkeys(algorithm_of(o) for o in failed))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        text = failed[0].error.text if failed[0].error is not None else ""
        reason = clean_text(text.partition(FAILED_METRIC)[2].partition("). It gets")[0].lstrip(" ("), _REASON_LIMIT)
        return (
            f"The metric {self.metric.name!r} failed for {counted(len(failed), 'trial')} of "
            f"{', '.join(names[:_NAMED])}{more}, which the ensemble has to do without ({reason}). Let the function "
            "return a number for all predictions, for instance by clipping those out of range."
        )

    def _metric_lines(self) -> str:
        return "".join(f"Note: {text}\n" for text in self.metric_doubts)

    def _failing_line(self) -> str:
        """Name the algorithms that fail whenever they are tried, as if their library were missing."""
        by_name: dict[str, list[Observation]] = {}
        for observation in self.study.history:
            by_name.setdefault(algorithm_of(observation), []).append(observation)
        by_text: dict[str, list[str]] = {}
        for name, of in by_name.items():
            if (text := _same_exception(of)) is not None:
                by_text.setdefault(text, []).append(name)
        lines = []
        for text, names in by_text.items():
            shared = missing_shared_library(text)
            advice = "" if shared is None else f" {how_to_install(shared)}"
            what = f"each of the {sum(len(by_name[name]) for name in names)} trials of {', '.join(names)}"
            lines.append(f"Note: {what} failed: {clean_text(text, _REASON_LIMIT).rstrip('.')}.{advice}\n")
        return "".join(lines)

    def _newest_line(self) -> str:
        if not self.n_newest or predict_with_all_rows(self.facts, self.weights):
            return ""
        rows = counted(self.n_newest, "newest row")
        how = "cashmere refine RUN --refit, or in Python refine_run(RUN, refit=True), fits the members on all rows."
        if not is_built_in(self.metric):
            how = "refine_run(RUN, refit=True, own_objects={'metric': ...}) in Python fits the members on all rows."
        return f"Note: no model has seen the {rows}; {how}\n"

    def _repeats_line(self) -> str:
        text = repeats_text(self.facts, self.weights)
        label = "Refit" if predict_with_all_rows(self.facts, self.weights) else "Repeats"
        return "" if text is None else f"{label}: {text}\n"

    def _calibration_line(self) -> str:
        text = calibration_text(self.facts)
        return "" if text is None else f"Calibration: {text}\n"

    def _class_weight_line(self) -> str:
        return f"Note: {SHIFTED_PROBABILITIES}\n" if self.weighs_classes else ""

    def _perfection_line(self) -> str:
        facts = self.facts
        loss = facts.ensemble_loss if facts.cross_fitted_loss is None else facts.cross_fitted_loss
        text = perfection_text(loss, facts.baseline_loss)
        return "" if text is None else f"Note: {text}\n"

    def _search_line(self) -> str:
        history = self.study.history
        if not history or any(o.trial.origin.kind is not OriginKind.WARM_START for o in history):
            return ""
        text = "all trials are first configurations of the space; a larger budget lets the search choose others."
        opening = self.facts.opening or {}
        if opening.get("steps_first") and len(history) <= len(opening["steps"]):
            text = f"the trials are members of an earlier run. To search on: cashmere resume {self.folder} --budget 10m"
        return f"Note: {text}\n"

    def _decision_line(self) -> str:
        decision = self.facts.decision
        if decision is None or decision["thresholds"] is None:
            return ""
        pairs = list(zip(self.labels, decision["thresholds"], strict=True))
        pairs, joint = ([pairs[self.positive]], "from a probability of ") if len(pairs) == 2 else (pairs, "")
        shown = [f"{clean_text(label, _NAME_LIMIT)} {joint}{t:.3g}" for label, t in pairs]
        more = ", ..." if len(shown) > _NAMED else ""
        reasons = [f"for {decision['wanted']}"] if decision.get("wanted") else []
        if (gain := decision["gain"]) is not None:
            reasons.append(f"{decision['metric']} {'worse' if gain < 0 else 'better'} by {abs(gain):.4f}")
        why = f" ({'; '.join(reasons)})" if reasons else ""
        return f"Decision threshold: {', '.join(shown[:_NAMED])}{more}{why}\n"


def _same_exception(observations: Sequence[Observation]) -> str | None:
    """Return the exception with which all trials of an algorithm have failed, in one line; None without one."""
    causes = [o.error for o in observations if o.error is not None and o.error.kind in _EXCEPTIONS]
    texts = {str(cause).partition("\n")[0] for cause in causes}
    if len(observations) < _ALWAYS_FAILING_TRIALS or len(causes) < len(observations) or len(texts) != 1:
        return None
    return texts.pop()
