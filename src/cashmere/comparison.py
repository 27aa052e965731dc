"""Compare strategies on a table of your own: several seeds, a test set per seed, the same rows for all strategies."""

from __future__ import annotations

import hashlib
import inspect
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import clone

from cashmere.base.arrays import AnyArray, IntArray
from cashmere.base.files import failures_as, write_atomically
from cashmere.base.text import counted
from cashmere.data.frames import to_frame
from cashmere.data.resampling import make_folds
from cashmere.data.row_structure import structure_names, take_structure
from cashmere.data.target import TargetCoding
from cashmere.estimators import AutoClassifier, AutoRegressor
from cashmere.evaluation.metrics import Metric
from cashmere.exceptions import CorruptStoreError, InvalidParameterError, RunDirectoryError
from cashmere.records.origin import OriginKind
from cashmere.run import RunSettings, StopReason
from cashmere.run.run_directory import metric_for
from cashmere.run.setting_names import check_names
from cashmere.storage.directory import check_new, read_json, write_json
from cashmere.storage.store import RunStore
from cashmere.strategies.making import factory_of

_RUNS, _SETTINGS = "runs.csv", "comparison.json"
_COVERAGE = 0.95
_FREE = ("strategy", "random_state", "run_directory", "resume", "verbose", "n_workers", "executor", "lookahead")
"""Parameters of the estimator that may differ between calls for one folder; the others decide results.

The lookahead that follows from two of them may not, nor under a budget of time the number of workers.
"""

_TYPES = {
    "strategy": "object",
    "seed": "int64",
    "trials": "int64",
    "decided": "int64",
    "failed": "int64",
    "members": "int64",
    "seconds": "float64",
    "test": "float64",
    "test_loss": "float64",
    "validation_loss": "float64",
    "digest": "object",
    "folder": "object",
}
_ADDED = ("validation_loss", "digest")
"""Columns that earlier versions did not keep; the folder follows from the others."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrategyComparison:
    """What runs of several strategies on one table have given.

    Attributes
    ----------
    runs : DataFrame
        A row per run: ``strategy``, ``seed``, the numbers of ``trials``, of those that the strategy has ``decided``
        (the first configurations are the same for all), of ``failed`` ones and of ``members``, ``seconds`` of the
        whole call, the ``test`` score, ``test_loss``, of which smaller is better, the ``validation_loss`` of the
        ensemble, the ``digest`` of the run, and the name of its ``folder``, for `run_trials` or `read_predictions`.
    summary : DataFrame
        A row per strategy, the best first; see `summarise_runs`.
    metric : str
        The metric of the run.
    interrupted : bool
        Whether Ctrl+C, or the loss of a cluster, has ended the comparison before its last run.
    """

    runs: pd.DataFrame
    summary: pd.DataFrame
    metric: str
    interrupted: bool

    @property
    def notes(self) -> list[str]:
        """What makes the comparison say less than it seems to, as sentences."""
        runs, notes = self.runs, list[str]()
        if not len(runs):
            return notes
        if n_empty := int((runs["trials"] == runs["failed"]).sum()):
            notes.append(f"In {counted(n_empty, 'run')} no trial has succeeded: the model predicts a constant.")
        if not runs["decided"].any():
            notes.append("All trials are first configurations, the same for all strategies. Give a larger budget.")
            return notes
        if (runs["digest"] == "").any():  # of an earlier version
            return notes
        made = runs.pivot(index="seed", columns="strategy", values="digest").dropna()
        alike: dict[tuple[str, ...], list[str]] = {}
        for strategy in made if len(made) else ():
            alike.setdefault(tuple(made[strategy]), []).append(str(strategy))
        for names in alike.values():
            if len(names) > 1:
                text = f"{', '.join(names[:-1])} and {names[-1]} have made the same trials with every seed"
                notes.append(f"{text}: they have not begun to differ. Give a larger budget.")
        return notes


def compare_strategies(
    estimator: AutoClassifier | AutoRegressor,
    X: Any,
    y: Any,
    *,
    strategies: Sequence[str] | Mapping[str, Any],
    folder: str | Path,
    seeds: int | Sequence[int] = 5,
    reference: str | None = None,
    groups: Any = None,
    time: Any = None,
    tell: Callable[[str], object] = lambda line: None,
) -> StrategyComparison:
    """Run strategies on a table with several seeds, and compare their ensembles on rows that no run has seen.

    For each seed, a quarter of the rows (at most 20,000) is set aside, spread evenly over the classes; with groups,
    whole groups are, and in time the newest rows, the same for all seeds. Strategies with the same seed see the same
    rows. Runs follow one after the other. Each is kept in the folder; calling again with more seeds or strategies
    repeats no finished run. Ctrl+C during a search ends the comparison with the runs that have finished; the
    interrupted one starts again in the next call, so that all have the same time.

    Parameters
    ----------
    estimator : AutoClassifier or AutoRegressor
        Its parameters are those of all runs: budget, metric, space and so on; not its strategy and seed. A later call
        must give the same; it knows functions by module and name. With a budget of time, the number of workers must
        be the same, too; with one of trials, only the lookahead.
    X, y : table, (n_rows,) array-like
        As for `AutoClassifier.fit`.
    strategies : sequence of str, or dict
        Names with options, such as ``"bo:n_initial=20"``, or strategies of your own by label. Where the source of one
        of your own has changed since an earlier call, it needs another label: the code of its class or function counts,
        not what it imports.
    folder : path
        A new folder, or that of an earlier call.
    seeds : int or sequence of int
        Number of seeds, at least 2: from 0 on; or the seeds.
    reference : str, optional
        The strategy that others are compared with; by default the first.
    groups, time
        As for `AutoClassifier.fit`; at most one of the two.
    tell : callable
        Gets a line of text after each run.

    Raises
    ------
    InvalidParameterError
        If there are fewer than two strategies or seeds, two strategies have the same name, or the reference is none of
        the strategies.
    RunDirectoryError
        If the folder holds something else, or a comparison on other rows, with other settings, or with the strategies'
        earlier code.
    CashmereError
        As `AutoClassifier.fit`.

    Examples
    --------
    ::

        found = compare_strategies(
            AutoClassifier(budget="100trials"), X, y, strategies=["random", "bo", "optdivbo"], folder="comparison"
        )
        print(found.summary)
    """
    if isinstance(strategies, str):
        raise InvalidParameterError("strategies", strategies, "a list of strategies, or a dictionary with their labels")
    named = _labelled(strategies)
    wanted = _seeds(seeds)
    reference = next(iter(named)) if reference is None else reference
    if reference not in named:
        raise InvalidParameterError("reference", reference, f"one of the strategies: {', '.join(named)}")
    frame = to_frame(X).reset_index(drop=True)
    kind: Literal["regression", "classification"] = (
        "regression" if isinstance(estimator, AutoRegressor) else "classification"
    )
    target, codes = TargetCoding.with_codes(y, kind, n_rows=len(frame))
    target = target.looking_for(estimator.pos_label)
    labels = pd.Series(target.decode(codes), name=getattr(y, "name", None))
    names = structure_names(groups=groups, time=time)
    for strategy in named.values():
        parameters = {**estimator.get_params(deep=False), "strategy": strategy}
        settings = RunSettings.from_parameters(parameters, task=kind, **names)
        check_names(settings)
    parallel = {"lookahead": str(settings.lookahead_of_study)}
    if settings.budget.trials is None:
        parallel["n_workers"] = str(settings.workers)
    structure = take_structure(frame, groups=groups, time=time, gap=settings.gap)[1]
    metric, folder = metric_for(estimator.metric, target), Path(folder)
    _open(folder, estimator, frame, codes, named, parallel)
    runs = _finished(folder)
    for seed in wanted:
        (split,) = make_folds(codes, target.task_type, "holdout", seed=seed, structure=structure)
        train, test = split.train, split.validation
        for label, strategy in named.items():
            if ((runs["strategy"] == label) & (runs["seed"] == seed)).any():
                continue
            place = folder / _folder_name(label, seed)
            shutil.rmtree(place, ignore_errors=True)  # of a run that was interrupted
            model = clone(estimator).set_params(strategy=strategy, random_state=seed, run_directory=place, resume=False)
            began = perf_counter()
            model.fit(frame.iloc[train], labels.iloc[train], groups=_rows_of(groups, train), time=_rows_of(time, train))
            seconds = perf_counter() - began
            with RunStore(place, read_only=True) as store:
                facts = store.facts()
            if facts.stop_reason in (StopReason.INTERRUPT, StopReason.CLUSTER):  # before its budget
                tell(f"{label}, seed {seed}: interrupted. The next call starts this run again")
                return _compared(runs, reference, metric, interrupted=True)
            score = float(model.score_table(frame.iloc[test], labels.iloc[test], metrics=[metric]).models.iloc[0, -1])
            history = model.study_.history
            decided = sum(each.trial.origin.kind is not OriginKind.WARM_START for each in history)
            counts = (len(history), decided, len(model.failures_), len(model.ensemble_))
            row = [label, seed, *counts, round(seconds, 2), score, 1 - score if metric.greater_is_better else score]
            row += [facts.ensemble_loss, facts.digest or "", place.name]
            new = pd.DataFrame([row], columns=list(_TYPES)).astype(_TYPES)
            runs = pd.concat([runs, new], ignore_index=True) if len(runs) else new
            write_atomically(folder / _RUNS, runs.to_csv(index=False).encode())
            judged = f"{metric.name} {score:.5g} on {counted(len(test), 'test row')}"
            tell(f"{label}, seed {seed}: {judged}, {counted(len(history), 'trial')}, {seconds:.0f} s")
    return _compared(runs, reference, metric, interrupted=False)


def summarise_runs(runs: pd.DataFrame, *, reference: str) -> pd.DataFrame:
    """Compare the test losses of strategies, paired by seed.

    Parameters
    ----------
    runs : DataFrame
        With the columns ``strategy``, ``seed``, ``test`` and ``test_loss``. Seeds without a run of the reference are
        left out.
    reference : str
        The strategy that others are compared with; without a run of it, nothing is known of changes.

    Returns
    -------
    DataFrame
        A row per strategy, by ascending ``rank``: the number of ``runs``; the mean ``rank`` among the strategies (1 is
        best, ties share) and the mean ``test`` score, both over the seeds that all have run; ``change``, the mean of
        ``test_loss`` relative to the size of that of the reference with the same seed, in per cent (negative is
        better; NaN if a loss of the reference is 0), with its 95 % interval (``lower``, ``upper``) by Student's t over
        seeds; and with how many seeds the loss was lower (``better``) and higher (``worse``). The interval holds for
        other seeds and splits of the same rows, not for other tables.

    Examples
    --------
    >>> runs = pd.DataFrame({"strategy": ["bo", "random"] * 2, "seed": [0, 0, 1, 1], "test": [1.0, 1.1, 2.0, 2.4]})
    >>> found = summarise_runs(runs.assign(test_loss=runs["test"]), reference="bo")
    >>> found[["strategy", "rank", "change", "worse"]].round(1)
      strategy  rank  change  worse
    0       bo   1.0     0.0      0
    1   random   2.0    15.0      2
    """
    losses = runs.pivot(index="seed", columns="strategy", values="test_loss")
    ranks = losses.dropna().rank(axis=1).mean()
    shared = runs[runs["seed"].isin(losses.dropna().index)]
    if reference not in losses:
        losses[reference] = np.nan
    losses = losses[losses[reference].notna()]
    rows = []
    for name in dict.fromkeys(runs["strategy"]):
        both = losses[[reference, name]].dropna() if name != reference else losses[[reference]]
        own, other = both[name].to_numpy(), both[reference].to_numpy()
        size = np.where(other == 0, np.nan, np.abs(other))  # scores above 1 have negative losses
        changes = np.where(own == other, 0.0, 100 * (own - other) / size)
        n, mean = len(changes), float(changes.mean()) if len(changes) else np.nan
        half = stats.t.ppf((1 + _COVERAGE) / 2, n - 1) * changes.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
        n_runs, test = int((runs["strategy"] == name).sum()), shared.loc[shared["strategy"] == name, "test"].mean()
        better, worse = int((own < other).sum()), int((own > other).sum())
        rows.append([name, n_runs, ranks[name], test, mean, mean - half, mean + half, better, worse])
    names = ["strategy", "runs", "rank", "test", "change", "lower", "upper", "better", "worse"]
    return pd.DataFrame(rows, columns=names).sort_values("rank", kind="stable").reset_index(drop=True)


def _compared(runs: pd.DataFrame, reference: str, metric: Metric, *, interrupted: bool) -> StrategyComparison:
    summary = summarise_runs(runs, reference=reference)
    return StrategyComparison(runs=runs, summary=summary, metric=metric.name, interrupted=interrupted)


def _labelled(strategies: Sequence[Any] | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the strategies by label."""
    if isinstance(strategies, Mapping):
        named: Mapping[str, Any] = strategies
    else:
        named = {}
        for each in strategies:
            if named.setdefault(label := _label_of(each), each) != each:
                text = f"Two are called {label!r}; give a dictionary with a label for each."
                raise InvalidParameterError("strategies", list(strategies), "strategies of different names", text)
    if len(named) < 2:
        raise InvalidParameterError("strategies", list(named), "two or more different strategies")
    return named


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    """Return the seeds, in order and each once."""
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        given = list(range(seeds))
    else:
        given = list(seeds) if isinstance(seeds, Sequence | np.ndarray) and not isinstance(seeds, str) else []
    if not all(isinstance(seed, int | np.integer) and seed >= 0 for seed in given) or len(set(given)) < 2:
        expected = "a whole number of at least 2, or a list of different seeds from 0 on: one seed shows no spread"
        raise InvalidParameterError("seeds", seeds, expected)
    return [int(seed) for seed in dict.fromkeys(given)]


def _label_of(strategy: Any) -> str:
    return strategy if isinstance(strategy, str) else str(getattr(strategy, "__name__", type(strategy).__name__))


def _open(
    folder: Path,
    estimator: AutoClassifier | AutoRegressor,
    frame: pd.DataFrame,
    codes: AnyArray,
    strategies: Mapping[str, Any],
    parallel: Mapping[str, str],
) -> None:
    """Make the folder of a comparison, or check that it is of the same rows, settings and strategies.

    `parallel` is what decides results of the work side by side.
    """
    rows = hashlib.sha256(np.ascontiguousarray(pd.util.hash_pandas_object(frame, index=False)).tobytes())
    rows.update(np.ascontiguousarray(codes).tobytes())
    parameters = {name: _identity(value) for name, value in estimator.get_params().items() if name not in _FREE}
    asked = {"format": "cashmere comparison", "rows": rows.hexdigest(), **parameters}
    behind = {f"strategy {label!r}": _identity(strategy) for label, strategy in strategies.items()}
    codes_of = {f"code of strategy {label!r}": _code(strategy) for label, strategy in strategies.items()}
    behind |= {name: code for name, code in codes_of.items() if code} | dict(parallel)
    path = folder / _SETTINGS
    if not path.exists():
        check_new(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, asked | behind)
        return
    usual = {name: _identity(value) for name, value in type(estimator)().get_params().items()}  # if they are new
    found = read_json(path, dict[str, str])
    if found.get("lookahead") == "None":  # earlier versions did not resolve it
        del found["lookahead"]
    stored = usual | behind | found  # further strategies may join, and earlier versions did not keep them
    asked |= behind
    for name in asked:
        if stored.get(name) == asked[name]:
            continue
        if name in codes_of:
            whose = name.removeprefix("code of ")
            text = f"holds runs of {whose} from before its code changed. Give it another label, or use another folder."
            raise RunDirectoryError(folder, text)
        what = "other rows" if name == "rows" else f"{name}={stored.get(name)}"
        now = "" if name == "rows" else f", not with {asked[name]}"
        raise RunDirectoryError(folder, f"holds a comparison with {what}{now}. Use another folder.")
    if not behind.keys() <= found.keys():
        write_json(path, found | behind)


def _identity(value: object) -> str:
    """Return a text that is the same in all processes: functions by module and name, objects without their address."""
    name = getattr(value, "__qualname__", None)
    text = repr(value) if name is None else f"{value.__module__}.{name}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _code(strategy: object) -> str:
    """Return a digest of the source of a strategy's class or function, if it is not one of this package."""
    made = factory_of(strategy) if isinstance(strategy, str) else strategy
    described = inspect.unwrap(made) if inspect.isclass(made) or inspect.isfunction(made) else type(made)
    if described.__module__.partition(".")[0] in (__name__.partition(".")[0], "functools"):
        return ""
    try:
        return hashlib.sha256(inspect.getsource(described).encode()).hexdigest()[:12]
    except (OSError, TypeError):  # typed in, or compiled
        return ""


def _finished(folder: Path) -> pd.DataFrame:
    path = folder / _RUNS
    if not path.exists():
        return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in _TYPES.items()})
    with failures_as(CorruptStoreError, path, "Restore it from a copy, or compare again in another folder."):
        # A label may look like a number, or like a gap: "NA".
        gaps = {"test": "", "test_loss": "", "validation_loss": ""}
        texts = dict.fromkeys(("strategy", "digest", "folder"), str)
        runs = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=gaps)
        for name in _ADDED:
            if name not in runs:
                runs[name] = np.nan if _TYPES[name] == "float64" else ""
        runs["folder"] = [_folder_name(*of) for of in zip(runs["strategy"], runs["seed"], strict=True)]
        return runs[list(_TYPES)].astype(_TYPES)


def _folder_name(label: str, seed: int) -> str:
    """Return a name that differs between labels and has no letters that are special in paths."""
    return f"{re.sub(r'[^A-Za-z0-9_]+', '_', label)[:40]}-{hashlib.sha256(label.encode()).hexdigest()[:6]}-{seed}"


def _rows_of(given: Any, rows: IntArray) -> Any:
    return given if given is None or isinstance(given, str) else np.asarray(given)[rows]
