"""Types in model files that have moved since the files were written."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

MOVED_MODULES: dict[str, str] = {
    "cashmere.space.autosklearn6_estimators": "cashmere.space.estimators.autosklearn6",
    "cashmere.space.boosting": "cashmere.space.estimators.boosting",
    "cashmere.space.forests": "cashmere.space.estimators.forests",
    "cashmere.space.margins": "cashmere.space.estimators.margins",
    "cashmere.space.neighbours": "cashmere.space.estimators.neighbours",
    "cashmere.space.networks": "cashmere.space.estimators.networks",
    "cashmere.space.scores": "cashmere.space.estimators.scores",
    "cashmere.space.standardisation": "cashmere.space.estimators.standardisation",
}
"""Modules of model files of version 2 and earlier, and what they are called now."""

MOVED_TYPES: dict[str, str] = {
    "cashmere.space.autosklearn6_estimators.OperatorAtFit": "cashmere.space.named.operator_at_fit.OperatorAtFit",
}
"""Single types that have left their module."""


def present_module(module: str, name: str) -> str:
    """Return the module that holds a type of a model file today."""
    moved = MOVED_TYPES.get(f"{module}.{name}")
    return moved.rpartition(".")[0] if moved is not None else MOVED_MODULES.get(module, module)


def with_present_names(data: bytes) -> bytes:
    """Return a skops archive in which every moved type has its present name.

    Parameters
    ----------
    data : bytes
        The archive; returned unchanged if nothing in it has moved.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        text = archive.read("schema.json")
        if not any(module.encode() in text for module in MOVED_MODULES):
            return data
        renamed = json.dumps(_rename(json.loads(text))).encode()
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as copy:
            for info in archive.infolist():
                copy.writestr(info, renamed if info.filename == "schema.json" else archive.read(info))
    return written.getvalue()


def _rename(node: Any) -> Any:
    if isinstance(node, list):
        return [_rename(each) for each in node]
    if not isinstance(node, dict):
        return node
    renamed = {key: _rename(value) for key, value in node.items()}
    for module, name in (("__module__", "__class__"), ("module_path", "function")):
        if isinstance(node.get(module), str) and isinstance(node.get(name), str):
            renamed[module] = present_module(node[module], node[name])
    return renamed
