"""The summary of a contest for the report, as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cashmere.analysis.contest import RecordedContest
from cashmere.base.text import clean_text, counted, redact
from cashmere.contests import Reason, Round, WorseLoss

MAX_STAGES = 12
"""Largest number of stages in a figure."""

_NAME_LIMIT = 80
_REASON_LIMIT = 300

_TESTS = {"friedman": ("Friedman", "χ²"), "wilcoxon": ("Wilcoxon", "W")}
"""Name of each test, and symbol of its statistic."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive rounds that are shown as one.

    Attributes
    ----------
    rounds : tuple of Round
        Those that are over.
    open : int or None
        Number of the open round, if it belongs here.
    """

    rounds: tuple[Round, ...]
    open: int | None = None

    @property
    def label(self) -> str:
        """Numbers of the first and the last round."""
        numbers = [each.number for each in self.rounds] + ([] if self.open is None else [self.open])
        return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"


def stages(contest: RecordedContest) -> list[Stage]:
    """Merge rounds without an elimination with the next one, so that a contest of many rounds has few stages.

    An open round counts once it has a trial. If there are still more than `MAX_STAGES`, those with the fewest
    eliminations are merged with their neighbours.
    """
    found: list[Stage] = []
    joined: list[Round] = []
    for each in contest.ledger.rounds:
        joined.append(each)
        if each.dropped:
            found.append(Stage(tuple(joined)))
            joined = []
    current = contest.ledger.open
    totals = contest.totals()
    if current is not None and any(len(contest.trials_of(i)) > totals[i] for i in current.alive):
        found.append(Stage(tuple(joined), current.number))
    elif joined:
        found.append(Stage(tuple(joined)))
    while len(found) > MAX_STAGES:
        n_dropped = [sum(len(each.dropped) for each in stage.rounds) for stage in found]
        k = min(range(len(found) - 1), key=lambda k: n_dropped[k] + n_dropped[k + 1])
        found[k : k + 2] = [Stage(found[k].rounds + found[k + 1].rounds, found[k + 1].open)]
    return found


def summarise_contest(contest: RecordedContest) -> dict[str, Any]:
    """Return the stages of a contest and the results of its sub-spaces.

    Parameters
    ----------
    contest : RecordedContest
        Its strings may come from outside; those of the summary are cleaned.

    Returns
    -------
    dict
        ``sentence``: the result in words. ``decided``: whether a sub-space has won. ``stages``: see `stages`; each with
        its ``label``, the number ``alive``, the least and the most ``trials`` of one of them, the ``test`` of its last
        round in words or None, who was ``dropped`` and why, the ``end`` (how many trials the run had made by then), and
        whether it is ``open``. ``subspaces``: those that are left first, then by the stage they left at, the latest
        first, the best first; each with its ``name``, ``trials``, ``best_loss``, ``best_score``, ``stage`` and
        ``round`` it left at or None, ``reason`` or None, ``cells`` (one for each stage it took part in: ``loss``,
        ``score`` and ``trials``), and ``curve``: pairs of a trial that improved the best score, or the last one before
        the end, and that score.
    """
    return _Summary(contest, stages(contest)).to_dict()


@dataclass(frozen=True, slots=True)
class _Summary:
    contest: RecordedContest
    stages: Sequence[Stage]

    def to_dict(self) -> dict[str, Any]:
        ends = self._ends()
        described = [self._stage(stage, end) for stage, end in zip(self.stages, ends, strict=True)]
        subspaces = [self._subspace(i, ends) for i in range(len(self.contest.ledger.names))]
        subspaces.sort(key=_standing)
        return {
            "sentence": self._sentence(subspaces, described),
            "decided": self._is_decided(),
            "stages": described,
            "subspaces": subspaces,
        }

    # ------------------------------------------------------------ stages

    def _ends(self) -> list[int]:
        """Return how many trials the run had made when each stage ended."""
        trials = [self.contest.trials_of(i) for i in range(len(self.contest.ledger.names))]
        ends = []
        for stage in self.stages:
            if stage.open is not None:
                ends.append(len(self.contest.memberships))
                continue
            last = stage.rounds[-1]
            latest = [trials[i][:total] for i, total in zip(last.alive, last.totals, strict=True)]
            ends.append(max((numbers[-1] + 1 for numbers in latest if numbers), default=0))
        return ends

    def _trials(self, subspace: int, stage: Stage) -> int:
        """Return how many trials a sub-space made in a stage."""
        made = sum(
            granted
            for each in stage.rounds
            for i, granted in zip(each.alive, each.granted, strict=True)
            if i == subspace
        )
        if stage.open is not None:
            made += len(self.contest.trials_of(subspace)) - self.contest.totals()[subspace]
        return made

    def _alive(self, stage: Stage) -> Sequence[int]:
        current = self.contest.ledger.open
        return stage.rounds[0].alive if stage.rounds else current.alive if current is not None else ()

    def _stage(self, stage: Stage, end: int) -> dict[str, Any]:
        trials = [self._trials(i, stage) for i in self._alive(stage)]
        dropped = [pair for each in stage.rounds for pair in zip(each.dropped, each.reasons, strict=True)]
        return {
            "label": stage.label,
            "alive": len(trials),
            "trials": [min(trials), max(trials)],
            "test": self._test(stage),
            "dropped": [{"name": self._name(i), "reason": self._reason(reason)} for i, reason in dropped],
            "end": end,
            "open": stage.open is not None,
        }

    def _test(self, stage: Stage) -> str | None:
        """Return the latest test in words, and the smallest p-value of those before it."""
        tested = [each for each in stage.rounds if each.test is not None and _is_finite(each.p_value)]
        if not tested:
            return None
        *before, last = tested
        name, symbol = _TESTS.get(last.test or "", (clean_text(last.test, 20), "statistic"))
        statistic = f"{symbol} = {last.statistic:.3g}, " if _is_finite(last.statistic) else ""
        text = f"{name}: {statistic}{_probability(last.p_value)}"
        if before:
            least = min(each.p_value for each in before if each.p_value is not None)
            text += f"; {_probability(least).replace('=', '≥')} in the rounds before"
        return text

    # ------------------------------------------------------------ sub-spaces

    def _subspace(self, i: int, ends: Sequence[int]) -> dict[str, Any]:
        stage_left, round_left, reason = next(
            (
                (s, each.number, self._reason(each.reasons[each.dropped.index(i)]))
                for s, stage in enumerate(self.stages)
                for each in stage.rounds
                if i in each.dropped
            ),
            (None, None, None),
        )
        trials = self.contest.trials_of(i)
        best = self.contest.best_loss(i, len(trials))
        cells, total = [], 0
        for stage in self.stages:
            if i not in self._alive(stage):
                break
            made = self._trials(i, stage)
            total += made
            loss = self.contest.best_loss(i, total)
            cells.append({"loss": loss, "score": self.contest.score(loss), "trials": made})
        end = len(self.contest.memberships) if stage_left is None else ends[stage_left]
        return {
            "name": self._name(i),
            "trials": len(trials),
            "best_loss": best,
            "best_score": self.contest.score(best),
            "stage": stage_left,
            "round": round_left,
            "reason": reason,
            "cells": cells,
            "curve": self._curve(trials, end),
        }

    def _curve(self, trials: Sequence[int], end: int) -> list[tuple[int, float | None]]:
        """Return the best score after every trial that improved it, and at the end."""
        curve: list[tuple[int, float | None]] = []
        best = math.inf
        for trial in trials:
            loss = float(self.contest.losses[trial])
            if math.isfinite(loss) and loss < best:
                best = loss
                curve.append((trial, self.contest.score(loss)))
        if curve and curve[-1][0] < end - 1:
            curve.append((end - 1, curve[-1][1]))
        return curve

    # ------------------------------------------------------------ words

    def _is_decided(self) -> bool:
        current = self.contest.ledger.open
        return len(self.contest.ledger.names) > 1 and current is not None and len(current.alive) == 1

    def _sentence(self, subspaces: Sequence[dict[str, Any]], described: Sequence[dict[str, Any]]) -> str:
        n, trials = len(subspaces), len(self.contest.memberships)
        if n < 2:
            return f"There was only one sub-space, so there was no contest; it got all {counted(trials, 'trial')}."
        first, others = subspaces[0], subspaces[1:]
        score = "" if first["best_score"] is None else f" (best {self._word} {first['best_score']:.4g})"
        left = [each for each in subspaces if each["stage"] is None]
        if not trials:
            return f"{n} sub-spaces take part; no trial has finished yet."
        if self._is_decided():
            decided = max((stage["end"] for stage in described if stage["dropped"]), default=0)
            return (
                f"{first['name']} won against {counted(n - 1, 'other sub-space')} after "
                f"{counted(decided, 'trial')}{score}. It got {first['trials']} of the "
                f"{counted(trials, 'trial')}, {_share(others)}."
            )
        if not left:
            return f"All {n} sub-spaces were evaluated exhaustively; {first['name']} was the best{score}."
        return (
            f"After {counted(trials, 'trial')} {len(left)} of {n} sub-spaces are left; {first['name']} leads{score}. "
            f"It got {counted(first['trials'], 'trial')}, {_share(others)}."
        )

    @property
    def _word(self) -> str:
        return "loss" if self.contest.scale is None else "score"

    def _name(self, subspace: int) -> str:
        return redact(clean_text(self.contest.ledger.names[subspace], _NAME_LIMIT)) or "(blank)"

    def _reason(self, reason: Reason) -> str:
        """Return a reason in words, with scores for losses."""
        scale = self.contest.scale
        if isinstance(reason, WorseLoss) and scale is not None:
            return reason.sentence(self._word, scale.score)
        return redact(clean_text(str(reason), _REASON_LIMIT))


def _standing(subspace: dict[str, Any]) -> tuple[float, float]:
    """Order sub-spaces: those left first, then the latest to leave, each group by loss."""
    stage, loss = subspace["stage"], subspace["best_loss"]
    return (-math.inf if stage is None else -stage, math.inf if loss is None else loss)


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _probability(p: float | None) -> str:
    return "p < 0.0001" if p is not None and p < 1e-4 else f"p = {p:.2g}"


def _share(others: Sequence[dict[str, Any]]) -> str:
    counts = [each["trials"] for each in others]
    least, most = min(counts), max(counts)
    each = "the other" if len(others) == 1 else "each of the others"
    return f"{each} {least}" if least == most else f"{each} from {least} to {most}"
