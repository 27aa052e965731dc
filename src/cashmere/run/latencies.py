"""How long the parts of a prediction take: of one row, and of a batch.

An ensemble codes the rows, encodes them once in each form that a member reads, and calls its members: so its latency is
the sum of theirs, plus what they share. Each part is measured once and kept in the run, for the machine that measured
it.
"""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import pandas as pd

from cashmere.base.cores import available_cores
from cashmere.data.row_structure import is_in_time
from cashmere.data.task import Encoding
from cashmere.ensembles import WeightedEnsemble
from cashmere.ensembles.limits import Cost
from cashmere.model.files import Encoders
from cashmere.model.predictor import Predictor
from cashmere.run.members import Members
from cashmere.run.run_directory import RunDirectory

_CODING = "coding"

_TIMES = 7
"""How often a row is timed. The shortest time counts, as other programs can only lengthen it."""


class Latencies:
    """Seconds of the parts of a prediction, measured or remembered.

    Parameters
    ----------
    run : RunDirectory
        Open; keeps the measurements.
    members : Members
        The candidates.
    encoders : callable
        Returns the encoders of a number of splits.
    forms : mapping of int to Encoding
        Encoding of the rows that each candidate reads.
    sample : DataFrame
        Rows to predict; all of them are the batch.
    """

    def __init__(
        self,
        run: RunDirectory,
        members: Members,
        encoders: Callable[[int], Encoders],
        forms: Mapping[int, Encoding],
        sample: pd.DataFrame,
    ) -> None:
        self._run, self._members, self._encoders, self._forms = run, members, encoders, forms
        self._sample, self._machine = sample, _machine()
        self._inputs = (sample.iloc[[0]], sample)
        known = run.store.facts().latencies
        is_ours = known is not None and (known["machine"], known["batch_rows"]) == (self._machine, len(sample))
        self._seconds: dict[str, tuple[float, float]] = dict(known["seconds"]) if known and is_ours else {}

    def measure(self, numbers: Iterable[int], fits: Callable[[float], bool]) -> list[int]:
        """Measure candidates not measured yet: the first in any case, others as long as there is time.

        Parameters
        ----------
        numbers : iterable of int
            Trials, the most promising first.
        fits : callable
            Returns whether there is time for a step of this many seconds.

        Returns
        -------
        list of int
            Candidates with a measurement.
        """
        n_known = len(self._seconds)
        if _CODING not in self._seconds:
            self._seconds[_CODING] = _timed(self._run.schema.code, *self._inputs)
        measured: list[int] = []
        loaded = tuple(self._members.loaded)
        for number in numbers:
            if not self.knows(number) and (not measured or fits(self._members.loading_seconds(number))):
                self._seconds[self._name(number)] = self._of_member(number)
                self._members.forget(loaded)
            if self.knows(number):
                measured.append(number)
        if len(self._seconds) > n_known:
            fact = {"machine": self._machine, "batch_rows": len(self._sample), "seconds": self._seconds}
            self._run.store.set_fact("latencies", fact)
        return measured

    def knows(self, number: int) -> bool:
        """Return whether a candidate has a measurement."""
        return {self._name(number), self._form(number)} <= self._seconds.keys()

    def costs(self, numbers: Collection[int]) -> tuple[Cost, Cost]:
        """Return the seconds of ensembles of these measured candidates: for one row, and for the batch."""
        shares = {number: self._form(number) for number in numbers}
        row, batch = (
            Cost(
                fixed=self._seconds[_CODING][i],
                own={number: self._seconds[self._name(number)][i] for number in numbers},
                shares=shares,
                shared={form: self._seconds[form][i] for form in shares.values()},
            )
            for i in range(2)
        )
        return row, batch

    def _name(self, number: int) -> str:
        """Return the name of a member's file, which includes the number of splits."""
        return self._members.path(number).stem

    def _form(self, number: int) -> str:
        return f"{self._forms[number].value} of {self._members.splits(number)}"

    def _of_member(self, number: int) -> tuple[float, float]:
        """Return the seconds that a member takes besides coding and encoding."""
        encoders, form = self._encoders(self._members.splits(number)), self._form(number)
        predictor = Predictor(
            schema=self._run.schema,
            target=self._run.target,
            encoders=encoders,
            ensemble=WeightedEnsemble((number,), (1.0,)),
            models={number: self._members.load(number)},
            newest_fold_only=is_in_time(self._run.rows.structure),
            first_refit=self._run.first_refit,
            refits_alone=self._run.refits_alone,
        )
        if form not in self._seconds:
            asked = [encoders[k][self._forms[number]] for k in predictor.averaged_models(number)]
            row, batch = map(self._run.schema.code, self._inputs)
            self._seconds[form] = _timed(lambda coded: [each.transform(coded) for each in asked], row, batch)
        alone = _timed(predictor.predict_raw, *self._inputs)
        shared = zip(alone, self._seconds[_CODING], self._seconds[form], strict=True)
        of_row, of_batch = (max(0.0, whole - coding - encoding) for whole, coding, encoding in shared)
        return of_row, of_batch


def _timed(work: Callable[[Any], object], row: Any, batch: Any) -> tuple[float, float]:
    """Return how long `work` takes for one row (the shortest time), and for the batch."""
    work(batch)  # import libraries and fill caches
    found = []
    for rows in (*[row] * _TIMES, batch):
        clock = time.perf_counter()
        work(rows)
        found.append(time.perf_counter() - clock)
    return min(found[:_TIMES]), found[_TIMES]


def _machine() -> str:
    """Return an anonymous name for this machine."""
    facts = (platform.node(), platform.machine(), platform.processor(), str(available_cores()))
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
