"""Search recorded losses: a strategy's 84 evaluations of a table that its artefact was not made from.

A run is one strategy with one seed on one table. The command that makes many is `benchmarks.experiments.latent.study`.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace

from benchmarks.recordings.replay_runs import Run, RunKey, code_digest
from benchmarks.runs.finished_runs import Failure
from benchmarks.runs.parallel import make_runs
from cashmere.base.seeds import seed_of
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import InvalidParameterError, ObservationsError, UnknownNameError
from cashmere.metalearning.artefact import SHIPPED, Artefact
from cashmere.metalearning.observations import SourceObservations, SourceTable
from cashmere.pretraining.collection.configurations import REFERENCE
from cashmere.protocols import Strategy, TableAware
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus, configuration_key
from cashmere.records.work_budget import WorkBudget
from cashmere.space.encoding import CatalogueEncoder
from cashmere.space.named.registry import make_space
from cashmere.space.space import ALGORITHM
from cashmere.strategies import STRATEGIES, make_strategy, parse_strategy
from cashmere.strategies.shared.factories import open_options
from cashmere.strategies.shared.meta_learned import MetaLearned
from cashmere.study import Study

N_INITIAL = 2
"""Random configurations of every algorithm that a run begins with."""

WITHOUT_INITIAL = ("as_ml", "ahs_ml")
"""Strategies that learn from other tables where to begin and get no initial configurations across algorithms."""

RUN = "{run}"
"""In the options of a strategy, stands for a number that differs between runs."""


@dataclass(frozen=True, eq=False)
class Target:
    """A table that is searched: what recorded configurations do there.

    Attributes
    ----------
    table : SourceTable
        Losses (float32 precision, as in files of observations) and seconds.
    space : ConfigurationSpace
        Space of the configurations.
    catalogue : tuple of Configuration
        The configurations, in the order of the losses.
    """

    table: SourceTable
    space: ConfigurationSpace
    catalogue: tuple[Configuration, ...]

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.table.name

    @functools.cached_property
    def encoder(self) -> CatalogueEncoder:
        """What a run searches: the catalogue and nothing else."""
        return CatalogueEncoder(self.space, self.catalogue)

    @functools.cached_property
    def losses(self) -> np.ndarray:
        """Losses of the catalogue, ``(n,)``; NaN where the evaluation failed."""
        return np.asarray(self.table.losses, dtype=np.float32).astype(np.float64)

    @functools.cached_property
    def position_of(self) -> dict[str, int]:
        """Position in the catalogue by the key of a configuration."""
        return {configuration_key(configuration): i for i, configuration in enumerate(self.catalogue)}

    @functools.cached_property
    def digest(self) -> str:
        """Digest of everything that was recorded: new losses make new runs."""
        digest = hashlib.sha256()
        for configuration in self.catalogue:
            digest.update(configuration_key(configuration).encode())
        seconds = np.asarray(self.table.seconds, dtype=np.float32)
        digest.update(self.losses.tobytes() + seconds.tobytes())
        digest.update(json.dumps(sorted(self.table.meta_features.items())).encode())
        return digest.hexdigest()[:12]

    def positions_by_algorithm(self) -> dict[str, list[int]]:
        """Return the positions in the catalogue of every algorithm."""
        found: dict[str, list[int]] = {}
        for i, configuration in enumerate(self.catalogue):
            found.setdefault(configuration[ALGORITHM], []).append(i)
        return found

    def initial_positions(self, number: int) -> list[int]:
        """Return what a run begins with: `N_INITIAL` random configurations of every algorithm."""
        rng = np.random.default_rng(number)
        groups = self.positions_by_algorithm().values()
        return [int(i) for positions in groups for i in rng.permutation(positions)[:N_INITIAL]]

    def __call__(self, trial: Trial) -> Outcome:
        """Return what was recorded of the trial's configuration."""
        i = self.position_of[trial.key]
        loss, seconds = float(self.losses[i]), float(self.table.seconds[i])
        if np.isnan(loss):
            cause = Cause(kind=CauseKind.OTHER, text="failed when it was recorded")
            return Outcome(status=TrialStatus.ERROR, error=cause, duration_seconds=seconds)
        return Outcome(status=TrialStatus.SUCCESS, loss=loss, fold_losses=(loss,), duration_seconds=seconds)


def load_targets(path: Path) -> list[Target]:
    """Return the tables of a file of observations."""
    observations = SourceObservations.load(path)
    space = make_space(observations.space, REFERENCE).configuration_space
    try:
        configurations = [Configuration(space, dict(values)) for values in observations.configurations]
    except (ValueError, KeyError, TypeError) as error:
        raise ObservationsError(
            f"{path}: some configurations do not fit the space {observations.space!r} of this version ({error}). "
            "Collect the observations again."
        ) from error
    return [
        Target(table, space, tuple(configurations[i] for i in table.configurations.tolist()))
        for table in observations.tables
    ]


def choose_targets(targets: Sequence[Target], names: Sequence[str], n_trials: int) -> list[Target]:
    """Return the targets of these names, all by default, if they allow this many evaluations."""
    by_name = {target.name: target for target in targets}
    for name in names:
        if name not in by_name:
            raise UnknownNameError("table", name, by_name)
    chosen = [by_name[name] for name in dict.fromkeys(names)] if names else list(targets)
    if not chosen:
        raise ObservationsError("The file of observations holds no table. Name another file.")
    for target in chosen:
        recorded = {name: len(positions) for name, positions in target.positions_by_algorithm().items()}
        n_initial = N_INITIAL * len(recorded)
        if min(recorded.values()) < N_INITIAL or not n_initial < n_trials <= len(target.catalogue):
            expected = (
                f"more than {n_initial}, {N_INITIAL} for each of {len(recorded)} algorithms, and at most the "
                f"{len(target.catalogue)} configurations recorded of table {target.name!r}"
            )
            raise InvalidParameterError("trials", n_trials, expected)
    if len({tuple(target.positions_by_algorithm()) for target in chosen}) > 1:
        raise ObservationsError(
            "The tables were recorded with different algorithms. Choose tables with the same ones by --tables."
        )
    return chosen


def run_number(table: str, seed: int) -> int:
    """Return the seed for all randomness of a run: the same for all strategies, different for every table."""
    return seed_of(seed, table)


def find_strategy(text: str, target: Target, seed: int, artefact: Path | None) -> Strategy:
    """Make a strategy that chooses among the recorded configurations, for one run.

    Parameters
    ----------
    text : str
        Name and options; `RUN` among them stands for `run_number`.
    target : Target
        What is searched.
    seed : int
        Seed of the run.
    artefact : Path or None
        For strategies that take one and do not name their own.
    """
    text = text.replace(RUN, str(run_number(target.name, seed)))
    name, written = parse_strategy(text)
    takes_artefact = "artefact" in open_options(STRATEGIES.get(name)) - written.keys()
    given = {"artefact": artefact} if artefact is not None and takes_artefact else {}
    strategy = make_strategy(text, target.encoder, **given)
    return strategy.for_table(target.table.meta_features) if isinstance(strategy, TableAware) else strategy


def find_learned(text: str, target: Target, artefact: Path | None) -> tuple[Artefact, str] | None:
    """Return the artefact that a strategy uses and its digest; None if it learns from this table only.

    Raises
    ------
    InvalidParameterError
        If it needs an artefact and there is none.
    ArtefactError
        If there is one that cannot be used.
    """
    strategy = find_strategy(text, target, 0, artefact)
    if not isinstance(strategy, MetaLearned) or getattr(strategy, "embedding", None) == "scratch":
        return None
    folders = sorted(SHIPPED.glob("*")) if strategy.artefact == "auto" else [Path(strategy.artefact)]
    manifests = [path.read_bytes() for folder in folders if (path := folder / "manifest.json").exists()]
    return strategy.known_artefact, hashlib.sha256(b"".join(manifests)).hexdigest()[:12]


def make_key(target: Target, text: str, seed: int, *, n_trials: int, learned: str) -> RunKey:
    """Return the key of a run.

    Parameters
    ----------
    target, text, seed
        What is searched, by which strategy; see `find_strategy`.
    n_trials : int
        Evaluations. A longer run cannot replace a shorter one, because rising bandits plan ahead.
    learned : str
        Digest of the artefact, empty without one.
    """
    digest = hashlib.sha256(f"{target.digest}|{n_trials}|{N_INITIAL}|{learned}".encode()).hexdigest()[:12]
    return RunKey(recording=target.name, digest=digest, metric=target.table.metric, strategy=text, seed=seed)


def check_fair(targets: Iterable[Target], artefact: Artefact) -> None:
    """Check that targets share no raw data with the tables of an artefact, and that they have meta-features.

    Raises
    ------
    ObservationsError
        If they do not; the message names them.
    """
    targets = list(targets)
    if undescribed := [target.name for target in targets if not target.table.meta_features]:
        raise ObservationsError(
            f"There are no meta-features of {', '.join(undescribed)}, but the strategies compare tables by them. "
            "Collect the observations again with `cashmere pretrain --collect-only`.",
            table=undescribed[0],
        )
    sources = list(zip(artefact.sources, artefact.origins, strict=True))
    shared = [
        f"{target.name} shares raw data with {source}"
        for target in targets
        for source, origin in sources
        if origin == target.table.origin or source == target.name
    ]
    if shared:
        raise ObservationsError(
            f"Tables must not share raw data with those the artefact was made from, but {'; '.join(shared)}. Leave "
            "them out with --tables."
        )


def search(target: Target, text: str, seed: int, *, n_trials: int, artefact: Path | None) -> tuple[list[int], float]:
    """Make one run; return the positions chosen, in order, and the seconds of deciding."""
    strategy = find_strategy(text, target, seed, artefact)
    number = run_number(target.name, seed)
    initial = [] if starts_alone(text) else target.initial_positions(number)
    metric = get_metric(target.table.metric, TaskType.MULTICLASS)
    majority = target.table.meta_features.get("majority_share", np.nan)
    study = Study(
        target.space,
        strategy,
        seed=number,
        plan=WorkBudget(trials=n_trials),
        warm_start=[target.catalogue[i] for i in initial],
        worst_loss=metric.worst_loss,
        # An ordinary run measures it; from a recording it is known for accuracy only.
        baseline_loss=1 - majority if metric.name == "accuracy" else np.nan,
    )
    while len(study.history) < n_trials:
        trial = study.ask()
        study.tell(trial, target(trial))
    return [target.position_of[o.trial.key] for o in study.history], float(sum(study.suggest_seconds.values()))


def starts_alone(text: str) -> bool:
    """Return whether a strategy gets no initial configurations."""
    return parse_strategy(text)[0] in WITHOUT_INITIAL


def search_missing(
    path: Path,
    missing: Sequence[RunKey],
    *,
    n_trials: int,
    artefact: Path | None,
    n_workers: int,
    scheduler: str | None = None,
    report: Callable[[Run | Failure[RunKey]], None],
) -> None:
    """Make runs in worker processes of one thread each; every result is reported when it arrives.

    Parameters
    ----------
    path : Path
        File of observations of all tables.
    missing : sequence of RunKey
        What to do, in this order.
    n_trials : int
        Evaluations of each run, initial ones included.
    artefact : Path or None
        See `find_strategy`.
    n_workers : int
        Processes.
    scheduler : str, optional
        Address of the Dask cluster that has the processes.
    report : callable
        Called in this process, with one result at a time. When it raises, or on Ctrl+C, the workers are ended.
    """
    make_run = functools.partial(
        _search,
        path.absolute(),
        path.stat().st_mtime_ns,
        n_trials=n_trials,
        artefact=None if artefact is None else artefact.absolute(),
        code=own_digest(),
    )
    make_runs([(key,) for key in missing], make_run, n_workers=n_workers, scheduler=scheduler, report=report)


def _search(path: Path, stamp: int, key: RunKey, *, n_trials: int, artefact: Path | None, code: str) -> Run:
    target = _load(path, stamp)[key.recording]
    chosen, seconds = search(target, key.strategy, key.seed, n_trials=n_trials, artefact=artefact)
    # Losses follow from what was chosen, so no curve is needed.
    return Run(key=key, trials=n_trials, chosen=chosen, suggest_seconds=seconds, curve=[], code=code)


@functools.lru_cache(maxsize=1)
def _load(path: Path, stamp: int) -> dict[str, Target]:
    """Load the targets, once per process."""
    return {target.name: target for target in load_targets(path)}


def own_digest() -> str:
    """Return a digest of the code that decides; runs of other digests may be out of date."""
    return code_digest("experiments/latent/runs.py")
