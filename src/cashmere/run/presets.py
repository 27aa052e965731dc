"""Presets: named sets of defaults for settings that are not given.

For the reasons behind the values, see docs/running.md#presets.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from cashmere.exceptions import UnknownNameError

BALANCED = "balanced"

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "fast": {"budget": "1m", "max_latency": None, "repeats": "auto"},
        BALANCED: {"budget": "10m", "max_latency": None, "repeats": "auto"},
        "best": {"budget": "1h", "max_latency": None, "repeats": "auto"},
        "small": {"budget": "10m", "max_latency": "20ms", "repeats": 0},
    }
)
"""Values of settings, as users write them, by preset. All presets give values for the same settings."""


def preset_settings(name: str) -> Mapping[str, Any]:
    """Return the settings of a preset.

    Parameters
    ----------
    name : str
        ``"fast"``, ``"balanced"``, ``"best"`` or ``"small"``.

    Raises
    ------
    UnknownNameError
        If there is no such preset.

    Examples
    --------
    >>> preset_settings("fast")["budget"]
    '1m'
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    return PRESETS[name]
