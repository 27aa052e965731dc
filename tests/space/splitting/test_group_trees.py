from __future__ import annotations

import pytest
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace
from hypothesis import given
from hypothesis import strategies as st

from cashmere.exceptions import SpaceError
from cashmere.space.splitting.group_trees import (
    branches,
    describe_group,
    group_meta,
    group_tree,
    leaves,
    limit_meta,
    tree_of,
)

PATHS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2), st.lists(st.sampled_from("xyz"), max_size=3).map(tuple), max_size=12
)


def walk(tree):
    yield tree
    for entry in tree:
        if isinstance(entry, list):
            yield from walk(entry)


@given(paths=PATHS)
def test_a_tree_has_a_node_for_every_path_and_every_name_once(paths):
    tree = group_tree(paths)
    assert sorted(leaves(tree)) == sorted(paths)
    prefixes = {path[:depth] for path in paths.values() for depth in range(1, len(path) + 1)}
    nodes = [frozenset(leaves(node)) for node in walk(tree)][1:]
    expected = [frozenset(n for n, path in paths.items() if path[: len(prefix)] == prefix) for prefix in prefixes]
    assert sorted(map(sorted, nodes)) == sorted(map(sorted, expected))


def test_entries_stand_in_the_order_of_first_appearance():
    paths = {"z": ("g",), "a": (), "y": ("h", "i"), "b": ("g",), "x": ("h",)}
    assert group_tree(paths) == [["z", "b"], "a", [["y"], "x"]]


@given(paths=PATHS)
def test_branches_hold_every_name_once(paths):
    tree = group_tree(paths)
    below = branches(tree)
    assert sorted(name for node in below for name in leaves(node)) == sorted(paths)
    assert all(below)


@given(paths=PATHS, data=st.data())
def test_limited_trees_are_the_trees_of_what_is_left(paths, data):
    kept = data.draw(st.lists(st.sampled_from(sorted(paths)), unique=True) if paths else st.just([]))
    limited = limit_meta(group_meta(paths), kept)
    assert sorted(leaves(limited["groups"])) == sorted(kept)
    assert all(walk for walk in walk(limited["groups"]) if walk is not limited["groups"])
    assert limited["group_paths"] == {name: list(path) for name, path in paths.items() if name in kept}


def test_meta_survives_json(tmp_path):
    meta = group_meta({"a": ("g",), "b": ()})
    space = ConfigurationSpace(space=[CategoricalHyperparameter("p", ["a", "b"], meta=meta)])
    space.to_json(tmp_path / "space.json")
    assert ConfigurationSpace.from_json(tmp_path / "space.json")["p"].meta == meta


@pytest.mark.parametrize("groups", [["a"], ["a", ["b", "a"]], ["a", ["c"]], []])
def test_a_tree_of_other_choices_is_refused(groups):
    choice = CategoricalHyperparameter("p", ["a", "b"], meta={"groups": groups})
    with pytest.raises(SpaceError, match=r"'p'.*groups"):
        tree_of(choice)


def test_groups_are_named_if_they_are_complete():
    paths = {"a": ("g", "h"), "b": ("g", "h"), "c": ("g",), "d": ("i",), "e": ()}
    assert describe_group("abc", paths) == "g"
    assert describe_group("ab", paths) == "h"
    assert describe_group("bcd", paths) == "b + c + d"
    assert describe_group(["e", "a", "b", "c"], paths) == "g + e"
    assert describe_group("abcdef", {}) == "a + b + c + d + 2 more"
    assert describe_group([1, None], {}) == "1 + None"
