"""Peers, the other systems that cashmere is compared with, and their environments.

A peer is a runner ``benchmarks/peers/runners/run_NAME.py`` and its requirements ``benchmarks/peers/runners/NAME.txt``.
It is installed into a separate environment, since the systems need different versions of the same packages;
cashmere, which has no requirements there, runs in the environment of the benchmark.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.runs.code_digest import package_digest
from cashmere.exceptions import UnknownNameError

RUNNERS = Path(__file__).parent / "runners"
OURS = "cashmere"
SHARED = {"autogluon_portfolio": "autogluon", "autogluon_portfolio_torch": "autogluon_torch"}
"""Peers that run in the environment of another."""

INSTALLED = "installed-requirements.txt"
"""Copy of the requirements in an environment; written last, so that an interrupted installation does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A system, and how to run it.

    Attributes
    ----------
    name : str
        Name on the command line and in results.
    python : Path
        Interpreter of its environment.
    script : Path
        Its runner, called with a folder: see `benchmarks/peers/runners/exchange.py`.
    """

    name: str
    python: Path
    script: Path

    @property
    def digest(self) -> str:
        """Digest of our code: the runner, and for cashmere the package."""
        exchange = (RUNNERS / "exchange.py").read_bytes()
        ours = package_digest().encode() if self.name == OURS else b""
        return hashlib.sha256(self.script.read_bytes() + exchange + ours).hexdigest()[:12]


def peer_names() -> list[str]:
    """Return the names of all peers."""
    return sorted(path.stem.removeprefix("run_") for path in RUNNERS.glob("run_*.py"))


def find_peers(names: Sequence[str], environments: Path) -> list[Peer]:
    """Return peers by name, without repetitions, installed or not.

    Raises
    ------
    UnknownNameError
        If there is no such peer.
    """
    _check(names)
    return [
        Peer(name=name, python=_python(name, environments), script=RUNNERS / f"run_{name}.py")
        for name in dict.fromkeys(names)
    ]


def require_installed(names: Iterable[str], environments: Path) -> None:
    """Raise SystemExit if one of the peers is not installed, with the command that installs those that are missing."""
    if missing := [name for name in dict.fromkeys(names) if not is_installed(name, environments)]:
        raise SystemExit(
            f"Not installed in {environments}: {', '.join(missing)}. "
            f"Install with: python -m benchmarks peers --install {' '.join(missing)}"
        )


def is_installed(name: str, environments: Path) -> bool:
    """Return whether the environment of a peer is complete."""
    return name == OURS or (environments / SHARED.get(name, name) / INSTALLED).exists()


def install(name: str, environments: Path) -> Path:
    """Create the environment of a peer, replacing an existing one; return the interpreter.

    Raises
    ------
    UnknownNameError
        If there is no such peer.
    SystemExit
        If venv or pip fail; their output says why.
    """
    _check([name])
    python = _python(name, environments)
    name = SHARED.get(name, name)
    if name == OURS:
        return python
    folder, requirements = environments / name, RUNNERS / f"{name}.txt"
    commands = (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(requirements)],
    )
    for command in commands:
        if code := subprocess.run(command).returncode:
            raise SystemExit(f"{name} could not be installed: {' '.join(command)} ended with {code}.")
    shutil.copy(requirements, folder / INSTALLED)
    return python


def _check(names: Sequence[str]) -> None:
    for name in names:
        if name not in peer_names():
            raise UnknownNameError("peer", name, peer_names())


def _python(name: str, environments: Path) -> Path:
    if name == OURS:
        return Path(sys.executable)
    return (environments / SHARED.get(name, name) / "bin" / "python").absolute()
