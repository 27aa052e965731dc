"""What counts as a word in texts, also in those of scripts that put no blanks between words."""

from __future__ import annotations

import re
from collections.abc import Iterable

WORD = r"(?u)\w+|[^\w\s.,]"
"""Regular expression of a word: letters and digits, or a symbol, such as an emoji or the plus signs of ``C++``."""

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Letters of scripts without blanks, ranges of a regular expression: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""

_RUN = re.compile(f"[{UNSPACED}]+")


def pairs_as_words(texts: Iterable[str]) -> list[str]:
    """Return texts in which each two neighbouring letters of such scripts are a word; other words stay as they are.

    Examples
    --------
    >>> pairs_as_words(["很好吃, 5 stars", "plain"])
    [' 很好 好吃 , 5 stars', 'plain']
    """
    return [text if text.isascii() else _RUN.sub(_pairs, text) for text in texts]


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(run[i : i + 2] for i in range(max(1, len(run) - 1)))} "
