"""Check that constraints.txt pins what the development environment needs, nothing else, and what is installed.

Run by `make lint` in the environment made from the file; `make lock` writes the file. What a distribution is asked for
is read from its metadata, with the markers of the environment that the file is made for.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

FILE = Path(__file__).parents[1] / "constraints.txt"
LOCKED_FOR = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.0",
    "python_version": "3.11",
    "sys_platform": "linux",
}


def read_pins(text: str) -> dict[str, Version]:
    """Return the pinned version of each distribution; its name is in the canonical form."""
    pins = [line.split("==") for line in text.splitlines() if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pins}


def requirements(name: str, extra: str) -> list[Requirement]:
    """Return what one extra of an installed distribution asks for; "" stands for the distribution itself."""
    try:
        found = [Requirement(text) for text in distribution(name).requires or []]
    except PackageNotFoundError:  # needed where the file is made, but not on this machine
        return []
    return [r for r in found if r.marker is None or r.marker.evaluate({**LOCKED_FOR, "extra": extra})]


def reached_from(root: Requirement, *, through_exact: bool) -> set[str]:
    """Return the canonical names of all that `root` needs, directly or not.

    With `through_exact` false, leave out what is needed only by way of an exact requirement: its version is fixed
    already. So the accelerator libraries of PyTorch need no pins of their own.
    """
    seen: set[tuple[str, str]] = set()
    ahead = [root]
    while ahead:
        requirement = ahead.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                ahead += [
                    asked
                    for asked in requirements(name, extra)
                    if through_exact or not any(s.operator == "==" for s in asked.specifier)
                ]
    return {name for name, _ in seen} - {canonicalize_name(root.name)}


def installed_version(name: str) -> Version | None:
    """Return the installed version without its local part ("+cpu"), or None."""
    try:
        return Version(Version(distribution(name).version).public)
    except PackageNotFoundError:
        return None


def complaints(pins: dict[str, Version]) -> list[str]:
    """Return one line for each pin that is missing, superfluous, or different from what is installed."""
    root = Requirement("cashmere-automl[dev]")
    missing = reached_from(root, through_exact=False) - pins.keys()
    superfluous = pins.keys() - reached_from(root, through_exact=True)
    lines = [f"{name} is needed but not pinned" for name in sorted(missing)]
    lines += [f"{name} is pinned but not needed" for name in sorted(superfluous)]
    for name in sorted(pins.keys() - superfluous):
        version = installed_version(name)
        if version not in (None, pins[name]):
            lines.append(f"{name} is pinned to {pins[name]}, but {version} is installed")
    return lines


if __name__ == "__main__":
    found = complaints(read_pins(FILE.read_text()))
    if found:
        sys.exit(
            "\n".join([*found, "constraints.txt does not fit the environment: run `make lock`, then `make test`."])
        )
