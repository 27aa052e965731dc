"""Digests of code, by which kept results tell what made them."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path

import cashmere

PACKAGE = Path(cashmere.__file__).parent


def digest_of(files: Mapping[str, Path]) -> str:
    """Return a digest of files and their names, which are the same on every machine."""
    digest = hashlib.sha256()
    for name, path in files.items():
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def package_files(folder: str = ".") -> dict[str, Path]:
    """Return the files of code in a folder of the package, by their names in the package."""
    return {path.relative_to(PACKAGE).as_posix(): path for path in sorted((PACKAGE / folder).rglob("*.py"))}


@functools.cache
def package_digest() -> str:
    """Return a digest of the whole package."""
    return digest_of(package_files())
