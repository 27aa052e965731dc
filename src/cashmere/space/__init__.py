"""Search spaces: algorithms, operators, and the conversion of configurations to arrays and pipelines.

Importing this package is light: learners are imported when a pipeline is built.
"""

from __future__ import annotations

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
from cashmere.space.named.classic import CLASSIC_ALGORITHMS
from cashmere.space.named.default import DEFAULT_ALGORITHMS
from cashmere.space.named.registry import SPACES, SpaceFactory, make_space, register_space
from cashmere.space.space import NO_OPERATOR, Space

if TYPE_CHECKING:
    from cashmere.space.estimators.margins import MarginProbabilities

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


def __getattr__(name: str) -> Any:
    """Import names that need scikit-learn on first use."""
    if name == "MarginProbabilities":
        from cashmere.space.estimators.margins import MarginProbabilities

        return MarginProbabilities
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
