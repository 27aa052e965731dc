"""The named search spaces, and a function to add one."""

from __future__ import annotations

from collections.abc import Callable

from cashmere.data.task import TaskProfile
from cashmere.exceptions import IncompatibleParametersError, InvalidParameterError, UnknownNameError
from cashmere.space.named.autosklearn6 import autosklearn6_space
from cashmere.space.named.classic import CLASSIC_ALGORITHMS
from cashmere.space.named.default import DEFAULT_ALGORITHMS
from cashmere.space.named.imbalance import imbalance_space
from cashmere.space.named.operators import PREPROCESSORS, RESCALERS
from cashmere.space.named.sklearn12 import SKLEARN12_CLASSIFIERS
from cashmere.space.named.volcano import VOLCANO_CLASSIFIERS, VOLCANO_FORBIDDEN, VOLCANO_REGRESSORS
from cashmere.space.space import Space

SpaceFactory = Callable[[TaskProfile], Space]
"""Makes a space for a task."""


def default_space(profile: TaskProfile) -> Space:
    """Return the compact, strong space for everyday use: about ten algorithms, no operators; boosters may add columns.

    Rounds, trees, epochs and penalties are not searched, but chosen inside each trial (docs/paths.md).
    """
    return Space(name="default", algorithms=DEFAULT_ALGORITHMS, profile=profile)


def classic_space(profile: TaskProfile) -> Space:
    """Return the algorithms of the space ``default`` with hyper-parameters in place of paths."""
    return Space(name="classic", algorithms=CLASSIC_ALGORITHMS, profile=profile)


def volcano_space(profile: TaskProfile) -> Space:
    """Return the large space of feature operators and learners used in the papers' experiments.

    References
    ----------
    Li et al. (2021), VolcanoML: Speeding up End-to-End AutoML via Scalable Search Space Decomposition, VLDB;
    counts of Shen et al. (2022), DivBO, tables 6 and 7; docs/spaces.md#volcano.
    """
    algorithms = VOLCANO_CLASSIFIERS if profile.task_type.is_classification else VOLCANO_REGRESSORS
    operators = {"rescaler": RESCALERS, "preprocessor": PREPROCESSORS}
    return Space(
        name="volcano", algorithms=algorithms, operators=operators, profile=profile, forbidden=VOLCANO_FORBIDDEN
    )


def sklearn12_space(profile: TaskProfile) -> Space:
    """Return twelve classifiers of scikit-learn with one to four hyper-parameters each (docs/spaces.md#sklearn12).

    Raises
    ------
    IncompatibleParametersError
        For regression, which the space does not cover.
    """
    if not profile.task_type.is_classification:
        raise IncompatibleParametersError(
            "The space 'sklearn12' has classifiers only and cannot be used for regression. Use a space with "
            "regressors: 'default' or 'volcano'.",
            {"space": "sklearn12", "task": profile.task_type},
        )
    return Space(name="sklearn12", algorithms=SKLEARN12_CLASSIFIERS, profile=profile)


SPACES: dict[str, SpaceFactory] = {
    "default": default_space,
    "classic": classic_space,
    "volcano": volcano_space,
    "sklearn12": sklearn12_space,
    "imbalance": imbalance_space,
    "autosklearn6": autosklearn6_space,
}
"""Registered spaces by name."""


def register_space(name: str, factory: SpaceFactory) -> None:
    """Register a custom space under a name, for this process.

    Parameters
    ----------
    name : str
        New name; registering a known name with another factory is an error.
    factory : callable
        Makes the space for a `TaskProfile`.
    """
    if SPACES.setdefault(name, factory) is not factory:
        raise InvalidParameterError("name", name, "a name that is not taken", f"Taken: {', '.join(sorted(SPACES))}.")


def make_space(name: str | SpaceFactory, profile: TaskProfile) -> Space:
    """Return the space with the given name, or from the given factory, for a task.

    Parameters
    ----------
    name : str or callable
        A registered name, or a function from `TaskProfile` to `Space`.
    profile : TaskProfile
        The facts about the task.

    Raises
    ------
    UnknownNameError
        If no space has this name.
    InvalidParameterError
        If `name` is neither a name nor a function that returns a space.

    Examples
    --------
    >>> from cashmere.data.task import TaskProfile, TaskType
    >>> profile = TaskProfile(task_type=TaskType.BINARY, n_rows=200, n_columns=5, n_classes=2)
    >>> [algorithm.name for algorithm in make_space("sklearn12", profile).algorithms][:3]
    ['adaboost', 'bagging', 'decision_tree']
    """
    if callable(name):
        made: object = name(profile)
        if not isinstance(made, Space):
            expected = "a function that returns a Space, as cashmere.space.make_space does"
            raise InvalidParameterError("space", name, expected, f"It returned a {type(made).__name__}.")
        return made
    if not isinstance(name, str):
        expected = "the name of a space, or a function from TaskProfile to Space"
        raise InvalidParameterError("space", name, expected, "To search some algorithms only, name them in include.")
    if name not in SPACES:
        raise UnknownNameError("space", name, SPACES)
    return SPACES[name](profile)
