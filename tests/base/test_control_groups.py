"""Limits of control groups, read from files of imagined machines, and from real groups where we may create them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from cashmere.base.control_groups import cpu_quota, free_memory, memory_limit
from cashmere.base.cores import available_cores
from cashmere.base.memory import available_memory, total_memory

MIB = 2**20


@pytest.fixture
def machine(tmp_path):
    """Return a function that writes files below a folder and returns it."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


VERSION_2 = {
    "proc/self/cgroup": "0::/kubepods/pod7/container\n",
    "proc/self/mountinfo": "35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate\n",
}
VERSION_1 = {
    "proc/self/cgroup": "11:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
    "proc/self/mountinfo": (
        "30 25 0:26 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
        "31 25 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    ),
}


def test_version_2_takes_the_smallest_limit_of_all_enclosing_groups(machine):
    inner, outer = "sys/fs/cgroup/kubepods/pod7/container", "sys/fs/cgroup/kubepods"
    root = machine(
        VERSION_2
        | {f"{inner}/cpu.max": "max 100000\n", f"{outer}/cpu.max": "150000 100000\n"}
        | {f"{inner}/memory.max": "max\n", f"{inner}/memory.high": "max\n", f"{inner}/memory.current": "5\n"}
        | {f"{outer}/memory.max": f"{900 * MIB}\n", f"{outer}/memory.current": f"{700 * MIB}\n"}
        | {f"{outer}/memory.stat": f"anon 1\ninactive_file {100 * MIB}\n"}
    )
    assert cpu_quota(root) == 1.5
    assert memory_limit(root) == 900 * MIB
    assert free_memory(root) == 300 * MIB


def test_version_2_respects_the_limit_that_throttles(machine):
    group = "sys/fs/cgroup/kubepods/pod7/container"
    files = {f"{group}/memory.max": "max", f"{group}/memory.high": str(50 * MIB), f"{group}/memory.current": "0"}
    assert memory_limit(machine(VERSION_2 | files)) == 50 * MIB


def test_version_1_in_a_container_that_sees_its_own_group_as_the_root(machine):
    root = machine(
        VERSION_1
        | {
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
        }
        | {"sys/fs/cgroup/memory/memory.limit_in_bytes": str(64 * MIB)}
        | {
            "sys/fs/cgroup/memory/memory.usage_in_bytes": str(80 * MIB),
            "sys/fs/cgroup/memory/memory.stat": "total_rss 1",
        }
    )
    assert cpu_quota(root) == 3.0
    assert memory_limit(root) == 64 * MIB
    assert free_memory(root) == 0


def test_no_limit_is_infinity(machine):
    root = machine(
        VERSION_1
        | {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000"}
        | {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}
        | {"sys/fs/cgroup/memory/memory.usage_in_bytes": "1"}
    )
    assert cpu_quota(root) == memory_limit(root) == free_memory(root) == math.inf


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="another system"),
        pytest.param(VERSION_2, id="groups without files"),
        pytest.param(
            VERSION_2 | {"sys/fs/cgroup/cpu.max": "100000 0", "sys/fs/cgroup/memory.max": "much"}, id="nonsense"
        ),
    ],
)
def test_unreadable_files_limit_nothing(machine, files):
    root = machine(files)
    assert cpu_quota(root) == memory_limit(root) == free_memory(root) == math.inf


def test_this_machine_has_cores_and_memory():
    assert 1 <= available_cores() <= os.cpu_count()
    assert 0 < available_memory() <= total_memory() <= psutil.virtual_memory().total / MIB


def test_a_slurm_job_limits_cores_and_memory(monkeypatch):
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "64")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    monkeypatch.setenv("SLURM_MEM_PER_CPU", "3")
    assert available_cores() == 1
    assert total_memory() == 64 * 3
    assert available_memory() < 64 * 3
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "150")
    assert total_memory() == 150


@pytest.fixture
def real_groups():
    """Return folders of new groups of version 1, one per controller; they are removed after the test."""
    folders = [Path("/sys/fs/cgroup") / controller / f"cashmere-{uuid.uuid4().hex}" for controller in ("cpu", "memory")]
    made: list[Path] = []
    try:
        for folder in folders:
            try:
                folder.mkdir()
                made.append(folder)
                if not (folder / "cgroup.procs").exists():
                    pytest.skip("no control groups of version 1 here")
            except OSError:
                pytest.skip("this process may make no control groups")
        yield folders
    finally:
        for folder in made:
            folder.rmdir()


def test_real_limits_are_found(real_groups):
    cpu, memory = real_groups
    (cpu / "cpu.cfs_quota_us").write_text("100000")
    (memory / "memory.limit_in_bytes").write_text(str(512 * MIB))
    program = [
        *[f"open({str(folder / 'cgroup.procs')!r}, 'w').write('0')" for folder in real_groups],
        "from cashmere.base.cores import available_cores",
        "from cashmere.base.memory import available_memory, total_memory",
        "print(available_cores(), total_memory(), available_memory())",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True, check=True)
    cores, total, available = (float(word) for word in done.stdout.split())
    assert cores == 1
    assert total == 512
    assert 100 < available < 512
