"""Rows that a search must not see: predictions of trials for them are kept separately."""

from __future__ import annotations

import io
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.runs.search_task import SearchTask
from cashmere.base.files import write_atomically
from cashmere.protocols import Executor, Objective
from cashmere.records.trial import Outcome, Trial


class HeldOutRows:
    """An executor that shows the search only the rows it may see.

    The loss of an outcome becomes that of the visible rows.

    Parameters
    ----------
    executor : Executor
        Runs the trials.
    task : SearchTask
        Determines which rows are held out.
    folder : Path, optional
        Where predictions are kept, so that a continued search has those of its earlier trials.

    Attributes
    ----------
    predictions : dict of int to array
        Predictions of each successful trial for the held-out rows, by the number of the trial.
    """

    def __init__(self, executor: Executor, task: SearchTask, folder: Path | None = None) -> None:
        self.n_workers = executor.n_workers
        self.predictions: dict[int, np.ndarray] = {}
        self._folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self.predictions = {int(path.stem): np.load(path, allow_pickle=False) for path in folder.glob("*.npy")}
        self._executor, self._metric = executor, task.metric
        self._is_seen = task.is_seen
        self._y = task.y[task.validation_rows[task.is_seen]]

    def submit(self, objective: Objective, trial: Trial) -> Future[Outcome]:
        """Queue a trial whose outcome says nothing about the held-out rows."""
        seen: Future[Outcome] = Future()

        def show(whole: Future[Outcome]) -> None:
            try:
                seen.set_result(self._divide(trial, whole.result()))
            except BaseException as error:  # the search must see it, not the thread of the worker
                seen.set_exception(error)

        self._executor.submit(objective, trial).add_done_callback(show)
        return seen

    def shutdown(self) -> None:
        """Stop the executor."""
        self._executor.shutdown()

    def _divide(self, trial: Trial, outcome: Outcome) -> Outcome:
        if outcome.predictions is None:
            return outcome
        held_out = outcome.predictions[~self._is_seen]
        self._keep(trial.number, held_out)
        predictions = outcome.predictions[self._is_seen]
        loss = self._metric.loss(self._y, predictions, None)
        return replace(outcome, predictions=predictions, loss=loss, fold_losses=(loss,))

    def _keep(self, number: int, predictions: np.ndarray) -> None:
        """Keep predictions before the search hears of the trial, and so before its store does."""
        self.predictions[number] = predictions
        if self._folder is not None:
            content = io.BytesIO()
            np.save(content, predictions, allow_pickle=False)
            write_atomically(self._folder / f"{number}.npy", content.getvalue())
