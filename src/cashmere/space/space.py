"""A search space: ordered operator steps, then one algorithm, each with hyper-parameters."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenInClause,
    OrdinalHyperparameter,
)
from ConfigSpace.conditions import Condition, ConditionLike
from ConfigSpace.forbidden import ForbiddenLike
from ConfigSpace.hyperparameters import Hyperparameter, NumericalHyperparameter
from ConfigSpace.types import NotSet

from cashmere.data.task import Encoding, TaskProfile
from cashmere.exceptions import InvalidParameterError, MetricError, SpaceError, UnknownNameError
from cashmere.space.component import EXTRAS, Algorithm, BuildContext, Component, Operator, Resample, Resampler, Subspace
from cashmere.space.narrowing import check_range, deciding, literals, narrowed
from cashmere.space.path import PathParameter
from cashmere.space.splitting.group_trees import group_meta

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

_C = TypeVar("_C", bound=Component)

ALGORITHM = "algorithm"
"""Name of the hyper-parameter that chooses the algorithm."""

ENCODING = "encoding"
"""Name (after the algorithm's prefix) of the hyper-parameter that chooses the prepared form of the table."""

LEARNER = "learner"
"""Name of the last step of every pipeline."""

N_CLASSES = "n_classes"
"""Key of the number of classes in the ``meta`` of the ConfigurationSpace; 1 for regression."""

_NO_PROBABILITIES = "has no predict_proba, and the metric is computed from probabilities"

NOT_MONOTONE = "cannot keep predictions monotone in a column"
NOT_WEIGHTED = "cannot learn from weighted rows"
"""Why an algorithm is left out, in `Space.left_out`."""


def _pass_through(values: Mapping[str, Any], context: BuildContext) -> str:
    return "passthrough"


NO_OPERATOR = Operator(name="none", build=_pass_through)
"""The choice to skip a step; may be offered in any number of steps."""


@dataclass(frozen=True, kw_only=True)
class Space:
    """Define, from the facts about a task, which configurations exist, and turn each into a pipeline.

    Components that cannot serve the task on this machine are left out when the space is created.

    Parameters
    ----------
    name : str
        Name for reports.
    algorithms : tuple of Algorithm
        Choices of the hyper-parameter ``algorithm``; strong and cheap ones first.
    operators : mapping of str to tuple of Operator
        Ordered steps before the learner; the step's name is the hyper-parameter that chooses the operator.
        The first operator of a step is its default. A `Resampler` may be offered only in the last step.
    profile : TaskProfile
        The facts about the task.
    reads : Encoding
        Prepared form of the table that the operators work on; without operators, each algorithm chooses its form.
    forbidden : tuple of mappings
        Forbidden combinations: each maps steps (``"algorithm"`` is one) to names, and excludes configurations in which
        every listed step takes one of its names. Clauses without effect on the available components are dropped.

    Attributes
    ----------
    left_out : mapping of str to str
        Why offered components are not in the space.

    Raises
    ------
    MetricError
        If the only reason that no algorithm is left is that the metric needs probabilities.
    SpaceError
        If no algorithm is left for other reasons, names are not unique, or rows are resampled before the last step.
    """

    name: str
    algorithms: tuple[Algorithm, ...]
    profile: TaskProfile
    operators: Mapping[str, tuple[Operator, ...]] = field(default_factory=dict, hash=False)
    reads: Encoding = Encoding.ONEHOT
    forbidden: tuple[Mapping[str, tuple[str, ...]], ...] = field(default=(), hash=False)
    left_out: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)

    def __post_init__(self) -> None:
        left_out = dict(self.left_out)

        def available(components: Iterable[_C]) -> tuple[_C, ...]:
            reasons = {component.name: (component, _reason(component, self.profile)) for component in components}
            left_out.update({name: reason for name, (_, reason) in reasons.items() if reason})
            return tuple(component for component, reason in reasons.values() if not reason)

        _check_names(self.algorithms, self.operators)
        _check_resampling_is_last(self.operators)
        algorithms = available(self.algorithms)
        operators = {step: kept for step, choices in self.operators.items() if (kept := available(choices))}
        if not algorithms:
            raise _no_algorithm_left(self.name, self.algorithms, left_out, self.profile)
        for attribute, value in (("algorithms", algorithms), ("operators", operators), ("left_out", left_out)):
            object.__setattr__(self, attribute, value)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cached ConfigurationSpace: it is large and quickly rebuilt."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @functools.cached_property
    def configuration_space(self) -> ConfigurationSpace:
        """All choices as a ConfigSpace object; a component's hyper-parameters are called ``component:name``.

        The ``meta`` of each step holds the group tree of its components (`cashmere.space.splitting.group_trees`), that
        of the whole the number of classes under `N_CLASSES`.
        """
        space = ConfigurationSpace(name=self.name, meta={N_CLASSES: self.profile.n_classes})
        steps: list[tuple[str, tuple[Component, ...]]] = [*self.operators.items(), (ALGORITHM, self.algorithms)]
        for step, components in steps:
            names = [component.name for component in components]
            groups = group_meta({component.name: component.group for component in components})
            choice = CategoricalHyperparameter(step, names, default_value=names[0], meta=groups)
            hyperparameters: list[Hyperparameter[Any, Any]] = [choice]
            conditions: list[ConditionLike] = []
            forbidden: list[ForbiddenLike] = []
            for component in components:
                subspace = _prefixed(component.subspace(self.profile), component.name)
                encodings = self._encoding_choice(component)
                own = [*subspace.hyperparameters, *encodings]
                narrower = [*subspace.conditions, *_conditions_of_encoding(subspace, component.name, encodings)]
                hyperparameters += own
                conditions += [_active_when(choice, component.name, hp, narrower) for hp in own]
                forbidden += subspace.forbidden
            space.add(hyperparameters, conditions, forbidden)
        space.add(self._forbidden_combinations(space))
        return space

    def _forbidden_combinations(self, space: ConfigurationSpace) -> list[ForbiddenLike]:
        offered: Mapping[str, tuple[Component, ...]] = {**self.operators, ALGORITHM: self.algorithms}
        clauses: list[ForbiddenLike] = []
        for combination in self.forbidden:
            parts = {
                step: [component.name for component in offered.get(step, ()) if component.name in names]
                for step, names in combination.items()
            }
            if all(parts.values()):
                clauses.append(ForbiddenAndConjunction(*(ForbiddenInClause(space[s], n) for s, n in parts.items())))
        return clauses

    @functools.cached_property
    def encodings(self) -> frozenset[Encoding]:
        """Prepared forms of the table that configurations of this space may need."""
        if self.operators:
            return frozenset({self.reads})
        every = self.profile.has_categories
        return frozenset(e for a in self.algorithms for e in a.forms(self.profile)[: None if every else 1])

    @property
    def trusted_types(self) -> list[str]:
        """Types that model files may hold beside those of the package, see `Algorithm`."""
        return [name for algorithm in self.algorithms for name in algorithm.trusted_types]

    def _encoding_choice(self, component: Component) -> list[Hyperparameter[Any, Any]]:
        if not isinstance(component, Algorithm) or self.operators or not self.profile.has_categories:
            return []
        values = [encoding.value for encoding in component.forms(self.profile)]
        name = f"{component.name}:{ENCODING}"
        return [CategoricalHyperparameter(name, values, default_value=values[0])] if len(values) > 1 else []

    def algorithm_of(self, configuration: Configuration) -> Algorithm:
        """Return the algorithm that a configuration chooses."""
        return _named(self.algorithms, configuration[ALGORITHM])

    def path_of(self, configuration: Configuration) -> PathParameter | None:
        """Return the path along which a configuration is followed, or None."""
        path = self.algorithm_of(configuration).path
        return path if path is not None and self.profile.task_type in path.tasks else None

    def encoding_of(self, configuration: Configuration) -> Encoding:
        """Return the prepared form of the table that a configuration learns from.

        With operators it is always the form named by the space; by default one-hot, the form without gaps on which
        every operator works.
        """
        if self.operators:
            return self.reads
        algorithm = self.algorithm_of(configuration)
        return Encoding(configuration.get(f"{algorithm.name}:{ENCODING}", algorithm.forms(self.profile)[0]))

    def build(self, configuration: Configuration, context: BuildContext) -> Pipeline:
        """Make the unfitted pipeline of a configuration.

        Parameters
        ----------
        configuration : Configuration
            A point of this space.
        context : BuildContext
            Facts about the fold.

        Returns
        -------
        sklearn.pipeline.Pipeline
            The operators under the names of their steps, then the learner as ``"learner"``. A learner that is
            a pipeline itself (scaler and model) is flattened, so that ``learner__sample_weight`` always works.
            An operator that builds a function is not a step: the function maps the learner to the one that is used.
            Nor is a resampler, see `build_resampling`.
        """
        from sklearn.pipeline import Pipeline

        steps: list[tuple[str, Any]] = []
        changes: list[Callable[[Any], Any]] = []
        for step, choices in self.operators.items():
            operator = _named(choices, configuration[step])
            if isinstance(operator, Resampler):
                continue
            built = operator.build(_own_values(configuration, operator.name), context)
            if isinstance(built, FunctionType):
                changes.append(built)
            elif not isinstance(built, str):
                steps.append((step, built))
        algorithm = self.algorithm_of(configuration)
        learner = algorithm.build(_own_values(configuration, algorithm.name), context)
        if isinstance(learner, Pipeline):
            *before, (_, learner) = learner.steps
            taken = {LEARNER, *self.operators}
            steps += [(f"{LEARNER}_{name}" if name in taken else name, step) for name, step in before]
        for change in changes:
            learner = change(learner)
        return Pipeline([*steps, (LEARNER, learner)])

    def build_resampling(self, configuration: Configuration, context: BuildContext) -> Resample | None:
        """Make the function that changes the training rows right before the learner is fitted.

        Parameters
        ----------
        configuration : Configuration
            A point of this space.
        context : BuildContext
            Facts about the fold.

        Returns
        -------
        callable or None
            None if the configuration leaves the rows unchanged.
        """
        for step, choices in self.operators.items():
            operator = _named(choices, configuration[step])
            if isinstance(operator, Resampler):
                built = operator.build(_own_values(configuration, operator.name), context)
                return None if isinstance(built, str) else cast("Resample", built)
        return None

    def default_configurations(self) -> tuple[Configuration, ...]:
        """Return one configuration per algorithm, in their order, everything else at its default."""
        return tuple(self.completed({ALGORITHM: algorithm.name}) for algorithm in self.algorithms)

    def first_configurations(self) -> tuple[Configuration, ...]:
        """Return the configurations that a search begins with: the defaults of all algorithms, then their variants."""
        return tuple(self.first_gains())

    def first_gains(self) -> dict[Configuration, float]:
        """Return the first configurations in order, each with its expected gain, see `Algorithm.gain`."""
        defaults = zip(self.default_configurations(), (algorithm.gain for algorithm in self.algorithms), strict=True)
        variants = (
            (
                self.completed({ALGORITHM: each.name} | {f"{each.name}:{name}": v for name, v in values.items()}),
                each.gain_of_variants,
            )
            for each in self.algorithms
            for values in each.variants(self.profile)
        )
        return dict((*defaults, *variants))

    def completed(self, values: Mapping[str, Any]) -> Configuration:
        """Return the configuration with the given values and all other active ones at their defaults.

        Raises
        ------
        UnknownNameError
            If a name is not a hyper-parameter of this space.
        """
        for name in values:
            if name not in self.configuration_space:
                raise UnknownNameError("hyper-parameter", name, self.configuration_space)
        return _default_configuration(self.configuration_space, values)

    def hastened(self, configuration: Configuration, factor: float) -> tuple[Configuration, float]:
        """Return a configuration whose path ends sooner, and by what factor.

        Parameters
        ----------
        configuration : Configuration
            Of this space.
        factor : float
            By what factor the path should be shorter, at least 1.

        Returns
        -------
        configuration : Configuration
            With a higher `PathParameter.pace`; unchanged if its path has none.
        factor : float
            At most the given one: the range of the pace may end before.
        """
        path = self.path_of(configuration)
        if path is None or path.pace is None:
            return configuration, 1.0
        name = f"{configuration[ALGORITHM]}:{path.pace}"
        pace, range_ = configuration[name], self.configuration_space[name]
        assert isinstance(range_, NumericalHyperparameter)
        faster = min(pace * factor, range_.upper)
        return Configuration(self.configuration_space, values={**configuration, name: faster}), faster / pace

    def with_algorithm(self, algorithm: Algorithm) -> Space:
        """Return a space that offers one more algorithm; one with the same name is replaced in its place."""
        names = [known.name for known in self.algorithms]
        if algorithm.name in names:
            algorithms = tuple(algorithm if known.name == algorithm.name else known for known in self.algorithms)
        else:
            algorithms = (*self.algorithms, algorithm)
        if (reason := _reason(algorithm, self.profile)) is not None:
            raise SpaceError(f"The algorithm {algorithm.name!r} cannot be used here: it {reason}.", item=algorithm)
        left_out = {name: why for name, why in self.left_out.items() if name != algorithm.name}
        return dataclasses.replace(self, algorithms=algorithms, left_out=left_out)

    def restricted_to(self, names: Iterable[str]) -> Space:
        """Return a space that offers only the named algorithms, in the order of this space.

        Raises
        ------
        UnknownNameError
            If this space never had an algorithm of that name.
        SpaceError
            If the algorithm was left out; the message says why.
        InvalidParameterError
            If no name is given.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        known = [algorithm.name for algorithm in self.algorithms]
        for name in wanted:
            if name in self.left_out:
                raise SpaceError(
                    f"The algorithm {name!r} cannot be used here: it {self.left_out[name]}. Leave it out, or choose "
                    f"from: {', '.join(known)}.",
                    item=name,
                )
            if name not in known:
                raise UnknownNameError("algorithm", name, known)
        if not wanted:
            raise InvalidParameterError("algorithms", wanted, f"one or more of {', '.join(map(repr, known))}")
        return dataclasses.replace(self, algorithms=tuple(a for a in self.algorithms if a.name in wanted))

    def narrowed_to(self, ranges: Mapping[str, Sequence[Any]]) -> Space:
        """Return a space in which some hyper-parameters have narrower ranges.

        A default outside its new range becomes the nearest number, or the first choice; variants outside are left out.

        Parameters
        ----------
        ranges : mapping of str to sequence
            For names such as ``"lightgbm:num_leaves"``, the lowest and the highest number, or a list of choices.

        Raises
        ------
        UnknownNameError
            If a component of this space has no hyper-parameter of that name.
        SpaceError
            If the component was left out; the message says why.
        InvalidParameterError
            If a range does not lie within the present one, or other hyper-parameters depend on this one.
        """
        if not isinstance(ranges, Mapping):
            raise InvalidParameterError("ranges", ranges, "a mapping such as {'lightgbm:num_leaves': (4, 15)}")
        components: list[Component] = [*self.algorithms, *(o for choices in self.operators.values() for o in choices)]
        subspaces = {each.name: each.subspace(self.profile) for each in components}
        known = [f"{name}:{hp.name}" for name, subspace in subspaces.items() for hp in subspace.hyperparameters]
        of: dict[str, dict[str, Sequence[Any]]] = {}
        for full_name, given in ranges.items():
            component, _, name = str(full_name).partition(":")
            if component in self.left_out:
                raise SpaceError(
                    f"{component!r} cannot be narrowed here: it {self.left_out[component]}.", item=component
                )
            if full_name not in known:
                raise UnknownNameError("hyper-parameter", full_name, known)
            check_range(full_name, given, subspaces[component])
            of.setdefault(component, {})[name] = given

        def within(component: _C) -> _C:
            return narrowed(component, of[component.name]) if component.name in of else component

        operators = {step: tuple(map(within, choices)) for step, choices in self.operators.items()}
        return dataclasses.replace(self, algorithms=tuple(map(within, self.algorithms)), operators=operators)


def _reason(component: Component, profile: TaskProfile) -> str | None:
    """Return the reason why a component is not available, or None."""
    if component.is_available(profile):
        return None
    if profile.task_type not in component.tasks:
        return f"does not support {profile.task_type} targets"
    if profile.n_rows > component.most_rows(profile):
        return f"is offered up to {component.most_rows(profile)} rows, and the table has {profile.n_rows}"
    if isinstance(component, Resampler) and profile.has_weights:
        return "cannot carry the weights of rows"
    if isinstance(component, Algorithm):
        if not component.forms(profile):
            return NOT_MONOTONE
        if profile.has_weights and not component.accepts_weights:
            return NOT_WEIGHTED
        if profile.needs_probabilities and not component.has_probabilities and profile.task_type.is_classification:
            return _NO_PROBABILITIES
    extras = sorted({EXTRAS[module] for module in component.requires if module in EXTRAS})
    how = f" (pip install 'cashmere-automl[{','.join(extras)}]')" if extras else ""
    return f"needs a package that is not installed: {', '.join(component.requires)}{how}"


def _no_algorithm_left(
    name: str, algorithms: tuple[Algorithm, ...], left_out: Mapping[str, str], profile: TaskProfile
) -> MetricError | SpaceError:
    reasons = [left_out[algorithm.name] for algorithm in algorithms]
    if reasons and all(reason == _NO_PROBABILITIES for reason in reasons):
        return MetricError(
            f"The metric is computed from class probabilities, but no algorithm of the space {name!r} "
            f"({', '.join(left_out)}) has predict_proba. Choose a metric on class labels, such as 'accuracy' or "
            "'balanced_accuracy', or add an algorithm with probabilities (cashmere.space.MarginProbabilities "
            "gives them to a learner that only has decision_function)."
        )
    details = "; ".join(f"{algorithm.name} {why}" for algorithm, why in zip(algorithms, reasons, strict=True))
    return SpaceError(
        f"The space {name!r} has no algorithm that can be used for this {profile.task_type} task: "
        f"{details or 'none was offered'}. Add an algorithm, or choose another space.",
        item=name,
    )


def _check_names(algorithms: tuple[Algorithm, ...], operators: Mapping[str, tuple[Operator, ...]]) -> None:
    components: list[Component] = [*algorithms, *(o for choices in operators.values() for o in choices)]
    names = [component.name for component in components if component is not NO_OPERATOR]
    names += [*operators, ALGORITHM, LEARNER]
    for name in names:
        if not name or ":" in name or "__" in name:
            raise InvalidParameterError("name", name, "a text without ':' and '__', and not empty")
        if names.count(name) > 1:
            raise SpaceError(
                f"Algorithms, operators and steps must have different names, but {name!r} occurs {names.count(name)} "
                "times. Rename all but one.",
                item=name,
            )


def _check_resampling_is_last(operators: Mapping[str, tuple[Operator, ...]]) -> None:
    for step in [*operators][:-1]:
        if any(isinstance(operator, Resampler) for operator in operators[step]):
            raise SpaceError(
                f"The step {step!r} resamples the rows and must be the last one, because resampling acts on the final "
                "columns. Move it to the end of operators.",
                item=step,
            )


def _named(components: Iterable[_C], name: str) -> _C:
    return next(component for component in components if component.name == name)


def _own_values(configuration: Configuration, name: str) -> dict[str, Any]:
    """Return the active values of one component, as plain Python objects under their names without prefix."""
    prefix = f"{name}:"
    return {
        key.removeprefix(prefix): value.item() if isinstance(value, np.generic) else value
        for key, value in configuration.items()
        if key.startswith(prefix) and key != prefix + ENCODING
    }


def _default_configuration(space: ConfigurationSpace, chosen: Mapping[str, Any]) -> Configuration:
    """Return the configuration with the chosen values, all other active values at their defaults."""
    values: dict[str, Any] = {}
    for name, hyperparameter in space.items():  # parents come before their children
        seen = {parent.name: values.get(parent.name, NotSet) for parent in space.parents_of[name]}
        if all(condition.satisfied_by_value(seen) for condition in space.parent_conditions_of[name]):
            values[name] = chosen.get(name, hyperparameter.default_value)
    return Configuration(space, values=values)


def _prefixed(subspace: Subspace, prefix: str) -> Subspace:
    """Return a copy of a sub-space with all its hyper-parameters renamed to ``prefix:name``."""
    subspace = copy.deepcopy(subspace)
    children = [literal.child for condition in subspace.conditions for literal in literals(condition)]
    for hp in {id(hp): hp for hp in (*subspace.hyperparameters, *children, *deciding(subspace))}.values():
        if hp.name == ENCODING or ":" in hp.name:
            raise SpaceError(
                f"The hyper-parameter {hp.name!r} of {prefix!r} must have another name: {ENCODING!r} and names with "
                "':' are reserved.",
                item=hp,
            )
        if odd := [value for value in _listed_values(hp) if not isinstance(value, _STORED_TYPES)]:
            raise SpaceError(
                f"The hyper-parameter {hp.name!r} of {prefix!r} has the value {odd[0]!r}. A run can only store texts, "
                "numbers, truth values and None: name the values by texts, and let `build` translate them.",
                item=hp,
            )
        hp.name = f"{prefix}:{hp.name}"
    return subspace


_STORED_TYPES = (str, int, float, np.generic, type(None))


def _listed_values(hp: Hyperparameter[Any, Any]) -> Sequence[Any]:
    """Return the values of a hyper-parameter that lists them."""
    if isinstance(hp, CategoricalHyperparameter):
        return hp.choices
    if isinstance(hp, OrdinalHyperparameter):
        return hp.sequence
    return (hp.value,) if isinstance(hp, Constant) else ()


def _conditions_of_encoding(
    subspace: Subspace, prefix: str, encodings: Sequence[Hyperparameter[Any, Any]]
) -> list[Condition]:
    """Return the conditions of hyper-parameters that only have an effect under one form, if the form is a choice."""
    under = {f"{prefix}:{name}": encoding for name, encoding in subspace.only_under.items()}
    return [
        EqualsCondition(hp, choice, under[hp.name].value)
        for choice in encodings
        for hp in subspace.hyperparameters
        if hp.name in under
    ]


def _active_when(
    choice: CategoricalHyperparameter,
    value: str,
    child: Hyperparameter[Any, Any],
    conditions: Iterable[Condition | ConditionLike],
) -> ConditionLike:
    """Return the condition that the component is chosen, and all its conditions on this child hold."""
    own = [condition for condition in conditions if condition.child.name == child.name]
    chosen = EqualsCondition(child, choice, value)
    flat = [part for c in own for part in (c.components if isinstance(c, AndConjunction) else (c,))]
    return AndConjunction(chosen, *flat) if flat else chosen
