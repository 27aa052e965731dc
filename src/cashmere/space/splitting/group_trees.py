"""Group trees: which choices of an operator resemble each other, as nested lists of their names.

A node is a list that holds choices and lists, so ``["none", ["smote", ["adasyn"]], ["tomek_links"]]`` has the choice
"none" and two groups at its top. A choice hyper-parameter carries its tree in ConfigSpace's ``meta`` under `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from ConfigSpace import CategoricalHyperparameter

from cashmere.exceptions import SpaceError

Tree = list[Any]
"""Node of a group tree: each entry is a choice or another node."""

GROUPS = "groups"
"""Key of the group tree in the ``meta`` of a choice hyper-parameter."""

PATHS = "group_paths"
"""Key of the group names in the ``meta`` (optional): choice -> names of its groups, outermost first."""


def group_tree(paths: Mapping[str, Sequence[str]]) -> Tree:
    """Make the tree of components from the paths of their groups.

    Parameters
    ----------
    paths : mapping of str to sequence of str
        Maps the name of each component to its `Component.group`, outermost group first; empty for one at the top.

    Returns
    -------
    list
        Groups and names in the order of first appearance.

    Examples
    --------
    >>> group_tree({"none": (), "smote": ("over", "synthetic"), "tomek": ("under",), "copies": ("over",)})
    ['none', [['smote'], 'copies'], ['tomek']]
    """
    tree: Tree = []
    nodes: dict[tuple[str, ...], Tree] = {(): tree}
    for name, path in paths.items():
        for depth in range(1, len(path) + 1):
            prefix = tuple(path[:depth])
            if prefix not in nodes:
                nodes[prefix] = []
                nodes[prefix[:-1]].append(nodes[prefix])
        nodes[tuple(path)].append(name)
    return tree


def group_meta(paths: Mapping[str, Sequence[str]]) -> dict[Hashable, Any]:
    """Return the ``meta`` of the hyper-parameter that chooses among the components with these group paths."""
    return {GROUPS: group_tree(paths), PATHS: {name: list(path) for name, path in paths.items()}}


def limit_meta(meta: Mapping[Hashable, Any] | None, choices: Collection[Any]) -> dict[Hashable, Any] | None:
    """Return the ``meta`` of a choice hyper-parameter restricted to some choices; other entries are kept."""
    if meta is None:
        return None
    limited = dict(meta)
    if GROUPS in meta:
        limited[GROUPS] = _limit_tree(meta[GROUPS], choices)
    if PATHS in meta:
        limited[PATHS] = {name: path for name, path in meta[PATHS].items() if name in choices}
    return limited


def _limit_tree(tree: Tree, choices: Collection[Any]) -> Tree:
    entries = (_limit_tree(entry, choices) if isinstance(entry, list) else entry for entry in tree)
    return [entry for entry in entries if (entry if isinstance(entry, list) else entry in choices)]


def tree_of(choice: CategoricalHyperparameter) -> Tree:
    """Return the group tree of a choice hyper-parameter; without one in its ``meta``, all choices side by side.

    Raises
    ------
    SpaceError
        If the tree does not contain every choice exactly once.
    """
    tree: Tree = (choice.meta or {}).get(GROUPS, list(choice.choices))
    found = leaves(tree)
    if len(found) != len(choice.choices) or any(value not in found for value in choice.choices):
        raise SpaceError(
            f"The group tree of the hyper-parameter {choice.name!r}, its meta[{GROUPS!r}], must hold every one of "
            f"{', '.join(map(repr, choice.choices))} exactly once; got {tree}.",
            item=choice,
        )
    return tree


def leaves(tree: Tree) -> tuple[Any, ...]:
    """Return the choices of a tree from left to right."""
    return tuple(leaf for entry in tree for leaf in (leaves(entry) if isinstance(entry, list) else (entry,)))


def branches(tree: Tree) -> list[Tree]:
    """Return the groups one level below a node: its lists, and its loose choices together as one more group.

    Examples
    --------
    >>> branches(["none", [["smote"], "copies"], "both"])
    [['none', 'both'], [['smote'], 'copies']]
    """
    loose = [entry for entry in tree if not isinstance(entry, list)]
    below: list[Tree] = []
    for entry in tree:
        if isinstance(entry, list):
            below.append(entry)
        elif loose:
            below.append(loose)
            loose = []
    return below


def describe_group(choices: Iterable[Any], paths: Mapping[str, Sequence[str]]) -> str:
    """Name a set of choices in a few words, using the names in `paths` of groups that it contains entirely.

    Examples
    --------
    >>> paths = {"none": (), "smote": ("over",), "adasyn": ("over",), "tomek": ("under",)}
    >>> describe_group(["none", "smote", "adasyn", "tomek"], paths)
    'over + none + tomek'
    """
    rest = list(choices)
    members: dict[tuple[str, ...], list[str]] = {}
    for name, path in paths.items():
        for depth in range(1, len(path) + 1):
            members.setdefault(tuple(path[:depth]), []).append(name)
    words = []
    for path, names in sorted(members.items(), key=lambda item: len(item[0])):
        if len(names) > 1 and all(name in rest for name in names):
            words.append(path[-1])
            rest = [name for name in rest if name not in names]
    words += map(str, rest)
    return " + ".join(
        words if len(words) <= _MOST_WORDS else [*words[:_MOST_WORDS], f"{len(words) - _MOST_WORDS} more"]
    )


_MOST_WORDS = 4
"""Number of groups and choices that `describe_group` names before it counts the rest."""
