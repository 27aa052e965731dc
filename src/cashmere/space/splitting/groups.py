"""The splitter: cut a search space into sub-spaces along the groups of its operators.

A strategy knows only a ConfigurationSpace. Its *operator choices* are the unconditional categoricals that have a group
tree (`cashmere.space.splitting.group_trees`) or activate other hyper-parameters; all other categoricals and all numbers
stay whole.

=================  ==========================================================================================
symbol             meaning
=================  ==========================================================================================
n_i                algorithms of operator choice i
t_i                branches at the top of its group tree; n_i without nested groups
g_i                groups into which its algorithms are put
K                  largest number of sub-spaces
=================  ==========================================================================================
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace

from cashmere.base.arrays import BoolArray
from cashmere.exceptions import InvalidParameterError, SpaceError
from cashmere.space.splitting.group_trees import GROUPS, PATHS, Tree, branches, describe_group, leaves, tree_of
from cashmere.space.splitting.restriction import names_in, restrict


@dataclass(frozen=True, kw_only=True)
class SubspacePart:
    """One of the sub-spaces into which a space was split.

    Attributes
    ----------
    label : str
        The groups in words, one per operator that was cut, for example ``"svm | under"``; ``"all"`` if none was.
    allowed : mapping of str to tuple
        Values of each operator choice of the full space in this part.
    full : ConfigurationSpace
        The space that was split.
    """

    label: str
    allowed: Mapping[str, tuple[Any, ...]] = field(hash=False)
    full: ConfigurationSpace = field(repr=False, hash=False)

    @functools.cached_property
    def space(self) -> ConfigurationSpace:
        """The full space restricted to the allowed values, see `restrict`; created on first use."""
        return restrict(self.full, self.allowed)


def split(space: ConfigurationSpace, max_subspaces: int, rng: np.random.Generator) -> tuple[SubspacePart, ...]:
    """Cut a space into at most `max_subspaces` parts that share no combination of operators and miss none.

    Parameters
    ----------
    space : ConfigurationSpace
        The space; choices may carry their group tree as ``meta["groups"]``.
    max_subspaces : int
        Largest number of sub-spaces (K), at least 1.
    rng : numpy.random.Generator
        Breaks ties, draws random halves and the order of the parts.

    Returns
    -------
    tuple of SubspacePart
        The parts; every existing combination of operators lies in exactly one. A space without operator choices is one
        part.

    Raises
    ------
    InvalidParameterError
        If `max_subspaces` is less than 1.
    SpaceError
        If a group tree does not contain every choice exactly once.

    Notes
    -----
    Values are removed from a part, and empty parts are dropped, if clauses on unconditional categoricals forbid every
    combination with them. The paper removes such values only from the right-hand operator; the configurations in a part
    are the same.

    References
    ----------
    Nguyen et al. (2022), An Efficient Contesting Procedure for AutoML Optimization, IEEE Access, Appendix A;
    docs/papers/dacopt.md#splitter.

    Examples
    --------
    >>> groups = {"groups": ["svm", ["forest", "tree"]]}
    >>> choice = CategoricalHyperparameter("learner", ["svm", "forest", "tree"], meta=groups)
    >>> parts = split(ConfigurationSpace(space=[choice]), 2, np.random.default_rng(0))
    >>> sorted(part.label for part in parts)
    ['forest + tree', 'svm']
    """
    operators = operator_choices(space)
    trees = [tree_of(choice) for choice in operators.values()]
    counts = choose_group_counts(
        [len(leaves(tree)) for tree in trees], list(map(_n_branches, trees)), max_subspaces, rng
    )
    groups = [regroup(tree, count, rng) for tree, count in zip(trees, counts, strict=True)]
    choices = _unconditional_choices(space)
    exclusions = _exclusions(space, choices)
    parts = []
    for combination in itertools.product(*groups):
        chosen = dict(zip(operators, combination, strict=True))
        allowed = _without_excluded(chosen, choices, exclusions)
        if allowed is not None:
            parts.append(SubspacePart(label=_label(chosen, operators), allowed=allowed, full=space))
    return tuple(parts[i] for i in rng.permutation(len(parts)))


def part_of(configuration: Configuration, parts: Sequence[SubspacePart]) -> int:
    """Return the index of the part in which a configuration of the full space lies.

    Raises
    ------
    SpaceError
        If it lies in no part.
    """
    operators = {name: configuration[name] for name in parts[0].allowed} if parts else {}
    for index, part in enumerate(parts):
        if all(value in part.allowed[name] for name, value in operators.items()):
            return index
    raise SpaceError(
        f"The configuration with {', '.join(f'{n}={v}' for n, v in operators.items())} lies in none of the "
        f"{len(parts)} parts. Pass all parts of its space.",
        item=configuration,
    )


def operator_choices(space: ConfigurationSpace) -> dict[str, CategoricalHyperparameter]:
    """Return the hyper-parameters along which a space may be split, in its order.

    Conditional categoricals are excluded: where one is inactive, its groups would not distinguish the parts.
    """
    return {
        name: choice
        for name in space.unconditional_hyperparameters
        if isinstance(choice := space[name], CategoricalHyperparameter)
        and (GROUPS in (choice.meta or {}) or space.children_of[name])
        and not any(isinstance(value, list) for value in choice.choices)  # lists are the nodes of trees
    }


def choose_group_counts(
    n_algorithms: Sequence[int], n_branches: Sequence[int], max_subspaces: int, rng: np.random.Generator
) -> tuple[int, ...]:
    """Choose how many groups to form from the algorithms of each operator (step 1 of the splitter).

    Parameters
    ----------
    n_algorithms, n_branches : sequence of int
        n_i and t_i of each operator.
    max_subspaces : int
        K, at least 1.
    rng : numpy.random.Generator
        Chooses between equally good tuples.

    Returns
    -------
    tuple of int
        (g_1, ..., g_z) with product K and g_i <= t_i; failing that with g_i <= n_i, failing that with the next smaller
        K. Among those, the one with the largest sum of 1 - g_i/n_i, which cuts operators with many algorithms.

    Raises
    ------
    InvalidParameterError
        If K is less than 1.

    Examples
    --------
    >>> choose_group_counts([5, 21], [5, 4], 10, np.random.default_rng(0))
    (5, 2)
    """
    if max_subspaces < 1:
        raise InvalidParameterError("max_subspaces", max_subspaces, "at least 1")
    largest = min(max_subspaces, math.prod(n_algorithms))
    feasible = next(
        found
        for product in range(largest, 0, -1)
        for limits in (n_branches, n_algorithms)
        if (found := list(_factorisations(product, limits)))
    )
    scores = [sum(1 - Fraction(g, n) for g, n in zip(counts, n_algorithms, strict=True)) for counts in feasible]
    best = [counts for counts, score in zip(feasible, scores, strict=True) if score == max(scores)]
    # "With probability proportional to the sum", among equal sums, means equal probabilities.
    return best[rng.integers(len(best))]


def regroup(tree: Tree, n_groups: int, rng: np.random.Generator) -> tuple[tuple[Any, ...], ...]:
    """Put the choices of one operator into a given number of groups that respect its tree (step 2 of the splitter).

    Parameters
    ----------
    tree : list
        Group tree of the operator.
    n_groups : int
        g, from 1 to the number of choices.
    rng : numpy.random.Generator
        Breaks ties and draws random halves.

    Returns
    -------
    tuple of tuples
        Non-empty groups; groups and their choices in the order of the tree.

    Notes
    -----
    The groups are those of the shallowest level that has enough, see `branches`. If there are too many, the smallest is
    merged with the smallest of its top-level branch, or else of all, and then counts as part of that branch. If there
    are too few, the largest is cut into two random halves.

    Examples
    --------
    >>> regroup(["none", ["smote", "adasyn"], ["tomek", "random", "centroids"]], 2, np.random.default_rng(0))
    (('none', 'smote', 'adasyn'), ('tomek', 'random', 'centroids'))
    """
    order = leaves(tree)
    if not 1 <= n_groups <= len(order):
        raise InvalidParameterError("n_groups", n_groups, f"from 1 to {len(order)}, the number of choices")
    groups = _level(tree, n_groups)
    while len(groups) > n_groups:
        _merge_smallest(groups, rng)
    while len(groups) < n_groups:
        _halve_largest(groups, rng)
    positions = sorted(sorted(map(order.index, members)) for _, members in groups)
    return tuple(tuple(order[i] for i in members) for members in positions)


_Group = tuple[int, tuple[Any, ...]]
"""Number of the top-level branch, and the choices."""


def _level(tree: Tree, n_groups: int) -> list[_Group]:
    """Return the groups at the shallowest level that has `n_groups` of them, or else at the deepest."""
    level = [(0, tree)]
    deeper = list(enumerate(branches(tree)))
    while len(level) < n_groups and deeper != level:
        level, deeper = deeper, [(branch, below) for branch, node in deeper for below in branches(node)]
    return [(branch, leaves(node)) for branch, node in level]


def _merge_smallest(groups: list[_Group], rng: np.random.Generator) -> None:
    """Merge, in place, a smallest group with a smallest other one, from its own branch if possible."""
    size_of_branch = Counter(branch for branch, _ in groups)
    smallest = _of_size(groups, min)
    weights = np.array([size_of_branch[branch] for branch, _ in smallest], dtype=np.float64)
    moved = groups.pop(groups.index(smallest[rng.choice(len(smallest), p=weights / weights.sum())]))
    partners = _of_size([group for group in groups if group[0] == moved[0]] or groups, min)
    position = groups.index(partners[rng.integers(len(partners))])
    branch, members = groups[position]
    groups[position] = (branch, members + moved[1])


def _halve_largest(groups: list[_Group], rng: np.random.Generator) -> None:
    """Cut, in place, a largest group into two random halves."""
    largest = _of_size(groups, max)
    branch, members = groups.pop(groups.index(largest[rng.integers(len(largest))]))
    shuffled = tuple(members[i] for i in rng.permutation(len(members)))
    middle = len(members) // 2
    groups += [(branch, shuffled[:middle]), (branch, shuffled[middle:])]


def _of_size(groups: list[_Group], extreme: Any) -> list[_Group]:
    size = extreme(len(members) for _, members in groups)
    return [group for group in groups if len(group[1]) == size]


def _n_branches(tree: Tree) -> int:
    """Return t_i."""
    return len(branches(tree)) if any(isinstance(entry, list) for entry in tree) else len(tree)


def _factorisations(product: int, limits: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of numbers from 1 to their limits with the given product."""
    if not limits:
        if product == 1:
            yield ()
        return
    for first in range(1, min(product, limits[0]) + 1):
        if product % first == 0:
            for rest in _factorisations(product // first, limits[1:]):
                yield (first, *rest)


# Clauses between operators -------------------------------------------------------------------------------------------

_Choices = dict[str, tuple[Any, ...]]
"""Values of unconditional categoricals."""

_Exclusions = dict[tuple[str, ...], BoolArray]
"""For categoricals linked by forbidden clauses: which combinations of their values, one axis each, are forbidden."""


def _unconditional_choices(space: ConfigurationSpace) -> _Choices:
    return {
        name: tuple(choice.choices)
        for name in space.unconditional_hyperparameters
        if isinstance(choice := space[name], CategoricalHyperparameter)
    }


def _exclusions(space: ConfigurationSpace, choices: _Choices) -> _Exclusions:
    """Tabulate the clauses that involve only unconditional categoricals."""
    exclusions: _Exclusions = {}
    for clause in space.forbidden_clauses:
        linked = names_in(clause)
        if not linked <= choices.keys():
            continue
        names = tuple(name for name in choices if name in linked)
        forbidden = [
            clause.is_forbidden_value(dict(zip(names, combination, strict=True)))
            for combination in itertools.product(*(choices[name] for name in names))
        ]
        table = np.array(forbidden, dtype=np.bool_).reshape([len(choices[name]) for name in names])
        exclusions[names] = exclusions.get(names, np.zeros_like(table)) | table
    return exclusions


def _without_excluded(chosen: _Choices, choices: _Choices, exclusions: _Exclusions) -> _Choices | None:
    """Drop the values that are in no permitted combination of the part; return None if nothing is left."""
    offered = {**choices, **chosen}
    allowed = dict(chosen)
    for linked in _linked(exclusions):
        names = [name for name in choices if name in linked]
        permitted = np.ones([len(offered[name]) for name in names], dtype=np.bool_)
        for tabulated, table in exclusions.items():
            if linked.issuperset(tabulated):
                positions = [list(map(choices[name].index, offered[name])) for name in tabulated]
                shape = [len(offered[name]) if name in tabulated else 1 for name in names]
                permitted &= ~table[np.ix_(*positions)].reshape(shape)
        if not permitted.any():
            return None
        for name, used in zip(names, np.nonzero(permitted), strict=True):
            if name in chosen:
                allowed[name] = tuple(chosen[name][i] for i in np.unique(used))
    return allowed


def _linked(exclusions: _Exclusions) -> list[set[str]]:
    """Return sets of categoricals that clauses connect, directly or through others."""
    sets: list[set[str]] = []
    for names in exclusions:
        touched = [known for known in sets if not known.isdisjoint(names)]
        sets = [known for known in sets if known not in touched] + [set(names).union(*touched)]
    return sets


def _label(chosen: _Choices, operators: Mapping[str, CategoricalHyperparameter]) -> str:
    """Name the groups of the operators that were cut."""
    words = [
        describe_group(values, (operators[name].meta or {}).get(PATHS, {}))
        for name, values in chosen.items()
        if len(values) < len(operators[name].choices)
    ]
    return " | ".join(words) or "all"
