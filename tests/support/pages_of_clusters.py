"""What docs/clusters shows, for tests that run it."""

from __future__ import annotations

import re
from pathlib import Path

from cashmere.data.demo import DEMO_TARGET, demo_table

_PAGES = Path(__file__).parents[2] / "docs" / "clusters"


def shown(page: str, language: str) -> list[str]:
    """Return the blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (_PAGES / page).read_text(), re.MULTILINE | re.DOTALL)


def changed(text: str, changes: dict[str, str]) -> str:
    """Return a text with some parts of it replaced, all of which it has."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def write_table(path: Path) -> None:
    """Write a small table with the target that the pages name."""
    demo_table().sample(150, random_state=1).rename(columns={DEMO_TARGET: "income"}).to_csv(path, index=False)
