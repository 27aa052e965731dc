"""The Ray actors of an executor: running a trial, free, or waiting for Ray to place them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cashmere.execution.inside_ray_worker import TrialActor
from cashmere.execution.limits import MIB

if TYPE_CHECKING:
    import ray

_METHODS_AT_A_TIME = 4
"""More than one, because an actor must answer while it runs a trial."""

# Otherwise Ray would kill the guard of a worker process before the guard has killed what the trial has started.
_ENVIRONMENT = {"env_vars": {"RAY_kill_child_processes_on_worker_exit": "0"}}


@dataclass(frozen=True, slots=True)
class Actor:
    """An actor that has started.

    Attributes
    ----------
    name : str
        Machine and process.
    handle : ray.actor.ActorHandle
        Handle of a `TrialActor`.
    """

    name: str
    handle: Any


class ActorPool:
    """Keep a number of actors, each with one core and some memory, on machines that Ray chooses.

    Parameters
    ----------
    n_actors : int
        Number of actors; those that Ray has no room for wait.
    memory_mib : float
        Memory that Ray reserves for each; 0 for none.
    """

    def __init__(self, n_actors: int, *, memory_mib: float) -> None:
        import ray

        self._n_actors = n_actors
        self._make = ray.remote(TrialActor).options(
            num_cpus=1,
            memory=int(memory_mib * MIB) or None,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=_METHODS_AT_A_TIME,
            scheduling_strategy="SPREAD",
            runtime_env=_ENVIRONMENT,
        )
        self._lock = threading.Lock()
        self._coming: dict[ray.ObjectRef[str], Any] = {}
        self._begun: dict[str, Actor] = {}
        self._free: list[Actor] = []
        self._closed = False

    def take(self, seconds: float) -> Actor | None:
        """Return a free actor, or None if there is none within these seconds.

        Raises
        ------
        RayActorError
            If an actor ended before it had started.
        """
        import ray

        with self._lock:
            if self._closed:
                return None
            if self._free:
                return self._free.pop()
            while len(self._coming) + len(self._begun) < self._n_actors:
                handle = self._make.remote()
                self._coming[handle.address.remote()] = handle
            coming = list(self._coming)
        if coming:
            begun, _ = ray.wait(coming, timeout=seconds)
        else:  # all actors run trials
            begun = []
            threading.Event().wait(seconds)
        for told in begun:
            with self._lock:  # also while the name is read, so that `close` knows every actor
                if (handle := self._coming.pop(told, None)) is not None:  # else another thread was faster
                    actor = Actor(ray.get(told), handle)
                    self._begun[actor.name] = actor
                    self._free.append(actor)
        with self._lock:
            return self._free.pop() if self._free else None

    def named(self, name: str) -> Actor | None:
        """Return the actor with this name, or None if it was dropped."""
        with self._lock:
            return self._begun.get(name)

    def give_back(self, actor: Actor) -> None:
        """Return an actor to the pool for the next trial."""
        with self._lock:
            self._free.append(actor)

    def drop(self, actor: Actor) -> None:
        """Kill an actor that was taken; another will replace it."""
        import ray

        with self._lock:
            self._begun.pop(actor.name, None)
        ray.kill(actor.handle)

    def begun(self) -> list[Actor]:
        """Return the actors that have started and were not dropped."""
        with self._lock:
            return list(self._begun.values())

    def close(self) -> None:
        """Kill all actors, including those that have not started; start no others."""
        import ray

        with self._lock:
            self._closed = True
            handles = [*self._coming.values(), *(actor.handle for actor in self._begun.values())]
        for handle in handles:
            ray.kill(handle)
