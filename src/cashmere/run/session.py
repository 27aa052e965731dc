"""The whole job in one run directory: prepare, search, build the ensemble, save. Estimators and command line use it."""

from __future__ import annotations

import contextlib
import shutil
import time
import uuid
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cashmere.analysis import CONTEST_FACT, LATENT_MAP_FACT, contest_fact, latent_map_fact
from cashmere.base.files import write_atomically
from cashmere.base.interrupts import stop_on_interrupt
from cashmere.base.versions import versions
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import choose_resampling, make_folds
from cashmere.data.rows import canonical_rows
from cashmere.data.schema import CodedTable, TableSchema, infer_schema
from cashmere.data.target import TargetCoding
from cashmere.data.task import TaskProfile, TaskType
from cashmere.ensembles import Ensemble
from cashmere.ensembles.pool import ValidationPool
from cashmere.evaluation.baseline import fit_baseline
from cashmere.evaluation.metrics import Metric, default_metric, get_metric, metric_from_callable
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.exceptions import CashmereError, NoSuccessfulTrialError, RunDirectoryError
from cashmere.execution.in_process import InProcessExecutor
from cashmere.execution.limits import Limits
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.metalearning.meta_features import features_from_json, features_to_json, meta_features
from cashmere.model.archives import dump_fold_models, load_fold_models
from cashmere.model.files import save_model
from cashmere.model.fold_model import FoldModel
from cashmere.model.predictor import Predictor
from cashmere.protocols import Executor, MetricCheck, TableAware
from cashmere.records.budget import Budget, Deadline
from cashmere.records.trial import History, Observation
from cashmere.records.work_budget import WorkBudget
from cashmere.run.ensemble_builder import BASELINE, EnsembleBuilder
from cashmere.run.progress import Progress, Silence, Status
from cashmere.run.settings import RunSettings
from cashmere.space.named.registry import make_space
from cashmere.space.space import Space
from cashmere.storage.directory import RUN_VERSION, TrainingRows, check_new, read_json, read_run_json, write_json
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import failures_table
from cashmere.strategies import make_strategy
from cashmere.study import Study, run_digest

META_FEATURES_FACT = "meta_features"
"""Name under which the store keeps what describes the table, if the strategy asks for it."""

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
        settings.check_task(target.task_type)
        self._data, self._store = data, store
        metric = settings.metric or default_metric(target.task_type).name
        if callable(metric) and not isinstance(metric, Metric):
            if target.task_type.is_classification:
                metric = metric_from_callable(metric, labels=target.labels())
            else:
                metric = metric_from_callable(metric, needs="values")
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
        if isinstance(self.strategy, MetricCheck):
            self.strategy.check_metric(self.metric)
        self._splits = make_folds(
            data.y, target.task_type, settings.resampling, seed=settings.seed, n_columns=data.values.shape[1]
        )
        self.honest_loss: float | None = None
        self.stop_reason = ""
        self._loaded: dict[int, list[FoldModel]] = {}
        self._load_rates: dict[str, float] = {}
        self._curve: list[dict[str, float]] = store.fact("curve", [])
        self._ensemble_age = -1
        self._next_ensemble = 0.0
        self._ensemble_seconds = float(store.fact("ensemble_seconds", 0.0))
        self._suggested_before = float(store.fact("suggest_seconds", 0.0))

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
            budget = Budget.parse(settings.budget)
            if settings.resampling == "auto":
                n_cells = len(rows.y) * max(1, len(schema.used)) * target.n_classes
                resampling = choose_resampling(len(rows.y), n_cells, seconds=budget.seconds)
                settings = replace(settings, resampling=resampling)
            run = cls(folder, settings, schema=schema, target=target, data=data, store=store)
            run.set_goal(budget.trials, budget.seconds)
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
        seconds = None if budget.seconds is None else self.spent_seconds + budget.seconds
        worker_seconds = None if seconds is None else seconds * self.settings.workers
        self._prepare(WorkBudget(trials=budget.trials, worker_seconds=worker_seconds))
        executor = self._executor(budget)
        objective = CrossValidationObjective(
            folder=(self.folder / "prepared").absolute(),
            space=self.space,
            metric=self.metric,
            n_threads=getattr(executor, "n_threads", 1),
        )

        def tick() -> None:
            self._refresh_ensemble(deadline)
            progress.update(self._status(budget, deadline))

        with stop_on_interrupt() as interrupted:
            try:
                self._refresh_ensemble(deadline)
                self.study.optimize(
                    objective,
                    None if budget.trials is None else Budget(trials=budget.trials),
                    executor=executor,
                    stop=lambda: interrupted.is_set() or deadline.remaining <= self._reserve(),
                    on_tick=tick,
                )
            finally:
                executor.shutdown()
        if interrupted.is_set():
            self.stop_reason = _INTERRUPTED
        elif budget.trials is not None and len(self.study.history) >= budget.trials:
            self.stop_reason = "trial budget spent"
        else:
            self.stop_reason = "time budget spent"
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
        self._builder.update(history)
        self._ensemble_seconds += self._builder.seconds
        predictor = self._predictor()
        sample = self._sample()
        latency = {}
        if sample is not None and deadline.remaining > 0.5:
            latency = predictor.measure_latency(sample, seconds=min(1.0, max(0.1, deadline.remaining / 4)))
        if deadline.remaining > 6 * self._builder.seconds + 0.3:
            self.honest_loss = self._builder.honest_loss(history)
        predictor.information.update(self._information(), latency=latency)
        self._save_model(predictor.information)
        self._keep_facts(history, latency)
        if history.failures and not history.successes:
            table = failures_table(self.rows())
            failures = list(table[["trial", "algorithm", "status", "cause"]].itertuples(index=False, name=None))
            advice = "\n".join(f"  {text}" for text in dict.fromkeys(table["what_to_try"]))
            raise NoSuccessfulTrialError(failures, f"What to try:\n{advice}")
        return predictor

    def _keep_facts(self, history: History, latency: Mapping[str, float]) -> None:
        """Store what the report tells beside the trials."""
        busy = sum(o.duration_seconds for o in history)
        facts = {
            "stop_reason": self.stop_reason,
            "ensemble": self.ensemble.to_json(),
            "ensemble_loss": self._builder.loss,
            "honest_loss": self.honest_loss,
            "decision": self._decision(),
            "latency": latency,
            "digest": self.digest,
            "elapsed_seconds": self.study.elapsed,
            "busy_seconds": busy,
            "utilisation": busy / max(1e-9, self.settings.workers * self.study.elapsed),
            "suggest_seconds": self._suggested_before + sum(self.study.suggest_seconds.values()),
            "ensemble_seconds": self._ensemble_seconds,
            "model_bytes": sum(path.stat().st_size for path in (self.folder / "model").iterdir()),
        }
        for name, value in facts.items():
            self._store.set_fact(name, value)
        self._keep_contest(history)
        self._store.set_fact(LATENT_MAP_FACT, latent_map_fact(self.strategy, history))

    def _keep_contest(self, history: History) -> None:
        """Store who has met whom up to now, if the strategy is a contest."""
        fact = contest_fact(self.strategy, history)
        if fact is not None:
            self._store.set_fact(CONTEST_FACT, fact)

    @property
    def ensemble(self) -> Ensemble:
        """The current ensemble."""
        return self._builder.ensemble

    @property
    def ensemble_weights(self) -> dict[int, float]:
        """Weight of each member by trial number."""
        return self._builder.weights

    @property
    def digest(self) -> str:
        """Fingerprint of trials, losses and weights, see `run_digest`."""
        return run_digest(self.study.history, list(self.ensemble_weights.items()))

    def algorithm_name(self, number: int) -> str:
        """Return the algorithm of a member; the constant predictor is called ``baseline``."""
        return "baseline" if number == BASELINE else _algorithm(self.study.history[number])

    @property
    def n_stored(self) -> int:
        """Number of committed trials in the store."""
        return len(self._store.rows())

    @property
    def spent_seconds(self) -> float:
        """Seconds this run has taken up to now, summed over resumes."""
        stored = float(self._store.fact("elapsed_seconds", 0.0))
        return max([stored, *(float(row["finished_at"]) for row in self._store.rows())])

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
        spent, rows = self.spent_seconds, self._store.rows()
        if budget is not None:
            trials = None if budget.trials is None else len(rows) + budget.trials
            until = None if budget.seconds is None else spent + budget.seconds
            goal = self._store.fact("goal") or {"trials": None, "seconds": None}
            if None not in (trials, goal["trials"]):
                trials = max(trials, goal["trials"])
            if None not in (until, goal["seconds"]):
                until = max(until, goal["seconds"])
            self.set_goal(trials, until)
            trials = None if budget.trials is None else len(rows) + budget.trials
            return Budget(trials=trials, seconds=budget.seconds)
        goal = self._store.fact("goal") or {"trials": None, "seconds": None}
        seconds = None if goal["seconds"] is None else goal["seconds"] - spent
        if (goal["trials"] is not None and len(rows) >= goal["trials"]) or (seconds is not None and seconds < 1):
            return None
        return Budget(trials=goal["trials"], seconds=seconds)

    def check_same(self, frame: pd.DataFrame, y: Any, settings: RunSettings, *, weight: Any = None) -> None:
        """Refuse to continue this run with other data or other settings than it was started with.

        Raises
        ------
        RunDirectoryError
            Naming what differs.
        """
        rows = canonical_rows(
            frame, self.target.encode(y, n_rows=len(frame)), weight, keep_order=not isinstance(settings.resampling, str)
        )
        same = len(rows.y) == len(self._data.y) and np.array_equal(rows.y, self._data.y)
        if not same or not np.array_equal(self.schema.code(rows.frame).values, self._data.values, equal_nan=True):
            raise RunDirectoryError(
                self.folder,
                "was started with other rows than X and y hold. Use resume=False and another run_directory.",
            )
        names = ("metric", "strategy", "space", "resampling", "seed", "ensemble", "ensemble_size", "lookahead")
        for name in (*names, "decision_threshold", "fold_racing"):
            before, now = getattr(self.settings, name), getattr(settings, name)
            if before != now and not (name == "resampling" and now == "auto"):
                text = f"was started with {name}={before!r}, and is now asked to go on with {now!r}. Give the same one."
                raise RunDirectoryError(self.folder, text)

    def set_goal(self, trials: int | None, seconds: float | None) -> None:
        """Remember the budget, for a resume that names none: trials in all, seconds in all."""
        self._store.set_fact("goal", {"trials": trials, "seconds": seconds})

    def summary(self) -> str:
        """Return the result in a few lines of text."""
        history, score = self.study.history, self.metric.score

        def shown(loss: float | None) -> str:
            return "-" if loss is None else f"{score(loss):.5g}"

        best = history.incumbent
        honest = "" if self.honest_loss is None else f" (cross-checked {shown(self.honest_loss)})"
        members = sorted(self.ensemble_weights.items(), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{self.algorithm_name(n)} #{n} {weight:.2f}" for n, weight in members[:6])
        more = f", and {len(members) - 6} more" if len(members) > 6 else ""
        return (
            f"{len(history)} trials, {len(history.failures)} failed, {self.study.elapsed:.1f} s; {self.stop_reason}\n"
            f"{self.metric.name}: ensemble {shown(self._builder.loss)}{honest}, "
            f"best single {shown(None if best is None else best.loss)}, constant {shown(history.baseline_loss)}\n"
            f"Members: {listed}{more}\n"
            f"{self._decision_line()}"
            f"Digest: {self.digest}"
        )

    def _decision_line(self) -> str:
        builder = self._builder
        if builder.thresholds is None:
            return ""
        pairs = list(zip(self.target.labels(), builder.thresholds, strict=True))
        shown = [f"{label} {t:.3g}" for label, t in (pairs[1:] if len(pairs) == 2 else pairs)]
        more = ", ..." if len(shown) > 6 else ""
        gain = builder.decision_gain
        gained = "" if gain is None else f" ({builder.decision_metric.name} better by {gain:.4f})"
        return f"Decision threshold: {', '.join(shown[:6])}{more}{gained}\n"

    def rows(self) -> list[dict[str, Any]]:
        """Return the committed trials as plain dictionaries."""
        return self._store.rows()

    # ------------------------------------------------------------ parts

    def _meta_features(self) -> dict[str, float]:
        """Describe the table by numbers, once in the life of the run."""
        stored = self._store.fact(META_FEATURES_FACT)
        if stored is None:
            coded = CodedTable(values=self._data.values, texts=self._data.texts, schema=self.schema)
            features = meta_features(
                coded.values, self._data.y, categorical=coded.categorical, task_type=self.target.task_type
            )
            stored = features_to_json(features)
            self._store.set_fact(META_FEATURES_FACT, stored)
        return features_from_json(stored)

    def _prepare(self, plan: WorkBudget) -> None:
        """Encode the folds, evaluate the constant predictor, take up the study."""
        settings, data = self.settings, self._data
        folds, self._encoders = prepare_folds(
            self.folder / "prepared",
            CodedTable(values=data.values, texts=data.texts, schema=self.schema),
            data.y,
            self._splits,
            sorted(self.space.encodings),
            task_type=self.target.task_type,
            seed=settings.seed,
            weight=data.weight,
        )
        models, baseline_loss = fit_baseline(folds, sorted(self.space.encodings)[0], self.metric)
        self._loaded[BASELINE] = models
        write_atomically(self._member_file(BASELINE), dump_fold_models(models))
        self._store.set_fact("baseline_loss", baseline_loss)
        if isinstance(self.strategy, TableAware):
            self.strategy = self.strategy.for_table(self._meta_features())
        self.study = Study(
            self.space.configuration_space,
            self.strategy,
            seed=settings.seed,
            lookahead=settings.lookahead or max(8, 2 * settings.workers),
            warm_start=self.space.default_configurations(),
            store=self._store,
            fold_racing=settings.fold_racing,
            plan=plan,
            worst_loss=self.metric.worst_loss,
            baseline_loss=baseline_loss,
            metric=self.metric,
            targets=np.asarray(data.y[folds.validation_rows], dtype=np.float64),
            row_weights=None if data.weight is None else data.weight[folds.validation_rows],
        )
        self._builder = EnsembleBuilder(
            method=settings.ensemble,
            size=settings.ensemble_size,
            metric=self.metric,
            pool=ValidationPool.draw(folds.validation_rows, data.y, data.weight, seed=settings.seed),
            seed=settings.seed,
            has_model=lambda number: self._member_file(number).exists(),
            decision_threshold=settings.decision_threshold,
        )

    def _executor(self, budget: Budget) -> Executor:
        if self.settings.isolation == "none":
            return InProcessExecutor()
        logs = (self.folder / "logs").absolute()
        return WorkerProcessExecutor(self.settings.workers, limits=self._limits(budget), log_folder=logs)

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

    def _refresh_ensemble(self, deadline: Deadline) -> None:
        """Choose the ensemble of what is there and save it, but spend at most a small share of the time on it."""
        history = self.study.history
        if len(history) == self._ensemble_age or (self._ensemble_age > 0 and deadline.elapsed < self._next_ensemble):
            return
        clock = time.perf_counter()
        before = self.ensemble.members
        self._builder.update(history)
        self._ensemble_age = len(history)
        if self.ensemble.members != before or not (self.folder / "model" / "manifest.json").exists():
            self._save_model(self._information())
        if self._builder.loss is not None and (not self._curve or self._curve[-1]["trials"] < len(history)):
            point = {"trials": len(history), "seconds": self.study.elapsed, "ensemble_loss": self._builder.loss}
            self._curve.append(point)
            self._store.set_fact("curve", self._curve)
        self._keep_contest(history)
        losses = {o.trial.number: float(o.loss) for o in history.successes if o.loss is not None}
        self._store.prune_members(self.ensemble.members, limit_mib=_MEMBERS_MIB, losses=losses)
        spent = time.perf_counter() - clock
        self._ensemble_seconds += spent
        self._next_ensemble = deadline.elapsed + max(1.0, 20 * spent)

    # ------------------------------------------------------------ model

    def _information(self) -> dict[str, Any]:
        return {
            "task": self.target.task_type.value,
            "target": self.settings.target_name,
            "metric": self.metric.name,
            "ensemble_loss": self._builder.loss,
            "honest_loss": self.honest_loss,
            "decision": self._decision(),
            "algorithms": {
                str(o.trial.number): _algorithm(o)
                for o in self.study.history.successes
                if o.trial.number in self.ensemble.members
            },
        }

    def _decision(self) -> dict[str, Any] | None:
        """Return how classes are decided and what that gains; None where thresholds were not asked for."""
        builder = self._builder
        if not builder.decides_by_threshold:
            return None
        return {
            "metric": builder.decision_metric.name,
            "greater_is_better": builder.decision_metric.greater_is_better,
            "thresholds": None if builder.thresholds is None else builder.thresholds.tolist(),
            "gain": builder.decision_gain,
            "tuned": isinstance(self.settings.decision_threshold, str),
        }

    def _save_model(self, information: Mapping[str, Any]) -> None:
        save_model(
            self.folder / "model",
            schema=self.schema,
            target=self.target,
            encoders=self._encoders,
            ensemble=self.ensemble,
            member_files={number: self._member_file(number) for number in self.ensemble.members},
            information=information,
            thresholds=self._builder.thresholds,
        )

    def _predictor(self) -> Predictor:
        return Predictor(
            schema=self.schema,
            target=self.target,
            encoders=self._encoders,
            ensemble=self.ensemble,
            models={number: self._load_member(number) for number in self.ensemble.members},
            information=self._information(),
            thresholds=self._builder.thresholds,
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
        return 1.5 + 8 * self._builder.seconds + self._load_seconds()

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
            ensemble_score=None if self._builder.loss is None else score(self._builder.loss),
            metric=self.metric.name,
            fraction=min(1.0, done) if phase == "searching" else 1.0,
            seconds_left=left,
            phase=phase,
        )


def _save_sample(path: Path, frame: pd.DataFrame) -> None:
    """Keep some rows, to measure latency on; a table parquet cannot hold is not worth an error."""
    sample = frame.iloc[:1000]
    with contextlib.suppress(Exception):
        sample.astype({name: str for name in sample if sample[name].dtype == object}).to_parquet(path)


def _algorithm(observation: Observation) -> str:
    return str(observation.trial.configuration.get("algorithm", "?"))
