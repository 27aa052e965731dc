from __future__ import annotations

import subprocess
import sys

import pytest

EXPORT = "from cashmere.cli import app; app(['export', 'run', '--onnx', 'model.onnx'])"


@pytest.mark.long
@pytest.mark.parametrize(
    ("package", "code"), [("onnx", "import cashmere; cashmere.export_onnx"), ("onnxruntime", EXPORT)]
)
def test_missing_library_is_named_with_the_extra(package, code):
    code = f"import sys; sys.modules[{package!r}] = None; {code}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode
    last = ended.stderr.strip().splitlines()[-1]
    assert f"MissingDependencyError: An export to ONNX needs the package {package!r}" in last
    assert "pip install 'cashmere-automl[onnx]'" in last
