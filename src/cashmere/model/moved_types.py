"""Types in model files that have moved since the files were written."""

from __future__ import annotations

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
    "_loss": "sklearn._loss._loss",  # as scikit-learn 1.7 names the module of its losses
}
"""Present names of modules in model files of version 2 and earlier."""

MOVED_TYPES: dict[str, str] = {
    "cashmere.space.autosklearn6_estimators.OperatorAtFit": "cashmere.space.named.operator_at_fit.OperatorAtFit",
}
"""Present names of single types that have left their module."""


def present_module(module: str, name: str) -> str:
    """Return the module that now holds a type of a model file."""
    moved = MOVED_TYPES.get(f"{module}.{name}")
    return moved.rpartition(".")[0] if moved is not None else MOVED_MODULES.get(module, module)


def mentions_moved_types(text: bytes) -> bool:
    """Return whether the text of a schema names a module whose types have moved."""
    return any(f'"{module}"'.encode() in text for module in MOVED_MODULES)


def with_present_names(schema: Any) -> Any:
    """Return a copy of the schema of a skops archive with the present names of moved types."""
    if isinstance(schema, list):
        return [with_present_names(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {key: with_present_names(value) for key, value in schema.items()}
    module, name = schema.get("__module__"), schema.get("__class__")
    if isinstance(module, str) and isinstance(name, str):
        renamed["__module__"] = present_module(module, name)
    return renamed
