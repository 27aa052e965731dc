"""Code that runs inside a Ray actor: it hands trials to the sites of its process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cashmere.execution import sites
from cashmere.execution.file_bundle import FileBundle
from cashmere.execution.files_in_place import FilesInPlace
from cashmere.execution.messages import unpack
from cashmere.execution.shared_folder import SharedFolder
from cashmere.execution.sites import Answer, Site, answer_trial, open_site

if TYPE_CHECKING:
    import ray


class TrialActor:
    """The Ray actor that runs trials, one at a time.

    When the coordinator ends, Ray ends the actor, which takes the processes and files of its trials with it. Actors on
    one machine share the files.
    """

    def address(self) -> str:
        """Return where this actor runs, which tells actors apart."""
        from ray.util import get_node_ip_address

        return f"{get_node_ip_address()} (process {os.getpid()})"

    def can_see(self, files: FilesInPlace) -> bool:
        """Return whether this process can read files where the coordinator has them."""
        return files.are_visible()

    def deliver(
        self, site: str, packed: bytes, files: Sequence[ray.ObjectRef[FileBundle | FilesInPlace]]
    ) -> str | None:
        """Make a site in this process, unless one of this name exists; return what went wrong, or None.

        Parameters
        ----------
        site : str
            Name of the site.
        packed : bytes
            The objective and the `Limits` of its trials, packed.
        files : sequence of 1 reference
            The files that it reads; they are copied from where they are, or Ray brings them to each machine once.
        """
        return open_site(site, partial(_make_site, site, packed, files))

    def run_trial(self, site: str, wanted: Mapping[str, str], trial: bytes) -> tuple[Answer, bytes | str]:
        """Run a trial; see `answer_trial`."""
        return answer_trial(site, self.address(), wanted, trial, lambda: True)

    def close_sites(self, names: Sequence[str]) -> None:
        """Close those sites with these names that are in this process."""
        sites.close_sites(names)


def _make_site(name: str, packed: bytes, files: Sequence[ray.ObjectRef[FileBundle | FilesInPlace]]) -> Site:
    import ray

    def fill(folder: Path) -> None:
        ray.get(files[0]).write(folder)

    folder = SharedFolder(Path(ray.get_runtime_context().get_temp_dir()) / name, fill)
    try:
        objective, limits = unpack(packed)
        return Site(objective, limits, folder=folder.files, leave=folder.leave)
    except BaseException:
        folder.leave()
        raise
