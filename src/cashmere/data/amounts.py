"""Numbers as people write them: "$1,234.50", "1.234,50 €", "58.6 %", "12 kg", "(300)"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

import numpy as np
import pandas as pd

from cashmere.base.arrays import Float64

Decimal = Literal[".", ","]

_DECIMALS: tuple[Decimal, Decimal] = (".", ",")

_FIRST = 100
"""Texts that are read before all others."""

_LEAST_DISTINCT = 10
"""Different numbers without a sign: fewer may be codes, such as the pairs of answers "1,2" and "1,3"."""

CURRENCY_CODE = "(?:AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|INR|JPY|NOK|PLN|SEK|USD|ZAR)"
GAP = "[ \u00a0\u2009\u202f'’]"
"""What stands between thousands, beside commas and points."""

_CURRENCY = rf"(?:(?:US|CA|AU|NZ|HK|R)?\$|Rs\.?|kr\.?|zł|Kč|Rp\.?|[€£¥₹₽₩₺]|{CURRENCY_CODE})"
_UNIT = r"(?:[^\W\d_][^\s\d]{0,9}|[°%‰€$£¥₹][^\s\d]{0,9})"

_ENDING = "(?:es|s|en|e|n)"
"""What units of several things may end with: "years", "boxes", "Tage", "Stunden"."""

_SIGN = re.compile(rf"{_CURRENCY}|{_UNIT}")


class StoredAmounts(TypedDict):
    """`Amounts` as plain data."""

    decimal: Decimal
    sign: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : str
        What comes before decimals, a point or a comma; the other one may separate thousands, as may gaps.
    sign : str
        A currency before or behind them, or a unit behind, with or without the ending of a plural; numbers without it
        are of the same unit. Empty if none has.
    """

    decimal: Decimal = "."
    sign: str = ""

    @property
    def description(self) -> str:
        """What they are, such as "numbers of € with a decimal comma"."""
        of = f" of {self.sign}" if self.sign else ""
        return f"numbers{of}" + (" with a decimal comma" if self.decimal == "," else "")

    @property
    def example(self) -> str:
        """One of them, such as "1234,5 €"."""
        return f"1234{self.decimal}5 {self.sign}".rstrip()

    def to_json(self) -> StoredAmounts:
        """Return them as plain data for `json.dump`."""
        return {"decimal": self.decimal, "sign": self.sign}

    @classmethod
    def from_json(cls, data: StoredAmounts) -> Amounts:
        """Return the amounts written by `to_json`.

        Raises
        ------
        ValueError
            If the sign looks like none.
        """
        if data["sign"] and not _SIGN.fullmatch(data["sign"]):
            raise ValueError(f"amounts cannot have the sign {data['sign'][:20]!r}")
        return cls(**data)


def find_amounts(texts: pd.Series[str]) -> Amounts | None:
    """Return how numbers are written in texts that are not all plain numbers; None if it is not certain.

    Parameters
    ----------
    texts : Series of str
        The different texts of a column, without blanks around them. Those without a digit may stand for missing values.

    Returns
    -------
    Amounts or None
        None if texts with digits are no amounts, or have more than one currency or unit; if a comma or point may come
        before decimals or between thousands, as in ``"1,234"``, which it does between thousands of a currency; or if
        they may be codes: without a sign, fewer than ten different numbers, decimal commas before mostly single digits,
        or equally long groups of digits, as in numbers of phones.

    Examples
    --------
    >>> columns = ["$1,234", "$7"], ["1.234,50 €", "0,99 €", "-"], ["5 kg", "12 kg"], ["$5", "€5"], ["1,2", "1,3"]
    >>> for column in columns:
    ...     print(find_amounts(pd.Series(column)))
    Amounts(decimal='.', sign='$')
    Amounts(decimal=',', sign='€')
    Amounts(decimal='.', sign='kg')
    None
    None
    """
    texts = texts[texts.str.contains(r"[0-9]", regex=True)].astype(object)
    if texts.empty:
        return None
    of_first = _ways(texts.head(_FIRST), _DECIMALS)  # most columns are something else
    if not of_first or not (ways := _ways(texts, [amounts.decimal for amounts, _ in of_first])):
        return None
    amounts, numbers = max(ways, key=lambda way: float(np.abs(way[1]).sum()))  # with thousands, if that is possible
    is_certain = all(np.array_equal(numbers, others) for _, others in ways)
    if not is_certain and not re.fullmatch(_CURRENCY, amounts.sign):
        return None
    return amounts if amounts.sign or not _may_be_codes(texts, numbers, amounts.decimal) else None


def _ways(texts: pd.Series[str], decimals: Sequence[Decimal]) -> list[tuple[Amounts, Float64]]:
    """Return the ways to read all texts with one of these marks before decimals, and the numbers."""
    before, behind = texts.str.extract(rf"^\(?[+-]?({_CURRENCY})")[0], texts.str.extract(rf"({_UNIT})\)?$")[0]
    signs = {*before.dropna(), *behind.dropna()}
    if len({*map(_singular, signs)}) > 1:
        return []
    ways = [Amounts(decimal=each, sign=max(sorted(signs), key=len, default="")) for each in decimals]
    read = [(amounts, read_amounts(texts, amounts)) for amounts in ways]
    return [(amounts, numbers) for amounts, numbers in read if not np.isnan(numbers).any()]


def _singular(sign: str) -> str:
    """Return a pattern of a sign; that of a unit is the same for one thing and for several."""
    stem = re.sub(rf"{_ENDING}$", "", sign)
    return rf"{stem}{_ENDING}?" if re.fullmatch(r"[^\W\d_]{3,}", stem) else re.escape(sign)


def _may_be_codes(texts: pd.Series[str], numbers: Float64, decimal: Decimal) -> bool:
    """Return whether amounts without a sign may be codes."""
    if len(np.unique(numbers)) < _LEAST_DISTINCT or texts.str.startswith("(").all():
        return True
    if texts.str.contains(GAP, regex=True).any() and texts.str.count("[0-9]").nunique() == 1:
        return True
    if decimal == "," and not texts.str.contains(r"\.[0-9]{3},", regex=True).any():
        behind = texts.str.extract(r",([0-9]+)", expand=False).dropna().str.len()
        return bool((behind < 2).mean() > 0.5)
    return False


def read_amounts(texts: pd.Series[str], amounts: Amounts) -> Float64:
    """Return the numbers that texts hold, NaN for those that are not written so.

    Parameters
    ----------
    texts : Series of str, shape (n_texts,)
        Without blanks around them.
    amounts : Amounts
        How they are written. The sign may lack.

    Returns
    -------
    (n_texts,) array
        Numbers in brackets are negative. A number with ``%`` is not divided by 100.

    Examples
    --------
    >>> texts = pd.Series(["$1,234.50", "-$3", "7", "($2.5)", "€7", "1,2"])
    >>> read_amounts(texts, Amounts(decimal=".", sign="$")).tolist()
    [1234.5, -3.0, 7.0, -2.5, nan, nan]
    """
    point, thousands = (re.escape(each) for each in (amounts.decimal, "," if amounts.decimal == "." else "."))
    grouped = rf"[0-9]{{1,3}}(?:{thousands}[0-9]{{3}})+|[1-9][0-9]{{0,2}}(?:{GAP}[0-9]{{3}})+|[0-9]+"
    number = rf"(?:{grouped})(?:{point}[0-9]*)?|{point}[0-9]+"
    sign = _singular(amounts.sign)
    parts = texts.astype(object).str.extract(
        rf"^(?P<open>\()?\s*(?P<minus>[+-])?\s*(?:{sign})?\s*(?P<second>[+-])?\s*(?P<number>{number})\s*(?:{sign})?\s*"
        r"(?P<close>\))?$"
    )
    in_brackets = parts["open"].notna()
    n_marks = in_brackets.astype(int) + parts["minus"].notna() + parts["second"].notna()
    is_read = (in_brackets == parts["close"].notna()) & (n_marks <= 1)
    written = parts["number"].where(is_read)
    written = written.str.replace(rf"{thousands}|{GAP}", "", regex=True).str.replace(amounts.decimal, ".", regex=False)
    minus = parts["minus"].eq("-") | parts["second"].eq("-")
    negative = (minus | in_brackets).to_numpy(dtype=bool)
    values = pd.to_numeric(written).to_numpy(dtype=np.float64)
    return np.where(negative, -values, values)
