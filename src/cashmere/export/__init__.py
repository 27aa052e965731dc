"""Export for use without cashmere: an ensemble as one ONNX file, with a certificate that it predicts the same."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from cashmere.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from cashmere.export.certificate import Certificate
    from cashmere.export.exporting import export_onnx
    from cashmere.export.inputs import onnx_inputs

__all__ = ["Certificate", "export_onnx", "onnx_inputs"]

_HOMES = {
    "Certificate": "cashmere.export.certificate",
    "export_onnx": "cashmere.export.exporting",
    "onnx_inputs": "cashmere.export.inputs",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use, because onnx and onnxruntime are optional."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cashmere.export' has no attribute {name!r}")
    for package in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(package, "An export to ONNX", "onnx")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List all public names, whether or not they have been imported."""
    return sorted({*globals(), *__all__})
