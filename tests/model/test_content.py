"""Inconsistent content is refused by name; in test_trusted_types.py, every fitted model passes."""

from __future__ import annotations

import copy
from contextlib import nullcontext

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from cashmere.exceptions import ModelFileError
from cashmere.model.archives import dump, load
from cashmere.model.content import ContentError, check_objects
from cashmere.model.content.lightgbm_text import check_lightgbm
from cashmere.model.content.ubjson import read_ubjson
from cashmere.model.content.xgboost_document import check_xgboost
from cashmere.space.estimators.margins import CoupledMargins
from cashmere.space.estimators.realmlp import RealMLPClassifier, RealMLPRegressor

X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def models():
    network = MLPClassifier((5,), max_iter=3)
    network.n_iter_no_change = 10
    with pytest.warns(Warning, match="Maximum iterations"):
        network.fit(X, Y)
    columns, offsets = RealMLPClassifier(width=5, n_layers=2), RealMLPRegressor(width=5, n_layers=2)
    columns.begin(X, Y)  # weights are drawn, not learned, as they do not matter here
    offsets.begin(X, X[:, 0])
    return {
        "realmlp": columns,
        "realmlp of values": offsets,
        "forest": RandomForestClassifier(3, random_state=0).fit(X, Y),
        "ada": AdaBoostClassifier(n_estimators=3, random_state=0).fit(X, Y),
        "boosting": GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, Y),
        "histograms": HistGradientBoostingClassifier(max_iter=2, categorical_features=[3]).fit(X.round(), Y),
        "neighbours": KNeighborsClassifier(algorithm="kd_tree", leaf_size=5).fit(X, Y),
        "vectors": SVC().fit(X, Y),
        "coupled": CoupledMargins(SVC(decision_function_shape="ovo")).fit(X, Y),
        "network": network,
        "lda": LinearDiscriminantAnalysis().fit(X, Y),
        "logistic": LogisticRegression(max_iter=300).fit(X, Y),
        "scaler": StandardScaler().fit(X),
        "polynomial": PolynomialFeatures().fit(X),
        "lightgbm": LGBMClassifier(n_estimators=2, verbose=-1).fit(X, Y),
    }


def test_fitted_models_pass(models):
    check_objects(models)


def change_tree(tree, field, node, value):
    """Return a copy of a tree with another number in a node, made as skops makes it."""
    kind, arguments, state = tree.__reduce__()
    state = {**state, "nodes": state["nodes"].copy()}
    state["nodes"][field][node] = value
    changed = kind(*arguments)
    changed.__setstate__(state)
    return changed


@pytest.mark.parametrize("name", ["forest", "ada", "boosting"])
@pytest.mark.parametrize(
    ("field", "node", "value", "message"),
    [
        ("left_child", 0, 10**6, "out of range"),
        ("left_child", 0, 0, "out of range"),
        ("left_child", 0, 2, "no tree"),
        ("left_child", 0, -1, "one child"),
        ("right_child", 0, -5, "out of range"),
        ("feature", 0, 4, "column that is not there"),
        ("feature", 0, -2, "column that is not there"),
        ("threshold", 0, np.nan, "threshold"),
    ],
)
def test_a_tree_with_a_wrong_node_is_refused(models, name, field, node, value, message):
    model = copy.deepcopy(models[name])
    first = model.estimators_.ravel()[0] if name == "boosting" else model.estimators_[0]
    first.tree_ = change_tree(first.tree_, field, node, value)
    with pytest.raises(ContentError, match=message):
        check_objects(model)


@pytest.mark.parametrize(
    ("vouched", "error"), [(False, pytest.raises(ModelFileError, match="threshold")), (True, nullcontext())]
)
def test_the_content_of_a_file_that_somebody_trusted_vouches_for_is_not_checked(models, tmp_path, vouched, error):
    forest = copy.deepcopy(models["forest"])
    forest.estimators_[0].tree_ = change_tree(forest.estimators_[0].tree_, "threshold", 0, np.nan)
    (tmp_path / "forest.skops").write_bytes(dump(forest))
    trusted = [f"{type(each).__module__}.{type(each).__name__}" for each in (forest, forest.estimators_[0])]
    with error:
        load(tmp_path / "forest.skops", vouched=vouched, trusted=trusted)
    with pytest.raises(ModelFileError, match="checksum"):
        load(tmp_path / "forest.skops", vouched=vouched, sha256="0" * 64)


def test_a_tree_that_announces_other_sizes_is_refused(models):
    model = copy.deepcopy(models["forest"])
    for name, value in (("max_depth", 0), ("node_count", 3)):
        kind, arguments, state = model.estimators_[1].tree_.__reduce__()
        changed = kind(*arguments)
        changed.__setstate__({**state, name: value})
        broken = copy.deepcopy(model)
        broken.estimators_[1].tree_ = changed
        with pytest.raises(ContentError, match="announces"):
            check_objects(broken)


def set_in(array, place, value):
    changed = np.array(array)
    changed[place] = value
    return changed


def test_a_predictor_of_histograms_is_refused(models):
    for field, value in (("left", 1000), ("right", 0), ("feature_idx", 9), ("value", np.inf), ("bitset_idx", 7)):
        model = copy.deepcopy(models["histograms"])
        tree = model._predictors[0][2]
        tree.nodes = tree.nodes.copy()
        if field == "bitset_idx":
            tree.nodes["is_categorical"][0], tree.nodes["feature_idx"][0] = 1, 3
        tree.nodes[field][0] = value
        with pytest.raises(ContentError):
            check_objects(model)


def change_search_tree(tree, position, change):
    state = list(tree.__getstate__())
    state[position] = change(np.array(state[position]))
    changed = type(tree).__new__(type(tree))
    changed.__setstate__(tuple(state))
    return changed


def numbered(field, node, value):
    def change(nodes):
        nodes[field][node] = value
        return nodes

    return change


@pytest.mark.parametrize(
    ("position", "change"),
    [
        (1, lambda rows: set_in(rows, 0, rows[1])),
        (1, lambda rows: set_in(rows, 0, 10**9)),
        (2, numbered("idx_end", 0, 10**6)),
        (2, numbered("idx_start", 1, 7)),
        (2, numbered("is_leaf", 30, 0)),
        (2, lambda nodes: nodes[:3]),
        (3, lambda bounds: bounds[:, :, :2].copy()),
        (0, lambda data: set_in(data, (0, 0), np.nan)),
    ],
)
def test_a_search_tree_is_refused(models, position, change):
    model = copy.copy(models["neighbours"])
    model._tree = change_search_tree(model._tree, position, change)
    with pytest.raises(ContentError):
        check_objects(model)


@pytest.mark.parametrize(
    ("name", "attribute", "value"),
    [
        ("neighbours", "_y", np.full(150, 3)),
        ("neighbours", "n_neighbors", 151),
        ("neighbours", "effective_metric_params_", {"p": 0}),
        ("neighbours", "_tree", None),
        ("vectors", "_n_support", np.array([1, 1, 1], dtype=np.int32)),
        ("vectors", "support_vectors_", np.zeros((3, 4))),
        ("vectors", "_intercept_", np.zeros(2)),
        ("vectors", "kernel", "precomputed"),
        ("coupled", "sharpness", float("nan")),
        ("coupled", "estimator_", SVC(decision_function_shape="ovr")),
        ("network", "intercepts_", [np.zeros(5), np.zeros(2)]),
        ("network", "activation", "unknown"),
        ("realmlp", "center_", np.zeros(3)),
        ("realmlp", "embedded_", np.array([0, 1, 2, 4])),
        ("realmlp", "embedded_", np.array([0, 1, -1])),
        ("realmlp", "frequencies_", np.zeros((4, 15), np.float32)),
        ("realmlp", "mixing_", np.zeros((4, 16, 2), np.float32)),
        ("realmlp", "shifts_", np.full((4, 3), np.nan, np.float32)),
        ("realmlp", "front_", np.zeros(17, np.float32)),
        ("realmlp", "coefs_", [np.zeros((16, 5)), np.zeros((4, 5)), np.zeros((5, 3))]),
        ("realmlp", "coefs_", []),
        ("realmlp", "intercepts_", [np.zeros(5), np.zeros(5)]),
        ("realmlp", "slopes_", [np.zeros(5), np.zeros(4)]),
        ("realmlp", "slopes_", []),
        ("realmlp", "classes_", np.arange(4)),
        ("realmlp of values", "lowest_", np.nan),
        ("realmlp of values", "highest_", -1e9),
        ("realmlp of values", "coefs_", [np.zeros((16, 5)), np.zeros((5, 5)), np.zeros((5, 2))]),
        ("lda", "coef_", np.zeros((3, 5))),
        ("lda", "intercept_", np.full(3, np.nan)),
        ("logistic", "coef_", "text"),
        ("logistic", "classes_", None),
        ("scaler", "scale_", np.zeros(3)),
        ("scaler", "n_features_in_", -4),
        ("polynomial", "_max_degree", 30),
        ("polynomial", "n_output_features_", 5),
        ("forest", "n_features_in_", 5),
        ("forest", "classes_", np.arange(4)),
        ("ada", "estimator_weights_", np.full(3, np.nan)),
        ("boosting", "n_trees_per_iteration_", 1),
        ("histograms", "_baseline_prediction", np.zeros((1, 2))),
        ("lightgbm", "_n_features", 3),
        ("lightgbm", "_other_params", {"predict_disable_shape_check": True}),
    ],
)
def test_an_attribute_that_does_not_fit_is_refused(models, name, attribute, value):
    model = copy.copy(models[name])
    model.__dict__[attribute] = value
    with pytest.raises(ContentError, match=r"^content \("):
        check_objects(model, "content")


@pytest.fixture(scope="module")
def text(models):
    return models["lightgbm"].booster_.model_to_string()


def replace_line(text, name, change):
    """Change the first line with that name, and the announced sizes of the trees."""
    line = next(line for line in text.split("\n") if line.startswith(f"{name}="))
    changed = f"{name}={change(line.partition('=')[2])}"
    text = text.replace(line, changed, 1)
    sizes = next(line for line in text.split("\n") if line.startswith("tree_sizes="))
    blocks = [f"Tree={block}" for block in text.partition("end of trees")[0].split("Tree=")[1:]]
    return text if name == "tree_sizes" else text.replace(sizes, "tree_sizes=" + " ".join(str(len(b)) for b in blocks))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_class", "30000"),
        ("num_class", "-1"),
        ("num_tree_per_iteration", "2"),
        ("max_feature_idx", "2"),
        ("max_feature_idx", "99999999999"),
        ("objective", "multiclass num_class:2"),
        ("objective", "custom"),
        ("feature_infos", "none"),
        ("tree_sizes", "1 2 3"),
        ("num_leaves", "50"),
        ("num_leaves", "0"),
        ("split_feature", "4 0"),
        ("left_child", "0 -1"),
        ("right_child", "9 -2"),
        ("decision_type", "1 1"),
        ("leaf_value", "nan 1 2"),
        ("threshold", "one two"),
        ("is_linear", "1"),
    ],
)
def test_a_changed_line_of_lightgbm_is_refused(text, name, value):
    check_lightgbm("model", text)
    with pytest.raises(ContentError):
        check_lightgbm("model", replace_line(text, name, lambda _: value))


@pytest.mark.parametrize(
    "content", ["", "tree\n\n", "tree\nversion=v4\n\nend of trees\n", "tree\nversion=v4\nversion=v4\n\n"]
)
def test_a_text_without_a_model_of_lightgbm_is_refused(content):
    with pytest.raises(ContentError):
        check_lightgbm("model", content)


@pytest.fixture(scope="module")
def document():
    xgboost = pytest.importorskip("xgboost")
    rows = np.column_stack([X, np.arange(150) % 3])
    model = xgboost.XGBClassifier(
        n_estimators=2,
        max_depth=3,
        feature_types=["q"] * 4 + ["c"],
        enable_categorical=True,
        tree_method="hist",
        gamma=0.5,
    )
    return bytes(model.fit(rows, Y).get_booster().__getstate__()["handle"])


def number(name, position, value, width):
    """Change a number in the first array with that name."""

    def change(data):
        start = data.index(name.encode() + b"[$") + len(name) + 13 + position * width
        return data[:start] + value.to_bytes(width, "big", signed=True) + data[start + width :]

    return change


@pytest.mark.parametrize(
    "change",
    [
        number("left_children", 0, 10**6, 4),
        number("left_children", 0, -1, 4),
        number("right_children", 0, 1, 4),
        number("split_indices", 0, 5, 4),
        number("split_indices", 0, -3, 4),
        number("split_type", 0, 2, 1),
        number("parents", 2, 4096, 4),
        number("parents", 0, 0, 4),
        number("parents", 1, 2, 4),
        lambda data: data.replace(b"num_classSL\0\0\0\0\0\0\0\x013", b"num_classSL\0\0\0\0\0\0\0\x014"),
        lambda data: data.replace(b"num_featureSL\0\0\0\0\0\0\0\x015", b"num_featureSL\0\0\0\0\0\0\0\x014"),
        lambda data: data.replace(b"multi:softprob", b"multi:softpr0b"),
        lambda data: data.replace(b"num_nodesSL\0\0\0\0\0\0\0\x01", b"num_nodesSL\0\0\0\0\0\0\0\x7f"),
        lambda data: data[:-1],
        lambda data: data + b"}",
        lambda data: data[:1000],
        lambda data: b"",
        lambda data: b"{" * 10_000,
        lambda data: data.replace(b"gbtree_model_param", b"gbtree_model_pa\0am"),
    ],
)
def test_a_changed_document_of_xgboost_is_refused(document, change):
    check_xgboost("model", document)
    assert change(document) != document
    with pytest.raises(ContentError):
        check_xgboost("model", change(document))


def test_level_of_a_quantile_is_one_number():
    xgboost = pytest.importorskip("xgboost")
    made = xgboost.XGBRegressor(n_estimators=2, objective="reg:quantileerror", quantile_alpha=0.9).fit(X, X[:, 0])
    document = bytes(made.get_booster().__getstate__()["handle"])
    check_xgboost("model", document)
    for other in (b"[.1,1]", b"[ nan]", b"[3E+0]"):
        with pytest.raises(ContentError, match="has other levels"):
            check_xgboost("model", document.replace(b"[9E-1]", other))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"N",
        b"[#L" + b"\xff" * 8,
        b"[$d#L" + b"\x7f" * 8,
        b"SL" + b"\x7f" * 8,
        b"[$S#L" + b"\0" * 8,
        b"ZZ",
        b"[i\1]",
    ],
)
def test_other_json_than_that_of_xgboost_is_refused(data):
    with pytest.raises(ValueError):
        read_ubjson(data)
