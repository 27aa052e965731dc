"""The loop of all runs on tables: prepare the folds, search in worker processes, keep the results and their cost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.runs.held_out_rows import HeldOutRows
from benchmarks.runs.search_cost import PeakMemory, TimedStrategy
from benchmarks.runs.search_task import SearchTask
from benchmarks.runs.trial_limit import TrialLimit
from cashmere.execution.cluster import Cluster
from cashmere.execution.pools import one_thread_executor
from cashmere.protocols import Strategy
from cashmere.records.budget import Budget
from cashmere.records.trial import History, Trial
from cashmere.storage.store import RunStore
from cashmere.strategies import make_strategy


@dataclass(frozen=True, kw_only=True, eq=False)
class FinishedSearch:
    """The results of a search, and their cost.

    Attributes
    ----------
    history : History
        All trials.
    strategy : Strategy
        The strategy that decided.
    held_out : list of array or None
        Predictions of every trial for the held-out rows, if the task has any; None for failures.
    final_loss : float or None
        Outcome of the best configuration on the final fold, if the task has one and a trial succeeded.
    suggest_seconds : list of float
        Wall seconds of deciding, of every trial.
    deciding_cpu_seconds : float
        CPU seconds of all decisions.
    memory_mib : dict of str to float
        See `benchmarks.runs.search_cost.PeakMemory`.
    """

    history: History
    strategy: Strategy
    held_out: list[np.ndarray | None]
    final_loss: float | None
    suggest_seconds: list[float]
    deciding_cpu_seconds: float
    memory_mib: dict[str, float]

    @property
    def training_seconds(self) -> float:
        """Wall seconds of all trials together."""
        return sum(o.duration_seconds for o in self.history)


def run_search(
    task: SearchTask,
    strategy: str,
    budget: Budget,
    *,
    limit: TrialLimit,
    n_workers: int = 1,
    lookahead: int = 1,
    cluster: Cluster | None = None,
    store: RunStore | None = None,
    announce: Callable[[int], None] = lambda n_trials: None,
) -> FinishedSearch:
    """Let a strategy search a table, its trials in worker processes of one thread each.

    Parameters
    ----------
    task : SearchTask
        The task to search.
    strategy : str
        A name of `cashmere.strategies`, options after a colon.
    budget : Budget
        Budget of the whole search.
    limit : TrialLimit
        Limit of one trial.
    n_workers, lookahead : int
        Trials at a time; how many are decided ahead of known results, see `cashmere.study.Study`.
    cluster : Cluster, optional
        Where the worker processes are, instead of this machine.
    store : RunStore, optional
        Keeps the trials and, in its folder, the prepared folds; a search that it holds is continued.
    announce : callable
        Called with the number of stored trials before the search.
    """
    with ExitStack() as stack:
        kept = None if store is None else store.folder
        folder = kept or Path(stack.enter_context(TemporaryDirectory(prefix="cashmere-suite-")))
        objective = limit.measure(task.prepare(folder / "prepared", task.folds))
        final = None if task.final_fold is None else limit.measure(task.prepare(folder / "final", [task.final_fold]))
        workers = one_thread_executor(n_workers, limits=limit.limits, cluster=cluster)
        stack.callback(workers.shutdown)
        held_out_folder = None if kept is None else kept / "held_out"
        held_out = HeldOutRows(workers, task, held_out_folder) if len(task.held_out) else None
        timed = TimedStrategy(make_strategy(strategy, task.space.configuration_space))
        study = task.make_study(timed, lookahead=lookahead, store=store)
        announce(len(study.history))
        memory = PeakMemory()
        history = study.optimize(objective, budget, executor=held_out or workers, callback=memory)
        final_loss = None
        if final is not None and (best := history.incumbent) is not None:
            trial = Trial(number=len(history), configuration=best.trial.configuration, seed=best.trial.seed)
            final_loss = workers.submit(final, trial).result().loss
    return FinishedSearch(
        history=history,
        strategy=timed.strategy,
        held_out=[] if held_out is None else [held_out.predictions.get(o.trial.number) for o in history],
        final_loss=final_loss,
        suggest_seconds=[study.suggest_seconds.get(o.trial.number, 0.0) for o in history],
        deciding_cpu_seconds=timed.cpu_seconds,
        memory_mib=memory.mib,
    )
