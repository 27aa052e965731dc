"""The whole job in one run directory: prepare, search, build the ensemble, save. Estimators and command line use it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cashmere.arrays import AnyArray, FloatArray
from cashmere.budget import Budget, Deadline
from cashmere.data.prepared import PreparedFolds, prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.rows import canonical_rows
from cashmere.data.schema import CodedTable, TableSchema, infer_schema
from cashmere.data.target import TargetCoding
from cashmere.data.task import TaskProfile, TaskType
from cashmere.ensembles import Ensemble, WeightedEnsemble, build_ensemble
from cashmere.ensembles.pool import ValidationPool, cross_fitted_loss
from cashmere.evaluation.fold_model import FoldModel, fit_fold_model
from cashmere.evaluation.limits import Limits
from cashmere.evaluation.metrics import Metric, default_metric, get_metric, metric_from_callable
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.exceptions import CashmereError, NoSuccessfulTrialError, RunDirectoryError
from cashmere.executors import InProcessExecutor, WorkerProcessExecutor
from cashmere.persistence import dump_fold_models, load_fold_models
from cashmere.predictor import Encoders, Predictor, save_model, versions
from cashmere.progress import Progress, Silence, Status
from cashmere.protocols import Executor
from cashmere.run_directory import RUN_VERSION, TrainingRows, check_new, read_json, read_run_json, write_json
from cashmere.settings import RunSettings
from cashmere.space.space import Space
from cashmere.space.spaces import make_space
from cashmere.store import RunStore, write_atomically
from cashmere.strategies import make_strategy
from cashmere.study import Study, run_digest
from cashmere.trial import History, Observation

BASELINE = -1
"""Member number of the constant predictor, which is no trial."""

_INTERRUPTED = "interrupted by the user"

_MEMBERS_MIB = 4096.0
"""Disk the models of trials may take; beyond it those with the worst losses go."""


class Run:
    """One run directory being worked on.

    `Run.create` starts a run from a table, `Run.open` takes an existing one up; `search` and `finish` do the work.
    Use as a context manager: the directory is locked meanwhile.
    """

    def __init__(
        self,
        folder: Path,
        settings: RunSettings,
        *,
        schema: TableSchema,
        target: TargetCoding,
        data: TrainingRows,
        store: RunStore,
    ) -> None:
        self.folder, self.settings, self.schema, self.target = folder, settings, schema, target
        self._data, self._store = data, store
        metric = settings.metric or default_metric(target.task_type).name
        if callable(metric) and not isinstance(metric, Metric):
            labels = target.labels() if target.task_type.is_classification else None
            metric = metric_from_callable(metric, labels=labels)
        self.metric: Metric = get_metric(metric, target.task_type)
        self.profile = TaskProfile(
            task_type=target.task_type,
            n_rows=len(data.y),
            n_columns=len(schema.used),
            n_classes=target.n_classes,
            has_categories=schema.has_categories,
            needs_probabilities=self.metric.needs == "probabilities",
            fractional_weights=data.weight is not None,
        )
        self.space: Space = make_space(settings.space, self.profile)
        self.strategy = make_strategy(settings.strategy, self.space.configuration_space)
        self._splits = make_folds(
            data.y, target.task_type, settings.resampling, seed=settings.seed, n_columns=data.values.shape[1]
        )
        self.encoders: Encoders = []
        self.ensemble: Ensemble = WeightedEnsemble(members=(BASELINE,), weights=(1.0,))
        self.ensemble_loss: float | None = None
        self.honest_loss: float | None = None
        self.stop_reason = ""
        self._loaded: dict[int, list[FoldModel]] = {}
        self._load_rates: dict[str, float] = {}
        self._busy_seconds = float(store.fact("busy_seconds", 0.0))
        self._curve: list[dict[str, float]] = store.fact("curve", [])
        self._ensemble_seconds = 0.0
        self._ensemble_age = 0
        self._next_ensemble = 0.0

    # ------------------------------------------------------------ begin

    @classmethod
    def create(
        cls,
        folder: str | Path,
        frame: pd.DataFrame,
        y: Any,
        settings: RunSettings,
        *,
        weight: Any = None,
        named: bool = True,
    ) -> Run:
        """Start a run: learn the schema, put the rows in canonical order, write what a resume needs.

        Parameters
        ----------
        folder : path
            New or empty.
        frame : DataFrame
            Features, from `cashmere.data.frames.to_frame`.
        y : (n_rows,) array-like
            Target.
        settings : RunSettings
            What to do.
        weight : (n_rows,) array-like, optional
            Row weights; whole numbers are repetitions.
        named : bool
            Whether the columns have names of their own.

        Raises
        ------
        RunDirectoryError
            If the folder holds something else or another run.
        DataError, MetricError, UnknownNameError, InvalidParameterError
            If table, target or settings cannot be used.
        """
        folder = Path(folder)
        check_new(folder)
        is_new = not folder.exists()
        store = RunStore(folder)
        try:
            task: Any = None if settings.task == "auto" else settings.task
            target = TargetCoding.from_target(y, task if task in (None, "classification") else TaskType(task))
            own_splitter = not isinstance(settings.resampling, str)  # its row numbers are those of the user's table
            codes = target.encode(y, n_rows=len(frame))
            rows = canonical_rows(frame, codes, weight, keep_order=own_splitter)
            schema = infer_schema(rows.frame, named=named)
            coded = schema.code(rows.frame)
            data = TrainingRows(values=coded.values, texts=coded.texts, y=rows.y, weight=rows.weight)
            run = cls(folder, settings, schema=schema, target=target, data=data, store=store)
            budget = Budget.parse(settings.budget)
            run._set_goal(budget.trials, budget.seconds)
            data.save(folder / "table.npz")
            _save_sample(folder / "sample.parquet", rows.frame)
            write_json(folder / "schema.json", {"columns": schema.to_json(), "target": target.to_json()})
            write_json(
                folder / "run.json",
                {
                    "format": "cashmere run",
                    "version": RUN_VERSION,
                    "id": uuid.uuid4().hex[:12],
                    "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                    "settings": settings.to_json(),
                    "table": {"rows": len(frame), "columns": frame.shape[1], "training_rows": len(rows.y)},
                    "versions": versions(),
                },
            )
        except BaseException:
            store.close()
            if is_new:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        return run

    @classmethod
    def open(cls, folder: str | Path, **own_objects: Any) -> Run:
        """Take up a run that was interrupted, or has ended and gets more budget.

        Parameters
        ----------
        folder : path
            The run directory; it may have been moved.
        **own_objects
            The user's own metric, strategy, space or resampling, where the run was started with one.

        Raises
        ------
        RunDirectoryError
            If it is not the directory of a run, or an own object is missing.
        CorruptStoreError
            If a file is damaged.
        """
        folder = Path(folder)
        content = read_run_json(folder)
        stored = dict(content["settings"])
        missing = set(stored.pop("own_objects", ())) - own_objects.keys()
        if missing:
            raise RunDirectoryError(
                folder,
                f"was started with an own {' and '.join(sorted(missing))}; resume it from Python with the same object: "
                "AutoClassifier(..., run_directory=..., resume=True).fit(X, y).",
            )
        known = {f.name for f in fields(RunSettings)}
        settings = RunSettings(**{**{k: v for k, v in stored.items() if k in known}, **own_objects})
        described = read_json(folder / "schema.json")
        store = RunStore(folder)
        try:
            return cls(
                folder,
                settings,
                schema=TableSchema.from_json(described["columns"]),
                target=TargetCoding.from_json(described["target"]),
                data=TrainingRows.read(folder / "table.npz"),
                store=store,
            )
        except BaseException:
            store.close()
            raise

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exception: object) -> None:
        self._store.close()

    # ------------------------------------------------------------ search

    def search(self, budget: Budget, deadline: Deadline, *, progress: Progress | None = None) -> History:
        """Prepare the folds, evaluate the baseline, then search until the budget is spent or somebody stops it.

        Parameters
        ----------
        budget : Budget
            `trials` counts all trials of the run.
        deadline : Deadline
            The clock of the whole call; time for `finish` is kept free.
        progress : Progress, optional
            Told about every change.

        Notes
        -----
        Ctrl+C (in the main thread) ends the search cleanly; a second one raises KeyboardInterrupt.
        """
        progress = progress or Silence()
        progress.update(Status(metric=self.metric.name, phase="preparing"))
        folds = self._prepare()
        baseline_loss = self._evaluate_baseline(folds)
        settings = self.settings
        lookahead = settings.lookahead or max(8, 2 * settings.workers)
        self.study = Study(
            self.space.configuration_space,
            self.strategy,
            seed=settings.seed,
            lookahead=lookahead,
            warm_start=self.space.default_configurations(),
            store=self._store,
            worst_loss=self.metric.worst_loss,
            baseline_loss=baseline_loss,
            targets=self._pool.y.astype(np.float64),
        )
        limits = self._limits(budget)
        executor = self._executor(limits)
        objective = CrossValidationObjective(
            folder=(self.folder / "prepared").absolute(),
            space=self.space,
            metric=self.metric,
            n_threads=getattr(executor, "n_threads", 1),
        )
        begin = deadline.elapsed

        def committed(study: Study, observation: Observation) -> None:
            self._busy_seconds += observation.duration_seconds

        def tick() -> None:
            self._refresh_ensemble(deadline)
            progress.update(self._status(budget, deadline))

        with _stop_on_interrupt() as interrupted:
            try:
                self._refresh_ensemble(deadline)
                self.study.optimize(
                    objective,
                    Budget(trials=budget.trials or 10**9),
                    executor=executor,
                    stop=lambda: interrupted.is_set() or deadline.remaining <= self._reserve(),
                    callback=committed,
                    on_tick=tick,
                )
            finally:
                executor.shutdown()
        self.stop_reason = (
            _INTERRUPTED
            if interrupted.is_set()
            else "time budget spent"
            if deadline.remaining <= self._reserve()
            else "trial budget spent"
        )
        self._search_seconds = deadline.elapsed - begin
        return self.study.history

    def finish(self, deadline: Deadline, *, progress: Progress | None = None) -> Predictor:
        """Build the final ensemble, save the model and the facts about the run; return the predictor.

        Raises
        ------
        NoSuccessfulTrialError
            If trials were run and every one failed. The model folder then holds the constant predictor.
        """
        (progress or Silence()).update(self._status(None, deadline, phase="finishing"))
        history = self.study.history
        self._select_ensemble(history)
        predictor = self._predictor()
        sample = self._sample()
        latency = {}
        if sample is not None and deadline.remaining > 0.5:
            latency = predictor.measure_latency(sample, seconds=min(1.0, max(0.1, deadline.remaining / 4)))
        if deadline.remaining > 3 * self._ensemble_seconds + 0.3:
            self.honest_loss = self._cross_fitted_loss(history)
        predictor.information.update(self._information(), latency=latency)
        self._save_model(predictor.information)
        weights = list(self.ensemble_weights().items())
        utilisation = self._busy_seconds / max(1e-9, self.settings.workers * self.study.elapsed)
        for name, value in {
            "stop_reason": self.stop_reason,
            "ensemble": self.ensemble.to_json(),
            "ensemble_loss": self.ensemble_loss,
            "honest_loss": self.honest_loss,
            "latency": latency,
            "digest": run_digest(history, weights),
            "curve": self._curve,
            "busy_seconds": self._busy_seconds,
            "utilisation": utilisation,
            "suggest_seconds": float(np.sum(list(self.study.suggest_seconds.values()))),
            "model_bytes": sum(p.stat().st_size for p in (self.folder / "model").iterdir()),
        }.items():
            self._store.set_fact(name, value)
        if history.failures and not history.successes:
            failures = [(o.trial.number, _algorithm(o), o.status.value, first_line(o.error)) for o in history.failures]
            raise NoSuccessfulTrialError(failures, _advice(failures))
        return predictor

    def ensemble_weights(self) -> dict[int, float]:
        """Return the weight of each member (trial number); equal shares where members are combined otherwise."""
        members = self.ensemble.members
        weights = getattr(self.ensemble, "weights", (1 / len(members),) * len(members))
        return dict(zip(members, weights, strict=True))

    def algorithm_name(self, number: int) -> str:
        """Return the algorithm of a member; the constant predictor is called ``baseline``."""
        return "baseline" if number == BASELINE else _algorithm(self.study.history[number])

    @property
    def n_stored(self) -> int:
        """Number of finished trials in the store."""
        return len(self._store.rows())

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the search."""
        return self.stop_reason == _INTERRUPTED

    def extend(self, budget: Budget | None) -> Budget | None:
        """Return the budget of a further call.

        Parameters
        ----------
        budget : Budget or None
            On top of what is spent; None asks for the rest of the earlier budget.

        Returns
        -------
        Budget or None
            For `search`: the total number of trials, and the seconds from now. None if nothing is left.
        """
        spent = float(self._store.fact("elapsed_seconds", 0.0))
        rows = self._store.rows()
        spent = max([spent, *(row["finished_at"] for row in rows)])
        if budget is not None:
            trials = None if budget.trials is None else len(rows) + budget.trials
            until = None if budget.seconds is None else spent + budget.seconds
            self._set_goal(trials, until)
            return Budget(trials=trials, seconds=budget.seconds)
        goal = self._store.fact("goal") or {"trials": None, "seconds": None}
        seconds = None if goal["seconds"] is None else goal["seconds"] - spent
        if (goal["trials"] is not None and len(rows) >= goal["trials"]) or (seconds is not None and seconds < 1):
            return None
        return Budget(trials=goal["trials"], seconds=seconds)

    def _set_goal(self, trials: int | None, seconds: float | None) -> None:
        self._store.set_fact("goal", {"trials": trials, "seconds": seconds})

    def summary(self) -> str:
        """Return the result in a few lines of text."""
        history, score = self.study.history, self.metric.score

        def shown(loss: float | None) -> str:
            return "-" if loss is None else f"{score(loss):.5g}"

        best = history.incumbent
        honest = "" if self.honest_loss is None else f" (cross-checked {shown(self.honest_loss)})"
        members = sorted(self.ensemble_weights().items(), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{self.algorithm_name(n)} #{n} {weight:.2f}" for n, weight in members[:6])
        more = f", and {len(members) - 6} more" if len(members) > 6 else ""
        digest = run_digest(history, list(self.ensemble_weights().items()))
        return (
            f"{len(history)} trials, {len(history.failures)} failed, {self.study.elapsed:.1f} s; {self.stop_reason}\n"
            f"{self.metric.name}: ensemble {shown(self.ensemble_loss)}{honest}, "
            f"best single {shown(None if best is None else best.loss)}, constant {shown(history.baseline_loss)}\n"
            f"Members: {listed}{more}\n"
            f"Digest: {digest}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return all finished trials as plain dictionaries."""
        return self._store.rows()

    # ------------------------------------------------------------ parts

    def _prepare(self) -> PreparedFolds:
        settings, data = self.settings, self._data
        folder = self.folder / "prepared"
        coded = CodedTable(values=data.values, texts=data.texts, schema=self.schema)
        folds, self.encoders = prepare_folds(
            folder,
            coded,
            data.y,
            self._splits,
            sorted(self.space.encodings),
            task_type=self.target.task_type,
            seed=settings.seed,
            weight=data.weight,
        )
        self._pool = ValidationPool.draw(folds.validation_rows, data.y, data.weight, seed=settings.seed)
        return folds

    def _evaluate_baseline(self, folds: PreparedFolds) -> float:
        """Fit the constant predictor, so that a model exists from now on; return its loss."""
        from sklearn.dummy import DummyClassifier, DummyRegressor
        from sklearn.pipeline import Pipeline

        encoding = sorted(self.space.encodings)[0]
        classification = self.target.task_type.is_classification
        models, losses = [], []
        for k, fold in enumerate(folds.folds):
            X_train, X_valid, _ = folds.load(k, encoding)
            weight = self._data.weight
            middle = "median" if self.metric.name in ("mae", "mape") else "mean"
            dummy = DummyClassifier(strategy="prior") if classification else DummyRegressor(strategy=middle)
            model = fit_fold_model(
                Pipeline([("learner", dummy)]),
                encoding,
                X_train,
                folds.y[fold.train],
                n_classes=self.target.n_classes if classification else 1,
                weight=None if weight is None else weight[fold.train],
            )
            models.append(model)
            fold_weight = None if weight is None else weight[fold.validation]
            losses.append(self.metric.loss(folds.y[fold.validation], model.predict(X_valid), fold_weight))
        self._loaded[BASELINE] = models
        write_atomically(self._member_file(BASELINE), dump_fold_models(models))
        loss = float(np.mean(losses))
        self._store.set_fact("baseline_loss", loss)
        return loss

    def _executor(self, limits: Limits) -> Executor:
        if self.settings.isolation == "none":
            return InProcessExecutor()
        logs = (self.folder / "logs").absolute()
        return WorkerProcessExecutor(self.settings.workers, limits=limits, log_folder=logs)

    def _limits(self, budget: Budget) -> Limits:
        import psutil

        settings = self.settings
        seconds = settings.trial_seconds
        if seconds is None:
            seconds = 600.0 if budget.seconds is None else min(600.0, max(10.0, budget.seconds / 6))
        memory = settings.memory_mib
        if memory is None:
            memory = 0.8 * psutil.virtual_memory().available / 2**20 / settings.workers
        return Limits(seconds=seconds, memory_mib=memory)

    def _member_file(self, number: int) -> Path:
        return self.folder / "members" / "baseline.skops" if number == BASELINE else self._store.member_path(number)

    # ------------------------------------------------------------ ensemble

    def _eligible(self, history: History) -> list[Observation]:
        return [o for o in history.successes if self._member_file(o.trial.number).exists()]

    def _select_ensemble(self, history: History) -> None:
        observations = self._eligible(history)
        if observations:
            self.ensemble, self.ensemble_loss = self._build(
                [o.trial.number for o in observations],
                [self._pool.take(o.predictions) for o in observations if o.predictions is not None],
                [float(o.loss) for o in observations if o.loss is not None],
                self._pool.y,
                self._pool.weight,
            )

    def _build(
        self,
        numbers: Sequence[int],
        predictions: Sequence[AnyArray],
        losses: Sequence[float],
        y: AnyArray,
        weight: FloatArray | None,
    ) -> tuple[Ensemble, float]:
        return build_ensemble(
            self.settings.ensemble,
            numbers,
            predictions,
            y,
            self.metric,
            losses=losses,
            weight=weight,
            size=self.settings.ensemble_size,
            tie="secondary",
            rng=np.random.default_rng(self.settings.seed),
        )

    def _cross_fitted_loss(self, history: History) -> float | None:
        observations = self._eligible(history)
        if not observations:
            return None
        losses = [float(o.loss) for o in observations if o.loss is not None]
        try:
            return cross_fitted_loss(
                lambda stacks, y, weight: self._build(range(len(stacks)), stacks, losses, y, weight)[0],
                [self._pool.take(o.predictions) for o in observations if o.predictions is not None],
                self._pool.y,
                self.metric,
                weight=self._pool.weight,
                rng=np.random.default_rng(self.settings.seed),
            )
        except (CashmereError, ValueError):  # a part may miss a class
            return None

    def _refresh_ensemble(self, deadline: Deadline) -> None:
        """Build the ensemble of what is there and save it, but spend at most a small share of the time on it."""
        history = self.study.history
        if len(history) == self._ensemble_age and self.ensemble_loss is not None:
            return
        if deadline.elapsed < self._next_ensemble and self._ensemble_age > 0:
            return
        clock = time.perf_counter()
        before = self.ensemble.members
        self._select_ensemble(history)
        self._ensemble_age = len(history)
        if self.ensemble.members != before or not (self.folder / "model" / "manifest.json").exists():
            self._save_model(self._information())
        self._record_curve(history)
        losses = {o.trial.number: float(o.loss) for o in history.successes if o.loss is not None}
        self._store.prune_members({*self.ensemble.members}, limit_mib=_MEMBERS_MIB, losses=losses)
        self._ensemble_seconds = time.perf_counter() - clock
        self._next_ensemble = deadline.elapsed + max(1.0, 20 * self._ensemble_seconds)

    def _record_curve(self, history: History) -> None:
        if history.incumbent is None or self.ensemble_loss is None:
            return
        point = {"trials": len(history), "seconds": self.study.elapsed, "ensemble_loss": self.ensemble_loss}
        if not self._curve or self._curve[-1]["trials"] < len(history):
            self._curve.append(point)
            self._store.set_fact("curve", self._curve)

    # ------------------------------------------------------------ model

    def _information(self) -> dict[str, Any]:
        return {
            "task": self.target.task_type.value,
            "target": self.settings.target_name,
            "metric": self.metric.name,
            "ensemble_loss": self.ensemble_loss,
            "honest_loss": self.honest_loss,
            "algorithms": {
                str(o.trial.number): _algorithm(o)
                for o in self.study.history.successes
                if o.trial.number in self.ensemble.members
            },
        }

    def _save_model(self, information: Mapping[str, Any]) -> None:
        save_model(
            self.folder / "model",
            schema=self.schema,
            target=self.target,
            encoders=self.encoders,
            ensemble=self.ensemble,
            member_files={number: self._member_file(number) for number in self.ensemble.members},
            information=information,
        )

    def _predictor(self) -> Predictor:
        return Predictor(
            schema=self.schema,
            target=self.target,
            encoders=self.encoders,
            ensemble=self.ensemble,
            models={number: self._load_member(number) for number in self.ensemble.members},
            information=self._information(),
        )

    def _load_member(self, number: int) -> list[FoldModel]:
        if number not in self._loaded:
            trusted = [name for algorithm in self.space.algorithms for name in algorithm.trusted_types]
            self._loaded[number] = load_fold_models(self._member_file(number), trusted=trusted)
        return self._loaded[number]

    def _sample(self) -> pd.DataFrame | None:
        try:
            return pd.read_parquet(self.folder / "sample.parquet")
        except (OSError, ValueError):
            return None

    def _reserve(self) -> float:
        """Seconds that `finish` and the report will need."""
        return 1.5 + 8 * self._ensemble_seconds + self._load_seconds()

    def _load_seconds(self) -> float:
        """Estimate the time of reading the current members, from one measured member of each algorithm."""
        total = 0.0
        by_number = {o.trial.number: _algorithm(o) for o in self.study.history.successes}
        for number in self.ensemble.members:
            algorithm = by_number.get(number)
            if number in self._loaded or algorithm is None:
                continue
            try:
                size = self._member_file(number).stat().st_size
                if algorithm not in self._load_rates:
                    clock = time.perf_counter()
                    self._load_member(number)
                    self._load_rates[algorithm] = (time.perf_counter() - clock) / max(1, size)
            except (OSError, CashmereError):
                continue
            total += self._load_rates[algorithm] * size
        return total

    def _status(self, budget: Budget | None, deadline: Deadline, *, phase: str = "searching") -> Status:
        history = self.study.history
        best = history.incumbent
        score = self.metric.score
        done, left = 0.0, None
        if budget is not None and deadline.seconds is not None:
            done, left = deadline.elapsed / deadline.seconds, deadline.remaining
        if budget is not None and budget.trials is not None:
            share = len(history) / budget.trials
            pace = deadline.elapsed / max(1, len(history)) * (budget.trials - len(history))
            done, left = max(done, share), pace if left is None else min(left, pace)
        return Status(
            trials=len(history),
            failures=len(history.failures),
            best_score=None if best is None or best.loss is None else score(best.loss),
            ensemble_score=None if self.ensemble_loss is None else score(self.ensemble_loss),
            metric=self.metric.name,
            fraction=min(1.0, done) if phase == "searching" else 1.0,
            seconds_left=left,
            phase=phase,
        )


@contextlib.contextmanager
def _stop_on_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl+C into an event; the second interrupts as usual."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def handle(number: int, frame: object) -> None:
        event.set()
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, previous)


def _save_sample(path: Path, frame: pd.DataFrame) -> None:
    """Keep some rows, to measure latency on; a table parquet cannot hold is not worth an error."""
    sample = frame.iloc[:1000]
    with contextlib.suppress(Exception):
        sample.astype({name: str for name in sample if sample[name].dtype == object}).to_parquet(path)


def first_line(text: str | None) -> str:
    """Return the first line of an error text, at most 200 characters."""
    return (text or "").strip().split("\n", 1)[0][:200]


def _algorithm(observation: Observation) -> str:
    return str(observation.trial.configuration.get("algorithm", "?"))


def _advice(failures: list[tuple[int, str, str, str]]) -> str:
    statuses = {status for _, _, status, _ in failures}
    advice = []
    if "timeout" in statuses:
        advice.append("raise --trial-timeout or the budget, or use fewer rows")
    if "memory" in statuses:
        advice.append("raise --memory, or use fewer workers")
    if "error" in statuses or not advice:
        advice.append("read the causes above; the full tracebacks are in the report")
    return "What to try: " + "; ".join(advice) + "."
