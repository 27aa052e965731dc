"""Code that runs inside a Dask worker: it hands trials to the sites of this process.

Dask cannot stop a task. So each task only waits for a watched worker process.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cashmere.execution import sites
from cashmere.execution.files_in_place import FilesInPlace
from cashmere.execution.messages import unpack
from cashmere.execution.sites import Answer, Site, answer_trial, open_site

if TYPE_CHECKING:
    from distributed import Worker


async def can_see(files: FilesInPlace) -> bool:
    """Return whether this process can read files where the coordinator has them."""
    return await asyncio.to_thread(files.are_visible)  # storage may be slow


async def deliver(site: str, delivery: bytes, dask_worker: Any) -> str | None:
    """Make a site in this process, unless one of this name exists; return what went wrong, or None.

    Parameters
    ----------
    site : str
        Name of the site.
    delivery : bytes
        The objective, the files that it reads (a `FileBundle` or `FilesInPlace`) and the `Limits` of its trials,
        packed.
    dask_worker : distributed.Worker
        Given by Dask.
    """
    return await asyncio.to_thread(open_site, site, partial(_make_site, delivery, dask_worker.local_directory))


def _make_site(delivery: bytes, local_directory: str) -> Site:
    folder = Path(tempfile.mkdtemp(prefix="cashmere-", dir=local_directory))
    leave = partial(shutil.rmtree, folder, ignore_errors=True)
    try:
        objective, files, limits = unpack(delivery)
        files.write(folder)
        return Site(objective, limits, folder=folder, leave=leave)
    except BaseException:
        leave()
        raise


async def close_sites(names: Sequence[str]) -> None:
    """Close those sites with these names that are in this process."""
    await asyncio.to_thread(sites.close_sites, names)


def run_trial(site: str, topic: str, wanted: Mapping[str, str], trial: bytes) -> tuple[Answer, bytes | str]:
    """Run a trial; the function of each Dask task.

    Parameters
    ----------
    site, wanted, trial
        See `answer_trial`.
    topic : str
        Where to announce that the task has begun.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    worker.log_event(topic, {"key": key, "worker": worker.address})
    return answer_trial(site, worker.address, wanted, trial, lambda: _is_wanted(worker, key))


def _is_wanted(worker: Worker, key: str) -> bool:
    """Return whether Dask still waits for a task: it was not cancelled, its client lives, its worker is not closing."""
    task = worker.state.tasks.get(key)
    closing = worker.status.name in ("closing", "closed", "failed")
    return task is not None and task.state == "executing" and not closing
