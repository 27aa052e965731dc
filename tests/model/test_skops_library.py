"""Importing skops: quickly, and without side effects."""

import importlib
import subprocess
import sys

import pytest

from cashmere.model.skops_library import skops_io


def test_reading_and_writing_models_imports_neither_pytorch_nor_dask():
    program = (
        "import sys; from cashmere.model.archives import dump, load; dump({'x': 1}); "
        "assert 'skops.io' in sys.modules and not {'torch', 'dask.array'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("library", ["torch", "dask.array"])
def test_scikit_learn_still_finds_its_wrappers(library):
    pytest.importorskip(library)
    assert skops_io().loads(skops_io().dumps([1, 2])) == [1, 2]
    assert importlib.import_module(f"sklearn.externals.array_api_compat.{library}").__name__.endswith(library)
