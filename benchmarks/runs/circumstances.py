"""Where, when and with what a run was made; kept beside every figure."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path

import pandas as pd
import psutil

from cashmere.base.versions import versions


def describe_circumstances() -> dict[str, str]:
    """Return ``date``, ``machine`` (processor, cores, memory, system) and ``versions`` of the libraries used."""
    return {"date": date.today().isoformat(), "machine": describe_machine(), "versions": _versions()}


def count_circumstances(cases: Iterable[Mapping[str, str]]) -> pd.DataFrame:
    """Return a row per distinct case, with its number of runs in the column ``runs``; unknown values are empty."""
    known = {"date": "", "machine": "", "versions": ""}
    return pd.DataFrame([{**known, **case} for case in cases]).value_counts(sort=False).rename("runs").reset_index()


@functools.cache
def describe_machine() -> str:
    """Return the processor, the cores this process sees, the memory and the system, in one line without commas."""
    memory = psutil.virtual_memory().total / 2**30
    return f"{_processor()}; {os.cpu_count()} cores; {memory:.0f} GiB; {platform.system()} {platform.machine()}"


@functools.cache
def _versions() -> str:
    return "; ".join(f"{name} {version}" for name, version in versions().items())


def _processor() -> str:
    """Return the model's name from Linux; elsewhere what Python finds."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown processor"
