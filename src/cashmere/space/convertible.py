"""The part of a space whose models convert to ONNX (`cashmere.export`)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from ConfigSpace import Configuration

from cashmere.data.task import Encoding, TaskProfile
from cashmere.exceptions import SpaceError
from cashmere.space.component import Algorithm, Operator, Resampler, Subspace
from cashmere.space.space import NO_OPERATOR, Space

_NO_CONVERTER = "does not convert to ONNX"


def convertible(space: Space) -> tuple[Space, str]:
    """Return the part of a space whose models convert to ONNX, and a sentence about what it lacks.

    Parameters
    ----------
    space : Space
        Its algorithms declare in `Algorithm.onnx` under which prepared forms of a table they convert. Only operators
        that are not part of a model are kept.

    Returns
    -------
    space : Space
    sentence : str
        Algorithms, forms and operators that are left out; empty if there are none.

    Raises
    ------
    SpaceError
        If nothing is left.
    """
    algorithms = tuple(_with_forms(algorithm, space.profile) for algorithm in space.algorithms if algorithm.onnx)
    if not algorithms:
        names = ", ".join(algorithm.name for algorithm in space.algorithms)
        raise SpaceError(
            f"None of the algorithms to search ({names}) converts to ONNX. Choose others of the space 'default' or "
            "'classic', or leave out deployable.",
            item=space,
        )
    operators = {step: tuple(filter(_is_no_part, choices)) for step, choices in space.operators.items()}
    for step, kept in operators.items():
        if not kept:
            raise SpaceError(f"No operator of the step {step!r} converts to ONNX. Use another space.", item=step)
    lost = {algorithm.name for algorithm in space.algorithms} - {algorithm.name for algorithm in algorithms}
    left_out = {**space.left_out, **dict.fromkeys(lost, _NO_CONVERTER)}
    kept_space = dataclasses.replace(space, algorithms=algorithms, operators=operators, left_out=left_out)
    return kept_space, _sentence(space, kept_space)


def converts(space: Space, configuration: Configuration) -> bool:
    """Return whether the models of a configuration convert to ONNX."""
    algorithm = space.algorithm_of(configuration)
    kept = {step: {each.name for each in filter(_is_no_part, choices)} for step, choices in space.operators.items()}
    if not algorithm.onnx or any(configuration[step] not in names for step, names in kept.items()):
        return False
    return not space.profile.has_categories or space.encoding_of(configuration) in algorithm.onnx


def _with_forms(algorithm: Algorithm, profile: TaskProfile) -> Algorithm:
    """Return the algorithm without the forms under which it does not convert; they only matter with categories."""
    kept = tuple(encoding for encoding in algorithm.encodings if encoding in algorithm.onnx)
    if kept == algorithm.encodings or not profile.has_categories:
        return algorithm
    subspace = functools.partial(_under, algorithm.subspace, kept)
    monotone = tuple(encoding for encoding in algorithm.monotone_encodings if encoding in kept)
    return dataclasses.replace(algorithm, encodings=kept, monotone_encodings=monotone, subspace=subspace)


def _under(subspace: Callable[[TaskProfile], Subspace], forms: tuple[Encoding, ...], profile: TaskProfile) -> Subspace:
    """Return a sub-space without the hyper-parameters that only have an effect under other forms."""
    whole = subspace(profile)
    lost = {name for name, form in whole.only_under.items() if form not in forms}
    return dataclasses.replace(
        whole,
        hyperparameters=[hp for hp in whole.hyperparameters if hp.name not in lost],
        only_under={name: form for name, form in whole.only_under.items() if name not in lost},
    )


def _is_no_part(operator: Operator) -> bool:
    return operator is NO_OPERATOR or isinstance(operator, Resampler)


def _sentence(whole: Space, kept: Space) -> str:
    forms = {algorithm.name: algorithm.encodings for algorithm in kept.algorithms}
    lost = []
    for algorithm in whole.algorithms:
        if algorithm.name not in forms:
            lost.append(algorithm.name)
        elif forms[algorithm.name] != algorithm.encodings:
            gone = [form.value for form in algorithm.encodings if form not in forms[algorithm.name]]
            lost.append(f"{algorithm.name} on the {' and '.join(gone)} form")
    lost += [
        f"{operator.name} ({step})"
        for step, choices in whole.operators.items()
        for operator in choices
        if operator not in kept.operators[step]
    ]
    return f"The search leaves out what does not convert to ONNX: {', '.join(lost)}." if lost else ""
