"""The text of a LightGBM model, checked line by line before LightGBM reads it.

LightGBM finds each tree by a size given in the text, and follows children, features and sets of categories without
checking them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray, IntArray
from cashmere.model.content.fault import ContentError, count, indices, require
from cashmere.model.content.structure import tree_depths

_HEADER = (
    *("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective"),
    *("average_output", "feature_names", "monotone_constraints", "feature_infos", "tree_sizes"),
)
_INNER = (
    *("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child"),
    *("internal_value", "internal_weight", "internal_count"),
)
_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_SETS = ("cat_boundaries", "cat_threshold")
_SINGLE = ("num_leaves", "num_cat", "is_linear", "shrinkage")
_TREE = (*_SINGLE, *_INNER, *_LEAVES, *_SETS)
_NEEDED = ("split_feature", "threshold", "decision_type", "left_child", "right_child", "cat_boundaries")
_INTEGERS = ("split_feature", "decision_type", "left_child", "right_child", "cat_boundaries")
_BY_CATEGORY = 1
_MOST_CLASSES = 100_000
_TREES_AT_ONCE = 5_000
_OBJECTIVES = {
    *("binary", "multiclass", "multiclassova", "regression", "regression_l1", "huber", "fair", "quantile"),
    *("poisson", "gamma", "tweedie", "mape", "cross_entropy", "cross_entropy_lambda"),
}


def check_lightgbm(where: str, text: str, *, objectives: Collection[str] = _OBJECTIVES) -> None:
    """Check the text of a model.

    Parameters
    ----------
    where : str
        Its place, for the message.
    text : str
        As `lightgbm.Booster.model_to_string` writes it.
    objectives : collection of str
        Objectives that the model may have.

    Raises
    ------
    ContentError
        If LightGBM would not have written it.
    """
    require(text.isascii() and "\0" not in text and "\r" not in text, where, "holds characters that are not ASCII.")
    head, separator, rest = text.partition("\n\n")
    require(separator and head.startswith("tree\n"), where, "does not begin as a model of LightGBM.")
    header = _lines(where, head.split("\n")[1:], _HEADER)
    n_features = _whole(where, header, "max_feature_idx", 0) + 1
    n_classes, per_round = _whole(where, header, "num_class"), _whole(where, header, "num_tree_per_iteration")
    require(per_round == n_classes <= _MOST_CLASSES, where, f"has {per_round} trees per round for {n_classes} classes.")
    for name in ("feature_names", "feature_infos"):
        found = len(header.get(name, "").split(" "))
        require(found == n_features, where, f"describes {found} columns in {name}. Expected {n_features}.")
    objective, *options = header.get("objective", "").split(" ")
    require(objective in objectives, where, f"has the objective {objective[:40]!r}.")
    said = [option.removeprefix("num_class:") for option in options if option.startswith("num_class:")]
    require(
        said == ([str(n_classes)] if objective.startswith("multiclass") else []),
        where,
        "has other classes in its objective.",
    )
    sizes = _numbers(f"{where}: tree_sizes", header.get("tree_sizes", ""), np.int64)
    require(len(sizes) % per_round == 0, where, f"has {len(sizes)} trees, no multiple of {per_round}.")
    trees, position = [], 0
    for number, size in enumerate(sizes.tolist()):
        block = rest[position : position + size]
        whole = 0 < size == len(block) and block.startswith(f"Tree={number}\n") and block.endswith("\n\n\n")
        if not whole:
            raise ContentError(f"{where}: tree {number} is not at byte {position}, where the text announces it.")
        trees.append(_lines(f"{where}: tree {number}", block.rstrip("\n").split("\n")[1:], _TREE))
        position += size
    only = rest[position:].startswith("end of trees\n") and "\nTree=" not in rest[position:]
    require(only, where, "has more trees than it announces.")
    for first in range(0, len(trees), _TREES_AT_ONCE):
        _check_trees(f"{where}, from tree {first}", trees[first : first + _TREES_AT_ONCE], n_features)


def _check_trees(where: str, trees: list[dict[str, str]], n_features: int) -> None:
    """Check trees, given as their lines; the numbers of all trees are parsed together."""
    n_leaves = np.array([_whole(where, tree, "num_leaves") for tree in trees])
    n_sets = np.array([_whole(where, tree, "num_cat", 0) for tree in trees])
    require(all(tree.get("is_linear", "0") == "0" for tree in trees), where, "has linear leaves.")
    lengths = dict.fromkeys(_LEAVES, n_leaves) | dict.fromkeys(_INNER, n_leaves - 1)
    lengths["cat_boundaries"] = np.where(n_sets > 0, n_sets + 1, 0)
    arrays: dict[str, AnyArray] = {}
    for name in (*_INNER, *_LEAVES, *_SETS):
        texts = [tree.get(name, "") for tree in trees]
        found = np.array([text.count(" ") + 1 if text else 0 for text in texts])
        expected = lengths.setdefault(name, found)
        # A tree of one leaf needs only its value.
        wrong = (found != expected) & ((name == "leaf_value") | (found > 0) | (n_leaves > 1) & (name in _NEEDED))
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ContentError(f"{where}: tree {k} has {found[k]} values of {name}. Expected {expected[k]}.")
        kind = np.int64 if name in _INTEGERS else np.float64
        arrays[name] = _numbers(f"{where}: {name}", " ".join(filter(None, texts)), kind)
        lengths[name] = found
    require(np.isfinite(arrays["leaf_value"]).all(), where, "has values of leaves that are not finite.")
    require(not np.isnan(arrays["threshold"]).any(), where, "has a threshold that is NaN.")
    indices(f"{where}: split_feature", arrays["split_feature"], n_features)
    _check_children(where, arrays["left_child"], arrays["right_child"], n_leaves)
    _check_sets(where, arrays, lengths, n_sets)


def _check_children(where: str, left: AnyArray, right: AnyArray, n_leaves: IntArray) -> None:
    """Check inner nodes 0, 1, ... and leaves -1, -2, ... as trees, by numbering leaves after the inner nodes."""
    n_inner = n_leaves - 1
    sizes = n_inner + n_leaves
    ends = np.cumsum(sizes)
    inner = np.arange(sizes.sum()) - np.repeat(ends - sizes, sizes) < np.repeat(n_inner, sizes)
    own = np.repeat(n_inner, n_inner)
    sides = []
    for children in (left, right):
        side = np.zeros(len(inner), dtype=np.int64)
        side[inner] = np.where(children < 0, own - 1 - children, children)
        stray = (children >= own) | (children < -own - 1)
        require(not stray.any(), where, "has a child out of range.")
        sides.append(side)
    tree_depths(sizes, sides[0], sides[1], inner, lambda k: f"{where}: tree {k}")


def _check_sets(where: str, arrays: dict[str, AnyArray], lengths: dict[str, IntArray], n_sets: IntArray) -> None:
    """Check the sets of categories of each tree, and that splits choose existing ones."""
    by_category = (arrays["decision_type"] & _BY_CATEGORY) != 0
    chosen = arrays["threshold"][by_category]
    most = np.repeat(n_sets, lengths["decision_type"])[by_category]
    exist = (chosen == np.floor(chosen)) & (chosen >= 0) & (chosen < most)
    require(exist.all(), where, "chooses a set of categories that is not there.")
    words = arrays["cat_threshold"]
    require(((words >= 0) & (words < 2**32)).all(), where, "has sets of categories that are no bits.")
    edges, first = arrays["cat_boundaries"], 0
    for n, n_words in zip(lengths["cat_boundaries"].tolist(), lengths["cat_threshold"].tolist(), strict=True):
        if n:
            own = edges[first : first + n]
            inside = own[0] == 0 and own[-1] == n_words and (np.diff(own) >= 0).all()
            require(inside, where, "has sets of categories out of bounds.")
        elif n_words:
            raise ContentError(f"{where} has sets of categories without their bounds.")
        first += n


def _lines(where: str, lines: list[str], known: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition("=")
        require(name in known and name not in found, where, f"has an unknown or repeated line {line[:40]!r}.")
        found[name] = value
    return found


def _whole(where: str, values: dict[str, str], name: str, least: int = 1) -> int:
    text = values.get(name, "")
    require(text.isdigit() and len(text) < 10, where, f"has {text[:40]!r} for {name}.")
    return count(f"{where}: {name}", int(text), least)


def _numbers(where: str, text: str, kind: Any) -> AnyArray:
    try:
        return np.array(text.split(" ") if text else [], dtype=kind)
    except (ValueError, OverflowError) as error:
        raise ContentError(f"{where} has something else than numbers ({str(error)[:80]}).") from error
