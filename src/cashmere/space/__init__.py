"""Search spaces: algorithms, operators, and the conversion of configurations to arrays and pipelines.

Importing this package is light, because fitted models contain estimators from here, but need no space: learners are
imported when a pipeline is built, and spaces when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cashmere.space.component import (
    ALL_TASKS,
    CLASSIFICATION,
    REGRESSION,
    Algorithm,
    BuildContext,
    Component,
    Operator,
    Subspace,
)

if TYPE_CHECKING:
    from cashmere.space.estimators.margins import MarginProbabilities
    from cashmere.space.named.classic import CLASSIC_ALGORITHMS
    from cashmere.space.named.default import DEFAULT_ALGORITHMS
    from cashmere.space.named.registry import SPACES, SpaceFactory, make_space, register_space
    from cashmere.space.space import NO_OPERATOR, Space

__all__ = [
    "ALL_TASKS",
    "CLASSIC_ALGORITHMS",
    "CLASSIFICATION",
    "DEFAULT_ALGORITHMS",
    "NO_OPERATOR",
    "REGRESSION",
    "SPACES",
    "Algorithm",
    "BuildContext",
    "Component",
    "MarginProbabilities",
    "Operator",
    "Space",
    "SpaceFactory",
    "Subspace",
    "make_space",
    "register_space",
]

_HOMES = {
    "CLASSIC_ALGORITHMS": "cashmere.space.named.classic",
    "DEFAULT_ALGORITHMS": "cashmere.space.named.default",
    "MarginProbabilities": "cashmere.space.estimators.margins",
    "NO_OPERATOR": "cashmere.space.space",
    "SPACES": "cashmere.space.named.registry",
    "Space": "cashmere.space.space",
    "SpaceFactory": "cashmere.space.named.registry",
    "make_space": "cashmere.space.named.registry",
    "register_space": "cashmere.space.named.registry",
}


def __getattr__(name: str) -> Any:
    """Import what needs ConfigSpace or scikit-learn on first use."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
