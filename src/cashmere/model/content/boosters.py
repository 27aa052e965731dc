"""Boosting libraries in an archive: entries in their own formats are checked before their parsers see them.

The nodes of the archive that stand for such a model, and where its text or bytes are:

``xgboost.core.Booster``              ``handle``: bytes, an entry of the archive
``lightgbm.basic.Booster``            ``_handle``: a text in the node
``cashmere...CategoryLGBM...``        ``_booster_text``: an array of bytes, an entry of the archive

CatBoost's reader survives damage, so its models are left to the child process that first loads a model.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cashmere.model.content.fault import ContentError, array, require
from cashmere.model.content.lightgbm_text import check_lightgbm
from cashmere.model.content.xgboost_document import check_xgboost

Buffer = bytes | memoryview

_UNSAFE_OPTIONS = {"predict_disable_shape_check"}
"""Options of LightGBM that let it read columns that do not exist."""


def check_entries(nodes: Iterable[dict[str, Any]], entries: Mapping[str, Buffer]) -> None:
    """Check what native code would parse while an archive is loaded.

    Parameters
    ----------
    nodes : iterable of dict
        The nodes of ``schema.json`` of an archive.
    entries : mapping of str to bytes
        The other entries of the archive.

    Raises
    ------
    ContentError
        If a model of LightGBM or XGBoost is not as its library would have written it.
    """
    for node in nodes:
        kind, module = str(node.get("__class__")), str(node.get("__module__"))
        if kind == "Booster" and module.startswith("xgboost"):
            check_xgboost("the XGBoost model", _entry(_state(node).get("handle"), entries))
        elif kind == "Booster" and module.startswith("lightgbm"):
            _check_lightgbm(_text(_state(node).get("_handle")), _state(node).get("params"))
        elif kind.startswith("CategoryLGBM") and "_booster_text" in (state := _state(node)):
            content = np.load(io.BytesIO(_entry(state["_booster_text"], entries)), allow_pickle=False)
            text = array("the LightGBM model", content, (-1,), kinds="u").tobytes().decode("latin-1")
            _check_lightgbm(text, _state(state.get("_booster_rest")).get("params"))


def _check_lightgbm(text: str, options: Any) -> None:
    check_lightgbm("the LightGBM model", text)
    unsafe = _UNSAFE_OPTIONS & _state(options).keys()
    require(not unsafe, "the LightGBM model", f"has the option {', '.join(unsafe)}.")


def _state(node: Any) -> dict[str, Any]:
    """Return the nodes of an object's attributes, or of the items of a dict."""
    for _ in range(2):
        if isinstance(node, dict) and isinstance(node.get("content"), dict):
            node = node["content"]
        if isinstance(node, dict) and node.get("__loader__") != "DictNode":
            break
    return node if isinstance(node, dict) else {}


def _entry(node: Any, entries: Mapping[str, Buffer]) -> bytes:
    name = node.get("file") if isinstance(node, dict) else None
    if not isinstance(name, str) or name not in entries:
        raise ContentError("the model of a boosting library is not in an entry of the archive.")
    return bytes(entries[name])


def _text(node: Any) -> str:
    """Return a text that a node holds as JSON."""
    content = node.get("content") if isinstance(node, dict) else None
    try:
        value = json.loads(content) if isinstance(content, str) else None
    except ValueError:
        value = None
    require(isinstance(value, str), "the LightGBM model", "is no text.")
    return str(value)


def check_lightgbm_estimator(where: str, model: Any) -> None:
    """Check that an estimator of LightGBM fits its model."""
    options = {**model.get_params(), **model._other_params, **model._Booster.params}
    if unsafe := _UNSAFE_OPTIONS & options.keys():
        raise ContentError(f"{where} has the option {', '.join(unsafe)}.")
    found = model._Booster.num_feature()
    require(model._n_features == found, where, f"reads {model._n_features} columns, its model {found}.")
    if model._classes is not None:
        n_classes = len(array(f"{where}._classes", model._classes, (-1,), kinds="iuf"))
        require(model._n_classes == n_classes, where, f"names {n_classes} classes but announces {model._n_classes}.")
        n_outputs = model._Booster.num_model_per_iteration()
        require(n_outputs == (n_classes if n_classes > 2 else 1), where, f"has {n_outputs} outputs.")
