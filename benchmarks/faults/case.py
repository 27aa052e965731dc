"""One run that is hit a few times and then continued to its end, with everything checked on the way."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

import numpy as np

from benchmarks.faults.commands import (
    HANG_SECONDS,
    N_TRIALS,
    N_TRIALS_MORE,
    Command,
    Ending,
    StoredTrials,
    fit_command,
    fit_paths_command,
    predict,
    resume_command,
    stored_trials,
    write_long_table,
    write_table,
)
from benchmarks.faults.kinds import FAULTS, Fault, Kind
from benchmarks.faults.orphans import Orphans
from benchmarks.faults.outcome import FaultOutcome
from benchmarks.faults.whole import count_cut_short, damaged_files
from benchmarks.runs.code_version import commit
from benchmarks.runs.place import temporary_place
from cashmere.base.arrays import Float64
from cashmere.exceptions import CashmereError, NoSuccessfulTrialError
from cashmere.records.cause import Cause, CauseKind

_ORPHAN_SECONDS = 30.0
"""How long workers may outlive their coordinator: those still importing notice its end only afterwards."""

_SHARES = {"early": 0.15, "ending": 0.15, "any": 0.7}
"""When faults strike: in the first 200 ms, after the search, or at any instant of the whole command."""


class CaseKey(NamedTuple):
    """Which case: the name of a kind of fault, and two numbers that the random choices depend on."""

    kind: str
    seed: int
    case: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """One fault and what came of it.

    Attributes
    ----------
    kind : str
        Name of the kind of fault.
    seed, case : int
        What the random choices depend on.
    step : int
        Number of the fault within its case, from 0.
    strategy : str
        Strategy of the run.
    command : str
        What was hit: ``fit`` or ``resume``.
    instant : str
        How the instant was drawn: ``early``, ``ending`` or ``any``.
    seconds : float
        Age of the command at the fault.
    trials : int
        Finished trials in the store at the fault.
    what : str
        What was done.
    outcome : str
        Value of `FaultOutcome`. The check of the finished run counts for the last fault of a case.
    detail : str
        How the command ended; for failures, what was found.
    resume_seconds : float or None
        Duration of the command that brought the run to its end, after the last fault of a case.
    commit : str
        Version of the code.
    """

    kind: str
    seed: int
    case: int
    step: int
    strategy: str
    command: str
    instant: str
    seconds: float
    trials: int
    what: str
    outcome: str
    detail: str
    resume_seconds: float | None = None
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The run without faults that a run with faults must equal; of runs that follow paths, only the durations.

    Attributes
    ----------
    strategy : str
        Its strategy.
    digest : str
        Its digest.
    trials : dict
        See `stored_trials`.
    predictions : (n_rows, n_classes) array
        What its model predicts for its own table.
    fit_seconds, resume_seconds : float
        Durations of the whole run, and of a resume with nothing left to try.
    """

    strategy: str
    digest: str
    trials: StoredTrials
    predictions: Float64
    fit_seconds: float
    resume_seconds: float


def make_reference(strategy: str, *, follows_paths: bool = False) -> Reference:
    """Run a strategy without faults."""
    with temporary_place() as folder:
        table = folder / "table.csv"
        (write_long_table if follows_paths else write_table)(table)
        fit = (fit_paths_command if follows_paths else fit_command)(table, folder / "run", strategy)
        endings = [
            Command(command, output=folder / "output.txt").end() for command in (fit, resume_command(folder / "run"))
        ]
        for ending in endings:
            if ending.status != 0 or ending.digest is None:
                raise RuntimeError(f"The run without faults failed: {ending}")
        return Reference(
            strategy=strategy,
            digest=str(endings[0].digest),
            trials=stored_trials(folder / "run"),
            predictions=predict(folder / "run", table),
            fit_seconds=endings[0].seconds,
            resume_seconds=endings[1].seconds,
        )


def run_case(
    key: CaseKey, reference: Reference, orphans: Orphans, kinds: Mapping[str, Kind] = FAULTS
) -> list[InjectedFault]:
    """Hit a run up to `Fault.most_strikes` times, continue it to its end and compare it with the reference.

    Parameters
    ----------
    key : CaseKey
        Which case.
    reference : Reference
        What the run must equal.
    orphans : Orphans
        Knows the processes left behind.
    kinds : mapping
        Kinds of faults by name.

    Returns
    -------
    list of InjectedFault
        In order; empty if the command had ended before the first fault.
    """
    with temporary_place() as place:
        return _Case(key, kinds[key.kind].make(place), reference, orphans).run()


class _Case:
    """See `run_case`."""

    def __init__(self, key: CaseKey, fault: Fault, reference: Reference, orphans: Orphans) -> None:
        self._key, self._fault, self._reference, self._orphans = key, fault, reference, orphans
        self._rng = Random(f"{key.seed} {key.kind} {key.case}")
        self._place = fault.place
        self._table = self._place / "table.csv"
        self._temporary = self._place / "temporary"
        self._command: Command | None = None
        self._name = ""
        self._rows: list[InjectedFault] = []
        self._stored: StoredTrials = {}

    def run(self) -> list[InjectedFault]:
        (write_long_table if self._fault.follows_paths else write_table)(self._table)
        self._temporary.mkdir()
        try:
            for step in range(self._rng.randint(1, self._fault.most_strikes)):
                command = self._command or self._start()
                instant, seconds = self._wait(command)
                if command.has_ended:
                    break
                self._strike(command, step, instant, seconds)
                if self._fails():
                    break
            self._finish()
        finally:
            failure = self._fault.close()
            if self._command is not None:
                self._command.kill()
                self._orphans.wait(_ORPHAN_SECONDS, but=self._fault.companions)
        if failure is not None and self._rows:
            self._note(*failure)
        return self._rows

    def _start(self, *, more: str | None = None) -> Command:
        """Start the run, or continue it if it has begun, possibly with another budget."""
        begun = (self._fault.run / "run.json").exists()
        self._name = "resume" if begun else "fit"
        fit = fit_paths_command if self._fault.follows_paths else fit_command
        command = (
            resume_command(self._fault.run, more=more)
            if begun
            else fit(self._table, self._fault.run, self._reference.strategy)
        )
        self._command = Command(
            [*self._fault.prefix, *command, *self._fault.arguments],
            output=self._place / "output.txt",
            environment={"TMPDIR": str(self._temporary), **self._fault.environment},
        )
        return self._command

    def _wait(self, command: Command) -> tuple[str, float]:
        """Wait for the instant of the next fault; return how it was drawn, and when it is."""
        (instant,) = self._rng.choices(list(_SHARES), list(_SHARES.values()))
        is_long = self._name == "fit" or self._fault.follows_paths  # it continues for the rest of its time
        whole = self._reference.fit_seconds if is_long else self._reference.resume_seconds
        if instant == "early" and command.elapsed < 0.2:
            command.wait_until(self._rng.uniform(0.0, 0.2))
        elif instant == "ending":
            command.wait_for_text("finishing:", HANG_SECONDS)
            command.wait_until(command.elapsed + self._rng.uniform(0.0, 0.3 * self._reference.resume_seconds))
        else:
            instant = "any"
            if self._fault.waits_for_trials:
                command.wait_for_files(self._fault.run / "predictions", HANG_SECONDS)
                whole = max(whole - command.elapsed, whole / 4)  # what is left of it
            command.wait_until(command.elapsed + self._rng.uniform(0.0, whole))
        return instant, command.elapsed

    def _strike(self, command: Command, step: int, instant: str, seconds: float) -> None:
        """Hit the command, and judge its end unless it should go on."""
        before = stored_trials(self._fault.run)
        what = self._fault.strike(command, self._rng)
        if not what:
            return
        row = InjectedFault(
            **self._key._asdict(),
            step=step,
            strategy=self._reference.strategy,
            command=self._name,
            instant=instant,
            seconds=round(seconds, 3),
            trials=len(before),
            what=what,
            outcome=FaultOutcome.OK,
            detail="",
            commit=commit(),
        )
        self._rows.append(row)
        self._stored = before
        if not self._fault.goes_on:
            self._end(command)

    def _end(self, command: Command) -> Ending:
        """Wait for the end of a command that was hit, and judge it."""
        ending = command.end()
        self._command = None
        outcome = self._fault.judge(ending)
        self._note(outcome, str(ending) if not outcome.is_failure else f"{ending}\n{ending.output[-3000:]}")
        left = self._orphans.wait(_ORPHAN_SECONDS, but=self._fault.companions)
        if left:
            self._note(FaultOutcome.ORPHAN, "; ".join(left))
        self._fault.repair()
        self._check_store()
        return ending

    def _check_store(self) -> None:
        """Check that the store can be read and holds what it held before."""
        try:
            now, damaged = stored_trials(self._fault.run), damaged_files(self._fault.run)
        except CashmereError as error:
            self._note(FaultOutcome.CORRUPT, f"the store cannot be read: {error}")
            return
        lost = [number for number, trial in self._stored.items() if now.get(number) != trial]
        if lost:
            self._note(FaultOutcome.LOST, f"trials {lost} were stored and are gone or changed")
        if damaged:
            self._note(FaultOutcome.CORRUPT, f"missing or damaged: {', '.join(damaged)}")
        self._stored = now

    def _finish(self) -> None:
        """Bring the run to its end and compare it with the reference."""
        if not self._rows or self._fails():
            return
        ending = None
        if self._command is not None:  # it was hit and goes on, or ended before the next fault
            ending = self._end(self._command) if self._fault.goes_on else self._command.end()
            self._command = None
        if self._fails():
            return
        if self._fault.follows_paths:  # however little time is left, and however busy the machine is
            ending = self._start(more=f"{N_TRIALS_MORE}trials").end()
        elif ending is None or (self._fault.goes_on and ending.status != 0):
            ending = self._start().end()
        self._command = None
        if self._fault.follows_paths and ending.typed_error == NoSuccessfulTrialError.__name__:
            # On a machine so busy that all trials met their limit of time, a run without faults ends no better.
            self._note(FaultOutcome.TYPED, f"{ending.typed_error}, {ending}")
            self._check_store()
            return
        if ending.status != 0:
            outcome = FaultOutcome.HANG if ending.status is None else FaultOutcome.CORRUPT
            self._note(outcome, f"could not be continued: {ending}\n{ending.output[-3000:]}")
            return
        self._rows[-1] = replace(self._rows[-1], resume_seconds=round(ending.seconds, 3))
        if left := self._orphans.wait(_ORPHAN_SECONDS, but=self._fault.companions):
            self._note(FaultOutcome.ORPHAN, "; ".join(left))
        self._check_store()
        self._check_files()
        if self._fault.follows_paths:
            self._check_paths()
        else:
            self._compare(ending)

    def _compare(self, ending: Ending) -> None:
        """Compare trials, digest and predictions with the reference, except trials whose worker was killed."""
        now, expected = self._stored, self._reference.trials
        killed = [number for number, trial in now.items() if _was_killed(trial)] if self._fault.costs_trials else []
        wrong = [number for number, trial in expected.items() if number not in killed and now.get(number) != trial]
        if wrong or len(now) != N_TRIALS:
            self._note(FaultOutcome.CORRUPT, f"trials {wrong} differ from those without faults: {now}")
        if len(killed) > len(self._rows):
            self._note(FaultOutcome.LOST, f"{len(self._rows)} workers were killed, but trials {killed} failed")
        if not killed and ending.digest != self._reference.digest:
            self._note(FaultOutcome.CORRUPT, f"digest {ending.digest}, without faults {self._reference.digest}")
        try:
            predictions = predict(self._fault.run, self._table)
        except (CashmereError, OSError) as error:
            self._note(FaultOutcome.CORRUPT, f"the model cannot be used: {error}")
            return
        expected_predictions = self._reference.predictions
        if predictions.shape != expected_predictions.shape or (
            not killed and not np.array_equal(predictions, expected_predictions)
        ):
            self._note(FaultOutcome.CORRUPT, "the model predicts otherwise than without faults")

    def _check_paths(self) -> None:
        """Check that all trials are complete, including those cut short, and that the model can be used."""
        n_successes, n_cut_short, wrong = count_cut_short(self._fault.run)
        if not n_successes:
            wrong.append("no trial has succeeded")
        self._note(FaultOutcome.CORRUPT if wrong else FaultOutcome.OK, "; ".join(wrong))
        self._note(FaultOutcome.OK, f"{n_successes} successful trials, {n_cut_short} of them cut short")
        try:
            predictions = predict(self._fault.run, self._table)
        except (CashmereError, OSError) as error:
            self._note(FaultOutcome.CORRUPT, f"the model cannot be used: {error}")
            return
        if not np.isfinite(predictions).all() or predictions.shape != self._reference.predictions.shape:
            self._note(FaultOutcome.CORRUPT, f"the model predicts an array of the shape {predictions.shape}")

    def _check_files(self) -> None:
        """Look for temporary files in the run directory and in the folder for temporary files."""
        left = [path.relative_to(self._place) for path in self._fault.run.rglob(".*")]
        left += [path.relative_to(self._place) for path in self._temporary.iterdir()]
        if left:
            self._note(FaultOutcome.LEFT, ", ".join(map(str, left)))

    def _fails(self) -> bool:
        return bool(self._rows) and FaultOutcome(self._rows[-1].outcome).is_failure

    def _note(self, outcome: FaultOutcome, detail: str) -> None:
        """Add a finding to the latest fault; the first failure counts."""
        row = self._rows[-1]
        worse = outcome is not FaultOutcome.OK and not FaultOutcome(row.outcome).is_failure
        self._rows[-1] = replace(
            row,
            outcome=outcome if worse else row.outcome,
            detail="\n".join(filter(None, [row.detail, detail.replace(f"{self._place}{os.sep}", "")])),
        )


def _was_killed(trial: tuple[Any, ...]) -> bool:
    return trial[3] is not None and Cause.parse(trial[3]).kind in (CauseKind.WORKER_DIED, CauseKind.WORKER_NOT_READY)
