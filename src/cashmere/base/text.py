"""Make names and messages from outside fit to show: without control characters or private paths, and bounded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

_ANSI = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC: titles and links
    r"|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]"  # CSI: colours and cursor
    r"|\x1b[ -/]{0,4}[0-~]"
)
_JOINERS = "\u200c\u200d"
"""Zero-width (non-)joiners: format characters, but part of the spelling of Persian, Hindi and emoji."""

_GAP = "\n […]\n"

_USERS = re.compile(r"(?:(?<![\w.])/(?:home|Users)/|\b[A-Za-z]:[\\/]+Users[\\/]+)[^\\/\s:;,\"'<>]+")
_ROOT = re.compile(r"(?<![\w./~])/root(?![\w.-])")
_CREDENTIALS = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/@\"']{1,500}@")
_TOKENS = re.compile(r"([?&][\w.-]{0,60}(?:token|key|secret|password|signature|sig)=)[^\s&\"'#]+", re.IGNORECASE)
_WORDS = re.compile(r"[^\s\"']+")
_COLUMNS_NAMED = 3
_SPELLINGS_SHOWN = 3
_PACKAGES = re.compile(r"[\\/](?:site|dist)-packages[\\/]")


def clean_text(text: object, limit: int = 200, *, multiline: bool = False) -> str:
    r"""Make a text from outside safe to print or to put into a page (where it must be escaped as well).

    Removes terminal escapes, control characters, marks that change the writing direction and other invisible
    characters; replaces what cannot be encoded by U+FFFD.

    Parameters
    ----------
    text : object
        Anything; `str` is applied.
    limit : int
        Maximum length of the result in characters. A longer text ends in ``…``; with `multiline` its middle is cut
        out.
    multiline : bool
        Keep line breaks and tabs; by default they become spaces.

    Examples
    --------
    >>> clean_text("\x1b[31mred\x1b[0m\n\u202egnp.exe")
    'red gnp.exe'
    >>> clean_text("x" * 1_000_000, 5)
    'xxxx…'
    """
    text = str(text)
    room = 4 * limit + 1000  # removed characters make room for later ones; a longer text is simply cut
    cut = len(text) > room
    if cut:
        text = text[: room // 2] + text[-room // 2 :] if multiline else text[:room]
    text = _ANSI.sub("", text.replace("\r\n", "\n"))
    text = "".join(_clean_character(c, multiline=multiline) for c in text)
    text = text.strip("\n") if multiline else " ".join(text.split())
    if len(text) <= limit and not cut:
        return text
    if multiline and limit > 2 * len(_GAP):
        head = (limit - len(_GAP)) // 3
        return text[:head] + _GAP + text[head + len(_GAP) - limit :]
    return text[: limit - 1] + "…"


def _clean_character(character: str, *, multiline: bool) -> str:
    if character in "\n\t":
        return character if multiline else " "
    category = unicodedata.category(character)
    if category in ("Cc", "Cf"):
        return character if character in _JOINERS else " " if character in "\r\v\f\x85" else ""
    if category in ("Zl", "Zp"):
        return " "
    return "\ufffd" if category == "Cs" else character


def columns_hold(names: list[str]) -> str:
    """Return the beginning of a sentence about what columns hold.

    Examples
    --------
    >>> columns_hold(["age"]), columns_hold(["a", "b", "c", "d"])
    ("Column 'age' holds", "Columns 'a', 'b', 'c', ... hold")
    """
    shown = ", ".join(map(repr, names[:_COLUMNS_NAMED])) + (", ..." if len(names) > _COLUMNS_NAMED else "")
    return f"Column {shown} holds" if len(names) == 1 else f"Columns {shown} hold"


def shown_spellings(texts: Iterable[str]) -> str:
    """Return those of different texts that differ only in case or blanks, three at most, or ``""`` if none do.

    Examples
    --------
    >>> shown_spellings(["Yes", "no", "yes "])
    "'Yes' and 'yes '"
    """
    texts = list(texts)
    plain = [" ".join(text.split()).casefold() for text in texts]
    if len(set(plain)) == len(texts):  # as nearly always
        return ""
    spellings: dict[str, list[str]] = {}
    for spelling, text in zip(plain, texts, strict=True):
        spellings.setdefault(spelling, []).append(text)
    alike = [" and ".join(map(repr, labels)) for labels in spellings.values() if len(labels) > 1]
    return "; ".join(alike[:_SPELLINGS_SHOWN]) + ("; ..." if len(alike) > _SPELLINGS_SHOWN else "")


def first_of(names: Sequence[str], *, most: int) -> str:
    """Return the first of some names, and how many more there are.

    Examples
    --------
    >>> first_of(["a", "b", "c"], most=2), first_of(["a"], most=2)
    ("'a', 'b' and 1 more", "'a'")
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def is_dotted_path(strategy: object) -> bool:
    """Return whether a strategy is text, with options or without, that names what must be imported.

    Importing runs code. Never import what a file names, such as the settings of a run, but only what the user gives.

    Examples
    --------
    >>> is_dotted_path("my_module.MyStrategy:width=0.5"), is_dotted_path("optdivbo:tau=0.5")
    (True, False)
    >>> is_dotted_path("<class 'my_module.MyStrategy'>")  # how a run describes an object
    False
    """
    if not isinstance(strategy, str):
        return False
    parts = strategy.partition(":")[0].strip().split(".")
    return len(parts) > 1 and all(part.isidentifier() for part in parts if part)


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one.

    Examples
    --------
    >>> counted(1, "row"), counted(12_345, "row")
    ('1 row', '12,345 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def redact(text: str) -> str:
    """Shorten home directories to ``~`` and paths of installed packages to ``...``, and hide credentials in addresses.

    Examples
    --------
    >>> redact('File "/home/ada/.venv/lib/python3.12/site-packages/sklearn/base.py", line 7')
    'File ".../sklearn/base.py", line 7'
    >>> redact("/home/ada/data/x.csv from s3://ada:secret@host/x")
    '~/data/x.csv from s3://***@host/x'
    """
    text = _CREDENTIALS.sub(r"\1***@", text)
    text = _TOKENS.sub(r"\1***", text)
    text = _WORDS.sub(lambda match: _without_prefix(match.group()), text)
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(re.escape(home) + r"(?![\w.-])", "~", text)
    return _ROOT.sub("~", _USERS.sub("~", text))


def _without_prefix(word: str) -> str:
    """Replace the path up to the last site-packages by three dots."""
    places = list(_PACKAGES.finditer(word))
    return ".../" + word[places[-1].end() :] if places else word
