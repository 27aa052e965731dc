"""A SLURM cluster of one machine on loopback, for tests: Debian's package, run as root."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "sinfo")

# No control groups, no accounting, no munge: what a test may start and end beside others on any machine.
_CONFIGURATION = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmctldPort={port}
SlurmdPort={slurmd_port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/slurmd
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Return why SLURM cannot be run here; None if it can."""
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    if lacking:
        return f"{', '.join(lacking)} missing: apt-get install slurm-wlm"
    return None if os.geteuid() == 0 else "SLURM's daemons need root"


@contextlib.contextmanager
def slurm(folder: Path, *, cores: int = 4, memory_mib: int = 8192) -> Iterator[dict[str, str]]:
    """Start controller and daemon; return the environment in which SLURM's commands find them.

    Parameters
    ----------
    folder : Path
        Existing folder for configuration, state and logs.
    cores, memory_mib : int
        What SLURM takes the machine to have.
    """
    (folder / "state").mkdir()
    (folder / "slurmd").mkdir()
    port, slurmd_port = _free_ports(2)
    configuration = folder / "slurm.conf"
    text = _CONFIGURATION.format(
        host=socket.gethostname().partition(".")[0],
        port=port,
        slurmd_port=slurmd_port,
        folder=folder,
        cores=cores,
        memory=memory_mib,
    )
    configuration.write_text(text)
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    daemons = []
    try:
        for command in (["slurmctld", "-D", "-c"], ["slurmd", "-D", "-f", str(configuration)]):
            quiet = subprocess.DEVNULL
            daemons.append(subprocess.Popen(command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet))
        _wait_until_idle(environment)
        yield environment
        subprocess.run(["scancel", "--user=root"], env=environment, check=True)
        _wait_until_empty(environment)
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def jobs(environment: dict[str, str]) -> list[str]:
    """Return the states of the jobs that wait, run or end."""
    return _output(["squeue", "--noheader", "--format=%T"], environment).split()


def _wait_until_idle(environment: dict[str, str]) -> None:
    end = time.monotonic() + 30
    while (state := _output(["sinfo", "--noheader", "--format=%T"], environment).strip()) != "idle":
        assert time.monotonic() < end, state
        time.sleep(0.2)


def _wait_until_empty(environment: dict[str, str]) -> None:
    end = time.monotonic() + 60
    while states := jobs(environment):
        assert time.monotonic() < end, states
        time.sleep(0.2)


def _output(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
