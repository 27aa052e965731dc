"""Limits on this process from Linux control groups (versions 1 and 2), which containers and batch systems use.

The limits of all enclosing groups apply, so they are read from the group of the process up to the visible root.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED_BYTES = 2**60
"""Version 1 writes the largest multiple of the page size for "no limit"."""

_MEMORY_FILES = {
    1: (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"),
    2: (("memory.max", "memory.high"), "memory.current", "inactive_file"),
}
"""By version: the files with limits, the file with the usage, and the entry of ``memory.stat`` for cached files."""


def cpu_quota(root: Path = Path("/")) -> float:
    """Return how many CPUs' worth of time the groups of this process grant; infinity without a limit.

    Parameters
    ----------
    root : path
        Where ``proc`` and the control groups are mounted.
    """
    quotas = [math.inf]
    for group in _groups("cpu", root):
        if group.version == 2:
            quota, _, period = group.read("cpu.max").partition(" ")
        else:
            quota, period = group.read("cpu.cfs_quota_us"), group.read("cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period) > 0:  # not "max" or -1
            quotas.append(int(quota) / int(period))
    return min(quotas)


def memory_limit(root: Path = Path("/")) -> float:
    """Return how many bytes the groups of this process may use; infinity without a limit."""
    return min((limit for limit, _ in _memory(root)), default=math.inf)


def free_memory(root: Path = Path("/")) -> float:
    """Return how many bytes the groups of this process may still take; infinity without a limit.

    Cached files that nobody reads at the moment count as free: the kernel drops them first.
    """
    return min((max(0.0, limit - used) for limit, used in _memory(root)), default=math.inf)


@dataclass(frozen=True, slots=True)
class _Group:
    folder: Path
    version: int

    def read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text().strip()
        except OSError:  # missing at some levels, unreadable for some users
            return ""


def _memory(root: Path) -> Iterator[tuple[float, float]]:
    """Yield limit and usage of each group with a limit, in bytes."""
    for group in _groups("memory", root):
        limits, use, cache = _MEMORY_FILES[group.version]
        bounds = [int(text) for name in limits if (text := group.read(name)).isdigit()]
        used = group.read(use)
        if bounds and min(bounds) < _UNLIMITED_BYTES and used.isdigit():
            statistics = dict(line.split(" ", 1) for line in group.read("memory.stat").splitlines() if " " in line)
            yield float(min(bounds)), float(int(used) - int(statistics.get(cache, "0")))


def _groups(controller: str, root: Path) -> Iterator[_Group]:
    """Yield the groups in which a controller may limit this process, innermost first."""
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:  # not Linux
        return
    paths: dict[str, str] = {}
    for line in memberships:
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)  # version 2 has the name ""
    for line in mounts:
        mounted, _, kind = line.partition(" - ")
        top, point = mounted.split()[3:5]
        file_system, _, options = kind.split()[:3]
        if file_system == "cgroup2" and "" in paths:
            path, version = paths[""], 2
        elif file_system == "cgroup" and controller in options.split(",") and controller in paths:
            path, version = paths[controller], 1
        else:
            continue
        mount = root / point.lstrip("/")
        # A container may see only its own group, mounted as if it were the root.
        inner = Path(path).relative_to(top) if Path(path).is_relative_to(top) else Path()
        folder = mount / inner
        for each in (folder, *folder.parents):
            yield _Group(each, version)
            if each == mount:
                break
