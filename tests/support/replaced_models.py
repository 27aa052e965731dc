"""A model folder that is replaced while somebody reads it, as a run at work does."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cashmere.model.files import read_manifest, save_model
from cashmere.model.predictor import Predictor

ADDED = 100
"""Added to the numbers of the members of the other model, so that it shares no member file with the first."""


def replace_after(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, folder: Path) -> None:
    """Let the next call of a function of a module be followed by the replacement of the model in a folder."""
    real = getattr(module, name)

    def read_before(*arguments: Any) -> Any:
        monkeypatch.setattr(module, name, real)
        found = real(*arguments)
        save_another_model(folder)
        return found

    monkeypatch.setattr(module, name, read_before)


def save_another_model(folder: Path) -> None:
    """Save the model of a folder again, with other trial numbers."""
    model = Predictor.load(folder)
    with tempfile.TemporaryDirectory() as kept:
        files = {
            int(number) + ADDED: Path(shutil.copy(folder / entry["file"], kept))
            for number, entry in read_manifest(folder)["members"].items()
        }
        save_model(
            folder,
            schema=model.schema,
            target=model.target,
            encoders=model.encoders,
            ensemble=replace(model.ensemble, members=tuple(n + ADDED for n in model.ensemble.members)),
            member_files=files,
            information=model.information,
        )
