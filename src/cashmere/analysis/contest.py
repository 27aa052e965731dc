"""The stored contest among the sub-spaces of a run, read without the search space and without locking the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.contests import Ledger, Round
from cashmere.evaluation.metrics import ScoreScale
from cashmere.exceptions import CorruptStoreError, RunDirectoryError
from cashmere.records.trial import History
from cashmere.storage.remote_run import local_run
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import read_description, stored_scale

if TYPE_CHECKING:
    import pandas as pd

CONTEST_COLUMNS = (
    *("round", "subspace", "trials", "trials_in_all", "score", "loss"),
    *("test", "statistic", "p_value", "adjusted_p", "dropped", "reason"),
)


@runtime_checkable
class ContestStrategy(Protocol):
    """A strategy whose trials are those of a contest, `cashmere.strategies.contest.Contest` for example."""

    def ledger(self, history: History) -> Ledger:
        """Return the rounds of the contest so far."""
        ...

    def memberships(self, history: History) -> Sequence[int]:
        """Return the position in the ledger of every trial's sub-space, pending trials last."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedContest:
    """The contest of a run, finished or not.

    Attributes
    ----------
    ledger : Ledger
        Rounds of the contest.
    memberships : (n_trials,) tuple of int
        Position, in the ledger, of each trial's sub-space. An unfinished run may have stored a few trials more.
    losses : (n_trials,) array
        Of the same trials; NaN for failures.
    scale : ScoreScale or None
        Turns losses into scores; without it, scores are losses.
    """

    ledger: Ledger
    memberships: tuple[int, ...]
    losses: FloatArray
    scale: ScoreScale | None = None

    def to_json(self) -> dict[str, Any]:
        """Return ledger and memberships as plain data, as stored."""
        return {"ledger": self.ledger.to_json(), "memberships": list(self.memberships)}

    def trials_of(self, subspace: int) -> list[int]:
        """Return the numbers of a sub-space's trials."""
        return [trial for trial, member in enumerate(self.memberships) if member == subspace]

    def best_loss(self, subspace: int, n_trials: int) -> float | None:
        """Return the lowest loss in the first trials of a sub-space; None if none of them succeeded."""
        losses = self.losses[self.trials_of(subspace)[:n_trials]]
        found = losses[np.isfinite(losses)]
        return float(found.min()) if len(found) else None

    def score(self, loss: float | None) -> float | None:
        """Return a loss in the user's direction."""
        return loss if loss is None or self.scale is None else float(self.scale.score(loss))

    def frame(self) -> pd.DataFrame:
        """Return one row per round and sub-space.

        Returns
        -------
        DataFrame
            With the columns ``round``, ``subspace``, ``trials`` (of this round), ``trials_in_all``, ``score`` and
            ``loss`` (best up to the end of the round), ``test``, ``statistic``, ``p_value``, ``adjusted_p``,
            ``dropped``, ``reason``. The rows of the open round show its state so far.
        """
        import pandas as pd

        rows = [row for each in self.ledger.rounds for row in self._rows_of(each)]
        if self.ledger.open is not None:
            totals = self.totals()
            for i in self.ledger.open.alive:
                n = len(self.trials_of(i))
                rows.append(self._row(self.ledger.open.number, i, n - totals[i], n))
        return pd.DataFrame(rows, columns=list(CONTEST_COLUMNS))

    def totals(self) -> list[int]:
        """Return the number of trials granted to each sub-space in the completed rounds."""
        totals = [0] * len(self.ledger.names)
        for each in self.ledger.rounds:
            for i, total in zip(each.alive, each.totals, strict=True):
                totals[i] = total
        return totals

    def _rows_of(self, each: Round) -> list[dict[str, Any]]:
        reasons = dict(zip(each.dropped, map(str, each.reasons), strict=True))
        return [
            {
                **self._row(each.number, i, each.granted[k], each.totals[k]),
                "test": each.test,
                "statistic": each.statistic,
                "p_value": each.p_value,
                "adjusted_p": each.adjusted_p[k] if each.adjusted_p else None,
                "dropped": i in reasons,
                "reason": reasons.get(i),
            }
            for k, i in enumerate(each.alive)
        ]

    def _row(self, number: int, subspace: int, trials: int, trials_in_all: int) -> dict[str, Any]:
        loss = self.best_loss(subspace, trials_in_all)
        return {
            "round": number,
            "subspace": self.ledger.names[subspace],
            "trials": trials,
            "trials_in_all": trials_in_all,
            "score": self.score(loss),
            "loss": loss,
            "dropped": False,
        }


def contest_fact(strategy: object, history: History) -> dict[str, Any] | None:
    """Return a contest as plain data for the store; None if the strategy holds no contest."""
    if not isinstance(strategy, ContestStrategy):
        return None
    return {
        "ledger": strategy.ledger(history).to_json(),
        "memberships": [int(i) for i in strategy.memberships(history)],
    }


def recorded_contest(
    fact: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], scale: ScoreScale | None = None
) -> RecordedContest:
    """Join a stored contest with its trials.

    Parameters
    ----------
    fact : dict
        From `contest_fact`, possibly read back from JSON.
    rows : sequence of dict
        From `RunStore.rows`; those after the last trial of the contest are left out.
    scale : ScoreScale or None
        See `RecordedContest`.

    Raises
    ------
    ValueError
        If they are not a contest and its trials.
    """
    try:
        ledger, memberships = Ledger.from_json(fact["ledger"]), tuple(fact["memberships"])
        _check(ledger, memberships, n_trials=len(rows))
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(f"expected the ledger of a contest and the memberships of its trials ({error!r})") from error
    losses = [np.nan if row["loss"] is None else float(row["loss"]) for row in rows[: len(memberships)]]
    return RecordedContest(
        ledger=ledger, memberships=memberships, losses=np.array(losses, dtype=np.float64), scale=scale
    )


def read_contest(folder: str | Path) -> RecordedContest:
    """Read the contest of a run; the run may still be in progress, and the directory read-only.

    Parameters
    ----------
    folder : path
        The run directory.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run directory, or its strategy holds no contest.
    CorruptStoreError
        If a file is damaged.

    See Also
    --------
    cashmere.contests.Ledger : what the rounds hold.
    """
    with local_run(folder) as path:
        run, schema = read_description(path)
        with RunStore(path, read_only=True) as store:
            fact, rows = store.facts().contest, store.rows()
    settings = run.get("settings") or {}
    if fact is None:
        strategy = str(settings.get("strategy"))[:80]
        text = f"holds no contest: its strategy is {strategy!r}. Start a run with a contest, for example dac_hb."
        raise RunDirectoryError(folder, text)
    try:
        scale = stored_scale(settings, (schema.get("target") or {}).get("task_type"))
        return recorded_contest(fact, rows, scale)
    except ValueError as error:
        text = f"holds a contest that cannot be read ({error}). Restore it from a copy."
        raise CorruptStoreError(folder, text) from error


def _check(ledger: Ledger, memberships: Sequence[int], *, n_trials: int) -> None:
    """Raise ValueError unless everything has the shape and the range that readers rely on."""
    n = len(ledger.names)
    rounds = ledger.rounds
    numbers = [each.number for each in rounds] + ([] if ledger.open is None else [ledger.open.number])
    positions = [i for each in rounds for i in each.alive] + list(memberships)
    counts = [count for each in rounds for count in (*each.granted, *each.totals)]
    if ledger.open is not None:
        positions += ledger.open.alive
    reals = [value for each in rounds for value in (each.statistic, each.p_value, *each.adjusted_p)]
    sound = (
        all(isinstance(value, str) for value in ledger.names)
        and all(type(value) is int and value >= 0 for value in (*numbers, *positions, *counts))
        and all(value is None or isinstance(value, int | float) for value in reals)
        and all(each.test is None or isinstance(each.test, str) for each in rounds)
        and numbers == list(range(len(numbers)))
        and max(positions, default=-1) < n
        and len(memberships) <= n_trials
        and all(len(each.alive) == len(each.granted) == len(each.totals) == len(each.scores) for each in rounds)
        and all(len(each.adjusted_p) in (0, len(each.alive)) for each in rounds)
        and all(len(each.dropped) == len(each.reasons) and set(each.dropped) <= set(each.alive) for each in rounds)
        and all(set(after.alive) <= set(before.survivors) for before, after in pairwise(rounds))
        and (ledger.open is None or not rounds or set(ledger.open.alive) <= set(rounds[-1].survivors))
    )
    if not sound:
        raise ValueError("its parts contradict each other")
