"""Importing skops: quickly, and without side effects."""

import importlib
import subprocess
import sys

import pytest

from cashmere.model.skops_library import skops_io


def test_reading_and_writing_models_does_not_import_pytorch():
    program = (
        "import sys; from cashmere.model.archives import dump, load; dump({'x': 1}); "
        "assert 'skops.io' in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_scikit_learn_still_finds_its_wrapper_of_pytorch():
    pytest.importorskip("torch")
    assert skops_io().loads(skops_io().dumps([1, 2])) == [1, 2]
    assert importlib.import_module("sklearn.externals.array_api_compat.torch").__name__.endswith("torch")
