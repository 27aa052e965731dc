"""The document of an XGBoost model, checked before XGBoost reads it.

XGBoost's reader trusts lengths, and its predictor trusts children, columns, groups and sets of categories.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray, BoolArray, IntArray
from cashmere.model.content.fault import ContentError, array, count, indices, require
from cashmere.model.content.structure import tree_depths
from cashmere.model.content.ubjson import read_ubjson

_PER_NODE = {
    "base_weights": "f",
    "default_left": "iu",
    "left_children": "i",
    "loss_changes": "f",
    "parents": "i",
    "right_children": "i",
    "split_conditions": "f",
    "split_indices": "i",
    "split_type": "iu",
    "sum_hessian": "f",
}
"""Arrays of a tree with one number per node, and their kinds."""

_SETS = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
_TREE = {*_PER_NODE, *_SETS, "id", "tree_param"}
_LEARNER = {"attributes", "feature_names", "feature_types", "gradient_booster", "learner_model_param", "objective"}
_SINGLE_OBJECTIVES = {"binary:logistic", "reg:squarederror", "reg:logistic", "reg:absoluteerror", "reg:gamma"}
_SINGLE_OBJECTIVES |= {"reg:pseudohubererror", "reg:squaredlogerror", "reg:tweedie", "count:poisson"}
_QUANTILE_OBJECTIVE = "reg:quantileerror"
_SINGLE_OBJECTIVES |= {_QUANTILE_OBJECTIVE}
_CLASS_OBJECTIVES = {"multi:softprob", "multi:softmax"}
_LEAF = -1
_DELETED = -1
_NO_PARENT = 2**31 - 1
_MOST_CATEGORIES = 2**20
_MOST_CLASSES = 100_000
_TREES_AT_ONCE = 5_000


def check_xgboost(where: str, data: bytes) -> None:
    """Check the document of a model.

    Parameters
    ----------
    where : str
        Its place, for the message.
    data : bytes
        As `xgboost.Booster.__getstate__` holds it.

    Raises
    ------
    ContentError
        If XGBoost would not have written it.
    """
    try:
        document = read_ubjson(data)
    except (ValueError, RecursionError) as error:
        raise ContentError(f"{where} is no document of XGBoost: {error}.") from error
    document = _object(where, document, {"Config", "Model"})
    model = _object(f"{where}: Model", document["Model"], {"learner", "version"})
    config = _object(f"{where}: Config", document["Config"], {"learner", "version"})
    for part in (model, config):
        version = part["version"]
        numbers = isinstance(version, list) and len(version) == 3 and all(isinstance(n, int) for n in version)
        require(numbers, where, "has no version.")
    learner = _object(f"{where}: learner", model["learner"], _LEARNER)
    n_features, n_groups = _check_learner(f"{where}: learner", learner)
    _check_trees(f"{where}: trees", learner["gradient_booster"], n_features, n_groups)
    _check_config(f"{where}: Config", config["learner"], learner)


def _check_learner(where: str, learner: dict[str, Any]) -> tuple[int, int]:
    """Return the number of columns, and of trees per round."""
    facts = _texts(f"{where}: learner_model_param", learner["learner_model_param"])
    n_features = _whole(where, facts, "num_feature")
    n_classes = _whole(where, facts, "num_class", 0)
    require(n_classes <= _MOST_CLASSES and facts.get("num_target", "1") == "1", where, "has too many outputs.")
    n_groups = max(n_classes, 1)
    _check_base_score(where, facts.get("base_score", ""), n_groups)
    for name in ("feature_names", "feature_types"):
        described = learner[name]
        texts = isinstance(described, list) and all(isinstance(each, str) for each in described)
        require(texts and len(described) in (0, n_features), where, f"does not describe its columns in {name}.")
    _texts(f"{where}: attributes", learner["attributes"])
    objective = learner["objective"]
    known = isinstance(objective, dict) and objective.get("name") in (_SINGLE_OBJECTIVES | _CLASS_OBJECTIVES)
    require(known, where, "has an unknown objective.")
    for name, options in objective.items():
        if name != "name":
            _texts(f"{where}: {name}", options)
    if objective["name"] in _CLASS_OBJECTIVES:
        options = _texts(f"{where}: objective", objective.get("softmax_multiclass_param"))
        same = options.get("num_class") == str(n_classes) and n_classes > 1
        require(same, where, "has other classes in its objective.")
    else:
        require(n_classes <= 1, where, f"has {n_classes} classes, which its objective does not know.")
    if objective["name"] == _QUANTILE_OBJECTIVE:
        levels = _texts(f"{where}: objective", objective.get("quantile_loss_param")).get("quantile_alpha", "")
        require(_is_one_level(levels), where, "has other levels than one between 0 and 1.")
    return n_features, n_groups


def _is_one_level(text: str) -> bool:
    """Return whether a text is a list of one number between 0 and 1, as each would have an output."""
    try:
        return 0 < float(text.removeprefix("[").removesuffix("]")) < 1
    except ValueError:
        return False


def _check_base_score(where: str, text: str, n_groups: int) -> None:
    """Check a text that holds a number, a list of one, or a list with one per class."""
    scores = text.removeprefix("[").removesuffix("]").split(",") if text.startswith("[") else [text]
    try:
        values = [float(score) for score in scores]
    except ValueError:
        values = []
    plain = text.startswith("[") == text.endswith("]") and len(text) < 100 * n_groups
    good = plain and len(values) in (1, n_groups) and bool(np.isfinite(values).all())
    require(good, where, f"has the base score {text[:40]!r}.")


def _check_trees(where: str, booster: Any, n_features: int, n_groups: int) -> None:
    booster = _object(where, booster, {"model", "name"})
    require(booster["name"] == "gbtree", where, f"are of the kind {str(booster['name'])[:40]!r}. Expected gbtree.")
    known = {"gbtree_model_param", "iteration_indptr", "tree_info", "trees"}
    model = _object(where, booster["model"], known, frozenset({"cats"}))
    facts = _texts(where, model["gbtree_model_param"])
    trees = model["trees"]
    require(isinstance(trees, list), where, "are no list.")
    require(_whole(where, facts, "num_trees", 0) == len(trees), where, f"are {len(trees)}, but others are announced.")
    n_per_round = n_groups * _whole(where, facts, "num_parallel_tree")
    indices(f"{where}: tree_info", _whole_array(where, model["tree_info"]), n_groups, (len(trees),))
    rounds = _whole_array(where, model["iteration_indptr"])
    ends = len(rounds) and rounds[0] == 0 and rounds[-1] == len(trees) and (np.diff(rounds) == n_per_round).all()
    require(ends, where, f"are not divided into rounds of {n_per_round}.")
    if "cats" in model:
        cats = _object(f"{where}: cats", model["cats"], {"enc", "feature_segments", "sorted_idx"})
        require(not any(len(part) for part in cats.values()), where, "have names of categories.")
    for number, tree in enumerate(trees):
        _check_tree(f"{where}[{number}]", tree, number, n_features)
    for first in range(0, len(trees), _TREES_AT_ONCE):
        _check_nodes(f"{where}, from tree {first}", trees[first : first + _TREES_AT_ONCE], n_features)


def _check_tree(where: str, tree: Any, number: int, n_features: int) -> None:
    """Check the parts of a tree, their kinds and lengths."""
    tree = _object(where, tree, _TREE)
    facts = _texts(where, tree["tree_param"])
    n = _whole(where, facts, "num_nodes")
    require(facts.get("size_leaf_vector", "0") in ("0", "1"), where, "has leaves with several values.")
    require(_whole(where, facts, "num_feature", 0) in (0, n_features), where, "reads another number of columns.")
    _whole(where, facts, "num_deleted", 0)
    require(tree["id"] == number, where, "has another number.")
    for name, kinds in _PER_NODE.items():
        array(where, tree[name], (n,), kinds=kinds, finite=False)
    for name in _SETS:
        array(where, tree[name], (-1,), kinds="i")


def _check_nodes(where: str, trees: list[dict[str, Any]], n_features: int) -> None:
    """Check the nodes of trees together."""
    values = {name: np.concatenate([tree[name] for tree in trees]) for name in _PER_NODE}
    sizes = np.array([len(tree["left_children"]) for tree in trees])
    by_category = values["split_type"] == 1
    for name, read in (("base_weights", np.s_[:]), ("split_conditions", ~by_category)):  # XGBoost 2 writes NaN there
        require(np.isfinite(values[name][read]).all(), where, f"has {name} that are not finite.")
    left, right = values["left_children"].astype(np.int64), values["right_children"].astype(np.int64)
    inner = left != _LEAF
    require(np.array_equal(inner, right != _LEAF), where, "has a node with one child.")
    # Nodes deleted by pruning stay in the arrays, as leaves without a parent. Remove them before the check.
    n_deleted = np.array([int(tree["tree_param"].get("num_deleted", "0")) for tree in trees])
    deleted = (values["split_indices"] == _DELETED) & bool(n_deleted.any())
    tree_of = np.repeat(np.arange(len(sizes)), sizes)
    same = np.array_equal(np.bincount(tree_of, weights=deleted, minlength=len(sizes)), n_deleted)
    require(same, where, "has not the deleted nodes it announces.")
    inner &= ~deleted
    _check_parents(where, values["parents"].astype(np.int64), sizes, inner, deleted, (left, right))
    if deleted.any():
        left, right = _without(where, deleted, sizes, inner, left), _without(where, deleted, sizes, inner, right)
    tree_depths(sizes - n_deleted, left[~deleted], right[~deleted], inner[~deleted], lambda k: f"{where}: tree {k}")
    indices(f"{where}: split_indices", values["split_indices"][inner].astype(np.int64), n_features)
    require((by_category | (values["split_type"] == 0)).all(), where, "has splits of an unknown type.")
    _check_sets(where, trees, sizes, np.flatnonzero(by_category))


def _check_parents(
    where: str,
    parents: IntArray,
    sizes: IntArray,
    inner: BoolArray,
    deleted: BoolArray,
    sides: tuple[IntArray, IntArray],
) -> None:
    """Check that every child names its parent, as XGBoost also follows parents while it reads a tree."""
    roots = np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = np.repeat(sizes, sizes)
    in_range = (parents >= 0) & (parents < size) | (parents == _NO_PARENT)
    require(in_range.all(), where, "has a parent out of range.")
    own = np.arange(len(parents)) - roots
    require((parents[own == 0] == _NO_PARENT).all(), where, "has a root with a parent.")
    for children in sides:
        stray = inner & ((children < 0) | (children >= size))
        require(not stray.any(), where, "has a child out of range.")
        require((parents[(children + roots)[inner]] == own[inner]).all(), where, "has a child of another parent.")
    require((deleted | (own == 0) | (parents != _NO_PARENT)).all(), where, "has a node without a parent.")


def _without(where: str, deleted: BoolArray, sizes: IntArray, inner: BoolArray, children: IntArray) -> IntArray:
    """Return the numbers of children among the nodes that are not deleted."""
    roots = np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.where(inner, children + roots, 0)
    require(((places >= 0) & (places < len(deleted)))[inner].all(), where, "has a child out of range.")
    require(not deleted[places[inner]].any() and not deleted[roots].any(), where, "has a child that is deleted.")
    kept = np.cumsum(~deleted) - 1
    return np.where(inner, kept[np.where(inner, places, 0)] - kept[roots], -1)


def _check_sets(where: str, trees: list[dict[str, Any]], sizes: IntArray, by_category: IntArray) -> None:
    """Check the sets of categories: one for each categorical split, each a part of its tree's list."""
    lengths = {name: np.array([len(tree[name]) for tree in trees]) for name in _SETS}
    categories, nodes, starts, counts = (
        np.concatenate([tree[name] for tree in trees]).astype(np.int64) for name in _SETS
    )
    n_sets = lengths["categories_nodes"]
    same = all(np.array_equal(n_sets, lengths[name]) for name in ("categories_segments", "categories_sizes"))
    require(same, where, "has sets of categories without bounds.")
    in_tree = (nodes >= 0) & (nodes < np.repeat(sizes, n_sets))
    nodes = nodes + np.repeat(np.cumsum(sizes) - sizes, n_sets)
    own = in_tree.all() and np.array_equal(nodes, by_category)
    require(own, where, "has not one set of categories for each split that needs one.")
    inside = (starts >= 0) & (counts >= 0) & (starts + counts <= np.repeat(lengths["categories"], n_sets))
    require(inside.all() and (np.abs(starts) < 2**40).all(), where, "has sets of categories out of bounds.")
    indices(f"{where}: categories", categories, _MOST_CATEGORIES)


def _check_config(where: str, config: Any, learner: dict[str, Any]) -> None:
    """Check the settings: nothing but texts in objects and lists, the device a CPU, and the learner of the model."""
    _plain(where, config)
    require(isinstance(config, dict), where, "is no object.")
    facts = _texts(f"{where}: generic_param", config.get("generic_param"))
    require(facts.get("device", "cpu") == "cpu", where, f"asks for the device {facts.get('device', '')[:40]!r}.")
    same = config.get("learner_model_param") == learner["learner_model_param"]
    same = same and config.get("objective") == learner["objective"]
    require(same, where, "describes another learner than the model.")
    booster = config.get("gradient_booster")
    require(isinstance(booster, dict) and booster.get("name") == "gbtree", where, "describes another kind of trees.")


def _plain(where: str, value: Any) -> None:
    if isinstance(value, dict):
        for each in value.values():
            _plain(where, each)
    elif isinstance(value, list):
        for each in value:
            _plain(where, each)
    else:
        require(isinstance(value, (str, bool, int)) or value is None, where, "holds something else than texts.")


def _object(where: str, value: Any, keys: set[str], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ContentError(f"{where} is no object.")
    found = value.keys() - optional
    if found != keys:
        raise ContentError(f"{where} has other fields than XGBoost writes: {', '.join(sorted(found ^ keys))[:80]}.")
    return value


def _texts(where: str, value: Any) -> dict[str, str]:
    plain = isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
    require(plain, where, "is no list of settings.")
    return dict(value)


def _whole(where: str, facts: dict[str, str], name: str, least: int = 1) -> int:
    text = facts.get(name, "")
    require(text.isdigit() and len(text) < 10, where, f"has {text[:40]!r} for {name}.")
    return count(f"{where}: {name}", int(text), least)


def _whole_array(where: str, value: Any) -> AnyArray:
    if isinstance(value, list):
        require(all(isinstance(n, int) and abs(n) < 2**40 for n in value), where, "have something else than numbers.")
        return np.array(value, dtype=np.int64)
    return array(where, value, (-1,), kinds="iu")
