"""Run trials on a Ray cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cashmere.base.versions import versions
from cashmere.exceptions import ClusterError
from cashmere.execution.cluster_executor import POLL_SECONDS, ClusterExecutor
from cashmere.execution.file_bundle import FileBundle
from cashmere.execution.files_in_place import FilesInPlace
from cashmere.execution.limits import Limits
from cashmere.execution.messages import pack
from cashmere.execution.ray_actors import Actor, ActorPool
from cashmere.execution.sites import Answer
from cashmere.protocols import Objective

if TYPE_CHECKING:
    import ray

_BEAT_SECONDS = 10.0
"""How long after its last sign of life an actor is asked for another."""

_SILENT_SECONDS = 300.0
"""How long an actor may be silent before it counts as lost. Ray notices machines and processes that end, but not
processes that hang."""


class RayExecutor(ClusterExecutor):
    """Run trials in watched worker processes beside actors of a Ray cluster.

    Each of `n_workers` actors takes one core and the memory of a trial, on a machine that Ray chooses, and runs one
    trial after the other. Ray ends the actors with this process, which is connected to the cluster and stays so.

    Parameters
    ----------
    address, n_workers, limits, log_folder
        See `ClusterExecutor`.
    memory_mib : float
        Memory that Ray reserves for each actor.
    """

    def __init__(
        self,
        address: str,
        n_workers: int = 1,
        *,
        limits: Limits | None = None,
        log_folder: Path | None = None,
        memory_mib: float = 0.0,
    ) -> None:
        super().__init__(address, n_workers, limits=limits, log_folder=log_folder)
        self._actors = ActorPool(n_workers, memory_mib=memory_mib)
        self._bundles: dict[str, ray.ObjectRef[FileBundle]] = {}

    def _is_connected(self) -> bool:
        import ray

        return bool(ray.is_initialized())

    def _close_sites(self, names: list[str]) -> None:
        import ray

        for closed in [actor.handle.close_sites.remote(names) for actor in self._actors.begun()]:
            ray.wait([closed])

    def _let_go(self) -> None:
        from ray.exceptions import RayError

        self._bundles.clear()
        with suppress(RayError):  # the cluster was lost
            self._actors.close()

    def _attempt(self, number: int, site: str, packed: bytes, lost: list[str]) -> tuple[Answer, bytes | str] | None:
        """Submit a trial to an actor once."""
        from ray.exceptions import RayActorError, RayError, RayTaskError

        actor = None
        try:
            if (actor := self._actors.take(POLL_SECONDS)) is None:
                return None
            answer = self._answer(actor, site, packed)
            if answer is not None:
                self._actors.give_back(actor)
                return answer
        except RayTaskError as error:
            raise self._unusable(error.cause) from error
        except RayError as error:
            if isinstance(error, RayActorError) and error.actor_init_failed:
                raise self._unusable(error) from error
        except ConnectionError as error:
            text = (
                "was lost. Everything finished is kept in the run directory, if you gave one: start the cluster again, "
                "then resume the run."
            )
            raise ClusterError(self._address, text) from error
        if actor is not None and not self._closed.is_set():
            self._note_lost(number, actor.name, lost)
            self._actors.drop(actor)
        return None

    def _answer(self, actor: Actor, site: str, packed: bytes) -> tuple[Answer, bytes | str] | None:
        """Return an actor's answer to a trial; None if it is silent, or nobody waits for it any longer.

        Raises
        ------
        RayError
            If the actor is lost.
        """
        import ray

        answer = actor.handle.run_trial.remote(site, versions(), packed)
        beat, heard = None, time.monotonic()
        while not self._abandoned.is_set() and (silent := time.monotonic() - heard) < _SILENT_SECONDS:
            if beat is None and silent > _BEAT_SECONDS:
                beat = actor.handle.address.remote()
            ready, _ = ray.wait([answer] if beat is None else [answer, beat], timeout=POLL_SECONDS)
            if answer in ready:
                answered: tuple[Answer, bytes | str] = ray.get(answer)
                return answered
            if beat in ready:
                beat, heard = None, time.monotonic()
        return None

    def _unusable(self, error: BaseException | None) -> ClusterError:
        text = f"cannot run trials ({type(error).__name__}: {error}). Install the same packages on all machines."
        return ClusterError(self._address, text)

    def _send(self, site: str, objective: Objective, paths: Mapping[str, Path], worker: str) -> bool:
        """Make a site on an actor. It copies files that it can see; others go to each machine once."""
        import ray
        from ray.exceptions import RayError

        if (actor := self._actors.named(worker)) is None:
            return False
        in_place = FilesInPlace.describe(paths)
        try:
            files = ray.put(in_place) if ray.get(actor.handle.can_see.remote(in_place)) else self._bundle(site, paths)
            problem = ray.get(actor.handle.deliver.remote(site, pack((objective, self._limits)), [files]))
        except RayError:  # the worker was lost meanwhile
            return False
        if problem is not None:
            raise self._unprepared(worker, problem)
        return True

    def _bundle(self, site: str, paths: Mapping[str, Path]) -> ray.ObjectRef[FileBundle]:
        """Put the files of a site into Ray's object store, once."""
        import ray

        with self._bundling:
            if site not in self._bundles:
                self._bundles[site] = ray.put(FileBundle.read(paths))
            return self._bundles[site]
