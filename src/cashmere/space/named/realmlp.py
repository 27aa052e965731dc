"""RealMLP in the space ``default``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import Float, Integer

from cashmere.data.task import TaskProfile
from cashmere.space.component import Algorithm, BuildContext, Subspace
from cashmere.space.named import classic

_MOST_ROWS = 100_000
"""On longer tables, even a few epochs take minutes on a CPU."""


def _subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_layers", (1, 4), default=3),
            Integer("width", (64, 512), log=True, default=256),
            Float("learning_rate", (0.01, 0.3), log=True, default=0.04 if profile.task_type.is_classification else 0.1),
            Float("dropout", (0.0, 0.4), default=0.15),
            Float("weight_decay", (1e-3, 0.3), log=True, default=0.02),
            Float("frequency", (0.03, 1.0), log=True, default=0.1),
        ]
    )


def _build(values: Mapping[str, Any], context: BuildContext) -> Any:
    from cashmere.space.estimators.realmlp import RealMLPClassifier, RealMLPRegressor

    if context.task_type.is_classification:
        return RealMLPClassifier(**values, random_state=context.seed)
    return classic.standardised_target(RealMLPRegressor(**values, random_state=context.seed))


REALMLP = Algorithm(
    name="realmlp",
    build=_build,
    subspace=_subspace,
    group=("neural",),
    encodings=classic.DENSE,
    onnx=classic.DENSE,
    max_rows=_MOST_ROWS,
)
