"""The preprocessors of ``autosklearn6``, built when the width of their input matrix is known."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from cashmere.space.component import BuildContext, Operator
from cashmere.space.named.autosklearn6_operators import BUILT_AT_FIT
from cashmere.space.space import NO_OPERATOR

Values = Mapping[str, Any]


def _build_at_fit(values: Values, context: BuildContext, *, name: str) -> Any:
    from cashmere.space.named.operator_at_fit import OperatorAtFit

    return OperatorAtFit(
        name, dict(values), n_classes=context.n_classes, n_threads=context.n_threads, seed=context.seed
    )


PREPROCESSORS_AT_FIT: tuple[Operator, ...] = (
    Operator(name="no_preprocessing", build=NO_OPERATOR.build, group=("projections", "none")),
    *(
        dataclasses.replace(operator, build=functools.partial(_build_at_fit, name=operator.name))
        for operator in BUILT_AT_FIT
    ),
)
"""None and twelve preprocessors; group paths give the tree of docs/papers/dacopt.md#group-trees."""
